r"""The Banditron: learn classes when only the correctness of the played label is revealed.

$$\hat y_t = \arg\max_r \langle w_r, x_t\rangle, \qquad
  P_t(r) = (1 - \gamma) \mathbb 1\{r = \hat y_t\} + \frac\gamma k, \qquad \tilde y_t \sim P_t,$$

$$W_{t+1} = W_t + U_t, \qquad U_{t,r} = \Big( \frac{\mathbb 1\{\tilde y_t = y_t = r\}}{P_t(r)} -
  \mathbb 1\{r = \hat y_t\} \Big) x_t.$$

Given the past, the mean of $U_t$ is the step of the multiclass Perceptron. The update uses the
label $y_t$ only to see whether it is $\tilde y_t$. The action is the vertex of $\tilde y_t$: 1 at
the label played, 0 elsewhere.

For every sequence of draws and every $V$, as $\|W_{t+1}\|^2 = \sum_s \|U_s\|^2 + 2 \langle W_s,
U_s\rangle$,

$$\sum_{s \le t} \langle V, U_s\rangle \le \|V\| \sqrt{\sum_{s \le t} \|U_s\|^2 + 2 \langle W_s,
  U_s\rangle}.$$

The mean of the left side is at least $E|\hat M| - L$, with $\hat M$ the rounds with $\hat y_s \ne
y_s$ and $L$ the sum of the multiclass hinge losses of $V$. The mean of $\langle W_s, U_s\rangle$ is
not positive, that of $\|U_s\|^2$ is $(\frac k\gamma + 1) \|x_s\|^2$ in $\hat M$ and $\frac{1 - p}p
\|x_s\|^2$ elsewhere, $p = 1 - \gamma + \frac\gamma k$. So with $\|x_s\| \le X$

$$E|\hat M| \le L + X \|V\| \sqrt{\Big( \frac k\gamma + 1 \Big) E|\hat M| + \frac{1 - p}p T}, \qquad
  E|M| \le E|\hat M| + \gamma T,$$

where $M$ are the mistakes of the labels played. `banditron_bound` solves this. It is at most the
published $L + \gamma T + 3 \max(k D / \gamma, \sqrt{D \gamma T}) + \sqrt{k D L / \gamma}$ with $D =
2 X^2 \|V\|^2$, for $\gamma \le \frac12$.

Kakade, Shalev-Shwartz, Tewari, Efficient Bandit Algorithms for Online Multiclass Prediction, 2008.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Rowwise
from olx.frameworks.lift import dot, transposed
from olx.frameworks.mistakes import solved
from olx.losses.classes import class_rows, labels
from olx.losses.margin import hot
from olx.theorem import MET, ZERO, summed


@pytree
class BanditronHparams:
    gamma: Scalar
    key: Array


class BanditronState(NamedTuple):
    w: Float[Array, "k ..."]
    key: Array  # for the draw of this round; predicting twice draws the same


@public
def banditron(gamma: Scalar, key: Array) -> Learner:
    """The Banditron, for labels 0, ..., k - 1 of which only the correctness is revealed.

    gamma: in (0, 1]; the share of rounds in which any label is played, to explore.
    key: a key of `jax.random`; a batch over keys repeats the game with new draws.

    `params` is the first decision, an array with one row per class. Play it with
    `olx.losses.multiclass_zero_one`, which is then the loss of the label played.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_classes(jax.random.key(0), 400, 5, 3, margin=0.5)
    >>> learner, loss = banditron(0.2, jax.random.key(1)), olx.losses.multiclass_zero_one
    >>> run = olx.rollout(learner, loss, rounds, jnp.zeros((3, 5)), record=olx.record.trace)
    >>> bool(olx.certify(learner, run, u).holds), bool(run.losses[200:].mean() < 0.4)
    (True, True)
    """
    check.key(key)
    gamma = check.above("gamma", gamma, 0.0, 1.0)
    hparams, facts = BanditronHparams(gamma, key), Facts(coordinates=Rowwise())
    needs, theorems = (labels("banditron"), class_rows("banditron")), (drawn_steps,)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: BanditronHparams, params: Float[Array, "k ..."]) -> BanditronState:
    return BanditronState(jnp.asarray(params), hp.key)


def predict(hp: BanditronHparams, state: BanditronState, context: PyTree) -> Float[Array, " k"]:
    best, p = _chances(hp, state, context)
    bar = jax.random.uniform(state.key, (), p.dtype) / hp.gamma
    number = jnp.arange(p.size, dtype=p.dtype)
    any_label = number == jnp.floor(jnp.minimum(bar * p.size, p.size - 1))
    vertex = jnp.where(bar < 1, jnp.where(any_label, jnp.ones_like(p), 0.0), best)
    return jnp.where(jnp.isnan(jnp.sum(p)), jnp.nan, vertex)


def update(hp: BanditronHparams, state: BanditronState, feedback: Feedback) -> BanditronState:
    moved = state.w + feedback.weight * _step(hp, state, feedback)
    return BanditronState(moved, jax.random.split(state.key, 1)[0])


def _chances(
    hp: BanditronHparams, state: BanditronState, context: PyTree
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """1 at the first of the best classes, and the probabilities of all."""
    scores = dot(state.w, context)
    number = jnp.arange(scores.size)
    top = jnp.max(scores)
    first = jnp.min(jnp.where(scores == top, number, scores.size))
    best = jnp.where(number == first, jnp.ones_like(scores), 0.0)
    p = (1 - hp.gamma) * best + hp.gamma / scores.size
    return best, jnp.where(jnp.isnan(top), jnp.nan, p)


def _step(hp: BanditronHparams, state: BanditronState, feedback: Feedback) -> Float[Array, "k ..."]:
    best, p = _chances(hp, state, feedback.context)
    right = jnp.sum(jnp.where(hot(p, feedback.outcome), feedback.action, 0.0))  # the bit revealed
    return transposed(right * feedback.action / p - best, feedback.context)


class Account(NamedTuple):
    size: Float[Array, ""]  # |V|
    along: Float[Array, ""]  # the sum of <V, U>
    squares: Float[Array, ""]  # the square of |W|
    scale: Float[Array, ""]
    unit: Array  # whether all weights were 1


def start(hp: BanditronHparams, state: BanditronState, u: PyTree) -> Account:
    u, w = check.comparator(u, state.w), state.w
    return Account(jnp.sqrt(jnp.vdot(u, u)), jnp.vdot(u, w), jnp.vdot(w, w), ZERO, MET)


def terms(hp: BanditronHparams, state: BanditronState, feedback: Feedback, u: PyTree) -> Account:
    step = _step(hp, state, feedback)
    along, cross, squares = jnp.vdot(u, step), jnp.vdot(state.w, step), jnp.vdot(step, step)
    size = jnp.abs(along) + squares + 2 * jnp.abs(cross)
    return Account(ZERO, along, squares + 2 * cross, size, jnp.asarray(feedback.weight) == 1)


def both_sides(hp: BanditronHparams, account: Account, u: PyTree) -> Certificate:
    right = account.size * jnp.sqrt(jnp.maximum(account.squares, 0.0))
    proof = Certificate(account.along, right, account.scale + right)
    return proof.given(UNIT_WEIGHTS, account.unit)


drawn_steps = summed(
    "drawn_steps",
    "Kakade, Shalev-Shwartz, Tewari 2008, for every sequence of draws",
    terms,
    both_sides,
    start,
)


@public
def banditron_bound(
    gamma: Scalar, rounds: Scalar, k: int, loss: Scalar, size: Scalar, row: Scalar = 1.0
) -> Scalar:
    r"""The expected number of mistakes of the labels played is at most this.

    loss: $L$, the sum of the multiclass hinge losses of $V$ over all rounds.
    size: $\|V\|$.
    row: $X$, the largest $\|x_t\|$.
    """
    gamma = check.above("gamma", gamma, 0.0, 1.0)
    check.count("k", k)
    rounds = check.positive("rounds", rounds, each=True)
    loss, size = check.non_negative("loss", loss), check.non_negative("size", size)
    row = check.non_negative("row", row)
    p = 1 - gamma + gamma / k
    steady = size * row * jnp.sqrt((1 - p) / p * rounds)
    return gamma * rounds + solved(loss + steady, size * row * jnp.sqrt(k / gamma + 1))
