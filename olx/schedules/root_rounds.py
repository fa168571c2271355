r"""A step size that shrinks with the root of time, $1 / \eta_t = c_t = \sqrt{t L / U}$ (S3).

For subgradients with $\frac12\|\lambda\|_*^2 \le L$ and an unknown number of rounds. The regret
against $u$ with $f(u) \le U$ is at most $4 \sqrt{L U T}$; the proof gives $3 \sqrt{L U T}$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, corollary 2.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.core import STEP, Process, Scalar


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
    return Process(hparams, clock.start, clock.tick, at, STEP, separable=True)


def at(hp: RootRoundsHparams, stats: Clock, context: PyTree) -> Array:
    return 1 / jnp.sqrt(stats.now * hp.energy / hp.complexity)
