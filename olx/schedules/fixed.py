r"""Step sizes that are known before the game.

Constant ones, $1 / c$, tuned to known bounds on the game:

- S1: $c = \sqrt{T L / U}$ for $T$ rounds and subgradients with $\frac12\|\lambda\|_*^2 \le L$. The
  regret against $u$ with $f(u) \le U$ is at most $2 \sqrt{L U T}$.
- S2: $c = L + \sqrt{L^2 + L U_2 / U_1}$ for losses with $\frac12\|\lambda\|_*^2 \le L g_t(w_t)$.
  The regret against $u$ with $f(u) \le U_1$ and loss $\sum_t g_t(u) \le U_2$ is at most
  $2 \sqrt{L U_1 U_2} + 4 L U_1$.

And those that shrink with a power of the round number, $\eta_t = \eta t^{-p}$: $p = 0$ is a
constant step size, $p = 1/2$ suits convex losses with an unknown number of rounds, and $\eta =
1/\sigma$ with $p = 1$ suits $\sigma$-strongly convex losses. Both numbers can be swept and
differentiated.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, corollary 1, theorem 1
and figure 4.1.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.core import STEP, Feedback, Process, Scalar


def zero(params: PyTree) -> Float[Array, ""]:
    """0 in the dtype of the decisions."""
    return jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))


def no_stats(hparams: PyTree, params: PyTree) -> None:
    """The statistics of a constant schedule."""
    return None


def no_news(hparams: PyTree, stats: None, feedback: Feedback) -> None:
    return None


@pytree
class LipschitzHorizonHparams:
    rounds: Scalar
    energy: Scalar
    complexity: Scalar


@pytree
class SelfBoundedHparams:
    self_bound: Scalar
    complexity: Scalar
    loss: Scalar


@public
def lipschitz_horizon(rounds: Scalar, energy: Scalar, complexity: Scalar) -> Process:
    r"""The step size $1 / \sqrt{T L / U}$ (S1), for a known number of rounds.

    energy: $L$, half the square of the largest dual norm of a subgradient.
    complexity: $U$, the largest $f(u)$ to compete with.

    >>> float(lipschitz_horizon(100.0, 0.5, 2.0).at(None))
    0.2
    """
    rounds = check.positive("rounds", rounds)
    energy = check.positive("energy", energy)
    complexity = check.positive("complexity", complexity)
    hparams = LipschitzHorizonHparams(rounds, energy, complexity)
    return Process(hparams, no_stats, no_news, at_horizon, STEP, separable=True)


@public
def self_bounded(self_bound: Scalar, complexity: Scalar, loss: Scalar) -> Process:
    r"""The step size $1 / (L + \sqrt{L^2 + L U_2 / U_1})$ (S2), for a known comparator loss.

    self_bound: $L$, the self-bounding constant in the score times the largest $\|x_t\|_*^2$.
    complexity: $U_1$, the largest $f(u)$ to compete with.
    loss: $U_2$, the largest $\sum_t g_t(u)$ of such a $u$.

    >>> round(float(self_bounded(1.0, 1.0, 3.0).at(None)), 4)
    0.3333
    """
    self_bound = check.positive("self_bound", self_bound)
    complexity = check.positive("complexity", complexity)
    loss = check.non_negative("loss", loss)
    hparams = SelfBoundedHparams(self_bound, complexity, loss)
    return Process(hparams, no_stats, no_news, at_bounded, STEP, separable=True)


def at_horizon(hp: LipschitzHorizonHparams, stats: None, context: PyTree) -> Array:
    return 1 / jnp.sqrt(hp.rounds * hp.energy / hp.complexity)


def at_bounded(hp: SelfBoundedHparams, stats: None, context: PyTree) -> Array:
    root = jnp.sqrt(hp.self_bound**2 + hp.self_bound * hp.loss / hp.complexity)
    return 1 / (hp.self_bound + root)


@pytree
class DecayHparams:
    eta: Scalar
    power: Scalar


@public
def decay(eta: Scalar, power: Scalar = 0.5) -> Process:
    r"""The step size $\eta t^{-p}$ in round $t$, with `power` $p$."""
    eta = check.positive("eta", eta)
    power = check.non_negative("power", power)
    return Process(DecayHparams(eta, power), clock.start, clock.tick, at, STEP, separable=True)


def as_schedule(name: str, eta: Scalar | Process, gives: str = STEP) -> Process:
    """Turn a positive number into a constant process; return a process as it is.

    gives: the kind of quantity.
    """
    if isinstance(eta, Process):
        return eta.must_give(name, gives)
    eta = check.positive(name, eta)
    return Process(eta, no_stats, no_news, _itself, gives, separable=True)


def at(hp: DecayHparams, stats: Clock, context: PyTree) -> Array:
    return hp.eta * stats.now**-hp.power


def _itself(eta: Scalar, stats: None, context: PyTree) -> Scalar:
    return eta
