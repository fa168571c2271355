r"""AROW, adaptive regularization of weights, as mirror descent with a growing quadratic.

$$A_0 = I, \qquad \hat y_t = x_t^\top \Big( A_{t-1} + \frac{x_t x_t^\top}r \Big)^{-1} \theta_t =
  \frac{r\, m_t}{r + \chi_t}, \qquad m_t = \theta_t^\top A_{t-1}^{-1} x_t, \quad
  \chi_t = x_t^\top A_{t-1}^{-1} x_t.$$

If $y_t \hat y_t < 1$, then $\theta_{t+1} = \theta_t + y_t x_t$ and $A_t = A_{t-1} + x_t x_t^\top /
r$; otherwise nothing changes. Rows in directions seen before move the weights little.

With $M$ the mistakes, $U$ the other rounds with an update, and $H$ the sum of the hinge losses of
$u$ over $M \cup U$, for every $u$ and rounds of weight 1

$$|M| + |U| \le H + \sqrt{r \|u\|^2 + \sum_{s \in M \cup U} \langle u, x_s\rangle^2}
  \sqrt{\ln \det A_t + \sum_{s \in M \cup U} \frac{m_s (2 r y_s - m_s)}{r (r + \chi_s)}}.$$

`right` has $\sum_s \chi_s / (r + \chi_s)$ in place of the logarithm.

`arow_original` is the update of the first paper. Its margin is $m_t / r$ for the same updates: both
rules predict the same label in the same state, but they ask for updates in different rounds. They
are closest for $r = 1$.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, section 6.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.losses.score import signs
from olx.second_order import sketch
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
    weight_if,
)
from olx.second_order.sketch import Tally, Terms
from olx.theorem import summed


@public
def arow(r: Scalar) -> Learner:
    """AROW with a full matrix, a predictor for labels +1 and -1.

    r: positive; larger for more noise. Updates change the weights less for larger `r`.

    The context is shaped like `params`; only the shape of `params` is used.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> learner = olx.second_order.arow(1.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.1).holds)
    True
    """
    r = check.positive("r", r)
    return rank_one(Rule(r, score, step), needs=(signs("arow"),), theorems=(updates_made,))


def score(r: Scalar, margin: Array, spread: Array) -> Array:
    return margin * r / (r + spread)


def step(r: Scalar, row: Row, feedback: Feedback) -> Step:
    return adding(row, r, feedback.outcome, weight_if(asks(feedback), feedback))


def asks(feedback: Feedback) -> Array:
    """Whether the round is a mistake or a margin error."""
    return feedback.outcome * feedback.action < 1


def start(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Tally:
    return sketch.first_tally(hp.rule.hparams * jnp.sum(comparator(state, u) ** 2))


def terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Tally:
    x = vector(feedback.context)
    row, along = look(state, x)[0], jnp.vdot(vector(u), x)
    grown = growth(hp.rule.hparams, row, feedback.outcome, along)
    return sketch.tally_terms(feedback, along, asks(feedback), grown)


def growth(r: Scalar, row: Row, y: Array, along: Array) -> Terms:
    """The terms of a round with an update; `along` is the score of `u`."""
    total = r + row.spread
    rest = row.margin * (2 * r * y - row.margin) / (r * total)
    return Terms(along**2, row.spread / total + rest, jnp.log1p(row.spread / r) + rest)


updates_made = summed(
    "updates_made", "Orabona et al. 2015, section 6", terms, sketch.tally_sides, start
)
