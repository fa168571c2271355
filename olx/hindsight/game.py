"""A run as theorems see it: checked, without its rounds of weight zero."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Int, PyTree

from olx import _check as check
from olx._sum import Sum
from olx.certificate import UNIT_WEIGHTS, Certificate, after, idle_last
from olx.core import Learner, Run, Trace
from olx.frameworks.lift import inner_trace

ITS_OWN = "the run must be one of this learner"


class About(NamedTuple):
    """The learners that a theorem is about, in words and as a test."""

    learners: str
    test: Callable[[Learner], bool]


class Game(NamedTuple):
    """The rounds that a theorem is about."""

    trace: Trace  # rounds of weight zero last
    u: PyTree  # the comparator, finite
    order: Int[Array, " T"]  # the rounds of the run as they stand in the trace
    count: Int[Array, " T"]  # rounds played up to each round of the run
    agrees: Bool[Array, " T"]  # see `accept`


def played(owner: str, about: About, learner: Learner, run: Run, u: PyTree = None) -> Game:
    """The game of `run` and the comparator `u`, or a refusal; see `accept`."""
    refuse_others(owner, about, learner)
    trace, u, agrees = accept(owner, learner, run, u)
    packed, order, count = idle_last(trace)
    return Game(packed, u, order, count, agrees)


def played_inside(
    owner: str, about: About, learner: Learner, run: Run, u: PyTree
) -> tuple[Game, Any]:
    """The game as the learner inside all models saw it, and its hyperparameters."""
    game = played(owner, about, learner, run, u)
    inner, trace = inner_trace(learner, game.trace)
    first = jax.tree.map(lambda leaf: leaf[0], trace.feedback.action)
    return game._replace(trace=trace, u=check.comparator(owner, u, first)), inner.hparams


def refuse_others(owner: str, about: About, learner: Learner) -> None:
    """A TypeError where the theorem `owner` is not about `learner`."""
    check.instance(owner, "learner", learner, Learner)
    if not about.test(learner):
        raise TypeError(
            f"{owner}: `learner` must be {about.learners}, got one of "
            f"`{learner.update_fn.__module__}`; `olx.hindsight.theorems(learner)` lists the "
            "theorems about it."
        )


def judged(game: Game, proof: Certificate) -> Certificate:
    """A certificate of the trace of `game`, for every round of the run."""
    return vouched(after(proof, game.count), game.agrees)


def accept(owner: str, learner: Learner, run: Run, u: PyTree) -> tuple[Trace, PyTree, Array]:
    """The trace of a run, the comparator, and in which rounds the learner plays as was played.

    Refused are a run that kept only some of its rounds, one that another learner made, and a
    comparator that is not finite.
    """
    trace = trace_of(owner, learner, run)
    return trace, _finite(owner, u), _agrees(owner, learner, trace)


def vouched(proof: Certificate, agrees: Bool[Array, " T"]) -> Certificate:
    """Under `vmap` and `jit` it is too late to refuse another learner's run: a condition then."""
    return proof.given(ITS_OWN, agrees) if isinstance(agrees, Tracer) else proof


def unit_weights(game: Game, proof: Certificate) -> Certificate:
    """For a theorem that is not proved for weighted rounds."""
    weight = game.trace.feedback.weight
    return proof.given(UNIT_WEIGHTS, (weight == 0) | (weight == 1))


def trace_of(owner: str, learner: Learner, run: Run) -> Trace:
    """The trace a certificate needs, or a refusal that says how to get one."""
    check.instance(owner, "learner", learner, Learner)
    check.instance(owner, "run", run, Run)
    if not isinstance(run.trace, Trace):
        raise TypeError(
            f"{owner}: the run kept {type(run.trace).__name__}; play it with "
            "record=olx.record.trace."
        )
    if run.continued:
        raise ValueError(
            f"{owner}: the run went on from the state of an earlier one, and a theorem begins with "
            "the first round; play all rounds in one run."
        )
    kept = run.trace.feedback.value.shape[0]
    if _rounds(run, kept) != kept:
        raise ValueError(
            f"{owner}: the run kept {kept} of its rounds, and a theorem needs all of them; play it "
            "without `keep`."
        )
    return run.trace


def _rounds(run: Run, kept: int) -> int | None:
    """How many rounds were played; None where that cannot be known."""
    if run.curve is None:
        return kept if run.losses is None else run.losses.shape[0]
    return None if isinstance(run.curve.at, Tracer) else int(np.asarray(run.curve.at)[-1])


def _finite(owner: str, u: PyTree) -> PyTree:
    u = jax.tree.map(jnp.asarray, u)
    for path, leaf in jax.tree_util.tree_leaves_with_path(u):
        if not isinstance(leaf, Tracer) and not np.all(np.isfinite(leaf)):
            bad = np.asarray(leaf)[~np.isfinite(leaf)].flat[0]
            raise ValueError(f"{owner}: `u{jax.tree_util.keystr(path)}` must be finite, got {bad}.")
    return u


def _agrees(owner: str, learner: Learner, trace: Trace) -> Bool[Array, " T"]:
    """Whether `learner` plays what was played, or a refusal where this can be known."""
    try:
        same_play, same_step = _replay(learner, trace)
    except Exception as error:
        raise TypeError(
            f"{owner}: `run` must be one of this learner, got states of type "
            f"{type(trace.state).__name__}, which it cannot play from."
        ) from error
    if isinstance(same_play, Tracer):
        return same_play
    for same, what in ((same_play, "an action"), (same_step, "a state")):
        if not np.all(same):
            raise ValueError(
                f"{owner}: `run` must be one of this learner, got {what} in round "
                f"{int(np.argmin(same)) + 1} that it would not have come to."
            )
    return same_play


@jax.jit
def _replay(learner: Learner, trace: Trace) -> tuple[Bool[Array, " T"], Bool[Array, " T"]]:
    """Which actions are those of the learner, and which states follow from the one before."""
    state, feedback = trace
    actions = jax.vmap(learner.predict)(state, feedback.context)
    if not jax.tree.leaves(state):
        return _close(actions, feedback.action), jnp.ones(feedback.value.shape, bool)
    steps = jax.vmap(learner.update)(state, feedback)
    first = lambda tree: jax.tree.map(lambda leaf: leaf[:-1], tree)
    later = lambda tree: jax.tree.map(lambda leaf: leaf[1:], tree)
    follows = _close(first(steps), later(state))
    moves = ~_close(first(state), later(state)) | ~_close(first(steps), first(state))
    # An update may be ill-conditioned in a round or two; another learner shows in most of them.
    usual = 4 * jnp.sum(~follows) <= jnp.sum(moves)
    return _close(actions, feedback.action), jnp.append(True, follows | usual)


def _close(seen: PyTree, wanted: PyTree) -> Bool[Array, " T"]:
    """In which rounds two trees agree to half the digits of their largest entry."""

    def one(a: Array, b: Array) -> Array:
        if jnp.issubdtype(b.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        same = a == b
        if jnp.issubdtype(b.dtype, jnp.floating):
            same |= jnp.isnan(a) & jnp.isnan(b)
            largest = jnp.max(jnp.where(jnp.isfinite(b), jnp.abs(b), 0.0), initial=0.0)
            same |= jnp.abs(a - b) <= jnp.finfo(b.dtype).eps ** 0.5 * largest
        return jnp.all(same.reshape(same.shape[0], -1), axis=1)

    same = jax.tree.map(one, _rounded(seen), _rounded(wanted))
    return jnp.all(jnp.stack(jax.tree.leaves(same)), axis=0)


def _rounded(tree: PyTree) -> PyTree:
    """A state without the rests of its compensated sums, which are rounding and nothing else."""
    is_sum = lambda node: isinstance(node, Sum)
    return jax.tree.map(lambda node: node.value if is_sum(node) else node, tree, is_leaf=is_sum)
