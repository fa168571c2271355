r"""Losses of the margin $y s$ whose conjugates are entropies, for labels $y = \pm 1$.

With $\alpha = -\tau y$:

- logistic: $\ell = \log(1 + e^{-y s})$,
  $\ell^* = \alpha \log \alpha + (1 - \alpha) \log(1 - \alpha)$ on $0 \le \alpha \le 1$;
  1-Lipschitz and self-bounded;
- exponential: $\ell = e^{-y s}$, $\ell^* = \alpha \log \alpha - \alpha$ on $\alpha \ge 0$; neither.

The logistic slope has size $p = 1 - e^{-\ell}$, and $p^2 / (2 \ell)$ is largest where
$1 + 2 \ell = e^\ell$: there $\ell = 1.25643...$ and the self-bounding constant is
$p(1 - p) = 0.20363...$

Its proximal map has no closed form. In the margin $m$ it is the root of
$m - m_0 = c\,\sigma(-m)$, found by Newton's method inside a bracket; the derivative is implicit,
$dm = (dm_0 + \sigma(-m)\,dc) / (1 + c\,\sigma(m)\sigma(-m))$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, sections 6.1 and A.3.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import entr

from olx.losses.score import ScoreLoss

_SELF_BOUND = 0.2036321887945369
_STEPS = 60


def _logistic(_, score, label):
    return jax.nn.softplus(-label * score)


def _logistic_conjugate(_, tau, label):
    alpha = -tau * label
    inside = (alpha >= 0) & (alpha <= 1)
    safe = jnp.where(inside, alpha, 0.5)
    return jnp.where(inside, -entr(safe) - entr(1 - safe), jnp.inf)


def _logistic_prox(_, step, center, label):
    return label * _margin(step, label * center)


def _exponential(_, score, label):
    return jnp.exp(-label * score)


def _exponential_conjugate(_, tau, label):
    alpha = -tau * label
    safe = jnp.where(alpha >= 0, alpha, 1.0)
    return jnp.where(alpha >= 0, -entr(safe) - safe, jnp.inf)


@jax.custom_jvp
def _margin(step, start):
    """The root of m - start = step * sigmoid(-m), which lies between start and start + step."""

    def narrow(_, search):
        low, high, m = search
        p = jax.nn.sigmoid(-m)
        excess = m - start - step * p
        low, high = jnp.where(excess < 0, m, low), jnp.where(excess < 0, high, m)
        newton = m - excess / (1 + step * p * (1 - p))
        return low, high, jnp.where((low < newton) & (newton < high), newton, (low + high) / 2)

    low, high = start + 0 * step, start + step
    return lax.fori_loop(0, _STEPS, narrow, (low, high, low))[2]


@_margin.defjvp
def _margin_jvp(primals, tangents):
    step, start = primals
    m = _margin(step, start)
    p = jax.nn.sigmoid(-m)
    return m, (tangents[1] + p * tangents[0]) / (1 + step * p * (1 - p))


logistic = ScoreLoss(
    lipschitz=1.0,
    self_bound=_SELF_BOUND,
    value_fn=_logistic,
    conjugate_fn=_logistic_conjugate,
    prox_fn=_logistic_prox,
)
exponential = ScoreLoss(value_fn=_exponential, conjugate_fn=_exponential_conjugate)
