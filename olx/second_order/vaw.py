r"""The forecaster of Vovk, Azoury and Warmuth: ridge regression that counts the new row already.

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

Vovk, Competitive On-line Statistics, 2001; Azoury, Warmuth, Relative Loss Bounds for On-line
Density Estimation with the Exponential Family of Distributions, 2001; Orabona, Crammer,
Cesa-Bianchi, 2015, section 4.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.second_order.rank_one import (
    RankOneHparams,
    RankOneState,
    Row,
    Rule,
    Step,
    adding,
    comparator,
    look,
    rank_one,
    vector,
)
from olx.theorem import MET, UNIT_WEIGHTS, ZERO, Certificate, largest, summed


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
    return rank_one(Rule(None, score, step), a, theorems=(logarithmic_regret,))


def score(hp: None, margin: Array, spread: Array) -> Array:
    return margin / (1 + spread)


def step(hp: None, row: Row, feedback: Feedback) -> Step:
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
    x, y = vector(feedback.context), feedback.outcome
    row, _ = look(state, x)
    own, other = (feedback.action - y) ** 2 / 2, (jnp.vdot(vector(u), x) - y) ** 2 / 2
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
