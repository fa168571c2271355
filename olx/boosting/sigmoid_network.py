r"""A two-layer network of sigmoid units, trained online by any point learner.

$$h_w(x) = c + \sum_{j=1}^m v_j\, \sigma(\langle u_j, x \rangle + b_j), \qquad
  \sigma(s) = \frac1{1 + e^{-s}}.$$

It is the plain function `network` of weights and row, lifted by `olx.model`. The first weights are
drawn: the entries of $u_j$ and $v_j$ are normal with variance $1/d$ and $1/m$, and the offsets are
0. The point learner decides on the distance from there, so that learners whose first decision is
always 0, such as `olx.ftrl`, can train a network too. The loss is not convex in $w$, so there is no
bound on the regret.

The units see the row as it is: scale the features, for example by `scale = "maximum"` in the lab.

Luo, Optimal and Adaptive Online Learning, 2016, section 3.2.5, uses 10 units as a base learner of
online gradient boosting. The first weights are ours.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import public
from olx.core import Feedback, Learner
from olx.frameworks.lift import model
from olx.wrapper import OUTCOME, lift_needs


class Weights(NamedTuple):
    into: Float[Array, "m d"]  # u
    offsets: Float[Array, " m"]  # b
    out: Float[Array, " m"]  # v
    constant: Float[Array, ""]  # c


@pytree
class NetworkHparams:
    inner: Learner
    key: Array
    hidden: int = static()


class NetworkState(NamedTuple):
    first: Weights
    inner: PyTree  # of the learner of the distance from `first`


@public
def sigmoid_network(inner: Learner, hidden: int = 10, key: Array | None = None) -> Learner:
    """A network of `hidden` sigmoid units as a predictor; `inner` decides on its weights.

    inner: a point learner over trees, such as `olx.ogd(0.1)` or `olx.first_order.adagrad(0.1)`.
    key: of `jax.random`, for the first weights; `jax.random.key(0)` if None.

    The context is shaped like `params`; only the shape of `params` is used.

    >>> import jax, jax.numpy as jnp, olx
    >>> rows = jax.random.normal(jax.random.key(1), (2000, 2))
    >>> rounds = olx.Rounds(rows, jnp.sign(rows[:, 0] * rows[:, 1]))
    >>> learner = sigmoid_network(olx.ogd(0.2), key=jax.random.key(0))
    >>> run = olx.run(learner, olx.losses.squared, rounds, jnp.zeros(2))
    >>> bool(run.losses[-500:].mean() < 0.5 * run.losses[:500].mean())
    True
    """
    check.instance("inner", inner, Learner)
    check.size("hidden", hidden)
    key = jax.random.key(0) if key is None else key
    check.key(key)
    hparams, needs = NetworkHparams(inner, key, hidden), lift_needs(OUTCOME, inner)
    return Learner(hparams, init, predict, update, needs=needs)


def network(w: Weights, x: PyTree) -> Array:
    """The prediction of the network with weights `w`."""
    units = jax.nn.sigmoid(w.into @ ravel_pytree(x)[0] + w.offsets)
    return w.constant + jnp.vdot(w.out, units)


@public
def first_weights(features: int, hidden: int = 10, key: Array | None = None) -> Weights:
    """Random weights for rows of `features` numbers, for `olx.model(inner, network)`.

    key: of `jax.random`; `jax.random.key(0)` if None.

    >>> first_weights(3).into.shape
    (10, 3)
    """
    check.count("features", features)
    check.size("hidden", hidden, features)
    key = jax.random.key(0) if key is None else key
    check.key(key)
    return _drawn(key, features, hidden, float)


def init(hp: NetworkHparams, params: PyTree) -> NetworkState:
    flat = ravel_pytree(params)[0]
    first = _drawn(hp.key, flat.size, hp.hidden, flat.dtype)
    return NetworkState(first, hp.inner.init(tree.zeros_like(first)))


def predict(hp: NetworkHparams, state: NetworkState, context: PyTree) -> Array:
    return _trained(hp, state).predict(state.inner, context)


def update(hp: NetworkHparams, state: NetworkState, feedback: Feedback) -> NetworkState:
    return NetworkState(state.first, _trained(hp, state).update(state.inner, feedback))


def _drawn(key: Array, features: int, hidden: int, dtype: DTypeLike) -> Weights:
    below, above = jax.random.split(key)
    into = jax.random.normal(below, (hidden, features), dtype) / features**0.5
    out = jax.random.normal(above, (hidden,), dtype) / hidden**0.5
    zeros = jnp.zeros_like(out)
    return Weights(into, zeros, out, zeros[0])


def _trained(hp: NetworkHparams, state: NetworkState) -> Learner:
    return model(hp.inner, Partial(_moved, state.first))


def _moved(first: Weights, distance: Weights, x: PyTree) -> Array:
    return network(tree.add(first, distance), x)
