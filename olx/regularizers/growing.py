r"""A potential that grows with time, $f_t = t^p f$.

$p = 1/2$ gives $O(\sqrt T)$ regret for an unknown number of rounds. $p = 1$ with a strongly convex
$f$ that is part of every loss is follow the leader on composite losses: its regret is logarithmic.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, corollary 1.
"""

from jaxtyping import PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.core import REGULARIZER, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.mirrors.combinators import scale


@pytree
class GrowingHparams:
    mirror: MirrorMap
    power: Scalar


@public
def growing(mirror: MirrorMap, power: Scalar = 0.5) -> Process:
    """The potential of `mirror` times $t^p$, with $t$ the round number and `power` $p$."""
    check.instance("mirror", mirror, MirrorMap)
    power = check.non_negative("power", power)
    hparams = GrowingHparams(mirror, power)
    return Process(hparams, clock.start, clock.tick, at, REGULARIZER, separable=mirror.separable)


def at(hp: GrowingHparams, stats: Clock, context: PyTree) -> MirrorMap:
    return scale(hp.mirror, stats.now**hp.power)
