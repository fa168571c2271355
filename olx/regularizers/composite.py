r"""A growing quadratic plus one more copy of a penalty per round.

$$f_t(w) = \frac{t^p}{2} \|w\|^2 + \rho t F(w).$$

With $z_t = -\eta g_t$ and $\rho = \eta$ this is regularized dual averaging on the losses
$\ell_t + F$. The penalty is not linearized, so $\ell_1$ gives exact zeros. $p = 0$ keeps the
quadratic fixed, $p = 1/2$ suits an unknown number of rounds.

Xiao, Dual Averaging Methods for Regularized Stochastic Learning and Online Optimization, 2010;
Orabona, Crammer, Cesa-Bianchi, 2015, corollary 1.
"""

from jaxtyping import PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import public
from olx.convex.prox import Penalty
from olx.core import REGULARIZER, Process, Scalar
from olx.mirrors.base import MirrorMap
from olx.mirrors.quadratic import quadratic


@pytree
class CompositeHparams:
    penalty: Penalty
    rate: Scalar
    power: Scalar


@public
def composite(penalty: Penalty, rate: Scalar, power: Scalar = 0.5) -> Process:
    """`rate` times the penalty per round, plus a quadratic that grows with `power`.

    rate: the step size of the learner, for the regret on penalized losses.
    """
    check.instance("penalty", penalty, Penalty)
    rate = check.non_negative("rate", rate)
    power = check.non_negative("power", power)
    hparams = CompositeHparams(penalty, rate, power)
    return Process(hparams, clock.start, clock.tick, at, REGULARIZER, separable=penalty.separable)


def at(hp: CompositeHparams, stats: Clock, context: PyTree) -> MirrorMap:
    t = stats.now
    return quadratic(t**hp.power, hp.penalty, hp.rate * t)
