r"""What frequent directions lose, against the best approximations of the gradients of low rank.

Let $\lambda_1 \ge \lambda_2 \ge \dots$ be the eigenvalues of $\sum_{s \le t} \hat g_s \hat
g_s^\top$ and $\Omega_j = \sum_{i > j} \lambda_i$. The trace that the sketch loses is

$$\Delta_t \le \min_{j < m} \frac{m\, \Omega_j}{m - j},$$

and `best_rank_regret` is `directions_regret` with this in place of $\Delta_t$: the regret is small
if the gradients are close to a space of fewer than $m$ dimensions. Without epochs $\Delta_t / m$ is
the sum of all $\rho_s$.

The accounts keep a matrix with one row and one column per coordinate, so these theorems are for few
coordinates. Ask for them by `olx.certify(learner, run, u, theorems=...)`.

Luo, Optimal and Adaptive Online Learning, 2016, theorem 18; Ghashami, Liberty, Phillips, Woodruff,
Frequent Directions: Simple and Deterministic Matrix Sketching, 2016.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx._refusal import public
from olx.core import Feedback
from olx.second_order import _slab
from olx.second_order.frequent_directions import Account as Regret
from olx.second_order.frequent_directions import bound
from olx.second_order.frequent_directions import start as first_regret
from olx.second_order.frequent_directions import terms as regret_terms
from olx.second_order.sketch import WHOLE
from olx.second_order.sketched_newton import SketchedNewtonHparams, SketchedNewtonState, step
from olx.theorem import About, Certificate, Theorem, summed


class Account(NamedTuple):
    inner: Regret
    gram: Float[Array, "d d"]  # the sum of ghat ghat'


@public
def best_rank_regret() -> Theorem:
    """The regret by the spectrum of the gradients."""
    parts = terms, regret_sides, start
    return summed("best_rank_regret", "Luo 2016, theorem 18", *parts, about=_DIRECTIONS)


@public
def lost_trace() -> Theorem:
    """The trace lost by the sketch, over m, by the spectrum of the gradients."""
    parts = terms, trace_sides, start
    return summed("lost_trace", "Ghashami et al. 2016", *parts, about=_DIRECTIONS)


def start(hp: SketchedNewtonHparams, state: SketchedNewtonState, u: PyTree) -> Account:
    flat, _ = ravel_pytree(state.base)
    return Account(first_regret(hp, state, u), jnp.zeros((flat.size, flat.size), flat.dtype))


def terms(
    hp: SketchedNewtonHparams, state: SketchedNewtonState, feedback: Feedback, u: PyTree
) -> Account:
    x, _ = ravel_pytree(feedback.context)
    g = step(hp, state, feedback).ghat * x
    return Account(regret_terms(hp, state, feedback, u), jnp.outer(g, g))


def regret_sides(hp: SketchedNewtonHparams, account: Account, u: PyTree) -> Certificate:
    inner, steps = account.inner, _slab.steps(hp.slab, account.inner.slab)
    lost, rows = hp.sketch.size * _most(hp, account), account.inner.rows + 1
    right = bound(hp, inner, lost, rows, steps)
    return _slab.sides(inner.slab, right).given(WHOLE, inner.whole)


def trace_sides(hp: SketchedNewtonHparams, account: Account, u: PyTree) -> Certificate:
    size = 10 * hp.sketch.size * jnp.trace(account.gram)
    return Certificate(account.inner.lost / hp.sketch.size, _most(hp, account), size)


def _most(hp: SketchedNewtonHparams, account: Account) -> Array:
    """The least Omega_j / (m - j)."""
    m, values = hp.sketch.size, jnp.linalg.eigvalsh(account.gram)
    tails = jnp.maximum(jnp.cumsum(values)[::-1], 0.0)  # Omega_0, Omega_1, ...
    tails = jnp.concatenate([tails, jnp.zeros_like(tails[:1])])[:m]
    return jnp.min(tails / (m - jnp.arange(len(tails), dtype=tails.dtype)))


def _is_directions(learner: Any) -> bool:
    own = [one.name for one in learner.theorems]
    return isinstance(learner.hparams, SketchedNewtonHparams) and "directions_regret" in own


_DIRECTIONS = About("`sketched_newton` with frequent directions", _is_directions)
