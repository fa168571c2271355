"""Contexts of whole numbers, truth values and half precision, and buffers that are used again."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

import olx
from olx import losses, regularizers, streams

PIXELS = np.random.default_rng(0).integers(0, 256, (60, 4), np.uint8) * np.array(
    [1, 1, 1, 0], np.uint8
)
LABELS = np.where(np.arange(60) % 3 == 0, -1.0, 1.0)
LEARNERS = {
    "PA": olx.classification.passive_aggressive(),
    "romma": olx.classification.romma(),
    "alma": olx.classification.alma(0.9),
    "implicit": olx.implicit(1.0, losses.squared),
    "ogd": olx.linear(olx.ogd(1e-5)),
}
KINDS = [np.uint8, np.int8, np.int32, bool, np.float16, np.float32]


def play(learner, context, driver=olx.run, params=None):
    params = jnp.zeros(4) if params is None else params
    return driver(learner, losses.squared, olx.Rounds(context, LABELS), params)


@pytest.mark.parametrize("driver", [olx.run, olx.rollout])
@pytest.mark.parametrize("name", LEARNERS)
def test_pixels_are_read_as_numbers_of_the_decision(name, driver):
    learner = LEARNERS[name]
    wanted = play(learner, PIXELS.astype(float), driver)
    assert np.all(np.isfinite(wanted.losses))
    chex.assert_trees_all_equal(play(learner, PIXELS, driver), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_every_narrow_kind_gives_the_numbers_of_the_wide_one(kind):
    context = PIXELS.astype(kind)
    for learner in (LEARNERS["PA"], LEARNERS["ogd"]):
        chex.assert_trees_all_equal(play(learner, context), play(learner, context.astype(float)))


@pytest.mark.parametrize("count", [3, 64])
def test_sweeps_read_pixels_as_runs_do(count):
    make = lambda c: olx.classification.passive_aggressive_1(c)
    learners = olx.batch(make, c=jnp.geomspace(1e-4, 1.0, count))
    chex.assert_trees_all_equal(
        play(learners, PIXELS, olx.sweep), play(learners, PIXELS.astype(float), olx.sweep)
    )


@pytest.mark.parametrize("name", ["PA", "ogd"])
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_rows_read_pixels_as_dense_ones_do(name, kind):
    context = PIXELS.astype(kind)
    rows = streams.sparse_rows(
        csr_array(context.astype(np.float32) if kind is np.float16 else context)
    )
    seen, wanted = play(LEARNERS[name], rows), play(LEARNERS[name], context.astype(float))
    np.testing.assert_allclose(seen.losses, wanted.losses, 1e-12, 1e-24)


def test_whole_numbers_in_sparse_rows_keep_their_digits():
    big = csr_array(np.array([[2**30 + 1, 0], [0, 3]]))
    np.testing.assert_array_equal(streams.sparse_rows(big).toarray(), big.toarray())


def test_an_adversary_may_ask_in_whole_numbers():
    ask = lambda hp, t: jnp.asarray(PIXELS)[t]
    answer = lambda hp, t, action: (jnp.where(action > 0, -1.0, 1.0), t + 1)
    loss = jax.tree_util.Partial(losses.squared)
    nature = olx.Adversary(None, loss, lambda hp: jnp.array(0), ask, answer)
    wide = olx.Adversary(
        None, loss, lambda hp: jnp.array(0), lambda hp, t: ask(hp, t).astype(float), answer
    )
    seen, wanted = (olx.play(LEARNERS["PA"], other, jnp.zeros(4), 30) for other in (nature, wide))
    chex.assert_trees_all_equal((seen.losses, seen.state), (wanted.losses, wanted.state))


def looked_up(w, x):
    return w[x]


def test_an_index_that_a_model_looks_up_stays_one():
    learner = olx.model(olx.ogd(0.1), looked_up)
    context = np.arange(60) % 4
    seen, wanted = play(learner, context), play(learner, context, olx.rollout)
    np.testing.assert_allclose(seen.losses, wanted.losses, 1e-12)
    assert seen.losses[-1] < seen.losses[0]


def aligned(shape):
    room = np.empty(np.prod(shape) * 8 + 64, np.uint8)
    skip = -room.ctypes.data % 64
    return room[skip : skip + np.prod(shape) * 8].view(float).reshape(shape)


def reused(pieces, rows):
    """Every piece in the same memory, as fast readers have it; it is spoilt before the next."""
    context, outcome = aligned((rows, 4)), aligned((rows,))
    for x, y in pieces:
        context[:], outcome[:] = x, y
        yield olx.Rounds(context, outcome)
        context[:], outcome[:] = 7.0, -7.0


def test_a_buffer_may_be_filled_again_and_again():
    x = np.random.default_rng(1).normal(size=(8, 1024, 4))
    pieces = [(part, part[:, 0]) for part in x]
    learner = olx.linear(olx.ftrl(0.5, regularizers.adagrad()))
    wanted = olx.run(learner, losses.squared, [olx.Rounds(*p) for p in pieces], jnp.zeros(4))
    for _ in range(5):
        seen = olx.run(learner, losses.squared, reused(pieces, 1024), jnp.zeros(4))
        chex.assert_trees_all_equal(seen, wanted)


def test_what_is_played_is_never_the_memory_of_an_iterable(monkeypatch):
    """Whether a device reads it in time depends on the machine, so the addresses are compared."""
    x = aligned((1024, 4))
    x[:] = 1.0
    seen = []
    chunks = olx.engine.chunks.chunks_of

    def watched(*given):
        for chunk in chunks(*given):
            seen.extend(np.shares_memory(chunk.rounds.context, leaf) for leaf in [x])
            yield chunk

    monkeypatch.setattr(olx.engine.chunks, "chunks_of", watched)
    learner = olx.linear(olx.ogd(0.1))
    olx.run(learner, losses.squared, [olx.Rounds(x, x[:, 0])], jnp.zeros(4))
    assert seen == [False]


@pytest.mark.parametrize(
    "learner", [olx.linear(olx.ogd(0.1)), olx.classification.passive_aggressive()]
)
def test_contexts_without_a_column_are_played(learner):
    rounds = olx.Rounds(np.zeros((40, 0)), LABELS[:40])
    seen = olx.run(learner, losses.squared, rounds, jnp.zeros(0))
    np.testing.assert_array_equal(seen.losses, losses.squared(0.0, LABELS[:40]))


def test_sparse_rows_wider_than_the_decision_are_refused_by_name():
    rows = streams.sparse_rows(csr_array(PIXELS.astype(float)))
    with pytest.raises(TypeError, match="run: the sparse rows hold float64, `params` is float32"):
        play(LEARNERS["PA"], rows, params=jnp.zeros(4, jnp.float32))
