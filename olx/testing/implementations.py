"""Checks of the `facts` of a learner: each implementation of the engine must equal `rollout`.

The engine plays a learner in blocks of rounds if its updates add multiples of the context, and on
the coordinates of a sparse row if it is separable. The implementation depends on the number of
configurations and on the kind of rows, so several numbers and both kinds are checked, also in
single precision and with a matrix of weights. A point learner is checked inside `linear`, on a
stream made for this, because its facts are about that. If it says that a coordinate with zero
gradient keeps its decision (`Separable.keeps_decision`), this is checked, too.

A learner must also take a dictionary of parameters, and its program must lower for other devices.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.export import export
from jax.tree_util import Partial
from jaxtyping import Array, ArrayLike, PyTree
from scipy.sparse import csr_array

from olx._pytree import as_tree
from olx.core import Feedback, Learner, Loss, Rounds, Run, without_refresh
from olx.engine import tuning
from olx.engine.rollout import rollout
from olx.engine.run import run, sweep
from olx.facts import AddsGradient, HasAggregate, Linear, Refreshed, Rowwise, Separable
from olx.frameworks.lift import linear
from olx.losses.entropic import logistic
from olx.streams.sparse_rows import sparse_rows
from olx.testing.report import close, fail, movable, tolerance, weighed
from olx.testing.ties import tied_rounds, with_more_features

SPARSE_WIDTH = 3  # one: the form does not depend on the number of configurations


def check_widths(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """Every form in which the engine plays the learner equals `rollout`, at every width."""
    if _is_point_learner(learner, rounds, params):
        learner, loss, rounds = linear(learner), logistic, _labelled_rounds(params)
    sparse = _takes_sparse_rows(learner, rounds, params)
    numbers = bool(jax.tree.leaves(learner))
    if learner.facts.refresh is not None:
        _check_refresh(learner, loss, rounds, params)
    if learner.facts.adds is None and not sparse:
        return
    rounds = _stretched_rounds(_with_context(rounds, params))
    if sparse:
        rounds, params = with_more_features(learner, rounds, params)
    rounds = _weighed_rounds(learner, tied_rounds(learner, loss, rounds, params))
    switch = tuning.BLOCK_CONFIGURATIONS
    widths, most = (1, switch - 1, switch), max(switch, SPARSE_WIDTH)
    learners = _scaled_learners(learner, np.linspace(1.0, 0.7, most), movable(learner, params))
    play = lambda learner, rounds: rollout(learner, loss, rounds, params)
    many = jax.vmap(play, (0, None), axis_size=most)
    wanted = jax.jit(many)(learners, rounds)
    for width in widths if learner.facts.adds is not None and numbers else ():
        some = jax.tree.map(lambda leaf, width=width: leaf[:width], learners)
        seen = sweep(some, loss, rounds, params)
        _compare(f"a sweep of {width} is not rollout", seen, wanted, slice(width))
    if sparse:
        check_kept_decision(learner, loss, rounds, params)
        rows = rounds._replace(context=sparse_rows(csr_array(rounds.context)))
        for last in [width - 1 for width in widths]:
            one = jax.tree.map(lambda leaf, last=last: leaf[last], learners)
            what = "the learner says it takes sparse rows, but they differ from dense ones"
            _compare(what, run(one, loss, rows, params), wanted, last)
        if numbers:
            some = jax.tree.map(lambda leaf: leaf[:SPARSE_WIDTH], learners)
            seen = sweep(some, loss, rows, params)
            what = f"a sweep of {SPARSE_WIDTH} on sparse rows is not rollout"
            _compare(what, seen, wanted, slice(SPARSE_WIDTH))
    check_single(learners, loss, rounds, params, sparse)


def _check_refresh(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """After some rounds without refreshes, a refresh does not change a prediction."""
    never = without_refresh(learner)
    state = jax.jit(lambda rounds: rollout(never, loss, rounds, params).state)(rounds)
    context = jax.tree.map(lambda leaf: leaf[0], rounds.context)
    assert learner.facts.refresh is not None  # `check_widths` has checked
    better = learner.facts.refresh.apply(learner.hparams, state)
    seen, wanted = (learner.predict(each, context) for each in (better, state))
    close("a refresh changes a prediction", seen, wanted, 1e-5)


def _compare(what: str, seen: Run, wanted: Run, which: int | slice) -> None:
    of = lambda run: (run.losses, run.state)
    part = jax.tree.map(lambda leaf: leaf[which], of(wanted))
    close(what, of(seen), part, rtol=tolerance(seen))


def _is_point_learner(learner: Learner, rounds: Rounds, params: PyTree) -> bool:
    """Whether it plays a vector shaped like `params`, and states facts about such a learner."""
    stated = learner.facts.coordinates is not None or isinstance(learner.facts.adds, AddsGradient)
    own = all(need.where == "params" for need in learner.needs)  # else no stream can be made
    if not stated or not own or np.ndim(params) != 1:
        return False
    context = jax.tree.map(lambda leaf: leaf[0], rounds.context)
    action = jax.eval_shape(lambda: learner.predict(learner.init(params), context))
    return np.shape(action) == np.shape(params)


def _labelled_rounds(params: jax.Array) -> Rounds:
    """Random rows of about unit length, with random signs as labels."""
    draw, kind = np.random.default_rng(0), jnp.result_type(params)
    x = draw.normal(size=(tuning.BLOCK_ROUNDS, *params.shape)) / np.sqrt(params.size)
    return Rounds(x.astype(kind), draw.choice([-1.0, 1.0], tuning.BLOCK_ROUNDS).astype(kind))


def _takes_sparse_rows(learner: Learner, rounds: Rounds, params: PyTree) -> bool:
    rows, decision = (getattr(array, "shape", ()) for array in (rounds.context, params))
    if len(rows) != 2 or rows[1:] != decision[-1:]:
        return False
    shaped = any(np.ndim(leaf) for leaf in jax.tree.leaves(learner))
    kinds = (
        Linear | Rowwise | HasAggregate | Refreshed
        if len(decision) == 1
        else Linear | Rowwise | HasAggregate
    )
    own = isinstance(learner.facts.coordinates, kinds)
    return own and not shaped and len(decision) in (1, 2)  # 2: a row per class


def _with_context(rounds: Rounds, params: PyTree) -> Rounds:
    """The rounds; a stream without a context gets random contexts, which its learner ignores."""
    if rounds.context is not None or np.ndim(params) != 1:
        return rounds
    length = len(jax.tree.leaves(rounds)[0])
    context = np.random.default_rng(0).normal(size=(length, *np.shape(params)))
    return rounds._replace(context=context.astype(jnp.result_type(params)))


def _weighed_rounds(learner: Learner, rounds: Rounds) -> Rounds:
    """The rounds with several weights, 0 among them, unless the learner asks for its own."""
    if rounds.weight is not None or any(need.where == "weight" for need in learner.needs):
        return rounds
    return weighed(rounds, np.resize([1.0, 0.5, 0.0, 0.25], len(jax.tree.leaves(rounds)[0])))


def _stretched_rounds(rounds: Rounds) -> Rounds:
    """The stream, repeated until it is longer than a block of rounds."""
    times = 1 + tuning.BLOCK_ROUNDS // len(jax.tree.leaves(rounds)[0])
    return jax.tree.map(lambda leaf: np.concatenate([leaf] * times), rounds)


def _scaled_learners(learner: Learner, factors: np.ndarray, moves: list[bool]) -> Learner:
    """A stack of learners: per factor, the numbers that `moves` marks multiplied by it."""

    def stack(leaf: jax.Array, own: bool) -> jax.Array | np.ndarray:
        if own:  # by NumPy, which compiles nothing
            return np.multiply.outer(factors.astype(jnp.result_type(leaf)), np.asarray(leaf))
        leaf = jnp.asarray(leaf)
        return jnp.broadcast_to(leaf, (len(factors), *leaf.shape))

    leaves, structure = jax.tree.flatten(learner)
    return jax.tree.unflatten(structure, map(stack, leaves, moves))


_ROUNDING = 1e-3  # of float32, over a few dozen rounds


def check_single(
    learners: Learner, loss: Loss, rounds: Rounds, params: PyTree, sparse: bool
) -> None:
    """In float32 a sweep in blocks and sparse rows give the losses of `rollout`.

    Sparse rows are played by the first of the learners. If each of its coordinates is alone, and if
    it takes matrices, it gets two rows of weights and two scores; the second loss counts half.

    Only losses are compared: some states hold small differences of large numbers.
    """
    learners, loss, rounds, params = _in_float32((learners, as_tree(loss), rounds, params))
    play = lambda learner: rollout(learner, loss, rounds, params)
    if learners.facts.adds is not None and jax.tree.leaves(learners):
        some = jax.tree.map(lambda leaf: leaf[: tuning.BLOCK_CONFIGURATIONS], learners)
        wanted = jax.jit(jax.vmap(play))(some)
        _compare_single(
            "a sweep in float32 is not rollout", sweep(some, loss, rounds, params), wanted
        )
    if sparse:
        one = jax.tree.map(lambda leaf: leaf[0], learners)
        matrix = jnp.stack([params, params])
        if isinstance(one.facts.coordinates, Linear) and _takes(one, rounds, matrix):
            params, loss = matrix, Partial(_of_scores, loss)
        wanted = jax.jit(lambda one: rollout(one, loss, rounds, params))(one)
        rows = rounds._replace(context=sparse_rows(csr_array(rounds.context)))
        _compare_single("sparse rows in float32 differ", run(one, loss, rows, params), wanted)


def _compare_single(what: str, seen: Run, wanted: Run) -> None:
    close(what, seen.losses, wanted.losses, _ROUNDING)


def _takes(learner: Learner, rounds: Rounds, params: PyTree) -> bool:
    """Whether the learner can predict from such a start; some compare decisions with contexts."""
    try:
        jax.eval_shape(lambda: learner.predict(learner.init(params), rounds.context[0]))
    except TypeError:
        return False
    return True


def _of_scores(loss: Partial, scores: Array, outcome: PyTree) -> Array:
    return loss(scores[0], outcome) + 0.5 * loss(scores[1], outcome)


def _in_float32(tree: PyTree) -> PyTree:
    def cast(leaf: ArrayLike) -> ArrayLike:
        real = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        return np.asarray(leaf, np.float32) if real else leaf

    return jax.tree.map(cast, tree)


def check_kept_decision(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """If the learner inside a `linear` one says that it keeps decisions, this is true.

    Entries of the context that are zero have zero gradient. Other rounds must move them, since a
    decision that has never moved may stay where it is for another reason.
    """
    if not isinstance(learner.facts.coordinates, Linear):
        return
    inner = learner.facts.coordinates.inner_fn(learner.hparams)
    stated = inner.facts.coordinates
    if not isinstance(stated, Separable) or not stated.keeps_decision:
        return

    def decisions(state: PyTree, feedback: Feedback) -> tuple[PyTree, PyTree]:
        return inner.predict(state), inner.predict(state, feedback.context)

    play = lambda rounds: rollout(learner, loss, rounds, params, record=decisions)
    done = jax.jit(play)(rounds)
    alone, seeing = map(np.asarray, done.trace)
    rtol = tolerance(done)
    close(
        "the learner says `keeps_decision`, but its decision depends on the context",
        seeing,
        alone,
        rtol,
    )
    rows = np.asarray(rounds.context)
    rows = rows if rows.ndim == alone.ndim else rows[:, None]  # a row of weights per class
    kept = np.where(rows[:-1] == 0, alone[:-1], alone[1:])
    what = "the learner says `keeps_decision`, but a decision changes though its gradient is zero"
    close(what, alone[1:], kept, rtol)


def check_dictionary(
    learner: Learner, loss: Loss, rounds: Rounds, params: PyTree, done: Run
) -> None:
    """A dictionary of two vectors gives the same losses as one vector.
    Skipped if the parameters are not one vector, or if a number of the learner is an array."""
    shaped = any(np.ndim(leaf) > 0 for leaf in jax.tree.leaves(learner))
    if not isinstance(params, jax.Array) or params.ndim != 1 or params.size < 2 or shaped:
        return
    split = lambda leaf: (
        {"a": leaf[..., :1], "b": leaf[..., 1:]} if leaf.shape[-1:] == params.shape else leaf
    )
    vectors = lambda tree: jax.tree.map(lambda leaf: split(leaf) if leaf.ndim > 1 else leaf, tree)
    parted = Rounds(vectors(rounds.context), vectors(rounds.outcome), rounds.weight)
    other = jax.jit(lambda learner: rollout(learner, loss, parted, split(params)))(learner)
    close("a dictionary of parameters differs from one vector", other.losses, done.losses, 1e-6)


def check_lowering(
    learner: Learner, rounds: Rounds, play: jax.stages.Wrapped, platforms: tuple[str, ...]
) -> None:
    """The program of a run and of its gradient can be lowered for every platform."""
    learner = jax.tree.map(jnp.asarray, learner)
    try:
        export(play, platforms=platforms)(learner, rounds)
        return
    except Exception:
        pass  # find out below which platform it is
    for platform in platforms:
        try:
            export(play, platforms=(platform,))(learner, rounds)
        except Exception as error:
            fail(f"the program does not lower for {platform}: {error}")
