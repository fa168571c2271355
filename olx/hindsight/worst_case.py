r"""The worst regret of a learner over a few rounds, found by gradient ascent on the stream.

$$\max_{y_1, \dots, y_T \in Y} \; \max_{u \in U} \; \sum_{t \le T} \ell(a_t, y_t) - \ell(u, y_t).$$

The actions $a_t$ depend on the stream through the learner, and `rollout` is differentiable. So the
stream and the comparator climb together: each part of each round takes a step of a given length
along its gradient and is projected back to its set. Many searches run at once, from random streams.

The problem is not concave. What is found is a stream, so its regret is a *lower* bound on the worst
regret. `exact_worst_case` gives the exact value for some learners.

Drori, Teboulle, Performance of First-Order Methods for Smooth Convex Minimization: A Novel
Approach, 2014.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _safe as safe
from olx._pytree import as_tree, pytree
from olx.certificate import Certificates
from olx.convex.sets import ConvexSet
from olx.core import Learner, Scalar
from olx.engine.arguments import check_game
from olx.engine.certify import certify
from olx.engine.explain import errors_explained
from olx.engine.rollout import rollout
from olx.frameworks.lift import LiftHparams
from olx.hindsight.ascent import Climb, Game, Play, ascend, is_whole, rounds_of, starts_of
from olx.hindsight.regret import comparator_losses, itself, regret
from olx.hindsight.stream_sets import Part, StreamSet
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
        `olx.streams.adversaries` makes an adversary of them.
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
    owner = "worst_case"
    check.count(owner, "rounds", rounds)
    check.instance(owner, "streams", streams, StreamSet)
    check.instance(owner, "comparators", comparators, ConvexSet)
    check.takes(owner, "apply", apply, "u", "context")
    check_game(owner, learner, streams.loss)
    check_params(owner, params)
    check.count(owner, "searches", searches)
    check.count(owner, "steps", steps)
    pace = check.positive(owner, "pace", pace)
    key = jax.random.key(0) if key is None else key
    check.key(owner, key)
    params = jax.tree.map(jnp.asarray, params)
    u = Part(comparators.project, None, comparators.bounded)
    parts = Play(streams.context, streams.outcome, u)
    starts, sizes = starts_of(owner, parts, params, rounds, searches, key)
    _check_needs(learner, streams, params, starts)
    game = Game(learner, streams.loss, as_tree(apply), params)
    first = rounds_of(jax.tree.map(lambda leaf: leaf[0], starts))
    with errors_explained(owner, learner, streams.loss, params, first):
        jax.eval_shape(lambda u: comparator_losses(streams.loss, first, u, apply), params)
        climb = ascend(game, parts, starts, sizes, pace, steps)
    _refuse(learner, params, climb)
    best = jax.tree.map(lambda leaf: leaf[jnp.argmax(climb.value)], climb.play)
    found = Stream(rounds_of(best), best.u)
    run = rollout(learner, streams.loss, found.rounds, params, record=trace)
    reached = regret(run, streams.loss, found.rounds, best.u, apply)[-1]
    if theorems is None:
        theorems = tuple(one for one in learner.theorems if not one.sequence)
    proofs = certify(learner, run, best.u, theorems=theorems) if theorems else None
    return WorstCase(reached, found, climb.value, proofs)


def _check_needs(learner: Learner, streams: StreamSet, params: PyTree, starts: Play) -> None:
    """Refuse a set with streams that the learner or the loss does not take."""
    if streams.context is None and isinstance(learner.hparams, LiftHparams):
        raise TypeError(
            "worst_case: the learner predicts from rows, and the rounds of `streams` have no "
            "context; give `score_losses` or `label_losses`."
        )
    flat = lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:])
    rows = jax.tree.map(flat, rounds_of(starts))
    try:
        judge("worst_case", needs_of(learner, streams.loss), params, rows)
    except ValueError as error:
        raise ValueError(
            f"{error} This is a row of a stream of `streams`; make its sets smaller."
        ) from error


def _refuse(learner: Learner, params: PyTree, climb: Climb) -> None:
    """Refuse searches whose gradients say nothing about the regret."""
    for name, seen in zip(_integers(learner, params), climb.integers, strict=True):
        if not np.all(seen == seen[:1, :1]):
            raise TypeError(
                f"worst_case: {name} of the state of the learner is an integer that depends on the "
                "stream, and no gradient passes through it; play all streams of a small set with "
                "`olx.rollout`, or an adversary of `olx.streams` with `olx.play`."
            )
    if not np.all(climb.finite):
        count, total = int(np.sum(~climb.finite)), climb.finite.size
        raise ValueError(
            f"worst_case: {count} of {total} searches diverge: the regret or its gradient is not "
            "finite. Give smaller sets, on which the loss is finite, or a smaller step size of the "
            "learner."
        )
    if not np.any(climb.moves):
        raise ValueError(
            "worst_case: the regret has gradient 0 at every first stream, so the search cannot "
            "climb; give a loss with a slope, as `olx.losses.hinge` in place of `zero_one`."
        )


def _integers(learner: Learner, params: PyTree) -> list[str]:
    """The names of the parts of the state that no gradient passes through."""
    state = jax.tree_util.tree_leaves_with_path(jax.eval_shape(learner.init, params))
    return [f"`state{jax.tree_util.keystr(path)}`" for path, leaf in state if is_whole(leaf)]
