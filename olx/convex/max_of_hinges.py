r"""The dual variables of a maximum of hinges, $g(w) = \max_i\,(b_i - \langle a_i, w\rangle)_+$.

The locally optimal dual ascent step on $g$ solves

$$\max_{\alpha \ge 0, \sum_i \alpha_i \le z} \langle b, \alpha\rangle -
  c f^*\Big(\frac{acc + \sum_i \alpha_i a_i}c\Big).$$

`ascend_hinges` takes projected gradient steps with momentum, for any $f$. `average_hinges` is for
Euclidean space: with $\gamma_i = b_i - \langle a_i, w_t\rangle$ it minimizes $\phi(v) = \frac c2
\|v\|^2 + z \max_i\,(\gamma_i - \langle a_i, v\rangle)_+$ by steps of $1 / (c t)$ along the
subgradient of the worst hinge, and returns their mean. After $T$ steps

$$\phi(v) \le \phi(v^*) + \frac{(\sqrt{2 c \max_i (\gamma_i)_+} + \max_i \|a_i\|)^2 (1 + \log T)}
  {2 c T} \qquad (z = 1),$$

and $c v = \sum_i \alpha_i a_i$ with feasible $\alpha$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 7.4 and figure
7.5; Beck and Teboulle, A Fast Iterative Shrinkage-Thresholding Algorithm, 2009.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, public
from olx.convex.projections import subsimplex
from olx.core import Scalar


@public
def ascend_hinges(
    link: Callable[[Array], Array],
    c: Scalar,
    acc: Float[Array, " d"],
    rows: Float[Array, "k d"],
    bounds: Float[Array, " k"],
    total: Scalar = 1.0,
    steps: int = 200,
) -> Float[Array, " k"]:
    r"""The dual variables $\alpha$ by `steps` projected gradient steps with momentum.

    link: $\theta \mapsto \nabla f^*(\theta)$ of an $f$ that is 1-strongly convex in a norm whose
        dual norm is at most the Euclidean one, such as the entropy.
    rows, bounds: $a_i$ and $b_i$. A hinge that does not count has the row 0 and the bound 0.

    >>> import jax.numpy as jnp
    >>> rows, bounds = jnp.eye(2), jnp.array([0.5, 0.25])
    >>> alpha = ascend_hinges(lambda theta: theta, 1.0, jnp.zeros(2), rows, bounds)
    >>> [round(float(one), 4) for one in alpha]
    [0.5, 0.25]
    """
    check.count("steps", steps)
    _check_rows(rows, bounds)
    stride = safe.divide(c, jnp.sum(rows**2))

    def step(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        alpha, ahead, speed = carry
        slope = bounds - rows @ link((acc + ahead @ rows) / c)
        new = subsimplex(ahead + stride * slope, total)
        turns = jnp.sum((ahead - new) * (new - alpha)) > 0  # momentum points downhill: restart
        speed = jnp.where(turns, 1.0, speed)
        faster = (1 + jnp.sqrt(1 + 4 * speed**2)) / 2
        momentum = jnp.where(turns, 0.0, (speed - 1) / faster)
        return new, new + momentum * (new - alpha), faster

    nothing = jnp.zeros_like(bounds)
    return lax.fori_loop(0, steps, step, (nothing, nothing, jnp.ones((), bounds.dtype)))[0]


@public
def average_hinges(
    c: Scalar,
    gaps: Float[Array, " k"],
    rows: Float[Array, "k d"],
    total: Scalar = 1.0,
    steps: int = 200,
) -> Float[Array, " k"]:
    r"""The dual variables $\alpha$ of the mean of `steps` steps on the worst hinge.

    gaps: $\gamma_i = b_i - \langle a_i, w_t\rangle$.

    If the best step along the worst hinge at $w_t$ alone raises the dual more, its $\alpha$ is
    returned: a dual ascent rule must raise the dual at least as much as the subgradient does.

    >>> import jax.numpy as jnp
    >>> alpha = average_hinges(1.0, jnp.array([0.5, 0.25]), jnp.eye(2), steps=4000)
    >>> [round(float(one), 2) for one in alpha]
    [0.5, 0.25]
    """
    check.count("steps", steps)
    _check_rows(rows, gaps)
    radius = safe.sqrt(2 * total * jnp.maximum(jnp.max(gaps), 0.0) / c)  # no solution is longer
    one_hot = lambda i: jnp.where(jnp.arange(gaps.size) == i, jnp.ones_like(gaps), 0.0)

    def step(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        alpha, mean = carry
        left = gaps - rows @ (alpha @ rows / c)
        worst, t = jnp.argmax(left), jnp.asarray(i + 1, gaps.dtype)
        pull = jnp.where(left[worst] > 0, total * one_hot(worst), 0.0)
        new = (1 - 1 / t) * alpha + pull / t
        length = safe.sqrt(jnp.sum((new @ rows / c) ** 2))
        return jnp.minimum(1.0, safe.divide(radius, length, 1.0)) * new, mean + alpha / steps

    nothing = jnp.zeros_like(gaps)
    _, mean = lax.fori_loop(0, steps, step, (nothing, nothing))
    worst = jnp.argmax(gaps)
    square = jnp.sum(rows[worst] ** 2)
    length = jnp.clip(safe.divide(c * gaps[worst], square, total), 0.0, total)
    alone = jnp.where(gaps[worst] > 0, length * one_hot(worst), 0.0)
    value = lambda alpha: alpha @ gaps - jnp.sum((alpha @ rows) ** 2) / (2 * c)
    return jnp.where(value(mean) >= value(alone), mean, alone)


def _check_rows(rows: Array, bounds: Array) -> None:
    if jnp.ndim(rows) != 2 or jnp.shape(rows)[:1] != jnp.shape(bounds):
        raise RefusedType(
            f"`rows` has shape {jnp.shape(rows)} for {jnp.shape(bounds)} hinges; give one "
            "row and one number per hinge."
        )
