"""The chunks of a stream: pieces of any size, cut into arrays of one shape.

A chunk is large enough to hide the cost of a call, and small enough for the cache. In a sweep
it also reads and writes the states of all configurations, and its output grows with their number.
Its numbers are checked before it is played, or afterwards where a bad number must show in its
output (`olx.engine.finite`). Arrays that a device can read are played where they lie
(`olx.engine.view`); others pass through two aligned buffers. Digests of the rounds that were played
tell whether a stream has changed since a checkpoint.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx import _memory as memory
from olx._refusal import RefusedType, RefusedValue
from olx.core import Rounds
from olx.engine import device, round, tuning
from olx.engine.game import Game
from olx.engine.memory_map import Readahead, map_of
from olx.engine.numbers import refuse_tracers
from olx.engine.sparse_chunks import SparseChunks
from olx.engine.view import can_view, is_cast, keep_wide, view_of, view_of_buffer
from olx.record import actions
from olx.streams.checks import check_iterable, check_piece, judge, refuse_unknown
from olx.streams.sparse_rows import SparseRows


class Checks(NamedTuple):
    """What is checked of the rounds of a run, and when."""

    needs: list  # the result of `needs_of`
    params: PyTree
    shown: frozenset[int] = frozenset()  # the leaves of the rounds that are looked at afterwards
    decision: np.dtype | None = None  # the dtype of the decision; that of `params` if None

    @property
    def late(self) -> bool:
        """Whether something can be refused only after the rounds are played."""
        return bool(self.shown) or any(need.unknown for need, _ in self.needs)

    def before(self, part: Rounds, start: int) -> None:
        """Refuse what need not show in the output of these rounds."""
        try:
            judge(*self[:2], part, start, self.shown, self.decision)
        except ValueError:
            self.all(part, start)  # of several bad numbers, it names the first
            raise

    def all(self, part: Rounds, start: int) -> None:
        """Refuse any bad number. `start` is the number of the first round."""
        judge(*self[:2], part, start)


class Look(NamedTuple):
    """A look at the rounds of a chunk, if its output asks for one."""

    checks: Checks
    part: Rounds
    start: int

    def after(self, alarm: object, losses: list[np.ndarray]) -> None:
        """Refuse bad numbers. A bad number shows in all configurations, divergence in some.

        losses: [rounds, ...] of each share of the configurations; none if all have diverged.
        """
        if self.checks.shown and np.all(np.asarray(alarm)):
            self.checks.all(self.part, self.start)
        refuse_unknown(self.checks.needs, self.part, losses, self.start)


class Fingerprint:
    """A running digest of the rounds of a stream; it does not depend on how the stream is cut."""

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def add(self, part: Rounds) -> bytes:
        """The digest of all rounds so far, these included."""
        arrays = [array for leaf in jax.tree.leaves(part) for array in _arrays(leaf)]
        self._parts = self._parts or [hashlib.sha256() for _ in arrays]
        for digest, array in zip(self._parts, arrays, strict=True):
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return hashlib.sha256(b"".join(part.digest() for part in self._parts)).digest()


class History:
    """Compares a stream, from its beginning on, with the digests of an earlier run."""

    def __init__(self, known: dict[int, bytes], changed: Callable[[int, int], Exception]):
        """known: the digest per number of rounds. changed: makes the error if one differs."""
        self.rounds = max(known, default=0)
        self._known, self._changed, self._fingerprint = known, changed, Fingerprint()

    def skip(self, piece: Rounds, start: int, stop: int) -> None:
        """Check the rounds of a piece that were played before; the piece begins at `start`."""
        ends = [at for at in sorted(self._known) if start < at <= stop]
        marks = sorted({*range(start, stop, tuning.DIGEST_ROUNDS), *ends, stop})
        good = max((at for at in self._known if at <= start), default=0)
        for low, high in itertools.pairwise(marks):
            rows = slice(low - start, high - start)
            seen = self._fingerprint.add(jax.tree.map(lambda leaf, rows=rows: leaf[rows], piece))
            if high in self._known:
                if seen != self._known[high]:
                    raise self._changed(good, high)
                good = high

    def add(self, part: Rounds) -> bytes:
        return self._fingerprint.add(part)


def _arrays(leaf: np.ndarray | SparseRows) -> list[np.ndarray]:
    if isinstance(leaf, SparseRows):
        return [np.diff(leaf.pointers), leaf.indices, leaf.values]
    return [leaf]


class Chunk(NamedTuple):
    rounds: Rounds  # arrays and views of one length, the capacity
    span: np.ndarray  # the first row to play, and one past the last
    start: int  # number of the first round, from 0
    digest: bytes = b""  # of all rounds up to its last, if the stream has a history
    look: Look | None = None  # what is left to check after it is played

    @property
    def count(self) -> int:
        """The number of rounds to play."""
        return int(self.span[1] - self.span[0])


class Plan(NamedTuple):
    """How a stream is cut into chunks."""

    first: Rounds  # the first piece; all others have its structure, shapes and dtypes
    dtypes: list  # of the leaves of a chunk
    capacity: int  # rounds per chunk
    owned: bool  # whether pieces do not change while they are played; else they are copied


def plan_of(
    first: Rounds,
    params: PyTree,
    configurations: int,
    whole: bool,
    light: bool = False,
) -> Plan:
    """The plan for a stream with the first piece `first`, and a learner that starts from `params`.

    whole: whether `first` is the whole stream. The pieces of an iterable may be overwritten as soon
        as the next piece is read.
    light: whether at most one number is recorded per round and configuration.
    """
    rest = [leaf.dtype for leaf in jax.tree.leaves(first._replace(context=None))]
    dtypes = round.context_dtypes(first.context, params, 1) + rest
    leaves = jax.tree.leaves(first)
    length, sizes = len_of(first), list(map(_bytes, leaves, dtypes))
    stay = map(_stays, leaves, dtypes) if whole else [False] * len(leaves)
    copied = sum(size for size, stays in zip(sizes, stay, strict=True) if not stays)
    ready = copied * tuning.CHUNK_TIMES_READY <= sum(sizes)
    row = max(sum(sizes) // length, 1)
    size = rounds_per_chunk(length, row, configurations, whole, ready, light)
    return Plan(first, dtypes, size, whole)


class Stream:
    """The rounds of a game as chunks: first the plan, then the chunks."""

    def __init__(self, game: Game):
        self.whole = isinstance(game.rounds, Rounds)
        given = jax.tree.leaves(game.rounds) if self.whole else []
        refuse_tracers([*jax.tree.leaves(game.state), *given])
        self._pieces = pieces_of(game.rounds)
        self.first = next(self._pieces)
        light = game.batched and game.recorder.record in (None, actions)
        count = game.configurations or 1
        self.plan = plan_of(self.first, game.params, count, self.whole, light)

    @property
    def length(self) -> int | None:
        """The number of rounds; None if it is not known."""
        return len_of(self.first) if self.whole else None

    def one_round(self, checks: Checks) -> tuple[Rounds, np.ndarray]:
        """A chunk of the first round alone, and its span."""
        plan = self.plan._replace(capacity=1, owned=False)
        chunk = next(chunks_of(iter([take(self.first, 0, 1)]), plan, checks))
        return chunk.rounds, chunk.span

    def chunks(self, checks: Checks, history: History | None) -> Iterator[Chunk]:
        """All chunks; those that `history` says were played are skipped."""
        pieces = itertools.chain([self.first], self._pieces)
        return chunks_of(pieces, self.plan, checks, history)


def len_of(rounds: Rounds) -> int:
    return jax.tree.leaves(rounds)[0].shape[0]


def take(rounds: PyTree, start: int, stop: int) -> Any:
    every = lambda leaf: start == 0 and stop >= leaf.shape[0]  # a device would copy them
    return jax.tree.map(lambda leaf: leaf if every(leaf) else leaf[start:stop], rounds)


def pieces_of(stream: Rounds | Iterable[Rounds]) -> Iterator[Rounds]:
    """The pieces of a stream as they come, as arrays; refuses an empty stream."""
    check_iterable(stream)
    empty = True
    for piece in [stream] if isinstance(stream, Rounds) else stream:
        check_piece(piece)
        empty = False
        yield jax.tree.map(_host, piece)
    if empty:
        raise RefusedValue("the stream is empty.")


def chunks_of(
    pieces: Iterator[Rounds],
    plan: Plan,
    checks: Checks,
    history: History | None = None,
) -> Iterator[Chunk]:
    """Cut pieces into chunks of one shape; skip the rounds that `history` says were played.

    Every chunk is checked before it is yielded, but for what `checks` leaves for later; shapes and
    dtypes must be those of the first piece. The memory of a chunk may be reused for the next chunk
    but one.
    """
    skip = 0 if history is None else history.rounds
    start, capacity = 0, plan.capacity
    stage = Buffers(capacity, plan.dtypes, plan.owned)
    for piece in pieces:
        length = len_of(piece)
        if piece is not plan.first:
            _check_like(piece, plan.first, start)
        begin = min(max(0, skip - start), length)
        if history is not None:
            history.skip(piece, start, start + begin)
        with Readahead(piece) as window:
            for low, high in stage.windows(piece, begin):
                window.move(low - capacity, low, high)  # one chunk is being played
                staged, real = stage.put(piece, low, high)
                span = np.array([0, high - low], np.int32)
                checks.before(real, start + low)
                look = Look(checks, real, start + low) if checks.late else None
                if isinstance(piece.context, SparseRows):
                    staged = staged._replace(context=stage.sparse.chunk(low, high))
                digest = b"" if history is None else history.add(take(piece, low, high))
                yield Chunk(staged, span, start + low, digest, look)
        start += length
    if start < skip:
        raise RefusedValue(
            f"the stream ends after {start} rounds, the checkpoint after {skip}; give "
            "another directory."
        )


def _host(leaf: Any) -> np.ndarray | SparseRows:
    """The array on the host, without a copy if possible; one of an accelerator stays there."""
    here = isinstance(leaf, np.ndarray | SparseRows) or device.stays_on_device(leaf)
    return leaf if here else np.asarray(leaf)


def _bytes(leaf: np.ndarray | SparseRows, dtype: np.dtype) -> int:
    if isinstance(leaf, SparseRows):
        return leaf.values.size * dtype.itemsize * 2
    return leaf.size * dtype.itemsize


def _stays(leaf: Any, dtype: np.dtype) -> bool:
    """Whether an array is played where it lies. Rows of a file come and go with their chunk."""
    if not isinstance(leaf, np.ndarray):
        return not isinstance(leaf, SparseRows) or leaf.dtype == dtype
    return leaf.dtype == dtype and leaf.flags.c_contiguous and map_of(leaf) is None


def _check_like(piece: Rounds, first: Rounds, start: int) -> None:
    if jax.tree.structure(piece) != jax.tree.structure(first):
        raise RefusedType(
            f"the chunk at round {start} has structure {check.outline(piece)}, the first "
            f"has {check.outline(first)}; give chunks of one structure."
        )
    for (path, leaf), like in zip(
        jax.tree_util.tree_leaves_with_path(piece), jax.tree.leaves(first), strict=True
    ):
        seen, wanted = (leaf.shape[1:], leaf.dtype), (like.shape[1:], like.dtype)
        if seen != wanted:
            raise RefusedType(
                f"rounds{jax.tree_util.keystr(path)} of the chunk at round {start} holds "
                f"{seen[1]}{list(seen[0])} per round, the first chunk {wanted[1]}{list(wanted[0])}."
            )


_OUTPUT = 8  # bytes per round and configuration: the loss, and a number that is recorded


def rounds_per_chunk(
    length: int, row: int, configurations: int, whole: bool, ready: bool, light: bool
) -> int:
    """The number of rounds per chunk: a power of two, or on an accelerator a stream that fits.

    A long stream has at least one full chunk: only those are played where they are.

    length: the number of rounds of the first piece; later pieces may be longer.
    row: bytes per round.
    light: whether at most one number is recorded per round and configuration. More may be as large
        as a row.
    """
    most = tuning.CHUNK_BYTES * (tuning.CHUNK_TIMES_READY if ready else 1) // row
    best = max(4, most // max(1, configurations // tuning.CHUNK_CONFIGURATIONS))
    if light:
        least = min(tuning.CHUNK_ROUNDS_ENOUGH, tuning.CHUNK_LOSSES_MOST // configurations)
        best = max(best, min(most, max(tuning.CHUNK_LOSSES // configurations, least)))
    best = min(tuning.CHUNK_ROUNDS, best)
    if device.accelerated():
        output = _OUTPUT if light else _OUTPUT + row
        best = max(device.bytes_per_chunk() // (row + output * configurations), 4)
        if whole and length <= best:
            return length
        best = 1 << (best.bit_length() - 1)
    if not whole:
        length = max(length, min(tuning.CHUNK_ROUNDS_UNKNOWN, best))
    rounds = min(best, length)
    large = rounds * row > tuning.CHUNK_BYTES
    return 1 << (rounds.bit_length() - 1 if large else (rounds - 1).bit_length())


class Buffers:
    """Two buffers, used in turn, from which a device can read a chunk without another copy.

    An array that does not change is read where it lies, if it can be.
    """

    def __init__(self, capacity: int, dtypes: list, owned: bool):
        """owned: whether the arrays do not change until they are played; else they are copied."""
        self._capacity, self._dtypes, self._owned, self._turn = capacity, dtypes, owned, 0
        self._places: dict[tuple[int, int], np.ndarray] = {}
        self.sparse = SparseChunks(capacity, dtypes[0], owned)

    def windows(self, piece: Rounds, low: int) -> Iterable[tuple[int, int]]:
        """The first row of each chunk of a piece from row `low` on, and one past its last."""
        if isinstance(piece.context, SparseRows):
            return self.sparse.windows(piece.context, low)
        length, size = len_of(piece), self._capacity
        return ((start, min(start + size, length)) for start in range(low, length, size))

    def put(self, piece: Rounds, low: int, high: int) -> tuple[Rounds, Rounds]:
        """The rows of a piece from `low` up to `high`: for a device, and as arrays."""
        self._turn ^= 1
        leaves, structure = jax.tree.flatten(piece)
        pairs = [self._put(*one, low, high) for one in enumerate(leaves)]
        there, here = (jax.tree.unflatten(structure, part) for part in zip(*pairs, strict=True))
        return there if device.accelerated() else keep_wide(there), here

    def _put(self, number: int, leaf: Any, low: int, high: int) -> tuple[Any, Any]:
        count, dtype, rows = high - low, self._dtypes[number], take(leaf, low, high)
        if isinstance(leaf, SparseRows):
            return rows, rows
        if device.stays_on_device(leaf):
            return device.padded_leaf(rows, self._capacity, dtype), rows
        if self._owned and leaf.dtype == dtype:
            if can_view(leaf, self._capacity):
                return view_of(leaf, low, self._capacity), rows
            if count == self._capacity and (device.accelerated() or memory.is_aligned(rows)):
                return self._form(rows), rows
        key = number, self._turn
        if key not in self._places:
            self._places[key] = memory.aligned_empty((self._capacity, *leaf.shape[1:]), dtype)
        buffer = self._places[key]  # to fill new memory would take longer than a short run
        fill(buffer, rows)
        return self._form(buffer), buffer[:count]

    def _form(self, rows: np.ndarray) -> Any:
        """An aligned array for a device."""
        return view_of_buffer(rows) if is_cast(rows.dtype) and not device.accelerated() else rows


def fill(buffer: np.ndarray, rows: Any) -> None:
    """Write rows to the beginning of a buffer."""
    count = len(rows)
    buffer[:count] = rows
    buffer[count : count + tuning.BLOCK_ROUNDS] = 0  # what the last block may read
