r"""The p-norm Perceptron: the Perceptron in the geometry of $\frac12 \|\cdot\|_q^2$.

$$w_{t,i} \propto \mathrm{sign}(\theta_{t,i}) |\theta_{t,i}|^{p-1}, \qquad
  \theta_{t+1} = \theta_t + y_t x_t \text{ after a mistake}, \qquad \frac1p + \frac1q = 1.$$

$p = 2$ is the Perceptron. $p$ of the order of $\log d$ is close to Winnow, but needs no step size
and has weights of both signs. With $H$ the sum of the hinge losses of $u$ and $X$ the largest
$\|x_t\|_p$, both over the mistakes, there are at most $H + X \|u\|_q \sqrt{(p - 1) H} + (p - 1) X^2
\|u\|_q^2$ mistakes: `perceptron_mistakes` of `olx.classification.perceptron`.

Grove, Littlestone, Schuurmans, General Convergence Results for Linear Discriminant Updates, 2001;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, corollary 7.
"""

from olx import _check as check
from olx._refusal import public
from olx._words import computed
from olx.classification.perceptron import perceptron_mistakes
from olx.core import Learner, Scalar
from olx.frameworks.ascents.base import conservative
from olx.frameworks.dual_ascent import dual_ascent
from olx.losses.hinges import hinge
from olx.mirrors.pnorm import pnorm


@public
def pnorm_perceptron(p: Scalar) -> Learner:
    r"""The p-norm Perceptron, a predictor for labels +1 and -1.

    p: at least 2; $2 \ln d$ if only few of $d$ features matter.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.r_of_k(jax.random.key(0), rounds=200, features=30, r=1, k=2)
    >>> run = olx.rollout(pnorm_perceptron(7.4), olx.losses.zero_one, rounds, jnp.zeros(30))
    >>> bool(run.total < 30)
    True
    """
    p = check.between("p", p, 2, float("inf"))
    learner = dual_ascent(1.0, pnorm(p / (p - 1)), hinge, conservative())
    return computed(learner.carrying(perceptron_mistakes), p=p_of)


def p_of(learner: Learner) -> Scalar:
    """The argument of the p-norm Perceptron, which its mirror map keeps."""
    return learner.hparams.mirror.norm.dual.args[0]
