r"""The zero of an increasing function of one number, by Newton's method inside a bracket.

Every element of an array has its own search. A Newton step is used if it stays inside the bracket
and is at most half as long as the previous step. Otherwise the next point is the middle of the
bracket or, while one end is infinite, a step several times as long as the last one. A point where
the function is NaN lies outside its domain and becomes an end of the bracket. On a side with an
infinite end, so does a point where the function seems to decrease; between finite ends only
rounding can make it seem so. The function need only increase; smooth ones converge quadratically.

At the zero $m$ of $h(m; p)$ the derivative in every hyperparameter $p$ of the function is implicit,
$dm = -\partial_p h\,dp / \partial_m h$, which is correct to every order.

Two searches of their own: weights of the form $w_i = (1 + x + d_i)^{-e}$ that sum to 1.

With $d_i \ge 0$, $\min_i d_i = 0$ and $e \ge 1$ the multiplier $x$ lies in $[0, n^{1/e} - 1]$. The
function $(\sum_i (1 + x + d_i)^{-e})^{-1/e}$ is increasing and concave in $x$, so Newton's method
from 0 increases to the root without overshooting, in a few steps.

And $g(w_i) = \theta_i$ for an increasing $g$, for all coordinates in parallel. If the sum of the
coordinates is fixed, solve $g(w_i) = \theta_i - \nu$. The sum decreases in $\nu$, so the same
search finds the multiplier $\nu$.

Press, Teukolsky, Vetterling, Flannery, Numerical Recipes, 3rd edition, 2007, section 9.4.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _numeric as safe
from olx.core import Scalar

_STEPS = 400
_GROWTH = 8

Look = Callable[[Array, PyTree], tuple[Array, Array, PyTree]]


class Search(NamedTuple):
    trial: Array
    good: Array  # the last trial inside the domain
    miss: Array  # the value of the function at `good`
    low: Array
    high: Array
    last: Array  # the length of the last step
    done: Bool[Array, "..."]
    steps: Int[Array, ""]
    memory: PyTree


def root(excess: Partial, low: Array, high: Array, start: Array) -> Array:
    """The zero of `excess` between `low` and `high`, element by element.

    excess: an elementwise function of an array shaped like `start`; increasing, with a zero in the
        bracket. The result is differentiable in the leaves of this Partial and in nothing else.
    low, high: the bracket, in the domain of `excess`; infinite if not known. If it has no zero, the
        answer is one of its ends.
    start: the first point, in the domain of `excess` and in the bracket.

    >>> import jax, jax.numpy as jnp
    >>> cube = lambda a, m: m**3 - a
    >>> side = lambda a: root(Partial(cube, a), jnp.zeros(()), 1 + a, jnp.ones(()))
    >>> round(float(side(jnp.array(8.0))), 6), round(float(jax.grad(side)(jnp.array(8.0))), 6)
    (2.0, 0.083333)
    """
    ends = (jnp.broadcast_to(jnp.asarray(end, start.dtype), start.shape) for end in (low, high))
    return _root(excess, *lax.stop_gradient((*ends, start)))


@jax.custom_jvp
def _root(excess: Partial, low: Array, high: Array, start: Array) -> Array:
    look = lambda m, memory: (*with_slope(excess, m), memory)
    return search(look, low, high, start, jnp.zeros(start.shape, bool))[0]


@_root.defjvp
def _root_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    excess, *bracket = primals
    m = _root(excess, *bracket)
    _, change = jax.jvp(lambda excess: excess(m), (excess,), (tangents[0],))
    _, slope = with_slope(excess, m)
    smooth = (slope > 0) & jnp.isfinite(slope)
    return m, safe.divide(-change, slope, 0.0, smooth)


def search(
    look: Look,
    low: Array,
    high: Array,
    start: Array,
    lost: Bool[Array, "..."],
    memory: PyTree = None,
) -> tuple[Array, PyTree]:
    """The zero and the last `memory`, without a derivative.

    look: (trial, memory) -> the value of the function, its derivative, and a new memory.
    low, high, start: as in `root`.
    lost: elements known to have no zero. Their answer is NaN, as is the answer where the function
        is NaN at the start.
    """

    def step(seen: Search) -> Search:
        miss, slope, memory = look(seen.trial, seen.memory)
        return _next(seen, miss, slope, memory, jnp.isinf(low), jnp.isinf(high))

    far, unknown = jnp.full_like(start, jnp.inf), jnp.full_like(start, jnp.nan)
    good = jnp.where(lost, jnp.nan, start)
    first = Search(start, good, unknown, low, high, far, lost, jnp.zeros((), int), memory)
    # A batched loop evaluates its condition twice, with other rounding: let it only read flags.
    unfinished = lambda seen: jnp.any(~seen.done) & (seen.steps < _STEPS)
    last = lax.while_loop(unfinished, step, first)
    return last.good, last.memory


def with_slope(function: Callable[[Array], Array], m: Array) -> tuple[Array, Array]:
    """An elementwise function and its derivative."""
    return jax.jvp(function, (m,), (jnp.ones_like(m),))


def _next(
    seen: Search, miss: Array, slope: Array, memory: PyTree, no_low: Array, no_high: Array
) -> Search:
    m, eps = seen.trial, jnp.finfo(seen.trial.dtype).eps
    lost = jnp.isnan(miss) & (seen.steps == 0)
    disorder = no_low & (m < seen.good) & (miss > seen.miss)
    disorder |= no_high & (m > seen.good) & (miss < seen.miss)
    inside = ~jnp.isnan(miss) & ~disorder
    below = jnp.where(inside, miss < 0, m < seen.good)
    above = jnp.where(inside, miss > 0, m > seen.good)
    low = jnp.where(below, jnp.maximum(m, seen.low), seen.low)
    high = jnp.where(above, jnp.minimum(m, seen.high), seen.high)
    good = jnp.where(inside, m, jnp.where(lost, jnp.nan, seen.good))

    jump = -miss / safe.or_one(slope)
    newton = m + jump
    smooth = inside & (slope > 0) & jnp.isfinite(slope) & jnp.isfinite(jump)
    usable = smooth & (newton > low) & (newton < high) & (jnp.abs(jump) <= seen.last / 2)
    open_ended = jnp.isinf(low) | jnp.isinf(high)
    stride = jnp.where(jnp.isinf(seen.last), 1 + jnp.abs(m), _GROWTH * seen.last)
    onward = jnp.where(jnp.isinf(high), good + stride, good - stride)
    other = jnp.where(open_ended, onward, low / 2 + high / 2)
    trial = jnp.where(usable, newton, other)

    settled = smooth & (jnp.abs(jump) <= 2 * eps * jnp.abs(m))
    narrow = ~open_ended & (high - low <= eps * jnp.maximum(jnp.abs(low), jnp.abs(high)))
    done = seen.done | lost | (inside & (miss == 0)) | settled | narrow
    hold = lambda new, old: jnp.where(seen.done, old, new)
    good = hold(jnp.where(settled & usable, newton, good), seen.good)
    return Search(
        jnp.where(done, good, trial),
        good,
        hold(jnp.where(inside, miss, seen.miss), seen.miss),
        hold(low, seen.low),
        hold(high, seen.high),
        hold(jnp.abs(trial - m), seen.last),
        done,
        seen.steps + 1,
        memory,
    )


def power_weights(unit: Scalar, exponent: Scalar, theta: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""The $w_i = (u / (\lambda - \theta_i))^e$, $\lambda > \max_i \theta_i$, that sum to 1."""
    highest = lax.stop_gradient(jnp.max(theta))  # any constant works: lambda shifts with it
    d = (highest - theta) / unit
    exponent = jnp.asarray(exponent, theta.dtype)
    zero = jnp.zeros_like(exponent)
    most = jnp.expm1(jnp.log(float(theta.size)) / exponent)
    x = root(Partial(_excess, exponent, d), zero, 2 * most, zero)
    return jnp.exp(-exponent * jnp.log1p(x + d))


def _excess(exponent: Scalar, d: Array, x: Array) -> Array:
    return jnp.expm1(-logsumexp(-exponent * jnp.log1p(x + d)) / exponent)


Slope = Callable[[Float[Array, " d"]], Float[Array, " d"]]


def invert(slope: Slope, theta: Float[Array, " d"], start: Float[Array, " d"]) -> Array:
    """The w with slope(w) = theta; `slope` is an elementwise function of a vector."""

    def look(w: Array, memory: None):
        at, curve = with_slope(slope, w)
        return at - theta, curve, memory

    far = jnp.full_like(start, jnp.inf)
    return search(look, -far, far, start, ~jnp.isfinite(theta))[0]


def invert_with_total(
    slope: Slope, theta: Float[Array, " d"], total: Scalar, start: Float[Array, " d"]
) -> Array:
    """The w with slope(w) = theta - nu and sum `total`; `start` must have the same sum."""
    theta = theta - jnp.max(theta)  # nu shifts with it; avoids cancellation
    at, curve = with_slope(slope, start)
    level = theta - at  # nu lies between the smallest and the largest of these
    steep = safe.or_one(curve, jnp.isfinite(curve) & (curve > 0))
    first = jnp.sum(level / steep) / jnp.sum(1 / steep)

    def look(nu: Array, w: Array):
        warm = jnp.where(jnp.isfinite(w) & (jnp.abs(w) < 1e6 * (1 + jnp.abs(start))), w, start)
        w = invert(slope, theta - nu, warm)
        return total - jnp.sum(w), jnp.sum(1 / with_slope(slope, w)[1]), w

    _, w = search(look, jnp.min(level), jnp.max(level), first, ~jnp.isfinite(first), start)
    give = 1 / with_slope(slope, w)[1]
    give = jnp.where(jnp.isfinite(give), give, 0.0)
    share = give / safe.or_one(jnp.sum(give))
    return w + share * (total - jnp.sum(w))
