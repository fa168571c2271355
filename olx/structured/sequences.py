r"""Sequences of unequal length, padded to one length, and what a chain demands of them.

Row $i$ of `x` holds the features of position $i$. Positions from `length` on are padding: nothing
reads them. Labels at padding are -1, and so is the decoded output there.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Rounds
from olx.needs import Need

PADDING = -1


class Sequences(NamedTuple):
    """The context of a chain. In a stream both leaves have a leading axis of rounds."""

    x: Any  # [m, features], or [m, templates] integers for `indexed_chain`
    length: Any  # an integer between 1 and m


@public
def padded_rounds(
    x: Sequence[ArrayLike],
    y: Sequence[ArrayLike],
    length: int | None = None,
    weight: Array | None = None,
) -> Rounds:
    """One round per sequence, padded to the longest of them.

    x: per sequence, an array with one row of features per position.
    y: per sequence, one label per position, an integer from 0 on.
    length: pad to this length; None for the longest sequence.

    >>> rounds = padded_rounds([np.ones((2, 1)), np.ones((1, 1))], [[1, 0], [1]])
    >>> rounds.outcome.tolist(), rounds.context.length.tolist()
    ([[1, 0], [1, -1]], [2, 1])
    """
    for name, given in (("x", x), ("y", y)):
        check.iterable(name, given)
    if weight is not None:
        check.non_negative("weight", weight, each=True)
    if weight is not None and np.shape(weight) != (len(x),):
        raise RefusedType(
            f"`weight` has shape {np.shape(weight)} for {len(x)} sequences; give "
            "one number per sequence."
        )
    if len(x) != len(y) or not len(x):
        raise RefusedValue(
            f"`x` has {len(x)} sequences, `y` has {len(y)}; give as many of both, and at least one."
        )
    rows, labels = [np.asarray(one) for one in x], [np.asarray(one) for one in y]
    for at, (row, label) in enumerate(zip(rows, labels, strict=True)):
        if row.ndim != 2 or label.ndim != 1 or len(row) != len(label):
            raise RefusedValue(
                f"sequence {at} has features of shape {row.shape} and labels of "
                f"shape {label.shape}; give one row of features and one label per position."
            )
        if not len(label):
            raise RefusedValue(f"sequence {at} has length 0; leave it out.")
        if label.dtype.kind not in "iu":
            raise RefusedType(f"labels of sequence {at} are {label.dtype}; give integers from 0.")
        if row.shape[1] != rows[0].shape[1]:
            raise RefusedValue(
                f"sequence {at} has {row.shape[1]} features, sequence 0 has "
                f"{rows[0].shape[1]}; all must have as many."
            )
    lengths = np.array([len(label) for label in labels], np.int32)
    most = int(lengths.max()) if length is None else length
    if lengths.max() > most:
        at = int(np.argmax(lengths))
        raise RefusedValue(
            f"`length` is {most}, sequence {at} has {lengths[at]} positions; pad to "
            f"at least {lengths[at]}."
        )
    context = np.zeros((len(rows), most, rows[0].shape[1]), rows[0].dtype)
    outcome = np.full((len(rows), most), PADDING, np.int32)
    for at, (row, label) in enumerate(zip(rows, labels, strict=True)):
        context[at, : len(row)], outcome[at, : len(row)] = row, label
    return Rounds(Sequences(context, lengths), outcome, weight)


def chain_needs(owner: str, classes: int, low: int | None, high: int | None) -> tuple[Need, ...]:
    """The needs of a chain; `low` and `high` are the range of its indices, None for features."""
    inside = "features must be finite" if low is None else f"indices must lie in {low}..{high}"
    return (
        Need(
            "context",
            _Lengths(low, high),
            f"the length of a sequence must lie in 1..m, and {inside}",
            owner,
            "leave out empty sequences and pad the others with `padded_rounds`",
        ),
        Need(
            "outcome",
            _Labels(classes),
            f"labels must be integers in 0..{classes - 1}",
            owner,
            "number the labels from 0, or give the chain more classes",
        ),
    )


class _Lengths(NamedTuple):
    low: int | None
    high: int | None

    def __call__(self, hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
        given = rounds.context
        if not isinstance(given, Sequences):
            raise TypeError(
                f"rounds.context is a {type(given).__name__}; a chain needs `Sequences`, which "
                "`olx.structured.padded_rounds` makes."
            )
        x, length = given
        finite = self.low is None or self.high is None
        legal = (x - x == 0) if finite else (x >= self.low) & (x <= self.high)
        return Sequences(legal, (length >= 1) & (length <= x.shape[1]))


class _Labels(NamedTuple):
    classes: int

    def __call__(self, hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
        y, length = rounds.outcome, rounds.context.length
        if getattr(y, "ndim", 0) != 2 or y.dtype.kind not in "iu":
            kind = f"{y.dtype}{list(y.shape)}" if hasattr(y, "dtype") else type(y).__name__
            raise TypeError(
                f"rounds.outcome is {kind}; a chain needs integer labels, one row per sequence."
            )
        padding = np.arange(y.shape[1], dtype=length.dtype)[None, :] >= length[:, None]
        return padding | ((y >= 0) & (y < self.classes))
