"""What people give on their first day; each refusal names the function and says what to do.

Most are refused before anything is traced. The others share one small game.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow
from bad_inputs import Bad
from scipy.sparse import csr_array

import olx
from olx import losses, mirrors, regularizers, schedules
from olx._pytree import NOT_KEPT
from olx.convex import sets

X = np.random.default_rng(0).normal(size=(4, 3))
Y = np.sign(X[:, 0])
ROUNDS, ZEROS, WORDS = olx.Rounds(X, Y), jnp.zeros(3), np.array(["yes", "no", "yes", "no"])
POINT, LINE = olx.ogd(0.1), olx.linear(olx.ogd(0.1))
PAIR = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=np.array([0.1, 0.2]))
STATE, OTHER = LINE.init(ZEROS), olx.classification.perceptron().init(ZEROS)
TABLE, MATRIX = pyarrow.table({"a": X[:, 0], "y": Y}), csr_array(X)
RUN = olx.Run(STATE, Y)
DRIVERS = {
    "run": (olx.run, LINE, ()),
    "rollout": (olx.rollout, LINE, ()),
    "sweep": (olx.sweep, PAIR, ()),
    "certify": (olx.certify, LINE, (ZEROS,)),
}


def given(owner, learner=None, loss=losses.squared, rounds=ROUNDS, params=ZEROS, **options):
    driver, usual, more = DRIVERS[owner]
    return driver(usual if learner is None else learner, loss, rounds, params, *more, **options)


def by_drivers(name, says, remedy, owners=tuple(DRIVERS), error=TypeError, **changes):
    """The same bad argument for several drivers, which each refuse in their own name."""
    return {
        f"{owner}: {name}": Bad(
            lambda owner=owner: given(owner, **changes), error, f"^{owner}: {says}", remedy
        )
        for owner in owners
    }


def refused(call, says, remedy, error=TypeError):
    return Bad(call, error, f"^{says}", remedy)


ARRAYS, FRAME = r"`olx.Rounds\(contexts, outcomes\)`", r"`olx.streams.from_frame\(frame, target="
NO_ROUNDS, NO_LOSS = "`rounds` must be a Rounds, got ", "`loss` must"
PLAYED = ("run", "rollout", "certify")
STREAM = olx.streams.Stream(ROUNDS, ZEROS)
DATA = {
    **by_drivers("a table", NO_ROUNDS + "Table", FRAME, rounds=TABLE),
    **by_drivers("a sparse matrix", NO_ROUNDS + "csr_array", "sparse_rows", rounds=MATRIX),
    **by_drivers("a pair of arrays", NO_ROUNDS + "tuple", ARRAYS, rounds=(X, Y)),
    **by_drivers("a matrix", NO_ROUNDS + "ndarray", ARRAYS, rounds=X),
    **by_drivers("a dictionary", NO_ROUNDS + "dict", ARRAYS, rounds={"x": X, "y": Y}),
    **by_drivers("a path", NO_ROUNDS + "str", "read the file first", rounds="data.csv"),
    **by_drivers("nothing", NO_ROUNDS + "NoneType", ARRAYS, rounds=None),
    **by_drivers("a stream and its truth", NO_ROUNDS + "Stream", "rounds, truth =", rounds=STREAM),
    **by_drivers("a loss for rounds", NO_ROUNDS + "ScoreLoss", "order is", rounds=losses.squared),
    **by_drivers("pairs", NO_ROUNDS, "Rounds.*outcomes", rounds=list(zip(X, Y, strict=True))),
    **by_drivers(
        "a table of rows", "rounds.context is a Table", FRAME, rounds=olx.Rounds(TABLE, Y)
    ),
    **by_drivers(
        "a sparse context", "rounds.context is a SciPy", "sparse_rows", rounds=olx.Rounds(MATRIX, Y)
    ),
    **by_drivers(
        "lists of rows", "rounds.context is a list", "np.array", rounds=olx.Rounds(X.tolist(), Y)
    ),
    **by_drivers(
        "a list of outcomes", "rounds.outcome is a list", "array", rounds=olx.Rounds(X, Y.tolist())
    ),
    **by_drivers(
        "labels in words", "rounds.outcome holds <U3", "np.where", rounds=olx.Rounds(X, WORDS)
    ),
    **by_drivers(
        "labels of objects",
        "rounds.outcome holds object",
        "np.unique",
        rounds=olx.Rounds(X, WORDS.astype(object)),
    ),
    **by_drivers(
        "too few outcomes", "leaves of .* differ", "one row per round", rounds=olx.Rounds(X, Y[:2])
    ),
    **by_drivers(
        "labels of 0 and 1",
        "hinge: labels must be",
        "2 . y - 1",
        error=ValueError,
        loss=losses.hinge,
        rounds=olx.Rounds(X, (Y > 0) * 1.0),
    ),
    **by_drivers(
        "labels that are true or false",
        "hinge: labels must be",
        "2 . y - 1",
        error=ValueError,
        loss=losses.hinge,
        rounds=olx.Rounds(X, Y > 0),
    ),
}
GAME = {
    **by_drivers("rounds for a loss", NO_LOSS, "loss comes before", PLAYED, loss=ROUNDS),
    **by_drivers("the name of a loss", NO_LOSS, "olx.losses", PLAYED, loss="squared"),
    **by_drivers("no loss", NO_LOSS, "olx.losses.squared", PLAYED, loss=None),
    **by_drivers("a loss not called", NO_LOSS, "call it", PLAYED, loss=losses.margin_hinge),
    **by_drivers(
        "a learner for a loss", "`loss` is a Learner", "learner comes first", PLAYED, loss=LINE
    ),
    **by_drivers("a list as a start", "`params` is a list", "zeros", params=[0.0, 0.0, 0.0]),
    **by_drivers("a shape as a start", "`params` is a tuple", "zeros", params=(3,)),
    **by_drivers("a start of integers", "`params` holds int", "floats", params=np.zeros(3, int)),
    **by_drivers("a learner not called", "`learner` must", "call it", PLAYED, learner=olx.ogd),
    **by_drivers("an optimizer", "`learner` must", "from_optax", PLAYED, learner=optax.sgd(1.0)),
    **by_drivers("a batch", "`learner` is a batch", "olx.sweep", PLAYED[:2], learner=PAIR),
    **by_drivers("a list of learners", "`learners` must", "batch", ("sweep",), learner=[LINE]),
    **by_drivers("a function", "`learners` must", "batch", ("sweep",), learner=lambda eta: LINE),
    **by_drivers("one learner", ".* no leading axis", "batch", ("sweep",), learner=LINE),
    **by_drivers("a run as a state", "`state` is a Run", "run.state", PLAYED[:2], state=RUN),
    **by_drivers("weights as a state", "`state` must", "run.state", PLAYED[:2], state=ZEROS),
    **by_drivers("another state", "`state` must .*got Dual", "init", PLAYED[:2], state=OTHER),
    **by_drivers("a number to keep", "`keep` must", r"every\(10\)", ("run", "sweep"), keep=10),
    **by_drivers("a word to keep", "`keep` must", "olx.keep.every", ("run", "sweep"), keep="all"),
    **by_drivers("a rule not called", "`keep` must", "every", ("run",), keep=olx.keep.every),
}
ROLL, SCORE = ("rollout",), "the learner plays its decision"
TRACED = {
    **by_drivers("forgot linear", SCORE, r"`olx.linear\(learner\)`", PLAYED, learner=POINT),
    **by_drivers(
        "forgot linear",
        SCORE,
        r"`olx.linear\(learner\)`",
        ("sweep",),
        learner=olx.batch(olx.ogd, eta=np.array([0.1, 0.2])),
    ),
    **by_drivers(
        "forgot apply",
        SCORE,
        r"olx.model\(learner, apply",
        ROLL,
        learner=POINT,
        params={"w": ZEROS, "b": jnp.zeros(())},
    ),
    **by_drivers(
        "forgot apply in linear",
        "a row of rounds.context is",
        r"olx.model\(learner, apply",
        ROLL,
        params={"w": ZEROS},
    ),
    **by_drivers(
        "linear twice", "`olx.linear` needs", "without `olx.linear`", ROLL, learner=olx.linear(LINE)
    ),
    **by_drivers("a wide start", "a row of", r"zeros\(3\)", ROLL, params=jnp.zeros(4)),
    **by_drivers("a start in a row", "`params`", r"zeros\(3\)", ROLL, params=jnp.zeros((1, 3))),
    **by_drivers("a state as a start", "`params` is a MDState", "as `state`", ROLL, params=STATE),
    **by_drivers("no rows", "rounds.context is None", "Rounds", ROLL, rounds=olx.Rounds(None, Y)),
    **by_drivers(
        "outcomes in a column",
        "rounds.outcome has shape",
        r"outcome\[..., 0\]",
        ROLL,
        rounds=olx.Rounds(X, Y[:, None]),
    ),
    **by_drivers("rows and outcomes swapped", ".*swapped", "Rounds", ROLL, rounds=olx.Rounds(Y, X)),
    **by_drivers(
        "a loss of NumPy", "`loss` cannot", "jax.numpy", ROLL, loss=lambda s, y: np.square(s - y)
    ),
    **by_drivers(
        "a loss with max", "`loss` cannot", "jnp.maximum", ROLL, loss=lambda s, y: max(0.0, s - y)
    ),
    **by_drivers(
        "a loss of a vector", "the loss has", "a sum", ROLL, loss=lambda s, y: jnp.stack([s, y])
    ),
}
USED = "run.losses: .*not kept"
RUNS = {
    "losses summed after thinning": Bad(
        lambda: NOT_KEPT.sum(), AttributeError, USED, "`run.total`"
    ),
    "losses added up after thinning": refused(lambda: np.cumsum(NOT_KEPT), USED, "run.curve.total"),
    "the last loss after thinning": refused(lambda: NOT_KEPT[-1], USED, "Play without `keep`"),
    "losses in JAX after thinning": refused(lambda: jnp.sum(NOT_KEPT), USED, "run.curve"),
    "regret without a model": refused(
        lambda: olx.regret(RUN, losses.squared, ROUNDS, ZEROS), "regret: .*itself", "olx.dot"
    ),
    "regret to a wide comparator": refused(
        lambda: olx.regret(RUN, losses.squared, ROUNDS, jnp.zeros(4), olx.dot),
        "regret: `u`",
        "shape",
    ),
    "regret of a thinned run": refused(
        lambda: olx.regret(olx.Run(STATE, NOT_KEPT), losses.squared, ROUNDS, ZEROS, olx.dot),
        "regret: the run kept no losses",
        "without `keep`",
    ),
    "a certificate of a plain run": refused(
        lambda: olx.certify(LINE, RUN, ZEROS), "certify: the run kept no trace", "olx.record.trace"
    ),
    "a certificate to a wide comparator": refused(
        lambda: olx.certify(LINE, losses.squared, ROUNDS, ZEROS, jnp.zeros(4)),
        r"certify: `u` has shape \(4,\)",
        r"jnp.zeros\(\(3,\)\)",
    ),
    "a certificate without a comparator": refused(
        lambda: olx.certify(LINE, losses.squared, ROUNDS, ZEROS), "certify: takes", "`u` is the"
    ),
    "a certificate of a run and a learner": refused(
        lambda: olx.certify(RUN, LINE, ZEROS), "certify: `learner`", "before the run"
    ),
    "a certificate by name": refused(
        lambda: olx.certify(LINE, RUN, ZEROS, theorems=("mirror_descent",)),
        "certify: `theorems`",
        "learner.theorems",
    ),
}
STEP = lambda *given: lambda: olx.step(LINE, *given)
PREDICT = lambda *given: lambda: olx.predict(LINE, *given)
DECIDE = lambda *given: lambda: olx.decision(LINE, *given)
NO_STATE, ROW = "`state` must be a MDState", "a row has shape"
USE = {
    "predict without a state": refused(PREDICT(None, X), "predict: `state` is None", "init"),
    "predict from weights": refused(PREDICT(ZEROS, X), f"predict: {NO_STATE}", "run.state"),
    "predict from a run": refused(PREDICT(RUN, X), "predict: `state` is a Run", "run.state"),
    "predict from another state": refused(PREDICT(OTHER, X), f"predict: {NO_STATE}", "run.state"),
    "predict rounds": refused(PREDICT(STATE, ROUNDS), "predict: `contexts`", "rounds.context"),
    "predict lists": refused(PREDICT(STATE, X.tolist()), "predict: `contexts`", "np.array"),
    "predict a table": refused(PREDICT(STATE, TABLE), "predict: contexts is a Table", "to_numpy"),
    "predict one row": refused(PREDICT(STATE, X[0]), f"predict: {ROW}", "row.None."),
    "predict fewer columns": refused(PREDICT(STATE, X[:, :2]), f"predict: {ROW}", "same columns"),
    "predict by a factory": refused(lambda: olx.predict(olx.ogd, STATE, X), "predict: ", "call it"),
    "predict by a batch": refused(lambda: olx.predict(PAIR, STATE, X), "predict: ", "batch.0."),
    "decision without a state": refused(DECIDE(None, X[0]), "decision: `state` is None", "init"),
    "decision of a run": refused(DECIDE(RUN, X[0]), "decision: `state` is a Run", "run.state"),
    "decision of weights": refused(DECIDE(ZEROS, X[0]), f"decision: {NO_STATE}", "run.state"),
    "decision without a row": refused(DECIDE(STATE), "decision: this learner acts", "one row"),
    "decision of many rows": refused(DECIDE(STATE, X), f"decision: {ROW}", "same columns"),
    "decision of a batch": refused(lambda: olx.decision(PAIR, STATE), "decision: ", "batch.0."),
    "step without a state": refused(
        STEP(losses.squared, None, X[0], 1.0), "step: `state` is None", "init"
    ),
    "step from weights": refused(
        STEP(losses.squared, ZEROS, X[0], 1.0), f"step: {NO_STATE}", "run.state"
    ),
    "step on a list": refused(
        STEP(losses.squared, STATE, [1.0, 2.0, 3.0], 1.0), "step: a row is a list", "np.array"
    ),
    "step on many rows": refused(STEP(losses.squared, STATE, X, Y), f"step: {ROW}", "same columns"),
    "step on a sparse row": refused(
        STEP(losses.squared, STATE, MATRIX[[0]], 1.0), "step: context is a SciPy", "toarray"
    ),
    "step with a label of 0": refused(
        STEP(losses.hinge, STATE, X[0], 0), "step: hinge: .*got 0 in outcome", "2 . y", ValueError
    ),
    "step with a word": refused(
        STEP(losses.hinge, STATE, X[0], "yes"), "step: outcome holds <U3", "np.where"
    ),
    "step with loss and state swapped": refused(
        STEP(STATE, losses.squared, X[0], 1.0), "step: `loss` must", "olx.losses"
    ),
    "step of a point learner": refused(
        lambda: olx.step(POINT, losses.squared, STATE, X[0], 1.0), f"step: {SCORE}", "olx.linear"
    ),
    "step of a batch": refused(
        lambda: olx.step(PAIR, losses.squared, STATE, X[0], 1.0), "step: ", "olx.sweep"
    ),
    "load what is not there": refused(
        lambda: olx.load("no/such.olx"), "load: there is no file", "olx.save", FileNotFoundError
    ),
    "load a folder": refused(
        lambda: olx.load("."), "load: . is a folder", "olx.save", IsADirectoryError
    ),
    "load a number": refused(lambda: olx.load(3), "load: `path` must", "path of a file"),
    "save a run": refused(lambda: olx.save("x.olx", LINE, RUN), "save: `state` is a Run", "state"),
    "save without a path": refused(
        lambda: olx.save(LINE, "x.olx", STATE), "save: `path` must", "comes first"
    ),
    "save a batch": refused(lambda: olx.save("x.olx", PAIR, STATE), "save: `learner`", "batch.0."),
    "save in no folder": refused(
        lambda: olx.save("no/x.olx", LINE, STATE), "save: there is no", "make it", FileNotFoundError
    ),
}
RATES = {
    "an array": (np.array([0.1, 0.2]), "olx.batch"),
    "a list": ([0.1, 0.2], "olx.batch"),
    "a word": ("0.1", "without quotes"),
    "nothing": (None, "give a number"),
    "a function of time": (lambda t: 1 / t, "olx.schedules"),
    "a schedule not called": (schedules.decay, "call it"),
}
MAKERS = {
    "ogd": olx.ogd,
    "hedge": olx.hedge,
    "omd": lambda eta: olx.omd(eta, mirrors.euclidean()),
    "md": lambda eta: olx.md(eta, mirrors.euclidean()),
    "ftrl": lambda eta: olx.ftrl(eta, regularizers.adagrad()),
}
KEYED = {
    "exp3": lambda key: olx.experts.exp3(0.5, key),
    "sampled": lambda key: olx.experts.sampled(olx.hedge(0.1), key),
    "banditron": lambda key: olx.multiclass.banditron(0.1, key),
    "linear_regression": lambda key: olx.streams.linear_regression(key, 5, 2),
    "expert_losses": lambda key: olx.streams.expert_losses(key, 5, 2),
}
PARTS = {
    **{
        f"{name} with {word} as a step size": refused(
            lambda make=make, value=value: make(value), f"{name}: `eta` must be", remedy
        )
        for name, make in MAKERS.items()
        for word, (value, remedy) in RATES.items()
    },
    **{
        f"{name} with a number as a key": refused(
            lambda make=make: make(0), f"{name}: `key` must be", r"jax.random.key\(0\)"
        )
        for name, make in KEYED.items()
    },
    "a schedule for hedge": refused(
        lambda: olx.hedge(schedules.decay(0.5)), "hedge: `eta` must", "olx.md"
    ),
    "a regularizer for a schedule": refused(
        lambda: olx.ogd(regularizers.adagrad()), "ogd: `eta` must give", "olx.schedules"
    ),
    "a regularizer for a mirror": refused(
        lambda: olx.omd(0.1, regularizers.adagrad()), "omd: `mirror` must", "olx.ftrl"
    ),
    "a mirror not called": refused(
        lambda: olx.omd(0.1, mirrors.euclidean), "omd: `mirror` must", "call it"
    ),
    "a set for a mirror": refused(
        lambda: olx.omd(0.1, sets.simplex()), "omd: `mirror` must", "euclidean.domain."
    ),
    "the name of a mirror": refused(
        lambda: olx.omd(0.1, "euclidean"), "omd: `mirror` must", "olx.mirrors"
    ),
    "a mirror for a step size": refused(
        lambda: olx.omd(mirrors.euclidean(), 0.1), "omd: `eta` must", "comes first"
    ),
    "a radius for a set": refused(lambda: olx.ogd(0.1, 1.0), "ogd: `domain` must", "sets.ball"),
    "a mirror for a set": refused(
        lambda: olx.ogd(0.1, mirrors.euclidean()), "ogd: `domain` must", "olx.md"
    ),
    "a number for a regularizer": refused(
        lambda: olx.ftrl(0.1, 1.0), "ftrl: `regularizer` must", "adagrad"
    ),
    "a schedule for a regularizer": refused(
        lambda: olx.ftrl(0.1, schedules.decay(0.5)), "ftrl: `regularizer`", "olx.regularizers"
    ),
    "linear of a factory": refused(lambda: olx.linear(olx.ogd), "linear: `inner` must", "call it"),
    "linear of a batch": refused(lambda: olx.linear(PAIR), "linear: `inner` must", "olx.batch"),
    "linear of a number": refused(lambda: olx.linear(0.1), "linear: `inner` must", "olx.ogd"),
    "model without a function": refused(
        lambda: olx.model(POINT, None), "model: `apply` must", "give a function"
    ),
    "a grid over a number": refused(lambda: olx.grid(eta=0.1), "grid: axis", "an array of values"),
    "a sweep over nothing": refused(
        lambda: olx.batch(olx.ogd, eta=[]), "batch: axis", "at least one value", ValueError
    ),
    "a batch of half a factory": refused(
        lambda: olx.batch(olx.omd, eta=[0.1]), "batch: `make` cannot", "lambda eta"
    ),
    "a batch over a size": refused(
        lambda: olx.batch(lambda k: olx.experts.ada_normal_hedge_tv(k), k=jnp.array([2, 3])),
        "ada_normal_hedge_tv: `rounds` must",
        "one batch per value",
    ),
    "a learner past the end of a batch": refused(
        lambda: PAIR[7], r"batch\[7\]", "holds 2 learners, from 0", IndexError
    ),
    "an axis of a batch by its name": refused(lambda: PAIR["eta"], "batch.i.", "batch.axes"),
    "rounds before the loss": refused(
        lambda: olx.best_in_hindsight(ROUNDS, losses.squared, ZEROS), "best_in", "before the rounds"
    ),
    "no adversary": refused(
        lambda: olx.play(LINE, ROUNDS, ZEROS, 5), "play: `adversary` must", "olx.streams"
    ),
    "a split key": refused(
        lambda: olx.experts.exp3(0.5, jax.random.split), "exp3: `key`", "random.key"
    ),
}
BAD = {**DATA, **GAME, **TRACED, **RUNS, **USE, **PARTS}
