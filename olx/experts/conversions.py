r"""Experts are chips: a player of one game plays the other.

With positions $s_i = -R_i$, losses $\ell_i$ are moves $\ell_i - \langle p, \ell\rangle$, and moves
$z_i$ no two of which differ by more than 1 are losses $z_i - \min_j z_j$. The same distributions
are played. With moves in $[-1, 1]$ and $\langle p, z\rangle \ge 0$ then, for every margin $R$,

$$\#\{i : s_{t,i} \le -R\} \le \#\{i : R_{t,i} \ge R\},$$

with equality for experts played by a game: `olx.hindsight.equivalence_bound`.

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
from olx.core import Feedback, Learner, Trace
from olx.needs import within


def experts_from_game(inner: Learner) -> Learner:
    r"""Algorithm 2: experts played by a game of $\beta = 0$, on moves $\ell_i - \langle p, \ell
    \rangle$.

    Its bound is that of the game: of a `drifting_game` with the loss $L$, experts whose regret is
    $R_i$ cost $L(-R_i)$, at most $\Phi_0(0)$ in the mean.
    """
    check.instance("experts_from_game", "inner", inner, Learner)
    needs = within(inner, None, "params", "context")
    bound = None if inner.bound_fn is None else _bound_of_game
    return Learner(inner, _init, _predict, update_experts, bound, needs=needs)


def game_from_experts(inner: Learner) -> Learner:
    r"""Algorithm 1: the drifting game played by experts, on losses $z_i - \min_j z_j$.

    Nature may not move two chips apart by more than 1 in a round.
    """
    check.instance("game_from_experts", "inner", inner, Learner)
    needs = within(inner, None, "params", "context", "weight")
    return Learner(inner, _init, _predict, update_game, needs=needs)


def _init(inner: Learner, params: PyTree) -> PyTree:
    return inner.init(params)


def _predict(inner: Learner, state: PyTree, context: PyTree) -> PyTree:
    return inner.predict(state, context)


def update_experts(inner: Learner, state: PyTree, feedback: Feedback) -> PyTree:
    value = tree.vdot(feedback.action, feedback.outcome)
    moves = jax.tree.map(lambda loss: loss - value, feedback.outcome)
    return inner.update(state, _told(feedback, moves))


def update_game(inner: Learner, state: PyTree, feedback: Feedback) -> PyTree:
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
