r"""The worst regret of a learner over a few rounds, found by gradient ascent on the stream.

$$\max_{y_1, \dots, y_T \in Y} \; \max_{u \in U} \; \sum_{t \le T} \ell(a_t, y_t) - \ell(u, y_t).$$

The legal streams are those of `olx.hindsight.stream_sets`.

The actions $a_t$ depend on the stream through the learner, and `rollout` is differentiable. So the
stream and the comparator climb together: each part of each round takes a step of a given length
along its gradient and is projected back to its set,

$$y_t \leftarrow \Pi_Y\Big( y_t + \epsilon_k s_Y \frac{\nabla_{y_t} R}{\|\nabla_{y_t} R\|} \Big),
  \qquad \epsilon_k = \frac{\epsilon}{2} \Big( 1 + \cos \frac{\pi k}{K} \Big),$$

with $s_Y$ the size of the set; so do the contexts and the comparator. The length of a step does not
depend on that of the gradient, so rounds that matter little are searched, too. Many searches run at
once, from random streams.

The problem is not concave. What is found is a stream, so its regret is a *lower* bound on the worst
regret. `exact_worst_case` gives the exact value for some learners.

Drori, Teboulle, Performance of First-Order Methods for Smooth Convex Minimization: A Novel
Approach, 2014.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._compiled import compiled
from olx._pytree import as_tree, pytree
from olx._refusal import RefusedType, RefusedValue, public
from olx.certificate import Certificates
from olx.convex.sets import ConvexSet
from olx.core import Learner, Loss, Rounds, Scalar
from olx.engine.arguments import check_game
from olx.engine.certify import certify
from olx.engine.explain import errors_explained
from olx.engine.rollout import rollout
from olx.frameworks.lift import LiftHparams
from olx.hindsight.regret import comparator_losses, itself, regret
from olx.hindsight.stream_sets import Part, StreamSet, draw_values, refuse_unbounded
from olx.record import trace
from olx.streams.checks import check_params, judge, needs_of
from olx.streams.stream import Stream
from olx.theorem import Theorem


class Looseness(NamedTuple):
    """The right side of a theorem over its left side after the last round; 1 means attained."""

    right: Array
    published: Array | None  # the same for the looser form of the source


@pytree
class WorstCase:
    """The worst stream that was found.

    regret: to `stream.truth`, after the last round. Another stream of the set may have a larger
        one.
    stream: the rounds, and the comparator. `olx.run` plays its rounds, and
        `olx.streams.replaying` makes an adversary of them.
    each: the regret that each search reached. If the largest was reached once only, search longer.
    proofs: both sides of the theorems on this stream; None if the learner carries none.
    """

    regret: Float[Array, ""]
    stream: Stream
    each: Float[Array, " searches"]
    proofs: Certificates | None = None

    @property
    def looseness(self) -> dict[str, Looseness]:
        """How loose each theorem is on this stream, by its name."""
        over = lambda side, left: safe.divide(side[-1], left[-1], jnp.inf)
        last = lambda side, left: None if side is None else over(side, left)
        return {
            one.name: Looseness(over(one.right, one.left), last(one.published, one.left))
            for one in self.proofs or ()
        }


class Search(NamedTuple):
    """What does not change in a search."""

    learner: Learner
    loss: Loss
    apply: Partial
    params: PyTree


class Play(NamedTuple):
    """The contexts and outcomes of all rounds, and the comparator; or what belongs to each."""

    context: PyTree
    outcome: PyTree
    u: PyTree


class Climb(NamedTuple):
    """The end of each search."""

    play: Play  # the best one seen
    value: Float[Array, " searches"]  # its regret
    finite: Bool[Array, " searches"]  # whether all regrets and gradients were finite
    moves: Bool[Array, " searches"]  # whether the first regret changes with the stream
    integers: list  # of the state after each stream: the smallest and the largest


@public
def worst_case(
    learner: Learner,
    rounds: int,
    streams: StreamSet,
    params: PyTree,
    *,
    comparators: ConvexSet,
    apply: Callable[[PyTree, PyTree], PyTree] = itself,
    theorems: tuple[Theorem, ...] | None = None,
    searches: int = 32,
    steps: int = 500,
    pace: Scalar = 0.2,
    key: Array | None = None,
) -> WorstCase:
    r"""Search a set of streams for the one on which `learner` has the largest regret.

    rounds: the number of rounds, small: the search plays all of them `searches * steps` times.
    streams: the legal streams and their loss: `linear_losses`, `score_losses` or `label_losses`.
    params: where the learner starts. A worst stream of $T$ gradients may need $T + 1$ dimensions.
    comparators: a bounded set of `olx.convex.sets`; $u$ is shaped like `params`.
    apply: `(u, context) -> action`, as for `olx.regret`: `olx.dot` for a linear predictor.
    theorems: evaluated on the stream found; those that the learner carries if None.
    searches: the number of searches. They share one program.
    pace: the first step of a search, as a share of the size of each set; it falls to 0.
    key: of the random streams to start from; a fixed one if None.

    >>> import jax.numpy as jnp, olx
    >>> from olx.convex import sets
    >>> from olx.hindsight import linear_losses
    >>> worst = worst_case(
    ...     olx.ogd(0.5), 4, linear_losses(sets.ball(1.0)), jnp.zeros(3), comparators=sets.ball(1.0)
    ... )
    >>> round(float(worst.regret), 2), round(float(worst.looseness["gradient_descent"].right), 2)
    (2.0, 1.0)
    """
    check.count("rounds", rounds)
    check.instance("streams", streams, StreamSet)
    check.instance("comparators", comparators, ConvexSet)
    check.takes("apply", apply, "u", "context")
    check_game(learner, streams.loss)
    check_params(params)
    check.count("searches", searches)
    check.count("steps", steps)
    pace = check.positive("pace", pace)
    key = jax.random.key(0) if key is None else key
    check.key(key)
    params = jax.tree.map(jnp.asarray, params)
    u = Part(comparators.project, None, comparators.bounded)
    parts = Play(streams.context, streams.outcome, u)
    starts, sizes = _starts(parts, params, rounds, searches, key)
    _check_needs(learner, streams, params, starts)
    game = Search(learner, streams.loss, as_tree(apply), params)
    first = _rounds_of(jax.tree.map(lambda leaf: leaf[0], starts))
    with errors_explained(learner, streams.loss, params, first):
        jax.eval_shape(lambda u: comparator_losses(streams.loss, first, u, apply), params)
        climb = _ascend(game, parts, starts, sizes, pace, steps)
    _refuse(learner, params, climb)
    best = jax.tree.map(lambda leaf: leaf[jnp.argmax(climb.value)], climb.play)
    found = Stream(_rounds_of(best), best.u)
    run = rollout(learner, streams.loss, found.rounds, params, record=trace)
    reached = regret(run, streams.loss, found.rounds, best.u, apply)[-1]
    if theorems is None:
        theorems = tuple(one for one in learner.theorems if not one.sequence)
    proofs = certify(learner, run, best.u, theorems=theorems) if theorems else None
    return WorstCase(reached, found, climb.value, proofs)


def _check_needs(learner: Learner, streams: StreamSet, params: PyTree, starts: Play) -> None:
    """Refuse a set with streams that the learner or the loss does not take."""
    if streams.context is None and isinstance(learner.hparams, LiftHparams):
        raise RefusedType(
            "the learner predicts from rows, and the rounds of `streams` have no "
            "context; give `score_losses` or `label_losses`."
        )
    flat = lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:])
    rows = jax.tree.map(flat, _rounds_of(starts))
    try:
        judge(needs_of(learner, streams.loss), params, rows)
    except ValueError as error:
        raise RefusedValue(
            f"{error} This is a row of a stream of `streams`; make its sets smaller."
        ) from error


def _refuse(learner: Learner, params: PyTree, climb: Climb) -> None:
    """Refuse searches whose gradients say nothing about the regret."""
    for name, seen in zip(_integers(learner, params), climb.integers, strict=True):
        if not np.all(seen == seen[:1, :1]):
            raise RefusedType(
                f"{name} of the state of the learner is an integer that depends on the "
                "stream, and no gradient passes through it; play all streams of a small set with "
                "`olx.rollout`, or an adversary of `olx.streams` with `olx.play`."
            )
    if not np.all(climb.finite):
        count, total = int(np.sum(~climb.finite)), climb.finite.size
        raise RefusedValue(
            f"{count} of {total} searches diverge: the regret or its gradient is not finite. Give "
            "smaller sets, on which the loss is finite, or a smaller step size of the learner."
        )
    if not np.any(climb.moves):
        raise RefusedValue(
            "the regret has gradient 0 at every first stream, so the search cannot "
            "climb; give a loss with a slope, as `olx.losses.hinge` in place of `zero_one`."
        )


def _integers(learner: Learner, params: PyTree) -> list[str]:
    """The names of the parts of the state that no gradient passes through."""
    state = jax.tree_util.tree_leaves_with_path(jax.eval_shape(learner.init, params))
    return [f"`state{jax.tree_util.keystr(path)}`" for path, leaf in state if _is_whole(leaf)]


def _is_whole(leaf: Array) -> bool:
    """Whether a part of a state holds integers or booleans."""
    return jnp.issubdtype(leaf.dtype, jnp.integer) or leaf.dtype == bool


def _rounds_of(play: Play) -> Rounds:
    return Rounds(play.context, play.outcome)


def _starts(
    parts: Play, params: PyTree, rounds: int, searches: int, key: Array
) -> tuple[Play, Play]:
    """The start of each search, and the sizes of the sets; refuses an unbounded set."""
    starts, lengths = _draw(parts, params, rounds, searches, key)
    names = Play("streams.context", "streams.outcome", "comparators")
    for name, part, seen in zip(names, parts, lengths, strict=True):
        if part is not None:
            refuse_unbounded(name, part, seen)
    return starts, jax.tree.map(lambda seen: seen[0], lengths)


@functools.partial(compiled, static=(2, 3))
def _draw(parts: Play, params: PyTree, rounds: int, searches: int, key: Array) -> tuple[Play, Play]:
    def rows(part: Part | None, key: Array) -> tuple:
        if part is None:
            return None, None
        every, lengths = draw_values(part, part.shape(params), searches * rounds, key)
        fold = lambda leaf: leaf.reshape(searches, rounds, *leaf.shape[1:])
        return jax.tree.map(fold, every), lengths

    context, outcome, u = jax.random.split(key, 3)
    found = (
        rows(parts.context, context),
        rows(parts.outcome, outcome),
        draw_values(parts.u, parts.u.shape(params), searches, u),
    )
    starts, lengths = zip(*found, strict=True)
    return Play(*starts), Play(*lengths)


@functools.partial(compiled, static=(5,))
def _ascend(
    game: Search, parts: Play, starts: Play, sizes: Play, pace: Scalar, steps: int
) -> Climb:
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
        return (_take_step(parts, sizes, pace, play, slope), kept, most), (finite, moves, integers)

    def search(start: Play) -> Climb:
        lowest = jnp.asarray(-jnp.inf, kind)
        (play, kept, most), seen = lax.scan(step, (start, start, lowest), paces)
        kept, most = _better(kept, most, play, _regret(game, play)[0])
        finite, moves, integers = seen
        ends = [jnp.stack([jnp.min(leaf, axis=0), jnp.max(leaf, axis=0)]) for leaf in integers]
        return Climb(kept, most, jnp.all(finite), moves[0], ends)

    return jax.vmap(search)(starts)


def _regret(game: Search, play: Play) -> tuple[Array, list]:
    """The regret after the last round, and the integers of the last state."""
    rounds = _rounds_of(play)
    run = rollout(game.learner, game.loss, rounds, game.params)
    theirs = comparator_losses(game.loss, rounds, play.u, game.apply)
    whole = [leaf.astype(int) for leaf in jax.tree.leaves(run.state) if _is_whole(leaf)]
    return jnp.sum(run.losses - theirs), whole


def _better(kept: Play, most: Array, play: Play, value: Array) -> tuple[Play, Array]:
    more = value > most
    best = jax.tree.map(lambda a, b: jnp.where(more, a, b), play, kept)
    return best, jnp.where(more, value, most)


def _all_finite(slope: Play) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(slope)]))


def _take_step(parts: Play, sizes: Play, pace: Array, play: Play, slope: Play) -> Play:
    """One step of every part of every round, and of the comparator."""

    def one(part: Part, size: Array, own: PyTree, slope: PyTree) -> PyTree:
        share = safe.divide(pace * jnp.asarray(size, pace.dtype), tree.norm(slope))
        return part.project(tree.add_scale(own, share, slope))

    def rows(part: Part | None, size: Array, own: PyTree, slope: PyTree) -> PyTree:
        if part is None:
            return None
        return jax.vmap(lambda own, slope: one(part, size, own, slope))(own, slope)

    return Play(
        rows(parts.context, sizes.context, play.context, slope.context),
        rows(parts.outcome, sizes.outcome, play.outcome, slope.outcome),
        one(parts.u, sizes.u, play.u, slope.u),
    )
