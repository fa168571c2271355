r"""The stages of gradient boosting: partial predictions, and what each copy pays.

From $y^0 = 0$ stage $i$ makes $y^i = \Pi_B(k_i\, y^{i-1} + e_i A^i(x))$, and its copy pays the
linear loss $a \mapsto \ell'(y^{i-1})\, a / L$. Copies see the row and this loss, not the outcome.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx.core import Feedback, Learner, Scalar
from olx.facts import AddsGradient, Facts, Linear, Rowwise, Separable
from olx.frameworks import copies
from olx.losses.score import ScoreLoss


class Stages(NamedTuple):
    votes: Float[Array, " n"]  # A^i(x)
    before: Float[Array, " n"]  # y^(i-1)
    raw: Float[Array, " n"]  # y^i before its projection
    after: Float[Array, " n"]  # y^i
    steps: Float[Array, " n"]  # e_i


@pytree
class Tangent:
    r"""What a copy pays, $\ell'(y)\, a / L$ for an action $a$, and the loss that it touches.

    A base learner that wants more than the slope, such as `greedy`, finds the rest here.
    """

    slope: Array
    offset: Array  # y
    scale: Scalar  # L
    loss: Partial  # l, a function of the whole prediction
    step: Array  # e, of this stage
    stage: Array  # from 0 to n - 1
    n: int = static()


def pay(tangent: Tangent, action: Array) -> Array:
    return tangent.slope * action / tangent.scale


def votes_of(owner: str, inner: Learner, states: PyTree, context: PyTree) -> Float[Array, " n"]:
    """The predictions of all copies; refuses base learners that do not predict a number."""
    votes = copies.act(inner, states, context)
    if not isinstance(votes, jax.Array) or votes.ndim != 1:
        seen = jax.tree.map(lambda leaf: jnp.shape(leaf)[1:], votes)
        raise TypeError(f"{owner}: {_PREDICTS}, got actions of shape {seen}; {_REMEDY}.")
    return votes


def climb(votes: Array, keep: Array, steps: Array, radius: Scalar | None = None) -> Stages:
    """All stages; without a `radius` there is no projection."""

    def stage(y: Array, one: tuple) -> tuple[Array, tuple]:
        vote, keep, step = one
        raw = keep * y + step * vote
        after = raw if radius is None else jnp.clip(raw, -radius, radius)
        return after, (y, raw, after)

    _, (before, raw, after) = lax.scan(stage, jnp.zeros_like(votes[0]), (votes, keep, steps))
    return Stages(votes, before, raw, after, steps)


def slopes_of(feedback: Feedback, stages: Stages) -> Float[Array, " n"]:
    return jax.vmap(jax.grad(feedback.loss))(stages.before)


def teach(
    owner: str,
    inner: Learner,
    states: PyTree,
    feedback: Feedback,
    stages: Stages,
    slopes: Float[Array, " n"],
    scale: Scalar,
) -> PyTree:
    """The states after each copy has paid its linear loss; refuses copies that read outcomes."""
    spread = lambda leaf: jnp.broadcast_to(leaf, (*slopes.shape, *jnp.shape(leaf)))
    shared = jax.tree.map(spread, feedback.loss)
    n, steep = slopes.size, spread(jnp.asarray(scale, slopes.dtype))
    tangents = Tangent(slopes, stages.before, steep, shared, stages.steps, jnp.arange(n), n)
    weights = spread(jnp.asarray(feedback.weight, slopes.dtype))
    learn = lambda told: copies.teach(
        inner, states, stages.votes, Partial(pay, tangents), told, weights
    )
    try:
        return learn(feedback._replace(outcome=None))
    except Exception as error:
        learn(feedback)  # raises the same error, unless the outcome is missing
        raise TypeError(
            f"{owner}: `inner` must learn from its loss alone, but it reads the outcome of the "
            "round; take a learner that uses the gradient, such as `olx.linear(olx.ogd(...))`."
        ) from error


def check_base(owner: str, inner: Any, n: Any) -> None:
    """Refuse a base learner that is none, and a number of copies that is none."""
    check.instance(owner, "inner", inner, Learner)
    check.size(owner, "n", n)
    point = isinstance(inner.facts.adds, AddsGradient)
    if point or isinstance(inner.facts.coordinates, Separable):
        raise TypeError(f"{owner}: {_PREDICTS}, got a point learner; {_REMEDY}.")


def check_played(owner: str, own: ScoreLoss, feedback: Feedback) -> None:
    """Refuse a game with another loss than the one that gave the constants."""
    is_loss = lambda leaf: isinstance(leaf, ScoreLoss)
    for played in jax.tree.leaves(feedback.loss, is_leaf=is_loss):
        if is_loss(played) and played.value_fn is not own.value_fn:
            raise TypeError(
                f"{owner}: the game is played with the loss `{_name(played)}`, but `loss` is "
                f"`{_name(own)}`, and its constants need not hold; give both the same loss."
            )


def facts_of(inner: Learner) -> Facts:
    """Copies of a predictor whose coordinates meet in sums over the row only do so too."""
    known = isinstance(inner.facts.coordinates, Linear | Rowwise) and inner.facts.refresh is None
    return Facts(coordinates=Rowwise() if known else None)


def _name(loss: ScoreLoss) -> str:
    return getattr(loss.value_fn, "__name__", "unnamed").lstrip("_")


_PREDICTS = "`inner` must predict a real number"
_REMEDY = "put a point learner into `olx.linear`, or into `olx.model`"
