"""Rows are read where they lie: from any place in memory, in any dtype, by every implementation."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import _memory as memory
from olx import losses
from olx.engine import chunks
from olx.engine.view import can_view, view_of

DRAW = np.random.default_rng(0)
CAPACITY = 64


def placed(rows, skip=16):
    """The rows `skip` bytes after the beginning of a line, with NaN before and after them."""
    around = memory.aligned_empty((rows.nbytes // 64 * 64 + 256,), np.uint8)
    around[:] = 255
    array = around[64 + skip : 64 + skip + rows.nbytes].view(rows.dtype).reshape(rows.shape)
    array[:] = rows
    return array


@pytest.mark.parametrize("skip", [0, 4, 16, 60])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 8)])
def test_every_row_is_read_from_its_place(skip, shape):
    array = placed(DRAW.normal(size=(150, *shape)).astype(np.float32), skip)
    for low in (0, 1, 64, 128, 149):
        view = view_of(array, low, CAPACITY)
        assert memory.is_aligned(view.data)
        assert view.data.nbytes == CAPACITY * array.strides[0] + 64
        begin, end = memory.address(array), memory.address(array) + array.nbytes
        low_line, high_line = begin - begin % 64, end + -end % 64
        first = memory.address(view.data)
        assert low_line <= first <= first + view.data.nbytes <= high_line
        for i in range(min(CAPACITY, 150 - low)):
            np.testing.assert_array_equal(view.row(np.int32(i)), array[low + i])


@pytest.mark.parametrize("skip", [0, 16, 60])
@pytest.mark.parametrize("length", [100, 127, 128])
def test_a_block_has_zeros_after_the_last_row(skip, length):
    array = placed(DRAW.normal(size=(length, 3)).astype(np.float32), skip)
    view, rest = view_of(array, 64, CAPACITY), length - 64
    wanted = np.concatenate([array[64:], np.zeros((CAPACITY, 3), np.float32)])
    for start in (0, 32):
        seen = view.block(start, 32, rest)
        np.testing.assert_array_equal(seen, wanted[start : start + 32])


def test_other_arrays_are_copied():
    rows = np.zeros((200, 4), np.float32)
    assert can_view(rows, CAPACITY)
    assert not can_view(np.asfortranarray(rows), CAPACITY)
    assert not can_view(rows[::2], CAPACITY)
    assert not can_view(rows[:, :0], CAPACITY)
    assert not can_view(placed(rows[:200], 2), CAPACITY)
    assert not can_view(rows[:CAPACITY], CAPACITY)


def descents():
    return olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.geomspace(0.01, 0.1, 65))


def matrices():
    return olx.batch(lambda r: olx.second_order.arow(r), r=jnp.array([1.0, 2.0]))


def one(*given):
    return olx.run(olx.linear(olx.ogd(0.1)), losses.hinge, *given, record=olx.record.trace)


def kept(*given):
    return olx.run(olx.classification.winnow(1.0), losses.hinge, *given)


def swept(implementation, make=descents):
    return lambda *given: olx.sweep(make(), losses.hinge, *given, implementation=implementation)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(
    "play", [one, kept, swept("dense"), swept("blocks"), swept("in_turn", matrices)]
)
def test_rows_in_place_give_the_bits_of_copies(play, single, retune, monkeypatch):
    retune(CHUNK_ROUNDS=CAPACITY)
    kind = np.float32 if single else np.float64
    x = placed(np.abs(DRAW.normal(size=(171, 5))).astype(kind))
    rounds = olx.Rounds(x, placed(np.sign(DRAW.normal(size=171)).astype(kind), 8))
    with jax.enable_x64(not single):
        start = jnp.full(5, 0.2)
        seen = play(rounds, start)
        monkeypatch.setattr(chunks, "can_view", lambda *_: False)
        chex.assert_trees_all_equal(seen, play(rounds, start))


def test_an_array_that_must_be_copied_beside_one_that_need_not(retune):
    retune(CHUNK_ROUNDS=CAPACITY)
    x, y = DRAW.normal(size=(171, 5)), np.repeat(np.sign(DRAW.normal(size=171)), 2)[::2]
    wanted = one(olx.Rounds(jnp.asarray(x), jnp.asarray(y)), jnp.zeros(5))
    chex.assert_trees_all_equal(one(olx.Rounds(placed(x), y), jnp.zeros(5)), wanted)


NARROW = DRAW.normal(size=(20_000, 4)) * 10.0 ** DRAW.integers(-30, 30, (20_000, 4))


@pytest.mark.parametrize("length", [100, 20_000])
@pytest.mark.parametrize("pieces", [True, False])
def test_a_row_of_64_bits_is_cast_to_the_bits_of_numpy(length, pieces, retune):
    retune(CHUNK_ROUNDS=1024)
    x, y = NARROW[:length], DRAW.integers(-(2**31), 2**31, length)
    rounds = olx.Rounds(x, y)
    seen = lambda state, feedback: (feedback.context, feedback.outcome)
    with jax.enable_x64(False):
        given = [rounds] if pieces else rounds
        loss = lambda action, outcome: jnp.sum(action) * 0.0
        run = olx.run(olx.ogd(0.1), loss, given, jnp.zeros(4), record=seen)
    np.testing.assert_array_equal(run.trace[0], x.astype(np.float32))
    np.testing.assert_array_equal(run.trace[1], y.astype(np.int32))


def test_rows_of_64_bits_give_one_result_in_pieces_and_whole(retune):
    retune(CHUNK_ROUNDS=1024)
    x = DRAW.normal(size=(5000, 100))
    rounds = olx.Rounds(x, np.sign(x[:, 0]))
    with jax.enable_x64(False):
        whole = one(rounds, jnp.zeros(100))
        parts = [jax.tree.map(lambda leaf, i=i: leaf[i : i + 700], rounds) for i in (0, 700)]
        parts.append(jax.tree.map(lambda leaf: leaf[1400:], rounds))
        chex.assert_trees_all_equal(one(parts, jnp.zeros(100)), whole)
        same = one(jax.tree.map(jnp.asarray, rounds), jnp.zeros(100))
        np.testing.assert_allclose(whole.losses, same.losses, 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("value", "said"), [(np.nan, "nan"), (-1e300, r"-1e\+300 .*not fit into float32")]
)
def test_a_bad_number_of_64_bits_is_named_with_its_row(value, said):
    x = DRAW.normal(size=(40_000, 20))
    x[31_003, 7] = value
    x = placed(x)
    at = "at row 31003, column 7"
    with jax.enable_x64(False), pytest.raises(ValueError, match=rf"{said.split()[0]} {at}"):
        one(olx.Rounds(x, np.ones(40_000)), jnp.zeros(20))


def test_memory_outside_of_an_array_does_not_matter_to_the_checks_of_jax():
    x = placed(np.ones((200_000, 4), np.float32))
    with jax.enable_x64(False), jax.debug_nans(True):
        run = one(olx.Rounds(x, placed(np.ones(200_000, np.float32))), jnp.zeros(4))
    assert np.all(np.isfinite(run.losses))
