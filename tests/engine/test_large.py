"""Large problems in constant memory: what a run holds does not grow with its chunks."""

import mmap

import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses
from olx.engine import chunks, collector, game, memory_map

COUNT, WIDTH = 6000, 16
X = np.random.default_rng(0).normal(size=(COUNT, WIDTH)).astype(np.float32)
ROUNDS = olx.Rounds(X, X[:, 0])
LEARNER, START = olx.linear(olx.ogd(0.01)), jnp.zeros(WIDTH, jnp.float32)


@pytest.fixture
def small_chunks(retune):
    retune(CHUNK_ROUNDS=128)


@pytest.fixture
def file(tmp_path):
    X.tofile(tmp_path / "rows")
    return tmp_path / "rows"


def run(rounds, learner=LEARNER, start=START, **options):
    return olx.run(learner, losses.squared, rounds, start, **options)


@pytest.mark.parametrize("keep", [olx.keep.totals, olx.keep.every(500)])
def test_only_the_rounds_asked_for_are_held(small_chunks, monkeypatch, keep):
    held = []
    add = collector.Collector.add

    def watched(collector, *given):
        add(collector, *given)
        held.append(sum(len(segment.at) for segment in collector.segments))

    monkeypatch.setattr(collector.Collector, "add", watched)
    curve = run(ROUNDS, keep=keep).curve
    asked = list(keep(0, COUNT))
    assert len(held) == 47
    assert max(held) <= len(asked) + 1
    assert curve.at.tolist() == sorted({*asked, COUNT})
    np.testing.assert_allclose(curve.total, np.cumsum(run(ROUNDS).losses)[curve.at - 1], 1e-5)


def test_a_chunk_of_many_configurations_has_some_rounds():
    size = lambda n, light=True: chunks.rounds_per_chunk(10**6, 200, n, True, False, light)
    assert [size(n) for n in (1, 512, 10**5, 10**6)] == [16384, 2048, 64, 16]
    assert size(10**5, light=False) == 8  # what is recorded may be as large as the states


def test_a_map_is_read_ahead_and_given_back(small_chunks, monkeypatch, file, retune):
    told = []
    monkeypatch.setattr(memory_map.Map, "advise", lambda one, *given: told.append(given))
    retune(MAP_BYTES_PLAYED=1000 * 4 * WIDTH, MAP_BYTES_AHEAD=0)
    rows = np.memmap(file, np.float32, "r", shape=X.shape)
    run(olx.Rounds(rows, ROUNDS.outcome), keep=olx.keep.totals)
    read = [(low, high) for what, low, high in told if what == memory_map._READ]
    free = [(low, high) for what, low, high in told if what == memory_map._FREE]
    assert read[:2] == [(0, 256), (256, 384)]  # a chunk ahead
    assert [low for low, _ in read[1:]] == [high for _, high in read[:-1]]
    assert read[-1][1] == COUNT
    assert free[0] == (0, 1024)
    assert [low for low, _ in free[1:]] == [high for _, high in free[:-1]]
    assert free[-1][1] == COUNT


def test_a_map_gives_the_numbers_of_its_arrays(file, monkeypatch, retune):
    retune(MAP_BYTES_PLAYED=1)
    monkeypatch.setattr(memory_map, "memory", lambda: 1000)  # the file is larger
    rows = np.memmap(file, np.float32, "r", shape=X.shape)
    seen, wanted = run(olx.Rounds(rows, ROUNDS.outcome)), run(ROUNDS)
    np.testing.assert_array_equal(seen.losses, wanted.losses)
    np.testing.assert_array_equal(rows, X)


def test_where_an_array_is_in_its_file(file):
    rows = np.memmap(file, np.float32, "r", offset=4 * WIDTH, shape=(COUNT - 1, WIDTH))
    found = memory_map.map_of(np.asarray(rows)[100:200])
    assert found is not None
    assert found == (rows[100:].ctypes.data, 4 * WIDTH, X.nbytes, file, 101 * 4 * WIDTH)
    found.advise(memory_map._FREE, 0, 100)  # a system that takes no advice is left alone
    np.testing.assert_array_equal(rows, X[1:])


@pytest.mark.parametrize(
    "make",
    [
        lambda file: X,
        lambda file: np.memmap(file, np.float32, "c", shape=X.shape),  # changes would be lost
        lambda file: np.memmap(file, np.float32, "r", shape=X.shape)[:, :3],
        lambda file: np.memmap(file, np.float32, "r", shape=X.shape) + 1,
        lambda file: np.frombuffer(mmap.mmap(-1, 4096), np.uint8),
        lambda file: jnp.ones(3),
    ],
)
def test_other_arrays_are_left_alone(make, file):
    assert memory_map.map_of(make(file)) is None


def test_longer_rows_of_a_large_array_are_made_in_pieces(monkeypatch, retune):
    learner, start = olx.affine(olx.ogd(0.01)), jnp.zeros(WIDTH + 1, jnp.float32)
    wanted = run(ROUNDS, learner, start)
    retune(LONGER_BYTES=1000, LONGER_PIECE_BYTES=1000 * 4 * WIDTH)
    sizes = []
    rows_with_ones = game.rows_with_ones
    watched = lambda rows: sizes.append(len(rows)) or rows_with_ones(rows)
    monkeypatch.setattr(game, "rows_with_ones", watched)
    seen = run(ROUNDS, learner, start)
    assert sizes == [1000] * 6
    np.testing.assert_array_equal(seen.losses, wanted.losses)
