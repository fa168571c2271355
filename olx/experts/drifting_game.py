r"""The drifting game: weigh chips so that few of them end at costly positions.

In round $t$ the player chooses a distribution $p$ over $N$ chips. Nature then moves chip $i$ by
$z_i$ from a finite set $B$, subject to $\langle p, z\rangle \ge \beta$. After $T$ rounds chip $i$
costs $L(s_{T,i})$, with $L$ non-increasing. With $\Phi_T = L$,

$$\Phi_{t-1}(s) = \min_{w \ge 0} \max_{z \in B} \Phi_t(s + z) + w (z - \beta), \qquad
  p_{t,i} \propto w_t(s_{t-1,i}),$$

and the mean potential never rises, so the mean cost of a chip is at most $\Phi_0(0)$. The value is
the largest mean of $\Phi_t(s + z)$ over distributions on $B$ with mean move at least $\beta$. A
distribution on one or two moves attains it, and

$$w_t(s) = \max_{z < \beta} \frac{\Phi_t(s + z) - \Phi_{t-1}(s)}{\beta - z}.$$

For moves of $\pm 1$ that is $\Phi_{t-1}(s) = \frac{1 + \beta}2 \Phi_t(s + 1) + \frac{1 - \beta}2
\Phi_t(s - 1)$ and $w_t(s) = \frac12 (\Phi_t(s - 1) - \Phi_t(s + 1))$. Moves between the least and
the largest of $B$ are legal too where $\Phi_t$ is convex: potentials are then interpolated.

A chip is an expert, and its position is minus the regret to that expert: see `experts_from_game`
and `game_from_experts`.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.1.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree, static
from olx._refusal import RefusedType, RefusedValue, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.theorem import MET, latest, summed

_LARGEST_TABLE = 2**27


@pytree
class GameHparams:
    beta: Scalar
    table: Float[Array, "T+1 K"]  # Phi_t(s) at multiples of `unit`; s = 0 in the middle
    steps: tuple[int, ...] = static()  # the moves, in multiples of `unit`
    unit: float = static()


class GameState(NamedTuple):
    position: PyTree
    rounds: Float[Array, ""]  # finished so far


@public
def drifting_game(
    final: Callable[[Array], Array],
    rounds: int,
    beta: Scalar = 0.0,
    moves: Sequence[float] = (-1.0, 1.0),
) -> Learner:
    r"""The player of a game of `rounds` rounds that ends with the loss `final` for each chip.

    final: $L(s)$ of an array of positions, non-negative and non-increasing.
    beta: the least $\langle p, z\rangle$ allowed, from 0 to the largest move.
    moves: $B$, all multiples of a common unit.

    An outcome is the vector of moves. Only the shape of `params` is used: one entry per chip. After
    the last round the player keeps the last potential.

    >>> import jax.numpy as jnp, olx
    >>> behind = lambda s: (s <= 0).astype(float)
    >>> moves = jnp.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, 1.0, 1.0]])
    >>> game = drifting_game(behind, 3, beta=0.2)
    >>> run = olx.rollout(game, olx.losses.linear_loss, olx.Rounds(None, moves), jnp.ones(3))
    >>> run.state.position.tolist()
    [1.0, 1.0, 1.0]
    """
    check.function("final", final)
    check.count("rounds", rounds)
    steps, unit = _lattice(moves)
    beta = check.between("beta", beta, 0.0, max(max(steps), 0) * unit)
    size = (rounds + 1) * (2 * rounds + 3) * max(abs(step) for step in steps)
    if size > _LARGEST_TABLE:
        raise RefusedValue(
            f"`moves` must have a larger common unit than {unit:g}, or `rounds` be "
            f"fewer than {rounds}: the table of potentials would hold {size:,} numbers."
        )
    table = _potentials(final, rounds, beta, steps, unit)
    hparams = GameHparams(beta, table, steps, unit)
    return Learner(hparams, init, predict, update, theorems=(mean_potential,))


def init(hp: GameHparams, params: PyTree) -> GameState:
    dtype = ravel_pytree(params)[0].dtype
    return GameState(tree.zeros_like(params), jnp.zeros((), dtype))


def predict(hp: GameHparams, state: GameState, context: PyTree) -> PyTree:
    s, unravel = ravel_pytree(state.position)
    now = state.rounds + 1
    phi = [_potential(hp, now, s + step * hp.unit) for step in hp.steps]
    _, mass = _value_and_weight(hp.beta, hp.steps, hp.unit, phi)
    total = jnp.sum(mass)
    empty = total == 0
    return unravel(jnp.where(empty, 1 / s.size, mass / jnp.where(empty, 1.0, total)))


def update(hp: GameHparams, state: GameState, feedback: Feedback) -> GameState:
    position = tree.add_scale(state.position, feedback.weight, feedback.outcome)
    return GameState(position, state.rounds + 1)


class Account(NamedTuple):
    left: Float[Array, ""]  # the mean potential after the last round
    right: Float[Array, ""]  # the mean potential before it
    met: dict[str, Bool[Array, ""]]


MEAN = "moves must be `beta` in the mean"
LISTED = "moves must be of `moves`, or between them where the potential is convex"
OVER = "the game must not be over"


def start(hp: GameHparams, state: GameState, u: PyTree) -> Account:
    zero = jnp.zeros_like(state.rounds)
    return Account(zero, zero, dict.fromkeys((MEAN, LISTED, OVER), MET))


def terms(hp: GameHparams, state: GameState, feedback: Feedback, u: PyTree) -> Account:
    rounding = 64 * jnp.finfo(state.rounds.dtype).eps
    bend = jnp.diff(hp.table, n=2, axis=1)
    convex = jnp.all(bend >= -rounding * jnp.max(jnp.abs(hp.table)), axis=1)
    least, most = hp.steps[0] * hp.unit - rounding, hp.steps[-1] * hp.unit + rounding
    s, after = state.position, update(hp, state, feedback).position
    mean = lambda t, s: jnp.mean(_potential(hp, t, ravel_pytree(s)[0]))
    moved = feedback.weight * jnp.asarray(tree.vdot(feedback.action, feedback.outcome))
    z = feedback.weight * ravel_pytree(feedback.outcome)[0]
    away = [jnp.abs(z - step * hp.unit) for step in hp.steps]
    listed = jnp.min(jnp.stack(away), axis=0) <= rounding
    row = jnp.clip(state.rounds + 1, 0, convex.size - 1).astype(int)
    between = convex[row] & (z >= least) & (z <= most)
    met = {
        MEAN: moved >= hp.beta - rounding,
        LISTED: jnp.all(listed | between),
        OVER: state.rounds < hp.table.shape[0] - 1,
    }
    return Account(latest(mean(state.rounds + 1, after)), latest(mean(state.rounds, s)), met)


def both_sides(hp: GameHparams, account: Account, u: PyTree) -> Certificate:
    r"""The mean potential after a round is at most that before it; `published` is $\Phi_0(0)$.

    It says nothing after a round with $\langle p, z\rangle < \beta$, after a move that is not
    legal, or after the end of the game. `u` is not used.
    """
    zero = jnp.zeros_like(account.left)
    first = _potential(hp, zero, zero)
    scale = 1 + jnp.abs(account.left) + first
    return Certificate(account.left, account.right, scale, first).under(account.met)


mean_potential = summed("mean_potential", "Luo 2016, (2.2)", terms, both_sides, start)


def _potential(hp: GameHparams, t: Array, s: Array) -> Array:
    """Linear interpolation between lattice points; beyond the table, its last value."""
    reach = hp.table.shape[1] // 2
    row = hp.table[jnp.clip(t, 0, hp.table.shape[0] - 1).astype(int)].astype(s.dtype)
    place = jnp.clip(s / hp.unit + reach, 0, 2 * reach)
    left = jnp.minimum(jnp.floor(place), 2 * reach - 1)
    index, part = left.astype(int), place - left
    return (1 - part) * row[index] + part * row[index + 1]


def _lattice(moves: Sequence[float]) -> tuple[tuple[int, ...], float]:
    """The distinct moves in rising order, as multiples of their common unit; and that unit."""
    seen = np.asarray(moves)
    if seen.ndim != 1 or seen.dtype.kind not in "fiu":
        raise RefusedType(f"`moves` must be a list of numbers, got {check.quote(moves)}.")
    given = [float(z) for z in moves]
    exact = [Fraction(z).limit_denominator(10_000) for z in given if math.isfinite(z)]
    rounded = len(exact) == len(given) and all(
        abs(float(f) - z) <= 1e-12 for f, z in zip(exact, given, strict=True)
    )
    if not rounded or not any(exact):
        raise RefusedValue(
            f"`moves` must be finite multiples of a common unit, not all 0, got "
            f"{tuple(moves)}; round them to a few digits."
        )
    below = math.lcm(*(z.denominator for z in exact))
    whole = [int(z * below) for z in sorted(set(exact))]
    unit = math.gcd(*whole)
    return tuple(step // unit for step in whole), unit / below


def _potentials(
    final: Callable[[Array], Array], rounds: int, beta: Scalar, steps: tuple[int, ...], unit: float
) -> Array:
    r"""$\Phi_t(s)$ for $t = 0, \dots, T$ and all $s$ within $T + 1$ of the largest moves from 0."""
    longest = max(abs(step) for step in steps)
    reach = (2 * rounds + 1) * longest
    last = jnp.asarray(final(unit * jnp.arange(-reach, reach + 1, dtype=float)), float)

    def back(phi: Array, _: None) -> tuple[Array, Array]:
        after = [jnp.roll(phi, -step) for step in steps]
        before, _weight = _value_and_weight(beta, steps, unit, after)
        return before, before

    _, earlier = lax.scan(back, last, length=rounds)
    table = jnp.concatenate([earlier[::-1], last[None]])
    inner = rounds * longest
    return table[:, inner:-inner]  # drop the ends, where `roll` wraps around


def _value_and_weight(
    beta: Scalar, steps: tuple[int, ...], unit: float, phi: list[Array]
) -> tuple[Array, Array]:
    """The value and the weight of a chip, from its potentials after each possible move."""
    none = jnp.full_like(phi[0], -jnp.inf)
    value, weight = none, jnp.zeros_like(phi[0])
    moves = [step * unit for step in steps]
    for z, at in zip(moves, phi, strict=True):
        value = jnp.maximum(value, jnp.where(z >= beta, at, none))
    for (a, at_a), (b, at_b) in itertools.combinations(zip(moves, phi, strict=True), 2):
        mean = ((b - beta) * at_a + (beta - a) * at_b) / (b - a)
        value = jnp.maximum(value, jnp.where((a < beta) & (b >= beta), mean, none))
    for z, at in zip(moves, phi, strict=True):
        below = z < beta
        slope = (at - value) / safe.or_one(beta - z, below)
        weight = jnp.maximum(weight, jnp.where(below, slope, 0.0))
    return value, weight
