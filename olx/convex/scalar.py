r"""Proximal map and conjugate of a convex function $f$ of one number, with derivatives.

Both solve $c f'(s) + q (s - z) = \tau$: the proximal map with $q = 1$ and $\tau = 0$, the conjugate
with $c = 1$ and $q = 0$. The solution is found by tangents and refined by Newton steps. Where $f$
is smooth, the derivative of $s$ is implicit: the change of the right side minus that of the left
side, divided by $c f''(s) + q$. On a kink $s$ stays where the two sides $f_-$ and $f_+$ meet, so
$ds = -\partial_p (f_+ - f_-)\,dp / (f_+' - f_-')$ for every hyperparameter $p$ of $f$.

By the envelope theorem, the conjugate has the derivatives $s$ in $\tau$ and $-\partial_p f(s)$ in
$p$. On a kink the latter is a weighted mean of both sides, with the weights for which the mean of
the slopes is $\tau$.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool

from olx import _numeric as safe
from olx.convex import tangents
from olx.convex.roots import with_slope
from olx.convex.tangents import Bracket, Seen
from olx.core import Scalar


class Balance(NamedTuple):
    r"""The equation $c f'(s) + q (s - z) = \tau$."""

    step: Array
    center: Array
    tau: Array

    def excess(self, pull: float, s: Array, slope: Array) -> Array:
        return self.step * slope + pull * (s - self.center) - self.tau


class Around(NamedTuple):
    """A function at a point and just left and right of it."""

    low: Seen
    high: Seen
    excess: Array
    bend: Array  # the derivative of the left side of the equation
    kink: Bool[Array, "..."]  # whether the solution is at a kink
    border: Bool[Array, "..."]  # whether the domain ends here

    def jump(self) -> Array:
        return safe.or_one(self.high.slope - self.low.slope, self.kink)


def prox(f: Partial, step: Array, center: Array, start: Scalar) -> Array:
    r"""$\arg\min_s c f(s) + \frac12 (s - z)^2$ for $c$ = `step` and $z$ = `center`, elementwise.

    f: an elementwise function of an array. The result is differentiable in its leaves, `step` and
        `center`.
    start: a number in the domain of `f`.

    >>> import jax, jax.numpy as jnp
    >>> shrink = lambda z: prox(Partial(jnp.abs), jnp.ones(()), z, 0.0)
    >>> [[float(g(z)) for z in jnp.array([3.0, 0.5])] for g in (shrink, jax.grad(shrink))]
    [[2.0, 0.0], [1.0, 0.0]]
    """
    return _solve(1.0, f, Balance(step, center, jnp.zeros_like(center)), start)


@jax.custom_jvp
def conjugate(f: Partial, tau: Array, start: Scalar) -> Array:
    r"""$\sup_s \tau s - f(s)$, elementwise; infinite if no derivative of `f` reaches $\tau$.

    >>> import jax.numpy as jnp
    >>> conjugate(Partial(jnp.abs), jnp.array([0.5, 2.0]), 0.0).tolist()
    [0.0, inf]
    """
    return _touched(f, tau, _solve(0.0, f, _tilted(tau), start))


@conjugate.defjvp
def _conjugate_jvp(primals: tuple, moves: tuple) -> tuple[Array, Array]:
    f, tau, start = primals
    s = _solve(0.0, f, _tilted(tau), start)
    attained = jnp.isfinite(s)
    near = jnp.where(attained, s, jnp.full_like(s, start))
    around = _around(0.0, f, _tilted(tau), near, _rounding(f, near))
    share = jnp.clip((tau - around.low.slope) / around.jump(), 0.0, 1.0)
    low, high, here = (_change(f, moves[0], at) for at in (around.low.at, around.high.at, near))
    change = near * moves[1] - jnp.where(around.kink, low + share * (high - low), here)
    return _touched(f, tau, s), jnp.where(attained, change, 0.0)


def _tilted(tau: Array) -> Balance:
    return Balance(jnp.ones_like(tau), jnp.zeros_like(tau), tau)


def _touched(f: Partial, tau: Array, s: Array) -> Array:
    return jnp.where(jnp.isinf(s), jnp.inf, tau * s - f(jnp.where(jnp.isinf(s), 0.0, s)))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve(pull: float, f: Partial, balance: Balance, start: Scalar) -> Array:
    look, begin = Partial(with_slope, f), jnp.full_like(balance.center, start)
    if pull:
        begin = jnp.where(_inside(*look(balance.center)), balance.center, begin)
        s, _ = tangents.prox(look, begin, balance.step, balance.center)
    else:
        _, s = tangents.conjugate(look, balance.tau, begin)
    for wide in (float(jnp.finfo(s.dtype).eps) ** -0.5, 1.0):
        s = _polish(pull, f, balance, s, wide * _rounding(f, s))
    return jnp.where(_inside(*look(begin)) & ~jnp.isnan(sum(balance)), s, jnp.nan)


@_solve.defjvp
def _solve_jvp(pull: float, primals: tuple, moves: tuple) -> tuple[Array, Array]:
    f, balance, start = primals
    s = _solve(pull, f, balance, start)
    near = jnp.where(jnp.isfinite(s), s, jnp.full_like(s, start))
    excess = lambda f, balance: balance.excess(pull, near, with_slope(f, near)[1])
    _, change = jax.jvp(excess, (f, balance), moves[:2])
    around = _around(pull, f, balance, near, _rounding(f, near))
    low, high = (_change(f, moves[0], seen.at) for seen in (around.low, around.high))
    along = jnp.where(around.border, 0.0, -_over(change, around.bend))
    return s, jnp.where(around.kink, (low - high) / around.jump(), along)


def _polish(pull: float, f: Partial, balance: Balance, s: Array, gap: Array) -> Array:
    """Improve `s`: move to a kink within `gap`, else make a Newton step if it is better."""
    around = _around(pull, f, balance, s, gap)
    kink = tangents.crossing(Bracket(around.low, around.high))
    if pull:
        ends = (
            z.at - balance.excess(pull, z.at, z.slope) / pull for z in (around.high, around.low)
        )
        kink = jnp.clip(kink, *ends)
    newton = s - _over(around.excess, around.bend)
    value, slope = with_slope(f, newton)
    better = jnp.abs(balance.excess(pull, newton, slope)) < jnp.abs(around.excess)
    new = jnp.where(better & _inside(value, slope), newton, s)
    return jnp.where(around.kink, kink, new)


def _around(pull: float, f: Partial, balance: Balance, s: Array, gap: Array) -> Around:
    eps = jnp.finfo(s.dtype).eps
    at = jnp.stack([s - gap, s, s + gap])
    value, slope, bend = jax.vmap(lambda s: _derivatives(f, s))(at)
    low, high = (Seen(at[k], value[k], slope[k]) for k in (0, 2))
    excess = balance.excess(pull, at, slope)
    rounding = 64 * eps * jnp.sum(jnp.abs(slope), axis=0)
    smooth = 2 * pull * gap + balance.step * (16 * gap * jnp.sum(jnp.abs(bend), axis=0) + rounding)
    inside = jnp.all(_inside(value, slope), axis=0)
    kink = inside & (excess[0] <= 0) & (excess[2] >= 0) & (excess[2] - excess[0] > 2 * smooth)
    return Around(low, high, excess[1], pull + balance.step * bend[1], kink, ~inside)


def _rounding(f: Partial, s: Array) -> Array:
    """The accuracy to which a kink is located."""
    size = 1 + jnp.abs(s) + jnp.abs(f(s))
    return lax.stop_gradient(64 * float(jnp.finfo(s.dtype).eps) * size)


def _derivatives(f: Partial, s: Array) -> tuple[Array, Array, Array]:
    (value, slope), (_, bend) = jax.jvp(Partial(with_slope, f), (s,), (jnp.ones_like(s),))
    return value, slope, bend


def _change(f: Partial, move: Partial, at: Array) -> Array:
    """The change of the value of `f` at a point if its hyperparameters change by `move`."""
    return jax.jvp(lambda f: f(at), (f,), (move,))[1]


def _inside(value: Array, slope: Array) -> Array:
    return jnp.isfinite(value) & jnp.isfinite(slope)


def _over(change: Array, bend: Array) -> Array:
    """The quotient; 0 where `bend` is 0 or infinite."""
    usable = (bend > 0) & jnp.isfinite(bend)
    return safe.divide(change, bend, 0.0, usable)
