r"""The projection on two simplices of equal size, by a sort or by a search.

$$\min_a \tfrac12 \|a - v\|^2 \quad\text{such that}\quad a \ge 0, \quad
  \sum_{i \in Y} a_i = \sum_{j \notin Y} a_j \le z.$$

Let $t_i = v_i$ inside $Y$ and $t_j = -v_j$ outside. While the bound $z$ is not reached, the
solution has one level $\theta$: $a_i = (t_i - \theta)_+$ inside and $a_j = (\theta - t_j)_+$
outside. The level is the zero of a decreasing piecewise linear function,

$$\sum_{i \in Y} (t_i - \theta)_+ = \sum_{j \notin Y} (\theta - t_j)_+,$$

whose knots are the numbers $t$. If its sums exceed $z$, each side is projected on the simplex of
size $z$ by itself. This is the locally optimal update of label ranking in Euclidean space. Merging
both sides into one list of knots replaces the list of pairs of knots in the source.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 7.3.1, where
the shift of the second vector is missing.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float

from olx import _numeric as safe
from olx.convex._levels import meet
from olx.core import Scalar


def balanced(v: Float[Array, " k"], inside: Bool[Array, " k"], total: Scalar = 1.0) -> Array:
    r"""The projection on $\{a \ge 0, \sum_Y a = \sum_{not Y} a \le$ `total`$\}$, by one sort.

    inside: whether each entry belongs to $Y$. If all or none do, the projection is 0.

    >>> import jax.numpy as jnp
    >>> v, inside = jnp.array([1.0, 0.25, 0.0, -2.0]), jnp.array([True, False, False, False])
    >>> balanced(v, inside).tolist()
    [0.75, 0.5, 0.25, 0.0]
    """
    t = jnp.where(inside, v, -v)
    fixed = lax.stop_gradient(t)
    order = jnp.argsort(fixed)
    own, ranked = inside[order], fixed[order]
    cut = lambda mask: jnp.cumsum(jnp.where(mask, ranked, 0.0))
    count = lambda mask: jnp.cumsum(jnp.where(mask, jnp.ones_like(ranked), 0.0))
    above = (cut(own)[-1] - cut(own)) - ranked * (count(own)[-1] - count(own))
    below = ranked * count(~own) - cut(~own)
    last = jnp.maximum(jnp.sum(above >= below) - 1, 0)  # the function decreases
    later = jnp.zeros_like(inside).at[order].set(jnp.arange(t.size) > last)
    active = jnp.where(inside, later, ~later)
    level = _mean(t, active, ranked[last])
    return _capped(v, inside, level, total)


def balanced_search(v: Float[Array, " k"], inside: Bool[Array, " k"], total: Scalar = 1.0) -> Array:
    """The same projection without a sort, so that XLA can compile a loop of rounds as one kernel.

    A safeguarded Newton method finds the levels. The functions are piecewise linear, so it ends on
    the piece of the solution, where one step is exact.

    >>> import jax.numpy as jnp
    >>> v, inside = jnp.array([3.0, 0.25, 0.75, -2.0]), jnp.array([True, False, False, False])
    >>> [round(float(one), 4) for one in balanced_search(v, inside)]
    [1.0, 0.25, 0.75, 0.0]
    """
    total = jnp.asarray(total, v.dtype)
    return meet(jnp.where(inside, -v, v), inside, total, Partial(_same), jnp.inf)


def _capped(v: Array, inside: Array, level: Array, total: Scalar) -> Array:
    """The solution of a level or, if its sums exceed `total`, two simplices of this size."""
    total = jnp.asarray(total, v.dtype)
    a = jnp.where(inside, v - level, v + level)
    a = jnp.where(a > 0, a, 0.0)
    within = jnp.sum(jnp.where(inside, a, 0.0)) <= total
    return jnp.where(within, a, _simplex(v, inside, total) + _simplex(v, ~inside, total))


def _simplex(v: Array, member: Array, total: Scalar) -> Array:
    fixed = lax.stop_gradient(jnp.where(member, v, jnp.finfo(v.dtype).min))
    ranked = jnp.sort(fixed)[::-1]
    ranks = jnp.arange(1, v.size + 1, dtype=v.dtype)
    own = ranks <= jnp.sum(jnp.where(member, jnp.ones_like(v), 0.0))
    shifted = jnp.where(own, ranked - ranked[0], 0.0)  # the same support, without cancellation
    kept = jnp.sum(own & (shifted * ranks > jnp.cumsum(shifted) - lax.stop_gradient(total)))
    active = member & (fixed >= ranked[jnp.maximum(kept - 1, 0)])
    return _over(v, active, total)


def _over(v: Array, active: Array, total: Scalar) -> Array:
    """Subtract one number from the active entries so that they sum to `total`; 0 elsewhere."""
    count = jnp.sum(jnp.where(active, jnp.ones_like(v), 0.0))
    level = safe.divide(jnp.sum(jnp.where(active, v, 0.0)) - total, count)
    a = v - level
    return jnp.where(active & (a > 0), a, 0.0)


def _mean(t: Array, active: Array, otherwise: Array) -> Array:
    count = jnp.sum(jnp.where(active, jnp.ones_like(t), 0.0))
    return safe.divide(jnp.sum(jnp.where(active, t, 0.0)), count, otherwise)


def _same(level: Array) -> Array:
    return level
