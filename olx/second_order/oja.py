r"""Oja's sketch: a running estimate of the leading eigenvectors and eigenvalues.

The rows of $V_t$ are orthonormal. With $v = V_{t-1} \hat g_t$ and a rate $\gamma_t$,

$$\Lambda_t = (1 - \gamma_t) \Lambda_{t-1} + \gamma_t v^2, \qquad
  V_t = \text{orth}(V_{t-1} + \gamma_t v \hat g_t^\top), \qquad
  S_t = (t \Lambda_t)^{1/2} V_t,$$

where orth is Gram-Schmidt in the order of the rows. The Gram matrix before orth is
$I + c v v^\top$ with $c = 2 \gamma_t + \gamma_t^2 |\hat g_t|^2$. So Gram-Schmidt has a closed form,
of cost $O(m^2)$: row $i$ becomes

$$\sqrt{s_{i-1} / s_i}\; V_i - \frac{c\, v_i}{\sqrt{s_{i-1} s_i}} \sum_{j < i} v_j V_j, \qquad
  s_i = 1 + c \sum_{j \le i} v_j^2.$$

It divides by no small number, and it shrinks any lack of orthogonality. Blocks of rounds, which the
thesis proposes to save time, have nothing to save here.

In $V_t$ the rate is at most $\epsilon^{-1/4} / (8 |\hat g_t|^2)$, with $\epsilon$ the spacing of
floats: a row of $V$ then turns to a long $\hat g_t$ nearly as far, and in float32 the rows stay
orthonormal up to about $10^{-3}$.

The sketch keeps $V = F Z$ with a lower triangular $F$, to which the closed form is applied.
$F^{-1}$ only grows, and before it is large the coordinates change: $Z \leftarrow V$,
$F \leftarrow I$.

- `oja`: $\gamma_t = \min(\text{rate} / t, 1)$; the thesis has rate 1, Vowpal Wabbit has 2.
- `adaptive_oja`: $\gamma_t = \text{rate} / (\sum_{s \le t} |\hat g_s|^2 |v_s|^2)^{1/2}$, which does
  not depend on the scale of the rows; $\Lambda_t$ is the mean of all $v^2$.

An energy $t \Lambda$ counts as at most about 2,900 alpha in float32; see
`olx.second_order.sketch`.

There is no bound on the regret against an adversary.

Luo, Optimal and Adaptive Online Learning, 2016, algorithms 14, 22 and 23; Oja, Simplified Neuron
Model as a Principal Component Analyzer, 1982; Henriksen, Ward, AdaOja: Adaptive Learning Rates for
Streaming PCA, 2019.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric
from olx import _numeric as safe
from olx._clock import Clock
from olx._numeric import Sum
from olx._pytree import pytree, static
from olx._refusal import RefusedValue, own_name, public
from olx.core import Scalar
from olx.second_order import sketch
from olx.second_order.sketch import PERIOD, Sketch, columns, orthonormal


@pytree
class OjaHparams:
    size: int = static()
    rate: Scalar
    key: Array
    # (rate, t, work) -> the rates of V and of Lambda
    rates_fn: Callable[..., tuple[Array, Array]] = static()


class OjaState(NamedTuple):
    frame: Sum  # F, with its rounding errors: the changes of many rounds are tiny
    energy: Float[Array, " m"]  # Lambda
    clock: Clock
    work: Float[Array, ""]  # the sum of |ghat|^2 |v|^2
    square: Float[Array, ""]  # the sum of the squares of Z, at least the largest of 1 / F^2


@public
def oja(size: int, rate: Scalar = 1.0, *, key: Array) -> Sketch:
    r"""Oja's sketch of `size` directions with the rates `rate` / t.

    size: $m$, from 1 to the number of coordinates.
    rate: positive. The rates assume vectors $\hat g$ of length about 1, as in
        `diagonal_adaptation`; for other lengths see `adaptive_oja`.
    key: a key of `jax.random` for the first directions.

    >>> import jax, jax.numpy as jnp
    >>> sketch = oja(2, key=jax.random.key(0))
    >>> small, rows = sketch.init(1.0, jnp.zeros(5))
    >>> bool(jnp.allclose(rows @ rows.T, jnp.eye(2), atol=1e-6))
    True
    """
    check.key(key)
    return _make(size, rate, key, _falling)


@public
def adaptive_oja(size: int, rate: Scalar = 1.0, *, key: Array) -> Sketch:
    """Oja's sketch with rates that adapt to the lengths of the sketched vectors."""
    check.key(key)
    return _make(size, rate, key, _adaptive)


def _make(size: int, rate: Scalar, key: Array, rates: Callable) -> Sketch:
    check.size("size", size)
    hparams = OjaHparams(size, check.positive("rate", rate), key, rates)
    return Sketch(hparams, size, init, update, solve, energy, is_due, basis, rebased_state)


@own_name("oja")
def init(hp: OjaHparams, alpha: Scalar, params: PyTree) -> tuple[OjaState, PyTree]:
    if hp.size > columns(params):
        raise RefusedValue(
            f"`size` must be at most the number of coordinates, got {hp.size} for "
            f"{columns(params)}; use the full matrix instead."
        )
    flat, unravel = ravel_pytree(params)
    rows = jnp.linalg.qr(jax.random.normal(hp.key, (flat.size, hp.size), flat.dtype))[0].T
    eye, zeros = jnp.eye(hp.size, dtype=flat.dtype), jnp.zeros(hp.size, flat.dtype)
    zero = zeros[0]
    small = OjaState(_numeric.start(eye), zeros, clock.start(hp, params), zero, zero + hp.size)
    return small, jax.vmap(unravel)(rows)


def update(
    hp: OjaHparams, alpha: Scalar, small: OjaState, zg: Array, gg: Array
) -> tuple[OjaState, Array]:
    frame, t = small.frame.value, small.clock.now
    v = frame @ zg
    work = small.work + gg * jnp.vdot(v, v)
    gamma, share = hp.rates_fn(hp.rate, t, work)
    most = float(jnp.finfo(gg.dtype).eps) ** -0.25 / 8
    gamma = jnp.minimum(gamma, safe.divide(most, gg, jnp.inf))  # else V = F Z would cancel
    c = gamma * (2 + gamma * gg)
    sums = 1 + c * _earlier(v**2)  # s_(i-1)
    growth = c * v**2 / sums
    root = jnp.sqrt(1 + growth)  # of s_i / s_(i-1)
    less, other = growth / (root * (1 + root)), c * v / (sums * root)
    change = less[:, None] * frame + other[:, None] * _earlier(v[:, None] * frame)
    after = OjaState(
        _numeric.add(small.frame, -change),
        (1 - share) * small.energy + share * v**2,
        clock.advance(small.clock, True),
        work,
        small.square + c * jnp.vdot(zg, zg),
    )
    return after, gamma * zg


def solve(alpha: Scalar, small: OjaState, zx: Array, xx: Array) -> tuple[Array, Array]:
    return sketch.solve(alpha, small.frame.value, _eigenvalues(small), zx, xx)


def energy(alpha: Scalar, small: OjaState, zv: Array) -> Array:
    return sketch.square(alpha, small.frame.value, _eigenvalues(small), zv)


def is_due(small: OjaState) -> Array:
    """Whether V = F Z may lose more than a factor eps^(-1/8) of the precision of Z, or Z is old."""
    limit = len(small.energy) * float(jnp.finfo(small.square.dtype).eps) ** -0.25
    return (small.square > limit) | (small.clock.rounds % PERIOD == 0)


def basis(small: OjaState, gram: Array) -> Array:
    return orthonormal(small.frame.value, gram)


def rebased_state(small: OjaState) -> OjaState:
    eye = jnp.eye(len(small.energy), dtype=small.energy.dtype)
    square = jnp.full_like(small.square, len(small.energy))
    return OjaState(_numeric.start(eye), small.energy, small.clock, small.work, square)


def _earlier(terms: Array) -> Array:
    """The sums of all earlier terms."""
    return jnp.concatenate([jnp.zeros_like(terms[:1]), jnp.cumsum(terms, axis=0)[:-1]])


def _eigenvalues(small: OjaState) -> Array:
    return small.clock.past * small.energy


def _falling(rate: Scalar, t: Array, work: Array) -> tuple[Array, Array]:
    gamma = jnp.minimum(rate / t, 1.0)
    return gamma, gamma


def _adaptive(rate: Scalar, t: Array, work: Array) -> tuple[Array, Array]:
    return rate * safe.divide(1.0, safe.sqrt(work)), 1 / t
