r"""What a random projection costs: gradients in the norm of the sketch and in the full norm.

Let $\hat G_t$ have the rows $\hat g_1, \dots, \hat g_t$. If in every round
$(1 - \epsilon)\, \hat G_t^\top \hat G_t \preceq S_t^\top S_t$, then

$$\sum_{s \le t} g_s^\top A_s^{-1} g_s \le \frac{1}{1 - \epsilon} \sum_{s \le t} g_s^\top
  (\alpha I + \hat G_s^\top \hat G_s)^{-1} g_s.$$

The left side is the second term of `newton_regret`. The condition holds with probability at least
$1 - \delta$ for $m$ of the order of $(\text{rank} + \ln(T / \delta)) / \epsilon^2$; the account
checks it by eigenvalues. It keeps a matrix with one row and one column per coordinate, so this
theorem is for few coordinates.

Luo, Optimal and Adaptive Online Learning, 2016, theorem 17.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Scalar
from olx.second_order._sketched_step import SketchedNewtonHparams, SketchedNewtonState, step
from olx.second_order.random_projection import init as init_projection
from olx.theorem import About, Theorem, theorem

CLOSE = "the sketch must be at least 1 - `epsilon` times what it stands for"


class Account(NamedTuple):
    gram: Float[Array, "d d"]  # the sum of ghat ghat'
    sketched: Float[Array, ""]  # the sum of g'A^(-1) g
    full: Float[Array, ""]  # the same with the full matrix
    close: Bool[Array, ""]
    unit: Bool[Array, ""]


def projection_terms(epsilon: Scalar) -> Theorem:
    """The gradients in the norm of a random projection, against those in the full norm.

    epsilon: in [0, 1).
    """
    epsilon = check.between("projection_terms", "epsilon", epsilon, 0.0, 0.999999)
    parts = open_account, add_round, both_sides
    source = "Luo 2016, theorem 17"
    return theorem("projection_terms", source, *parts, epsilon, about=_PROJECTION)


def open_account(
    epsilon: Scalar, hp: SketchedNewtonHparams, state: SketchedNewtonState, u: PyTree
) -> Account:
    flat, _ = ravel_pytree(state.base)
    zero, yes = jnp.zeros((), flat.dtype), jnp.ones((), bool)
    return Account(jnp.zeros((flat.size, flat.size), flat.dtype), zero, zero, yes, yes)


def add_round(
    epsilon: Scalar,
    hp: SketchedNewtonHparams,
    account: Account,
    state: SketchedNewtonState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    now, (x, _) = step(hp, state, feedback), ravel_pytree(feedback.context)
    g, ghat = feedback.grad * x, now.ghat * x
    gram = account.gram + jnp.outer(ghat, ghat)
    rows = jax.vmap(lambda row: ravel_pytree(row)[0])(now.after.rows)
    rest = jnp.linalg.eigvalsh(rows.T @ rows - (1 - epsilon) * gram)[0]
    rounding = 64 * len(x) * jnp.finfo(x.dtype).eps * jnp.trace(gram)
    full = jnp.vdot(g, jnp.linalg.solve(gram + hp.alpha * jnp.eye(len(x), dtype=x.dtype), g))
    return Account(
        gram,
        account.sketched + now.energy,
        account.full + full,
        account.close & (rest >= -rounding),
        account.unit & (jnp.asarray(feedback.weight) == 1),
    )


def both_sides(
    epsilon: Scalar, hp: SketchedNewtonHparams, account: Account, u: PyTree
) -> Certificate:
    right = account.full / (1 - epsilon)
    proof = Certificate(account.sketched, right, 10 * (account.sketched + right))
    return proof.under({CLOSE: account.close, UNIT_WEIGHTS: account.unit})


def _is_projection(learner: Any) -> bool:
    hp = learner.hparams
    own = isinstance(hp, SketchedNewtonHparams)
    return own and hp.sketch.init_fn is init_projection


_PROJECTION = About("`sketched_newton` with a random projection", _is_projection)
