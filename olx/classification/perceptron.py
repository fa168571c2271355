r"""The Perceptron and its p-norm form: add $y_t x_t$ after a mistake.

$$w_1 = 0, \qquad w_{t+1} = \begin{cases} w_t + y_t x_t & y_t \langle w_t, x_t\rangle \le 0 \\
  w_t & \text{otherwise.} \end{cases}$$

It is `dual_ascent` on the hinge in Euclidean space by the rule `conservative`, which adds $y_t x_t$
to the dual after a mistake and nothing otherwise. It needs no step size: a step size would only
scale $w_t$. With $M$ the set of mistakes, $H$ the sum of the hinge losses of $u$ on
$M$ and $X$ the largest $\|x_s\|$ in $M$,

$$|M| \le H + \|u\| \sqrt{\sum_{s \in M} \|x_s\|^2} \le H + X \|u\| \sqrt H + X^2 \|u\|^2.$$

The p-norm Perceptron is the same in the geometry of $\frac12 \|\cdot\|_q^2$, $\frac1p + \frac1q =
1$:

$$w_{t,i} \propto \mathrm{sign}(\theta_{t,i}) |\theta_{t,i}|^{p-1}, \qquad
  \theta_{t+1} = \theta_t + y_t x_t \text{ after a mistake.}$$

$p = 2$ is the Perceptron. $p$ of the order of $\log d$ is close to Winnow, but needs no step size
and has weights of both signs. With $X$ the largest $\|x_s\|_p$ in $M$, there are at most $H + X
\|u\|_q \sqrt{(p - 1) H} + (p - 1) X^2 \|u\|_q^2$ mistakes.

Rosenblatt, The Perceptron, 1958; Grove, Littlestone, Schuurmans, General Convergence Results for
Linear Discriminant Updates, 2001; Shalev-Shwartz, Online Learning: Theory, Algorithms, and
Applications, 2007, corollaries 5 and 7; Zhang, Mathematical Analysis of Machine Learning
Algorithms, 2023, chapter 14.
"""

import jax.numpy as jnp
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import public
from olx._words import computed
from olx.certificate import Certificate
from olx.core import Learner, Scalar
from olx.frameworks import mistakes
from olx.frameworks.ascents.base import conservative
from olx.frameworks.dual_ascent import dual_ascent
from olx.frameworks.mistakes import Tally
from olx.frameworks.primal_dual import DualAscentHparams, DualAscentState
from olx.losses.hinges import hinge
from olx.mirrors.euclidean import euclidean
from olx.mirrors.pnorm import pnorm
from olx.theorem import About, Theorem


@public
def perceptron() -> Learner:
    """The Perceptron, a predictor for labels +1 and -1.

    The context is shaped like `params`; only the shape of `params` is used. The first score is 0,
    which counts as a mistake.

    >>> import jax.numpy as jnp, olx
    >>> rows = jnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    >>> rounds = olx.Rounds(rows, jnp.array([1.0, -1.0, -1.0, -1.0]))
    >>> run = olx.rollout(perceptron(), olx.losses.zero_one, rounds, jnp.zeros(2))
    >>> run.losses.tolist(), run.state.acc.tolist()
    ([1.0, 1.0, 0.0, 0.0], [0.0, -1.0])
    """
    return dual_ascent(1.0, euclidean(), hinge, conservative()).carrying(perceptron_mistakes)


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


def open_account(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> Tally:
    return mistakes.open_tally(1.0, hp, state, u)


def both_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    r"""Both bounds of this page; $\frac2\beta f(u)$ is $\|u\|_2^2$ or $(p - 1) \|u\|_q^2$.

    They hold for conservative learners with $f(\lambda u) \le \lambda^2 f(u)$ and any fixed $c$.
    """
    twice = 2 * tally.price
    right = tally.gaps + jnp.sqrt(twice * tally.squares)
    return mistakes.counted(
        tally, right, mistakes.solved(tally.gaps, jnp.sqrt(twice * tally.square))
    )


@public
def separable_mistakes(margin: Scalar) -> Theorem:
    r"""If $y_s \langle u, x_s\rangle \ge \gamma$ in all rounds so far, $|M| \le \frac2\beta f(u)
    X^2 / \gamma^2$ with $X$ over all rounds. For `perceptron` it is $\|u\|^2 X^2 / \gamma^2$.

    margin: $\gamma$, positive.
    """
    source = "Zhang 2023, chapter 14, the Perceptron"
    return mistakes.at_margin("separable_mistakes", source, separable_sides, margin, PERCEPTRONS)


def separable_sides(hp: DualAscentHparams, tally: Tally, u: PyTree) -> Certificate:
    proof = mistakes.counted(tally, 2 * tally.price * tally.longest / tally.margin**2)
    return proof.given("`u` must have the margin in every round", tally.apart)


def _is_perceptron(learner: Learner) -> bool:
    return mistakes.is_conservative(learner, euclidean(), pnorm(1.5))


PERCEPTRONS = About("`perceptron` or `pnorm_perceptron`", _is_perceptron)
perceptron_mistakes = Theorem(
    "perceptron_mistakes",
    "Shalev-Shwartz 2007, corollaries 5 and 7",
    open_account,
    mistakes.add_round,
    both_sides,
    about=PERCEPTRONS,
)
