r"""The second-order Perceptron: a Perceptron in the geometry of the rows of its mistakes.

$$A_0 = a I, \qquad \hat y_t = x_t^\top \big( A_{t-1} + x_t x_t^\top \big)^{-1} \theta_t.$$

After a mistake, $y_t \hat y_t \le 0$, $\theta_{t+1} = \theta_t + y_t x_t$ and $A_t = A_{t-1} + x_t
x_t^\top$; otherwise nothing changes. It is `arow` with $r = 1$ that learns from mistakes only. With
$M$ the mistakes, $H$ the sum of the hinge losses of $u$ over them, $m_s = \theta_s^\top
A_{s-1}^{-1} x_s$ and $\chi_s = x_s^\top A_{s-1}^{-1} x_s$, for every $u$ and rounds of weight 1

$$|M| \le H + \sqrt{a \|u\|^2 + \sum_{s \in M} \langle u, x_s\rangle^2}
  \sqrt{\ln \det (A_t / a) + \sum_{s \in M} \frac{m_s (2 y_s - m_s)}{1 + \chi_s}}.$$

`right` has $\sum_s \chi_s / (1 + \chi_s)$ in place of the logarithm. The last sum is not positive,
because $y_s m_s \le 0$ in a mistake.

Cesa-Bianchi, Conconi, Gentile, A Second-Order Perceptron Algorithm, 2005; Orabona, Crammer,
Cesa-Bianchi, 2015, section 6.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.losses.margin import mistaken
from olx.losses.score import signs
from olx.second_order.arow import Tally, first_tally, growth, tally_sides, tally_terms
from olx.second_order.rank_one import (
    RankOneHparams,
    RankOneState,
    Row,
    Rule,
    Step,
    adding,
    comparator,
    rank_one,
    row_and_score,
    weight_if,
)
from olx.theorem import summed


@public
def second_order_perceptron(a: Scalar = 1.0) -> Learner:
    """The second-order Perceptron, a predictor for labels +1 and -1.

    a: positive; for very large `a` it makes the predictions of the Perceptron.

    The context is shaped like `params`; only the shape of `params` is used. The first score is 0,
    which counts as a mistake.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> learner = olx.second_order.second_order_perceptron()
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.1).holds)
    True
    """
    a = check.positive("a", a)
    needs = (signs("second_order_perceptron"),)
    return rank_one(Rule(None, score, step), a, needs=needs, theorems=(mistakes_made,))


def score(hp: None, margin: Array, spread: Array) -> Array:
    return margin / (1 + spread)


def step(hp: None, row: Row, feedback: Feedback) -> Step:
    return adding(row, 1.0, feedback.outcome, weight_if(errs(feedback), feedback))


def errs(feedback: Feedback) -> Array:
    """Whether the round is a mistake."""
    return mistaken(feedback.action, feedback.outcome)


def start(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Tally:
    return first_tally(hp.prior * jnp.sum(comparator(state, u) ** 2))


def terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Tally:
    row, along = row_and_score(state, feedback, u)
    grown = growth(1.0, row, feedback.outcome, along)
    return tally_terms(feedback, along, errs(feedback), grown)


mistakes_made = summed(
    "mistakes_made",
    "Cesa-Bianchi, Conconi, Gentile 2005; Orabona et al. 2015, section 6",
    terms,
    tally_sides,
    start,
)
