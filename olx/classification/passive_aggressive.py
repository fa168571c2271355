r"""Passive-Aggressive: if the margin is too small, make the smallest step that corrects it.

With the hinge $\ell_t = \max(0, 1 - y_t \langle w_t, x_t\rangle)$ every version sets
$w_{t+1} = w_t + \tau_t y_t x_t$; they differ in $\tau_t$ only:

$$\text{PA: } \frac{\ell_t}{\|x_t\|^2}, \qquad
  \text{PA-I: } \min\Big(C, \frac{\ell_t}{\|x_t\|^2}\Big), \qquad
  \text{PA-II: } \frac{\ell_t}{\|x_t\|^2 + 1 / (2C)}.$$

PA corrects the whole error. PA-I allows a remaining error at a cost of $C$ times its size, PA-II at
$C$ times its square. PA-I is the aggressive dual ascent on the hinge with $c = 1/C$, PA-II on the
squared hinge with $c = 1/(2C)$. A round of weight $h$ uses $h C$ in place of $C$; PA does not
depend on weights.

For classes, $\ell_t$ is the multiclass hinge and $a_t$ replaces $y_t x_t$: the matrix with $x_t$ in
the row of the label and $-x_t$ in that of its best rival, so $\|a_t\|^2 = 2 \|x_t\|^2$.

The lemma behind all bounds: for any $u$,

$$\sum_{s \le t} \tau_s \big(2 \ell_s - \tau_s \|x_s\|^2\big) \le \|u - w_1\|^2 +
  2 \sum_{s \le t} \tau_s \ell_s(u).$$

Proof: $\|w_s - u\|^2 - \|w_{s+1} - u\|^2 = -2 \tau_s y_s \langle w_s - u, x_s\rangle - \tau_s^2
\|x_s\|^2$, where $-y_s \langle w_s, x_s\rangle = \ell_s - 1$ whenever $\tau_s > 0$ and $y_s
\langle u, x_s\rangle \ge 1 - \ell_s(u)$; sum over rounds. With $X$ the largest $\|x_s\|$,

$$|M| \le \max\Big(X^2 + \sigma, \frac1C\Big) \Big( \|u - w_1\|^2 + 2 \sum_{s \le t} \tau_s
  \ell_s(u) \Big)$$

where $\sigma = 1 / (2C)$ for PA-II and 0 else, and $1/C$ appears for PA-I only. Each row of zeros
adds 1 to the bound. For PA-I, `published` replaces $\tau_s$ by its bound $C$. If $u$ has no loss,
PA makes at most $X^2 \|u - w_1\|^2$ mistakes. Weights must be 1, except for PA.

For classes $a_s$ replaces $y_s x_s$ in all of it, $\ell_s(u)$ is the multiclass hinge, and $X$ is
the largest $\sqrt2 \|x_s\|$. The proof uses that the margin of $u$ over the rival of the learner is
at least its margin over its own best rival.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive Algorithms, 2006.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx._words import computed
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import AddsContext, Facts, Rowwise
from olx.frameworks.lift import dot, transposed
from olx.losses.classes import class_rows, labels
from olx.losses.hinges import hinge
from olx.losses.margin import margin, mistaken
from olx.losses.score import ScoreLoss, signs
from olx.theorem import MET, ZERO, largest, summed


@pytree
class PassiveAggressiveHparams:
    loss: ScoreLoss  # a hinge, binary or of classes
    most: Scalar | None  # the largest tau, C of PA-I
    softness: Scalar  # added to |a|^2: 1 / (2 C) for PA-II


class PassiveAggressiveState(NamedTuple):
    w: PyTree


@public
def passive_aggressive() -> Learner:
    """PA: correct every margin error completely, for separable data.

    `params` is the first decision. The context has the same shape.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.2)
    >>> run = olx.rollout(passive_aggressive(), olx.losses.zero_one, rounds, jnp.zeros(5))
    >>> bool(run.losses[100:].sum() < run.losses[:100].sum())
    True
    """
    return learner(hinge)


@public
def passive_aggressive_1(aggressiveness: Scalar) -> Learner:
    """PA-I: correct a margin error by a step of at most `aggressiveness`, the C of the paper.

    aggressiveness: positive; smaller for more noise.
    """
    most = check.positive("aggressiveness", aggressiveness)
    return learner(hinge, most)


@public
def passive_aggressive_2(aggressiveness: Scalar) -> Learner:
    """PA-II: correct a larger part of a margin error for larger `aggressiveness`, C of the paper.

    aggressiveness: positive; smaller for more noise.
    """
    c = check.positive("aggressiveness", aggressiveness)
    return computed(learner(hinge, softness=1 / (2 * c)), aggressiveness=aggressiveness_of)


def aggressiveness_of(learner: Learner) -> Scalar:
    """The argument of PA-II, from the number that it keeps."""
    return 1 / (2 * learner.hparams.softness)


def learner(loss: ScoreLoss, most: Scalar | None = None, softness: Scalar = 0.0) -> Learner:
    """The learner for a hinge, binary or of classes."""
    owner = "passive_aggressive"
    return Learner(
        PassiveAggressiveHparams(loss, most, softness),
        init,
        predict,
        update,
        facts=Facts(adds=AddsContext(coefficient), coordinates=Rowwise()),
        needs=(labels(owner), class_rows(owner)) if loss.of_classes else (signs(owner),),
        theorems=(distance, mistakes),
    )


def init(hp: PassiveAggressiveHparams, params: PyTree) -> PassiveAggressiveState:
    return PassiveAggressiveState(jax.tree.map(jnp.asarray, params))


def predict(hp: PassiveAggressiveHparams, state: PassiveAggressiveState, context: PyTree) -> Array:
    return dot(state.w, context)


def update(
    hp: PassiveAggressiveHparams, state: PassiveAggressiveState, feedback: Feedback
) -> PassiveAggressiveState:
    step = transposed(coefficient(hp, feedback), feedback.context)
    return PassiveAggressiveState(tree.add(state.w, step))


def rate(hp: PassiveAggressiveHparams, feedback: Feedback) -> tuple[Array, Array, Array, Array]:
    r"""$\tau_t$, which is 0 for a row of zeros; $\ell_t$; $\|a_t\|^2$; and minus the slope of the
    margin."""
    gap = hp.loss(feedback.action, feedback.outcome)
    direction = -jax.grad(margin)(feedback.action, feedback.outcome)
    squares = jnp.asarray(tree.vdot(feedback.context, feedback.context))
    squares = jnp.vdot(direction, direction) * squares
    resistance = feedback.weight * squares + hp.softness
    real = (squares > 0) & (resistance > 0)
    tau = feedback.weight * gap / safe.or_one(resistance, real)
    if hp.most is not None:
        tau = jnp.minimum(tau, hp.most * feedback.weight)
    return jnp.where(real, tau, 0.0), gap, squares, direction


def coefficient(hp: PassiveAggressiveHparams, feedback: Feedback) -> Array:
    r"""$\tau_t y_t$, the factor of the row in the update; for classes one factor per class."""
    tau, _, _, direction = rate(hp, feedback)
    return -tau * direction


class Account(NamedTuple):
    start: Float[Array, ""]  # |u - w_1|^2
    gain: Float[Array, ""]
    paid: Float[Array, ""]  # the sum of tau l(u)
    lost: Float[Array, ""]  # the sum of l(u)
    size: Float[Array, ""]
    largest: Float[Array, ""]  # X^2
    zeros: Float[Array, ""]  # rows of zeros
    wrong: Float[Array, ""]  # mistakes
    unit: Bool[Array, ""]  # whether all weights were 1


def start(hp: PassiveAggressiveHparams, state: PassiveAggressiveState, u: PyTree) -> Account:
    apart = tree.sub(check.comparator(u, state.w), state.w)
    return Account(jnp.asarray(tree.vdot(apart, apart)), *[ZERO] * 7, unit=MET)


def terms(
    hp: PassiveAggressiveHparams, state: PassiveAggressiveState, feedback: Feedback, u: PyTree
) -> Account:
    x, y = feedback.context, feedback.outcome
    tau, gap, squares, _ = rate(hp, feedback)
    own, spent = tau * 2 * gap, tau**2 * squares
    lost = hp.loss(dot(u, x), y)
    count = lambda met: jnp.where(met, jnp.ones_like(tau), 0.0)
    return Account(
        ZERO,
        own - spent,
        tau * lost,
        lost,
        jnp.abs(own) + spent,
        largest(squares),
        count(squares == 0),
        count(mistaken(feedback.action, y)),
        jnp.asarray(feedback.weight) == 1,
    )


def distances(hp: PassiveAggressiveHparams, account: Account, u: PyTree) -> Certificate:
    right = account.start + 2 * account.paid
    return Certificate(account.gain, right, account.size + right)


def mistakes_made(hp: PassiveAggressiveHparams, account: Account, u: PyTree) -> Certificate:
    factor = account.largest + hp.softness
    factor = factor if hp.most is None else jnp.maximum(factor, 1 / hp.most)
    whole = lambda sums: factor * (account.start + 2 * sums) + account.zeros
    right = whole(account.paid)
    published = None if hp.most is None else whole(hp.most * account.lost)
    scale = account.wrong + account.zeros + right
    hard = (jnp.asarray(hp.softness) == 0) & (hp.most is None)
    proof = Certificate(account.wrong, right, scale, published)
    return proof.given(UNIT_WEIGHTS, hard | account.unit)


SOURCE = "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer 2006"
distance = summed("distance", f"{SOURCE}, the lemma behind all bounds", terms, distances, start)
mistakes = summed("mistakes", SOURCE, terms, mistakes_made, start)
