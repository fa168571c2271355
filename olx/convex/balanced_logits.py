r"""The locally optimal update of label ranking for the entropy, without an interior-point method.

A label has the score $p_r \in (0, 1)$, the share of its weight on the words of the row. If its
dual variable is $a$, the logit $\ell_r$ of its score becomes $\ell_r \pm a / c$: plus for the
relevant labels $Y$. The best dual variables solve

$$\max_{a \ge 0}\; \gamma \sum_{r \in Y} a_r - c \sum_{r \in Y} \log(1 - p_r + p_r e^{a_r / c}) -
  c \sum_{s \notin Y} \log(1 - p_s + p_s e^{-a_s / c}), \qquad
  \sum_Y a_r = \sum_{not Y} a_s \le z.$$

While the bound $z$ is not reached, all relevant labels below a score $q + \gamma$ are raised to it
and all irrelevant ones above $q$ are lowered to it:

$$a_r = c\,(\mathrm{logit}(q + \gamma) - \ell_r)_+, \qquad
  a_s = c\,(\ell_s - \mathrm{logit}(q))_+,$$

and $q$ is where both sums are equal. If they exceed $z$, each side has its own level, and both are
projections of $c \ell$ on a simplex. So one number has to be found, in place of the Newton steps in
all variables of section 7.3.2 of Shalev-Shwartz, Online Learning: Theory, Algorithms, and
Applications, 2007, which find the same update.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import logit
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float

from olx.convex._levels import meet
from olx.core import Scalar


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
    a = c * meet(logit(scores), inside, total / c, Partial(_raised, margin), ceiling)
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
