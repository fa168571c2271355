r"""Any convex loss of a mixture, for an expert learner that is told of its slope.

The learner plays a distribution $p_t$ and pays $f_t(p_t)$, convex in it; expert $i$ is charged with

$$\ell_{t,i} = \langle \nabla f_t(p_t), e_i - p_t \rangle,$$

the learner itself thus with 0. By convexity $f_t(p_t) - f_t(u) \le -\langle u, \ell_t \rangle$, so
what an expert learner guarantees against $u$ it guarantees for $f$: it competes with the best
mixture of experts, where on their own losses it competes with the best of them. Forecasts $x_t$
are combined to $\langle p_t, x_t \rangle$ by `olx.linear(linearized(...))`.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, section 2.5.
"""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Rounds
from olx.losses.points import linear_feedback
from olx.needs import Need, within
from olx.theorem import Theorem, theorem


def linearized(inner: Learner) -> Learner:
    r"""Let `inner` learn from the slope of the loss at what it plays.

    inner: any learner whose action is a distribution. The range of losses it is made for must
        hold the $\ell_{t,i}$: from $-B$ to $B$ for forecasts that lie within $B$ of each other and
        a loss of slope 1.

    Two forecasters whose errors cancel:

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.linear(linearized(olx.experts.ada_normal_hedge(low=-4.0, high=4.0)))
    >>> rounds = olx.Rounds(jnp.array([[1.0, -3.0]] * 200), jnp.zeros(200))
    >>> run = olx.rollout(learner, olx.losses.absolute, rounds, jnp.ones(2) / 2)
    >>> bool(run.losses[100:].mean() < 0.2)  # the better one alone loses 1
    True
    """
    check.instance("linearized", "inner", inner, Learner)
    needs = within(inner, None, "params", "weight")
    theorems = tuple(_on_slopes(one) for one in inner.theorems)
    return Learner(inner, init, predict, update, needs=needs, theorems=theorems)


def init(inner: Learner, params: PyTree) -> PyTree:
    return inner.init(params)


def predict(inner: Learner, state: PyTree, context: PyTree) -> PyTree:
    return inner.predict(state)


def update(inner: Learner, state: PyTree, feedback: Feedback) -> PyTree:
    return inner.update(state, _told(feedback))


def _on_slopes(one: Theorem) -> Theorem:
    """A theorem of the expert learner, on the losses that it is charged with."""
    return theorem(one.name, one.source, _open, _add, _sides, one, sequence=one.sequence)


def _ranges(inner: Learner) -> list[Need]:
    return [need for need in inner.needs if need.where == "outcome"]


def _open(one: Theorem, inner: Learner, state: PyTree, u: PyTree) -> tuple[PyTree, dict]:
    met = {need.demand: jnp.ones((), bool) for need in _ranges(inner)}
    return one.init_fn(inner.hparams, state, u), met


def _add(one: Theorem, inner: Learner, account: tuple, state: PyTree, feedback: Feedback, u):
    (own, met), told = account, _told(feedback)
    rounds = Rounds(None, jax.tree.map(lambda loss: loss[None], told.outcome))
    for need in _ranges(inner):
        legal = jax.tree.leaves(need.legal_fn(inner.hparams, None, rounds))
        here = jnp.all(jnp.stack([jnp.all(jnp.asarray(mask)) for mask in legal]))
        met = met | {need.demand: met[need.demand] & here}
    return one.add_fn(inner.hparams, own, state, told, u), met


def _sides(one: Theorem, inner: Learner, account: tuple, u: PyTree) -> Certificate:
    return one.sides_fn(inner.hparams, account[0], u).under(account[1])


def _told(feedback: Feedback) -> Feedback:
    p, slope = feedback.action, feedback.grad
    paid = tree.vdot(p, slope)
    losses = jax.tree.map(lambda leaf: leaf - paid, slope)
    return linear_feedback(p, losses, feedback.weight)
