r"""Two learners for one decision: its direction, in the unit ball, and its magnitude, a number.

$$w_t = w_1 + z_t\, y_t, \qquad \|y_t\| \le 1.$$

The direction sees the gradient $g_t$, and the magnitude the slope $\langle g_t, y_t\rangle$. With
$v = u - w_1$, for every $u$,

$$\sum_s \langle g_s, w_s - u\rangle = \sum_s \langle g_s, y_s\rangle (z_s - \|v\|) + \|v\| \sum_s
  \Big\langle g_s, y_s - \frac v{\|v\|}\Big\rangle,$$

the regret of the magnitude to $\|v\|$, and $\|v\|$ times the regret of the direction to that of
$v$. So a bettor of one number becomes a learner of any dimension, whose bound depends on the norm
of $u$ and not on the coordinates.

Cutkosky, Orabona, Black-Box Reductions for Parameter-free Online Learning in Banach Spaces, 2018,
theorem 2.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.convex.sets import ball
from olx.core import Feedback, Learner
from olx.facts import Facts
from olx.frameworks.scale_free import scale_free
from olx.losses.points import linear_feedback
from olx.mirrors.euclidean import euclidean
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs


@pytree
class DirectionHparams:
    magnitude: Learner
    direction: Learner


class DirectionState(NamedTuple):
    start: PyTree
    magnitude: PyTree
    direction: PyTree


@public
def direction_and_magnitude(magnitude: Learner, direction: Learner | None = None) -> Learner:
    """Learn the direction and the size of the decision apart, starting at `params`.

    magnitude: a learner of one number, such as `olx.first_order.freegrad()`.
    direction: a learner of points in the Euclidean unit ball; if None, `olx.scale_free` on it.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.tile(jnp.array([3.0, -4.0]), (40, 1)))
    >>> learner = olx.meta.direction_and_magnitude(olx.first_order.freegrad())
    >>> game = olx.losses.linear_loss, rounds, jnp.zeros(2), jnp.array([-6.0, 8.0])
    >>> bool(olx.certify(learner, *game, progress=False).holds)
    True
    """
    direction = scale_free(euclidean(ball(1.0))) if direction is None else direction
    check.instance("magnitude", magnitude, Learner)
    check.instance("direction", direction, Learner)
    both = magnitude, direction
    starts = {"magnitude": _zero, "direction": tree.zeros_like}
    needs = [
        lift_needs(WrapperView(field, parts=("params", "weight"), start_fn=start), one)
        for (field, start), one in zip(starts.items(), both, strict=True)
    ]
    facts = Facts(scale_free=all(one.facts.scale_free for one in both))
    theorems = (_regret(*both),) if all(one.theorems for one in both) else ()
    hparams = DirectionHparams(*both)
    return Learner(
        hparams, init, predict, update, facts=facts, needs=sum(needs, ()), theorems=theorems
    )


def init(hp: DirectionHparams, params: PyTree) -> DirectionState:
    magnitude, direction = hp.magnitude.init(_zero(params)), tree.zeros_like(params)
    return DirectionState(params, magnitude, hp.direction.init(direction))


def _zero(params: PyTree) -> Array:
    return jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))


def predict(hp: DirectionHparams, state: DirectionState, context: PyTree) -> PyTree:
    z, y = hp.magnitude.predict(state.magnitude), hp.direction.predict(state.direction)
    return jax.tree.map(lambda start, y: start + z * y, state.start, y)


def update(hp: DirectionHparams, state: DirectionState, feedback: Feedback) -> DirectionState:
    size, towards = _told(hp, state, feedback)
    return DirectionState(
        state.start,
        hp.magnitude.update(state.magnitude, size),
        hp.direction.update(state.direction, towards),
    )


class Account(NamedTuple):
    magnitude: PyTree  # the accounts of both learners
    direction: PyTree
    length: Float[Array, ""]  # of u - w_1
    towards: PyTree  # the direction of u - w_1
    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute values of the terms of `left`


def open_account(hp: DirectionHparams, state: DirectionState, u: PyTree) -> Account:
    v = tree.sub(check.comparator(u, state.start), state.start)
    length = safe.sqrt(tree.norm(v, squared=True))
    towards = jax.tree.map(lambda leaf: safe.divide(leaf, length), v)
    zero, both = jnp.zeros_like(length), (hp.magnitude, hp.direction)
    parts = zip(both, state[1:], (length, towards), strict=True)
    first, second = (_main(one).init_fn(one.hparams, own, to) for one, own, to in parts)
    return Account(first, second, length, towards, zero, zero)


def add_round(
    hp: DirectionHparams, account: Account, state: DirectionState, feedback: Feedback, u: PyTree
) -> Account:
    size, towards = _told(hp, state, feedback)
    add = lambda one, *rest: _main(one).add_fn(one.hparams, *rest)
    g, absolute = tree.scale(feedback.weight, feedback.grad), lambda one: jax.tree.map(jnp.abs, one)
    terms = tree.vdot(absolute(g), tree.add(absolute(feedback.action), absolute(u)))
    return account._replace(
        magnitude=add(hp.magnitude, account.magnitude, state.magnitude, size, account.length),
        direction=add(hp.direction, account.direction, state.direction, towards, account.towards),
        left=account.left + tree.vdot(g, tree.sub(feedback.action, u)),
        size=account.size + terms,
    )


def both_sides(hp: DirectionHparams, account: Account, u: PyTree) -> Certificate:
    sides = lambda one, *rest: _main(one).sides_fn(one.hparams, *rest)
    first = sides(hp.magnitude, account.magnitude, account.length)
    second = sides(hp.direction, account.direction, account.towards)
    times = lambda side: jnp.where(account.length > 0, account.length * side, 0.0)
    scale = account.size + first.scale + times(second.scale)
    proof = Certificate(account.left, first.right + times(second.right), scale)
    if first.published is not None and second.published is not None:
        published = first.published + times(second.published)
        proof = dataclasses.replace(proof, published=published)
    return proof.under(first.conditions).under(second.conditions)


def _regret(magnitude: Learner, direction: Learner) -> Theorem:
    source = f"Cutkosky, Orabona 2018; {_main(magnitude).source}; {_main(direction).source}"
    return Theorem("product_regret", source, open_account, add_round, both_sides)


def _main(learner: Learner) -> Theorem:
    """The first theorem of a learner, which is about its regret."""
    return learner.theorems[0]


def _told(
    hp: DirectionHparams, state: DirectionState, feedback: Feedback
) -> tuple[Feedback, Feedback]:
    """The feedback of the magnitude and of the direction: linear losses."""
    z, y = hp.magnitude.predict(state.magnitude), hp.direction.predict(state.direction)
    slope = jnp.asarray(tree.vdot(feedback.grad, y))
    weight = feedback.weight
    return linear_feedback(z, slope, weight), linear_feedback(y, feedback.grad, weight)
