"""Chunks of sparse rows are slices of the stream, and hold its rows."""

import numpy as np
import pytest
import scipy.sparse

from olx import _memory as memory
from olx.engine.sparse_layout import Room, blocks
from olx.streams.sparse_rows import sparse_rows

CAPACITY = 16


def stream(length, widest):
    """Rows of 0 to `widest` blocks; the last row is the widest."""
    draw = np.random.default_rng(length)
    dense = np.zeros((length, 8 * widest), np.float32)
    for row, count in enumerate([*draw.integers(0, 8 * widest, length - 1), 8 * widest]):
        dense[row, draw.choice(8 * widest, count, replace=False)] = draw.normal(size=count)
    return sparse_rows(scipy.sparse.csr_array(dense))


@pytest.mark.parametrize("length", [3, 16, 17, 100])
@pytest.mark.parametrize("widest", [1, 2, 3, 5])
@pytest.mark.parametrize("spare", [True, False])
def test_a_chunk_holds_its_rows(length, widest, spare):
    rows = stream(length, widest)
    rows = rows if spare else rows[:]  # a slice has no spare blocks
    room = Room().grown(rows, 0, CAPACITY)
    for start in range(0, length, CAPACITY):
        cut = blocks(rows, start, CAPACITY, room, np.float32)
        assert len(cut.indices) == len(cut.values) == room.blocks + room.widest
        for i in range(start, min(start + CAPACITY, length)):
            low, high = cut.first[i - start], cut.last[i - start]
            assert 0 <= low < high
            assert low + room.widest <= len(cut.indices)
            own = slice(rows.pointers[i], rows.pointers[i + 1])
            np.testing.assert_array_equal(cut.indices[low:high], rows.indices[own])
            np.testing.assert_array_equal(cut.values[low:high], rows.values[own])


def test_long_streams_are_not_copied():
    rows = stream(100, 3)
    room = Room().grown(rows, 0, CAPACITY)
    for start in range(0, 100, CAPACITY):
        cut = blocks(rows, start, CAPACITY, room, np.float32)
        for seen, whole in zip((cut.indices, cut.values), rows.longer, strict=True):
            assert np.shares_memory(seen, whole)
            assert memory.is_aligned(seen)
