r"""Losses of a decision, over any pytree: linear, and the logarithm of a portfolio's return.

- linear: $\ell = \langle w, z \rangle$, the form in which a gradient learner sees any other loss;
  $\ell^*(\theta) = 0$ at $\theta = z$; 1-Lipschitz in the product;
- log loss: $\ell = -\log \langle w, r \rangle$ of price relatives $r > 0$; $\ell^*(\theta) = -1 -
  \log a$ at $\theta = -a r$, $a > 0$; 1-exp-concave, as $e^{-\ell}$ is linear in $w$, and not
  Lipschitz.

Elsewhere the conjugates are infinite.

Cover, Universal Portfolios, 1991.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _numeric as safe
from olx._call import Call
from olx._pytree import pytree, static
from olx.core import Feedback, Rounds, Scalar
from olx.needs import Need


@pytree
class PointLoss:
    r"""A loss of a decision; call it as `loss(action, outcome)`.

    lipschitz: $|\ell(w, z) - \ell(v, z)| \le L |\langle w - v, z\rangle|$, so that the constant in
        the decision is $L \|z\|_*$; None if there is no constant.
    exp_concavity: the largest $a$ for which $e^{-a \ell}$ is concave; None if there is none.
    """

    lipschitz: Scalar | None = None
    exp_concavity: Scalar | None = None
    value_fn: Callable[..., Array] = static(kw_only=True)  # (action, outcome)
    conjugate_fn: Callable[..., Array] = static(kw_only=True)  # (theta, outcome)
    needs: tuple[Need, ...] = static(kw_only=True, default=())  # its demands on outcomes
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def __call__(self, action: PyTree, outcome: PyTree) -> Array:
        return self.value_fn(action, outcome)

    def conjugate(self, theta: PyTree, outcome: PyTree) -> Array:
        r"""$\sup_w \langle\theta, w\rangle - \ell(w, z)$; infinite outside its domain."""
        return self.conjugate_fn(theta, outcome)


def linear_feedback(
    action: PyTree, outcome: PyTree, weight: Scalar, context: PyTree = None
) -> Feedback:
    """The feedback of a linear loss after `action`."""
    loss = Partial(_linear, outcome)  # the product is symmetric
    return Feedback(context, action, outcome, loss, linear_loss(action, outcome), outcome, weight)


def _linear(action: PyTree, outcome: PyTree) -> Array:
    r"""$\langle w, z \rangle$; with a distribution over experts, the expected loss."""
    return jnp.asarray(tree.vdot(action, outcome))


def _linear_conjugate(theta: PyTree, outcome: PyTree) -> Array:
    return jnp.where(_equal(theta, outcome), 0.0, jnp.inf)


def _log_loss(action: PyTree, outcome: PyTree) -> Array:
    r"""$-\log \langle w, r \rangle$ of a portfolio and price relatives."""
    return -jnp.log(tree.vdot(action, outcome))


def _log_loss_conjugate(theta: PyTree, outcome: PyTree) -> Array:
    a = -jnp.asarray(tree.vdot(theta, outcome)) / tree.vdot(outcome, outcome)
    inside = (a > 0) & _equal(theta, jax.tree.map(lambda r: -a * r, outcome))
    return jnp.where(inside, -1 - jnp.log(safe.or_one(a, inside)), jnp.inf)


def _are_prices(hparams: None, params: PyTree, rounds: Rounds) -> PyTree:
    return jax.tree.map(lambda price: (price >= 0) & (price < jnp.inf), rounds.outcome)


def _equal(theta: PyTree, other: PyTree) -> Array:
    """Whether two vectors are equal up to rounding."""
    (a, _), (b, _) = ravel_pytree(theta), ravel_pytree(other)
    slack = 16 * a.size * float(jnp.finfo(a.dtype).eps)
    return jnp.max(jnp.abs(a - b)) <= slack * jnp.max(jnp.abs(b))


linear_loss = PointLoss(
    name=Call("linear_loss"), lipschitz=1.0, value_fn=_linear, conjugate_fn=_linear_conjugate
)
log_loss = PointLoss(
    name=Call("log_loss"),
    exp_concavity=1.0,
    value_fn=_log_loss,
    conjugate_fn=_log_loss_conjugate,
    needs=(Need("outcome", _are_prices, "price relatives must be non-negative", "log_loss"),),
)
