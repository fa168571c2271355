r"""Step sizes $1 / c_t$ that shrink with time and with the largest row so far.

- S4: $c_t = \sqrt{t \max_{i \le t} L_i / U}$ with $L_i = \frac12 (L \|x_i\|_*)^2$, for a loss that
  is $L$-Lipschitz in the score. If $f(u) \le U$, the regret is at most $4 \sqrt{\max_t L_t\, U T}$.
- S8: $c_t = \sqrt{t / U} \max_{i \le t} \|x_i\|_*$, for the aggressive classifiers. The regret is
  at most $2 \max_t \|x_t\|_* \sqrt{U T}$.

$c_t$ uses the row $x_t$, which is known before predicting. While all rows are 0, $c_t = 1$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, corollary 3 and (5.16).
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
    complexity = check.positive("complexity", complexity)
    check.instance("norm", norm, Norm)
    return Process(RootNormsHparams(lipschitz**2 / 2, complexity, norm), init, update, at, STEP)


@public
def root_norms(complexity: Scalar, norm: Norm) -> Process:
    r"""The step size $1 / (\sqrt{t / U} \max_{i \le t} \|x_i\|_*)$ (S8).

    complexity: $U$, the largest $f(u)$ to compete with.
    norm: the norm of the mirror map; rows are measured in its dual norm.
    """
    complexity = check.positive("complexity", complexity)
    check.instance("norm", norm, Norm)
    return Process(RootNormsHparams(1.0, complexity, norm), init, update, at, STEP)


def init(hp: RootNormsHparams, params: PyTree) -> RootNormsStats:
    return RootNormsStats(fixed.zero(params), clock.start(hp, params))


def update(hp: RootNormsHparams, stats: RootNormsStats, feedback: Feedback) -> RootNormsStats:
    largest = jnp.maximum(stats.largest, hp.norm.dual(feedback.context))
    return RootNormsStats(largest, clock.tick(hp, stats.clock, feedback))


def at(hp: RootNormsHparams, stats: RootNormsStats, context: PyTree) -> Array:
    largest = jnp.maximum(stats.largest, hp.norm.dual(context))
    return 1 / safe.or_one(largest * jnp.sqrt(stats.clock.now * hp.energy / hp.complexity))
