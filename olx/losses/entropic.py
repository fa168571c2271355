r"""Losses of the margin $y s$ whose conjugates are entropies, for labels $y = \pm 1$.

With $\alpha = -\tau y$:

- logistic: $\ell = \log(1 + e^{-y s})$,
  $\ell^* = \alpha \log \alpha + (1 - \alpha) \log(1 - \alpha)$ on $0 \le \alpha \le 1$;
  1-Lipschitz and self-bounded;
- exponential: $\ell = e^{-y s}$, $\ell^* = \alpha \log \alpha - \alpha$ on $\alpha \ge 0$; neither.

Cross-entropy is the logistic loss of a vector of scores, one per class, and a label $y \in \{0,
\dots, k - 1\}$: $\ell = \log \sum_r e^{s_r} - s_y$, $\ell^* = \sum_r p_r \log p_r$ for $p = \tau +
e_y$ in the simplex. Its slope is $p - e_y$ with the probabilities $p \propto e^s$, whose square is
at most $2 (1 - p_y)^2$: $\sqrt2$-Lipschitz, and self-bounded with twice the constant of the
logistic loss. Its proximal map is that of $\log \sum_r e^{s_r}$ at $v + c\,e_y$
(`olx.convex.soft_shares`).

The logistic slope has size $p = 1 - e^{-\ell}$, and $p^2 / (2 \ell)$ is largest where
$1 + 2 \ell = e^\ell$: there $\ell = 1.25643...$ and the self-bounding constant is
$p(1 - p) = 0.20363...$

Its proximal map has no closed form. In the margin $m$ it is the root of
$m - m_0 = c\,\sigma(-m)$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, sections 6.1 and A.3.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import entr, logsumexp
from jaxtyping import Array, PyTree

from olx import _numeric as safe
from olx._call import Call
from olx.convex.prox import soft_shares
from olx.core import Scalar
from olx.losses.classes import checked, dual, loss_of_classes
from olx.losses.margin import hot, pick
from olx.losses.score import BallConstants, ScoreLoss, signs

_SELF_BOUND = 0.2036321887945369


def _logistic(_: PyTree, score: Array, label: Array) -> Array:
    return jax.nn.softplus(-label * score)


def _logistic_both(_: PyTree, score: Array, label: Array) -> tuple[Array, Array]:
    m = label * score
    e = jnp.exp(-jnp.abs(m))
    slope = -label * jnp.where(m > 0, e, 1.0) / (1 + e)
    return jnp.maximum(-m, 0.0) + jnp.log1p(e), slope


def _logistic_conjugate(_: PyTree, tau: Array, label: Array) -> Array:
    alpha = -tau * label
    inside = (alpha >= 0) & (alpha <= 1)
    legal = jnp.where(inside, alpha, 0.5)
    return jnp.where(inside, -entr(legal) - entr(1 - legal), jnp.inf)


def _logistic_prox(_: PyTree, step: Array, center: Array, label: Array) -> Array:
    return label * _margin(step, label * center)


def _exponential(_: PyTree, score: Array, label: Array) -> Array:
    return jnp.exp(-label * score)


def _exponential_both(_: PyTree, score: Array, label: Array) -> tuple[Array, Array]:
    value = jnp.exp(-label * score)
    return value, -label * value


def _exponential_conjugate(_: PyTree, tau: Array, label: Array) -> Array:
    alpha = -tau * label
    legal = safe.or_one(alpha, alpha >= 0)
    return jnp.where(alpha >= 0, -entr(legal) - legal, jnp.inf)


def _logistic_lipschitz(_: PyTree, b: Array, top: Scalar) -> Array:
    return jax.nn.sigmoid(b)


def _logistic_smooth(_: PyTree, b: Array, top: Scalar) -> Array:
    return 0.25 + 0 * b


def _logistic_excess(_: PyTree, b: Array, top: Scalar) -> Array:
    return jax.nn.sigmoid(-b)


def _exponential_rise(_: PyTree, b: Array, top: Scalar) -> Array:
    return jnp.exp(b)


def _exponential_excess(_: PyTree, b: Array, top: Scalar) -> Array:
    return jnp.exp(-b)


def _margin(step: Array, start: Array) -> Array:
    """The root of m - start = step * sigmoid(-m), which lies between start and start + step.

    With an error of e a step of Newton's method leaves at most e^2 / 2, since the second derivative
    is at most the first. From 1.2, where it begins, six steps leave less than 1e-15.
    """
    dtype = jnp.result_type(float, step, start)
    return _root(*jnp.broadcast_arrays(jnp.asarray(step, dtype), jnp.asarray(start, dtype)))


@jax.custom_jvp
def _root(step: Array, start: Array) -> Array:
    m = jnp.clip(_near(step, start), start, start + step)
    for _ in range(_NEWTON_STEPS):
        share = jax.nn.sigmoid(-m)
        m = m - (m - start - step * share) / (1 + step * share * jax.nn.sigmoid(m))
    return jnp.clip(m, start, start + step)


@_root.defjvp
def _root_jvp(given: tuple, moved: tuple) -> tuple[Array, Array]:
    """The derivative of the root, by the equation that it solves: correct to every order."""
    (step, start), (of_step, of_start) = given, moved
    m = _root(step, start)
    share = jax.nn.sigmoid(-m)
    return m, (of_start + share * of_step) / (1 + step * share * jax.nn.sigmoid(m))


_NEWTON_STEPS = 6


def _near(step: Array, start: Array) -> Array:
    """A start for Newton's method: left of a positive root, right of a negative one, about 1 away.

    From there Newton's method converges monotonically. A positive root is at least that of
    m - start = (step / 2) exp(-m), so m - start is at least L - log L, L = log(step / 2) - start,
    for L > 1. For a negative root m, -m is the root with -(start + step) as its start.
    """
    below = start + step / 2 < 0
    start = jnp.where(below, -(start + step), start)
    half = jnp.log(jnp.maximum(step, jnp.finfo(step.dtype).tiny) / 2)
    log = half - start
    near = jnp.where(log > 1, half - jnp.log(safe.or_one(log, log > 1)), start)
    near = jnp.maximum(near, 0.0)
    return jnp.where(below, -near, near)


def _cross_entropy(_: PyTree, score: Array, label: Array) -> Array:
    score, label = checked(score, label)
    return logsumexp(score, -1) - pick(hot(score, label), score)


def _cross_entropy_both(_: PyTree, score: Array, label: Array) -> tuple[Array, Array]:
    score, label = checked(score, label)
    own, top = hot(score, label), jnp.max(score, -1, keepdims=True)
    top = lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0.0))
    e = jnp.exp(score - top)
    total = jnp.sum(e, -1, keepdims=True)
    value = (jnp.log(total) + top)[..., 0] - pick(own, score)
    return value, e / total - jnp.where(own, 1.0, 0.0)


def _cross_entropy_conjugate(_: PyTree, tau: Array, label: Array) -> Array:
    tau, label = checked(tau, label)
    p = jnp.where(hot(tau, label), tau + 1, tau)
    slack = 16 * tau.shape[-1] * float(jnp.finfo(tau.dtype).eps)
    inside = jnp.all(p >= -slack, -1) & (jnp.abs(jnp.sum(tau, -1)) <= slack)
    return jnp.where(inside, -jnp.sum(entr(jnp.maximum(p, 0.0)), -1), jnp.inf)


def _cross_entropy_pull(_: PyTree, step: Array, center: Array, label: Array) -> Array:
    center, label = checked(center, label)
    own = hot(center, label)
    p = soft_shares(step, jnp.where(own, center + jnp.asarray(step)[..., None], center))
    return dual(own, jnp.where(own, 0.0, p))


logistic = ScoreLoss(
    name=Call("logistic"),
    lipschitz=1.0,
    self_bound=_SELF_BOUND,
    value_fn=_logistic,
    value_and_slope_fn=_logistic_both,
    conjugate_fn=_logistic_conjugate,
    prox_fn=_logistic_prox,
    needs=(signs("logistic"),),
    on_ball=BallConstants(_logistic_lipschitz, _logistic_smooth, _logistic_excess),
)
exponential = ScoreLoss(
    name=Call("exponential"),
    value_fn=_exponential,
    value_and_slope_fn=_exponential_both,
    conjugate_fn=_exponential_conjugate,
    needs=(signs("exponential"),),
    on_ball=BallConstants(_exponential_rise, _exponential_rise, _exponential_excess),
)
cross_entropy = loss_of_classes(
    "cross_entropy",
    _cross_entropy,
    _cross_entropy_conjugate,
    _cross_entropy_pull,
    value_and_slope_fn=_cross_entropy_both,
    lipschitz=math.sqrt(2),
    self_bound=2 * _SELF_BOUND,
)
