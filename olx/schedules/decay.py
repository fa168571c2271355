r"""Step sizes that shrink with a power of the round number, $\eta_t = \eta t^{-p}$.

$p = 0$ is a constant step size, $p = 1/2$ suits convex losses with an unknown number of rounds, and
$\eta = 1/\sigma$ with $p = 1$ suits $\sigma$-strongly convex losses. Both numbers can be swept and
differentiated.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 4.1.
"""

from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.core import STEP, Process, Scalar
from olx.schedules import _scalar


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
    return Process(eta, _scalar.no_stats, _scalar.no_news, _itself, gives, separable=True)


def at(hp: DecayHparams, stats: Clock, context: PyTree) -> Array:
    return hp.eta * stats.now**-hp.power


def _itself(eta, stats, context):
    return eta
