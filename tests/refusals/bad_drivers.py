"""Arguments that no driver may accept."""

import jax
import jax.numpy as jnp
import numpy as np
from bad_inputs import Bad
from scipy.sparse import csr_array

import olx
from olx import losses, regularizers

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X[:, 0]
ROUNDS = olx.Rounds(X, Y)
SPARSE = olx.Rounds(olx.streams.sparse_rows(csr_array(X)), Y)
LEARNER = olx.linear(olx.ogd(0.1))
make = lambda eta: olx.linear(olx.ogd(eta))
PAIR = olx.batch(make, eta=np.array([0.1, 0.2]))
MANY = olx.batch(make, eta=np.geomspace(0.01, 0.1, 64))


def given(driver, learner, **changes):
    usual = {"learner": learner, "loss": losses.squared, "rounds": ROUNDS, "params": np.zeros(3)}
    options = {**usual, **changes}
    return driver(*[options.pop(name) for name in usual], **options)


def run(says, error=TypeError, **changes):
    return Bad(lambda: given(olx.run, **{"learner": LEARNER, **changes}), error, says)


def roll(says, error=TypeError, **changes):
    return Bad(lambda: given(olx.rollout, **{"learner": LEARNER, **changes}), error, says)


def sweep(says, error=TypeError, **changes):
    return Bad(lambda: given(olx.sweep, **{"learner": PAIR, **changes}), error, says)


def rule(given, error=ValueError):
    says = "keep: a rule must give (rounds after 0 and up to 40|the numbers of rounds)"
    return run(says, error, keep=lambda start, stop: given)


def refused(call, says, error=TypeError):
    return Bad(call, error, says)


def ints():
    yield 1


def nature():
    loss = jax.tree_util.Partial(losses.squared)
    answer = lambda hp, state, action: (action, state)
    return olx.Adversary(None, loss, lambda hp: 0.0, lambda hp, state: state, answer)


NO_LEARNER = "`learner` must be a Learner, got"
NO_LOSS = "`loss` must"
NO_RECORD = "`record` must"
NO_MEASURE = "run: `measure` must"
NO_KEEP = "run: `keep` must"
NO_ROUNDS = "`rounds` must be a Rounds, got"
A_BATCH = "`learner` is a batch; `olx.sweep` plays"
SHAPED = (
    r"a row of rounds.context has shape \(3,\), and `params` has \(2,\); start from jnp.zeros.3."
)
WHOLE = "must be an integer of at least 1, got"

BAD = {
    "a factory": run(f"run: {NO_LEARNER} function", learner=olx.ogd),
    "no learner": run(f"run: {NO_LEARNER} NoneType", learner=None),
    "a list of learners": sweep(
        "sweep: `learners` must be a batch or a Learner, got list", learner=[LEARNER]
    ),
    "a batch to run": run(f"run: {A_BATCH}", learner=PAIR),
    "a batch to roll out": roll(f"rollout: {A_BATCH}", learner=MANY),
    "a batch to play": refused(
        lambda: olx.play(PAIR, nature(), np.zeros(3), 5), f"play: {A_BATCH}"
    ),
    "a point where a score is wanted": run(
        "run: the learner plays its decision float64.3., .*`olx.linear.learner.`",
        learner=olx.ogd(0.1),
    ),
    "no loss": run(f"run: {NO_LOSS} be a function, got NoneType", loss=None),
    "the name of a loss": run(f"run: {NO_LOSS} be a function, got str", loss="squared"),
    "no loss to roll out": roll(f"rollout: {NO_LOSS} be a function, got NoneType", loss=None),
    "no loss to sweep": sweep(f"sweep: {NO_LOSS} be a function, got NoneType", loss=None),
    "a loss of one argument": run(f"run: {NO_LOSS} take .*: ", loss=lambda a: a),
    "a loss of three arguments": run(f"run: {NO_LOSS} take .*: ", loss=lambda a, b, c: a),
    "a loss of words": run("the loss gives .x.; it must be a real", loss=lambda a, y: "x"),
    "a loss of nothing": run("the loss gives None; it must", loss=lambda a, y: None),
    "a loss of two": run("the loss gives .*; it must be a real", loss=lambda a, y: (a, y)),
    "a loss of truth": run("the loss has type bool", loss=lambda a, y: a > y),
    "a loss of a vector": run("the loss has type float64.2.", loss=lambda a, y: jnp.stack([a, y])),
    "a whole loss": run("the loss has type int", loss=lambda a, y: jnp.array(1)),
    "a stream of numbers": run(f"run: {NO_ROUNDS} int", rounds=ints()),
    "an empty stream to sweep": sweep("sweep: the stream is empty", ValueError, rounds=[]),
    "scalars": run("run: rounds.context is a scalar", rounds=olx.Rounds(1.0, 2.0)),
    "pieces to roll out": roll(f"rollout: {NO_ROUNDS} list", rounds=[ROUNDS]),
    "sparse rows to roll out": roll("rollout: sparse rows are played by `olx.run`", rounds=SPARSE),
    "sparse rows of another width": run(
        r"run: `params` has shape \(2,\), the sparse rows have 3", rounds=SPARSE, params=np.zeros(2)
    ),
    "no context": run(
        "run: rounds.context is None, and this learner acts", rounds=olx.Rounds(None, Y)
    ),
    "a context in a dictionary": run(
        "run: a row of rounds.context is .a: float64.3.., .*one structure",
        rounds=olx.Rounds({"a": X}, Y),
    ),
    "a start of another width": run(SHAPED, params=np.zeros(2)),
    "a start for each learner": sweep(
        r"sweep: `params` of shape \(2, 3\) makes scores of shape \(2,\)", params=np.zeros((2, 3))
    ),
    "a start of another width for many": sweep(SHAPED, learner=MANY, params=np.zeros(2)),
    "rounds to keep as a number": run(f"{NO_KEEP} be a function, got int", keep=10),
    "rounds to keep as a list": run(f"{NO_KEEP} be a function, got list", keep=[1, 2]),
    "a rule of one argument": run(f"{NO_KEEP} take .*: ", keep=lambda start: start),
    "a factory for keep": run(f"{NO_KEEP} take", keep=olx.keep.every),
    "rounds past the end": rule(np.array([41])),
    "round zero": rule(np.array([0])),
    "a negative round": rule(np.array([-1])),
    "half a round": rule(np.array([1.5]), TypeError),
    "rounds in a table": rule(np.array([[1, 2]]), TypeError),
    "rounds in words": rule(["x"], TypeError),
    "no rounds kept": rule(None, TypeError),
    "a record in words": run(f"run: {NO_RECORD} be a function, got str", record="trace"),
    "a record that is true": roll(f"rollout: {NO_RECORD} be a function, got bool", record=True),
    "a record of one argument": run(f"run: {NO_RECORD} take .*: ", record=lambda state: state),
    "a record of words": run("`record` gives a str; it must", record=lambda state, seen: "x"),
    "a measure without a curve": run("run: `measure` is summed along a curve", measure=abs),
    "a measure in words": run(
        f"{NO_MEASURE} be a function, got str", measure="error", keep=olx.keep.totals
    ),
    "a measure of two arguments": run(
        f"{NO_MEASURE} take .*: ", measure=lambda a, b: a, keep=olx.keep.totals
    ),
    "a measure of words": run(
        "`measure` gives a str; it must", measure=lambda feedback: "x", keep=olx.keep.totals
    ),
    "a state without structure": run("run: `state` must be a MDState", state=jnp.zeros(3)),
    "a state of another learner": roll(
        "rollout: `state` must be a MDState, .*got FTRLState",
        state=olx.linear(olx.ftrl(0.1, regularizers.adagrad())).init(jnp.zeros(3)),
    ),
    "a state of another width": run(
        r"run: `state`.theta has shape \(2,\)", state=LEARNER.init(jnp.zeros(2))
    ),
    "inside jit": refused(
        lambda: jax.jit(lambda eta: given(olx.run, make(eta)).total)(0.1),
        "run: compiles for itself, so it cannot be called inside jit",
    ),
    "inside grad": refused(
        lambda: jax.grad(lambda eta: given(olx.run, make(eta)).total)(0.1),
        "run: compiles for itself, so it cannot be called inside jit",
    ),
    "a sweep of one learner": sweep("sweep: the leaves of `learners` share no", learner=LEARNER),
    "a sweep of no numbers": sweep(
        "sweep: the leaves of `learners` share no", learner=olx.classification.perceptron()
    ),
    "a batch of no axes": refused(lambda: olx.batch(make), "batch: give at least one axis"),
    "a batch over a number": refused(
        lambda: olx.batch(make, eta=0.1), "batch: axis `eta` is a single number"
    ),
    "a batch over words": refused(
        lambda: olx.batch(make, eta=["a"]), "batch: axis `eta` must hold numbers, got .'a'."
    ),
    "a batch of unequal axes": refused(
        lambda: olx.batch(lambda a, b: make(a + b), a=np.ones(2), b=np.ones(3)),
        r"batch: axes differ in length \(a: 2, b: 3\)",
    ),
    "a batch over an unknown name": refused(
        lambda: olx.batch(make, rate=np.ones(2)), "batch: `make` cannot be called with `rate` alone"
    ),
    "a batch of a learner": refused(
        lambda: olx.batch(LEARNER, eta=np.ones(2)), "batch: `make` must be a function that makes"
    ),
    "a batch of no learners": refused(
        lambda: olx.batch(lambda eta: eta, eta=np.ones(2)), "batch: `make` must give a Learner, got"
    ),
    "a grid of no axes": refused(lambda: olx.grid(), "grid: give at least one axis"),
    "a grid over a number": refused(lambda: olx.grid(a=1.0), "grid: axis `a` is a single number"),
    "a grid over nothing": refused(lambda: olx.grid(a=[]), "grid: axis `a` is empty", ValueError),
    "a grid over words": refused(lambda: olx.grid(a="x"), "grid: axis `a` must hold numbers, got"),
    "every zero rounds": refused(
        lambda: olx.keep.every(0), f"every: `rounds` {WHOLE} 0", ValueError
    ),
    "every half round": refused(
        lambda: olx.keep.every(0.5), f"every: `rounds` {WHOLE}", ValueError
    ),
    "no rounds in a decade": refused(
        lambda: olx.keep.log_spaced(0), f"log_spaced: `per_decade` {WHOLE} 0", ValueError
    ),
    "segments of zero": roll(f"rollout: `segment` {WHOLE} 0", ValueError, segment=0),
    "segments in words": roll(f"rollout: `segment` {WHOLE} 'x'", ValueError, segment="x"),
    "no adversary": refused(
        lambda: olx.play(LEARNER, None, np.zeros(3), 5),
        "play: `adversary` must be an Adversary, got",
    ),
    "a game of zero rounds": refused(
        lambda: olx.play(LEARNER, nature(), np.zeros(3), 0), f"play: `rounds` {WHOLE} 0", ValueError
    ),
}
