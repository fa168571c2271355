"""A run that is interrupted ends with the bits of one that was not."""

import itertools
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import killed
import noisy
import numpy as np
import pytest
from killed import JOBS, leaves_of
from scipy.sparse import csr_array
from table import KINDS, TABLE

import olx
from olx import losses, mirrors, regularizers

X = np.random.default_rng(0).normal(size=(500, 3))
ROUNDS = olx.Rounds(X, X @ np.array([1.0, -0.5, 0.2]))
LEARNER = olx.linear(olx.ogd(0.1))
START = jnp.zeros(3)


class Interruption(Exception):
    pass


def cut(rounds, size):
    length = jax.tree.leaves(rounds)[0].shape[0]
    for start in range(0, length, size):
        yield jax.tree.map(lambda leaf, rows=slice(start, start + size): leaf[rows], rounds)


def broken_off(pieces, after):
    for i, piece in enumerate(pieces):
        if i == after:
            raise Interruption
        yield piece


def run(rounds=None, learner=LEARNER, loss=losses.squared, params=START, **options):
    rounds = cut(ROUNDS, 100) if rounds is None else rounds
    return olx.run(learner, loss, rounds, params, **options)


def interrupted(directory, after=3, **options):
    with pytest.raises(Interruption):
        run(broken_off(cut(ROUNDS, 100), after), checkpoint=saving(directory), **options)


def saving(directory, every=1):
    return olx.checkpoint(directory, every=every)


def steps(directory):
    return sorted(int(path.stem) for path in directory.glob("steps/*.step"))


def same_bits(seen, wanted):
    assert jax.tree.structure(seen) == jax.tree.structure(wanted)
    for a, b in zip(leaves_of(seen), leaves_of(wanted), strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_learner_resumes_to_the_bit(name, tmp_path, retune):
    retune(CHUNK_ROUNDS=32)  # compiled for `test_run` too
    learner, loss, rounds, params, *_ = TABLE[name]
    play = lambda pieces, **options: olx.run(
        learner, loss, pieces, params, record=olx.record.trace, **options
    )
    with pytest.raises(Interruption):
        play(broken_off(cut(rounds, 12), 1), checkpoint=saving(tmp_path))
    assert steps(tmp_path) == [12]
    whole = play(cut(rounds, 12))
    same_bits(whole, play(rounds))
    same_bits(play(cut(rounds, 12), checkpoint=saving(tmp_path)), whole)


def test_a_process_killed_at_a_random_moment_resumes_to_the_bit(tmp_path):
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    start = lambda: subprocess.Popen([sys.executable, killed.__file__, tmp_path])
    saves = lambda: sum(1 for _ in tmp_path.glob("*/steps/*.step"))
    worker, moment = start(), chance.randrange(1, 8 * (len(JOBS) - 1))
    while worker.poll() is None and saves() < moment:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.1))
    os.kill(worker.pid, signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL, f"seed {seed}"
    assert start().wait() == 0, f"seed {seed}"
    for name in JOBS:
        seen = np.load(tmp_path / f"{name}.npz")
        wanted = leaves_of(killed.play(name))
        assert len(seen.files) == len(wanted)
        for a, b in zip(seen.values(), wanted, strict=True):
            assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes()), f"{name}, seed {seed}"


def missed(feedback):
    return {"far": abs(feedback.action - feedback.outcome) > 0.1, "paid": feedback.value}


@pytest.mark.parametrize("keep", [olx.keep.every(30), olx.keep.log_spaced(5), olx.keep.totals])
def test_thinned_curves_resume_to_the_bit(keep, tmp_path):
    options = {"keep": keep, "record": olx.record.trace, "measure": missed}
    interrupted(tmp_path, **options)
    seen = run(checkpoint=saving(tmp_path), **options)
    same_bits(seen, run(**options))


@pytest.mark.parametrize("every", [2, 5, 64])
def test_how_often_it_is_saved_does_not_show(every, tmp_path):
    with pytest.raises(Interruption):
        run(broken_off(cut(ROUNDS, 100), 4), checkpoint=saving(tmp_path, every))
    assert steps(tmp_path) == list(range(100 * every, 401, 100 * every))
    same_bits(run(checkpoint=saving(tmp_path, every)), run())


def test_a_stream_in_memory_resumes(tmp_path, monkeypatch):
    x = np.random.default_rng(1).normal(size=(140_000, 3))
    rounds = olx.Rounds(x, x[:, 0])  # three chunks
    whole = run(rounds)
    stop_after(1, lambda: run(rounds, checkpoint=saving(tmp_path)), monkeypatch)
    assert len(steps(tmp_path)) == 1
    same_bits(run(rounds, checkpoint=saving(tmp_path)), whole)


def test_a_sweep_resumes_to_the_bit(tmp_path):
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.01, 0.1, 1e80]))
    play = lambda pieces, **options: olx.sweep(
        learners,
        losses.squared,
        pieces,
        START,
        record=olx.record.actions,
        keep=olx.keep.every(70),
        **options,
    )
    with pytest.raises(Interruption):
        play(broken_off(cut(ROUNDS, 100), 3), checkpoint=saving(tmp_path))
    same_bits(play(cut(ROUNDS, 100), checkpoint=saving(tmp_path)), play(cut(ROUNDS, 100)))


def test_a_key_in_the_state_is_saved(tmp_path):
    learner = noisy.LEARNER
    interrupted(tmp_path, learner=learner, record=olx.record.trace)
    seen = run(learner=learner, record=olx.record.trace, checkpoint=saving(tmp_path))
    same_bits(seen, run(learner=learner, record=olx.record.trace))
    assert jnp.issubdtype(seen.state[1].dtype, jax.dtypes.prng_key)


def test_a_learner_without_a_state_is_saved(tmp_path):
    constant = lambda _, state, x: jnp.sum(x)
    nothing = olx.Learner(None, lambda _, params: None, constant, lambda _, state, feedback: None)
    interrupted(tmp_path, learner=nothing)
    same_bits(run(learner=nothing, checkpoint=saving(tmp_path)), run(learner=nothing))


def test_a_finished_run_is_not_played_again(tmp_path):
    calls = []

    def loss(score, y):
        jax.debug.callback(lambda: calls.append(1))
        return (score - y) ** 2

    first = run(loss=loss, checkpoint=saving(tmp_path))
    jax.effects_barrier()
    played = len(calls)
    assert played >= 500
    again = run(loss=loss, checkpoint=saving(tmp_path))
    jax.effects_barrier()
    assert len(calls) == played
    same_bits(again, first)


def test_one_checkpoint_serves_again_and_again(tmp_path):
    place = saving(tmp_path)
    with pytest.raises(Interruption):
        run(broken_off(cut(ROUNDS, 100), 3), checkpoint=place)
    same_bits(run(checkpoint=place), run())
    same_bits(run(checkpoint=place), run())


def test_the_curve_of_a_finished_run_is_read_whole(tmp_path):
    whole = run(checkpoint=saving(tmp_path), keep=olx.keep.every(30))
    assert len(steps(tmp_path)) == 5
    same_bits(run(checkpoint=saving(tmp_path), keep=olx.keep.every(30)), whole)


def test_a_longer_stream_goes_on_from_where_a_shorter_one_ended(tmp_path):
    run(cut(jax.tree.map(lambda leaf: leaf[:300], ROUNDS), 100), checkpoint=saving(tmp_path))
    same_bits(run(checkpoint=saving(tmp_path)), run())


def named_loss(score, y):
    return jnp.abs(score - y)


def first_loss(score, y):
    return (score - y) ** 2


def mean_loss(score, y):
    return (score - y) ** 2 / 2


OTHERS = {
    "eta": ({"learner": olx.linear(olx.ogd(0.2))}, "learner"),
    "learner": (
        {"learner": olx.linear(olx.ftrl(0.1, regularizers.adagrad()))},
        "learner, start, program",
    ),
    "map": ({"learner": olx.linear(olx.md(0.1, mirrors.hypentropy(1.0)))}, "learner, program"),
    "params": ({"params": jnp.ones(3)}, "start"),
    "loss": ({"loss": named_loss}, "loss, program"),
    "stream": ({"rounds": olx.Rounds(X.astype(np.float32), X[:, 0])}, "stream"),
    "keep": ({"keep": olx.keep.every(100)}, "keep"),
    "record": ({"record": olx.record.actions}, "record, program"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_run_is_refused_and_told_what_differs(name, tmp_path):
    changed, words = OTHERS[name]
    interrupted(tmp_path)
    with pytest.raises(ValueError, match=r"^run: the checkpoint in ") as caught:
        run(**changed, checkpoint=saving(tmp_path))
    assert str(caught.value) == (
        f"run: the checkpoint in {tmp_path} is of another run; they differ in {words}. Give "
        "another directory, or remove this one."
    )
    same_bits(run(checkpoint=saving(tmp_path)), run())


@pytest.mark.parametrize("option", ["loss", "record"])
def test_functions_are_told_apart_by_what_they_do(option, tmp_path):
    """Two functions of one name, as in a file that was edited."""
    pairs = {
        "loss": (lambda a, y: (a - y) ** 2, lambda a, y: jnp.abs(a - y)),
        "record": (lambda state, feedback: feedback.value, lambda state, feedback: feedback.grad),
    }
    one, other = pairs[option]
    interrupted(tmp_path, **{option: one})
    with pytest.raises(ValueError, match=r"they differ in program\."):
        run(**{option: other}, checkpoint=saving(tmp_path))


def test_other_curves_of_one_rule_are_told_apart(tmp_path):
    interrupted(tmp_path, keep=olx.keep.every(10))
    with pytest.raises(ValueError, match=r"they differ in keep\."):
        run(keep=olx.keep.every(20), checkpoint=saving(tmp_path))


def test_a_sweep_is_not_a_run(tmp_path):
    interrupted(tmp_path)
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.1]))
    with pytest.raises(ValueError, match=r"^sweep: the checkpoint in .* is of another run"):
        olx.sweep(learners, losses.squared, ROUNDS, START, checkpoint=saving(tmp_path))


def test_a_stream_shorter_than_what_was_played_is_refused(tmp_path):
    run(checkpoint=saving(tmp_path))
    with pytest.raises(
        ValueError, match="the stream ends after 200 rounds, the checkpoint after 500"
    ):
        run(cut(jax.tree.map(lambda leaf: leaf[:200], ROUNDS), 100), checkpoint=saving(tmp_path))


def test_a_directory_without_a_save_is_open_to_any_run(tmp_path):
    interrupted(tmp_path, after=1, loss=first_loss)
    (tmp_path / "steps" / "100.step").unlink()
    same_bits(run(loss=mean_loss, checkpoint=saving(tmp_path)), run(loss=mean_loss))


def test_a_half_written_step_is_ignored(tmp_path):
    interrupted(tmp_path)
    half = (tmp_path / "steps" / "300.step").read_bytes()[:500]
    (tmp_path / "steps" / "400.draft").write_bytes(half)
    same_bits(run(checkpoint=saving(tmp_path)), run())


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES = {
    "a bit of the first step": (lambda place: flip(place / "100.step", 300), 100),
    "a bit of the seal": (lambda place: flip(place / "200.step", -1), 200),
    "the last byte": (lambda place: cut_short(place / "300.step"), 300),
    "all bytes": (lambda place: (place / "300.step").write_bytes(b""), 300),
    "a step is gone": (lambda place: (place / "200.step").unlink(), 300),
    "another name": (lambda place: (place / "300.step").rename(place / "400.step"), 400),
    "a folder": (
        lambda place: [(place / "300.step").unlink(), (place / "300.step").mkdir()],
        300,
    ),
    "twice the same": (lambda place: shutil.copy(place / "200.step", place / "300.step"), 300),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_step_is_refused_and_nothing_is_deleted(name, tmp_path):
    damage, step = DAMAGES[name]
    interrupted(tmp_path)
    damage(tmp_path / "steps")
    there = sorted((tmp_path / "steps").iterdir())
    earlier = [other for other in steps(tmp_path) if other < step]
    again = f"to go on from round {earlier[-1]}" if earlier else "to start again"
    with pytest.raises(ValueError, match="is damaged") as caught:
        run(checkpoint=saving(tmp_path))
    assert str(caught.value) == (
        f"run: {tmp_path / 'steps' / f'{step}.step'} is damaged, or a step before it is missing. "
        f"Remove it and all later steps {again}, or give another directory."
    )
    assert sorted((tmp_path / "steps").iterdir()) == there


def test_without_the_damaged_steps_it_goes_on(tmp_path):
    interrupted(tmp_path)
    flip(tmp_path / "steps" / "200.step", 300)
    for name in ("200.step", "300.step"):
        (tmp_path / "steps" / name).unlink()
    same_bits(run(checkpoint=saving(tmp_path)), run())


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}"])
def test_a_damaged_description_is_refused(text, tmp_path):
    interrupted(tmp_path)
    path = tmp_path / "run.json"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(ValueError, match=r"^run: .*(run.json, the description|is of another run)"):
        run(checkpoint=saving(tmp_path))


def test_any_flipped_bit_is_found(tmp_path):
    interrupted(tmp_path, record=olx.record.actions, keep=olx.keep.every(30))
    whole = run(record=olx.record.actions, keep=olx.keep.every(30))
    chance = np.random.default_rng(0)
    for _ in range(24):
        place = tmp_path / "copy"
        shutil.copytree(tmp_path, place, ignore=shutil.ignore_patterns("copy"))
        path = place / "steps" / f"{chance.choice([100, 200, 300])}.step"
        flip(path, int(chance.integers(path.stat().st_size)))
        with pytest.raises(ValueError, match="is damaged"):
            run(record=olx.record.actions, keep=olx.keep.every(30), checkpoint=saving(place))
        shutil.rmtree(place)
    same_bits(
        run(record=olx.record.actions, keep=olx.keep.every(30), checkpoint=saving(tmp_path)), whole
    )


@pytest.mark.parametrize("at", [0, 99, 100, 250, 299])
@pytest.mark.parametrize("leaf", ["context", "outcome"])
def test_a_stream_that_has_changed_anywhere_is_refused(leaf, at, tmp_path):
    interrupted(tmp_path)
    other = getattr(ROUNDS, leaf).copy()
    other[at] += 1e-9
    stop = 100 * (1 + at // 100)
    with pytest.raises(ValueError, match="the stream has changed") as caught:
        run(cut(ROUNDS._replace(**{leaf: other}), 100), checkpoint=saving(tmp_path))
    assert str(caught.value) == (
        f"run: the stream has changed between rounds {stop - 100} and {stop}, which the checkpoint "
        f"in {tmp_path} has played already. Give the stream as it was, or another directory."
    )
    assert steps(tmp_path) == [100, 200, 300]


def test_rounds_that_are_still_to_come_may_change(tmp_path):
    interrupted(tmp_path)
    later = X.copy()
    later[300:] += 1
    changed = ROUNDS._replace(context=later)
    same_bits(run(cut(changed, 100), checkpoint=saving(tmp_path)), run(cut(changed, 100)))


def test_a_sparse_stream_that_has_changed_is_refused(tmp_path):
    rows = np.where(np.abs(X) > 0.5, X, 0.0)
    play = lambda rows, **options: run(
        ROUNDS._replace(context=olx.streams.sparse_rows(csr_array(rows))), **options
    )
    done = play(rows, checkpoint=saving(tmp_path))
    same_bits(play(rows, checkpoint=saving(tmp_path)), done)
    moved = rows[:, [1, 0, 2]]
    with pytest.raises(ValueError, match="the stream has changed between rounds 0 and 500"):
        play(moved, checkpoint=saving(tmp_path))


def test_the_way_a_stream_is_cut_does_not_change_it(tmp_path):
    interrupted(tmp_path)
    seen = run(cut(ROUNDS, 60), checkpoint=saving(tmp_path))
    np.testing.assert_array_equal(seen.losses, run().losses)


def closing_over(target):
    return lambda score, y: (score - y) ** 2 + jnp.sum(jnp.asarray(target)) * score


def nested(target):
    return lambda score, y: jax.jit(lambda s: s * jnp.asarray(target)[2])(score - y) ** 2


@pytest.mark.parametrize("make", [closing_over, nested])
def test_a_loss_that_closes_over_another_array_is_another(make, tmp_path):
    long = np.linspace(0.0, 1e-3, 2000)
    other = long.copy()
    other[2] = 0.5
    interrupted(tmp_path, loss=make(long))
    same_bits(run(loss=make(long), checkpoint=saving(tmp_path)), run(loss=make(long)))
    with pytest.raises(ValueError, match=r"they differ in program\."):
        run(loss=make(other), checkpoint=saving(tmp_path))


def test_a_map_that_closes_over_another_array_is_another(tmp_path):
    make = lambda scale: olx.linear(
        olx.omd(0.1, olx.mirror_map(conjugate=lambda t: jnp.sum(jnp.asarray(scale) * t**2)))
    )
    interrupted(tmp_path, learner=make(np.array([0.5, 0.5, 0.5])))
    with pytest.raises(ValueError, match="is of another run; they differ in program"):
        run(learner=make(np.array([0.5, 0.6, 0.5])), checkpoint=saving(tmp_path))


def test_a_rule_that_keeps_other_rounds_is_another(tmp_path):
    make = lambda step: lambda start, stop: np.arange(start + 1, stop + 1)[::step]
    interrupted(tmp_path, keep=make(7))
    with pytest.raises(ValueError, match=r"they differ in keep\."):
        run(keep=make(8), checkpoint=saving(tmp_path))


def test_two_runs_at_once_do_not_share_a_directory(tmp_path):
    def pieces():
        yield from cut(ROUNDS, 250)
        with pytest.raises(BlockingIOError) as caught:
            run(checkpoint=saving(tmp_path))
        who = f"process {os.getpid()} on {platform.node()}"
        assert str(caught.value) == (
            f"run: another run ({who}) is using the checkpoint in {tmp_path}. Wait until it ends, "
            "or give another directory."
        )

    same_bits(run(pieces(), checkpoint=saving(tmp_path)), run(cut(ROUNDS, 250)))
    run(cut(ROUNDS, 250), checkpoint=saving(tmp_path))


@pytest.mark.parametrize("count", [1, 64, 65])
def test_a_sweep_in_blocks_resumes_to_the_bit(count, tmp_path, monkeypatch, retune):
    retune(CHUNK_ROUNDS=128)
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.geomspace(1e-3, 0.1, count))
    play = lambda **options: olx.sweep(learners, losses.squared, ROUNDS, START, **options)
    stop_after(2, lambda: play(checkpoint=saving(tmp_path)), monkeypatch)
    assert steps(tmp_path) == [128, 256]
    same_bits(play(checkpoint=saving(tmp_path)), play())


def stop_after(saves, play, monkeypatch):
    """A run that breaks off after so many saves."""
    save, count = olx.engine.checkpoint.Checkpoint.save, itertools.count(1)

    def once(self, *saved):
        save(self, *saved)
        if next(count) == saves:
            raise Interruption

    with monkeypatch.context() as patch:
        patch.setattr(olx.engine.checkpoint.Checkpoint, "save", once)
        with pytest.raises(Interruption):
            play()


def test_it_is_saved_a_whole_number_of_times(tmp_path):
    with pytest.raises(
        ValueError, match=r"checkpoint: `every` must be an integer of at least 1, got 0"
    ):
        olx.checkpoint(tmp_path, every=0)
