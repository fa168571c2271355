r"""Label ranking with one simplex per label: $f(w) = \sum_r \mathrm{KL}(w_r, \text{uniform})$.

With $\theta_r = acc_r / c$ the weights are $w_{r,j} = e^{\theta_{r,j} - L_r}$, $L_r = \log \sum_j
e^{\theta_{r,j}}$. A row $x \in \{0, 1\}^d$ has the score $p_r$, the weight on its words. If
$\theta_r$ grows by $\delta x$, $L_r$ grows by $\log(1 + p_r (e^\delta - 1))$. So $L$ is kept beside
$\theta$, as a compensated sum, and a round needs only the words of its row.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from olx import _numeric
from olx import _numeric as safe
from olx._numeric import Sum
from olx.convex import _domain
from olx.convex.balanced import balanced_logits
from olx.core import Scalar
from olx.ranking._round import Geometry, Ranked


class EntropicState(NamedTuple):
    theta: Float[Array, "k d"]
    level: Sum  # per label, the logarithm of the sum of the exponentials of theta


def init(params: Array) -> EntropicState:
    labels, size = params.shape
    level = jnp.full(labels, jnp.log(jnp.asarray(size, params.dtype)))
    return EntropicState(jnp.zeros_like(params), _numeric.start(level))


def at(c: Scalar, acc: Array) -> EntropicState:
    return EntropicState(acc / c, _numeric.start(logsumexp(acc / c, axis=1)))


def scores(state: EntropicState, x: Array) -> Array:
    weights = jnp.exp(state.theta - state.level.value[:, None])
    return jnp.sum(jnp.where(x != 0, weights, 0.0), axis=1)


def pair(now: Ranked) -> Array:
    r"""$\min\{h, c (\log\beta)_+\}$, with $\beta$ the zero of a quadratic in the two scores."""
    tame = _tame(now.scores)
    low = jnp.min(jnp.where(now.relevant, tame, 1.0))
    high = jnp.max(jnp.where(now.relevant, 0.0, tame))
    low, high = (jnp.where(now.proper, p, 0.5) for p in (low, high))
    mix, cross = low * high + (1 - low) * (1 - high), low * (1 - high)
    root = jnp.sqrt((now.margin * mix) ** 2 + 4 * (1 - now.margin**2) * cross * high * (1 - low))
    beta = (now.margin * mix + root) / (2 * (1 - now.margin) * cross)
    return jnp.clip(now.c * jnp.log(beta), 0.0, now.weight)


def every(now: Ranked) -> Array:
    tame = jnp.where(now.proper, _tame(now.scores), 0.5)
    return balanced_logits(tame, now.relevant, now.margin, now.c, now.weight)


def move(c: Scalar, state: EntropicState, x: Array, scores: Array, steps: Array) -> EntropicState:
    delta = steps / c
    theta = state.theta + delta[:, None] * x
    return EntropicState(theta, _numeric.add(state.level, _rise(scores, delta)))


def square_of(x: Array) -> Array:
    return jnp.max(jnp.abs(x)) ** 2


def drift(now: Ranked) -> Array:
    r"""$c B_{f^*}$: $c \log(1 + p (e^\delta - 1)) - c p \delta$ of the two worst labels."""
    delta = jnp.where(now.relevant, 1.0, -jnp.ones_like(now.scores)) * now.weight / now.c
    each = _rise(now.scores, delta) - now.scores * delta
    return now.c * jnp.sum(now.worst * each)


def price(u: Array) -> Array:
    return jnp.sum(safe.x_log_x(u)) + offset(u)


def inside(u: Array) -> Array:
    return jnp.all(jax.vmap(_domain.unit_simplex)(u))


def conjugate(state: EntropicState) -> Array:
    return jnp.sum(state.level.value) - offset(state.theta)


def offset(u: Array) -> Array:
    return u.shape[0] * jnp.log(jnp.asarray(u.shape[1], u.dtype))


def _rise(scores: Array, delta: Array) -> Array:
    return jnp.log1p(scores * jnp.expm1(delta))


def _tame(scores: Array) -> Array:
    """Scores strictly between 0 and 1: the logits of shares that rounded to 0 or 1 are finite."""
    kind = jnp.finfo(scores.dtype)
    return jnp.clip(scores, jnp.sqrt(kind.tiny).astype(scores.dtype), 1 - kind.eps)


ENTROPIC = Geometry(at, scores, pair, every, square_of, drift, price, inside, conjugate, offset)
