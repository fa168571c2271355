"""Demands of learners and losses on their data; every driver checks them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
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


class _Within(NamedTuple):
    """The `legal_fn` of a wrapped learner, as a function of the hparams of the wrapper."""

    field: str | None
    index: int | None
    stacked: bool
    legal_fn: Callable[..., Any]

    def __call__(self, hparams: Any, params: Any, rounds: Any) -> Any:
        inner = hparams if self.field is None else getattr(hparams, self.field)
        inner = inner if self.index is None else inner[self.index]
        if not self.stacked or rounds is not None:
            return self.legal_fn(inner.hparams, params, rounds)
        each = jax.vmap(lambda hp: jnp.asarray(self.legal_fn(hp, params, None)))
        return jnp.all(each(inner.hparams))


def within(
    inner: Any,
    field: str | None,
    *parts: str,
    index: int | None = None,
    stacked: bool = False,
) -> tuple[Need, ...]:
    """The needs of `inner` about `parts`, as needs of the learner that wraps it.

    field: the field of the wrapper's hparams that holds `inner`; None if `inner` is the hparams.
    index: the index of `inner` if that field is a tuple.
    stacked: whether `inner` is a batch; each of its learners must be able to start.
    """
    return tuple(
        need._replace(legal_fn=_Within(field, index, stacked, need.legal_fn))
        for need in inner.needs
        if need.where in parts
    )


def in_range(values: Any, low: Any, high: Any) -> Any:
    """Which values lie between `low` and `high`; just True if all values of an array do."""
    bounds = isinstance(low, np.generic | float) and isinstance(high, np.generic | float)
    host = isinstance(values, np.ndarray) and values.size > 0
    if bounds and host and low <= values.min() and values.max() <= high:  # NaN fails both
        return True
    return (values >= low) & (values <= high)
