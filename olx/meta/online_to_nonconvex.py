r"""From online learning to losses that are not convex: the decisions of a learner are the steps.

The inner learner decides on a step $\Delta_t$. The gradient is taken at a random point of it,

$$x_t = x_{t-1} + \Delta_t, \qquad w_t = x_{t-1} + s_t \Delta_t, \qquad s_t \sim U[0, 1],$$

where $w_t$ is played, and the inner learner sees the linear loss of $g_t = \nabla \ell_t(w_t)$. The
loss changes along a step by $\int_0^1 \langle \nabla \ell_t(x_{t-1} + s \Delta_t), \Delta_t\rangle
ds$, so

$$d_t = \ell_t(x_t) - \ell_t(x_{t-1}) - \langle g_t, \Delta_t\rangle$$

has mean 0 given the past, for losses of any form that are the integral of their gradient. For every
step $u$

$$\sum_s \big(\ell_s(x_s) - \ell_s(x_{s-1}) - \langle g_s, u\rangle\big) = \sum_s \langle g_s,
  \Delta_s - u\rangle + \sum_s d_s,$$

the regret of the inner learner to $u$, and a sum of mean 0, which is computed here. For one loss,
steps of length at most $D$ and $u = -D \sum_s g_s / \|\sum_s g_s\|$,

$$D\, \Big\|\sum_{s \le T} g_s\Big\| \le \ell(x_0) - \ell(x_T) + \mathrm{regret} + \sum_s d_s:$$

the mean of gradients at points that are near each other is small, so the mean of these points is
almost stationary. Restart the inner learner in blocks, so that the points of a block are near.

Cutkosky, Mehta, Orabona, Optimal Stochastic Non-smooth Non-convex Optimization through
Online-to-Non-convex Conversion, 2023.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, UInt32
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner
from olx.facts import Facts
from olx.losses.points import linear_feedback
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs


@pytree
class NonconvexHparams:
    inner: Learner
    key: Array


class NonconvexState(NamedTuple):
    inner: PyTree
    x: PyTree  # the sum of the start and all steps
    round: UInt32[Array, ""]


@public
def online_to_nonconvex(inner: Learner, key: Array) -> Learner:
    """Make the decisions of `inner` the steps, and play a random point of each.

    inner: a learner of points that can start at 0, best in a small ball around it:
        `olx.ogd(eta, olx.convex.sets.ball(D))`. `olx.meta.restarts` of it begins new blocks.

    In `olx.certify`, `u` is a step. `olx.meta.average` of the result keeps the mean of the points.

    >>> import jax, jax.numpy as jnp, olx
    >>> learner = online_to_nonconvex(olx.ogd(0.1, olx.convex.sets.ball(0.1)), jax.random.key(0))
    >>> waves = lambda w, y: jnp.cos(w) + y * w
    >>> rounds = olx.Rounds(None, jnp.zeros(300))
    >>> run = olx.rollout(learner, waves, rounds, jnp.ones(()))
    >>> bool(abs(run.state.x - jnp.pi) < 1)
    True
    """
    check.instance("inner", inner, Learner)
    check.key(key)
    view = WrapperView(parts=("params", "context", "weight"), start_fn=tree.zeros_like)
    needs, facts = lift_needs(view, inner), Facts(scale_free=inner.facts.scale_free)
    theorems = (_regret(inner.theorems[0]),) if inner.theorems else ()
    hparams = NonconvexHparams(inner, key)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: NonconvexHparams, params: PyTree) -> NonconvexState:
    inner = hp.inner.init(tree.zeros_like(params))
    return NonconvexState(inner, params, jnp.zeros((), jnp.uint32))


def predict(hp: NonconvexHparams, state: NonconvexState, context: PyTree) -> PyTree:
    return _point(hp, state, hp.inner.predict(state.inner, context))


def update(hp: NonconvexHparams, state: NonconvexState, feedback: Feedback) -> NonconvexState:
    told = _told(hp, state, feedback)
    inner = hp.inner.update(state.inner, told)
    return NonconvexState(inner, tree.add(state.x, told.action), state.round + 1)


class Account(NamedTuple):
    inner: PyTree  # the account of the inner learner
    left: Float[Array, ""]
    drawn: Float[Array, ""]  # the sum of d
    size: Float[Array, ""]  # the sum of absolute values of the terms


def open_account(hp: NonconvexHparams, state: NonconvexState, u: PyTree) -> Account:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(u)))
    return Account(_main(hp).init_fn(hp.inner.hparams, state.inner, u), zero, zero, zero)


def add_round(
    hp: NonconvexHparams, account: Account, state: NonconvexState, feedback: Feedback, u: PyTree
) -> Account:
    """What the action costs beyond the random point is added to the left side; it is 0."""
    told, absolute = _told(hp, state, feedback), lambda one: jax.tree.map(jnp.abs, one)
    step, g = told.action, tree.scale(feedback.weight, feedback.grad)
    inner = _main(hp).add_fn(hp.inner.hparams, account.inner, state.inner, told, u)
    losses = jnp.stack([feedback.loss(tree.add(state.x, step)), -feedback.loss(state.x)])
    losses, point = feedback.weight * losses, _point(hp, state, step)
    beyond = tree.vdot(g, tree.sub(feedback.action, point))
    points = tree.add(tree.add(absolute(feedback.action), absolute(point)), absolute(u))
    terms = tree.vdot(absolute(g), tree.add(points, absolute(step)))
    return Account(
        inner,
        account.left + jnp.sum(losses) - tree.vdot(g, u) + beyond,
        account.drawn + jnp.sum(losses) - tree.vdot(g, step),
        account.size + jnp.sum(jnp.abs(losses)) + terms,
    )


def both_sides(hp: NonconvexHparams, account: Account, u: PyTree) -> Certificate:
    proof = _main(hp).sides_fn(hp.inner.hparams, account.inner, u)
    size = proof.scale + account.size
    return Certificate(account.left, proof.right + account.drawn, size).under(proof.conditions)


def _regret(one: Theorem) -> Theorem:
    source = f"Cutkosky, Mehta, Orabona 2023; {one.source}"
    return Theorem("descent_by_steps", source, open_account, add_round, both_sides)


def _main(hp: NonconvexHparams) -> Theorem:
    """The first theorem of the inner learner, which is about its regret."""
    return hp.inner.theorems[0]


def _told(hp: NonconvexHparams, state: NonconvexState, feedback: Feedback) -> Feedback:
    """The feedback of the inner learner: a linear loss at its step."""
    step = hp.inner.predict(state.inner, feedback.context)
    return linear_feedback(step, feedback.grad, feedback.weight, feedback.context)


def _point(hp: NonconvexHparams, state: NonconvexState, step: PyTree) -> PyTree:
    """The random point of the step."""
    kind = jnp.result_type(*jax.tree.leaves(state.x))
    share = jax.random.uniform(jax.random.fold_in(hp.key, state.round), (), kind)
    return jax.tree.map(lambda x, step: x + share * step, state.x, step)
