"""Check the curvature of a function for a mirror map at a few points.

A function that does not accept a vector of three numbers is checked on matrices of shape (3, 3), if
its conjugate is to be found. A function of symmetric matrices fails there: minus the
log-determinant is not convex on all matrices, and a function of the symmetric part has directions
without curvature. A function that accepts neither, or that is traced, is not checked.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from olx._cache import cached, compiled
from olx._pytree import as_tree
from olx._refusal import RefusedType, RefusedValue

_OFFSETS = (  # their sum is 0, so that the total does not change
    np.array([-1.0, 0.3, 0.7]),
    np.array([[0.7, -1.0, 0.3], [0.2, -0.6, 0.5], [-0.9, 0.4, 0.4]]),
)
_SYMMETRIC = (
    "; for a function of symmetric matrices use `olx.mirrors.log_det` or "
    "`olx.mirrors.von_neumann`, or give both functions"
)
_SPREADS = (0.3, 0.05, 0.003)  # relative to the point; points outside the domain are skipped
_ROUNDING = 1e-3  # relative to the largest curvature; enough for single precision


def check_curvature(
    name: str,
    function: Callable,
    start: Any,
    total: Any,
    separable: bool,
    strict: bool,
    alone: bool,
) -> None:
    """Refuse a function that is not convex, is flat, or is not separable as promised.

    strict: whether it must curve in every direction, as a potential without a given conjugate.
    alone: whether the other function is not given.
    """
    numbers = (start, total, *jax.tree.leaves(function))
    if any(isinstance(number, Tracer) for number in numbers):
        return
    for offsets in _OFFSETS[: 1 + alone]:
        center = float(start) if total is None else float(total) / offsets.size
        seen = _curvatures(name, function, center, offsets)
        if seen is not None:
            remedy = _SYMMETRIC if offsets.ndim == 2 else ""
            _check(name, seen, center, total, separable, strict, remedy)
            return


def _check(
    name: str,
    seen: np.ndarray,
    center: float,
    total: Any,
    separable: bool,
    strict: bool,
    remedy: str,
) -> None:
    size = seen.shape[-1]
    finite = [curvature for curvature in seen if np.all(np.isfinite(curvature))]
    if not finite:
        raise RefusedValue(
            f"`{name}` has no finite curvature around points whose coordinates are "
            f"all {center:g}; give a `start` inside its domain{remedy}."
        )
    whole = np.eye(size)
    plane = whole if total is None else np.linalg.svd(whole - 1 / size)[0][:, : size - 1]
    flat = True
    for curvature in finite:
        largest = np.max(np.abs(curvature))
        least = np.min(np.linalg.eigvalsh(plane.T @ curvature @ plane))
        if least < -_ROUNDING * largest:
            raise RefusedValue(
                f"`{name}` must be convex; it has the curvature {least:.3g} near "
                f"points whose coordinates are all {center:g}{remedy}."
            )
        apart = np.max(np.abs(curvature - np.diag(np.diag(curvature))))
        if separable and apart > _ROUNDING * largest:
            raise RefusedValue(
                f"`{name}` is not a sum over coordinates, which `separable=True` "
                "promises; leave out `separable`."
            )
        flat &= bool(largest == 0 or (strict and least <= 1e-6 * largest))
    if flat:
        raise RefusedValue(
            f"`{name}` must be strictly convex and differentiable; it has a direction "
            f"without curvature near points whose coordinates are all {center:g}{remedy}."
        )


def _curvatures(
    name: str, function: Callable, center: float, offsets: np.ndarray
) -> np.ndarray | None:
    """The Hessians near a point; None if they cannot be computed."""
    spreads = max(abs(center), 1.0) * np.array(_SPREADS)
    points = jnp.asarray(center + np.multiply.outer(spreads, offsets), float)
    try:
        leaves, structure = jax.tree.flatten((as_tree(function), points[0]))
        value = _value(structure, tuple(map(_kind, leaves)))
    except Exception:  # the function needs decisions of another shape
        return None
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", type(value).__name__)
    if shape != () or not jnp.issubdtype(dtype, jnp.floating):
        raise RefusedType(f"`{name}` must give one real number, got {dtype} of shape {shape}.")
    seen = _second_derivatives(as_tree(function), points)
    return None if isinstance(seen, Tracer) else np.asarray(seen, float)


def _kind(leaf: Any) -> tuple:
    return jnp.shape(leaf), jnp.result_type(leaf), isinstance(leaf, int | float)


@cached
def _value(structure: Any, kinds: tuple) -> Any:
    """The shape of a value of the function; cached, since it traces."""
    leaves = [jax.ShapeDtypeStruct(*kind, weak_type=weak) for *kind, weak in kinds]

    def play(leaves: list) -> Any:
        function, w = jax.tree.unflatten(structure, leaves)
        return function(w)

    return jax.eval_shape(play, leaves)


@compiled
def _second_derivatives(function: Callable, points: Array) -> Array:
    """The Hessians at `points`; not finite where the value is not finite."""
    flat = lambda w: function(w.reshape(points.shape[1:]))
    return jax.vmap(lambda w: jax.hessian(flat)(w) + 0 * flat(w))(points.reshape(len(points), -1))
