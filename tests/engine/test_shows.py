"""Bad numbers are refused, also where the engine looks only at what a round puts out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx import losses, mirrors, streams
from olx.engine import chunks, finite
from olx.engine.arguments import check_game
from olx.engine.game import game_of
from olx.engine.numbers import numbers_of
from olx.engine.round import Recorder

ROWS, CHUNK, WIDTH = 200, 64, 3
DRAW = np.random.default_rng(0)
X, W = DRAW.normal(size=(ROWS, WIDTH)), DRAW.uniform(0.5, 1.0, ROWS)
Y = np.where(X @ np.array([1.0, -2.0, 0.5]) > 0, 1.0, -1.0)
W[CHUNK] = W[CHUNK - 1] = 0.0  # bad numbers come into rounds that do not count, too
ROUNDS, ZEROS = olx.Rounds(X, Y, W), jnp.zeros(WIDTH)
LINE = olx.linear(olx.omd(0.1, mirrors.euclidean()))
BAD = (np.nan, np.inf, -np.inf)
PLACES = (0, CHUNK - 1, CHUNK, ROWS - 1)


def ignoring(hp, state, context):
    return state


def dropping(hp, state, context):
    return jnp.maximum(jnp.vdot(state, context), 0.0)


def still(hp, state, feedback):
    return state


def ready(hp, params):
    return params


def first_of(action, outcome):
    return jnp.sum(action**2) * 0 + outcome


DEAF = olx.Learner(None, ready, ignoring, still)
CLIPPED = olx.Learner(None, ready, dropping, still)
GAMES = {
    "hinge": (LINE, losses.hinge, ("action",)),
    "squared": (LINE, losses.squared, ("value",)),
    "signs": (LINE, losses.zero_one, ("action",)),
    "conservative": (olx.classification.perceptron(), losses.hinge, ("action",)),
    "passive": (olx.classification.passive_aggressive_1(0.1), losses.hinge, ("action",)),
    "matrix": (olx.second_order.arow(1.0), losses.logistic, ("action",)),
    "ignores the context": (DEAF, first_of, ()),
    "may hide a score": (CLIPPED, losses.squared, ()),
}


@pytest.fixture(autouse=True)
def small_chunks(retune):
    retune(FINITE_NUMBERS=0, CHUNK_BYTES=CHUNK * 8 * (WIDTH + 2))


def spoilt(part, row, value, rounds=ROUNDS):
    leaf = np.array(getattr(rounds, part))
    leaf[(row, WIDTH - 1) if leaf.ndim > 1 else row] = value
    return rounds._replace(**{part: leaf})


def refusal(play, *arguments):
    with pytest.raises(ValueError, match="round") as error:
        play(*arguments)
    return str(error.value)


def wanted(learner, loss, rounds, owner, start=ZEROS):
    """What `rollout`, which looks at all numbers first, says."""
    return refusal(olx.rollout, learner, loss, rounds, start).replace("rollout:", f"{owner}:", 1)


def fields_of(learner, loss, rounds, params=ZEROS):
    first = jax.tree.map(np.asarray, rounds)
    plan = chunks.plan_of(first, params, 1, True)
    numbers = numbers_of(learner, loss, check_game)
    game = game_of("run", numbers, rounds, params, Recorder())
    return finite.visible_leaves(game, plan, finite.candidates(plan, set()))


SUMS = {
    "a product": (lambda w, x: jnp.vdot(w, x), True),
    "a matrix": (lambda w, x: jnp.sum(jnp.outer(w, w) @ x), True),
    "rows of a matrix": (lambda w, x: jnp.sum((jnp.outer(x, w) @ w) ** 2), True),
    "a root of a sum": (lambda w, x: jnp.sqrt(jnp.sum(x**2)) / (1 + w[0]), True),
    "the largest of sums": (lambda w, x: jnp.max(w + jnp.sum(x)), True),
    "either of two": (lambda w, x: jnp.where(w[0] > 0, jnp.sum(x), -jnp.vdot(x, w)), True),
    "inside a call": (lambda w, x: jax.jit(jnp.vdot)(w, x), True),
    "a maximum": (lambda w, x: jnp.maximum(jnp.vdot(w, x), 0.0), False),
    "the largest entry": (lambda w, x: jnp.max(x), False),
    "an exponential": (lambda w, x: jnp.sum(jnp.exp(x)), False),
    "a quotient": (lambda w, x: 1 / jnp.sum(x), False),
    "a power": (lambda w, x: jnp.sum(x) ** -2, False),
    "a sign": (lambda w, x: jnp.sum(jnp.sign(x) * w), False),
    "one entry": (lambda w, x: x[0], False),
    "a choice": (lambda w, x: jnp.where(w[0] > 0, jnp.sum(x), 0.0), False),
    "a choice by the row": (lambda w, x: jnp.sum(jnp.where(x > 0, w, -w)), False),
    "an integer": (lambda w, x: jnp.sum(x).astype(int).astype(float), False),
    "a loop": (lambda w, x: jax.lax.fori_loop(0, 2, lambda _, s: s + x[0], 0.0), False),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_is_not_finite_is_followed_through_sums_and_products_only(name):
    function, passes = SUMS[name]
    traced = jax.make_jaxpr(function)(np.ones(WIDTH), np.ones(WIDTH))
    (level,) = finite._levels(traced.jaxpr, [0, 1])
    assert bool(level) == passes


@pytest.mark.parametrize("name", GAMES)
def test_a_run_refuses_what_a_look_at_all_numbers_refuses(name):
    learner, loss, fields = GAMES[name]
    assert fields_of(learner, loss, ROUNDS).fields == fields
    olx.run(learner, loss, ROUNDS, ZEROS)
    for part in ROUNDS._fields:
        for value in BAD:
            for row in PLACES:
                bad = spoilt(part, row, value)
                said = refusal(olx.run, learner, loss, bad, ZEROS)
                assert said == wanted(learner, loss, bad, "run"), (part, value, row)


SPARSE = {
    "adding": LINE,
    "block by block": olx.linear(olx.first_order.adagrad(0.1)),
    "aggregated": olx.classification.pnorm_perceptron(4.0),
}


@pytest.mark.parametrize(
    ("name", "batched"), [*((name, False) for name in SPARSE), ("block by block", True)]
)
def test_sparse_rows_are_refused_as_dense_rows_are(name, batched):
    learner, play, owner = SPARSE[name], olx.run, "run"
    if batched:
        learner = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), learner)
        play, owner = olx.sweep, "sweep"
    for value in (None, *BAD):
        for row in PLACES:
            rounds = ROUNDS if value is None else spoilt("context", row, value)
            given = rounds._replace(context=streams.sparse_rows(scipy.sparse.csr_array(rounds[0])))
            if value is None:
                play(learner, losses.hinge, given, ZEROS)
            else:
                said = refusal(play, learner, losses.hinge, given, ZEROS)
                assert said == wanted(SPARSE[name], losses.hinge, rounds, owner)


@pytest.mark.parametrize(("loss", "configurations"), [(losses.squared, 2), (losses.hinge, 64)])
def test_a_sweep_refuses_bad_numbers_and_shows_a_configuration_that_diverges(loss, configurations):
    etas = jnp.full(configurations, 0.1).at[1].set(1e200)  # the second one diverges
    batch = olx.batch(lambda eta: olx.linear(olx.omd(eta, mirrors.euclidean())), eta=etas)
    done = olx.sweep(batch, loss, ROUNDS, ZEROS)
    assert np.isfinite(done.losses[0]).all()
    for value in BAD:
        for row in PLACES:
            bad = spoilt("context", row, value)
            said = refusal(olx.sweep, batch, loss, bad, ZEROS)
            assert said == wanted(LINE, loss, bad, "sweep"), (value, row)


def test_a_learner_that_diverges_is_not_refused():
    wild = olx.linear(olx.omd(1e200, mirrors.euclidean()))
    assert not np.isfinite(olx.run(wild, losses.squared, ROUNDS, ZEROS).losses).all()
    bad = spoilt("context", ROWS - 1, np.nan)
    assert "row 199, column 2" in refusal(olx.run, wild, losses.squared, bad, ZEROS)


def test_certify_refuses_bad_numbers():
    u = np.zeros(WIDTH)
    olx.certify(LINE, losses.hinge, ROUNDS, ZEROS, u)
    for row in PLACES:
        bad = spoilt("context", row, np.inf)
        said = refusal(olx.certify, LINE, losses.hinge, bad, ZEROS, u)
        assert said == wanted(LINE, losses.hinge, bad, "certify")


def test_experts_are_judged_by_their_needs_and_a_loss_of_a_sleeping_one_may_be_nan():
    learner, start = olx.experts.ada_normal_hedge(), jnp.ones(2)
    awake, paid = np.ones((ROWS, 2)), DRAW.uniform(size=(ROWS, 2))
    awake[CHUNK, 1], paid[CHUNK, 1] = 0.0, np.nan
    asleep = olx.Rounds(awake, paid)
    play = lambda rounds: olx.run(learner, losses.linear_loss, rounds, start)
    play(asleep)
    for part, row in (("context", 0), ("outcome", ROWS - 1)):
        leaf = np.array(getattr(asleep, part))
        leaf[row, 0] = np.nan
        bad = asleep._replace(**{part: leaf})
        assert refusal(play, bad) == wanted(learner, losses.linear_loss, bad, "run", start)


def pieces(rounds, at=0, value=None):
    """The stream in one memory, which is overwritten by every piece."""
    room = jax.tree.map(lambda leaf: np.array(leaf[:CHUNK]), rounds)
    for start in range(0, 3 * CHUNK, CHUNK):
        for place, leaf in zip(room, rounds, strict=True):
            place[:] = leaf[start : start + CHUNK]
        if value is not None and start <= at < start + CHUNK:
            room.context[at - start, 0] = value
        yield room


@pytest.mark.parametrize("row", [0, CHUNK, 2 * CHUNK + 5])
def test_a_stream_that_reuses_its_memory_is_refused_too(row):
    said = refusal(olx.run, LINE, losses.hinge, pieces(ROUNDS, row, np.inf), ZEROS)
    assert said == f"run: rounds.context holds inf at row {row}, column 0; clean it first."


def test_of_several_bad_rounds_the_first_is_named():
    def play(*bad):
        rounds = ROUNDS
        for part, row, value in bad:
            rounds = spoilt(part, row, value, rounds)
        return refusal(olx.run, LINE, losses.hinge, rounds, ZEROS)

    assert "context holds nan at row 3" in play(("context", 3, np.nan), ("outcome", 2 * CHUNK, 7.0))
    assert "context holds nan at row 3" in play(("context", 3, np.nan), ("weight", 2 * CHUNK, -1.0))
    assert "labels must be -1 or +1" in play(("context", 3, np.nan), ("outcome", 5, 7.0))
    assert "context holds nan" in play(("context", 3, np.nan), ("weight", 2, np.inf))


def test_nothing_of_a_bad_chunk_is_saved(tmp_path):
    clean, bad = ROUNDS, spoilt("context", 2 * CHUNK, np.inf)
    saving = olx.checkpoint(tmp_path, every=1)
    refusal(lambda: olx.run(LINE, losses.hinge, bad, ZEROS, checkpoint=saving))
    done = olx.run(LINE, losses.hinge, clean, ZEROS, checkpoint=saving)
    np.testing.assert_array_equal(done.losses, olx.run(LINE, losses.hinge, clean, ZEROS).losses)
