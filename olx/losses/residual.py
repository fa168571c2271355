r"""Losses of a score and a real outcome: of the residual $s - y$, and linear.

- squared: $\ell = \frac12 (s - y)^2$, $\ell^* = \frac12 \tau^2 + \tau y$; 1-self-bounded;
- epsilon-insensitive: $\ell = \max(0, |s - y| - \epsilon)$, $\ell^* = \tau y + \epsilon |\tau|$ on
  $|\tau| \le 1$; 1-Lipschitz;
- absolute: the same with $\epsilon = 0$;
- power: $\ell = |s - y|^p$, $\ell^* = \tau y + (p - 1) |\tau / p|^{p / (p - 1)}$; for $p \ge 2$;
- Huber: $\ell = \frac12 (s - y)^2$ up to a residual of $\delta$, continued by a line; $\ell^*$ is
  that of the squared loss, on $|\tau| \le \delta$; $\delta$-Lipschitz and 1-self-bounded.
- pinball: $\ell = \max(q\,(y - s), (1 - q)(s - y))$, whose expectation is least at the quantile $q$
  of the outcome; $\ell^* = \tau y$ on $-q \le \tau \le 1 - q$; Koenker, Bassett, Regression
  Quantiles, 1978;
- log-cosh: $\ell = \log\cosh(s - y)$, $\ell^* = \tau y + \frac12 (1 + \tau) \log(1 + \tau) +
  \frac12 (1 - \tau) \log(1 - \tau)$ on $|\tau| \le 1$; 1-Lipschitz and 1-self-bounded;
- aligned: $\ell = -y s$ rewards scores of the sign of the outcome, without end; $\ell^* = 0$ at
  $\tau = -y$, else infinite; $|y|$-Lipschitz and smooth with $\beta = 0$.

The slope at a kink is 0. `BallConstants` of these losses are those of Luo, Optimal and Adaptive
Online Learning, 2016, section 3.2.2, for outcomes of any size.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._call import Call
from olx._refusal import public
from olx.core import Scalar
from olx.losses.score import BallConstants, ScoreLoss, one_on_ball


@public
def epsilon_insensitive(epsilon: Scalar) -> ScoreLoss:
    r"""The part of the absolute residual above `epsilon`; smaller residuals cost nothing.

    epsilon: non-negative; 0 is the absolute loss.

    >>> float(epsilon_insensitive(0.5)(3.0, 1.0))
    1.5
    """
    epsilon = check.non_negative("epsilon", epsilon)
    return ScoreLoss(
        epsilon,
        lipschitz=1.0,
        value_fn=_tube,
        conjugate_fn=_tube_conjugate,
        prox_fn=_tube_prox,
        on_ball=BallConstants(one_on_ball),
    )


@public
def power(p: Scalar) -> ScoreLoss:
    r"""The residual to the power of `p`, which is at least 2; smooth on every ball.

    >>> float(power(3.0)(3.0, 1.0))
    8.0
    """
    p = check.between("p", p, 2.0, jnp.inf)
    constants = BallConstants(_power_lipschitz, _power_smooth, _power_excess)
    return ScoreLoss(
        p,
        value_fn=_power,
        value_and_slope_fn=_power_both,
        conjugate_fn=_power_conjugate,
        on_ball=constants,
    )


@public
def huber(delta: Scalar) -> ScoreLoss:
    r"""Half the squared residual up to `delta`, and a line of slope `delta` from there on.

    delta: positive.

    >>> float(huber(1.0)(3.0, 1.0)), float(huber(1.0)(1.5, 1.0))
    (1.5, 0.125)
    """
    delta = check.positive("delta", delta)
    return ScoreLoss(
        delta,
        lipschitz=delta,
        self_bound=1.0,
        value_fn=_huber,
        conjugate_fn=_huber_conjugate,
        prox_fn=_huber_prox,
        on_ball=BallConstants(_huber_lipschitz, one_on_ball, _huber_excess),
    )


@public
def pinball(q: Scalar) -> ScoreLoss:
    r"""The loss of a forecast of the quantile `q`: `q` per unit too low, 1 - `q` per unit too high.

    q: above 0 and below 1; 1/2 gives half the absolute loss.

    >>> round(float(pinball(0.9)(1.0, 3.0)), 4), round(float(pinball(0.9)(3.0, 1.0)), 4)
    (1.8, 0.2)
    """
    q = check.inside("q", q, 0.0, 1.0)
    return ScoreLoss(
        q,
        lipschitz=jnp.maximum(q, 1 - q),
        value_fn=_pinball,
        conjugate_fn=_pinball_conjugate,
        prox_fn=_pinball_prox,
        on_ball=BallConstants(_pinball_lipschitz),
    )


def _squared(_: PyTree, score: Array, outcome: Array) -> Array:
    return (score - outcome) ** 2 / 2


def _squared_conjugate(_: PyTree, tau: Array, outcome: Array) -> Array:
    return tau**2 / 2 + tau * outcome


def _squared_prox(_: PyTree, step: Array, center: Array, outcome: Array) -> Array:
    return (center + step * outcome) / (1 + step)


def _tube(epsilon: Scalar, score: Array, outcome: Array) -> Array:
    excess = jnp.abs(score - outcome) - epsilon
    return jnp.where(excess <= 0, 0.0, excess)


def _tube_conjugate(epsilon: Scalar, tau: Array, outcome: Array) -> Array:
    return jnp.where(jnp.abs(tau) <= 1, tau * outcome + epsilon * jnp.abs(tau), jnp.inf)


def _tube_prox(epsilon: Scalar, step: Array, center: Array, outcome: Array) -> Array:
    residual = center - outcome
    return center - jnp.sign(residual) * jnp.clip(jnp.abs(residual) - epsilon, 0.0, step)


def _squared_lipschitz(_: PyTree, b: Array, top: Scalar) -> Array:
    return b + top


def _squared_excess(_: PyTree, b: Array, top: Scalar) -> Array:
    return jnp.maximum(top - b, 0.0)


def _power(p: Scalar, score: Array, outcome: Array) -> Array:
    size = jnp.abs(score - outcome)
    return safe.power(size, p, 0.0, size != 0)


def _power_both(p: Scalar, score: Array, outcome: Array) -> tuple[Array, Array]:
    residual = score - outcome
    size = jnp.abs(residual)
    root = safe.power(size, p - 1, 0.0, size != 0)
    return root * size, p * root * jnp.sign(residual)


def _power_conjugate(p: Scalar, tau: Array, outcome: Array) -> Array:
    size = jnp.abs(tau / p)
    return tau * outcome + (p - 1) * safe.power(size, p / (p - 1), 0.0, size != 0)


def _power_lipschitz(p: Scalar, b: Array, top: Scalar) -> Array:
    return p * (b + top) ** (p - 1)


def _power_smooth(p: Scalar, b: Array, top: Scalar) -> Array:
    return p * (p - 1) * (b + top) ** (p - 2)


def _power_excess(p: Scalar, b: Array, top: Scalar) -> Array:
    return p * safe.power(top - b, p - 1, 0.0)


def _huber(delta: Scalar, score: Array, outcome: Array) -> Array:
    residual = score - outcome
    size = jnp.abs(residual)
    return jnp.where(size <= delta, residual**2 / 2, delta * (size - delta / 2))


def _huber_conjugate(delta: Scalar, tau: Array, outcome: Array) -> Array:
    return jnp.where(jnp.abs(tau) <= delta, tau**2 / 2 + tau * outcome, jnp.inf)


def _huber_prox(delta: Scalar, step: Array, center: Array, outcome: Array) -> Array:
    residual = center - outcome
    inside = jnp.abs(residual) <= delta * (1 + step)
    near = residual / (1 + step)
    return outcome + jnp.where(inside, near, residual - step * delta * jnp.sign(residual))


def _huber_lipschitz(delta: Scalar, b: Array, top: Scalar) -> Array:
    return jnp.minimum(b + top, delta)


def _huber_excess(delta: Scalar, b: Array, top: Scalar) -> Array:
    return jnp.clip(top - b, 0.0, delta)


def _pinball(q: Scalar, score: Array, outcome: Array) -> Array:
    over = score - outcome
    return jnp.where(over > 0, (1 - q) * over, jnp.where(over == 0, 0.0, -q * over))


def _pinball_conjugate(q: Scalar, tau: Array, outcome: Array) -> Array:
    return jnp.where((tau >= -q) & (tau <= 1 - q), tau * outcome, jnp.inf)


def _pinball_prox(q: Scalar, step: Array, center: Array, outcome: Array) -> Array:
    return center - jnp.clip(center - outcome, -step * q, step * (1 - q))


def _pinball_lipschitz(q: Scalar, b: Array, top: Scalar) -> Array:
    return jnp.maximum(q, 1 - q) + 0 * b


def _log_cosh(_: PyTree, score: Array, outcome: Array) -> Array:
    size = jnp.abs(score - outcome)
    near = jnp.minimum(size, 1.0)
    small = jnp.log1p(2 * jnp.sinh(near / 2) ** 2)  # keeps its digits near 0
    return jnp.where(size < 1, small, size + jnp.log1p(jnp.expm1(-2 * size) / 2))


def _log_cosh_both(_: PyTree, score: Array, outcome: Array) -> tuple[Array, Array]:
    return _log_cosh(_, score, outcome), jnp.tanh(score - outcome)


def _log_cosh_conjugate(_: PyTree, tau: Array, outcome: Array) -> Array:
    entropy = safe.x_log_x(1 + tau) + safe.x_log_x(1 - tau)
    return jnp.where(jnp.abs(tau) <= 1, tau * outcome + entropy / 2, jnp.inf)


def _log_cosh_lipschitz(_: PyTree, b: Array, top: Scalar) -> Array:
    return jnp.tanh(b + top)


def _log_cosh_excess(_: PyTree, b: Array, top: Scalar) -> Array:
    return jnp.tanh(jnp.maximum(top - b, 0.0))


squared = ScoreLoss(
    name=Call("squared"),
    self_bound=1.0,
    value_fn=_squared,
    conjugate_fn=_squared_conjugate,
    prox_fn=_squared_prox,
    on_ball=BallConstants(_squared_lipschitz, one_on_ball, _squared_excess),
)
absolute = epsilon_insensitive(0.0)


log_cosh = ScoreLoss(
    name=Call("log_cosh"),
    lipschitz=1.0,
    self_bound=1.0,
    value_fn=_log_cosh,
    value_and_slope_fn=_log_cosh_both,
    conjugate_fn=_log_cosh_conjugate,
    on_ball=BallConstants(_log_cosh_lipschitz, one_on_ball, _log_cosh_excess),
)


def _aligned(_: PyTree, score: Array, outcome: Array) -> Array:
    return -outcome * score


def _aligned_conjugate(_: PyTree, tau: Array, outcome: Array) -> Array:
    return jnp.where(tau == -outcome, 0.0 * tau, jnp.inf)


def _aligned_prox(_: PyTree, step: Array, center: Array, outcome: Array) -> Array:
    return center + step * outcome


def _aligned_lipschitz(_: PyTree, b: Array, top: Scalar) -> Array:
    return top + 0 * b


def _aligned_smooth(_: PyTree, b: Array, top: Scalar) -> Array:
    return 0.0 * b


aligned = ScoreLoss(
    name=Call("aligned"),
    value_fn=_aligned,
    conjugate_fn=_aligned_conjugate,
    prox_fn=_aligned_prox,
    on_ball=BallConstants(_aligned_lipschitz, _aligned_smooth, _aligned_lipschitz),
)
