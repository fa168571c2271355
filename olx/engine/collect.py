"""What comes out of the chunks, gathered on the host and thinned as it comes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Curve
from olx.engine.feed import Chunk
from olx.keep import Keep, rounds_kept

_MANY = 64  # stretches; fewer are added up faster one by one


class Segment(NamedTuple):
    """What a stretch of rounds leaves behind; time is the first axis of everything."""

    losses: np.ndarray | None  # of every round, where nothing is thinned
    at: np.ndarray  # rounds kept, where something is
    totals: PyTree  # cumulative loss after each of them, and the sums of what was measured
    trace: PyTree  # what `record` kept of them


class Collector:
    """Gathers segments. Totals are summed in float64, whatever the run computes in."""

    def __init__(self, keep: Keep | None):
        self.keep = keep
        self.segments: list[Segment] = []
        self.played = 0
        self.total: PyTree = None  # the last of `totals`
        self.structure: PyTree = None  # of the output for a chunk; only a restart must know

    @np.errstate(over="ignore", invalid="ignore")  # a configuration may diverge
    def add(self, chunk: Chunk, out: tuple[PyTree, PyTree]) -> None:
        """Take the output of the program for a chunk; waits for it."""
        paid = jax.tree.map(lambda leaf: _first(leaf, chunk.count), out[0])
        if self.total is None:
            self.total = jax.tree.map(lambda rows: np.zeros(rows.shape[1:]), paid)
        stop = chunk.start + chunk.count
        if self.keep is None:
            trace = jax.tree.map(lambda leaf: _first(leaf, chunk.count), out[1])
            self.segments.append(Segment(paid[0], np.zeros(0, int), None, trace))
            add = lambda before, rows: before + rows.sum(0, dtype=np.float64)
            self.total = jax.tree.map(add, self.total, paid)
        else:
            kept = np.union1d(rounds_kept(self.keep, chunk.start, stop), [stop])
            ends = kept - chunk.start
            add = lambda before, rows: before + np.cumsum(_parts(rows, ends), axis=0)
            totals = jax.tree.map(add, self.total, paid)
            self.segments.append(Segment(None, kept, totals, _rows(out[1], ends - 1)))
            self.total = jax.tree.map(lambda rows: rows[-1], totals)
        self.played = stop

    def restore(self, segments: list[Segment], played: int, total: PyTree) -> None:
        """Go on from what an earlier run had gathered."""
        self.segments, self.played, self.total = segments, played, total

    def empty(self) -> Segment:
        """A segment of no rounds: the structure and the dtypes of one."""
        plain = jax.eval_shape(lambda out: jax.tree.map(data_of, out), self.structure)
        paid, trace = jax.tree.map(lambda leaf: np.zeros((0, *leaf.shape[1:]), leaf.dtype), plain)
        if self.keep is None:
            return Segment(paid[0], np.zeros(0, int), None, trace)
        totals = jax.tree.map(lambda rows: rows.astype(float), paid)
        return Segment(None, np.zeros(0, int), totals, trace)

    def joined(self, segments: list[Segment]) -> Segment:
        """One segment out of several that follow each other."""
        return jax.tree.map(lambda *parts: np.concatenate(parts), *segments)

    def result(self) -> tuple[Any, PyTree, Curve | None]:
        """Losses, trace and curve of all that was gathered; configurations before time."""
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


def _parts(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The sums of the stretches of rows that end where `ends` says."""
    starts = np.r_[0, ends[:-1]]
    if len(ends) > _MANY:
        return np.add.reduceat(rows.astype(np.float64), starts, axis=0)
    exact = np.int32 if rows.dtype == bool else np.float64
    return np.stack([rows[a:b].sum(0, dtype=exact) for a, b in zip(starts, ends, strict=True)])


def is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def data_of(leaf: Any) -> Any:
    """A leaf as numbers: the key of a random generator as its data."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def _first(leaf: Any, count: int) -> np.ndarray:
    rows = np.asarray(data_of(leaf))[:count]
    return rows if 2 * count > len(leaf) else rows.copy()  # not to hold a large buffer for a few


def _rows(tree: PyTree, rows: Any) -> PyTree:
    return jax.tree.map(lambda leaf: np.asarray(data_of(leaf))[rows], tree)
