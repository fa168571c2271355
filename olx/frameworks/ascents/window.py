r"""Maximize the dual over the dual vectors of the last $k$ rounds together.

$$\max_{\tau_{t-k+1}, \dots, \tau_t}\; D_t.$$

Coordinate ascent: one variable at a time, the newest first, in several passes. Earlier variables
stay. $k = 1$ is the aggressive rule. With $k$ the number of all rounds it is follow the regularized
leader, $w_{t+1} = \arg\min_w c_t f(w) + \sum_{i \le t} g_i(w)$. For any number of passes the dual
is at least that of the aggressive rule, so all bounds hold.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.2.2, (5.18).
"""

from jax import lax
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.frameworks.ascents import _examples
from olx.frameworks.ascents._examples import Dual, Examples
from olx.frameworks.ascents.base import Ascent, Problem


@pytree
class WindowHparams:
    size: int = static()
    passes: int = static()


@public
def window(size: int, passes: int = 10) -> Ascent:
    """Optimize the dual vectors of the last `size` rounds again in every round.

    passes: how often each is optimized per round; the next round starts from the result.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.dual_ascent(1.0, olx.mirrors.euclidean(), olx.losses.hinge, window(2))
    >>> rounds = olx.Rounds(jnp.array([[1.0, 0.0], [1.0, 0.5], [0.0, 1.0]]), jnp.ones(3))
    >>> olx.rollout(learner, olx.losses.hinge, rounds, jnp.zeros(2)).losses.round(3).tolist()
    [1.0, 0.0, 1.0]
    """
    check.count("size", size)
    check.count("passes", passes)
    return Ascent(WindowHparams(size, passes), init, step, separable=False)


@public
def follow_the_leader(rounds: int, passes: int = 10) -> Ascent:
    """Optimize the dual vectors of all rounds again in every round, for at most `rounds` rounds.

    The decision approximates the regularized minimizer of all losses so far; more `passes` are more
    exact. A round costs `rounds` times `passes` steps of `aggressive`.
    """
    check.count("rounds", rounds)
    check.count("passes", passes)
    return window(rounds, passes)


def init(hp: WindowHparams, params: PyTree) -> Examples:
    return _examples.empty(hp.size, params)


def step(hp: WindowHparams, memory: Examples, problem: Problem) -> tuple[PyTree, Array, Examples]:
    newest = memory.count % hp.size

    def again(i: Array, dual: Dual) -> Dual:
        return _examples.revisit(problem, dual, (newest - i) % hp.size)

    more = hp.size * hp.passes if hp.size > 1 else 1
    return lax.fori_loop(1, more, again, _examples.add(memory, problem))
