r"""Two sides that meet at a level, or stop at a bound; the search behind `olx.convex.balanced`.

Entries $\ell_r$ inside are raised to $R(L)$, others are lowered to $L$:
$a_r = (R(L) - \ell_r)_+$ inside and $a_s = (\ell_s - L)_+$ outside. $L$ is where both sums are
equal. If they exceed `total`, each side has a level of its own, where its sum is `total`, and $R$
is the identity. One search finds all three levels.
"""

import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float

from olx.convex.roots import root
from olx.core import Scalar


def meet(
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
