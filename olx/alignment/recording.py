r"""A recording with its events as numbers: the features of where each event begins and how long.

Frame $t$ of a recording of $T$ frames and event $i$ of $K$ have features of four kinds. An event
begins at $y_i$ and lasts until the next one, $l_i = y_{i+1} - y_i$ with $y_{K+1} = T$.

- `start`: of event $i$ beginning at frame $t$, such as the change of the sound there;
- `inside`: of frame $t$ belonging to event $i$, added up over its frames;
- `length`: of event $i$ lasting $f_i + j$ frames, with the shortest length $f_i$ and $j < L$;
- tempo: $(r_i - r_{i-1})^2$ with $r_i = l_i / \mu_i$ for the usual length $\mu_i$ of the event.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 9.3.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, DTypeLike

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.core import Rounds

PADDING = -1
Values = np.ndarray | Array


class Recording(NamedTuple):
    """The context of `align`. In a stream all leaves have a leading axis of rounds."""

    start: Values  # [K, T, a]: the first axis may have length 1: the same for all events
    inside: Values  # [K, T, b]
    length: Values  # [K, L, c]
    usual: Values  # [K]: mu, positive
    steady: Values  # [K]: 1 if the tempo between event i - 1 and i counts, else 0
    shortest: Values  # [K]: f, whole numbers from 1 on
    frames: Values  # []: T without padding
    events: Values  # []: K without padding


class Weights(NamedTuple):
    """The decision: one number per feature."""

    start: Float[Array, " a"]
    inside: Float[Array, " b"]
    length: Float[Array, " c"]
    tempo: Float[Array, ""]


@public
def aligned_rounds(
    recordings: Sequence[Recording], starts: Sequence[ArrayLike], dtype: DTypeLike = np.float32
) -> Rounds:
    """One round per recording, padded to the longest one and to the most events.

    starts: per recording, the frame at which each event begins, rising from 0 on.
    """
    for name, given in (("recordings", recordings), ("starts", starts)):
        check.iterable(name, given)
    if len(recordings) != len(starts) or not recordings:
        raise RefusedValue(
            f"there are {len(recordings)} recordings and {len(starts)} lists of starts; "
            "give as many of both, and at least one."
        )
    truth = [np.asarray(one, np.int32) for one in starts]
    for at, (one, begins) in enumerate(zip(recordings, truth, strict=True)):
        _check(at, one, begins)
    events = max(len(begins) for begins in truth)
    frames = max(one.inside.shape[1] for one in recordings)
    pad = lambda one: _padded(one, events, frames, dtype)
    stacked = Recording(*(np.stack(parts) for parts in zip(*map(pad, recordings), strict=True)))
    outcome = np.full((len(truth), events), PADDING, np.int32)
    for at, begins in enumerate(truth):
        outcome[at, : len(begins)] = begins
    return Rounds(stacked, outcome)


def _padded(one: Recording, events: int, frames: int, dtype: DTypeLike) -> Recording:
    def to(array: ArrayLike, *sizes: int, value: float = 0.0) -> np.ndarray:
        array = np.asarray(array, dtype)
        more = [(0, size - have) for size, have in zip(sizes, array.shape, strict=False)]
        more += [(0, 0)] * (array.ndim - len(more))
        return np.pad(array, more, constant_values=value)

    rows = 1 if one.start.shape[0] == 1 else events
    return Recording(
        to(one.start, rows, frames),
        to(one.inside, events, frames),
        to(one.length, events),
        to(one.usual, events, value=1.0),
        to(one.steady, events),
        to(one.shortest, events, value=1.0),
        np.asarray(one.frames, dtype),
        np.asarray(one.events, dtype),
    )


def _check(at: int, one: Recording, begins: np.ndarray) -> None:
    events, frames = one.inside.shape[:2]
    if begins.shape != (events,) or events != int(one.events) or frames != int(one.frames):
        raise RefusedValue(
            f"recording {at} has {events} events and {frames} frames, and {begins.shape} "
            f"starts; its counts say {int(one.events)} and {int(one.frames)}. All must agree."
        )
    lengths = np.diff(np.append(begins, frames))
    least = np.asarray(one.shortest)
    most = least + one.length.shape[1] - 1
    wrong = np.flatnonzero((lengths < least) | (lengths > most))
    if len(wrong) or begins[0] < 0:
        i = int(wrong[0]) if len(wrong) else 0
        raise RefusedValue(
            f"event {i} of recording {at} begins at frame {begins[i]} and lasts "
            f"{lengths[i]} frames; the recording allows {least[i]:.0f} to {most[i]:.0f}. Allow "
            "more lengths, or leave the recording out."
        )
