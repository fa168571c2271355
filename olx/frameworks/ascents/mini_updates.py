r"""Several single-variable maximizations per round: first the new dual variable, then earlier ones.

$$\tau_{i_j} = \arg\max_\tau D_t, \qquad i_1 = t, \quad i_2, \dots, i_k \in \{1, \dots, t\}.$$

$i_2, \dots, i_k$ cycle through the buffer of examples and continue where the last round stopped.
The first step is the aggressive rule and the others only increase the dual, so all bounds hold.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.2.2.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.frameworks.ascents import _examples
from olx.frameworks.ascents._examples import Dual, Examples
from olx.frameworks.ascents.base import Ascent, Problem


@pytree
class MiniUpdatesHparams:
    steps: int = static()
    capacity: int = static()


class Rota(NamedTuple):
    examples: Examples
    turn: Int[Array, ""]  # index of the next example to revisit


@public
def mini_updates(steps: int, capacity: int) -> Ascent:
    """Maximize over `steps` dual variables per round, one at a time, the newest first.

    capacity: the number of examples kept, the newest ones.

    >>> import jax.numpy as jnp, olx
    >>> rule = mini_updates(2, 8)
    >>> learner = olx.dual_ascent(1.0, olx.mirrors.euclidean(), olx.losses.hinge, rule)
    >>> rounds = olx.Rounds(jnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), -jnp.ones(3))
    >>> olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(2)).losses.round(3).tolist()
    [1.0, 0.0, 1.0]
    """
    check.count("steps", steps)
    check.count("capacity", capacity)
    return Ascent(MiniUpdatesHparams(steps, capacity), init, step, separable=False)


def init(hp: MiniUpdatesHparams, params: PyTree) -> Rota:
    return Rota(_examples.empty(hp.capacity, params), jnp.zeros((), int))


def step(hp: MiniUpdatesHparams, memory: Rota, problem: Problem) -> tuple[PyTree, Array, Rota]:
    dual = _examples.add(memory.examples, problem)
    kept = jnp.clip(dual.examples.count, 1, hp.capacity)

    def again(i: Array, dual: Dual) -> Dual:
        return _examples.revisit(problem, dual, (memory.turn + i) % kept)

    acc, change, examples = lax.fori_loop(0, hp.steps - 1, again, dual)
    return acc, change, Rota(examples, (memory.turn + hp.steps - 1) % kept)
