"""Checkpoints that are damaged, in use, or of another run than the one that is to be resumed."""

import atexit
import fcntl
import functools
import itertools
import json
import shutil
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from bad_inputs import Bad
from scipy.sparse import csr_array

import olx
from olx import losses, regularizers
from olx.convex import sets

X = np.random.default_rng(0).normal(size=(50, 3))
Y = X @ np.array([1.0, -0.5, 0.2])
GIVEN = {
    "learner": olx.linear(olx.ogd(0.1)),
    "loss": losses.squared,
    "rounds": olx.Rounds(X, Y),
    "params": np.zeros(3),
}
COUNT = itertools.count()


class BrokenOff(Exception):
    pass


@functools.cache
def folder() -> Path:
    place = Path(tempfile.mkdtemp(prefix="olx-bad-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def play(place, driver=olx.run, stop=5, **changes):
    given = {**GIVEN, **changes}
    loss, learner, params = given.pop("loss"), given.pop("learner"), given.pop("params")
    pieces = cut(given.pop("rounds"), stop)
    return driver(learner, loss, pieces, params, checkpoint=olx.checkpoint(place, 1), **given)


def cut(rounds, stop):
    for i in range(0, len(rounds.outcome), 10):
        if i == 10 * stop:
            raise BrokenOff
        yield jax.tree.map(lambda leaf, i=i: leaf[i : i + 10], rounds)


@functools.cache
def saved(keep=None) -> Path:
    """The folder of a run that broke off after three saves."""
    place = folder() / f"saved{next(COUNT)}"
    try:
        play(place, stop=3, keep=keep)
    except BrokenOff:
        return place
    raise AssertionError


def resumed(damage=None, keep=None, driver=olx.run, **changes):
    place = folder() / str(next(COUNT))
    shutil.copytree(saved(keep), place)
    if damage is not None:
        damage(place)
    return play(place, driver, **{"keep": keep, **changes})


def damaged(damage, says=r"run: .*\.step is damaged, or a step before it is missing\. Remove"):
    return Bad(lambda: resumed(damage), ValueError, says)


def other(words, **changes):
    says = f"run: the checkpoint in .* is of another run; they differ in {words}\\. Give another"
    return Bad(lambda: resumed(**changes), ValueError, says)


def stream(start, stop, **changes):
    says = f"run: the stream has changed between rounds {start} and {stop}, which .* Give the"
    rounds = GIVEN["rounds"]._replace(**changes)
    return Bad(lambda: resumed(rounds=rounds), ValueError, says)


def on_step(number, act):
    return lambda place: act(place / "steps" / f"{number}.step")


def flipped(at):
    def act(path):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return act


def replaced(text):
    return lambda place: (place / "run.json").write_bytes(text)


def without(name):
    def act(place):
        there = json.loads((place / "run.json").read_text())
        del there[name]
        (place / "run.json").write_text(json.dumps(there))

    return act


def put(array, row, value):
    array = array.copy()
    array[row] = value
    return array


def in_use():
    place = folder() / str(next(COUNT))
    place.mkdir()
    with (place / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        play(place)


def of_another_version():
    place = folder() / str(next(COUNT))
    (place / "steps" / "10").mkdir(parents=True)
    play(place)


def a_file():
    place = folder() / str(next(COUNT))
    place.write_text("not a folder")
    play(place)


def under_a_file():
    place = folder() / str(next(COUNT))
    place.write_text("not a folder")
    play(place / "inside")


def a_folder(path):
    path.unlink()
    path.mkdir()


def swapped(place):
    one, two = place / "steps" / "10.step", place / "steps" / "20.step"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def constant_loss(shift):
    return lambda score, y: (score - y) ** 2 + jnp.asarray(shift)[1] * score


def value_twice(state, feedback):
    return 2 * feedback.value


def every_third(start, stop):
    return np.arange(start + 1, stop + 1)[2::3]


def missed(feedback):
    return feedback.value > 0.1


NO_DESCRIPTION = r"run: .*run\.json, the description of the saved run, is missing or damaged"
LONG = np.linspace(0, 1, 3000)

BAD = {
    **{
        f"step {number}, byte {at} flipped": damaged(on_step(number, flipped(at)))
        for number, at in itertools.product([10, 20, 30], [0, 8, 40, 300, -33, -1])
    },
    "a step cut short": damaged(on_step(30, lambda p: p.write_bytes(p.read_bytes()[:-1]))),
    "a step cut to its seal": damaged(on_step(30, lambda p: p.write_bytes(p.read_bytes()[-32:]))),
    "a step of one byte": damaged(on_step(20, lambda p: p.write_bytes(b"1"))),
    "an empty step": damaged(on_step(20, lambda p: p.write_bytes(b""))),
    "a step with more at its end": damaged(
        on_step(10, lambda p: p.write_bytes(p.read_bytes() + b"1"))
    ),
    "a step of zeros": damaged(on_step(10, lambda p: p.write_bytes(bytes(p.stat().st_size)))),
    "a folder in place of a step": damaged(on_step(30, a_folder)),
    "the first step is gone": damaged(on_step(10, Path.unlink)),
    "a step in the middle is gone": damaged(on_step(20, Path.unlink)),
    "a step under another number": damaged(on_step(30, lambda p: p.rename(p.with_name("40.step")))),
    "a step twice": damaged(on_step(30, lambda p: shutil.copy(p, p.with_name("40.step")))),
    "two steps swapped": damaged(swapped),
    "a step of another run": damaged(
        on_step(30, lambda p: shutil.copy(saved(olx.keep.every(7)) / "steps" / "30.step", p))
    ),
    "a made-up step": damaged(lambda place: (place / "steps" / "40.step").write_bytes(b"x" * 99)),
    "no description": damaged(lambda place: (place / "run.json").unlink(), NO_DESCRIPTION),
    "an empty description": damaged(replaced(b""), NO_DESCRIPTION),
    "a description cut short": damaged(replaced(b'{"learner": "'), NO_DESCRIPTION),
    "a description that is a list": damaged(replaced(b"[1]"), NO_DESCRIPTION),
    "a description that is no text": damaged(replaced(b"\xff\xfe\x00"), NO_DESCRIPTION),
    "a description without a name": damaged(
        without("program"), r"is of another run; they differ in program\."
    ),
    "a description of nothing": damaged(replaced(b"{}"), r"is of another run; they differ in "),
    "a folder in use": Bad(
        in_use,
        BlockingIOError,
        r"run: another run is using the checkpoint in .* Wait until it ends",
    ),
    "a file in place of the folder": Bad(
        a_file, OSError, r"run: the checkpoint cannot be kept in .* Give another directory"
    ),
    "a folder under a file": Bad(
        under_a_file, OSError, r"run: the checkpoint cannot be kept in .* Give another directory"
    ),
    "another step size": other("learner", learner=olx.linear(olx.ogd(0.1 + 1e-9))),
    "another algorithm": other(
        "learner, start, program", learner=olx.linear(olx.ftrl(0.1, regularizers.adagrad()))
    ),
    "another map": other("learner, program", learner=olx.linear(olx.ogd(0.1, sets.ball(1.0)))),
    "another start": other("start", params=np.full(3, 1e-9)),
    "another loss": other("loss, program", loss=losses.absolute),
    "a loss over an array": other("loss, program", loss=constant_loss(LONG)),
    "another record": other("record, program", record=olx.record.actions),
    "a record of one value": other("record, program", record=value_twice),
    "another keep": Bad(
        lambda: play(copy_of(saved()), keep=olx.keep.every(5)), ValueError, r"they differ in keep\."
    ),
    "another rule of one name": Bad(
        lambda: play(copy_of(saved(olx.keep.every(7))), keep=olx.keep.every(8)),
        ValueError,
        r"they differ in keep\.",
    ),
    "a rule of the user": Bad(
        lambda: play(copy_of(saved(every_third)), keep=olx.keep.every(7)),
        ValueError,
        r"they differ in keep\.",
    ),
    "something measured": Bad(
        lambda: play(copy_of(saved(olx.keep.every(7))), keep=olx.keep.every(7), measure=missed),
        ValueError,
        r"they differ in .*program\.",
    ),
    "weights": other("stream, program", rounds=olx.Rounds(X, Y, np.ones(50))),
    "single precision rows": other("stream", rounds=olx.Rounds(X.astype(np.float32), Y)),
    "a sweep": Bad(
        lambda: resumed(
            driver=olx.sweep, learner=olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=[0.1])
        ),
        ValueError,
        "sweep: the checkpoint in .* is of another run; they differ in learner",
    ),
    "sparse rows": Bad(
        lambda: resumed(rounds=olx.Rounds(olx.streams.sparse_rows(csr_array(X)), Y)),
        ValueError,
        "run: the checkpoint in .* is of another run; they differ in start, program",
    ),
    "a context of the first step": stream(0, 10, context=put(X, 3, 1.0)),
    "a context of the second step": stream(10, 20, context=put(X, 19, 1.0)),
    "an outcome of the last step": stream(20, 30, outcome=put(Y, 29, 1e-12)),
    "the sign of a zero": Bad(
        lambda: play(zero_saved(), rounds=GIVEN["rounds"]._replace(context=put(X, 5, -0.0))),
        ValueError,
        "run: the stream has changed between rounds 0 and 10",
    ),
    "rows in another order": stream(0, 10, context=X[::-1], outcome=Y[::-1]),
    "a stream that begins later": Bad(
        lambda: resumed(rounds=olx.Rounds(X[1:], Y[1:])),
        ValueError,
        "run: the stream has changed between rounds 0 and 10",
    ),
    "a stream that ends before": Bad(
        lambda: resumed(rounds=olx.Rounds(X[:15], Y[:15])),
        ValueError,
        "run: the stream ends after 15 rounds, the checkpoint after 30; give another directory",
    ),
    "steps of another version": Bad(
        of_another_version,
        ValueError,
        "run: .*steps holds folders; a checkpoint of this version",
    ),
    "saved every 0 chunks": Bad(
        lambda: olx.checkpoint("x", every=0), ValueError, "checkpoint: `every` must be an integer"
    ),
    "saved every half chunk": Bad(
        lambda: olx.checkpoint("x", every=0.5), ValueError, "checkpoint: `every` must be an integer"
    ),
    "a directory of a number": Bad(
        lambda: olx.checkpoint(3), TypeError, "checkpoint: `directory` must be a path, got int"
    ),
    "a path in place of a checkpoint": Bad(
        lambda: olx.run(*GIVEN.values(), checkpoint="here"),
        TypeError,
        r"run: `checkpoint` must be a Checkpoint, got str; make one with `olx\.checkpoint",
    ),
}


def copy_of(place):
    fresh = folder() / str(next(COUNT))
    return Path(shutil.copytree(place, fresh))


def zero_saved():
    place = folder() / str(next(COUNT))
    try:
        play(place, stop=3, rounds=GIVEN["rounds"]._replace(context=put(X, 5, 0.0)))
    except BrokenOff:
        return place
    raise AssertionError
