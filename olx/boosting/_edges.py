"""Checks of the numbers that boosters share."""

from typing import Any

from olx import _check as check
from olx.core import Scalar


def promised_edge(owner: str, name: str, gamma: Any) -> Scalar:
    """An edge in (0, 1/2): weighted errors of at most 1/2 - gamma, which are above 0."""
    try:
        rest = check.positive(owner, name, 0.5 - check.positive(owner, name, gamma))
        return gamma + 0 * rest  # NaN if it is traced and not legal
    except ValueError:
        raise ValueError(
            f"{owner}: `{name}` must lie in (0, 0.5), got {gamma}: it is the edge 1/2 - error that "
            "every hypothesis has; `olx.boosting.adaboost` needs no such number."
        ) from None


def largest(owner: str, cap: Any) -> Scalar | None:
    """The largest coefficient, positive; None if there is none."""
    return None if cap is None else check.positive(owner, "cap", cap)
