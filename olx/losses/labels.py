"""The need for labels 0, 1, ..., k - 1, for losses of classes and for multiclass learners."""

from typing import Any

import jax
import numpy as np

from olx.needs import Need


def labels(owner: str) -> Need:
    """The need for integer labels below the number of classes, which `params` tells."""
    return Need("outcome", _are_labels, "labels must be integers from 0 to k - 1", owner, REMEDY)


def of_classes(owner: str) -> Need:
    """The need for `params` with one row of weights per class."""
    demand = "`params` must be an array with one row per class, for 2 classes or more"
    return Need("params", _has_rows, demand, owner, "start from jnp.zeros((k, d))")


def below(label: Any, classes: int | None) -> Any:
    """Which labels are integers from 0 to `classes` - 1; any size is legal if `classes` is None."""
    if label.dtype.kind not in "iu":
        return label < label  # False everywhere, also where it is NaN
    return (label >= 0) & (True if classes is None else label < classes)


def _are_labels(hparams: Any, params: Any, rounds: Any) -> Any:
    classes = _classes(params, rounds.context)
    return jax.tree.map(lambda label: below(label, classes), rounds.outcome)


def _classes(params: Any, context: Any) -> int | None:
    """The number of rows of `params`, if it has one more axis than the context of a round."""
    shape, rows = getattr(params, "shape", ()), getattr(context, "shape", ())
    return shape[0] if shape and len(shape) == len(rows) else None


def _has_rows(hparams: Any, params: Any, rounds: None) -> bool:
    return hasattr(params, "shape") and np.ndim(params) >= 2 and np.shape(params)[0] >= 2


REMEDY = "number the classes, as np.unique(labels, return_inverse=True)[1] does"
