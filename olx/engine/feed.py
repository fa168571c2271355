"""Cut a stream of any size into chunks of one shape: arrays, memory maps, iterables of `Rounds`."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx.core import Rounds
from olx.engine import contexts, place
from olx.engine.capacity import rounds_per_chunk
from olx.engine.checks import Checks, Look
from olx.engine.history import History
from olx.engine.mapped import Window
from olx.engine.rows import Room, blocks
from olx.engine.stage import Stage
from olx.streams.judge import check_iterable, check_piece
from olx.streams.sparse_rows import SparseRows


class Chunk(NamedTuple):
    rounds: Rounds  # NumPy arrays of one length, the capacity
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


def plan(
    first: Rounds,
    params: PyTree,
    configurations: int,
    whole: bool,
    ready: bool = False,
    light: bool = False,
) -> Plan:
    """The plan for a stream with the first piece `first`, and a learner that starts from `params`.

    whole: whether `first` is the whole stream. The pieces of an iterable may be overwritten as soon
        as the next piece is read.
    ready: whether the arrays are those of the device, as sparse rows almost are. Others are copied
        to a buffer, which should stay in the cache.
    light: whether at most one number is recorded per round and configuration.
    """
    rest = [leaf.dtype for leaf in jax.tree.leaves(first._replace(context=None))]
    dtypes = contexts.dtypes(first.context, params, 1) + rest
    ready = ready or (whole and isinstance(first.context, SparseRows))
    length = len_of(first)
    row = max(sum(map(_bytes, jax.tree.leaves(first), dtypes)) // length, 1)
    size = rounds_per_chunk(length, row, configurations, whole, ready, light)
    return Plan(first, dtypes, size, whole)


def len_of(rounds: Rounds) -> int:
    return jax.tree.leaves(rounds)[0].shape[0]


def take(rounds: Rounds, start: int, stop: int) -> Rounds:
    every = lambda leaf: start == 0 and stop >= leaf.shape[0]  # a device would copy them
    return jax.tree.map(lambda leaf: leaf if every(leaf) else leaf[start:stop], rounds)


def peek(owner: str, stream: Rounds | Iterable[Rounds]) -> tuple[Rounds, Rounds | Iterable[Rounds]]:
    """The first piece, and the stream with that piece put back."""
    if isinstance(stream, Rounds):
        return stream, stream
    check_iterable(owner, stream)
    pieces = iter(stream)
    first = next(pieces, None)
    if first is None:
        raise ValueError(f"{owner}: the stream is empty.")
    check_piece(owner, first)
    return first, itertools.chain([first], pieces)


def pieces(owner: str, stream: Rounds | Iterable[Rounds]) -> Iterator[Rounds]:
    """The pieces of a stream as they come, as arrays; refuses an empty stream."""
    check_iterable(owner, stream)
    empty = True
    for piece in [stream] if isinstance(stream, Rounds) else stream:
        check_piece(owner, piece)
        empty = False
        yield jax.tree.map(_host, piece)
    if empty:
        raise ValueError(f"{owner}: the stream is empty.")


def chunks(
    owner: str,
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
    start, capacity, room, stage = (
        0,
        plan.capacity,
        Room(),
        Stage(plan.capacity, plan.dtypes, plan.owned),
    )
    for piece in pieces:
        length = len_of(piece)
        if piece is not plan.first:
            _check_like(owner, piece, plan.first, start)
        begin = min(max(0, skip - start), length)
        if history is not None:
            history.skip(piece, start, start + begin)
        if isinstance(piece.context, SparseRows):
            room = room.grown(piece.context, begin, capacity)
        with Window(piece) as window:
            for left, low, high in stage.windows(piece, begin):
                window.move(low - capacity, low, high)  # one chunk is being played
                staged = stage.put(take(piece, left, high))
                span = np.array([low - left, high - left], np.int32)
                real = take(staged, *span)
                checks.before(real, start + low)
                look = Look(checks, real, start + low) if checks.late else None
                if isinstance(piece.context, SparseRows):
                    cut = blocks(piece.context, low, capacity, room, plan.dtypes[0])
                    staged = staged._replace(
                        context=cut if plan.owned else jax.tree.map(np.array, cut)
                    )
                digest = b"" if history is None else history.add(take(piece, low, high))
                yield Chunk(staged, span, start + low, digest, look)
        start += length
    if start < skip:
        raise ValueError(
            f"{owner}: the stream ends after {start} rounds, the checkpoint after {skip}; give "
            "another directory."
        )


def _host(leaf: Any) -> np.ndarray | SparseRows:
    """The array on the host, without a copy if possible; one of an accelerator stays there."""
    here = isinstance(leaf, np.ndarray | SparseRows) or place.kept(leaf)
    return leaf if here else np.asarray(leaf)


def _bytes(leaf: np.ndarray | SparseRows, dtype: np.dtype) -> int:
    if isinstance(leaf, SparseRows):
        return leaf.values.size * dtype.itemsize * 2
    return leaf.size * dtype.itemsize


def _check_like(owner: str, piece: Rounds, first: Rounds, start: int) -> None:
    if jax.tree.structure(piece) != jax.tree.structure(first):
        raise TypeError(
            f"{owner}: the chunk at round {start} has structure {check.outline(piece)}, the first "
            f"has {check.outline(first)}; give chunks of one structure."
        )
    for (path, leaf), like in zip(
        jax.tree_util.tree_leaves_with_path(piece), jax.tree.leaves(first), strict=True
    ):
        seen, wanted = (leaf.shape[1:], leaf.dtype), (like.shape[1:], like.dtype)
        if seen != wanted:
            raise TypeError(
                f"{owner}: rounds{jax.tree_util.keystr(path)} of the chunk at round {start} holds "
                f"{seen[1]}{list(seen[0])} per round, the first chunk "
                f"{wanted[1]}{list(wanted[0])}."
            )
