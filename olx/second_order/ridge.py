r"""Online ridge regression, and the forecaster of Vovk, Azoury and Warmuth.

`ridge` is recursive least squares, with optional forgetting:

$$w_t = \arg\min_w \; \lambda^{t-1} a \|w\|^2 +
  \sum_{s < t} \lambda^{t-1-s} (\langle w, x_s\rangle - y_s)^2.$$

$\lambda = 1$ is ridge regression on all rows so far; $\lambda < 1$ forgets, so that the weights
follow a truth that drifts, with a memory of about $1 / (1 - \lambda)$ rows. With $P$ the inverse of
the matrix of this problem and $\chi_t = x_t^\top P x_t$,

$$w_{t+1} = w_t + \frac{y_t - \langle w_t, x_t\rangle}{\lambda + \chi_t} P x_t, \qquad
  P \leftarrow \frac1\lambda \Big( P - \frac{P x_t x_t^\top P}{\lambda + \chi_t} \Big).$$

For every $u$ and rounds of weight 1,

$$\sum_{s \le t} \lambda^{t-s} \frac{\lambda\,(\langle w_s, x_s\rangle - y_s)^2}{\lambda + \chi_s}
  \le \lambda^t a \|u\|^2 + \sum_{s \le t} \lambda^{t-s} (\langle u, x_s\rangle - y_s)^2.$$

The left side is the minimum of the right side over $u$: the bound is attained by $w_{t+1}$.

`vaw` counts the new row already:

$$A_t = a I + \sum_{s \le t} x_s x_s^\top, \qquad
  \hat y_t = x_t^\top A_t^{-1} \sum_{s < t} y_s x_s.$$

The matrix includes $x_t$, which is known before the prediction. That shrinks the prediction of
`ridge` by the factor $1 / (1 + \chi_t)$, $\chi_t = x_t^\top A_{t-1}^{-1} x_t$. It is follow the
regularized leader with $f_t(w) = \frac12 w^\top A_t w$ and $z_t = y_t x_t$, which is no gradient.

For every $u$ and rounds of weight 1, with $Y$ the largest $|y_s|$,

$$\sum_{s \le t} \tfrac12 (\hat y_s - y_s)^2 - \tfrac12 (\langle u, x_s\rangle - y_s)^2 \le
  \frac a2 \|u\|^2 + \sum_{s \le t} \frac{y_s^2}2\, x_s^\top A_s^{-1} x_s \le
  \frac a2 \|u\|^2 + \frac{Y^2}2 \sum_{s \le t} x_s^\top A_s^{-1} x_s.$$

The sum is at most $\ln \det (A_t / a)$, so the regret grows with the logarithm of $t$, and no
bound on the rows or on $u$ is needed.

Plackett, Some Theorems in Least Squares, 1950, for the update; Azoury, Warmuth, Relative Loss
Bounds for On-line Density Estimation with the Exponential Family of Distributions, 2001, for the
identity without forgetting. With forgetting it follows in the same way: the minimum of the right
side is $\lambda$ times the earlier minimum plus the new term of the left side. Vovk, Competitive
On-line Statistics, 2001; Orabona, Crammer, Cesa-Bianchi, 2015, section 4.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import LeastSquares
from olx.second_order.rank_one import (
    RankOneHparams,
    RankOneState,
    Row,
    Rule,
    Step,
    adding,
    comparator,
    init_classes,
    rank_one,
    row_and_score,
    vector,
)
from olx.theorem import MET, ZERO, Theorem, largest, summed


@public
def ridge(a: Scalar, forget: Scalar = 1.0) -> Learner:
    r"""Online ridge regression, a predictor for the squared loss.

    a: positive; the strength of the ridge.
    forget: $\lambda$ in (0, 1]; 1 forgets nothing. In directions without data $P$ grows by the
        factor $1 / \lambda$ per round; it stops growing before it overflows.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(jnp.array([[1.0, 0.0], [1.0, 0.0]]), jnp.array([2.0, 2.0]))
    >>> learner = olx.second_order.ridge(1.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(2), record=olx.record.actions
    ... )
    >>> run.trace.round(6).tolist()
    [0.0, 1.0]
    """
    a = check.positive("a", a)
    forget = check.above("forget", forget, 0, 1)
    rule = Rule(forget, score, step)
    squares = LeastSquares(_forget, _score, init_classes)
    return rank_one(rule, a, grows=True, squares=squares, theorems=(least_squares,))


def score(forget: Scalar, margin: Array, spread: Array) -> Array:
    return margin


def step(forget: Scalar, row: Row, feedback: Feedback) -> Step:
    weight, total = feedback.weight, forget + feedback.weight * row.spread
    move = weight * (feedback.outcome - row.margin) / total
    return Step(move, weight / total, forget / total, 1 / jnp.asarray(forget))


def _score(hp: RankOneHparams, margin: Array, spread: Array) -> Array:
    return hp.rule.score(margin, spread)


def _forget(hp: RankOneHparams) -> Scalar:
    return 1.0 if hp.rule.hparams is None else hp.rule.hparams


class SquaresAccount(NamedTuple):
    left: Float[Array, ""]
    right: Float[Array, ""]
    unit: Bool[Array, ""]  # whether all weights were 1


def open_squares(hp: RankOneHparams, state: RankOneState, u: PyTree) -> SquaresAccount:
    right = hp.prior * jnp.sum(comparator(state, u) ** 2)
    return SquaresAccount(jnp.zeros_like(right), right, jnp.ones((), bool))


def add_square(
    hp: RankOneHparams, account: SquaresAccount, state: RankOneState, feedback: Feedback, u: PyTree
) -> SquaresAccount:
    y, forget = feedback.outcome, hp.rule.hparams
    row, along = row_and_score(state, feedback, u)
    own = forget * (feedback.action - y) ** 2 / (forget + row.spread)
    return SquaresAccount(
        forget * account.left + own,
        forget * account.right + (along - y) ** 2,
        account.unit & (jnp.asarray(feedback.weight) == 1),
    )


def square_sides(hp: RankOneHparams, account: SquaresAccount, u: PyTree) -> Certificate:
    proof = Certificate(account.left, account.right, 8 * (account.left + account.right))
    return proof.given(UNIT_WEIGHTS, account.unit)


least_squares = Theorem(
    "least_squares", "Azoury, Warmuth 2001, the identity", open_squares, add_square, square_sides
)


@public
def vaw(a: Scalar) -> Learner:
    r"""The forecaster of Vovk, Azoury and Warmuth, a predictor for the squared loss.

    a: positive; the strength of the ridge. Theory suggests $Y^2 / \|u\|^2$.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_regression(jax.random.key(0), rounds=100, features=3)
    >>> learner = olx.second_order.vaw(1.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(3), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u).holds)
    True
    """
    a = check.positive("a", a)
    rule, squares = Rule(None, vaw_score, vaw_step), LeastSquares(_forget, _score, init_classes)
    return rank_one(rule, a, squares=squares, theorems=(logarithmic_regret,))


def vaw_score(hp: None, margin: Array, spread: Array) -> Array:
    return margin / (1 + spread)


def vaw_step(hp: None, row: Row, feedback: Feedback) -> Step:
    return adding(row, 1.0, feedback.outcome, feedback.weight)


class Account(NamedTuple):
    regret: Float[Array, ""]
    size: Float[Array, ""]  # the sum of both losses, for the rounding error
    paid: Float[Array, ""]  # the sum of y^2 x' A^-1 x / 2
    spread: Float[Array, ""]  # the sum of x' A^-1 x
    largest: Float[Array, ""]  # Y^2
    unit: Bool[Array, ""]  # whether all weights were 1


def start(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Account:
    comparator(state, u)
    return Account(*[ZERO] * 5, unit=MET)


def terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Account:
    y = feedback.outcome
    row, along = row_and_score(state, feedback, u)
    own, other = (feedback.action - y) ** 2 / 2, (along - y) ** 2 / 2
    spread = row.spread / (1 + row.spread)
    return Account(
        own - other,
        own + other,
        y**2 / 2 * spread,
        spread,
        largest(y**2),
        jnp.asarray(feedback.weight) == 1,
    )


def both_sides(hp: RankOneHparams, account: Account, u: PyTree) -> Certificate:
    start = hp.prior / 2 * jnp.sum(vector(u) ** 2)
    right = start + account.paid
    published = start + account.largest / 2 * account.spread
    proof = Certificate(account.regret, right, account.size + right, published)
    return proof.given(UNIT_WEIGHTS, account.unit)


logarithmic_regret = summed(
    "logarithmic_regret", "Vovk 2001; Orabona et al. 2015, section 4", terms, both_sides, start
)
