r"""Play another learner and keep its decision of one round, drawn at random.

$$h = w_r, \qquad r \text{ uniform on } 1, \dots, T.$$

Its expected risk is the mean risk of all decisions, also for losses that are not convex. It is kept
by reservoir sampling: the decision of round $t$ replaces the one kept with probability $1/t$. So
the horizon need not be known, and $r$ is uniform after every round.

`restarts` divides $T$ rounds into $s$ blocks, restarts the learner in each block, and keeps one
random decision per block. With probability at least $1 - e^{-s}$ one of them satisfies the bound
`olx.hindsight.online_to_batch.restart_bound`; `validated` finds it on fresh rounds.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section B.3 and theorem
12.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import own_name, public
from olx.core import Feedback, Learner, Loss, Rounds, Scalar
from olx.wrapper import INNER, lift_needs, lift_theorems


class Reservoir(NamedTuple):
    kept: PyTree
    total: Float[Array, ""]  # the sum of the weights so far
    rounds: Int[Array, ""]


@pytree
class RandomStopHparams:
    inner: Learner
    key: Array


class RandomStopState(NamedTuple):
    inner: PyTree
    reservoir: Reservoir


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
def random_stop(inner: Learner, key: Array) -> Learner:
    """Play `inner` and keep one decision, drawn in proportion to the weights of the rounds.

    inner: a learner of points; for a predictor, lift the result: `olx.linear(random_stop(...))`.

    >>> import jax, jax.numpy as jnp, olx
    >>> learner = random_stop(olx.ogd(1.0), jax.random.key(0))
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> stopped(run.state).item() in {0.0, -1.0, -2.0, -3.0}
    True
    """
    check.key(key)
    check.instance("inner", inner, Learner)
    hparams = RandomStopHparams(inner, key)
    needs = lift_needs(INNER, inner)
    theorems = lift_theorems(INNER, inner)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


@public
def stopped(state: RandomStopState) -> PyTree:
    """The decision kept, from the state of a `random_stop`, lifted or not."""
    check.state(state, RandomStopState, "random_stop")
    return state.reservoir.kept


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
    return Learner(hparams, restarts_init, restarts_predict, restarts_update, needs=needs)


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


def init(hp: RandomStopHparams, params: PyTree) -> RandomStopState:
    return RandomStopState(hp.inner.init(params), reservoir(params))


def predict(hp: RandomStopHparams, state: RandomStopState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner, context)


@own_name("random_stop")
def update(hp: RandomStopHparams, state: RandomStopState, feedback: Feedback) -> RandomStopState:
    check.same_shape("the action", feedback.action, "`params`", stopped(state))
    drawn = draw(hp.key, state.reservoir, feedback.action, feedback.weight)
    return RandomStopState(hp.inner.update(state.inner, feedback), drawn)


def restarts_init(hp: RestartsHparams, params: PyTree) -> RestartsState:
    fresh = jax.tree.map(jnp.asarray, hp.inner.init(params))
    table = jax.tree.map(lambda leaf: jnp.zeros((hp.blocks, *leaf.shape), leaf.dtype), params)
    return RestartsState(fresh, fresh, reservoir(params), table)


def restarts_predict(hp: RestartsHparams, state: RestartsState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner, context)


@own_name("restarts")
def restarts_update(hp: RestartsHparams, state: RestartsState, feedback: Feedback) -> RestartsState:
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


def reservoir(params: PyTree) -> Reservoir:
    """A reservoir for one decision shaped like `params`; 0 at first."""
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    return Reservoir(tree.zeros_like(params), zero, jnp.zeros((), jnp.int32))


def draw(key: Array, state: Reservoir, decision: PyTree, weight: Scalar) -> Reservoir:
    """Keep `decision` with probability `weight` / (sum of all weights so far)."""
    total = state.total + weight
    chance = jax.random.uniform(jax.random.fold_in(key, state.rounds), (), total.dtype)
    takes = chance * total < weight
    kept = jax.tree.map(lambda new, old: jnp.where(takes, new, old), decision, state.kept)
    return Reservoir(kept, total, state.rounds + 1)
