r"""The multiclass p-norm Perceptron: the multiclass Perceptron in the geometry of a q-norm.

$$w_{r,i} \propto \mathrm{sign}(\theta_{r,i}) |\theta_{r,i}|^{p-1}, \qquad \frac1p + \frac1q = 1,$$

where $\theta$ moves as the weights of `olx.multiclass.perceptron` do, and the norms are those of
all entries of a matrix. $p = 2$ is the Perceptron; $p$ of the order of $\log(k d)$ suits classes
that depend on few features. With $H$ the sum of the multiclass hinge losses of $U$ and $X$ the
largest $2^{1/p} \|x_t\|_p$, both over the mistakes, there are at most $H + X \|U\|_q \sqrt{(p - 1)
H} + (p - 1) X^2 \|U\|_q^2$ mistakes: `perceptron_mistakes` of `olx.classification.perceptron`.

Grove, Littlestone, Schuurmans, General Convergence Results for Linear Discriminant Updates, 2001;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.2.
"""

from olx import _check as check
from olx._refusal import public_as
from olx._words import computed
from olx.classification.perceptron import perceptron_mistakes
from olx.classification.pnorm_perceptron import p_of
from olx.core import Learner, Scalar
from olx.frameworks.ascents.base import conservative
from olx.frameworks.dual_ascent import dual_ascent
from olx.losses.class_hinges import multiclass_hinge
from olx.mirrors.pnorm import pnorm


@public_as("multiclass.pnorm_perceptron")
def pnorm_perceptron(p: Scalar) -> Learner:
    r"""The multiclass p-norm Perceptron, a predictor for labels 0, ..., k - 1.

    p: at least 2; $2 \ln(k d)$ if only few of $d$ features matter.

    `params` is an array with one row per class; only its shape is used.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.eye(3)[jnp.array([0, 1, 2, 0, 1, 2])], jnp.array([0, 1, 2] * 2))
    >>> loss = olx.losses.multiclass_zero_one
    >>> olx.rollout(pnorm_perceptron(4.0), loss, rounds, jnp.zeros((3, 3))).losses.tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    p = check.between("p", p, 2, float("inf"))
    learner = dual_ascent(1.0, pnorm(p / (p - 1)), multiclass_hinge, conservative())
    return computed(learner.carrying(perceptron_mistakes), p=p_of)
