r"""Adversaries: they choose the outcome after they have seen the action. Use them in `olx.play`.

Labels are $\pm 1$. The label that contradicts a score $s$ is $-1$ for $s \ge 0$, else $+1$. So
every contradicted score is a mistake, $y s \le 0$. A `loss` argument is a loss of score and label.
`replaying` plays a given stream, whatever the learner does.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 2.3, theorems 3
and 4, example 6.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Int, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Adversary, Loss, Rounds, Scalar
from olx.streams.checks import check_rounds
from olx.streams.sparse_rows import SparseRows


@pytree
class Size:
    count: int = static()


class Candidates(NamedTuple):
    low: Int[Array, ""]
    high: Int[Array, ""]


@public
def contradicting(loss: Loss) -> Adversary:
    """The context is always `[1.0]`, and the label contradicts the score.

    The learner makes a mistake in every round. The better of the two constant labels is wrong in at
    most half of them. So no deterministic classifier has small regret in mistakes.
    """
    return Adversary(None, _checked(loss), _nothing, _ask_one, _contradict)


@public
def random_signs(key: Array) -> Adversary:
    r"""Linear losses with a random sign per coordinate, for any action.

    On $[-1, 1]$ it forces an expected regret of $E|\sum_t \sigma_t|$, about $\sqrt{2 T / \pi}$; on
    the box $[-1, 1]^d$, the same per coordinate. The action is an array.
    """
    check.key(key)
    return Adversary(key, Partial(tree.vdot), _first_key, _ask_nothing, _answer_signs)


@public
def unit_vectors(rounds: int, loss: Loss) -> Adversary:
    r"""The context of round $t$ is $e_t$, and the label contradicts the score.

    For linear predictors on $R^T$, to be played for `rounds` = $T$ rounds. The hinge loss is at
    least 1 in every round, but 0 for $u = (y_1, \dots, y_T)$. So the regret is at least
    $T = \|u\|^2$, and the complexity of the comparator must enter any bound.
    """
    check.count("rounds", rounds)
    loss = _checked(loss)
    return Adversary(Size(rounds), loss, _first_round, _ask_unit, _answer_unit)


@public
def threshold(candidates: int, loss: Loss) -> Adversary:
    r"""Thresholds $h_i(x) = +1$ for $x \le i$, else $-1$, with $i = 1, \dots, n$ = `candidates`.

    The context is the vector of the labels $h_1(x), \dots, h_n(x)$. Each round halves the set of
    candidates that agree with all labels so far, and its label contradicts the learner. Once one
    candidate is left, the labels are those of this candidate. Forces $\lfloor \log_2 n \rfloor$
    mistakes, although one candidate makes none and the class has VC dimension 1.
    """
    check.count("candidates", candidates)
    loss = _checked(loss)
    return Adversary(Size(candidates), loss, _all_candidates, _ask_halves, _answer_halves)


@public
def heaviest_expert() -> Adversary:
    """Loss 1 for the expert with the largest weight, 0 for the others.

    A distribution loses at least 1/N in every round, a learner that follows one expert loses 1.
    The best of N experts loses at most T/N in total.
    """
    return Adversary(None, Partial(tree.vdot), _nothing, _ask_nothing, _answer_heaviest)


@public
def steepest(radius: Scalar) -> Adversary:
    r"""The linear loss with a gradient of length `radius` that is largest at the action $w$.

    Its gradient is `radius` $w / \|w\|$; at $w = 0$ all its coordinates are equal. The loss of a
    round is `radius` $\|w_t\|$, never negative. So the regret to a ball of radius $D$ is at least
    $D$ times the length of the sum of gradients.
    """
    radius = check.positive("radius", radius)
    return Adversary(radius, Partial(tree.vdot), _nothing, _ask_nothing, _answer_steepest)


def _checked(loss: Loss) -> Loss:
    check.function("loss", loss)
    return as_tree(loss)


def _against(score: Array) -> Array:
    return jnp.where(score >= 0, -jnp.ones_like(score), 1.0)


def _nothing(_: PyTree) -> None:
    return None


def _ask_nothing(_: PyTree, state: PyTree) -> None:
    return None


def _ask_one(_: PyTree, state: PyTree) -> Array:
    return jnp.ones(1)


def _contradict(_: PyTree, state: PyTree, score: Array) -> tuple[Array, PyTree]:
    return _against(score), state


def _first_key(key: Array) -> Array:
    return key


def _answer_signs(_: PyTree, key: Array, action: Array) -> tuple[Array, Array]:
    key, now = jax.random.split(key)
    return jax.random.rademacher(now, jnp.shape(action), jnp.result_type(action)), key


def _first_round(_: PyTree) -> Array:
    return jnp.zeros((), int)


def _ask_unit(hp: Size, index: Array) -> Array:
    return jax.nn.one_hot(index, hp.count, dtype=float)


def _answer_unit(_: PyTree, index: Array, score: Array) -> tuple[Array, Array]:
    return _against(score), index + 1


def _all_candidates(hp: Size) -> Candidates:
    return Candidates(jnp.ones((), int), jnp.full((), hp.count))


def _ask_halves(hp: Size, left: Candidates) -> Array:
    says_yes = _middle(left) <= jnp.arange(1, hp.count + 1)
    return jnp.where(says_yes, jnp.ones(hp.count), -1.0)


def _answer_halves(_: PyTree, left: Candidates, score: Array) -> tuple[Array, Candidates]:
    one_left = left.low == left.high
    label = jnp.where(one_left, 1.0, _against(score))
    x = _middle(left)
    yes = label > 0
    return label, Candidates(jnp.where(yes, x, left.low), jnp.where(yes, left.high, x - 1))


def _middle(left: Candidates) -> Array:
    return left.low + (left.high - left.low + 1) // 2


def _answer_heaviest(_: PyTree, state: PyTree, weights: Array) -> tuple[Array, PyTree]:
    return jnp.zeros_like(weights).at[jnp.argmax(weights)].set(1.0), state


def _answer_steepest(radius: Scalar, state: PyTree, w: PyTree) -> tuple[PyTree, PyTree]:
    squares = jnp.asarray(tree.vdot(w, w))
    apart = squares > 0
    size = jnp.sqrt(safe.or_one(squares, apart))
    equal = sum(leaf.size for leaf in jax.tree.leaves(w)) ** -0.5
    return jax.tree.map(lambda leaf: radius * jnp.where(apart, leaf / size, equal), w), state


@public
def replaying(loss: Loss, rounds: Rounds) -> Adversary:
    """The rounds of a stream in turn, and from the first one again after the last.

    rounds: such as the worst ones that `olx.hindsight.worst_case` found for another learner.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0], [-1.0]]))
    >>> nature = replaying(olx.losses.linear_loss, rounds)
    >>> olx.play(olx.ogd(0.5), nature, jnp.zeros(1), 4).rounds.outcome[:, 0].tolist()
    [1.0, -1.0, 1.0, -1.0]
    """
    check.takes("loss", loss, "action", "outcome")
    check_rounds(rounds)
    if isinstance(rounds.context, SparseRows):
        raise RefusedType("sparse rows are not supported; pass `rows.toarray()`.")
    if rounds.weight is not None:
        raise RefusedValue(
            "an adversary gives every round the weight 1, got rounds with weights; play "
            "them with `olx.run`."
        )
    rounds = jax.tree.map(jnp.asarray, rounds)
    return Adversary(rounds, as_tree(loss), _first_round, _ask, _answer)


def _ask(rounds: Rounds, index: Array) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[index], rounds.context)


def _answer(rounds: Rounds, index: Array, action: PyTree):
    outcome = jax.tree.map(lambda leaf: leaf[index], rounds.outcome)
    return outcome, (index + 1) % jax.tree.leaves(rounds.outcome)[0].shape[0]
