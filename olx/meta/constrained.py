r"""A learner of the whole space, made to stay in a convex set.

The inner learner decides on any $z_t$; play the nearest point of the set, $x_t = \Pi(z_t)$. Where
the gradient pushes $z_t$ back to the set, the inner learner sees $g_t$. Else it sees $g_t$ without
the part along $z_t - x_t$, so that it has no reason to go farther out:

$$\hat g_t = g_t - \min\Big(0, \frac{\langle g_t, z_t - x_t\rangle}{\|z_t - x_t\|^2}\Big)\,
  (z_t - x_t).$$

$\hat g_t$ is no longer than $g_t$. For $u$ in the set $\langle z_t - x_t, x_t - u\rangle \ge 0$,
so

$$\sum_s \langle g_s, x_s - u\rangle \le \sum_s \langle \hat g_s, z_s - u\rangle,$$

which any theorem about the linear losses of the inner learner bounds. A set that is a product of
intervals is treated in each coordinate.

Cutkosky, Orabona, Black-Box Reductions for Parameter-free Online Learning in Banach Spaces, 2018,
section 4; Cutkosky, Parameter-free, Dynamic, and Strongly-Adaptive Online Learning, 2020, for this
gradient, which loses no factor of 2.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import DOMAIN, Certificate
from olx.convex.sets import ConvexSet
from olx.core import Feedback, Learner
from olx.facts import Facts, Separable
from olx.losses.points import linear_feedback
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs


@pytree
class ConstrainedHparams:
    inner: Learner
    domain: ConvexSet


class ConstrainedState(NamedTuple):
    inner: PyTree


@public
def constrained(inner: Learner, domain: ConvexSet) -> Learner:
    """Play the points of `domain` next to the decisions of `inner`.

    inner: a learner of points anywhere, such as `olx.first_order.pistol()`.
    domain: a set of `olx.convex.sets`.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.full((60, 2), -1.0))
    >>> learner = olx.meta.constrained(olx.first_order.pistol(), olx.convex.sets.simplex())
    >>> game = olx.losses.linear_loss, rounds, jnp.ones(2) / 2
    >>> olx.rollout(learner, *game).losses.round(6)[-1].item()
    -1.0
    """
    check.instance("inner", inner, Learner)
    check.instance("domain", domain, ConvexSet)
    apart = isinstance(inner.facts.coordinates, Separable) and domain.separable
    coordinates = inner.facts.coordinates if apart else None
    facts = Facts(coordinates=coordinates, scale_free=inner.facts.scale_free)
    theorems = (_regret(inner.theorems[0]),) if inner.theorems else ()
    hparams, needs = ConstrainedHparams(inner, domain), lift_needs(_VIEW, inner)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: ConstrainedHparams, params: PyTree) -> ConstrainedState:
    return ConstrainedState(hp.inner.init(params))


def predict(hp: ConstrainedHparams, state: ConstrainedState, context: PyTree) -> PyTree:
    return hp.domain.project(hp.inner.predict(state.inner, context))


def update(hp: ConstrainedHparams, state: ConstrainedState, feedback: Feedback) -> ConstrainedState:
    return ConstrainedState(hp.inner.update(state.inner, _told(hp, state, feedback)))


class Account(NamedTuple):
    inner: PyTree  # the account of the inner learner
    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute values of the terms of `left`


def open_account(hp: ConstrainedHparams, state: ConstrainedState, u: PyTree) -> Account:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(u)))
    return Account(_main(hp).init_fn(hp.inner.hparams, state.inner, u), zero, zero)


def add_round(
    hp: ConstrainedHparams, account: Account, state: ConstrainedState, feedback: Feedback, u: PyTree
) -> Account:
    told = _told(hp, state, feedback)
    inner = _main(hp).add_fn(hp.inner.hparams, account.inner, state.inner, told, u)
    g, size = tree.scale(feedback.weight, feedback.grad), lambda one: jax.tree.map(jnp.abs, one)
    left = account.left + tree.vdot(g, tree.sub(feedback.action, u))
    terms = tree.vdot(size(g), tree.add(size(feedback.action), size(u)))
    return Account(inner, left, account.size + terms)


def both_sides(hp: ConstrainedHparams, account: Account, u: PyTree) -> Certificate:
    proof = _main(hp).sides_fn(hp.inner.hparams, account.inner, u)
    size = proof.scale + account.size
    whole = Certificate(account.left, proof.right, size, proof.published)
    return whole.under(proof.conditions).given(DOMAIN, hp.domain.contains(u))


def _regret(one: Theorem) -> Theorem:
    source = f"Cutkosky, Orabona 2018; {one.source}"
    return Theorem("constrained_regret", source, open_account, add_round, both_sides)


def _main(hp: ConstrainedHparams) -> Theorem:
    """The first theorem of the inner learner, which is about its regret."""
    return hp.inner.theorems[0]


def _told(hp: ConstrainedHparams, state: ConstrainedState, feedback: Feedback) -> Feedback:
    """The feedback of the inner learner: a linear loss at its own decision."""
    z = hp.inner.predict(state.inner, feedback.context)
    beyond, g = tree.sub(z, hp.domain.project(z)), feedback.grad
    if hp.domain.separable:
        inward = jax.tree.map(lambda g, out: jnp.where(g * out < 0, 0.0, g), g, beyond)
    else:
        along, square = tree.vdot(g, beyond), tree.norm(beyond, squared=True)
        share = safe.divide(jnp.minimum(along, 0.0), square)
        inward = jax.tree.map(lambda g, out: g - share * out, g, beyond)
    return linear_feedback(z, inward, feedback.weight, feedback.context)


_VIEW = WrapperView(parts=("params", "context", "weight"))
