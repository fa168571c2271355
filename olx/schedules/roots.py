r"""Step sizes $1 / c_t$ that shrink with the root of time, of the rows, or of the learner's loss.

- S3: $c_t = \sqrt{t L / U}$, for subgradients with $\frac12\|\lambda\|_*^2 \le L$. The regret
  against $u$ with $f(u) \le U$ is at most $4 \sqrt{L U T}$; the proof gives $3 \sqrt{L U T}$.
- S4: $c_t = \sqrt{t \max_{i \le t} L_i / U}$ with $L_i = \frac12 (L \|x_i\|_*)^2$, for a loss that
  is $L$-Lipschitz in the score. If $f(u) \le U$, the regret is at most $4 \sqrt{\max_t L_t\, U T}$.
- S8: $c_t = \sqrt{t / U} \max_{i \le t} \|x_i\|_*$, for the aggressive classifiers. The regret is
  at most $2 \max_t \|x_t\|_* \sqrt{U T}$.
- S5, S6: $c_t = \beta_2 \sqrt{\beta_1 + \sum_{i < t} g_i(w_i)}$. For self-bounded losses,
  $\frac12\|\lambda\|_*^2 \le L g_t(w_t)$, the regret grows with the square root of the comparator's
  loss, which need not be known. If no loss exceeds $\beta_1$ and $f \le U$ on the domain, $\beta_2
  = 8^{1/4} \sqrt{L / U}$ is best.

In S4 and S8 $c_t$ uses the row $x_t$, which is known before predicting. While all rows are 0,
$c_t = 1$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, theorem 2, corollaries
2 to 4 and (5.16).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.convex.norms import Norm
from olx.core import STEP, Feedback, Process, Scalar
from olx.schedules import fixed


@pytree
class RootRoundsHparams:
    energy: Scalar
    complexity: Scalar


@public
def root_rounds(energy: Scalar, complexity: Scalar) -> Process:
    r"""The step size $1 / \sqrt{t L / U}$.

    energy: $L$, half the square of the largest dual norm of a subgradient.
    complexity: $U$, the largest $f(u)$ to compete with.

    >>> import jax.numpy as jnp
    >>> schedule = root_rounds(2.0, 0.5)
    >>> float(schedule.at(schedule.init(jnp.zeros(3))))
    0.5
    """
    energy = check.positive("energy", energy)
    complexity = check.positive("complexity", complexity)
    hparams = RootRoundsHparams(energy, complexity)
    return Process(hparams, clock.start, clock.tick, root_rounds_at, STEP, separable=True)


def root_rounds_at(hp: RootRoundsHparams, stats: Clock, context: PyTree) -> Array:
    return 1 / jnp.sqrt(stats.now * hp.energy / hp.complexity)


@pytree
class RootNormsHparams:
    energy: Scalar  # the factor of |x|^2 t / U in c^2: L^2 / 2 for S4, 1 for S8
    complexity: Scalar
    norm: Norm


class RootNormsStats(NamedTuple):
    largest: Float[Array, ""]
    clock: Clock


@public
def root_lipschitz(lipschitz: Scalar, complexity: Scalar, norm: Norm) -> Process:
    r"""The step size $1 / \sqrt{t \max_{i \le t} L_i / U}$ (S4).

    lipschitz: $L$ of the loss in the score; 1 for hinges and the epsilon-insensitive loss.
    complexity: $U$, the largest $f(u)$ to compete with.
    norm: the norm of the mirror map; rows are measured in its dual norm.

    >>> import jax.numpy as jnp
    >>> from olx.convex import norms
    >>> schedule = root_lipschitz(1.0, 2.0, norms.l2())
    >>> float(schedule.at(schedule.init(jnp.zeros(2)), jnp.array([6.0, 8.0])))
    0.2
    """
    lipschitz = check.positive("lipschitz", lipschitz)
    return _by_norms(lipschitz**2 / 2, complexity, norm)


@public
def root_norms(complexity: Scalar, norm: Norm) -> Process:
    r"""The step size $1 / (\sqrt{t / U} \max_{i \le t} \|x_i\|_*)$ (S8).

    complexity: $U$, the largest $f(u)$ to compete with.
    norm: the norm of the mirror map; rows are measured in its dual norm.
    """
    return _by_norms(1.0, complexity, norm)


def _by_norms(energy: Scalar, complexity: Scalar, norm: Norm) -> Process:
    complexity = check.positive("complexity", complexity)
    check.instance("norm", norm, Norm)
    hparams = RootNormsHparams(energy, complexity, norm)
    return Process(hparams, root_norms_init, root_norms_update, root_norms_at, STEP)


def root_norms_init(hp: RootNormsHparams, params: PyTree) -> RootNormsStats:
    return RootNormsStats(fixed.zero(params), clock.start(hp, params))


def root_norms_update(
    hp: RootNormsHparams, stats: RootNormsStats, feedback: Feedback
) -> RootNormsStats:
    largest = jnp.maximum(stats.largest, hp.norm.dual(feedback.context))
    return RootNormsStats(largest, clock.tick(hp, stats.clock, feedback))


def root_norms_at(hp: RootNormsHparams, stats: RootNormsStats, context: PyTree) -> Array:
    largest = jnp.maximum(stats.largest, hp.norm.dual(context))
    return 1 / safe.or_one(largest * jnp.sqrt(stats.clock.now * hp.energy / hp.complexity))


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
    hparams = OwnLossHparams(start, rate)
    return Process(hparams, own_loss_init, own_loss_update, own_loss_at, STEP, separable=True)


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
    return Process(hparams, own_loss_init, own_loss_update, own_loss_at, STEP, separable=True)


def own_loss_init(hp: OwnLossHparams, params: PyTree) -> OwnLossStats:
    return OwnLossStats(fixed.zero(params))


def own_loss_update(hp: OwnLossHparams, stats: OwnLossStats, feedback: Feedback) -> OwnLossStats:
    return OwnLossStats(stats.total + feedback.weight * feedback.value)


def own_loss_at(hp: OwnLossHparams, stats: OwnLossStats, context: PyTree) -> Array:
    return 1 / (hp.rate * jnp.sqrt(hp.start + stats.total))
