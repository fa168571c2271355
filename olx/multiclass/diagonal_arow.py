r"""Multiclass AROW with a variance for every weight of every class, $O(k d)$ per round.

The weights of a class are Gaussian with the means $w_r$ and the variances $\frac1{2 D_{r,j}}$,
$D_0 = 1$. With $i$ the best class other than $y_t$ and $\ell_t = 1 - \langle w_{y_t} - w_i,
x_t\rangle$, if $\ell_t > 0$ then

$$w_{y_t} \leftarrow w_{y_t} + \alpha_t \frac{x_t}{2 D_{y_t}}, \quad w_i \leftarrow w_i - \alpha_t
  \frac{x_t}{2 D_i}, \qquad \alpha_t = \frac{\ell_t}{\chi_t + \rho}, \quad \chi_t = \sum_j
  \frac{x_{t,j}^2}{2 D_{y_t,j}} + \frac{x_{t,j}^2}{2 D_{i,j}},$$

and $D_r \leftarrow D_r + x_t^2 / \rho$ for $r = y_t$ and $r = i$. $\chi_t$ is the variance of the
difference of the two scores. A round changes two classes, and these become certain about the
features of the row; in `olx.multiclass.arow` all classes share one matrix. For two classes the
difference of their weights is that of the binary AROW of the first paper with a diagonal matrix. A
round of weight $h$ has $\rho / h$ in place of $\rho$.

The bound of the paper is about the full matrix. No bound for the diagonal one is known that a run
could be checked against.

Crammer, Kulesza, Dredze, Adaptive Regularization of Weight Vectors, 2009, for the binary rule;
Crammer, Dredze, Kulesza, Multi-Class Confidence Weighted Algorithms, 2009, for the update of one
rival and a variance for every weight.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public_as
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise
from olx.frameworks.lift import dot
from olx.losses.classes import class_rows, labels
from olx.losses.margin import hot, pick, rival


@pytree
class DiagonalAROWHparams:
    r: Scalar


class DiagonalAROWState(NamedTuple):
    w: Float[Array, "k *d"]
    d: Float[Array, "k *d"]  # D


@public_as("multiclass.diagonal_arow")
def diagonal_arow(r: Scalar) -> Learner:
    r"""Multiclass AROW with variances, a predictor for labels 0, ..., k - 1.

    r: the $\rho$ above, positive; larger for more noise. For rows of length 1, 0.1 is a good start.

    `params` is an array with one row per class; only its shape is used. Sparse rows are supported.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classes(jax.random.key(0), 200, 5, 3, margin=0.1)
    >>> learner, loss = diagonal_arow(0.1), olx.losses.multiclass_zero_one
    >>> run = olx.rollout(learner, loss, rounds, jnp.zeros((3, 5)))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    owner = "multiclass.diagonal_arow"
    hparams = DiagonalAROWHparams(check.positive("r", r))
    facts, needs = Facts(coordinates=Rowwise()), (labels(owner), class_rows(owner))
    return Learner(hparams, init, predict, update, facts=facts, needs=needs)


def init(hp: DiagonalAROWHparams, params: PyTree) -> DiagonalAROWState:
    return DiagonalAROWState(jnp.zeros_like(params), jnp.ones_like(params))


def predict(hp: DiagonalAROWHparams, state: DiagonalAROWState, context: PyTree) -> Array:
    return dot(state.w, context)


def update(
    hp: DiagonalAROWHparams, state: DiagonalAROWState, feedback: Feedback
) -> DiagonalAROWState:
    x, scores = feedback.context, feedback.action
    own = hot(scores, feedback.outcome)
    other = rival(scores, own)
    short = 1 - (pick(own, scores) - pick(other, scores))
    weight = jnp.where(short > 0, jnp.asarray(feedback.weight, scores.dtype), 0.0)
    sides = jnp.where(own, 1.0, jnp.where(other, -1.0, jnp.zeros_like(scores)))
    spread = jnp.vdot(jnp.abs(sides), dot(0.5 / state.d, x * x))
    step = _rows(sides * (short * weight / (weight * spread + hp.r)), x)
    grown = _rows(jnp.abs(sides) * (weight / hp.r), x)
    return DiagonalAROWState(state.w + step * x * (0.5 / state.d), state.d + grown * x * x)


def _rows(each: Array, x: Array) -> Array:
    """One number per class, in a shape that broadcasts to the weights."""
    return each.reshape(-1, *(1,) * jnp.ndim(x))
