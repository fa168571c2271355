r"""Confidence-weighted learning: a Gaussian over weights, made sure enough of every label.

The weights are $N(w, P)$. After a round the Gaussian changes as little as possible, in relative
entropy, such that the label gets a probability of at least $\Phi(\phi)$:

$$y_t \langle w, x_t\rangle \ge \phi \sqrt{x_t^\top P x_t}.$$

With $m = y_t \langle w_t, x_t\rangle$ and $v = x_t^\top P x_t$, all versions set

$$w \leftarrow w + \alpha y_t P x_t, \quad P \leftarrow P - \beta P x_t x_t^\top P, \quad
  \beta = \frac{\alpha\phi}{\sqrt u + v \alpha\phi}, \quad
  \sqrt u = \tfrac12 \Big( \sqrt{\alpha^2 v^2 \phi^2 + 4 v} - \alpha v \phi \Big);$$

they differ in $\alpha$ only. With $\psi = 1 + \phi^2 / 2$, $\xi = 1 + \phi^2$, $n = v + 1 / (2C)$:

$$\text{CW: } \Big[ \frac{-m \psi + \sqrt{m^2 \phi^4 / 4 + v \phi^2 \xi}}{v \xi} \Big]_+, \quad
  \text{SCW-I: } \min(C, \text{CW}), \quad \text{SCW-II: } \Big[
  \frac{-(2 m n + \phi^2 m v) + \phi \sqrt{\phi^2 m^2 v^2 + 4 n v (n + v \phi^2)}}
  {2 (n^2 + n v \phi^2)} \Big]_+.$$

CW meets the constraint exactly, so one wrong label can change it much: on labels that contradict
each other $P$ falls faster and faster. A row whose $v$ is below the root of the smallest float is
not learned from. SCW-I pays $C$ per unit by which the constraint is missed, SCW-II pays $C$ times
its square. No bound is known that a run could be checked against.

Crammer, Dredze, Pereira, Exact Convex Confidence-Weighted Learning, 2008; Wang, Zhao, Hoi, Exact
Soft Confidence-Weighted Learning, 2012.
"""

import jax.numpy as jnp
from jax.core import Tracer
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import RefusedValue, public
from olx._words import computed
from olx.core import Feedback, Learner, Scalar
from olx.losses.score import signs
from olx.second_order.rank_one import Row, Rule, Step, rank_one


@pytree
class ConfidenceHparams:
    phi: Scalar
    aggressiveness: Scalar | None  # the price of missing the constraint; None if it must be met


@public
def confidence_weighted(confidence: Scalar = 0.9) -> Learner:
    r"""CW: make every label at least as probable as `confidence`, for separable data.

    confidence: $\Phi(\phi)$ in (0.5, 1).

    The context is shaped like `params`; only the shape of `params` is used. All weights of rounds
    other than 0 have the same effect.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> learner = olx.second_order.confidence_weighted(0.9)
    >>> run = olx.rollout(learner, olx.losses.zero_one, rounds, jnp.zeros(5))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    hparams = ConfidenceHparams(_quantile(confidence), None)
    needs = (signs("confidence_weighted"),)
    learner = rank_one(Rule(hparams, score, exact_step), needs=needs)
    return computed(learner, confidence=_confidence)


@public
def soft_confidence_weighted(
    confidence: Scalar = 0.9, aggressiveness: Scalar = 1.0, *, squared: bool = False
) -> Learner:
    r"""SCW-I, or SCW-II if `squared`: like CW, but a label may be missed at a price.

    confidence: $\Phi(\phi)$ in (0.5, 1).
    aggressiveness: the $C$ of the paper, positive; smaller for more noise. It is multiplied by the
        weight of the round.
    squared: whether the price is `aggressiveness` times the square of the miss; else times the
        miss.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> learner = olx.second_order.soft_confidence_weighted(0.9, 1.0)
    >>> run = olx.rollout(learner, olx.losses.zero_one, rounds, jnp.zeros(5))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    owner = "soft_confidence_weighted"
    learner = rank_one(soft_rule(confidence, aggressiveness, squared), needs=(signs(owner),))
    return computed(learner, confidence=_confidence)


def _confidence(learner: Learner) -> Array:
    return confidence_of(learner.hparams.rule)


def confidence_of(rule: Rule) -> Array:
    r"""$\Phi(\phi)$."""
    return ndtr(rule.hparams.phi)


def soft_rule(confidence: Scalar, aggressiveness: Scalar, squared: bool) -> Rule:
    """The rule of SCW-I, or of SCW-II if `squared`."""
    check.flag("squared", squared)
    most = check.positive("aggressiveness", aggressiveness)
    hparams = ConfidenceHparams(_quantile(confidence), most)
    return Rule(hparams, score, squared_step if squared else exact_step)


def score(hp: ConfidenceHparams, margin: Array, spread: Array) -> Array:
    return margin


def exact_step(hp: ConfidenceHparams, row: Row, feedback: Feedback) -> Step:
    """The step of CW and of SCW-I."""
    m, v, square = feedback.outcome * row.margin, row.spread, _phi(hp, row) ** 2
    root = safe.sqrt(m**2 * square**2 / 4 + v * square * (1 + square))
    far = m * (1 + square / 2)
    below = safe.divide(root - far, v * (1 + square))
    above = safe.divide(v * square - m**2, v * (root + far), 0.0, (v > 0) & (m > 0))
    alpha = jnp.maximum(jnp.where(m > 0, above, below), 0.0)  # above: without cancellation
    if hp.aggressiveness is not None:
        alpha = jnp.minimum(alpha, hp.aggressiveness * feedback.weight)
    return _step(hp, row, feedback, alpha)


def squared_step(hp: ConfidenceHparams, row: Row, feedback: Feedback) -> Step:
    """The step of SCW-II."""
    m, v, phi = feedback.outcome * row.margin, row.spread, _phi(hp, row)
    assert hp.aggressiveness is not None  # `soft_confidence_weighted` gives one
    square, price = phi**2, feedback.weight * hp.aggressiveness
    n = v + safe.divide(1.0, 2 * price, 1.0)
    gamma = phi * safe.sqrt(square * m**2 * v**2 + 4 * n * v * (n + v * square))
    alpha = (gamma - m * (2 * n + square * v)) / (2 * n * (n + v * square))
    return _step(hp, row, feedback, jnp.maximum(alpha, 0.0))


def _step(hp: ConfidenceHparams, row: Row, feedback: Feedback, alpha: Array) -> Step:
    v, phi, least = row.spread, _phi(hp, row), float(jnp.finfo(row.spread.dtype).tiny) ** 0.5
    alpha = jnp.where(v > least, alpha, 0.0)
    moved = alpha * v * phi
    root = safe.divide(2 * v, safe.sqrt(moved**2 + 4 * v) + moved)  # the root of u
    total = safe.or_one(root + moved)
    kept = jnp.where(root + moved > 0, root / total, 1.0)
    return Step(feedback.outcome * alpha, alpha * phi / total, kept)


def _phi(hp: ConfidenceHparams, row: Row) -> Array:
    """In the dtype of the data: the quantile of a Python number is as wide as a float can be."""
    return jnp.asarray(hp.phi, row.spread.dtype)


def _quantile(confidence: Scalar) -> Array:
    legal = check.between("confidence", confidence, 0.5, 1.0)
    inside = (legal > 0.5) & (legal < 1)  # the ends give a phi of 0 and of infinity
    if not isinstance(inside, Tracer) and not inside:
        raise RefusedValue(f"`confidence` must lie in (0.5, 1), got {confidence}.")
    return ndtri(jnp.where(inside, jnp.asarray(legal, float), jnp.nan))
