r"""The entropy of signed weights, on the ball of the 1-norm.

The smallest relative entropy of a split $w / U = p - q$ with $\sum_i p_i + q_i = 1$:

$$f(w) = \min_{p - q = w / U} \sum_i p_i \log(2 d p_i) + q_i \log(2 d q_i), \qquad
  f^*(\theta) = \log \frac1d \sum_i \cosh(U \theta_i).$$

Mirror descent with it is EG$\pm$, the exponentiated gradient on the doubled features $(x, -x)$. The
weights are $U \sinh(U \theta_i) / \sum_j \cosh(U \theta_j)$. They are computed as such, not as a
difference of two weights: a feature that was never seen has the weight 0 in every program, and a
score of such features is a tie in all of them.

Kivinen, Warmuth, Exponentiated Gradient versus Gradient Descent for Linear Predictors, 1997.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.scipy.special import entr
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import public
from olx.convex import _domain, norms
from olx.convex.roots import root
from olx.core import Scalar
from olx.facts import Aggregate
from olx.mirrors.base import MirrorMap
from olx.mirrors.combinators import stretch


@public
def signed_entropy(total: Scalar = 1.0) -> MirrorMap:
    r"""The potential of EG$\pm$ on the ball $\|w\|_1 \le$ `total`, with values in $[0, \log 2d]$.

    It is $1/U^2$-strongly convex in $\|\cdot\|_1$.

    >>> import jax.numpy as jnp
    >>> signed_entropy(3.0).to_primal(jnp.array([0.0, -0.5])).round(4).tolist()
    [0.0, -1.9054]
    """
    total = check.positive("total", total)
    unit = MirrorMap(
        Partial(_signed_potential),
        Partial(_signed_conjugate),
        norm=norms.l1(),
        modulus=1.0,
        contains=Partial(_in_ball),
        retraction=Partial(_domain.same),
        aggregate=Aggregate(
            Partial(_cosh), Partial(_log_pair), Partial(_of_pair), zero_adds_nothing=False
        ),
        offset=Partial(_constants),
    )
    return stretch(unit, total)


def _constants(w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    return jnp.log(jnp.asarray(2 * flat.size, flat.dtype))


def _signed_conjugate(theta: PyTree) -> Array:
    flat, _ = ravel_pytree(theta)
    top = lax.stop_gradient(jnp.max(jnp.abs(flat)))  # any constant gives the same value
    return top + jnp.log(jnp.sum(_cosh(flat, top))) - jnp.log(2 * flat.size)


@jax.custom_jvp
def _cosh(theta: Array, level: Array) -> Array:
    r"""$2 \cosh(\theta) e^{-level}$."""
    return jnp.exp(jnp.abs(theta) - level) * (2 + jnp.expm1(-2 * jnp.abs(theta)))


@jax.custom_jvp
def _sinh(theta: Array, level: Array) -> Array:
    r"""$2 \sinh(\theta) e^{-level}$: odd, exactly 0 at 0, and finite where $e^\theta$ is not."""
    return -jnp.sign(theta) * jnp.exp(jnp.abs(theta) - level) * jnp.expm1(-2 * jnp.abs(theta))


def _slope(own: Callable, other: Callable, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (theta, level), (d_theta, d_level) = primals, tangents
    value = own(theta, level)
    return value, other(theta, level) * d_theta - value * d_level


_cosh.defjvp(functools.partial(_slope, _cosh, _sinh))
_sinh.defjvp(functools.partial(_slope, _sinh, _cosh))


def _log_pair(theta: Array) -> Array:
    r"""The logarithm of $e^\theta + e^{-\theta}$."""
    return jnp.logaddexp(theta, -theta)


def _of_pair(log: Array) -> Array:
    """The positive `theta` of `_log_pair`."""
    above = jnp.maximum(log - jnp.log(2.0).astype(log.dtype), 0.0)
    return above + jnp.log1p(jnp.sqrt(-jnp.expm1(-2 * above)))


def _signed_potential(w: PyTree) -> Array:
    return _split_entropy(ravel_pytree(w)[0])


@jax.custom_jvp
def _split_entropy(w: Array) -> Array:
    s = _product_root(w)
    large = (jnp.sqrt(w**2 + 4 * s**2) + jnp.abs(w)) / 2
    small = s**2 / safe.or_one(large)
    return jnp.log(2 * w.size) - jnp.sum(entr(large) + entr(small))  # entr(0) = 0


@_split_entropy.defjvp
def _split_entropy_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (w,), (dw,) = primals, tangents
    s = _product_root(w)
    theta = jnp.arcsinh(w / jnp.where((w == 0) & (s == 0), 1.0, 2 * s))
    return _split_entropy(w), theta @ dw


def _product_root(w: Array) -> Array:
    r"""The common $s = \sqrt{p_i q_i}$, the root of $\sum_i \sqrt{w_i^2 + 4 s^2} = 1$.

    The sum is convex in $s$ and at least 1 at the start, so Newton's method decreases to the root.
    Near a double root at the border each step still halves the distance.
    """
    high = jnp.full((), 1 / (2 * w.size), w.dtype)
    return root(Partial(_excess, w), jnp.zeros_like(high), high, high)


def _excess(w: Array, s: Array) -> Array:
    return jnp.sum(safe.sqrt(w**2 + 4 * s**2)) - 1


def _in_ball(w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    return jnp.sum(jnp.abs(flat)) <= 1 + _domain.rounding(flat)
