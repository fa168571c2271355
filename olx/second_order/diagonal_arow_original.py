r"""AROW of the first paper with a diagonal matrix, as the library SOL has it.

A Gaussian over weights with mean $w$ and one variance $s_i$ per coordinate, at $O(d)$ per round,
predicts $m_t = \langle w_t, x_t\rangle$. Both change only if $y_t m_t < 1$:

$$w_{t+1,i} = w_{t,i} + \alpha_t y_t s_{t,i} x_{t,i}, \qquad \alpha_t = \frac{1 - y_t m_t}{r +
  \chi_t}, \qquad \chi_t = \sum_i s_{t,i} x_{t,i}^2, \qquad
  s_{t+1,i} = \frac{s_{t,i}}{1 + s_{t,i} x_{t,i}^2 / r}.$$

The variances are those of `olx.second_order.diagonal_arow`, $s_t = 1 / D_{t-1}$, but the step has
the size of the hinge loss $\ell_t = 1 - y_t m_t$. So it works for a wide range of $r$.

This is gradient descent on the hinge losses with the steps $\alpha_t$, in the norm of $1 / s_t$,
which grows by $x_t^2 / r$. Hence, over the rounds with an update, of weight 1, and for every $u$
with hinge losses $\ell_s(u)$

$$\sum_s \frac{r (2 r + \chi_s)}{(r + \chi_s)^2} \ell_s^2 \le r \|u\|^2 + 2 r \sum_s \alpha_s
  \ell_s(u) + \sum_s \sum_i x_{s,i}^2 (w_{s+1,i} - u_i)^2.$$

A mistake has $\ell_s \ge 1$, so the left side is at least the number of mistakes if $\chi_s \le
\frac r2$.

Crammer, Kulesza, Dredze, Adaptive Regularization of Weight Vectors, 2009; Wu, Hoi, Liu, Lu, Sahoo,
Yu, SOL: A Library for Scalable Online Learning Algorithms, 2017.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise
from olx.frameworks.lift import dot
from olx.losses.score import signs
from olx.second_order.rank_one import weight_if
from olx.theorem import MET, ZERO, summed


@pytree
class DiagonalAROWOriginalHparams:
    r: Scalar


class DiagonalAROWOriginalState(NamedTuple):
    w: PyTree
    variance: PyTree


@public
def diagonal_arow_original(r: Scalar = 1.0) -> Learner:
    """AROW of the first paper with a diagonal matrix, a predictor for labels +1 and -1.

    r: positive; larger for more noise. The rule depends little on it.

    The context is shaped like `params`; only the shape of `params` is used. Sparse rows are
    supported.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> learner = diagonal_arow_original()
    >>> run = olx.rollout(
    ...     learner, olx.losses.zero_one, rounds, jnp.zeros(5), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, u / 0.1).holds)
    True
    """
    hparams = DiagonalAROWOriginalHparams(check.positive("r", r))
    facts, needs = Facts(coordinates=Rowwise()), (signs("diagonal_arow_original"),)
    return Learner(
        hparams, init, predict, update, facts=facts, needs=needs, theorems=(squared_hinges,)
    )


def init(hp: DiagonalAROWOriginalHparams, params: PyTree) -> DiagonalAROWOriginalState:
    return DiagonalAROWOriginalState(tree.zeros_like(params), tree.ones_like(params))


def predict(
    hp: DiagonalAROWOriginalHparams, state: DiagonalAROWOriginalState, context: PyTree
) -> Array:
    return dot(state.w, context)


def update(
    hp: DiagonalAROWOriginalHparams, state: DiagonalAROWOriginalState, feedback: Feedback
) -> DiagonalAROWOriginalState:
    x, loss = feedback.context, 1 - feedback.outcome * feedback.action
    weight = weight_if(loss > 0, feedback)
    step = weight * feedback.outcome * loss / (hp.r + _spread(state, x))
    return DiagonalAROWOriginalState(
        jax.tree.map(lambda w, s, x: w + step * s * x, state.w, state.variance, x),
        jax.tree.map(lambda s, x: s / (1 + weight * s * x**2 / hp.r), state.variance, x),
    )


def _spread(state: DiagonalAROWOriginalState, x: PyTree) -> Array:
    r"""$\chi$."""
    return jnp.asarray(tree.sum(jax.tree.map(lambda s, x: s * x**2, state.variance, x)))


class Sums(NamedTuple):
    losses: Float[Array, ""]
    start: Float[Array, ""]  # r |u|^2
    gaps: Float[Array, ""]
    drift: Float[Array, ""]
    unit: Bool[Array, ""]  # whether all weights were 1


def open_sums(hp: DiagonalAROWOriginalHparams, state: DiagonalAROWOriginalState, u: PyTree) -> Sums:
    u = check.comparator(u, state.w)
    return Sums(ZERO, hp.r * jnp.asarray(tree.vdot(u, u)), ZERO, ZERO, MET)


def terms(
    hp: DiagonalAROWOriginalHparams,
    state: DiagonalAROWOriginalState,
    feedback: Feedback,
    u: PyTree,
) -> Sums:
    x, y, chi = feedback.context, feedback.outcome, _spread(state, feedback.context)
    loss = jnp.maximum(1 - y * feedback.action, 0.0)
    step, gap = loss / (hp.r + chi), jnp.maximum(1 - y * dot(u, x), 0.0)
    after = update(hp, state, feedback).w
    moved = jax.tree.map(lambda x, w, u: (x * (w - u)) ** 2, x, after, u)
    return Sums(
        hp.r * (2 * hp.r + chi) * step**2,
        jnp.zeros_like(step),
        2 * hp.r * step * gap,
        jnp.where(loss > 0, jnp.asarray(tree.sum(moved)), 0.0),
        jnp.asarray(feedback.weight) == 1,
    )


def both_sides(hp: DiagonalAROWOriginalHparams, sums: Sums, u: PyTree) -> Certificate:
    """The inequality above."""
    right = sums.start + sums.gaps + sums.drift
    return Certificate(sums.losses, right, sums.losses + right).given(UNIT_WEIGHTS, sums.unit)


squared_hinges = summed(
    "squared_hinges", "gradient descent in a growing norm", terms, both_sides, open_sums
)
