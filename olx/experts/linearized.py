r"""Expert learners for any convex loss of a mixture: they get its gradient as losses.

The learner plays a distribution $p_t$ and pays $f_t(p_t)$, with $f_t$ convex. Expert $i$ loses

$$\ell_{t,i} = \langle \nabla f_t(p_t), e_i - p_t \rangle,$$

so the learner has the loss 0. By convexity $f_t(p_t) - f_t(u) \le -\langle u, \ell_t \rangle$, so
the regret bound of the expert learner to $u$ holds for $f$ too. The learner thus competes with the
best mixture of experts, not only with the best expert. `olx.linear(linearized(...))` combines
forecasts $x_t$ to $\langle p_t, x_t \rangle$.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, section 2.5.
"""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Rounds
from olx.facts import Facts
from olx.losses.points import linear_feedback
from olx.needs import Need
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs


@public
def linearized(inner: Learner) -> Learner:
    r"""Let `inner` learn from the gradient of the loss at its action.

    inner: any learner whose action is a distribution. Its range of losses must contain the
        $\ell_{t,i}$: from $-B$ to $B$ for forecasts that differ by at most $B$ and a loss of
        slope at most 1. `ml_poly` and `any_range` need no range.

    Two forecasters whose errors cancel:

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.linear(linearized(olx.experts.ada_normal_hedge(low=-4.0, high=4.0)))
    >>> rounds = olx.Rounds(jnp.array([[1.0, -3.0]] * 200), jnp.zeros(200))
    >>> run = olx.rollout(learner, olx.losses.absolute, rounds, jnp.ones(2) / 2)
    >>> bool(run.losses[100:].mean() < 0.2)  # the better one alone loses 1
    True
    """
    check.instance("inner", inner, Learner)
    needs = lift_needs(WrapperView(None, parts=("params", "weight")), inner)
    theorems = tuple(_on_slopes(one) for one in inner.theorems)
    facts = Facts(scale_free=inner.facts.scale_free)
    return Learner(inner, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(inner: Learner, params: PyTree) -> PyTree:
    return inner.init(params)


def predict(inner: Learner, state: PyTree, context: PyTree) -> PyTree:
    return inner.predict(state)


def update(inner: Learner, state: PyTree, feedback: Feedback) -> PyTree:
    return inner.update(state, _as_losses(feedback))


def _on_slopes(one: Theorem) -> Theorem:
    r"""A theorem of the expert learner, on the losses $\ell_{t,i}$."""
    parts = (Partial(part, one) for part in (_open, _add, _sides))
    return Theorem(one.name, one.source, *parts, sequence=one.sequence)


def _ranges(inner: Learner) -> list[Need]:
    return [need for need in inner.needs if need.where == "outcome"]


def _open(one: Theorem, inner: Learner, state: PyTree, u: PyTree) -> tuple[PyTree, dict]:
    met = {need.demand: jnp.ones((), bool) for need in _ranges(inner)}
    return one.init_fn(inner.hparams, state, u), met


def _add(
    one: Theorem, inner: Learner, account: tuple, state: PyTree, feedback: Feedback, u: PyTree
) -> tuple[PyTree, dict]:
    (own, met), losses = account, _as_losses(feedback)
    rounds = Rounds(None, jax.tree.map(lambda loss: loss[None], losses.outcome))
    for need in _ranges(inner):
        legal = jax.tree.leaves(need.legal_fn(inner.hparams, None, rounds))
        here = jnp.all(jnp.stack([jnp.all(jnp.asarray(mask)) for mask in legal]))
        met = met | {need.demand: met[need.demand] & here}
    return one.add_fn(inner.hparams, own, state, losses, u), met


def _sides(one: Theorem, inner: Learner, account: tuple, u: PyTree) -> Certificate:
    return one.sides_fn(inner.hparams, account[0], u).under(account[1])


def _as_losses(feedback: Feedback) -> Feedback:
    r"""The feedback of the expert learner, on the losses $\ell_{t,i}$."""
    p, slope = feedback.action, feedback.grad
    paid = tree.vdot(p, slope)
    losses = jax.tree.map(lambda leaf: leaf - paid, slope)
    return linear_feedback(p, losses, feedback.weight)
