r"""Experts are chips: a player of one game plays the other.

With positions $s_i = -R_i$, losses $\ell_i$ are moves $\ell_i - \langle p, \ell\rangle$, and moves
$z_i$ no two of which differ by more than 1 are losses $z_i - \min_j z_j$. The same distributions
are played. With moves in $[-1, 1]$ and $\langle p, z\rangle \ge 0$ then, for every margin $R$,

$$\#\{i : s_{t,i} \le -R\} \le \#\{i : R_{t,i} \ge R\},$$

with equality for experts played by a game.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.1.2, algorithms 1 and 2, theorem 1.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Run, Scalar, Trace
from olx.needs import within


def experts_from_game(game: Learner) -> Learner:
    r"""Algorithm 2: experts played by a `game` of $\beta = 0$, on moves $\ell_i - \langle p, \ell
    \rangle$.

    Its bound is that of the game: of a `drifting_game` with the loss $L$, experts whose regret is
    $R_i$ cost $L(-R_i)$, at most $\Phi_0(0)$ in the mean.
    """
    check.instance("experts_from_game", "game", game, Learner)
    needs = within(game, None, "params", "context")
    bound = None if game.bound_fn is None else _bound_of_game
    return Learner(game, _init, _predict, _update_experts, bound, needs=needs)


def game_from_experts(learner: Learner) -> Learner:
    r"""Algorithm 1: the drifting game played by experts, on losses $z_i - \min_j z_j$.

    Nature may not move two chips apart by more than 1 in a round.
    """
    check.instance("game_from_experts", "learner", learner, Learner)
    needs = within(learner, None, "params", "context", "weight")
    return Learner(learner, _init, _predict, _update_game, needs=needs)


def equivalence_bound(learner: Learner, run: Run, margin: Scalar) -> Certificate:
    r"""Theorem 1, after every round: the share of losers in one game, at most that in the other.

    Of `game_from_experts` the share of chips at or below $-R$, against the share of experts whose
    regret is at least $R$. Of `experts_from_game` the other way round, where both are equal: an
    $\epsilon$-regret of $R$ or more takes a share of $\epsilon$ of the chips. It says nothing once
    nature moved by less than 0 in the mean, or moved two chips apart by more than 1.

    learner: of `game_from_experts` or `experts_from_game`.
    run: played with `record=olx.trace`.
    margin: $R$.
    """
    if learner.update_fn not in (_update_game, _update_experts):
        raise TypeError(
            "equivalence_bound: `learner` must be one of `game_from_experts` or "
            f"`experts_from_game`, got one of {learner.update_fn.__module__}."
        )
    if not isinstance(run.trace, Trace):
        raise TypeError("equivalence_bound: `run` must be played with `record=olx.trace`.")
    feedback = run.trace.feedback
    flat = jax.vmap(lambda leaf: ravel_pytree(leaf)[0])
    told, p = flat(feedback.outcome), flat(feedback.action)
    weight = jnp.broadcast_to(feedback.weight, told.shape[:1])
    paid = jnp.sum(p * told, axis=1)
    total, mine = jnp.cumsum(weight[:, None] * told, axis=0), jnp.cumsum(weight * paid)[:, None]
    behind = jnp.cumsum(weight[:, None] * (told - paid[:, None]), axis=0)
    rounding = 64 * jnp.finfo(told.dtype).eps * (1 + jnp.cumsum(jnp.max(jnp.abs(told), axis=1)))
    share = lambda size, least: jnp.mean((size >= least).astype(told.dtype), axis=1)
    least = jnp.asarray(margin, told.dtype) - rounding[:, None]
    if learner.update_fn is _update_experts:
        left, right = share(mine - total, jnp.asarray(margin, told.dtype)), share(-behind, least)
        forward = jnp.ones_like(paid, bool)
    else:
        left, right = share(-total, jnp.asarray(margin, told.dtype)), share(-behind, least)
        forward = paid >= -64 * jnp.finfo(told.dtype).eps
    apart = weight * (jnp.max(told, axis=1) - jnp.min(told, axis=1))
    proof = Certificate(left, right, jnp.ones_like(left), theorem="Luo 2016, theorem 1")
    proof = proof.given("moves must be at least 0 in the mean", forward)
    close = apart <= 1 + 64 * jnp.finfo(told.dtype).eps
    return proof.given("no two moves or losses may differ by more than 1", close)


def _init(inner: Learner, params: PyTree) -> PyTree:
    return inner.init(params)


def _predict(inner: Learner, state: PyTree, context: PyTree) -> PyTree:
    return inner.predict(state, context)


def _update_experts(inner: Learner, state: PyTree, feedback: Feedback) -> PyTree:
    value = tree.vdot(feedback.action, feedback.outcome)
    moves = jax.tree.map(lambda loss: loss - value, feedback.outcome)
    return inner.update(state, _told(feedback, moves))


def _update_game(inner: Learner, state: PyTree, feedback: Feedback) -> PyTree:
    least = jnp.min(ravel_pytree(feedback.outcome)[0])
    losses = jax.tree.map(lambda move: move - least, feedback.outcome)
    return inner.update(state, _told(feedback, losses))


def _bound_of_game(inner: Learner, trace: Trace, u: PyTree) -> Certificate:
    value = lambda feedback: tree.vdot(feedback.action, feedback.outcome)
    moves = lambda feedback: jax.tree.map(lambda loss: loss - value(feedback), feedback.outcome)
    told = jax.vmap(lambda feedback: _told(feedback, moves(feedback)))(trace.feedback)
    return inner.bound(Trace(trace.state, told), u)


def _told(feedback: Feedback, outcome: PyTree) -> Feedback:
    loss = Partial(tree.vdot, outcome)
    value = jnp.asarray(loss(feedback.action))
    return feedback._replace(outcome=outcome, loss=loss, value=value, grad=outcome)
