"""The need for labels of -1 and +1, for losses of the margin and for classifiers."""

from typing import Any

import jax

from olx.needs import Need


def signs(owner: str) -> Need:
    """The need for labels of -1 and +1."""
    remedy = "map labels of 0 and 1 with 2 * y - 1"
    return Need("outcome", _are_signs, "labels must be -1 or +1", owner, remedy)


def _are_signs(hparams: Any, params: Any, rounds: Any) -> Any:
    return jax.tree.map(_is_sign, rounds.outcome)


def _is_sign(label: Any) -> Any:
    return label != label if label.dtype == bool else (label == 1) | (label == -1)
