"""The outputs of the chunks, collected on the host; only the rounds to keep are stored."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from olx.core import Curve
from olx.engine import tuning
from olx.engine.chunks import Chunk
from olx.engine.device import accelerated, data_of
from olx.engine.round import Output
from olx.keep import Keep, rounds_kept


class Segment(NamedTuple):
    """The outputs of consecutive rounds; the first axis of every array is time."""

    losses: np.ndarray | None  # of every round; None if only some rounds are kept
    at: np.ndarray  # the numbers of the kept rounds; empty if all are kept
    totals: PyTree  # the cumulative loss and the sums of `measure` after each kept round
    trace: PyTree  # what `record` gave for each kept round


class Collector:
    """Collects segments. Totals are summed in float64, in any dtype of the run."""

    def __init__(self, keep: Keep | None):
        self.keep = keep
        self.segments: list[Segment] = []
        self.saved = 0  # segments that a checkpoint holds; these do not change any more
        self.played = 0
        self.total: PyTree = None  # the last of `totals`
        self._extra = False  # whether the last kept round is so only because its chunk ends there
        self.structure: PyTree = None  # of the output for a chunk; used only to resume

    @np.errstate(over="ignore", invalid="ignore")  # a configuration may diverge
    def add(self, chunk: Chunk, outs: list[Output]) -> None:
        """Add the output of the program for a chunk; waits until it is computed.

        outs: one output for all configurations, or one for each share of them.
        """
        paid, trace = [out.sums for out in outs], [out.records for out in outs]
        played = lambda leaf: _played(leaf, *chunk.span)
        stop = chunk.start + chunk.count
        if self.keep is None:
            paid, trace = _beside(played, paid), _beside(played, trace)
            self.segments.append(Segment(paid[0], np.zeros(0, int), None, trace))
            sums = jax.tree.map(lambda rows: rows.sum(0, dtype=np.float64), paid)
            self.total = sums if self.total is None else jax.tree.map(np.add, self.total, sums)
        else:
            self._drop_end()
            asked = rounds_kept(self.keep, chunk.start, stop)
            kept = np.union1d(asked, [stop])
            self._extra = stop not in asked
            ends = kept - chunk.start
            sums = _beside(lambda leaf: np.cumsum(_parts(played(leaf), ends), axis=0), paid)
            if self.total is None:
                self.total = jax.tree.map(lambda rows: np.zeros(rows.shape[1:]), sums)
            totals = jax.tree.map(np.add, self.total, sums)
            rows = chunk.span[0] + ends - 1
            trace = _beside(lambda leaf: np.asarray(data_of(leaf))[rows], trace)
            self.segments.append(Segment(None, kept, totals, trace))
            self.total = jax.tree.map(lambda rows: rows[-1], totals)
        self.played = stop

    def _drop_end(self) -> None:
        """Forget the last round of the chunk before, unless it is asked for or saved.

        Else memory would grow with the number of chunks, by a number per configuration for each.
        """
        if self._extra and len(self.segments) > self.saved:
            segment = self.segments.pop()
            if len(segment.at) > 1:
                self.segments.append(_rows(segment, slice(-1)))

    def restore(self, segments: list[Segment], played: int, total: PyTree) -> None:
        """Continue from the segments that an earlier run saved."""
        self.segments, self.saved = segments, len(segments)
        self.played, self.total = played, total

    def empty(self) -> Segment:
        """A segment without rounds, for its structure and dtypes."""
        plain = jax.eval_shape(lambda out: jax.tree.map(data_of, out), self.structure)
        paid, trace = jax.tree.map(lambda leaf: np.zeros((0, *leaf.shape[1:]), leaf.dtype), plain)
        if self.keep is None:
            return Segment(paid[0], np.zeros(0, int), None, trace)
        totals = jax.tree.map(lambda rows: rows.astype(float), paid)
        return Segment(None, np.zeros(0, int), totals, trace)

    def joined(self, segments: list[Segment]) -> Segment:
        """Several consecutive segments as one."""
        if len(segments) == 1:
            return segments[0]
        return jax.tree.map(lambda *parts: np.concatenate(parts), *segments)

    def result(self) -> tuple[Any, PyTree, Curve | None]:
        """Losses, trace and curve of all rounds; the axis of configurations is before time."""
        segment = self.joined(self.segments)
        if self.keep is not None:
            at = segment.at
            asked = np.isin(at, rounds_kept(self.keep, 0, self.played)) | (at == self.played)
            segment = _rows(segment._replace(losses=None), np.flatnonzero(asked))
        found = segment.losses, segment.trace, segment.totals
        if self.total is not None and self.total[0].ndim:
            found = jax.tree.map(lambda leaf: np.moveaxis(leaf, 0, 1), found)
        losses, trace, totals = found
        return losses, trace, None if self.keep is None else Curve(segment.at, *totals)


def rounds_of(trees: PyTree, count: int, stacked: bool) -> PyTree:
    """The first `count` rounds of arrays of a chunk; the axis of configurations is before time."""
    one = lambda leaf: _played(leaf, 0, count)
    if stacked:
        one = lambda leaf: np.moveaxis(_played(leaf, 0, count), 0, 1)
    return one(trees) if isinstance(trees, np.ndarray) else jax.tree.map(one, trees)


def _beside(function: Callable[[Any], np.ndarray], trees: list[PyTree]) -> PyTree:
    """`function` of every leaf of every share; the shares beside each other, on the second axis."""
    both = lambda rows: rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
    return jax.tree.map(lambda *leaves: both([function(leaf) for leaf in leaves]), *trees)


def _parts(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The sums of the parts of `rows` that `ends` separates."""
    starts = np.r_[0, ends[:-1]]
    if len(ends) > tuning.SUM_PARTS:
        return np.add.reduceat(rows.astype(np.float64), starts, axis=0)
    return np.stack([_sum(rows[a:b]) for a, b in zip(starts, ends, strict=True)])


def _sum(rows: np.ndarray) -> np.ndarray:
    """The sum of some rounds."""
    if rows.dtype != bool:
        return rows.sum(0, dtype=np.float64)
    if rows[:1].size < tuning.SUM_BYTES:
        return rows.sum(0, dtype=np.int32)
    found, bits = np.zeros(rows.shape[1:], np.int32), rows.view(np.uint8)
    for start in range(0, len(bits), 255):  # sums that fit into a byte are five times as fast
        found += np.add.reduce(bits[start : start + 255], 0, dtype=np.uint8)
    return found


def fetch(outs: list[Output]) -> list[Output]:
    """The outputs of a chunk; those of an accelerator come to the host here, and only here."""
    return jax.device_get(jax.tree.map(data_of, outs)) if accelerated() else outs


def _played(leaf: Any, start: int, stop: int) -> np.ndarray:
    rows = np.asarray(data_of(leaf))[start:stop]
    return rows if 2 * len(rows) > len(leaf) else rows.copy()  # frees a large, mostly unused buffer


def _rows(tree: PyTree, rows: Any) -> PyTree:
    return jax.tree.map(lambda leaf: np.asarray(data_of(leaf))[rows], tree)
