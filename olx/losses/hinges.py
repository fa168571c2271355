r"""Losses that are zero if the margin $y s$ is large enough, for labels $y = \pm 1$.

With $\alpha = -\tau y$:

- hinge: $\ell = \max(0, \gamma - y s)$, $\ell^* = -\gamma \alpha$ on $0 \le \alpha \le 1$;
  1-Lipschitz;
- squared hinge: $\ell = \frac12 \max(0, 1 - y s)^2$, $\ell^* = \frac12 \alpha^2 - \alpha$ on
  $\alpha \ge 0$; 1-self-bounded;
- modified Huber: the squared hinge continued by a line below $y s = -1$, where its slope stays
  $-2 y$. Its slope is that of the squared loss for a score clipped to $[-1, 1]$, as in Vowpal
  Wabbit. $\ell^*$ is that of the squared hinge, on $0 \le \alpha \le 2$; 2-Lipschitz and
  1-self-bounded. It is half of the loss of this name in scikit-learn;
- zero-one: 1 for a mistake, $y s \le 0$, else 0; not convex, without a conjugate, with slope 0.

The slope is 0 wherever the loss is 0, also at the kink. So a gradient learner changes its state
exactly if the loss is positive. The loss of a NaN score is NaN, so that divergence is seen.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, sections 2.3 and A.3;
Zhang, Solving Large Scale Linear Prediction Problems Using Stochastic Gradient Descent Algorithms,
2004.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._call import Call
from olx._refusal import public
from olx.core import Scalar
from olx.losses.margin import counted
from olx.losses.score import BallConstants, ScoreLoss, one_on_ball, signs


@public
def margin_hinge(margin: Scalar) -> ScoreLoss:
    r"""The hinge loss with margin $\gamma$ = `margin`, a positive number.

    >>> float(margin_hinge(2.0)(0.5, 1.0))
    1.5
    """
    margin = check.positive("margin", margin)
    return ScoreLoss(
        margin,
        lipschitz=1.0,
        value_fn=_hinge,
        value_and_slope_fn=_hinge_and_slope,
        conjugate_fn=_hinge_conjugate,
        prox_fn=_hinge_prox,
        needs=(signs("hinge"),),
        on_ball=BallConstants(one_on_ball),
    )


def _zero_one(_: PyTree, score: Array, label: Array) -> Array:
    return counted(jnp.asarray(label * score))


def _hinge(margin: Scalar, score: Array, label: Array) -> Array:
    gap = margin - label * score
    return jnp.where(gap <= 0, 0.0, gap)


def _hinge_and_slope(margin: Scalar, score: Array, label: Array) -> tuple[Array, Array]:
    """The slope needs no product after the comparison, which every round waits for."""
    gap = margin - label * score
    return jnp.where(gap <= 0, 0.0, gap), jnp.where(gap <= 0, 0.0, -label)


def _hinge_conjugate(margin: Scalar, tau: Array, label: Array) -> Array:
    alpha = -tau * label
    return jnp.where((alpha >= 0) & (alpha <= 1), -margin * alpha, jnp.inf)


def _hinge_prox(margin: Scalar, step: Array, center: Array, label: Array) -> Array:
    return center + label * jnp.clip(margin - label * center, 0.0, step)


def _squared_hinge(_: PyTree, score: Array, label: Array) -> Array:
    gap = 1 - label * score
    return jnp.where(gap <= 0, 0.0, gap) ** 2 / 2


def _squared_hinge_conjugate(_: PyTree, tau: Array, label: Array) -> Array:
    alpha = -tau * label
    return jnp.where(alpha >= 0, alpha**2 / 2 - alpha, jnp.inf)


def _squared_hinge_prox(_: PyTree, step: Array, center: Array, label: Array) -> Array:
    gap = 1 - label * center
    return center + label * jnp.where(gap <= 0, 0.0, gap) * step / (1 + step)


def _modified_huber(_: PyTree, score: Array, label: Array) -> Array:
    gap = 1 - label * score
    curved = jnp.where(gap <= 2, gap, 2.0) ** 2 / 2
    return jnp.where(gap <= 0, 0.0, jnp.where(gap <= 2, curved, 2 * gap - 2))


def _modified_huber_conjugate(_: PyTree, tau: Array, label: Array) -> Array:
    alpha = -tau * label
    return jnp.where((alpha >= 0) & (alpha <= 2), alpha**2 / 2 - alpha, jnp.inf)


def _modified_huber_prox(_: PyTree, step: Array, center: Array, label: Array) -> Array:
    gap = 1 - label * center
    push = jnp.where(gap <= 0, 0.0, gap) * step / (1 + step)
    return center + label * jnp.minimum(push, 2 * step)


def _squared_hinge_lipschitz(_: PyTree, b: Array, top: Scalar) -> Array:
    return b + 1


def _modified_huber_lipschitz(_: PyTree, b: Array, top: Scalar) -> Array:
    return jnp.minimum(b + 1, 2.0)


def _gap_at(_: PyTree, b: Array, top: Scalar) -> Array:
    return jnp.maximum(1 - b, 0.0)


hinge = margin_hinge(1.0)
squared_hinge = ScoreLoss(
    name=Call("squared_hinge"),
    self_bound=1.0,
    value_fn=_squared_hinge,
    conjugate_fn=_squared_hinge_conjugate,
    prox_fn=_squared_hinge_prox,
    needs=(signs("squared_hinge"),),
    on_ball=BallConstants(_squared_hinge_lipschitz, one_on_ball, _gap_at),
)
modified_huber = ScoreLoss(
    name=Call("modified_huber"),
    lipschitz=2.0,
    self_bound=1.0,
    value_fn=_modified_huber,
    conjugate_fn=_modified_huber_conjugate,
    prox_fn=_modified_huber_prox,
    needs=(signs("modified_huber"),),
    on_ball=BallConstants(_modified_huber_lipschitz, one_on_ball, _gap_at),
)
zero_one = ScoreLoss(name=Call("zero_one"), value_fn=_zero_one, needs=(signs("zero_one"),))
