"""Chunks of sparse rows are windows of the arrays of the matrix, and hold its rows."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx import _memory as memory
from olx.engine import tuning
from olx.engine.sparse_chunks import LANES, SparseChunks
from olx.streams.sparse_rows import sparse_rows

CAPACITY = 16
WIDEST = 40


def matrix(length, places=(0, 0), dtype=np.float32):
    """Rows of 0 to `WIDEST` entries; the first and the last are the widest.

    places: how many entries after a multiple of 64 bytes the indices and the values begin.
    """
    draw = np.random.default_rng(length)
    counts = np.r_[WIDEST, draw.integers(0, WIDEST, length - 2), WIDEST]
    indices = [np.sort(draw.choice(WIDEST, count, replace=False)) for count in counts]
    values = draw.normal(size=counts.sum())
    data, columns = (
        _placed(leaf, kind, place)
        for leaf, kind, place in ((values, dtype, places[1]), (indices, np.int32, places[0]))
    )
    pointers = np.r_[0, np.cumsum(counts)].astype(np.int32)
    return scipy.sparse.csr_array((data, columns, pointers), (length, WIDEST))


def _placed(leaf, dtype, place):
    leaf = np.concatenate(leaf) if isinstance(leaf, list) else leaf
    made = memory.aligned_empty((len(leaf) + place,), dtype)[place:]
    made[:] = leaf
    return made


@pytest.fixture(autouse=True)
def never_too_few(monkeypatch):
    monkeypatch.setattr(tuning, "SPARSE_COPY_BYTES", 0)


@pytest.mark.parametrize("places", [(0, 0), (4, 4), (12, 4), (4, 12), (0, 3), (15, 1)])
@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize(("length", "start"), [(2, 0), (17, 0), (100, 0), (100, 61), (100, 100)])
def test_a_chunk_holds_its_rows(length, start, places, owned):
    rows = sparse_rows(matrix(length, places))
    chunks, seen = SparseChunks(CAPACITY, np.float32, owned), []
    for low, high in chunks.windows(rows, start):
        cut = chunks.chunk(low, high)
        seen += range(low, high)
        assert high - low <= CAPACITY
        assert len(cut.pointers) == CAPACITY + 1
        assert len(cut.indices) == len(cut.values)
        assert memory.is_aligned(cut.indices)
        assert memory.is_aligned(cut.values)
        shift, reach = len(cut.shift) - 1, len(cut.widest) * LANES
        for i in range(low, high):
            first, last = cut.pointers[i - low : i - low + 2]
            assert first + shift + reach <= len(cut.indices)  # else XLA would read other entries
            own = slice(rows.pointers[i], rows.pointers[i + 1])
            np.testing.assert_array_equal(
                cut.indices[first + shift : last + shift], rows.indices[own]
            )
            np.testing.assert_array_equal(cut.values[first:last], rows.values[own])
    assert seen == list(range(start, length))


def test_most_rows_are_not_copied():
    rows = sparse_rows(matrix(1000, (12, 4)))
    chunks = SparseChunks(CAPACITY, np.float32, owned=True)
    cuts = [chunks.chunk(*window) for window in chunks.windows(rows, 0)]
    shared = [np.shares_memory(cut.values, rows.values) for cut in cuts]
    assert shared == [np.shares_memory(cut.indices, rows.indices) for cut in cuts]
    assert shared == [False, *[True] * (len(cuts) - 2), False]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_csr_matrix_is_not_copied(dtype):
    given = matrix(100, dtype=dtype)
    rows = sparse_rows(given)
    assert np.shares_memory(rows.values, given.data)
    assert np.shares_memory(rows.indices, given.indices)


def test_a_run_does_not_depend_on_where_the_arrays_begin():
    y = np.where(np.arange(100) % 3, 1.0, -1.0).astype(np.float32)
    play = lambda rows: olx.run(
        olx.linear(olx.first_order.adagrad(0.5)),
        olx.losses.hinge,
        olx.Rounds(rows, y),
        jnp.zeros(WIDEST, jnp.float32),
    )
    wanted = play(sparse_rows(matrix(100)))
    seen = play(sparse_rows(matrix(100, (12, 4))))
    np.testing.assert_array_equal(seen.losses, wanted.losses)
    dense = play(matrix(100).toarray())
    np.testing.assert_allclose(seen.losses, dense.losses, rtol=1e-5, atol=1e-6)
