r"""Play another learner and keep its decision of one round, drawn at random.

$$h = w_r, \qquad r \text{ uniform on } 1, \dots, T.$$

Its expected risk is the mean risk of all decisions, also for losses that are not convex. It is kept
by reservoir sampling: the decision of round $t$ replaces the one kept with probability $1/t$. So
the horizon need not be known, and $r$ is uniform after every round.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section B.3.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.core import Feedback, Learner, Scalar
from olx.wrapper import INNER, lift_needs, lift_theorems


@pytree
class RandomStopHparams:
    inner: Learner
    key: Array


class Reservoir(NamedTuple):
    kept: PyTree
    total: Float[Array, ""]  # the sum of the weights so far
    rounds: Int[Array, ""]


class RandomStopState(NamedTuple):
    inner: PyTree
    reservoir: Reservoir


@public
def random_stop(inner: Learner, key: Array) -> Learner:
    """Play `inner` and keep one decision, drawn in proportion to the weights of the rounds.

    inner: a learner of points; for a predictor, lift the result: `olx.linear(random_stop(...))`.

    >>> import jax, jax.numpy as jnp, olx
    >>> learner = random_stop(olx.ogd(1.0), jax.random.key(0))
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> stopped(run.state).item() in {0.0, -1.0, -2.0, -3.0}
    True
    """
    check.key(key)
    check.instance("inner", inner, Learner)
    hparams = RandomStopHparams(inner, key)
    needs = lift_needs(INNER, inner)
    theorems = lift_theorems(INNER, inner)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


@public
def stopped(state: RandomStopState) -> PyTree:
    """The decision kept, from the state of a `random_stop`, lifted or not."""
    check.state(state, RandomStopState, "random_stop")
    return state.reservoir.kept


def init(hp: RandomStopHparams, params: PyTree) -> RandomStopState:
    return RandomStopState(hp.inner.init(params), reservoir(params))


def predict(hp: RandomStopHparams, state: RandomStopState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner, context)


@own_name("random_stop")
def update(hp: RandomStopHparams, state: RandomStopState, feedback: Feedback) -> RandomStopState:
    check.same_shape("the action", feedback.action, "`params`", stopped(state))
    drawn = draw(hp.key, state.reservoir, feedback.action, feedback.weight)
    return RandomStopState(hp.inner.update(state.inner, feedback), drawn)


def reservoir(params: PyTree) -> Reservoir:
    """A reservoir for one decision shaped like `params`; 0 at first."""
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
    return Reservoir(tree.zeros_like(params), zero, jnp.zeros((), jnp.int32))


def draw(key: Array, state: Reservoir, decision: PyTree, weight: Scalar) -> Reservoir:
    """Keep `decision` with probability `weight` / (sum of all weights so far)."""
    total = state.total + weight
    chance = jax.random.uniform(jax.random.fold_in(key, state.rounds), (), total.dtype)
    takes = chance * total < weight
    kept = jax.tree.map(lambda new, old: jnp.where(takes, new, old), decision, state.kept)
    return Reservoir(kept, total, state.rounds + 1)
