"""What mistake bounds are made of: mistakes, margins and rows of a run of `dual_ascent`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Run, Scalar
from olx.frameworks.dual_ascent import DualAscentState
from olx.frameworks.lift import dot
from olx.hindsight.game import About, Game, judged, played, unit_weights


class Tally(NamedTuple):
    game: Game
    wrong: Bool[Array, " T"]
    margin: Float[Array, " T"]  # y <u, x>
    size: Float[Array, " T"]  # the dual norm of x, squared, over the modulus
    c: Float[Array, " T"]
    price: Float[Array, ""]  # f(u), infinite outside the domain


def tally_of(owner: str, kind: About, learner: Learner, run: Run, u: PyTree) -> Tally:
    game, hp = played(owner, kind, learner, run, u), learner.hparams
    u, norm, modulus = like_decisions(owner, game), hp.mirror.norm, hp.mirror.modulus

    def one(state: DualAscentState, feedback: Feedback):
        x, y = feedback.context, feedback.outcome
        c = jnp.asarray(hp.schedule.at(state.stats, x), jnp.result_type(feedback.action))
        return y * feedback.action <= 0, y * dot(u, x), norm.dual(x) ** 2 / modulus, c

    least = hp.mirror.conjugate(jax.tree.map(jnp.zeros_like, u))
    inside = hp.mirror.outside(u) == 0
    price = jnp.where(inside, hp.mirror.potential(u) + least, jnp.inf)
    wrong, margin, size, c = jax.jit(jax.vmap(one))(*game.trace)
    return Tally(game, wrong, margin, size, c, price)


def like_decisions(owner: str, game: Game) -> PyTree:
    acc = jax.tree.map(lambda leaf: leaf[0], game.trace.state.acc)
    return check.comparator(owner, game.u, acc)


def hinge_of(tally: Tally, margin: Scalar) -> Array:
    return jnp.cumsum(jnp.where(tally.wrong, jnp.maximum(margin - tally.margin, 0.0), 0.0))


def sums_of(tally: Tally, factor: Scalar | Array) -> tuple[Array, Array]:
    """The sum of `factor` times the squares of the mistakes, and what their largest makes of it."""
    squares = jnp.where(tally.wrong, tally.size, 0.0)
    count = jnp.cumsum(tally.wrong.astype(squares.dtype))
    return jnp.cumsum(factor * squares), factor * lax.cummax(squares) * count


def counted(
    tally: Tally, right: Array, printed: Array | None, name: str, met: dict | None = None
) -> Certificate:
    """Mistakes against `right`, for every round of the run."""
    proof = mistakes(tally.wrong, right * jnp.ones_like(tally.margin), printed, name)
    proof = proof.given(DOMAIN, jnp.isfinite(tally.price)).under(met or {})
    return judged(tally.game, unit_weights(tally.game, proof))


def mistakes(wrong: Array, right: Array, printed: Array | None, name: str) -> Certificate:
    count = jnp.cumsum(wrong.astype(right.dtype))
    scale = count + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    return Certificate(count, right, scale, printed, theorem=name)
