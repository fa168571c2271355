"""Batches: learners that differ in their numbers, stacked for `olx.sweep`."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.core import Batch, Learner


@public
def grid(**axes: object) -> dict[str, Array]:
    """Every combination of the values of `axes`, for `batch`; the last axis changes fastest.

    >>> import jax.numpy as jnp
    >>> {name: values.tolist() for name, values in grid(a=jnp.arange(2), b=jnp.arange(3)).items()}
    {'a': [0, 0, 0, 1, 1, 1], 'b': [0, 1, 2, 0, 1, 2]}
    """
    values, lengths = _lengths("grid", axes)
    rows = np.array(list(itertools.product(*map(range, lengths.values()))), int)
    return {
        name: axis[rows.reshape(-1, len(axes))[:, column]]
        for column, (name, axis) in enumerate(values.items())
    }


@public
def batch(make: Callable[..., Learner], /, **axes: object) -> Batch:
    """Stack the learners that `make` makes from each value of its arguments, for `olx.sweep`.

    Learner i is made from entry i of every axis, so all axes have one length; `grid` makes their
    product. `batch.axes` holds the values, and so does the run of a sweep. `batch.learners` is one
    learner whose leaves have a leading axis, for `jax.vmap`; `batch[i]` is learner i.

    >>> import jax.numpy as jnp, olx
    >>> learners = batch(olx.hedge, **grid(eta=jnp.geomspace(1e-3, 1.0, 64)))
    >>> len(learners), learners.learners.hparams.eta.shape
    (64, (64,))
    """
    if not callable(make):
        raise RefusedType(
            f"`make` must be a function that makes a learner, got {type(make).__name__}."
        )
    values, lengths = _lengths("batch", axes)
    if len(set(lengths.values())) > 1:
        seen = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise RefusedType(
            f"axes differ in length ({seen}); `batch(make, **olx.grid(...))` takes their product."
        )
    _check_names(make, values)
    with own_name():
        learners = jax.vmap(lambda values: make(**values))(values)
    if not isinstance(learners, Learner):
        raise RefusedType(f"`make` must give a Learner, got {type(learners).__name__}.")
    return Batch(learners, values)


def _check_names(make: Callable[..., Learner], axes: dict[str, Array]) -> None:
    try:
        inspect.signature(make).bind(**axes)
    except TypeError as error:
        names = ", ".join(f"`{name}`" for name in axes)
        raise RefusedType(
            f"`make` cannot be called with {names} alone: {error}; give a function of the "
            "numbers that vary, as `lambda eta: olx.linear(olx.ogd(eta))`."
        ) from None


def _lengths(caller: str, axes: dict[str, Any]) -> tuple[dict[str, Array], dict[str, int]]:
    """The values of each axis as an array, and the length of each axis."""
    for name, axis in axes.items():
        if not isinstance(axis, jax.Array) and np.asarray(axis).dtype.kind in "OSU":
            raise RefusedType(f"axis `{name}` must hold numbers, got {axis!r:.100}.")
    values = {name: jnp.asarray(axis) for name, axis in axes.items()}
    if not values:
        raise RefusedType(f"give at least one axis, as in `{caller}(..., eta=etas)`.")
    for name, axis in values.items():
        if axis.ndim == 0:
            raise RefusedType(f"axis `{name}` is a single number; give an array of values.")
        if axis.shape[0] == 0:
            raise RefusedValue(f"axis `{name}` is empty; give at least one value.")
    return values, {name: axis.shape[0] for name, axis in values.items()}
