"""What a learner or a loss needs of its data, said beside its rule and checked by every driver."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

PARTS = ("params", "context", "outcome", "weight")


class Need(NamedTuple):
    """One demand on the data of a game; a driver refuses what does not meet it.

    where: the part it is about, one of `PARTS`.
    legal_fn: from `(hparams, params, rounds)` to what is legal. For "params", where `rounds` is
        None, one boolean; else a boolean per entry of that part of `rounds`, in a tree like the
        part, or one boolean for the whole part. It takes NumPy arrays of a chunk of rounds and
        tracers alike, so it uses operators only. `hparams` may be those of a batch: legal is then
        what one of them takes.
    demand: what must hold, in words.
    owner: the learner or loss that demands it.
    remedy: what to do instead.

    A part that has a need is not checked for finite numbers beside it: a need that NaN meets says
    so by calling it legal.
    """

    where: str
    legal_fn: Callable[..., Any]
    demand: str
    owner: str
    remedy: str = ""


class _Within(NamedTuple):
    """The legal function of a learner that is a field of the hparams of another."""

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
    """The needs of `inner` about `parts`, as needs of what wraps it.

    field: of the hparams of the wrapper, which holds `inner`; None if `inner` is the hparams.
    index: of `inner` in that field, where it is a tuple.
    stacked: whether `inner` is a batch, all of which must be able to start.
    """
    return tuple(
        need._replace(legal_fn=_Within(field, index, stacked, need.legal_fn))
        for need in inner.needs
        if need.where in parts
    )


def in_range(values: Any, low: Any, high: Any) -> Any:
    """Which values lie between `low` and `high`; True at once where all of an array do."""
    bounds = isinstance(low, np.generic | float) and isinstance(high, np.generic | float)
    host = isinstance(values, np.ndarray) and values.size > 0
    if bounds and host and low <= values.min() and values.max() <= high:  # NaN fails both
        return True
    return (values >= low) & (values <= high)
