"""Streams, labels, losses, starts, weights and states that no driver may accept."""

import jax
import jax.numpy as jnp
import numpy as np
from bad_inputs import Bad

import olx
from olx import experts, losses, mirrors
from olx.convex import sets

X, Y, ZEROS = np.ones((4, 3)), np.array([1.0, -1.0, 1.0, 1.0]), np.zeros(3)
LINE = olx.linear(olx.ogd(0.1))
KEY = jax.random.key(0)


def changed(array, value, *at):
    """A copy of an array with another value in one place."""
    array = np.array(array, np.result_type(array, type(value)))
    array[at] = value
    return array


def run(rounds=None, learner=LINE, loss=losses.squared, params=ZEROS, **options):
    return olx.run(learner, loss, olx.Rounds(X, Y) if rounds is None else rounds, params, **options)


def roll(rounds=None, learner=LINE, loss=losses.squared, params=ZEROS, **options):
    rounds = olx.Rounds(X, Y) if rounds is None else rounds
    return olx.rollout(learner, loss, rounds, params, **options)


def sweep(rounds=None, loss=losses.squared, params=ZEROS, **options):
    batch = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=np.array([0.1, 0.2]))
    return olx.sweep(batch, loss, olx.Rounds(X, Y) if rounds is None else rounds, params, **options)


DRIVERS = {"run": run, "rollout": roll, "sweep": sweep}


def by_drivers(name, rounds, error, says, **given) -> dict[str, Bad]:
    """The same bad input for every driver, which each refuses in its own name."""
    return {
        f"{driver}: {name}": Bad(
            lambda play=play: play(rounds, **given), error, f"{driver}: {says}"
        )
        for driver, play in DRIVERS.items()
    }


def stacked(eta):
    return jax.vmap(olx.ogd)(jnp.asarray(eta))


STREAMS = {
    **by_drivers("no rounds", olx.Rounds(X[:0], Y[:0]), ValueError, ".*empty"),
    **by_drivers("lengths that differ", olx.Rounds(X, Y[:3]), TypeError, ".*length"),
    **by_drivers("no array", olx.Rounds(None, None), TypeError, "`rounds` holds no array"),
    **by_drivers("lists", olx.Rounds(X.tolist(), Y.tolist()), TypeError, ".*leading axis"),
    **by_drivers("text", olx.Rounds(X.astype(str), Y), TypeError, ".*context holds <U32"),
    **by_drivers("objects", olx.Rounds(X.astype(object), Y), TypeError, ".*holds object"),
    **by_drivers("complex", olx.Rounds(X * 1j, Y), TypeError, ".*holds complex128"),
    **by_drivers(
        "dates", olx.Rounds(X, Y.astype("datetime64[s]")), TypeError, ".*outcome holds datetime64"
    ),
    **by_drivers(
        "a masked context", olx.Rounds(np.ma.masked_less(X, 2), Y), TypeError, ".*context is a mask"
    ),
    **by_drivers(
        "masked outcomes", olx.Rounds(X, np.ma.masked_less(Y, 0)), TypeError, ".*outcome is a mask"
    ),
    **by_drivers(
        "masked weights", olx.Rounds(X, Y, np.ma.masked_less(Y, 0)), TypeError, ".*weight is a mask"
    ),
    **by_drivers(
        "NaN in a row",
        olx.Rounds(changed(X, np.nan, 2, 1), Y),
        ValueError,
        "rounds.context holds nan at row 2, column 1",
    ),
    **by_drivers(
        "infinity in a row",
        olx.Rounds(changed(X, np.inf, 3, 0), Y),
        ValueError,
        "rounds.context holds inf at row 3, column 0",
    ),
    **by_drivers(
        "a NaN outcome",
        olx.Rounds(X, changed(Y, np.nan, 1)),
        ValueError,
        "rounds.outcome holds nan at row 1",
    ),
    **by_drivers(
        "a NaN weight", olx.Rounds(X, Y, np.full(4, np.nan)), ValueError, "rounds.weight .*nan"
    ),
    **by_drivers(
        "a negative weight",
        olx.Rounds(X, Y, changed(np.ones(4), -1.0, 2)),
        ValueError,
        "rounds.weight must be non-negative, got -1.0 at row 2",
    ),
    **by_drivers(
        "weights in a column",
        olx.Rounds(X, Y, np.ones((4, 1))),
        TypeError,
        r"rounds.weight has shape \(4, 1\); give one number per round",
    ),
    **by_drivers("one weight", olx.Rounds(X, Y, 2.0), TypeError, "rounds.weight is a scalar"),
    **by_drivers(
        "an infinite weight",
        olx.Rounds(X, Y, np.full(4, np.inf)),
        ValueError,
        "rounds.weight .*inf",
    ),
    "a number in place of rounds": Bad(
        lambda: run(7), TypeError, "run: `rounds` must be a Rounds, got int"
    ),
    "a number in place of rounds, swept": Bad(
        lambda: sweep(7), TypeError, "sweep: `rounds` must be a Rounds"
    ),
    "an empty iterable": Bad(lambda: run([]), ValueError, "run: the stream is empty"),
    "chunks of two widths": Bad(
        lambda: run([olx.Rounds(X, Y), olx.Rounds(X[:, :2], Y)]), TypeError, "run: .*round 4"
    ),
    "chunks of two kinds": Bad(
        lambda: run([olx.Rounds(X, Y), olx.Rounds(None, Y)]), TypeError, "run: .*structure"
    ),
    "NaN in the second chunk": Bad(
        lambda: run([olx.Rounds(X, Y), olx.Rounds(changed(X, np.nan, 1, 2), Y)]),
        ValueError,
        "run: rounds.context holds nan at row 5, column 2",
    ),
    "negative prices": Bad(
        lambda: olx.run(olx.hedge(0.1), losses.log_loss, olx.Rounds(None, -X), np.full(3, 1 / 3)),
        ValueError,
        "run: log_loss: price relatives must be non-negative, got -1.0",
    ),
    "no outcome": Bad(lambda: roll(olx.Rounds(X, None)), TypeError, "rounds.outcome is None"),
    "no context": Bad(
        lambda: roll(olx.Rounds(None, Y)), TypeError, "rollout: rounds.context is None, and this"
    ),
    "rows of another width": Bad(
        lambda: roll(olx.Rounds(X[:, :2], Y)),
        TypeError,
        r"a row of rounds.context has shape \(2,\)",
    ),
    "a dictionary of rows": Bad(
        lambda: roll(olx.Rounds({"a": X}, Y)), TypeError, "rollout: .*one structure"
    ),
}

CLASSIFIERS = {
    "perceptron": olx.classification.perceptron(),
    "passive_aggressive": olx.classification.passive_aggressive(),
    "passive_aggressive_1": olx.classification.passive_aggressive_1(1.0),
    "passive_aggressive_2": olx.classification.passive_aggressive_2(1.0),
    "romma": olx.classification.romma(),
    "aggressive_romma": olx.classification.aggressive_romma(),
    "alma": olx.classification.alma(0.5),
    "pnorm_perceptron": olx.classification.pnorm_perceptron(3.0),
    "aggressive_perceptron": olx.classification.aggressive_perceptron(mirrors.euclidean()),
    "self_tuned_winnow": olx.classification.self_tuned_winnow(),
    "self_tuned_aggressive": olx.classification.self_tuned_aggressive(mirrors.euclidean(), 1.0),
    "implicit": olx.implicit(0.1, losses.hinge),
    "dual_ascent": olx.dual_ascent(
        1.0, mirrors.euclidean(), losses.logistic, olx.ascents.subgradient()
    ),
    "averaged": olx.meta.saol(olx.classification.perceptron(), 2),
    "a mixture": olx.meta.mix(
        olx.batch(olx.classification.passive_aggressive_1, aggressiveness=np.array([0.1, 1.0])),
        olx.hedge(0.1),
    ),
}
SIGN_LOSSES = {
    "hinge": losses.hinge,
    "margin_hinge": losses.margin_hinge(2.0),
    "squared_hinge": losses.squared_hinge,
    "modified_huber": losses.modified_huber,
    "logistic": losses.logistic,
    "exponential": losses.exponential,
    "zero_one": losses.zero_one,
}
LABELS = {
    "0 and 1": (np.array([0.0, 1.0, 1.0, 0.0]), "0.0 in rounds.outcome at row 0; map labels"),
    "1 and 2": (np.array([1, 1, 2, 1]), "2 in rounds.outcome at row 2"),
    "0.3": (np.array([1.0, -1.0, 0.3, 1.0]), "0.3 in rounds.outcome at row 2"),
    "truth values": (np.array([True, True, True, True]), "True in rounds.outcome at row 0"),
}
SIGNS = {
    **{
        f"{name} on labels {word}": Bad(
            lambda learner=learner, y=y: run(olx.Rounds(X, y), learner),
            ValueError,
            f"run: .*labels must be -1 or .1, got {says}",
        )
        for name, learner in CLASSIFIERS.items()
        for word, (y, says) in LABELS.items()
    },
    **{
        f"{name} of labels {word}, by {driver}": Bad(
            lambda play=play, loss=loss, y=y: play(olx.Rounds(X, y), loss=loss),
            ValueError,
            f"{driver}: .*labels must be -1 or .1, got {says}",
        )
        for name, loss in SIGN_LOSSES.items()
        for word, (y, says) in LABELS.items()
        for driver, play in (DRIVERS if name == "hinge" else {"rollout": roll}).items()
    },
}

HALF = np.full((3, 2), 0.5)
ADVISED = {
    "ada_normal_hedge": experts.ada_normal_hedge(),
    "adahedge": experts.adahedge(),
    "adapt_ml_prod": experts.adapt_ml_prod(),
    "anytime_hedge": experts.anytime_hedge(0.5),
    "boa": experts.boa(),
    "fixed_share": experts.fixed_share(0.5, 0.1),
    "normal_hedge": experts.normal_hedge(),
    "normal_hedge_dt": experts.normal_hedge_dt(),
    "prod": experts.prod(0.5),
    "squint": experts.squint(),
    "two_norm": experts.two_norm(),
    "ada_normal_hedge_tv": experts.ada_normal_hedge_tv(3),
    "ada_normal_hedge_streaming": experts.ada_normal_hedge_streaming(3),
    "potential_experts": experts.potential_experts(lambda t, s: jnp.exp(-s)),
}


def advise(learner, outcome=HALF, context=None, weight=None, params=None):
    params = np.full(2, 0.5) if params is None else params
    return olx.run(learner, losses.linear_loss, olx.Rounds(context, outcome, weight), params)


EXPERTS = {
    **{
        f"{name} with a loss of {value}": Bad(
            lambda learner=learner, value=value: advise(learner, changed(HALF, value, 1, 0)),
            ValueError,
            f"run: {name}: losses .* got {value} in rounds.outcome at row 1, column 0",
        )
        for name, learner in ADVISED.items()
        for value in (1.1, -0.1, np.nan, np.inf)
    },
    **{
        f"{name} with a confidence of {value}": Bad(
            lambda learner=learner, value=value: advise(
                learner, context=changed(HALF, value, 2, 1)
            ),
            ValueError,
            f"run: {name}: confidences .* got {value} in rounds.context at row 2, column 1",
        )
        for name, learner in ADVISED.items()
        for value in (2.0, -0.5, np.nan)
    },
    **{
        f"{name} from {word}": Bad(
            lambda learner=learner, params=params: advise(learner, params=params),
            ValueError,
            f"run: {name}: `params` is the prior",
        )
        for name, learner in list(ADVISED.items())[:4]
        for word, params in {
            "zeros": np.zeros(2),
            "a negative prior": np.array([2.0, -1.0]),
        }.items()
    },
    **{
        f"hedge from {params}": Bad(
            lambda params=params: advise(olx.hedge(0.5), params=np.array(params)),
            ValueError,
            "run: hedge: `params` is the prior: its weights must be positive.*give jnp.ones",
        )
        for params in ([0.0, 0.0], [1.0, 0.0], [1.5, -0.5])
    },
    "exp3 from zeros": Bad(
        lambda: advise(experts.exp3(0.5, KEY), params=np.zeros(2)), ValueError, "is the prior"
    ),
    "gibbs from zeros": Bad(
        lambda: advise(experts.gibbs(0.5, jnp.zeros((2, 2)), KEY), params=np.zeros(2)),
        ValueError,
        "run: gibbs: `params` is the prior",
    ),
    "a bandit with an infinite loss": Bad(
        lambda: advise(experts.exp3(0.5, KEY), changed(HALF, np.inf, 0, 1)),
        ValueError,
        "run: bandit: losses must be finite, or NaN where unknown, got inf",
    ),
    "losses beyond a range told": Bad(
        lambda: advise(experts.boa(low=-1.0, high=2.0), changed(HALF, 2.5, 1, 1)),
        ValueError,
        "run: boa: losses .* got 2.5",
    ),
    "prod with a heavy round": Bad(
        lambda: advise(experts.prod(0.5), weight=np.array([1.0, 7.0, 1.0])),
        ValueError,
        "run: prod: `eta` times the weight .* got 7.0 in rounds.weight at row 1",
    ),
    "adapt_ml_prod with a heavy round": Bad(
        lambda: advise(experts.adapt_ml_prod(), weight=np.array([1.0, 7.0, 1.0])),
        ValueError,
        "run: adapt_ml_prod: the weight .* got 7.0 in rounds.weight at row 1",
    ),
    "sampled with a loss of 1.1": Bad(
        lambda: advise(experts.sampled(experts.boa(), KEY), changed(HALF, 1.1, 1, 0)),
        ValueError,
        "run: boa: losses",
    ),
    "a path through an edge that is not there": Bad(
        lambda: olx.run(
            experts.best_pruning(experts.ada_normal_hedge()),
            losses.squared,
            olx.Rounds(experts.Path(np.array([[0, 9]]), np.ones((1, 2))), np.ones(1)),
            np.ones(4),
        ),
        ValueError,
        "run: best_pruning: a path .* got 9 in rounds.context.edges at row 0, column 1",
    ),
}

STARTS = {
    "entropy from zeros": (olx.omd(0.5, mirrors.negative_entropy()), np.zeros(2)),
    "entropy from ones": (olx.omd(0.5, mirrors.negative_entropy()), np.ones(2)),
    "entropy from a vertex": (olx.omd(0.5, mirrors.negative_entropy()), np.array([1.0, 0.0])),
    "entropy from a negative weight": (
        olx.omd(0.5, mirrors.negative_entropy()),
        np.array([1.5, -0.5]),
    ),
    "EG from zeros": (olx.first_order.exponentiated_gradient(0.1), np.zeros(2)),
    "EG of another total": (olx.first_order.exponentiated_gradient(0.1, 2.0), np.full(2, 0.5)),
    "EG+- outside": (olx.first_order.signed_exponentiated_gradient(0.1), np.ones(2)),
    "a ball": (olx.ogd(0.1, sets.ball(1.0)), np.ones(2)),
    "a box": (olx.ogd(0.1, sets.box(0.0, 1.0)), np.full(2, 1.5)),
    "a simplex": (olx.ogd(0.1, sets.simplex()), np.zeros(2)),
    "an l1 ball": (olx.omd(0.1, mirrors.euclidean(sets.l1_ball(1.0))), np.ones(2)),
    "the orthant": (olx.omd(0.1, mirrors.unnormalized_entropy()), np.array([1.0, -1.0])),
    "the border of the orthant": (olx.omd(0.1, mirrors.unnormalized_entropy()), np.zeros(2)),
    "a cube": (olx.omd(0.1, mirrors.binary_entropy()), np.array([0.5, 2.0])),
    "the border of a cube": (olx.omd(0.1, mirrors.binary_entropy()), np.array([0.5, 1.0])),
    "a barrier": (olx.omd(0.1, mirrors.log_barrier()), np.array([0.0, 1.0])),
    "Tsallis": (olx.omd(0.1, mirrors.tsallis()), np.zeros(2)),
    "a floor": (olx.omd(0.1, mirrors.floored_entropy(0.2)), np.array([0.95, 0.05])),
    "optimistic_md": (olx.optimistic_md(0.1, mirrors.negative_entropy()), np.zeros(2)),
    "strongly_convex_ogd": (
        olx.first_order.strongly_convex_ogd(1.0, sets.ball(1.0)),
        np.ones(2),
    ),
    "strongly_convex_md": (
        olx.first_order.strongly_convex_md(1.0, mirrors.euclidean(sets.ball(1.0))),
        np.ones(2),
    ),
    "average": (olx.meta.average(olx.hedge(0.5)), np.zeros(2)),
    "a mixture": (olx.meta.mix(olx.batch(olx.hedge, eta=np.ones(2)), olx.hedge(0.1)), np.zeros(2)),
}


def start(learner, params):
    return olx.rollout(learner, losses.linear_loss, olx.Rounds(None, HALF), params)


KEPT = olx.Rounds(X, Y)
GAME = {
    **{
        f"a start outside: {name}": Bad(
            lambda learner=learner, params=params: start(learner, params),
            ValueError,
            "rollout: .*`params` (must lie in the domain of the mirror map|is the prior)",
        )
        for name, (learner, params) in STARTS.items()
    },
    **by_drivers("params of NaN", None, ValueError, "`params` holds nan", params=ZEROS * np.nan),
    **by_drivers(
        "params of infinity", None, ValueError, "`params` holds inf", params=ZEROS + np.inf
    ),
    **by_drivers("whole params", None, TypeError, "`params` holds int", params=np.zeros(3, int)),
    **by_drivers("no params", None, TypeError, "`params` holds no array", params=None),
    **by_drivers("params of text", None, TypeError, "`params` holds <U5", params="zeros"),
    **by_drivers(
        "masked params", None, TypeError, "`params` is a mask", params=np.ma.masked_less(ZEROS, 1)
    ),
    **by_drivers("a loss by name", None, TypeError, "`loss` must be a function", loss="squared"),
    **by_drivers("no loss", None, TypeError, "`loss` must be a function", loss=None),
    **by_drivers(
        "a loss of one argument", None, TypeError, "`loss` must take", loss=lambda score: score
    ),
    "params of another shape": Bad(
        lambda: roll(params=np.zeros(2)), TypeError, "rollout: a row of rounds.context has shape"
    ),
    "a loss of whole numbers": Bad(
        lambda: roll(loss=lambda s, y: 3), TypeError, "the loss has type int.*real scalar"
    ),
    "a loss of nothing": Bad(
        lambda: roll(loss=lambda s, y: None), TypeError, "the loss gives None"
    ),
    "a stack of learners in a run": Bad(
        lambda: run(learner=olx.linear(stacked(np.ones(3)))), TypeError, "run: .*stack of learners"
    ),
    "a learner and a start for each": Bad(
        lambda: olx.ogd(np.ones(3)), TypeError, "ogd: `eta` must be one number"
    ),
    "the state of another learner": Bad(
        lambda: run(
            learner=olx.classification.perceptron(), loss=losses.zero_one, state=LINE.init(ZEROS)
        ),
        TypeError,
        "run: `state` must be a DualAscentState, .*got MDState",
    ),
    "the state of another width": Bad(
        lambda: roll(state=LINE.init(np.zeros(2))), TypeError, "rollout: `state`.* has shape"
    ),
    "a number for a state": Bad(lambda: roll(state=3.0), TypeError, "rollout: `state`"),
    "a number for record": Bad(lambda: run(record=3), TypeError, "run: `record` must be a func"),
    "a record of one argument": Bad(
        lambda: roll(record=lambda state: state), TypeError, "rollout: `record` must take"
    ),
    "a number for measure": Bad(
        lambda: run(measure=1, keep=olx.keep.totals), TypeError, "run: `measure` must be a function"
    ),
    **{
        f"keep gives {word}": Bad(
            lambda value=value: run(keep=lambda start, stop: value), error, "keep: a rule"
        )
        for word, (value, error) in {
            "a round past the end": ([5], ValueError),
            "round 0": ([0], ValueError),
            "a negative round": ([-1], ValueError),
            "half a round": ([1.5], TypeError),
            "nothing": (None, TypeError),
            "text": (["1"], TypeError),
            "a matrix": ([[1]], TypeError),
            "one number": (3, TypeError),
        }.items()
    },
}
BAD = {**STREAMS, **SIGNS, **EXPERTS, **GAME}
