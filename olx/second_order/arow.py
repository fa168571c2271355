r"""AROW, adaptive regularization of weights, and the second-order Perceptron.

`arow` is mirror descent with a growing quadratic,

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

`arow_original` is the update of the first paper, and the rule of LIBOL: a Gaussian over weights
with mean $w$ and covariance $P$, both of which change only if $y_t m_t < 1$, $m_t = \langle w_t,
x_t\rangle$. SOL keeps the variances alone: `diagonal_arow_original`.

$$w_{t+1} = w_t + \frac{1 - y_t m_t}{r + \chi_t}\, y_t P x_t, \qquad
  P \leftarrow P - \frac{P x_t x_t^\top P}{r + \chi_t}, \qquad \chi_t = x_t^\top P x_t.$$

It plays the margin $m_t$, which is $m_t / r$ of `arow` for the same updates: both rules predict the
same label in the same state, but they ask for updates in different rounds. They are closest for
$r = 1$. For every $u$ and rounds of weight 1

$$|M| \le H - |U| + \sqrt{r \|u\|^2 + \sum_{s \in M \cup U} \langle u, x_s\rangle^2}
  \sqrt{\ln \det P_t^{-1} + |U|}.$$

`diagonal_arow` keeps one variance per coordinate, at $O(d)$ per round:

$$D_0 = I, \qquad \hat y_t = \sum_i \frac{\theta_{t,i}\, x_{t,i}}{D_{t-1,i} + x_{t,i}^2 / r}.$$

If $y_t \hat y_t < 1$, then $\theta_{t+1} = \theta_t + y_t x_t$ and $D_{t,i} = D_{t-1,i} + x_{t,i}^2
/ r$; otherwise nothing changes. For every $u$ and rounds of weight 1

$$|M| + |U| \le H + \sqrt{\textstyle\sum_i D_{t,i} u_i^2}
  \sqrt{r \sum_i \ln D_{t,i} + 2 |U|}.$$

`right` has, in place of the second root's argument, the sum over the rounds with an update of
$\sum_i x_{s,i}^2 / D_{s,i} + 2 y_s \hat y_s - \sum_i \theta_{s,i}^2 (1 / D_{s-1,i} - 1 / D_{s,i})$.

`second_order_perceptron` is `arow` with $r = 1$ that learns from mistakes only:

$$A_0 = a I, \qquad \hat y_t = x_t^\top \big( A_{t-1} + x_t x_t^\top \big)^{-1} \theta_t.$$

After a mistake, $y_t \hat y_t \le 0$, $\theta_{t+1} = \theta_t + y_t x_t$ and $A_t = A_{t-1} + x_t
x_t^\top$; otherwise nothing changes. For every $u$ and rounds of weight 1

$$|M| \le H + \sqrt{a \|u\|^2 + \sum_{s \in M} \langle u, x_s\rangle^2}
  \sqrt{\ln \det (A_t / a) + \sum_{s \in M} \frac{m_s (2 y_s - m_s)}{1 + \chi_s}}.$$

`right` has $\sum_s \chi_s / (1 + \chi_s)$ in place of the logarithm. The last sum is not positive,
because $y_s m_s \le 0$ in a mistake.

All these bounds have the form $H + \sqrt{\text{price} \cdot \text{growth}}$ over the rounds with an
update, where the price is a squared norm of $u$. A `Tally` is their account.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, section 6; Crammer, Kulesza, Dredze, Adaptive Regularization of
Weight Vectors, 2009, theorem 2; Cesa-Bianchi, Conconi, Gentile, A Second-Order Perceptron
Algorithm, 2005.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise
from olx.frameworks.lift import dot
from olx.losses.margin import mistaken
from olx.losses.score import signs
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
from olx.theorem import MET, ZERO, summed


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
    rule, needs = Rule(r, original_score, original_step), (signs("arow_original"),)
    return rank_one(rule, needs=needs, theorems=(mistakes_made,))


def original_score(r: Scalar, margin: Array, spread: Array) -> Array:
    return margin


def original_step(r: Scalar, row: Row, feedback: Feedback) -> Step:
    return adding(row, r, feedback.outcome / r, weight_if(asks(feedback), feedback))


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
    rule, needs = Rule(None, perceptron_score, perceptron_step), (signs("second_order_perceptron"),)
    return rank_one(rule, a, needs=needs, theorems=(perceptron_mistakes,))


def perceptron_score(hp: None, margin: Array, spread: Array) -> Array:
    return margin / (1 + spread)


def perceptron_step(hp: None, row: Row, feedback: Feedback) -> Step:
    return adding(row, 1.0, feedback.outcome, weight_if(errs(feedback), feedback))


def errs(feedback: Feedback) -> Array:
    """Whether the round is a mistake."""
    return mistaken(feedback.action, feedback.outcome)


@pytree
class DiagonalAROWHparams:
    r: Scalar


class DiagonalAROWState(NamedTuple):
    theta: PyTree
    d: PyTree  # D


@public
def diagonal_arow(r: Scalar) -> Learner:
    """AROW with a diagonal matrix, a predictor for labels +1 and -1.

    r: positive; larger for more noise.

    The context is shaped like `params`; only the shape of `params` is used. Sparse rows are
    supported.
    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> learner = olx.second_order.diagonal_arow(1.0)
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.1).holds)
    True
    """
    hparams = DiagonalAROWHparams(check.positive("r", r))
    parts = hparams, diagonal_init, diagonal_predict, diagonal_update
    facts, needs = Facts(coordinates=Rowwise()), (signs("diagonal_arow"),)
    return Learner(*parts, facts=facts, needs=needs, theorems=(diagonal_updates_made,))


def diagonal_init(hp: DiagonalAROWHparams, params: PyTree) -> DiagonalAROWState:
    return DiagonalAROWState(tree.zeros_like(params), tree.ones_like(params))


def diagonal_predict(hp: DiagonalAROWHparams, state: DiagonalAROWState, context: PyTree) -> Array:
    return dot(tree.div(state.theta, _grown(hp, state, context, 1.0)), context)


def diagonal_update(
    hp: DiagonalAROWHparams, state: DiagonalAROWState, feedback: Feedback
) -> DiagonalAROWState:
    weight = weight_if(asks(feedback), feedback)
    theta = tree.add_scale(state.theta, weight * feedback.outcome, feedback.context)
    return DiagonalAROWState(theta, _grown(hp, state, feedback.context, weight))


def _grown(hp: DiagonalAROWHparams, state: DiagonalAROWState, x: PyTree, weight: Scalar) -> PyTree:
    part = weight / hp.r
    return jax.tree.map(lambda d, x: d + part * x**2, state.d, x)


class Tally(NamedTuple):
    mistakes: Float[Array, ""]  # |M|
    close: Float[Array, ""]  # |U|
    gaps: Float[Array, ""]  # H
    price: Float[Array, ""]
    growth: Float[Array, ""]  # as the proof has it
    published: Float[Array, ""]  # as the source prints it
    unit: Bool[Array, ""]  # whether all weights were 1


class Terms(NamedTuple):
    """What a round adds to the fields of these names if it counts."""

    price: Array
    growth: Array
    published: Array


def first_tally(price: Array) -> Tally:
    """The tally before the first round."""
    return Tally(ZERO, ZERO, ZERO, price, ZERO, ZERO, MET)


def tally_terms(feedback: Feedback, along: Array, counts: Array, terms: Terms) -> Tally:
    """What a round adds.

    along: the score of `u`.
    counts: whether the round had an update.
    """
    y = feedback.outcome
    wrong = mistaken(feedback.action, y)
    one, if_counts = jnp.ones_like(along), lambda value: jnp.where(counts, value, 0.0)
    return Tally(
        jnp.where(wrong, one, 0.0),
        if_counts(jnp.where(wrong, 0.0, one)),
        if_counts(jnp.maximum(1 - y * along, 0.0)),
        *map(if_counts, terms),
        unit=jnp.asarray(feedback.weight) == 1,
    )


def tally_sides(hp: PyTree, tally: Tally, u: PyTree) -> Certificate:
    r"""$|M| + |U| \le H + \sqrt{\text{price} \cdot \text{growth}}$."""
    left = tally.mistakes + tally.close
    most = lambda growth: tally.gaps + jnp.sqrt(tally.price * jnp.maximum(growth, 0.0))
    right = most(tally.growth)
    proof = Certificate(left, right, left + right, most(tally.published))
    return proof.given(UNIT_WEIGHTS, tally.unit)


def start(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Tally:
    return first_tally(hp.rule.hparams * jnp.sum(comparator(state, u) ** 2))


def terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Tally:
    return _terms(hp.rule.hparams, asks(feedback), state, feedback, u)


def _terms(r: Scalar, counts: Array, state: RankOneState, feedback: Feedback, u: PyTree) -> Tally:
    row, along = row_and_score(state, feedback, u)
    return tally_terms(feedback, along, counts, growth(r, row, feedback.outcome, along))


def growth(r: Scalar, row: Row, y: Array, along: Array) -> Terms:
    """The terms of a round with an update; `along` is the score of `u`."""
    total = r + row.spread
    rest = row.margin * (2 * r * y - row.margin) / (r * total)
    return Terms(along**2, row.spread / total + rest, jnp.log1p(row.spread / r) + rest)


def original_terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Tally:
    row, along = row_and_score(state, feedback, u)
    grown = jnp.log1p(row.spread / hp.rule.hparams)
    return tally_terms(feedback, along, asks(feedback), Terms(along**2, grown, grown))


def original_sides(hp: RankOneHparams, tally: Tally, u: PyTree) -> Certificate:
    left, rest = tally.mistakes, jnp.sqrt(tally.price * (tally.growth + tally.close))
    right = tally.gaps - tally.close + rest
    scale = left + tally.gaps + tally.close + rest
    return Certificate(left, right, scale).given(UNIT_WEIGHTS, tally.unit)


def perceptron_start(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Tally:
    return first_tally(hp.prior * jnp.sum(comparator(state, u) ** 2))


def perceptron_terms(
    hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree
) -> Tally:
    return _terms(1.0, errs(feedback), state, feedback, u)


def diagonal_start(hp: DiagonalAROWHparams, state: DiagonalAROWState, u: PyTree) -> Tally:
    u = check.comparator(u, state.theta)
    return first_tally(jnp.asarray(tree.vdot(u, u)))


def diagonal_terms(
    hp: DiagonalAROWHparams, state: DiagonalAROWState, feedback: Feedback, u: PyTree
) -> Tally:
    x, score, y = feedback.context, feedback.action, feedback.outcome
    each = functools.partial(_growth_each, hp, state)
    none = jax.tree.map(jnp.zeros_like, jax.eval_shape(each, x))
    counts = asks(feedback)  # a vector that a branch gives is SIMD code; one inside a sum is not
    fresh, old, logs = map(_total, lax.cond(counts, each, lambda _: none, x))
    price = _total(jax.tree.map(lambda u, x: (u * x) ** 2 / hp.r, u, x))
    close = jnp.where(y * score > 0, jnp.full_like(score, 2.0), 0.0)
    grown = Terms(price, fresh + 2 * y * score - old, hp.r * logs + close)
    return tally_terms(feedback, dot(u, x), counts, grown)


def _growth_each(hp: DiagonalAROWHparams, state: DiagonalAROWState, x: PyTree) -> tuple:
    """The terms of a round with an update, per coordinate."""
    after = _grown(hp, state, x, 1.0)
    fresh = jax.tree.map(lambda x, d: x**2 / d, x, after)
    old = jax.tree.map(lambda t, d, e: t**2 * (1 / d - 1 / e), state.theta, state.d, after)
    return fresh, old, jax.tree.map(lambda d, e: jnp.log(e / d), state.d, after)


def _total(tree_of_terms: PyTree) -> Array:
    return jnp.asarray(tree.sum(tree_of_terms))


_SECTION_6 = "Orabona et al. 2015, section 6"
updates_made = summed("updates_made", _SECTION_6, terms, tally_sides, start)
diagonal_updates_made = summed(
    "updates_made", _SECTION_6, diagonal_terms, tally_sides, diagonal_start
)
mistakes_made = summed(
    "mistakes_made",
    "Crammer, Kulesza, Dredze 2009, theorem 2",
    original_terms,
    original_sides,
    start,
)
perceptron_mistakes = summed(
    "mistakes_made",
    "Cesa-Bianchi, Conconi, Gentile 2005; Orabona et al. 2015, section 6",
    perceptron_terms,
    tally_sides,
    perceptron_start,
)
