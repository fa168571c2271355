"""The compiled programs of a game on rows of one width.

A call of a small program costs more than the round itself, and each argument costs more than its
numbers. So all real numbers of a state are one vector, and so are those of the learner and the
loss. A row is one vector too: the outcome, the weight, then the features.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from olx._cache import cached
from olx._pytree import as_tree
from olx.core import Learner, Loss
from olx.engine.round import feedback_of

LEAD = 2  # numbers of a row before its features: the outcome and the weight


class Packing(NamedTuple):
    """How the leaves of a tree lie in one vector of float64 and a list of other arrays."""

    structure: Any
    kinds: tuple[tuple[tuple[int, ...], Any], ...]  # the shape and the dtype of each leaf

    def pack(self, tree: PyTree) -> tuple[Float[Array, " n"], tuple]:
        leaves = jax.tree.leaves(tree)
        real = [jnp.ravel(leaf) for leaf, kind in self._pairs(leaves) if _is_real(kind)]
        vector = jnp.concatenate(real) if real else jnp.zeros(0)
        return vector, tuple(leaf for leaf, kind in self._pairs(leaves) if not _is_real(kind))

    def unpack(self, vector: Any, others: tuple) -> PyTree:
        left, leaves, begin = list(others), [], 0
        for shape, kind in self.kinds:
            if not _is_real(kind):
                leaves.append(left.pop(0))
                continue
            size = int(np.prod(shape, dtype=int))
            leaves.append(vector[begin : begin + size].reshape(shape))
            begin += size
        return jax.tree.unflatten(self.structure, leaves)

    def _pairs(self, leaves: list) -> zip:
        return zip(leaves, (kind for _, kind in self.kinds), strict=True)


class Programs(NamedTuple):
    """What is compiled for a learner, a loss, and a width; `own` and `state` are packed trees."""

    packing: Packing  # of the state
    shape: tuple[int, ...]  # of the decision
    start: Callable[..., Any]  # own -> state
    pair: Callable[..., Any]  # (own, state, 2 rows) -> (state, scores)
    block: Callable[..., Any]  # (own, state, rows) -> state
    many: Callable[..., Any]  # (own, state, rows) -> scores


def packing_of(tree: PyTree) -> Packing:
    leaves, structure = jax.tree.flatten(tree)
    kinds = tuple((np.shape(leaf), _kind(leaf)) for leaf in leaves)
    return Packing(structure, kinds)


def own_of(learner: Learner, loss: Loss) -> tuple[Packing, PyTree]:
    """The numbers of a learner and of a loss."""
    both = learner, as_tree(loss)
    packing = packing_of(both)
    return packing, jax.tree.map(np.asarray, packing.pack(both))


@cached
def programs(own: Packing, shape: tuple[int, ...], labels: bool) -> Programs:
    """The programs of all games of one structure.

    shape: of the decision; the last number is the width.
    labels: whether outcomes are numbers of classes.
    """

    def begin(numbers: tuple) -> PyTree:
        return own.unpack(*numbers)[0].init(jnp.zeros(shape))

    vector = sum(int(np.prod(size, dtype=int)) for size, kind in own.kinds if _is_real(kind))
    others = tuple(jax.ShapeDtypeStruct(*kind) for kind in own.kinds if not _is_real(kind[1]))
    held = packing_of(jax.eval_shape(begin, (jax.ShapeDtypeStruct((vector,), jnp.float64), others)))

    def start(numbers: tuple) -> tuple:
        return held.pack(jax.tree.map(jnp.asarray, begin(numbers)))

    def learn(numbers: tuple, state: tuple, row: Array) -> tuple:
        (learner, loss), kept = own.unpack(*numbers), held.unpack(*state)
        outcome, weight, x = row[0], row[1], row[LEAD:]
        outcome = outcome.astype(jnp.int32) if labels else outcome
        feedback = feedback_of(loss, x, learner.predict(kept, x), outcome, weight)
        return held.pack(learner.update(kept, feedback))

    def score(numbers: tuple, state: tuple, row: Array) -> Array:
        learner = own.unpack(*numbers)[0]
        return learner.predict(held.unpack(*state), row[LEAD:])

    def pair(numbers: tuple, state: tuple, rows: Array) -> tuple:
        after = learn(numbers, state, rows[0])
        return after, score(numbers, after, rows[1])

    def block(numbers: tuple, state: tuple, rows: Array) -> tuple:
        step = lambda state, row: (learn(numbers, state, row), None)
        return lax.scan(step, state, rows)[0]

    def many(numbers: tuple, state: tuple, rows: Array) -> Array:
        return jax.vmap(lambda row: score(numbers, state, row))(rows)

    return Programs(held, shape, jax.jit(start), jax.jit(pair), jax.jit(block), jax.jit(many))


def _kind(leaf: Any) -> Any:
    plain = isinstance(leaf, int | float) and not isinstance(leaf, bool)
    return np.dtype(np.float64) if plain else jnp.result_type(leaf)


def _is_real(kind: Any) -> bool:
    return kind == np.float64
