r"""Many searches for a stream of large regret: normalized gradient steps, projected.

$$y_t \leftarrow \Pi_Y\Big( y_t + \epsilon_k s_Y \frac{\nabla_{y_t} R}{\|\nabla_{y_t} R\|} \Big),
  \qquad \epsilon_k = \frac{\epsilon}{2} \Big( 1 + \cos \frac{\pi k}{K} \Big),$$

for the contexts, the outcomes and the comparator. $s_Y$ is the size of the set. The length of a
step does not depend on that of the gradient, so rounds that matter little are searched, too.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _safe as safe
from olx._cache import compiled
from olx.core import Learner, Loss, Rounds, Scalar
from olx.engine.rollout import rollout
from olx.hindsight.regret import comparator_losses
from olx.hindsight.stream_sets import drawn, refuse_unbounded


class Game(NamedTuple):
    """What does not change in a search."""

    learner: Learner
    loss: Loss
    apply: Partial
    params: PyTree


class Play(NamedTuple):
    """The contexts and outcomes of all rounds, and the comparator; or what belongs to each."""

    context: Any
    outcome: Any
    u: Any


class Climb(NamedTuple):
    """The end of each search."""

    play: Play  # the best one seen
    value: Float[Array, " searches"]  # its regret
    finite: Bool[Array, " searches"]  # whether all regrets and gradients were finite
    moves: Bool[Array, " searches"]  # whether the first regret changes with the stream
    integers: list  # of the state after each stream: the smallest and the largest


def rounds_of(play: Play) -> Rounds:
    return Rounds(play.context, play.outcome)


def is_whole(leaf: Any) -> bool:
    """Whether a part of a state holds integers or booleans."""
    return jnp.issubdtype(leaf.dtype, jnp.integer) or leaf.dtype == bool


def starts_of(
    owner: str, parts: Play, params: PyTree, rounds: int, searches: int, key: Array
) -> tuple[Play, Play]:
    """The start of each search, and the sizes of the sets; refuses an unbounded set."""
    starts, lengths = _draw(parts, params, rounds, searches, key)
    names = Play("streams.context", "streams.outcome", "comparators")
    for name, part, seen in zip(names, parts, lengths, strict=True):
        if part is not None:
            refuse_unbounded(owner, name, part, seen)
    return starts, jax.tree.map(lambda seen: seen[0], lengths)


@functools.partial(compiled, static=(2, 3))
def _draw(parts: Play, params: PyTree, rounds: int, searches: int, key: Array) -> tuple[Play, Play]:
    def rows(part: Any, key: Array) -> tuple:
        if part is None:
            return None, None
        every, lengths = drawn(part, part.shape(params), searches * rounds, key)
        fold = lambda leaf: leaf.reshape(searches, rounds, *leaf.shape[1:])
        return jax.tree.map(fold, every), lengths

    context, outcome, u = jax.random.split(key, 3)
    found = (
        rows(parts.context, context),
        rows(parts.outcome, outcome),
        drawn(parts.u, parts.u.shape(params), searches, u),
    )
    starts, lengths = zip(*found, strict=True)
    return Play(*starts), Play(*lengths)


@functools.partial(compiled, static=(5,))
def ascend(game: Game, parts: Play, starts: Play, sizes: Play, pace: Scalar, steps: int) -> Climb:
    """Search from each start; keep the best stream of each search."""
    kind = jnp.result_type(*jax.tree.leaves(game.params))
    angles = jnp.pi * jnp.arange(steps, dtype=kind) / steps
    paces = jnp.asarray(pace, kind) * (1 + jnp.cos(angles)) / 2
    look = jax.value_and_grad(functools.partial(_regret, game), has_aux=True)

    def step(best: tuple, pace: Array) -> tuple:
        play, kept, most = best
        (value, integers), slope = look(play)
        kept, most = _better(kept, most, play, value)
        finite = jnp.isfinite(value) & _all_finite(slope)
        moves = tree.norm((slope.context, slope.outcome)) > 0
        return (_moved(parts, sizes, pace, play, slope), kept, most), (finite, moves, integers)

    def search(start: Play) -> Climb:
        lowest = jnp.asarray(-jnp.inf, kind)
        (play, kept, most), seen = lax.scan(step, (start, start, lowest), paces)
        kept, most = _better(kept, most, play, _regret(game, play)[0])
        finite, moves, integers = seen
        ends = [jnp.stack([jnp.min(leaf, axis=0), jnp.max(leaf, axis=0)]) for leaf in integers]
        return Climb(kept, most, jnp.all(finite), moves[0], ends)

    return jax.vmap(search)(starts)


def _regret(game: Game, play: Play) -> tuple[Array, list]:
    """The regret after the last round, and the integers of the last state."""
    rounds = rounds_of(play)
    run = rollout(game.learner, game.loss, rounds, game.params)
    theirs = comparator_losses(game.loss, rounds, play.u, game.apply)
    whole = [leaf.astype(int) for leaf in jax.tree.leaves(run.state) if is_whole(leaf)]
    return jnp.sum(run.losses - theirs), whole


def _better(kept: Play, most: Array, play: Play, value: Array) -> tuple[Play, Array]:
    more = value > most
    return jax.tree.map(lambda a, b: jnp.where(more, a, b), play, kept), jnp.where(
        more, value, most
    )


def _all_finite(slope: Play) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(slope)]))


def _moved(parts: Play, sizes: Play, pace: Array, play: Play, slope: Play) -> Play:
    """One step of every part of every round, and of the comparator."""

    def one(part: Any, size: Any, own: PyTree, slope: PyTree) -> PyTree:
        share = safe.divide(pace * jnp.asarray(size, pace.dtype), tree.norm(slope))
        return part.project(tree.add_scale(own, share, slope))

    def rows(part: Any, size: Any, own: PyTree, slope: PyTree) -> PyTree:
        each = jax.vmap(lambda own, slope: one(part, size, own, slope))
        return None if part is None else each(own, slope)

    return Play(
        rows(parts.context, sizes.context, play.context, slope.context),
        rows(parts.outcome, sizes.outcome, play.outcome, slope.outcome),
        one(parts.u, sizes.u, play.u, slope.u),
    )
