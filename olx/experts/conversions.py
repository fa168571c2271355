r"""Play an expert problem by a learner of the drifting game, and the other way round.

Experts are chips at $s_i = -R_i$. Losses $\ell_i$ become moves $\ell_i - \langle p, \ell\rangle$.
Moves $z_i$, no two of which differ by more than 1, become losses $z_i - \min_j z_j$. The
distributions are the same. For moves in $[-1, 1]$ with $\langle p, z\rangle \ge 0$ and any $R$,

$$\#\{i : s_{t,i} \le -R\} \le \#\{i : R_{t,i} \ge R\},$$

with equality for `experts_from_game`: see `equivalence`.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.1.2, algorithms 1 and 2, theorem 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.theorem import MET, About, Theorem, summed
from olx.wrapper import WrapperView, lift_needs, lift_theorems


@pytree
class ConvertedHparams:
    inner: Learner
    feedback_fn: Callable[..., Feedback] = static()  # the feedback for the inner learner


@public
def experts_from_game(inner: Learner) -> Learner:
    r"""Algorithm 2: an expert learner from a learner of the drifting game with $\beta = 0$.

    The moves are $\ell_i - \langle p, \ell\rangle$. Its theorems are those of the game: for a
    `drifting_game` with the loss $L$, the mean of $L(-R_i)$ over experts is at most $\Phi_0(0)$.
    """
    check.instance("inner", inner, Learner)
    needs = lift_needs(_VIEW, inner)
    theorems = lift_theorems(_VIEW, inner)
    hparams = ConvertedHparams(inner, _as_moves)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


@public
def game_from_experts(inner: Learner) -> Learner:
    r"""Algorithm 1: a player of the drifting game from an expert learner.

    The losses are $z_i - \min_j z_j$. Two moves of one round may differ by at most 1.
    """
    check.instance("inner", inner, Learner)
    needs = lift_needs(WrapperView(parts=("params", "context", "weight")), inner)
    return Learner(ConvertedHparams(inner, _as_losses), init, predict, update, needs=needs)


def init(hp: ConvertedHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: ConvertedHparams, state: PyTree, context: PyTree) -> PyTree:
    return hp.inner.predict(state, context)


def update(hp: ConvertedHparams, state: PyTree, feedback: Feedback) -> PyTree:
    return hp.inner.update(state, hp.feedback_fn(feedback))


def _as_moves(feedback: Feedback) -> Feedback:
    value = tree.vdot(feedback.action, feedback.outcome)
    return _with_outcome(feedback, jax.tree.map(lambda loss: loss - value, feedback.outcome))


def _as_losses(feedback: Feedback) -> Feedback:
    least = jnp.min(ravel_pytree(feedback.outcome)[0])
    return _with_outcome(feedback, jax.tree.map(lambda move: move - least, feedback.outcome))


def _with_outcome(feedback: Feedback, outcome: PyTree) -> Feedback:
    loss = Partial(tree.vdot, outcome)
    value = jnp.asarray(loss(feedback.action))
    return feedback._replace(outcome=outcome, loss=loss, value=value, grad=outcome)


def _inside(hp: ConvertedHparams, state: PyTree, feedback: Feedback) -> Feedback:
    return hp.feedback_fn(feedback)


_VIEW = WrapperView(state=None, parts=("params", "context"), feedback_fn=_inside)


@public
def equivalence(margin: Scalar) -> Theorem:
    r"""Theorem 1, after every round: chips far behind are at most as many as experts far ahead.

    For `game_from_experts`, the share of chips at or below $-R$ is at most the share of experts to
    whom the regret is at least $R$. For `experts_from_game` the share of experts is on the left,
    and both sides are equal. `u` is not used.

    margin: $R$.
    """
    margin = check.finite("margin", margin)
    parts = terms, Partial(both_sides, margin), start
    return summed("equivalence", "Luo 2016, theorem 1", *parts, about=_CONVERTED)


def _is_converted(learner: Learner) -> bool:
    return isinstance(learner.hparams, ConvertedHparams)


_CONVERTED = About("one of `game_from_experts` or `experts_from_game`", _is_converted)


class Account(NamedTuple):
    total: Float[Array, " N"]  # the sum of losses or moves
    behind: Float[Array, " N"]  # regrets of the inner learner
    paid: Float[Array, ""]
    largest: Float[Array, ""]  # the sum of the largest |loss| or |move| per round
    forward: Bool[Array, ""]
    near: Bool[Array, ""]


def start(hp: ConvertedHparams, state: PyTree, u: PyTree) -> Account:
    zeros, _ = ravel_pytree(jax.tree.map(jnp.zeros_like, hp.inner.predict(state)))
    return Account(zeros, zeros, jnp.zeros_like(zeros[0]), jnp.zeros_like(zeros[0]), MET, MET)


def terms(hp: ConvertedHparams, state: PyTree, feedback: Feedback, u: PyTree) -> Account:
    (outcome, _), (p, _) = ravel_pytree(feedback.outcome), ravel_pytree(feedback.action)
    weight, paid = feedback.weight, jnp.sum(p * outcome)
    apart, rounding = weight * (jnp.max(outcome) - jnp.min(outcome)), _rounding(outcome)
    return Account(
        weight * outcome,
        weight * (paid - outcome),
        weight * paid,
        jnp.max(jnp.abs(outcome)),
        (hp.feedback_fn is _as_moves) | (paid >= -rounding),
        apart <= 1 + rounding,
    )


def both_sides(margin: Scalar, hp: ConvertedHparams, account: Account, u: PyTree) -> Certificate:
    paid = account.paid if hp.feedback_fn is _as_moves else 0.0
    slack = _rounding(account.total) * (1 + account.largest)
    share = lambda size: jnp.mean((size >= margin).astype(account.total.dtype))
    left, right = share(paid - account.total), share(account.behind + slack)
    proof = Certificate(left, right, jnp.ones_like(left))
    proof = proof.given("moves must be at least 0 in the mean", account.forward)
    return proof.given("no two moves or losses may differ by more than 1", account.near)


def _rounding(total: Array) -> float:
    return 64 * float(jnp.finfo(total.dtype).eps)
