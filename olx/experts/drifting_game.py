r"""The drifting game: push chips, so that few of them end where it costs.

In round $t$ the player puts a distribution $p$ on $N$ chips, nature moves chip $i$ by $z_i \in
[-1, 1]$ subject to $\langle p, z\rangle \ge \beta$, and after $T$ rounds each chip costs
$L(s_{T,i})$, with $L$ non-increasing. With $\Phi_T = L$ and moves of $\pm 1$,

$$\Phi_{t-1}(s) = \tfrac{1 + \beta}2 \Phi_t(s + 1) + \tfrac{1 - \beta}2 \Phi_t(s - 1), \qquad
  p_{t,i} \propto \Phi_t(s_{t-1,i} - 1) - \Phi_t(s_{t-1,i} + 1),$$

and the mean potential never rises, so that chips cost at most $\Phi_0(0)$ in the mean. Moves in
between are legal where $\beta = 0$ and $L$ is convex on the integers: potentials are then
interpolated.

Chips are experts and positions minus their regrets: `experts_from_game` and `game_from_experts`
turn one player into the other.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.1, algorithms 1 and 2.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar, Trace
from olx.needs import within


@pytree
class GameHparams:
    beta: Scalar
    table: Float[Array, "T+1 2T+3"]  # Phi_t(s), s from -T-1 to T+1


class GameState(NamedTuple):
    position: PyTree
    rounds: Float[Array, ""]  # finished so far


def drifting_game(final: Callable[[Array], Array], rounds: int, beta: Scalar = 0.0) -> Learner:
    r"""The player of a game of `rounds` rounds that ends with the loss `final` for each chip.

    final: $L(s)$ of an array of positions, non-negative and non-increasing.
    beta: how much nature must move in the mean, from 0 to 1.

    An outcome is the vector of moves; `params` only says how many chips there are. After the last
    round the player stays with the last potential.

    >>> import jax.numpy as jnp, olx
    >>> behind = lambda s: (s <= 0).astype(float)
    >>> moves = jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, 1.0, 1.0]])
    >>> game = drifting_game(behind, 3, beta=0.2)
    >>> run = olx.rollout(game, olx.losses.linear, olx.Rounds(None, moves), jnp.ones(3))
    >>> run.state.position.tolist()
    [1.0, 1.0, 1.0]
    """
    check.function("drifting_game", "final", final)
    check.count("drifting_game", "rounds", rounds)
    beta = check.between("drifting_game", "beta", beta, 0.0, 1.0)
    return Learner(GameHparams(beta, potentials(final, rounds, beta)), init, predict, update, bound)


def potentials(final: Callable[[Array], Array], rounds: int, beta: Scalar) -> Array:
    r"""$\Phi_t(s)$ for $t = 0, \dots, T$ and $s = -T - 1, \dots, T + 1$, by backward recursion."""
    reach = 2 * rounds + 1
    last = jnp.asarray(final(jnp.arange(-reach, reach + 1, dtype=float)), float)

    def back(phi, _):
        before = (1 + beta) / 2 * jnp.roll(phi, -1) + (1 - beta) / 2 * jnp.roll(phi, 1)
        return before, before

    _, earlier = lax.scan(back, last, length=rounds)
    table = jnp.concatenate([earlier[::-1], last[None]])
    return table[:, rounds:-rounds]  # where the ends of the lattice, wrapped around, have not come


def init(hp: GameHparams, params: PyTree) -> GameState:
    dtype = ravel_pytree(params)[0].dtype
    return GameState(tree.zeros_like(params), jnp.zeros((), dtype))


def predict(hp: GameHparams, state: GameState, context: PyTree) -> PyTree:
    s, unravel = ravel_pytree(state.position)
    now = state.rounds + 1
    mass = _potential(hp, now, s - 1) - _potential(hp, now, s + 1)
    total = jnp.sum(mass)
    empty = total == 0
    return unravel(jnp.where(empty, 1 / s.size, mass / jnp.where(empty, 1.0, total)))


def update(hp: GameHparams, state: GameState, feedback: Feedback) -> GameState:
    position = tree.add_scale(state.position, feedback.weight, feedback.outcome)
    return GameState(position, state.rounds + 1)


def bound(hp: GameHparams, trace: Trace, u: PyTree) -> Certificate:
    r"""The mean potential after a round, at most what it was before; printed with $\Phi_0(0)$.

    It says nothing once nature did not move by $\beta$ in the mean, made a move that is not legal,
    or the game was over. `u` is not looked at.
    """
    rounding = 64 * jnp.finfo(trace.feedback.value.dtype).eps
    last = hp.table[-1]
    convex = jnp.all(last[2:] - 2 * last[1:-1] + last[:-2] >= -rounding * jnp.max(jnp.abs(last)))
    between = convex & (jnp.asarray(hp.beta) == 0)

    def one(state: GameState, feedback: Feedback):
        s, after = state.position, update(hp, state, feedback).position
        mean = lambda t, s: jnp.mean(_potential(hp, t, ravel_pytree(s)[0]))
        moves = jnp.abs(feedback.weight * ravel_pytree(feedback.outcome)[0])
        moved = feedback.weight * jnp.asarray(tree.vdot(feedback.action, feedback.outcome))
        whole = jnp.all(jnp.abs(moves - 1) <= rounding)
        met = {
            "moves must be `beta` in the mean": moved >= hp.beta - rounding,
            "moves must be 1 or -1, or between them where `beta` is 0 and `final` is convex": whole
            | (between & jnp.all(moves <= 1 + rounding)),
            "the game must not be over": state.rounds < hp.table.shape[0] - 1,
        }
        return mean(state.rounds + 1, after), mean(state.rounds, s), met

    left, right, met = jax.vmap(one)(*trace)
    first = _potential(hp, jnp.zeros_like(left[0]), jnp.zeros_like(left[0]))
    scale, printed = 1 + jnp.abs(left) + first, jnp.full_like(left, first)
    return Certificate(left, right, scale, printed, theorem="Luo 2016, (2.2)").under(met)


def experts_from_game(game: Learner) -> Learner:
    r"""Algorithm 2: experts played by a `game` of $\beta = 0$, on moves $\ell_i - \langle p, \ell
    \rangle$."""
    check.instance("experts_from_game", "game", game, Learner)
    needs = within(game, None, "params", "context")
    return Learner(game, _init, _predict, _update_experts, needs=needs)


def game_from_experts(learner: Learner) -> Learner:
    r"""Algorithm 1: the drifting game played by experts, on losses $z_i - \min_j z_j$.

    Nature may not move two chips apart by more than 1 in a round.
    """
    check.instance("game_from_experts", "learner", learner, Learner)
    needs = within(learner, None, "params", "context", "weight")
    return Learner(learner, _init, _predict, _update_game, needs=needs)


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


def _told(feedback: Feedback, outcome: PyTree) -> Feedback:
    loss = Partial(tree.vdot, outcome)
    value = jnp.asarray(loss(feedback.action))
    return feedback._replace(outcome=outcome, loss=loss, value=value, grad=outcome)


def _potential(hp: GameHparams, t: Array, s: Array) -> Array:
    """Linear between integers; at the ends of the table beyond it."""
    reach = hp.table.shape[1] // 2
    row = hp.table[jnp.clip(t, 0, hp.table.shape[0] - 1).astype(int)].astype(s.dtype)
    place = jnp.clip(s + reach, 0, 2 * reach)
    left = jnp.minimum(jnp.floor(place), 2 * reach - 1)
    index, part = left.astype(int), place - left
    return (1 - part) * row[index] + part * row[index + 1]
