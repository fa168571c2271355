"""The forms of the engine in single precision, and with a matrix of weights on sparse rows."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from scipy.sparse import csr_array

from olx._pytree import as_tree
from olx.core import Learner, Loss, Rounds, Run
from olx.engine.implementations.blocks import LEAST
from olx.engine.rollout import rollout
from olx.engine.run import run, sweep
from olx.facts import Linear
from olx.streams.sparse_rows import sparse_rows
from olx.testing.report import close

_ROUNDING = 1e-3  # of float32, over a few dozen rounds


def check_single(
    learners: Learner, loss: Loss, rounds: Rounds, params: PyTree, sparse: bool
) -> None:
    """In float32 a sweep in blocks and sparse rows give the losses of `rollout`.

    Sparse rows are played by the first of the learners. If each of its coordinates is alone, and if
    it takes matrices, it gets two rows of weights and two scores; the second loss counts half.

    Only losses are compared: some states hold small differences of large numbers.
    """
    learners, loss, rounds, params = _in_float32((learners, as_tree(loss), rounds, params))
    play = lambda learner: rollout(learner, loss, rounds, params)
    if learners.facts.adds is not None and jax.tree.leaves(learners):
        some = jax.tree.map(lambda leaf: leaf[:LEAST], learners)
        wanted = jax.jit(jax.vmap(play))(some)
        _compare("a sweep in float32 is not rollout", sweep(some, loss, rounds, params), wanted)
    if sparse:
        one = jax.tree.map(lambda leaf: leaf[0], learners)
        matrix = jnp.stack([params, params])
        if isinstance(one.facts.coordinates, Linear) and _takes(one, rounds, matrix):
            params, loss = matrix, Partial(_of_scores, loss)
        wanted = jax.jit(lambda one: rollout(one, loss, rounds, params))(one)
        rows = rounds._replace(context=sparse_rows(csr_array(rounds.context)))
        _compare("sparse rows in float32 differ", run(one, loss, rows, params), wanted)


def _compare(what: str, seen: Run, wanted: Run) -> None:
    close(what, seen.losses, wanted.losses, _ROUNDING)


def _takes(learner: Learner, rounds: Rounds, params: PyTree) -> bool:
    """Whether the learner can predict from such a start; some compare decisions with contexts."""
    try:
        jax.eval_shape(lambda: learner.predict(learner.init(params), rounds.context[0]))
    except TypeError:
        return False
    return True


def _of_scores(loss: Partial, scores: Array, outcome: PyTree) -> Array:
    return loss(scores[0], outcome) + 0.5 * loss(scores[1], outcome)


def _in_float32(tree: PyTree) -> Any:
    def cast(leaf: Any) -> Any:
        real = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        return np.asarray(leaf, np.float32) if real else leaf

    return jax.tree.map(cast, tree)
