"""Streams in pieces: the same bits as in memory, in flat memory, and clear words for bad ones."""

import subprocess
import sys
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses, regularizers
from olx._terminal import MinuteLines

X = np.random.default_rng(0).normal(size=(9_000, 4))
ROUNDS = olx.Rounds(X, X @ np.array([1.0, -0.5, 0.2, 0.0]))
LEARNER = olx.linear(olx.ftrl(0.5, regularizers.adagrad()))
START = jnp.zeros(4)


def run(rounds, learner=LEARNER, **options):
    return olx.run(learner, losses.squared, rounds, START, **options)


def pieces(*lengths, rounds=ROUNDS):
    ends = np.cumsum(lengths)
    for start, stop in zip(ends - lengths, ends, strict=True):
        yield jax.tree.map(lambda leaf, rows=slice(start, stop): leaf[rows], rounds)


@pytest.mark.parametrize("lengths", [(9_000,), (1, 8_999), (5_000, 1, 777, 3_222), (17,) * 500])
def test_pieces_of_any_size_give_the_bits_of_the_whole(lengths):
    whole = run(jax.tree.map(lambda leaf: leaf[: sum(lengths)], ROUNDS), record=olx.record.trace)
    chex.assert_trees_all_equal(run(pieces(*lengths), record=olx.record.trace), whole)


def test_a_list_of_pieces_will_do():
    chex.assert_trees_all_equal(run(list(pieces(4_000, 5_000))), run(ROUNDS))


def test_curves_are_kept_across_pieces():
    whole = np.cumsum(run(ROUNDS).losses)
    curve = run(pieces(5_000, 1, 777, 3_222), keep=olx.keep.every(600)).curve
    np.testing.assert_array_equal(curve.at, np.arange(600, 9_001, 600))
    np.testing.assert_allclose(curve.total, whole[curve.at - 1], 1e-13)


def test_pieces_may_be_jax_arrays():
    chex.assert_trees_all_equal(
        run(jax.tree.map(jnp.asarray, part) for part in pieces(5_000, 4_000)), run(ROUNDS)
    )


def test_a_memory_map_is_played_from_the_file(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", ROUNDS.outcome)
    x, y = (np.load(tmp_path / name, mmap_mode="r") for name in ("x.npy", "y.npy"))
    assert isinstance(x, np.memmap)
    chex.assert_trees_all_equal(run(olx.Rounds(x, y)), run(ROUNDS))


def test_arrays_need_not_be_contiguous():
    rounds = olx.Rounds(np.asfortranarray(X), np.repeat(ROUNDS.outcome, 2)[::2])
    chex.assert_trees_all_equal(run(rounds), run(ROUNDS))


def test_a_last_chunk_that_is_shorter_gives_the_numbers_of_rollout(retune):
    retune(CHUNK_ROUNDS=64)
    rounds = jax.tree.map(lambda leaf: jnp.asarray(leaf[: 2 * 64 + 43]), ROUNDS)
    wanted = olx.rollout(LEARNER, losses.squared, rounds, START, record=olx.record.trace)
    seen = run(rounds, record=olx.record.trace)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-12), seen, wanted)
    kept = run(rounds, record=olx.record.trace, keep=olx.keep.every(50))
    np.testing.assert_array_equal(kept.curve.at, [50, 100, 150, 171])
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a, b[[49, 99, 149, 170]]),
        kept.trace,
        seen.trace,
    )
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=np.geomspace(0.01, 0.1, 65))
    alone = lambda one: olx.rollout(one, losses.squared, rounds, START)
    in_blocks = olx.sweep(learners, losses.squared, rounds, START)
    wanted = jax.vmap(alone)(learners.learners)
    np.testing.assert_allclose(in_blocks.losses, wanted.losses, 1e-9, 1e-15)


def test_a_stream_is_left_as_it_was():
    before = X.copy()
    run(pieces(5_000, 4_000))
    np.testing.assert_array_equal(X, before)


def test_memory_stays_flat_while_a_large_stream_passes():
    script = Path(__file__).parents[1] / "support" / "large_stream.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    passed, grown = map(float, done.stdout.split())
    assert passed > 1.5e9
    assert grown < 0.3e9


def test_no_bar_is_shown_off_a_terminal(capsys):
    run(ROUNDS)
    assert capsys.readouterr() == ("", "")


def test_a_bar_shows_rounds_and_loss_when_asked_for(capsys):
    done = run(ROUNDS, progress=True)
    shown = capsys.readouterr().err
    assert "9000/9000" in shown
    assert " rounds/s" in shown
    assert f"loss {done.losses.mean():.4g}" in shown


def test_a_bar_can_do_without_knowing_the_length(capsys):
    run(pieces(5_000, 4_000), progress=True)
    assert "9000 rounds" in capsys.readouterr().err


def test_a_log_gets_a_line_each_minute(capsys, monkeypatch):
    monkeypatch.setattr(MinuteLines, "EVERY", 0.0)
    done = run(pieces(5_000, 4_000))
    *_, last = capsys.readouterr().err.splitlines()
    assert last == f"olx: 9,000 rounds after 0 min; loss {done.losses.mean():.4g}"
    run(ROUNDS, progress=False)
    assert capsys.readouterr().err == ""


def test_a_bar_is_forbidden(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run(ROUNDS, progress=False)
    assert capsys.readouterr().err == ""


def test_a_bar_is_shown_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run(ROUNDS)
    assert "9000/9000" in capsys.readouterr().err


def spoilt(leaf, place, value):
    leaf = leaf.copy()
    leaf[place] = value
    return leaf


BAD = olx.Rounds(spoilt(X, (3_001, 2), np.nan), ROUNDS.outcome)
SECOND = next(pieces(4_000))
ENCODED = (
    ": two labels as np.where(labels == 'yes', 1.0, -1.0), classes as np.unique(labels, "
    "return_inverse=True)[1]."
)
REFUSALS = {
    "nan": (
        lambda: BAD,
        ValueError,
        "rounds.context holds nan at row 3001, column 2; clean it first.",
    ),
    "nan in a later piece": (
        lambda: pieces(1_000, 1_500, 6_500, rounds=BAD),
        ValueError,
        "rounds.context holds nan at row 3001, column 2; clean it first.",
    ),
    "infinite outcome": (
        lambda: ROUNDS._replace(outcome=spoilt(ROUNDS.outcome, 8_999, -np.inf)),
        ValueError,
        "rounds.outcome holds -inf at row 8999; clean it first.",
    ),
    "two infinities that meet": (
        lambda: ROUNDS._replace(context=spoilt(spoilt(X, (7, 1), np.inf), (8, 1), -np.inf)),
        ValueError,
        "rounds.context holds inf at row 7, column 1; clean it first.",
    ),
    "nan in a weight": (
        lambda: ROUNDS._replace(weight=spoilt(np.ones(9_000), 4, np.nan)),
        ValueError,
        "rounds.weight must be non-negative, got nan at row 4.",
    ),
    "nan in an image": (
        lambda: olx.Rounds(spoilt(np.ones((9, 2, 2)), (5, 1, 0), np.nan), np.ones(9)),
        ValueError,
        "rounds.context holds nan at row 5, column 1, 0; clean it first.",
    ),
    "width": (
        lambda: [SECOND, SECOND._replace(context=np.ones((4_000, 5)))],
        TypeError,
        "rounds.context of the chunk at round 4000 holds float64[5] per round, the first chunk "
        "float64[4].",
    ),
    "dtype": (
        lambda: [SECOND, SECOND._replace(context=np.float32(SECOND.context))],
        TypeError,
        "rounds.context of the chunk at round 4000 holds float32[4] per round, the first chunk "
        "float64[4].",
    ),
    "labels of another type": (
        lambda: [SECOND, SECOND._replace(outcome=np.ones(4_000, int))],
        TypeError,
        "rounds.outcome of the chunk at round 4000 holds int64[] per round, the first chunk "
        "float64[].",
    ),
    "labels in words": (
        lambda: ROUNDS._replace(outcome=np.full(9_000, "spam")),
        TypeError,
        f"rounds.outcome holds <U4; give real numbers{ENCODED}",
    ),
    "labels of all kinds": (
        lambda: ROUNDS._replace(outcome=np.array([1.0, None] * 4_500)),
        TypeError,
        f"rounds.outcome holds object; give real numbers{ENCODED}",
    ),
    "structure": (
        lambda: [SECOND, SECOND._replace(weight=np.ones(4_000))],
        TypeError,
        "the chunk at round 4000 has structure Rounds(context=*, outcome=*, weight=*), the first "
        "has Rounds(context=*, outcome=*, weight=None); give chunks of one structure.",
    ),
    "lengths": (
        lambda: [SECOND, SECOND._replace(outcome=np.ones(3))],
        TypeError,
        "leaves of `rounds` differ in length (rounds.context: 4000, rounds.outcome: 3); give one "
        "row per round.",
    ),
    "not rounds": (
        lambda: [SECOND, SECOND.context],
        TypeError,
        "`rounds` must be a Rounds, got ndarray in an iterable; put arrays into "
        "`olx.Rounds(contexts, outcomes)`, one row per round.",
    ),
    "no piece": (lambda: iter([]), ValueError, "the stream is empty."),
    "no round": (
        lambda: olx.Rounds(np.zeros((0, 4)), np.zeros(0)),
        ValueError,
        "`rounds` is empty.",
    ),
    "empty piece": (
        lambda: [SECOND, olx.Rounds(np.zeros((0, 4)), np.zeros(0))],
        ValueError,
        "`rounds` is empty.",
    ),
    "nothing": (
        lambda: olx.Rounds(None, None),
        TypeError,
        "`rounds` holds no array; give `olx.Rounds(contexts, outcomes)`.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_refuses(name):
    stream, kind, message = REFUSALS[name]
    with pytest.raises(kind) as caught:
        run(stream())
    assert str(caught.value) == f"run: {message}"


def test_a_sweep_refuses_in_its_own_name():
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.1, 0.2]))
    with pytest.raises(
        ValueError, match=r"^sweep: rounds\.context holds nan at row 3001, column 2"
    ):
        olx.sweep(learners, losses.squared, BAD, START)


def test_large_finite_numbers_are_no_reason_to_refuse():
    rounds = ROUNDS._replace(context=np.full((9_000, 4), 1e305))
    assert run(rounds, olx.linear(olx.ogd(1e-300))).losses.shape == (9_000,)


@pytest.mark.parametrize("row", [2, 7_000])
def test_a_refusal_leaves_a_checkpoint_from_which_the_clean_stream_goes_on(row, tmp_path):
    bad = ROUNDS._replace(context=spoilt(X, (row, 0), np.nan))
    lengths = 3_000, 3_000, 3_000
    with pytest.raises(ValueError, match=f"nan at row {row}, column 0"):
        run(pieces(*lengths, rounds=bad), checkpoint=olx.checkpoint(tmp_path, every=1))
    seen = run(pieces(*lengths), checkpoint=olx.checkpoint(tmp_path, every=1))
    chex.assert_trees_all_equal(seen, run(pieces(*lengths)))
