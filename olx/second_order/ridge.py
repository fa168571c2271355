r"""Online ridge regression, which is recursive least squares, with optional forgetting.

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

Plackett, Some Theorems in Least Squares, 1950, for the update; Azoury, Warmuth, 2001, for the
identity without forgetting. With forgetting it follows in the same way: the minimum of the right
side is $\lambda$ times the earlier minimum plus the new term of the left side.
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
    comparator,
    look,
    rank_one,
    vector,
)
from olx.theorem import UNIT_WEIGHTS, Certificate, Theorem


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
    return rank_one(rule, a, grows=True, theorems=(least_squares,))


def score(forget: Scalar, margin: Array, spread: Array) -> Array:
    return margin


def step(forget: Scalar, row: Row, feedback: Feedback) -> Step:
    weight, total = feedback.weight, forget + feedback.weight * row.spread
    move = weight * (feedback.outcome - row.margin) / total
    return Step(move, weight / total, forget / total, 1 / jnp.asarray(forget))


class Account(NamedTuple):
    left: Float[Array, ""]
    right: Float[Array, ""]
    unit: Bool[Array, ""]  # whether all weights were 1


def open_account(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Account:
    right = hp.prior * jnp.sum(comparator(state, u) ** 2)
    return Account(jnp.zeros_like(right), right, jnp.ones((), bool))


def add_round(
    hp: RankOneHparams, account: Account, state: RankOneState, feedback: Feedback, u: PyTree
) -> Account:
    x, y, forget = vector(feedback.context), feedback.outcome, hp.rule.hparams
    row, _ = look(state, x)
    own = forget * (feedback.action - y) ** 2 / (forget + row.spread)
    return Account(
        forget * account.left + own,
        forget * account.right + (jnp.vdot(vector(u), x) - y) ** 2,
        account.unit & (jnp.asarray(feedback.weight) == 1),
    )


def both_sides(hp: RankOneHparams, account: Account, u: PyTree) -> Certificate:
    proof = Certificate(account.left, account.right, 8 * (account.left + account.right))
    return proof.given(UNIT_WEIGHTS, account.unit)


least_squares = Theorem(
    "least_squares", "Azoury, Warmuth 2001, the identity", open_account, add_round, both_sides
)
