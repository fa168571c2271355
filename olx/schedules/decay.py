r"""Step sizes that shrink as a power of time, $\eta_t = \eta t^{-p}$.

$p = 0$ is a constant step, $p = 1/2$ suits convex losses on an unknown horizon, and
$\eta = 1/\sigma$ with $p = 1$ suits $\sigma$-strongly convex ones. Both numbers can be swept and
differentiated.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 4.1.
"""

from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx.core import Process, Scalar
from olx.schedules import _scalar


@pytree
class DecayHparams:
    eta: Scalar
    power: Scalar


def decay(eta: Scalar, power: Scalar = 0.5) -> Process:
    """The step `eta` in the first round, divided by the `power` of the round's number later."""
    eta = check.positive("decay", "eta", eta)
    power = check.non_negative("decay", "power", power)
    return Process(DecayHparams(eta, power), clock.start, clock.tick, at, separable=True)


def as_schedule(eta: Scalar | Process) -> Process:
    """A number as the schedule that never changes; a schedule as it is."""
    if isinstance(eta, Process):
        return eta
    return Process(eta, _scalar.no_stats, _scalar.no_news, _itself, separable=True)


def at(hp: DecayHparams, stats: Clock, context: PyTree) -> Array:
    return hp.eta * stats.now**-hp.power


def _itself(eta, stats, context):
    return eta
