r"""Restart a learner in blocks; each block gives a candidate, and one is good with confidence.

Divide $T$ rounds into $s$ blocks, restart the learner in each block, and keep one random decision
per block. With probability at least $1 - e^{-s}$ one of them satisfies the bound
`olx.hindsight.online_to_batch.restart_bound`; `validated` finds it on fresh rounds.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, theorem 12.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import own_name, public
from olx.core import Feedback, Learner, Loss, Rounds
from olx.meta.random_stop import Reservoir, draw, reservoir
from olx.wrapper import INNER, lift_needs


@pytree
class RestartsHparams:
    inner: Learner
    key: Array
    length: int = static()
    blocks: int = static()


class RestartsState(NamedTuple):
    fresh: PyTree  # the first state of `inner`
    inner: PyTree
    reservoir: Reservoir  # of the current block
    candidates: PyTree  # one per block, with a leading axis


@public
def restarts(inner: Learner, length: int, blocks: int, key: Array) -> Learner:
    """Play `inner`, restart it after every `length` rounds, and keep one decision per block.

    inner: a learner of points; for a predictor, lift the result: `olx.linear(restarts(...))`.
    blocks: the number of candidates; later blocks replace the last candidate.

    >>> import jax, jax.numpy as jnp, olx
    >>> learner = restarts(olx.ogd(1.0), 2, 3, jax.random.key(0))
    >>> rounds = olx.Rounds(None, jnp.ones((6, 1)))
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> run.losses.tolist(), candidates(run.state).shape
    ([0.0, -1.0, 0.0, -1.0, 0.0, -1.0], (3, 1))
    """
    check.key(key)
    check.instance("inner", inner, Learner)
    check.count("length", length)
    check.size("blocks", blocks)
    hparams, needs = RestartsHparams(inner, key, length, blocks), lift_needs(INNER, inner)
    return Learner(hparams, init, predict, update, needs=needs)


@public
def candidates(state: RestartsState) -> PyTree:
    """The decisions kept; every leaf has a leading axis of blocks."""
    check.state(state, RestartsState, "restarts")
    return state.candidates


@public
def validated(
    candidates: PyTree, loss: Loss, rounds: Rounds, apply: Callable[[PyTree, PyTree], PyTree]
) -> PyTree:
    """The candidate with the smallest loss on fresh rounds.

    apply: `(decision, context) -> action`: `olx.dot`, or `olx.hindsight.itself`.
    """
    check.numbers("candidates", candidates)
    check.takes("loss", loss, "action", "outcome")
    check.instance("rounds", rounds, Rounds)
    check.takes("apply", apply, "w", "x")

    def total(w: PyTree) -> Array:
        paid = jax.vmap(lambda x, y: loss(apply(w, x), y))(rounds.context, rounds.outcome)
        return jnp.sum(paid if rounds.weight is None else rounds.weight * paid)

    best = jnp.argmin(jax.vmap(total)(candidates))
    return jax.tree.map(lambda leaf: leaf[best], candidates)


def init(hp: RestartsHparams, params: PyTree) -> RestartsState:
    fresh = jax.tree.map(jnp.asarray, hp.inner.init(params))
    table = jax.tree.map(lambda leaf: jnp.zeros((hp.blocks, *leaf.shape), leaf.dtype), params)
    return RestartsState(fresh, fresh, reservoir(params), table)


def predict(hp: RestartsHparams, state: RestartsState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner, context)


@own_name("restarts")
def update(hp: RestartsHparams, state: RestartsState, feedback: Feedback) -> RestartsState:
    kept = state.reservoir
    check.same_shape("the action", feedback.action, "`params`", kept.kept)
    first = kept.rounds % hp.length == 0
    emptied = kept._replace(total=jnp.where(first, 0.0, kept.total))
    drawn = draw(hp.key, emptied, feedback.action, feedback.weight)
    block = jnp.minimum(kept.rounds // hp.length, hp.blocks - 1)

    def put(table: Array, row: Array) -> Array:
        own = jnp.arange(hp.blocks, dtype=block.dtype) == block
        return jnp.where(own.reshape(-1, *[1] * row.ndim), row, table)

    over = drawn.rounds % hp.length == 0
    later = hp.inner.update(state.inner, feedback)
    return RestartsState(
        state.fresh,
        jax.tree.map(lambda fresh, own: jnp.where(over, fresh, own), state.fresh, later),
        drawn,
        jax.tree.map(put, state.candidates, drawn.kept),
    )
