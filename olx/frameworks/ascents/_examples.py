r"""A buffer of past examples, so that their dual variables can be optimized again.

A ring buffer of rows $x_i$, outcomes, weights $h_i$ and dual variables $\tau_i$. An example that
leaves the buffer keeps its last $\tau_i$ in the dual. Maximizing over one $\tau_i$ is the step of
`aggressive` on an `acc` without $\lambda_i = h_i \tau_i x_i$.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree
from optax import tree

from olx.frameworks.ascents.aggressive import best
from olx.frameworks.ascents.base import Problem


class Examples(NamedTuple):
    x: PyTree  # [k, ...]
    y: Float[Array, " k"]
    weight: Float[Array, " k"]  # 0 in empty slots
    tau: Float[Array, " k"]
    count: Int[Array, ""]  # examples added so far, including those no longer in the buffer


class Dual(NamedTuple):
    acc: PyTree
    change: Float[Array, ""]  # change of the sum of conjugates
    examples: Examples


def empty(size: int, params: PyTree) -> Examples:
    zeros = jnp.zeros(size, jnp.result_type(*jax.tree.leaves(params)))
    x = jax.tree.map(lambda leaf: jnp.zeros((size, *jnp.shape(leaf)), leaf.dtype), params)
    return Examples(x, zeros, zeros, zeros, jnp.zeros((), int))


def add(examples: Examples, problem: Problem) -> Dual:
    """Take the step of `aggressive` and put the example into the buffer, if its weight is not 0."""
    if problem.loss.of_classes:
        raise TypeError(
            "the buffer of examples keeps one dual variable per example, and a loss of classes has "
            "one per class; use the rule `aggressive` with it."
        )
    tau = best(problem)
    counts = jnp.asarray(problem.weight > 0)
    slot = examples.count % examples.tau.size

    def put(rows, row):
        here = lax.dynamic_index_in_dim(rows, slot, keepdims=False)
        return lax.dynamic_update_index_in_dim(rows, jnp.where(counts, row, here), slot, 0)

    kept = Examples(
        jax.tree.map(put, examples.x, problem.x),
        put(examples.y, problem.y),
        put(examples.weight, problem.weight),
        put(examples.tau, tau),
        examples.count + counts.astype(int),
    )
    acc = tree.add_scale(problem.acc, -problem.weight * tau, problem.x)
    return Dual(acc, problem.weight * problem.loss.conjugate(tau, problem.y), kept)


def revisit(problem: Problem, dual: Dual, index: Int[Array, ""]) -> Dual:
    """Maximize the dual over the dual variable of one example."""
    examples = dual.examples
    at = lambda rows: lax.dynamic_index_in_dim(rows, index, keepdims=False)
    x, y = jax.tree.map(at, examples.x), at(examples.y)
    weight, old = at(examples.weight), at(examples.tau)
    without = tree.add_scale(dual.acc, weight * old, x)
    theta = jax.tree.map(lambda acc: acc / problem.c, without)
    score = tree.vdot(problem.mirror.to_primal(theta), x)
    alone = problem._replace(acc=without, x=x, y=y, weight=weight, score=score)
    new = jnp.where(weight > 0, best(alone), old)
    conjugate = lambda tau: problem.loss.conjugate(tau, y)
    return Dual(
        tree.add_scale(dual.acc, weight * (old - new), x),
        dual.change + weight * (conjugate(new) - conjugate(old)),
        examples._replace(tau=lax.dynamic_update_index_in_dim(examples.tau, new, index, 0)),
    )
