r"""A step size that shrinks with the learner's own loss (S5, S6).

$$\frac1{\eta_t} = c_t = \beta_2 \sqrt{\beta_1 + \sum_{i < t} g_i(w_i)}$$

For self-bounded losses, $\frac12\|\lambda\|_*^2 \le L g_t(w_t)$, the regret grows with the square
root of the comparator's loss, which need not be known. If no loss exceeds $\beta_1$ and $f \le U$
on the domain, $\beta_2 = 8^{1/4} \sqrt{L / U}$ is best.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, theorem 2 and
corollary 4.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import STEP, Feedback, Process, Scalar
from olx.schedules import fixed


@pytree
class OwnLossHparams:
    start: Scalar
    rate: Scalar
    complexity: Scalar | None = None  # given by `bounded_loss` only


class OwnLossStats(NamedTuple):
    total: Float[Array, ""]


@public
def own_loss(start: Scalar, rate: Scalar) -> Process:
    r"""The step size $1 / (\beta_2 \sqrt{\beta_1 + \sum_{i < t} g_i(w_i)})$ (S5).

    start: $\beta_1$, about the largest loss of a round.
    rate: $\beta_2$.

    >>> import jax.numpy as jnp
    >>> schedule = own_loss(4.0, 1.5)
    >>> round(float(schedule.at(schedule.init(jnp.zeros(3)))), 4)
    0.3333
    """
    start = check.positive("start", start)
    rate = check.positive("rate", rate)
    return Process(OwnLossHparams(start, rate), init, update, at, STEP, separable=True)


@public
def bounded_loss(largest: Scalar, self_bound: Scalar, complexity: Scalar) -> Process:
    r"""`own_loss` with $\beta_1$ = `largest` and $\beta_2 = 8^{1/4} \sqrt{L / U}$ (S6).

    largest: the largest loss on the domain.
    self_bound: $L$, the self-bounding constant in the score times the largest $\|x_t\|_*^2$.
    complexity: $U$, the largest $f(u)$ on the domain.
    """
    largest = check.positive("largest", largest)
    self_bound = check.positive("self_bound", self_bound)
    complexity = check.positive("complexity", complexity)
    hparams = OwnLossHparams(largest, 8**0.25 * (self_bound / complexity) ** 0.5, complexity)
    return Process(hparams, init, update, at, STEP, separable=True)


def init(hp: OwnLossHparams, params: PyTree) -> OwnLossStats:
    return OwnLossStats(fixed.zero(params))


def update(hp: OwnLossHparams, stats: OwnLossStats, feedback: Feedback) -> OwnLossStats:
    return OwnLossStats(stats.total + feedback.weight * feedback.value)


def at(hp: OwnLossHparams, stats: OwnLossStats, context: PyTree) -> Array:
    return 1 / (hp.rate * jnp.sqrt(hp.start + stats.total))
