r"""The multiclass Perceptron: after a mistake, add the row to its class and take it from a rival.

$$W_1 = 0, \qquad \hat y_t = \arg\max_r \langle w_r, x_t\rangle, \qquad
  w_{y_t} \leftarrow w_{y_t} + x_t, \quad w_{\hat y_t} \leftarrow w_{\hat y_t} - x_t
  \text{ if the score of } y_t \text{ is not strictly the largest.}$$

$\hat y_t$ is the best class other than $y_t$, the first one if several are best. It is
`dual_ascent` on the multiclass hinge by the rule `conservative`, as `olx.classification.perceptron`
is on the hinge. `uniform_perceptron` takes an equal part of the row from every class that scores at
least as much as the label; all bounds hold for it too.

With $M$ the set of mistakes, $H$ the sum of the multiclass hinge losses of $U$ over $M$ and $X$ the
largest $\sqrt2 \|x_s\|$ in $M$,

$$|M| \le H + \|U\|_F \sqrt{2 \sum_{s \in M} \|x_s\|^2} \le
  H + X \|U\|_F \sqrt H + X^2 \|U\|_F^2,$$

whatever the number of classes. By the inequality of the means it is at most $2 H + X^2 \|U\|_F^2$,
and with a margin $\gamma$

$$|M| \le 2 \sum_{s \in M} \max\Big(0, 1 - \frac1\gamma \min_{r \ne y_s} \langle u_{y_s} - u_r,
  x_s\rangle\Big) + \frac{X^2 \|U\|_F^2}{\gamma^2}.$$

Proof for the uniform rule: the step $a_s$ is a mean of the differences of the label and a violator.
So $\langle W_s, a_s\rangle \le 0$, $\|a_s\|^2 \le 2 \|x_s\|^2$ and $\langle U, a_s\rangle$ is at
least 1 minus the hinge loss of $U$.

Crammer, Singer, Ultraconservative Online Algorithms for Multiclass Problems, 2003; Shalev-Shwartz,
Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.2; Zhang, Mathematical
Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

from jaxtyping import PyTree

from olx._refusal import public, public_as
from olx.classification.perceptron import perceptron_mistakes
from olx.core import Learner, Scalar
from olx.frameworks.ascents.base import conservative, uniform
from olx.frameworks.dual_ascent import dual_ascent
from olx.frameworks.mistakes import Tally, at_margin, counted, is_conservative
from olx.frameworks.primal_dual import DualAscentHparams
from olx.losses.class_hinges import multiclass_hinge
from olx.mirrors.euclidean import euclidean
from olx.mirrors.pnorm import pnorm
from olx.theorem import About, Certificate, Theorem


@public_as("multiclass.perceptron")
def perceptron() -> Learner:
    """The multiclass Perceptron, a predictor for labels 0, ..., k - 1.

    `params` is an array with one row per class; only its shape is used. The first scores are 0,
    which counts as a mistake.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.eye(3)[jnp.array([0, 1, 2, 0, 1, 2])], jnp.array([0, 1, 2] * 2))
    >>> loss = olx.losses.multiclass_zero_one
    >>> olx.rollout(perceptron(), loss, rounds, jnp.zeros((3, 3))).losses.tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    learner = dual_ascent(1.0, euclidean(), multiclass_hinge, conservative())
    return learner.carrying(perceptron_mistakes)


@public
def uniform_perceptron() -> Learner:
    """The multiclass Perceptron that moves away from all classes that beat the label.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.ones((1, 1)), jnp.array([0]))
    >>> loss = olx.losses.multiclass_zero_one
    >>> olx.rollout(uniform_perceptron(), loss, rounds, jnp.zeros((3, 1))).state.acc[:, 0].tolist()
    [1.0, -0.5, -0.5]
    """
    learner = dual_ascent(1.0, euclidean(), multiclass_hinge, conservative(uniform()))
    return learner.carrying(perceptron_mistakes)


@public
def multiclass_perceptron_mistakes(margin: Scalar) -> Theorem:
    r"""The last bound of this page, for any margin $\gamma$; `published` sums over all rounds.

    margin: $\gamma$, positive.
    """
    source = "Zhang 2023, chapter 14, the multiclass Perceptron"
    return at_margin("multiclass_perceptron_mistakes", source, sides, margin, PERCEPTRONS)


def sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    whole = lambda gaps, square: (
        2 * gaps / tally.margin + 2 * tally.price * square / (tally.margin**2)
    )
    return counted(tally, whole(tally.gaps, tally.square), whole(tally.all_gaps, tally.longest))


def _is_perceptron(learner: Learner) -> bool:
    return is_conservative(learner, euclidean(), pnorm(1.5)) and learner.hparams.loss.of_classes


PERCEPTRONS = About("a Perceptron of `olx.multiclass`", _is_perceptron)
