r"""The locally optimal updates of label ranking: two sides that meet at a level.

`balanced` is the update in Euclidean space, the projection on two simplices of equal size,

$$\min_a \tfrac12 \|a - v\|^2 \quad\text{such that}\quad a \ge 0, \quad
  \sum_{i \in Y} a_i = \sum_{j \notin Y} a_j \le z.$$

Let $t_i = v_i$ inside $Y$ and $t_j = -v_j$ outside. While the bound $z$ is not reached, the
solution has one level $\theta$: $a_i = (t_i - \theta)_+$ inside and $a_j = (\theta - t_j)_+$
outside. The level is the zero of a decreasing piecewise linear function,

$$\sum_{i \in Y} (t_i - \theta)_+ = \sum_{j \notin Y} (\theta - t_j)_+,$$

whose knots are the numbers $t$. If its sums exceed $z$, each side is projected on the simplex of
size $z$ by itself. Merging both sides into one list of knots replaces the list of pairs of knots in
the source. `balanced_search` finds the same levels without a sort.

`balanced_logits` is the update for the entropy. A label has the score $p_r \in (0, 1)$, the share
of its weight on the words of the row. If its dual variable is $a$, the logit $\ell_r$ of its score
becomes $\ell_r \pm a / c$: plus for the relevant labels $Y$. The best dual variables solve

$$\max_{a \ge 0}\; \gamma \sum_{r \in Y} a_r - c \sum_{r \in Y} \log(1 - p_r + p_r e^{a_r / c}) -
  c \sum_{s \notin Y} \log(1 - p_s + p_s e^{-a_s / c}), \qquad
  \sum_Y a_r = \sum_{not Y} a_s \le z.$$

While the bound $z$ is not reached, all relevant labels below a score $q + \gamma$ are raised to it
and all irrelevant ones above $q$ are lowered to it:

$$a_r = c\,(\mathrm{logit}(q + \gamma) - \ell_r)_+, \qquad
  a_s = c\,(\ell_s - \mathrm{logit}(q))_+,$$

and $q$ is where both sums are equal. If they exceed $z$, each side has its own level, and both are
projections of $c \ell$ on a simplex. So one number has to be found, in place of the Newton steps in
all variables of the source, which find the same update.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, sections 7.3.1, where
the shift of the second vector is missing, and 7.3.2.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logit
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float

from olx import _numeric as safe
from olx.convex.roots import root
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
    return _meeting(jnp.where(inside, -v, v), inside, total, Partial(_same), jnp.inf)


def balanced_logits(
    scores: Float[Array, " k"],
    inside: Bool[Array, " k"],
    margin: Scalar,
    c: Scalar,
    total: Scalar = 1.0,
) -> Array:
    r"""The dual variables $a$ of the best update; 0 if no margin is violated.

    scores: strictly between 0 and 1.
    inside: the relevant labels; some, not all.
    margin: $\gamma$, below 1.

    >>> import jax.numpy as jnp
    >>> scores, inside = jnp.array([0.5, 0.4]), jnp.array([True, False])
    >>> a = balanced_logits(scores, inside, 0.6, 1.0)
    >>> [round(float(one), 4) for one in a]
    [1.0, 1.0]
    """
    dtype = scores.dtype
    margin, c, total = (jnp.asarray(number, dtype) for number in (margin, c, total))
    ceiling = logit(1 - margin)  # above it, no score is high enough for a relevant label
    a = c * _meeting(logit(scores), inside, total / c, Partial(_raised, margin), ceiling)
    least = jnp.min(jnp.where(inside, scores, 2.0))
    violated = least < margin + jnp.max(jnp.where(inside, -1.0, scores))
    return jnp.where(violated, a, 0.0)


def _raised(margin: Array, level: Array) -> Array:
    r"""$\mathrm{logit}(q + \gamma)$ of $q = \sigma($`level`$)$, or a large number."""
    q = jax.nn.sigmoid(level)
    legal = q + margin < 1
    inner = jnp.where(legal, q, (1 - margin) / 2)
    return jnp.where(legal, jnp.log(inner + margin) - jnp.log(1 - margin - inner), _LARGE)


_LARGE = 1e9  # larger than all sums of logits


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


def _meeting(
    ell: Float[Array, " k"],
    inside: Bool[Array, " k"],
    total: Float[Array, ""],
    raised: Partial,
    ceiling: Array | float,
) -> Array:
    """The raises and reductions; 0 if all or no entries are inside.

    raised: L -> R(L), increasing and finite.
    ceiling: no level lies above it.
    """
    inside = jnp.asarray(inside)
    proper = jnp.any(inside) & ~jnp.all(inside)
    most = jnp.finfo(ell.dtype).max
    top = jnp.where(proper, jnp.max(jnp.where(inside, -most, ell)), 0.0)
    bottom = jnp.where(proper, jnp.min(jnp.where(inside, ell, most)), 0.0)
    both = jnp.minimum(top, ceiling)
    low = jnp.stack([jnp.minimum(top - total, both - 1), bottom, top - total])
    high = jnp.stack([both, bottom + total, top])
    ends = lax.stop_gradient((low, high, low / 2 + high / 2))
    found = root(Partial(_excess, ell, inside, total, raised), *ends)
    meeting, own, other = found[0], found[1], found[2]
    a = _positive(jnp.where(inside, raised(meeting) - ell, ell - meeting))
    within = (_sum(a, inside) <= total) & (_sum(a, ~inside) <= total) & (meeting < ceiling)
    capped = _positive(jnp.where(inside, own - ell, ell - other))
    return jnp.where(proper, jnp.where(within, a, capped), 0.0)


def _excess(ell: Array, inside: Array, total: Scalar, raised: Partial, levels: Array) -> Array:
    """Per search, what is raised minus what is reduced; increasing in its level."""
    here, up = levels[:, None], jnp.where(jnp.arange(3) == 0, raised(levels), levels)[:, None]
    raises = jnp.sum(jnp.where(inside, _positive(up - ell), 0.0), axis=1)
    cuts = jnp.sum(jnp.where(inside, 0.0, _positive(ell - here)), axis=1)
    which = jnp.arange(3)
    plus, minus = jnp.where(which == 2, total, raises), jnp.where(which == 1, total, cuts)
    return plus - minus


def _positive(gap: Array) -> Array:
    return jnp.where(gap > 0, gap, 0.0)


def _sum(a: Array, where: Array) -> Array:
    return jnp.sum(jnp.where(where, a, 0.0))
