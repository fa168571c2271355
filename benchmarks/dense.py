"""One stream of dense rows, sweeps over it, first-order learners, and rows as dictionaries.

An algorithm is one line of `ALGORITHMS`. olx and the numba loop return the score of every round;
the others only learn. scikit-learn has no AdaGrad. In a sweep one call of olx meets one run per
configuration: other libraries run a few, and the mean is their cost per configuration.
"""

import functools
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, peers, targets
from benchmarks.data import Examples
from benchmarks.harness import Contestant, Group
from olx import classification, convex, first_order, mirrors

WIDTHS = (10, 50, 200, 1000)
VALUES = 50_000_000  # the largest number of values in a data set
EARLY = 500  # rounds whose scores are compared
NUMPY, DEVICE, LOOP = "olx from numpy", "olx from device", "numba loop"
SWEPT = {8: 100_000, 64: 100_000, 512: 32_768, 4096: 8192}  # rounds, by number of configurations
HINGE, LOG = olx.losses.hinge, olx.losses.logistic
SGD_HINGE, ADA_HINGE = "--sgd --loss_function hinge", "--adaptive --loss_function hinge"


def descent(eta: Any) -> olx.Learner:
    return olx.linear(olx.omd(eta, mirrors.euclidean()))


def adaptive(eta: Any) -> olx.Learner:
    return olx.linear(olx.ftrl(eta, olx.regularizers.adagrad()))


OGD, ADA = descent(peers.ETA), adaptive(peers.ETA)
BASIC, PASSIVE = classification.perceptron(), classification.passive_aggressive_1(peers.ETA)


class Algorithm(NamedTuple):
    name: str
    learner: olx.Learner
    loss: Callable
    loop: str
    vowpal: str | None
    peers: Callable[[Examples], list[Contestant]]  # of river, and of scikit-learn if it has one


def _fit(name: str, river: str) -> Callable[[Examples], list[Contestant]]:
    make = lambda module: getattr(module.linear_model, river)()
    return lambda rows: [peers.river(river, rows, make), peers.sklearn(name, rows)]


# fmt: off
ALGORITHMS = (
    Algorithm("OGD hinge", OGD, HINGE, "ogd_hinge", SGD_HINGE,
              lambda x: [peers.river_logistic("SGD", "Hinge", x), peers.sklearn_sgd("hinge", x)]),
    Algorithm("OGD logistic", OGD, LOG, "ogd_logistic", "--sgd --loss_function logistic",
              lambda x: [peers.river_logistic("SGD", "Log", x), peers.sklearn_sgd("log_loss", x)]),
    Algorithm("AdaGrad hinge", ADA, HINGE, "adagrad_hinge", ADA_HINGE,
              lambda x: [peers.river_logistic("AdaGrad", "Hinge", x)]),
    Algorithm("Perceptron", BASIC, HINGE, "perceptron", None, _fit("Perceptron", "Perceptron")),
    Algorithm("PA", PASSIVE, HINGE, "passive_aggressive", None,
              _fit("PassiveAggressiveClassifier", "PAClassifier")),
)
PA = "PA-I"
ASCENT = olx.dual_ascent(0.1, mirrors.euclidean(), HINGE, olx.ascents.aggressive())
FIRST_ORDER = {
    PA: classification.passive_aggressive_1(0.1),
    "PA": classification.passive_aggressive(),
    "PA-II": classification.passive_aggressive_2(0.1),
    "Perceptron": classification.perceptron(),
    "aggressive Perceptron": classification.aggressive_perceptron(mirrors.euclidean()),
    "p-norm Perceptron": classification.pnorm_perceptron(4.0),
    "Winnow": classification.winnow(1.0),
    "balanced Winnow": classification.balanced_winnow(1.0),
    "self-tuned Winnow": classification.self_tuned_winnow(),
    "self-tuned aggressive": classification.self_tuned_aggressive(mirrors.euclidean(), 1.0),
    "ROMMA": classification.romma(),
    "aggressive ROMMA": classification.aggressive_romma(),
    "ALMA": classification.alma(0.9),
    "aggressive dual ascent": ASCENT,
    "OGD": olx.linear(olx.ogd(0.1)),
    "EG+-": olx.linear(first_order.signed_exponentiated_gradient(0.1)),
    "RDA": olx.linear(first_order.rda(0.1, convex.l1(1e-3))),
    "AdaGrad": olx.linear(first_order.adagrad(0.1)),
    "FTRL-Proximal": olx.linear(first_order.ftrl_proximal()),
    "scale-invariant AdaGrad": olx.linear(first_order.scale_invariant_adagrad(0.1)),
    "scale-invariant p-norm": olx.linear(first_order.scale_invariant_pnorm(0.1)),
    "implicit": olx.implicit(0.1, HINGE),
    "coin betting": olx.linear(first_order.coin_betting()),
    "COCOB": olx.linear(first_order.cocob()),
}
# fmt: on


def measure(group: Group) -> None:
    for width in WIDTHS:
        examples = data.dense(group.size(min(100_000, VALUES // width), 4000), width)
        with tempfile.TemporaryDirectory(dir=group.folder) as folder:
            cache = peers.VowpalCache(folder, examples)
            for one in ALGORITHMS:
                river, *theirs = one.peers(examples)
                theirs += [peers.vowpal(cache, *one.vowpal.split())] if one.vowpal else []
                theirs += [peers.numba(one.loop, examples), river]
                _race(group, one, examples, theirs)
        wide = Examples(*(leaf.astype(np.float64) for leaf in examples))
        group.duel(
            f"d={width}, OGD hinge, from numpy float64",
            contestant("olx from float64", OGD, HINGE, wide),
            peers.sklearn_sgd("hinge", wide),
            least=targets.FROM_NUMPY_FLOAT64[width],
        )


def _race(group: Group, one: Algorithm, examples: Examples, theirs: list[Contestant]) -> None:
    case, sources = f"d={examples.width}, {one.name}", {NUMPY: np.asarray, DEVICE: jnp.asarray}
    ours = [
        contestant(name, one.learner, one.loss, Examples(*map(where, examples)))
        for name, where in sources.items()
    ]
    seen = group.race(case, [*ours, *theirs])
    for source in sources:
        for peer in theirs:
            own = one.name, examples.width, peer.name.split()[0], source == DEVICE
            label = f"{case}, {source.removeprefix('olx ')}"
            group.compare(label, seen[source], seen[peer.name], least=targets.dense(*own))
    if not seen[LOOP].failure:
        early = examples.first(EARLY)
        agree(group, case, play(one.learner, one.loss, *early)(), one.loop, early)


def play(learner: Any, loss: Callable, rows: Any, labels: Any) -> Callable[[], olx.Run]:
    """The call that is timed: arrays in, losses and scores of all rounds out, on the host."""
    rounds, start = olx.Rounds(rows, labels), jnp.zeros(rows.shape[1])
    return lambda: olx.run(learner, loss, rounds, start, record=olx.record.actions)


def contestant(name: str, learner: Any, loss: Callable, examples: Examples) -> Contestant:
    return Contestant(name, lambda: play(learner, loss, *examples), examples.count)


def sweep(
    name: str, make: Callable, number: Any, rounds: Any, width: int, loss: Callable = HINGE
) -> Contestant:
    """A contestant that plays one learner per number, as one program, and keeps totals."""
    learners, start = olx.batch(lambda number: make(number), number=number), jnp.zeros(width)
    call = lambda: olx.sweep(learners, loss, rounds, start, keep=olx.keep.totals)
    return Contestant(name, lambda: call, len(number) * len(rounds.outcome))


def agree(
    group: Group, case: str, ours: olx.Run, loop: str, early: Examples, module: str = "loops"
) -> None:
    """Check that both did the same work: compare the scores of the first rounds."""
    scores = peers.numba(loop, early, module=module).prepare()()
    apart = float(np.max(np.abs(np.asarray(ours.trace) - scores)))
    unit = "largest difference of scores"
    group.note(case, LOOP, apart, most=targets.AGREEMENT, unit=unit)


def measure_sweeps(group: Group) -> None:
    width, etas = 50, lambda n: np.geomspace(0.01, 1.0, n, dtype=np.float32)
    examples = data.dense(group.size(100_000, 4000), width)
    counts = {n: examples.first(group.size(rounds, 2048)) for n, rounds in SWEPT.items()}
    with tempfile.TemporaryDirectory(dir=group.folder) as folder:
        cache = peers.VowpalCache(folder, examples)
        ours = {
            n: sweep(f"olx, {n}", descent, etas(n), olx.Rounds(*few), width)
            for n, few in counts.items()
        }
        theirs = [
            peers.sklearn_sgd("hinge", examples),
            peers.vowpal(cache, *SGD_HINGE.split()),
            peers.river_logistic("SGD", "Hinge", examples),
            peers.numba("ogd_hinge", examples, etas=(0.1, 0.2, 0.5, 1.0)),
        ]
        seen = group.race("sweeps", [*ours.values(), *theirs])
    for n, one in ours.items():
        for peer in theirs:
            least = targets.SWEEP[n].get(peer.name.split()[0])
            case = f"{n} configurations, d={width}"
            group.compare(case, seen[one.name], seen[peer.name], least=least)


def measure_first_order(group: Group) -> None:
    """Learners that revisit earlier rounds, such as `olx.ascents.window`, are slower by design."""
    for width in (50, 200):
        examples, case = data.dense(group.size(50_000, 2000), width), f"d={width}"
        ours = [contestant(name, one, HINGE, examples) for name, one in FIRST_ORDER.items()]
        seen = group.race(case, ours)
        for name in FIRST_ORDER:
            if name != PA:
                limit = targets.FIRST_ORDER
                group.compare(f"{case}, {name}", seen[name], seen[PA], most=limit)


def measure_dictionaries(group: Group) -> None:
    """Rows as dictionaries, one at a time: `olx.interop.river` against the models of river.

    Both compute the same updates: gradient descent, and AdaGrad (in olx the form of dual
    averaging). A model learns all rows, or predicts each row before it learns it.
    """
    from river import linear_model, optim

    from olx.interop.river import OnlineClassifier

    model = linear_model.LogisticRegression
    pairs = {
        "OGD": (
            lambda: OnlineClassifier(olx.linear(olx.ogd(0.1))),
            lambda: model(optim.SGD(0.1), intercept_lr=0.1),
        ),
        "AdaGrad": (
            lambda: OnlineClassifier(olx.linear(first_order.adagrad(0.1))),
            lambda: model(optim.AdaGrad(0.1)),
        ),
    }
    for width in (10, 50):
        drawn = np.random.default_rng(0).normal(size=(group.size(5000, 300), width))
        rows = [
            ({f"x{i}": float(v) for i, v in enumerate(row)}, bool(row[0] > row[1])) for row in drawn
        ]
        for predicts, way in ((False, "learn"), (True, "predict and learn")):
            for name, makers in pairs.items():
                ours, theirs = (
                    Contestant(who, functools.partial(_by_row, make, rows, predicts), len(rows))
                    for who, make in zip(("olx", targets.RIVER), makers, strict=True)
                )
                case = f"d={width}, {name}, {way}"
                group.duel(case, ours, theirs, least=targets.DICTIONARIES)


def _by_row(make: Callable, rows: list, predicts: bool) -> Callable[[], None]:
    model = make()

    def learn() -> None:
        for x, y in rows:
            model.learn_one(x, y)

    def predict_and_learn() -> None:
        for x, y in rows:
            model.predict_proba_one(x)
            model.learn_one(x, y)

    return predict_and_learn if predicts else learn
