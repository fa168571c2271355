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
from olx.core import STEP, Process, Scalar
from olx.schedules import _scalar


@pytree
class DecayHparams:
    eta: Scalar
    power: Scalar


def decay(eta: Scalar, power: Scalar = 0.5) -> Process:
    """The step `eta` in the first round, divided by the `power` of the round's number later."""
    eta = check.positive("decay", "eta", eta)
    power = check.non_negative("decay", "power", power)
    return Process(DecayHparams(eta, power), clock.start, clock.tick, at, STEP, separable=True)


def as_schedule(owner: str, name: str, eta: Scalar | Process, gives: str = STEP) -> Process:
    """A positive number as the schedule that never changes; a schedule as it is.

    gives: what else a process may give beside a step size.
    """
    if isinstance(eta, Process):
        return eta.must_give(owner, name, STEP, *({gives} - {STEP}))
    eta = check.positive(owner, name, eta)
    return Process(eta, _scalar.no_stats, _scalar.no_news, _itself, STEP, separable=True)


def at(hp: DecayHparams, stats: Clock, context: PyTree) -> Array:
    return hp.eta * stats.now**-hp.power


def _itself(eta, stats, context):
    return eta
