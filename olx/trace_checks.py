"""Checks of a recorded run before it is certified: whole, of this learner, a finite comparator."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, PyTree

from olx import _check as check
from olx._compiled import compiled
from olx._numeric import Sum
from olx._pytree import NotKept
from olx._refusal import RefusedType, RefusedValue
from olx.certificate import Certificate
from olx.core import Learner, Run, Trace
from olx.theorem import Theorem

ITS_OWN = "the run must be one of this learner"


def accept(learner: Learner, run: Run, u: PyTree) -> tuple[Trace, PyTree, Array]:
    """The trace of a run, the comparator, and in which rounds `learner` repeats the action.

    Refuses a run that kept only some of its rounds, a run of another learner, and a comparator
    that is not finite.
    """
    trace = trace_of(learner, run)
    return trace, finite(u), _agrees(learner, trace)


def vouched(proof: Certificate, agrees: Bool[Array, " T"]) -> Certificate:
    """Traced values cannot be refused; a run of another learner then breaks a condition."""
    if not isinstance(agrees, Tracer):
        return proof
    return dataclasses.replace(proof.given(ITS_OWN, agrees), so_far=None)


def trace_of(learner: Learner, run: Run) -> Trace:
    """The trace of a run; refuses a run without a whole trace and says how to get one."""
    check.instance("learner", learner, Learner)
    check.instance("run", run, Run)
    if not isinstance(run.trace, Trace):
        kept = "no trace" if run.trace is None else type(run.trace).__name__
        raise RefusedType(f"the run kept {kept}; play it with record=olx.record.trace.")
    if run.continued:
        raise RefusedValue(
            "`run` must start with the first round, got a run that continued from the "
            "state of an earlier one; play all rounds in one run."
        )
    kept = run.trace.feedback.value.shape[0]
    if _rounds(run, kept) != kept:
        raise RefusedValue(
            f"the run kept {kept} of its rounds, and a theorem needs all of them; play it "
            "without `keep`."
        )
    return run.trace


def _rounds(run: Run, kept: int) -> int | None:
    """The number of rounds that were played; None if it is traced."""
    if run.curve is None:
        return kept if isinstance(run.losses, NotKept | None) else run.losses.shape[0]
    return None if isinstance(run.curve.at, Tracer) else int(np.asarray(run.curve.at)[-1])


def finite(u: PyTree) -> PyTree:
    """A comparator as arrays; refuses one that is not finite."""
    u = jax.tree.map(jnp.asarray, u)
    for path, leaf in jax.tree_util.tree_leaves_with_path(u):
        if not isinstance(leaf, Tracer) and not np.all(np.isfinite(leaf)):
            bad = np.asarray(leaf)[~np.isfinite(leaf)].flat[0]
            raise RefusedValue(f"`u{jax.tree_util.keystr(path)}` must be finite, got {bad}.")
    return u


def check_rows(asked: tuple[Theorem, ...], rounds: int, u: PyTree) -> None:
    """Refuse a comparator without a row for every round where a theorem asks for rows."""
    for one in asked:
        for leaf in jax.tree.leaves(u) if one.sequence else []:
            if np.shape(leaf)[:1] != (rounds,):
                raise RefusedType(
                    f"`u` must have a row for each of {rounds} rounds, as `{one.name}` is "
                    f"about comparators that change, got shape {np.shape(leaf)}."
                )


def _agrees(learner: Learner, trace: Trace) -> Bool[Array, " T"]:
    """Whether `learner` repeats the action of each round; refuses a concrete run if it does not."""
    try:
        same_play, same_step = _replay(learner, trace)
    except Exception as error:
        raise RefusedType(
            f"`run` must be one of this learner, got states of type "
            f"{type(trace.state).__name__}, which it cannot play from."
        ) from error
    if isinstance(same_play, Tracer):
        return same_play
    for same, what in ((same_play, "an action"), (same_step, "a state")):
        if not np.all(same):
            raise RefusedValue(
                f"`run` must be one of this learner, got {what} in round "
                f"{int(np.argmin(same)) + 1} that this learner does not produce."
            )
    return same_play


@compiled
def _replay(learner: Learner, trace: Trace) -> tuple[Bool[Array, " T"], Bool[Array, " T"]]:
    """In which rounds the learner plays the recorded action, and reaches the recorded state."""
    state, feedback = trace
    actions = jax.vmap(learner.predict)(state, feedback.context)
    if not jax.tree.leaves(state):
        return _close(actions, feedback.action), jnp.ones(feedback.value.shape, bool)
    steps = jax.vmap(learner.update)(state, feedback)
    first = lambda tree: jax.tree.map(lambda leaf: leaf[:-1], tree)
    later = lambda tree: jax.tree.map(lambda leaf: leaf[1:], tree)
    follows = _close(first(steps), later(state))
    moves = ~_close(first(state), later(state)) | ~_close(first(steps), first(state))
    # An update may be ill-conditioned in a few rounds; another learner differs in most rounds.
    usual = 4 * jnp.sum(~follows) <= jnp.sum(moves)
    return _close(actions, feedback.action), jnp.append(True, follows | usual)


def _close(seen: PyTree, wanted: PyTree) -> Bool[Array, " T"]:
    """In which rounds two trees agree, to half the digits of the largest entry of each leaf."""

    def one(a: Array, b: Array) -> Array:
        if jnp.issubdtype(b.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        same = a == b
        if jnp.issubdtype(b.dtype, jnp.floating):
            same |= jnp.isnan(a) & jnp.isnan(b)
            largest = jnp.max(jnp.where(jnp.isfinite(b), jnp.abs(b), 0.0), initial=0.0)
            same |= jnp.abs(a - b) <= jnp.finfo(b.dtype).eps ** 0.5 * largest
        return jnp.all(same, axis=tuple(range(1, same.ndim)))

    same = jax.tree.map(one, _rounded(seen), _rounded(wanted))
    return jnp.all(jnp.stack(jax.tree.leaves(same)), axis=0)


def _rounded(tree: PyTree) -> PyTree:
    """A state without the rounding errors that its compensated sums keep."""
    is_sum = lambda node: isinstance(node, Sum)
    return jax.tree.map(lambda node: node.value if is_sum(node) else node, tree, is_leaf=is_sum)
