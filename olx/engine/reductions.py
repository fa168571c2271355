"""Reductions of vectors in lengths that the compiler makes SIMD code of.

LLVM unrolls the loop of a short sum before it looks for SIMD code, and adds up the rest of a longer
one number by number: an inner product of 50 numbers took longer than one of 100. So in one kernel a
vector is filled up, by the number that changes nothing, to a longer one that has no rest. It is not
written to memory: XLA fills it up inside the loop of the reduction, which LLVM then does not
unroll. The lengths for which this pays are measured; see `olx.engine.tuning`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, PyTree

from olx.engine import tuning


def with_long_reductions(function: Callable[..., PyTree], *arguments: PyTree) -> Callable:
    """The function, traced for `arguments`, with longer vectors in its reductions.

    Reductions inside its loops and branches stay as they are. It has no derivatives of its own.
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    structure = jax.tree.structure(shapes)

    def play(*arguments: PyTree) -> PyTree:
        found = _evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(arguments))
        return jax.tree.unflatten(structure, found)

    return play


def _evaluate(jaxpr: Any, consts: list, given: list) -> list:
    known = dict(zip(jaxpr.constvars, consts, strict=True))
    known |= dict(zip(jaxpr.invars, given, strict=True))
    value = lambda atom: atom.val if hasattr(atom, "val") else known[atom]
    for equation in jaxpr.eqns:
        found = _results(equation, list(map(value, equation.invars)))
        known |= zip(equation.outvars, found, strict=True)
    return list(map(value, jaxpr.outvars))


def _results(equation: Any, given: list) -> list:
    primitive, params = equation.primitive, equation.params
    if primitive.name in _CALLS:
        inner = params.get("jaxpr", params.get("call_jaxpr"))
        return _evaluate(inner.jaxpr, inner.consts, given)
    if primitive.name == "dot_general" and _is_inner_product(equation):
        return [jnp.sum(_filled(given[0] * given[1], 0.0, tuning.PRODUCT_MOST))]
    if primitive.name in _NEUTRAL and params["axes"] and _is_vector(equation.invars[0]):
        given = [_filled(given[0], _NEUTRAL[primitive.name], tuning.REDUCTION_MOST)]
    found = primitive.bind(*given, **params)
    return list(found) if primitive.multiple_results else [found]


_CALLS = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"}
_NEUTRAL = {"reduce_sum": 0.0, "reduce_max": -np.inf, "reduce_min": np.inf}


def _is_vector(atom: Any) -> bool:
    return atom.aval.ndim == 1 and jnp.issubdtype(atom.aval.dtype, jnp.floating)


def _is_inner_product(equation: Any) -> bool:
    atoms = *equation.invars, *equation.outvars
    alike = len({atom.aval.dtype for atom in atoms}) == 1
    return alike and all(map(_is_vector, atoms[:2])) and atoms[2].aval.ndim == 0


def _filled(vector: Array, neutral: float, most: int) -> Array:
    size, lanes = vector.size, tuning.REDUCTION_LANES
    if not tuning.REDUCTION_LEAST <= size < most:
        return vector
    more = max(2 * lanes, (size // lanes + 1) * lanes) - size
    return lax.pad(vector, jnp.asarray(neutral, vector.dtype), [(0, more, 0)])
