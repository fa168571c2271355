r"""AROW as its first paper has it: a Gaussian over weights that grows more certain with every row.

With mean $w$ and covariance $P$, both of which change only if $y_t m_t < 1$, $m_t = \langle w_t,
x_t\rangle$:

$$w_{t+1} = w_t + \frac{1 - y_t m_t}{r + \chi_t}\, y_t P x_t, \qquad
  P \leftarrow P - \frac{P x_t x_t^\top P}{r + \chi_t}, \qquad \chi_t = x_t^\top P x_t.$$

It plays the margin $m_t$. `arow` is the same idea with another threshold for updates; this is the
rule of LIBOL and SOL. With $M$ the mistakes, $U$ the other rounds with an update, and $H$ the sum
of the hinge losses of $u$ over $M \cup U$, for every $u$ and rounds of weight 1

$$|M| \le H - |U| + \sqrt{r \|u\|^2 + \sum_{s \in M \cup U} \langle u, x_s\rangle^2}
  \sqrt{\ln \det P_t^{-1} + |U|}.$$

Crammer, Kulesza, Dredze, Adaptive Regularization of Weight Vectors, 2009, theorem 2.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.losses.score import signs
from olx.second_order import sketch
from olx.second_order.arow import asks, start
from olx.second_order.rank_one import (
    RankOneHparams,
    RankOneState,
    Row,
    Rule,
    Step,
    adding,
    look,
    rank_one,
    vector,
    weight_if,
)
from olx.second_order.sketch import Tally, Terms
from olx.theorem import UNIT_WEIGHTS, Certificate, summed


@public
def arow_original(r: Scalar) -> Learner:
    """AROW of the first paper with a full matrix, a predictor for labels +1 and -1.

    r: positive; larger for more noise.

    The context is shaped like `params`; only the shape of `params` is used.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> learner = olx.second_order.arow_original(1.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.1).holds)
    True
    """
    r = check.positive("r", r)
    needs = (signs("arow_original"),)
    return rank_one(Rule(r, score, step), needs=needs, theorems=(mistakes_made,))


def score(r: Scalar, margin: Array, spread: Array) -> Array:
    return margin


def step(r: Scalar, row: Row, feedback: Feedback) -> Step:
    return adding(row, r, feedback.outcome / r, weight_if(asks(feedback), feedback))


def terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Tally:
    x = vector(feedback.context)
    row, along = look(state, x)[0], jnp.vdot(vector(u), x)
    grown = jnp.log1p(row.spread / hp.rule.hparams)
    return sketch.tally_terms(feedback, along, asks(feedback), Terms(along**2, grown, grown))


def both_sides(hp: RankOneHparams, tally: Tally, u: PyTree) -> Certificate:
    left, rest = tally.mistakes, jnp.sqrt(tally.price * (tally.growth + tally.close))
    right = tally.gaps - tally.close + rest
    scale = left + tally.gaps + tally.close + rest
    return Certificate(left, right, scale).given(UNIT_WEIGHTS, tally.unit)


mistakes_made = summed(
    "mistakes_made", "Crammer, Kulesza, Dredze 2009, theorem 2", terms, both_sides, start
)
