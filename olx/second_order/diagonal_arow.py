r"""AROW with a diagonal matrix: one variance per coordinate, $O(d)$ per round.

$$D_0 = I, \qquad \hat y_t = \sum_i \frac{\theta_{t,i}\, x_{t,i}}{D_{t-1,i} + x_{t,i}^2 / r}.$$

If $y_t \hat y_t < 1$, then $\theta_{t+1} = \theta_t + y_t x_t$ and $D_{t,i} = D_{t-1,i} + x_{t,i}^2
/ r$; otherwise nothing changes. With $M$ the mistakes, $U$ the other rounds with an update, and $H$
the sum of the hinge losses of $u$ over $M \cup U$, for every $u$ and rounds of weight 1

$$|M| + |U| \le H + \sqrt{\textstyle\sum_i D_{t,i} u_i^2}
  \sqrt{r \sum_i \ln D_{t,i} + 2 |U|}.$$

`right` has, in place of the second root's argument, the sum over the rounds with an update of
$\sum_i x_{s,i}^2 / D_{s,i} + 2 y_s \hat y_s - \sum_i \theta_{s,i}^2 (1 / D_{s-1,i} - 1 / D_{s,i})$.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, section 6.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise
from olx.frameworks.lift import dot
from olx.losses.score import signs
from olx.second_order import sketch
from olx.second_order.arow import asks
from olx.second_order.rank_one import weight_if
from olx.second_order.sketch import Tally, Terms
from olx.theorem import summed


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
    facts, needs = Facts(coordinates=Rowwise()), (signs("diagonal_arow"),)
    theorems = (updates_made,)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: DiagonalAROWHparams, params: PyTree) -> DiagonalAROWState:
    return DiagonalAROWState(tree.zeros_like(params), tree.ones_like(params))


def predict(hp: DiagonalAROWHparams, state: DiagonalAROWState, context: PyTree) -> Array:
    return dot(tree.div(state.theta, _grown(hp, state, context, 1.0)), context)


def update(
    hp: DiagonalAROWHparams, state: DiagonalAROWState, feedback: Feedback
) -> DiagonalAROWState:
    weight = weight_if(asks(feedback), feedback)
    theta = tree.add_scale(state.theta, weight * feedback.outcome, feedback.context)
    return DiagonalAROWState(theta, _grown(hp, state, feedback.context, weight))


def start(hp: DiagonalAROWHparams, state: DiagonalAROWState, u: PyTree) -> Tally:
    u = check.comparator(u, state.theta)
    return sketch.first_tally(jnp.asarray(tree.vdot(u, u)))


def terms(
    hp: DiagonalAROWHparams, state: DiagonalAROWState, feedback: Feedback, u: PyTree
) -> Tally:
    x, score, y = feedback.context, feedback.action, feedback.outcome
    after = _grown(hp, state, x, 1.0)
    total = lambda function, *trees: jnp.asarray(tree.sum(jax.tree.map(function, *trees)))
    fresh = total(lambda x, d: x**2 / d, x, after)
    old = total(lambda t, d, e: t**2 * (1 / d - 1 / e), state.theta, state.d, after)
    price = total(lambda u, x: (u * x) ** 2 / hp.r, u, x)
    logs = hp.r * total(lambda d, e: jnp.log(e / d), state.d, after)
    close = jnp.where(y * score > 0, jnp.full_like(score, 2.0), 0.0)
    grown = Terms(price, fresh + 2 * y * score - old, logs + close)
    return sketch.tally_terms(feedback, dot(u, x), asks(feedback), grown)


updates_made = summed(
    "updates_made", "Orabona et al. 2015, section 6", terms, sketch.tally_sides, start
)


def _grown(hp: DiagonalAROWHparams, state: DiagonalAROWState, x: PyTree, weight: Scalar) -> PyTree:
    return jax.tree.map(lambda d, x: d + weight * x**2 / hp.r, state.d, x)
