r"""Conservative learners of classes: after a mistake, move a row from a rival to its class.

All are `dual_ascent` on the multiclass hinge by the rule `conservative`, as `perceptron`,
`pnorm_perceptron` and `winnow` of `olx.classification` are on the hinge. After a mistake, which is
a round in which the score of $y_t$ is not strictly the largest,

$$\theta_{y_t} \leftarrow \theta_{y_t} + x_t, \qquad
  \theta_{\hat y_t} \leftarrow \theta_{\hat y_t} - x_t, \qquad \theta_1 = 0,$$

with $\hat y_t$ the best class other than $y_t$, the first one if several are best. The weights are

- `perceptron`: $w_r = \theta_r$. `uniform_perceptron` takes an equal part of the row from every
  class that scores at least as much as the label; all bounds hold for it too.
- `pnorm_perceptron`: $w_{r,i} \propto \mathrm{sign}(\theta_{r,i}) |\theta_{r,i}|^{p-1}$, for the
  geometry of the $q$-norm of all entries of a matrix, $\frac1p + \frac1q = 1$. $p = 2$ is the
  Perceptron; $p$ of the order of $\log(k d)$ suits classes that depend on few features.
- `exponentiated_gradient`: $w_{r,i} \propto e^{\eta \theta_{r,i}}$. All $k d$ weights are positive
  and sum to 1. For two classes the difference of their weights is that of balanced Winnow.

With $M$ the set of mistakes, $H$ the sum of the multiclass hinge losses of $U$ over $M$ and $X$ the
largest $\sqrt2 \|x_s\|$ in $M$, the Perceptron makes at most

$$|M| \le H + \|U\|_F \sqrt{2 \sum_{s \in M} \|x_s\|^2} \le
  H + X \|U\|_F \sqrt H + X^2 \|U\|_F^2$$

mistakes, whatever the number of classes. For the p-norm $X$ is the largest $2^{1/p} \|x_s\|_p$, and
$(p - 1) \|U\|_q^2$ replaces $\|U\|_F^2$: both are `perceptron_mistakes` of
`olx.classification.perceptron`. By the inequality of the means it is at most $2 H + X^2 \|U\|_F^2$,
and with a margin $\gamma$

$$|M| \le 2 \sum_{s \in M} \max\Big(0, 1 - \frac1\gamma \min_{r \ne y_s} \langle u_{y_s} - u_r,
  x_s\rangle\Big) + \frac{X^2 \|U\|_F^2}{\gamma^2}.$$

Proof for the uniform rule: the step $a_s$ is a mean of the differences of the label and a violator.
So $\langle W_s, a_s\rangle \le 0$, $\|a_s\|^2 \le 2 \|x_s\|^2$ and $\langle U, a_s\rangle$ is at
least 1 minus the hinge loss of $U$.

For exponentiated gradient, $U$ in the simplex of $k d$ weights and any margin $\gamma$, with $H$
the sum of $\max(0, \gamma - \min_{r \ne y_s} \langle u_{y_s} - u_r, x_s\rangle)$ and $X$ the
largest $\|x_s\|_\infty$, both over $M$,

$$\gamma |M| \le H + \frac{\log(k d)}\eta + \frac\eta2 X^2 |M|.$$

The learner carries this theorem for $\gamma = 1$; `olx.theorems.winnow_mistakes` makes it for any
$\gamma$.

Crammer, Singer, Ultraconservative Online Algorithms for Multiclass Problems, 2003; Grove,
Littlestone, Schuurmans, General Convergence Results for Linear Discriminant Updates, 2001;
Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (5.7) and section
5.3.2; Zhang, Mathematical Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import public, public_as
from olx._words import computed
from olx.certificate import Certificate
from olx.classification.perceptron import p_of, perceptron_mistakes
from olx.classification.winnow import winnow_mistakes
from olx.core import Learner, Scalar
from olx.frameworks import mistakes
from olx.frameworks.ascents.base import conservative, uniform
from olx.frameworks.dual_ascent import dual_ascent
from olx.frameworks.mistakes import Tally
from olx.frameworks.primal_dual import DualAscentHparams
from olx.losses.class_hinges import multiclass_hinge
from olx.mirrors.entropy import negative_entropy
from olx.mirrors.euclidean import euclidean
from olx.mirrors.pnorm import pnorm
from olx.theorem import About, Theorem


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


@public_as("multiclass.exponentiated_gradient")
def exponentiated_gradient(eta: Scalar) -> Learner:
    r"""Multiclass EG, a predictor for labels 0, ..., k - 1.

    eta: positive. For a comparator with margin $\gamma$ in all rounds, $\gamma / X^2$ gives at most
        $2 X^2 \log(k d) / \gamma^2$ mistakes.

    `params` is an array with one row per class; only its shape is used.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.eye(3)[jnp.array([0, 1, 2, 0, 1, 2])], jnp.array([0, 1, 2] * 2))
    >>> learner, loss = exponentiated_gradient(0.5), olx.losses.multiclass_zero_one
    >>> olx.rollout(learner, loss, rounds, jnp.zeros((3, 3))).losses.tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    check.positive("eta", eta)
    learner = dual_ascent(eta, negative_entropy(), multiclass_hinge, conservative())
    return learner.carrying(winnow_mistakes(1.0))


@public
def multiclass_perceptron_mistakes(margin: Scalar) -> Theorem:
    r"""The last bound of this page, for any margin $\gamma$; `published` sums over all rounds.

    margin: $\gamma$, positive.
    """
    source = "Zhang 2023, chapter 14, the multiclass Perceptron"
    return mistakes.at_margin("multiclass_perceptron_mistakes", source, sides, margin, PERCEPTRONS)


def sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    whole = lambda gaps, square: (
        2 * gaps / tally.margin + 2 * tally.price * square / (tally.margin**2)
    )
    return mistakes.counted(
        tally, whole(tally.gaps, tally.square), whole(tally.all_gaps, tally.longest)
    )


def _is_perceptron(learner: Learner) -> bool:
    return (
        mistakes.is_conservative(learner, euclidean(), pnorm(1.5))
        and learner.hparams.loss.of_classes
    )


PERCEPTRONS = About("a Perceptron of `olx.multiclass`", _is_perceptron)
