r"""Losses of a decision, over any pytree: linear, and the logarithm of a portfolio's return.

The linear loss $\langle w, z \rangle$ is all that a gradient learner sees of any other; its
conjugate is finite at $z$ alone. The log loss $-\log \langle w, r \rangle$ of price relatives
$r > 0$ is 1-exp-concave: $e^{-\ell}$ is linear in $w$.

Cover, Universal Portfolios, 1991.
"""

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx.core import Feedback, Scalar


def linear(action: PyTree, outcome: PyTree) -> Array:
    r"""$\langle w, z \rangle$; with a distribution over experts, the expected loss."""
    return jnp.asarray(tree.vdot(action, outcome))


def log_loss(action: PyTree, outcome: PyTree) -> Array:
    r"""$-\log \langle w, r \rangle$ of a portfolio `action` and price relatives `outcome`."""
    return -jnp.log(tree.vdot(action, outcome))


def linear_feedback(
    action: PyTree, outcome: PyTree, weight: Scalar, context: PyTree = None
) -> Feedback:
    """What a learner is told of a linear loss after it played `action`."""
    loss = Partial(linear, outcome)  # symmetric in both
    return Feedback(context, action, outcome, loss, linear(action, outcome), outcome, weight)
