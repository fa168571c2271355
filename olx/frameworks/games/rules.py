r"""Rules of `olx.repeated_game`: how the dual variables of a round are chosen.

The best ones solve

$$\max_{\alpha \ge 0, \sum_i \alpha_i \le h} \langle b, \alpha\rangle -
  c f^*\Big(\frac{acc + J^\top \sum_i \alpha_i m_i}c\Big).$$

`worst_hinge` puts all weight on the worst hinge, which is the subgradient step. The others search
for the best ones. After any number of steps the bounds hold: where the subgradient raises the dual
more, it is used.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (3.11), (3.12) and
section 7.4.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import public
from olx.convex.max_of_hinges import ascend_hinges, average_hinges
from olx.frameworks.games.base import HingeRule, Turn


@public
def worst_hinge() -> HingeRule:
    """The subgradient step: all weight on the worst hinge.

    >>> import jax.numpy as jnp, olx
    >>> player = olx.repeated_game(
    ...     0.5, olx.mirrors.euclidean(), olx.games.signs(), olx.games.worst_hinge()
    ... )
    >>> rounds = olx.Rounds(jnp.ones((3, 1)), jnp.ones(3))
    >>> olx.rollout(player, olx.losses.hinge, rounds, jnp.zeros(1)).losses.tolist()
    [1.0, 0.5, 0.0]
    """
    return HingeRule(0, _worst_alpha)


@public
def projected_ascent(steps: int = 100) -> HingeRule:
    """The best dual variables by `steps` projected gradient steps with momentum, for any potential.

    See `olx.convex.ascend_hinges`. It is quick for a potential that is strongly convex in a norm
    whose dual norm is at most the Euclidean one.
    """
    check.count("steps", steps)
    return HingeRule(steps, _ascent_alpha)


@public
def averaged_steps(steps: int = 100) -> HingeRule:
    """The mean of `steps` steps on the worst hinge, for the Euclidean potential.

    See `olx.convex.average_hinges`. It keeps one row of weights per hinge.
    """
    check.count("steps", steps)
    return HingeRule(steps, _average_alpha, euclidean=True)


def _worst_alpha(steps: int, turn: Turn) -> Array:
    return turn.worst_alpha


def _ascent_alpha(steps: int, turn: Turn) -> Array:
    shape, modulus = turn.hinges.directions.shape[1:], turn.mirror.modulus
    size = safe.or_one(turn.square / (1.0 if modulus is None else modulus))

    def link(theta: Array) -> Array:
        more = turn.pull(theta.reshape(shape) * (turn.c / size))
        return turn.act(turn.mirror.to_primal(turn.theta(more))).reshape(-1)

    rows = turn.hinges.directions.reshape(len(turn.gaps), -1)
    start = jnp.zeros(rows.shape[1], rows.dtype)
    return ascend_hinges(link, turn.c / size, start, rows, turn.hinges.bounds, turn.weight, steps)


def _average_alpha(steps: int, turn: Turn) -> Array:
    rows = jax.vmap(lambda m: ravel_pytree(turn.pull(m))[0])(turn.hinges.directions)
    return average_hinges(turn.c, turn.gaps, rows, turn.weight, steps)
