"""Norms on pytrees and of the singular values of a matrix, each with its dual norm."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._call import Call
from olx._pytree import pytree, static
from olx._refusal import public
from olx.core import Scalar
from olx.facts import Aggregate


@pytree
class Norm:
    """A norm on decisions and its dual norm on gradients."""

    primal: Partial
    dual: Partial
    name: Call = static(kw_only=True, default=Call())  # the call that makes it


@public
def l2() -> Norm:
    return Norm(Partial(_l2), Partial(_l2))


@public
def l1() -> Norm:
    return Norm(Partial(_l1), Partial(_linf))


@public
def linf() -> Norm:
    return Norm(Partial(_linf), Partial(_l1))


@public
def lp(p: Scalar) -> Norm:
    """The p-norm for 1 < p < infinity; the dual norm has p / (p - 1)."""
    p = check.inside("p", p, 1.0, jnp.inf)
    return Norm(Partial(power, p), Partial(power, p / (p - 1)))


@public
def weighted_lp(p: Scalar, weights: PyTree) -> Norm:
    r"""$(\sum_i a_i |x_i|^p)^{1/p}$ for weights $a_i \ge 0$, on coordinates of positive weight."""
    p = check.inside("p", p, 1.0, jnp.inf)
    weights = check.non_negative("weights", weights, each=True)
    return Norm(
        Partial(_stretched, p, 1 / p, weights), Partial(_stretched, p / (p - 1), -1 / p, weights)
    )


def power(p: Scalar, x: PyTree) -> Array:
    r"""$(\sum_i |x_i|^p)^{1/p}$ without overflow, with gradient 0 at 0."""
    largest, total = _scaled_sum(p, x)
    return jnp.where(total > 0, largest * safe.or_one(total) ** (1 / p), 0.0)


def power_squared(p: Scalar, x: PyTree) -> Array:
    r"""$(\sum_i |x_i|^p)^{2/p}$, with gradient 0 and curvature 2 per coordinate at 0."""
    largest, total = _scaled_sum(p, x)
    squares = jnp.asarray(tree.vdot(x, x))  # the same function along one coordinate, for every p
    root = jnp.where(total > 0, safe.or_one(total) ** (2 / p), squares)
    return largest * (largest * root)


def powers(p: Scalar) -> Aggregate:
    r"""The terms $|x_i|^p$ of a p-norm."""
    return Aggregate(Partial(_term, p), Partial(_log_power, p), Partial(_log_root, p))


def squares() -> Aggregate:
    r"""The terms $x_i^2$ of the Euclidean norm."""
    return Aggregate(Partial(_square), Partial(_log_power, 2.0), Partial(_log_root, 2.0))


def stretch(exponent: Scalar, weights: PyTree) -> PyTree:
    """The weights to a power, 0 where the weight is 0."""
    return jax.tree.map(lambda a: jnp.where(a > 0, _positive_power(exponent, a), 0.0), weights)


def _scaled_sum(p: Scalar, x: PyTree) -> tuple[Array, Array]:
    flat, _ = ravel_pytree(x)
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(flat)))  # any constant gives the same norm
    largest = safe.or_one(largest)
    return largest, jnp.sum(_even_power(jnp.asarray(p, flat.dtype), flat / largest))


def _term(p: Scalar, x: Array, level: Array) -> Array:
    return jnp.exp(_log_power(p, x) - level)


def _square(x: Array, level: Array) -> Array:
    return jnp.square(x * jnp.exp(-level / 2))


def _log_power(p: Scalar, x: Array) -> Array:
    return p * jnp.log(jnp.abs(x))


def _log_root(p: Scalar, log: Array) -> Array:
    return jnp.exp(log / p)


def _positive_power(p: Scalar, x: Array) -> Array:
    """x^p where x > 0, 1 elsewhere.

    SIMD-friendly form: XLA:CPU vectorizes exp and log but not `**`.
    """
    return jnp.exp(p * jnp.log(safe.or_one(x)))


@jax.custom_jvp
def _even_power(p: Scalar, x: Array) -> Array:
    """|x|^p. Its derivatives are powers again and do not use the kink of |x|."""
    size = jnp.abs(x)
    return jnp.where(size > 0, _positive_power(p, size), _at_zero(p, x))


@jax.custom_jvp
def _odd_power(p: Scalar, x: Array) -> Array:
    """sign(x) |x|^p."""
    return jnp.sign(x) * _even_power(p, x)


@_even_power.defjvp
def _even_power_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (p, x), (dp, dx) = primals, tangents
    slope = _odd_power(p - 1, x)
    value = jnp.where(x == 0, _at_zero(p, x), x * slope)  # one power gives value and slope
    return value, p * slope * dx + value * _log_size(x) * dp


@_odd_power.defjvp
def _odd_power_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (p, x), (dp, dx) = primals, tangents
    slope = _even_power(p - 1, x)
    value = x * slope
    return value, p * slope * dx + value * _log_size(x) * dp


def _at_zero(p: Scalar, x: Array) -> Array:
    return jnp.where(p == 0, 1.0, 0.0).astype(x.dtype)


def _log_size(x: Array) -> Array:
    return jnp.log(jnp.where(x == 0, 1.0, jnp.abs(x)))


def _stretched(p: Scalar, exponent: Scalar, weights: PyTree, x: PyTree) -> Array:
    return power(p, tree.mul(stretch(exponent, weights), x))


def _l1(x: PyTree) -> Array:
    return tree.norm(x, ord=1)


def _linf(x: PyTree) -> Array:
    return tree.norm(x, ord=jnp.inf)


def _l2(x: PyTree) -> Array:
    return safe.sqrt(jnp.asarray(tree.vdot(x, x)))


@public
def schatten_norm(q: Scalar) -> Norm:
    """The q-norm of singular values for 1 < q < infinity; the dual has q / (q - 1)."""
    q = check.inside("q", q, 1.0, jnp.inf)
    return Norm(Partial(_of_values, q), Partial(_of_values, q / (q - 1)))


@public
def trace_norm() -> Norm:
    """The sum of singular values; the dual is the largest singular value."""
    return Norm(Partial(_sum), Partial(largest))


@public
def spectral_norm() -> Norm:
    """The largest singular value; the dual is the sum of singular values."""
    return Norm(Partial(largest), Partial(_sum))


def largest(w: Array) -> Array:
    """The largest singular value."""
    return _values(w)[0]


def _values(w: Array) -> Array:
    return jnp.linalg.svd(w, compute_uv=False)


def _of_values(q: Scalar, w: Array) -> Array:
    return power(q, _values(w))


def _sum(w: Array) -> Array:
    return jnp.sum(_values(w))
