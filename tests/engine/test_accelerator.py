"""An accelerator gets a stream once and gives its output back once; its programs are its own.

There is none here. So the engine is told that the backend is a GPU, and the boundary between host
and device is watched: what the program is called with, and what is collected. The whole programs of
a chunk are lowered for CUDA and TPU.
"""

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx import boosting, losses
from olx.engine import chunks, collector, compile, device, outputs
from olx.engine.threads import shape_of

X = np.random.default_rng(0).normal(size=(75, 6)).astype(np.float32)
LABELS = np.sign(X[:, 0])
START = jnp.zeros(6, jnp.float32)
WEAK = olx.linear(olx.ogd(0.1))
THIN = X * (X > 0.3)


def many(eta):
    return olx.linear(olx.ogd(eta))


def kernel(**options):
    return olx.run(WEAK, losses.hinge, olx.Rounds(X, LABELS), START, **options)


def dense(**options):
    return kernel(**options, implementation="dense")


def blocks(**options):
    learners = olx.batch(many, eta=jnp.geomspace(0.01, 1.0, 70, dtype=jnp.float32))
    options["implementation"] = "blocks"
    return olx.sweep(learners, losses.hinge, olx.Rounds(X, LABELS), START, **options)


def sparse(**options):
    rows = olx.streams.sparse_rows(scipy.sparse.csr_array(THIN))
    return olx.run(WEAK, losses.hinge, olx.Rounds(rows, LABELS), START, **options)


def boosted(**options):
    learner = boosting.boost(WEAK, 5, boosting.online_bbm(0.1), loss=losses.hinge)
    options["implementation"] = "dense"
    return olx.run(learner, losses.zero_one, olx.Rounds(X, LABELS), START, **options)


PLAYS = {play.__name__: play for play in (kernel, dense, blocks, sparse, boosted)}


class Seen:
    """What crosses the boundary between host and device in a play."""

    def __init__(self, play):
        self.calls, self.outputs, self.crossed, words = [], [], [], io.StringIO()
        choose, add = compile.Forms.choose, collector.Collector.add

        def chosen(forms, width, *given):
            call, path = choose(forms, width, *given)
            self.program, self.numbers = (call, jax.tree.map(shape_of, given)), given[1]
            return Watched(call, self.calls), path

        def added(collector, chunk, outs):
            self.outputs.append(outs)
            return add(collector, chunk, outs)

        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(words):
            elsewhere(patch)
            patch.setattr(compile.Forms, "choose", chosen)
            patch.setattr(collector.Collector, "add", added)
            patch.setattr(device, "put_on_device", self._counted(device.put_on_device))
            patch.setattr(outputs, "fetch", self._counted(outputs.fetch))
            self.run = play(explain=True)
        self.said = words.getvalue()

    def _counted(self, function):
        return lambda *given: self.crossed.append(function.__name__) or function(*given)


class Watched:
    """A compiled program that remembers what it was called with."""

    def __init__(self, call, calls):
        self._call, self._calls, self.lower = call, calls, call.lower

    def __call__(self, *given):
        self._calls.append(given[2:])
        with jax.transfer_guard_host_to_device("disallow"):  # all was placed before
            return self._call(*given)


def elsewhere(patch):
    """Say that the backend is a GPU."""
    patch.setattr(jax, "default_backend", lambda: "gpu")
    patch.setattr(compile, "unavailable", lambda: "one kernel is for the CPU, this is gpu")


@pytest.fixture(scope="module")
def seen():
    return {name: Seen(play) for name, play in PLAYS.items()}


@pytest.mark.parametrize("name", PLAYS)
def test_a_stream_that_fits_goes_there_once_and_comes_back_once(seen, name):
    (rest,), (outs,) = seen[name].calls, seen[name].outputs
    rounds, span = rest
    assert len(jax.tree.leaves(rounds.outcome)[0]) == 75
    assert span is None  # the compiler knows it, so the host does not ask after every round
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(outs))
    assert seen[name].crossed == [
        "put_on_device",
        "put_on_device",
        "fetch",
    ]  # numbers, rounds and the output


@pytest.mark.parametrize("name", PLAYS)
def test_the_numbers_are_those_of_the_cpu(seen, name):
    here, there = PLAYS[name](), seen[name].run
    np.testing.assert_allclose(there.losses, here.losses, 1e-5, 1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-5, 1e-5), there.state, here.state)


@pytest.mark.parametrize("name", PLAYS)
def test_the_program_of_a_chunk_is_lowered_for_other_devices(seen, name):
    call, given = seen[name].program
    exported = jax.export.export(jax.jit(call), platforms=["cuda", "tpu"])(*given)
    assert exported.platforms == ("cuda", "tpu")
    assert "xla_cpu" not in exported.mlir_module()


def test_a_sweep_is_played_by_matrix_products_and_copies_side_by_side(seen):
    call, given = seen["blocks"].program
    assert call.lower(*given).as_text().count("dot_general") >= 3
    call, given = seen["boosted"].program
    assert "tensor<5x6xf32>" in call.lower(*given).as_text()


def test_a_sweep_that_goes_on_in_the_middle_plays_the_rounds_that_are_left(seen):
    call, (state, *_) = seen["blocks"].program
    start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state)
    (_, out), _ = call(
        start, seen["blocks"].numbers, olx.Rounds(X, LABELS), np.array([0, 40], np.int32)
    )
    np.testing.assert_allclose(out.sums[0][:40], seen["blocks"].run.losses.T[:40], 1e-5, 1e-5)
    assert not np.any(out.sums[0][64:])  # the last block of 32 rounds ends there


def test_it_says_how_to_fill_the_device(seen):
    said = seen["dense"].said.splitlines()
    assert said[0].startswith(
        "run: plain loop: one kernel is for the CPU, this is gpu; chunks of 75"
    )
    assert said[1].startswith("run: a round launches kernels for 1 configuration; to fill")
    assert "by one `olx.sweep`" in said[1]


def test_on_a_gpu_a_chunk_is_one_launch(seen):
    assert seen["kernel"].said.startswith("run: one kernel launch per chunk")
    assert "a round launches" not in seen["kernel"].said


def test_arrays_of_the_device_stay_there(monkeypatch):
    elsewhere(monkeypatch)
    rounds = jax.tree.map(jnp.asarray, olx.Rounds(X, LABELS))
    placed = []
    put = device.put_rounds
    spy = lambda *given: placed.append(put(*given)) or placed[-1]
    monkeypatch.setattr(device, "put_rounds", spy)
    olx.run(WEAK, losses.hinge, rounds, START)
    ((there, _),) = placed
    pointers = lambda tree: [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(tree)]
    assert pointers(there) == pointers(rounds)


def test_bad_numbers_of_the_device_are_refused_by_name(monkeypatch):
    elsewhere(monkeypatch)
    bad = olx.Rounds(jnp.asarray(X).at[7, 2].set(jnp.nan), jnp.asarray(LABELS))
    with pytest.raises(ValueError, match=r"^run: rounds.context holds nan at row 7, column 2;"):
        olx.run(WEAK, losses.hinge, bad, START)


def test_a_stream_that_does_not_fit_is_played_in_chunks(monkeypatch):
    elsewhere(monkeypatch)
    monkeypatch.setattr(device, "bytes_per_chunk", lambda: 40 * 64)  # 28 for a row, 36 for output
    plan = chunks.plan_of(olx.Rounds(X, LABELS), START, 1, True)
    assert plan.capacity == 32
    np.testing.assert_allclose(dense().losses, DENSE.losses, 1e-5, 1e-5)


DENSE = dense()
