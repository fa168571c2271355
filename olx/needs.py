"""Demands of learners and losses on their data; every driver checks them."""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

PARTS = ("params", "context", "outcome", "weight")


class Need(NamedTuple):
    """One demand on the data of a game; a driver refuses data that does not meet it.

    where: the part of the data that it is about, one of `PARTS`.
    legal_fn: `(hparams, params, rounds)` -> whether the data is legal. For "params", `rounds` is
        None and the result is one boolean. Else it is one boolean per entry of that part of
        `rounds`, in a tree like the part, or one boolean for the whole part. The function uses
        operators only, because it gets NumPy arrays of a chunk as well as tracers. If `hparams`
        are those of a batch, an entry is legal if it is legal for one of the learners.
    demand: what must hold, in words.
    owner: the learner or loss that demands it.
    remedy: what to do instead.
    unknown: what must hold of a round with NaN there, in words, if NaN is legal as long as the
        round does not need that number. A round that does has a loss that is not finite.

    Drivers check for finite numbers only where there is no need; a need decides about NaN itself.
    """

    where: str
    legal_fn: Callable[..., Any]
    demand: str
    owner: str
    remedy: str = ""
    unknown: str = ""


def in_range(values: Any, low: Any, high: Any) -> Any:
    """Which values lie between `low` and `high`; just True if all values of an array do."""
    bounds = isinstance(low, np.generic | float) and isinstance(high, np.generic | float)
    host = isinstance(values, np.ndarray) and values.size > 0
    if bounds and host and low <= values.min() and values.max() <= high:  # NaN fails both
        return True
    return (values >= low) & (values <= high)
