"""Damage and changes between the interruption of a run and its resumption."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks.resume_jobs import PIECES, ROWS, Job

PLAYED = PIECES // 2 * ROWS


def corrupted(chance: random.Random, job: Job, place: Path, other: Path) -> tuple[str, Job]:
    """Damage the files in `place`; `other` is the folder of an interrupted run."""
    name = chance.choice(list(DAMAGES))
    DAMAGES[name](chance, place, other)
    return name, job


def changed(chance: random.Random, job: Job, place: Path, other: Path) -> tuple[str, Job]:
    """Change the arguments of the driver."""
    name = chance.choice(list(CHANGES))
    return name, CHANGES[name](chance, job)


def _step(chance: random.Random, place: Path) -> Path:
    return chance.choice(sorted(place.glob("steps/*.step")))


def _flip(chance: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _truncate(chance: random.Random, path: Path) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def _lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def _blank(chance: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    low = chance.randrange(len(data))
    data[low : low + 64] = bytes(len(data[low : low + 64]))
    path.write_bytes(data)


def _swap(chance: random.Random, place: Path, other: Path) -> None:
    one, two = chance.sample(sorted(place.glob("steps/*.step")), 2)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def _from_another(chance: random.Random, place: Path, other: Path) -> None:
    path = _step(chance, place)
    shutil.copy(_step(chance, other), path)


def _half_written(chance: random.Random, place: Path, other: Path) -> None:
    data = _step(chance, place).read_bytes()
    (place / "steps" / f"{PLAYED + ROWS}.draft").write_bytes(data[: chance.randrange(len(data))])


def _without_the_last(chance: random.Random, place: Path, other: Path) -> None:
    steps = sorted(place.glob("steps/*.step"), key=lambda path: int(path.stem))
    for path in steps[chance.randrange(len(steps)) :]:
        path.unlink()


DAMAGES: dict[str, Callable] = {
    "a flipped bit": lambda c, place, _: _flip(c, _step(c, place)),
    "a flipped bit near the end": lambda c, place, _: _flip(c, max(place.glob("steps/*.step"))),
    "a step cut short": lambda c, place, _: _truncate(c, _step(c, place)),
    "zeros in a step": lambda c, place, _: _blank(c, _step(c, place)),
    "bytes at the end": lambda c, place, _: _lengthen(_step(c, place)),
    "an empty step": lambda c, place, _: _step(c, place).write_bytes(b""),
    "a step is gone": lambda c, place, _: _step(c, place).unlink(),
    "the last steps are gone": _without_the_last,
    "two steps swapped": _swap,
    "a step under another name": lambda c, place, _: _step(c, place).rename(
        place / "steps" / f"{c.randrange(10**6, 10**7)}.step"
    ),
    "a step of another folder": _from_another,
    "the description of another run": lambda c, place, other: shutil.copy(
        other / "run.json", place / "run.json"
    ),
    "a flipped bit in the description": lambda c, place, _: _flip(c, place / "run.json"),
    "a description cut short": lambda c, place, _: _truncate(c, place / "run.json"),
    "no description": lambda c, place, _: (place / "run.json").unlink(),
    "a half-written step": _half_written,
    "no lock file": lambda c, place, _: (place / "lock").unlink(),
}


def _entry(leaf: str, low: int, high: int) -> Callable[[random.Random, Job], Job]:
    """Change one number in a round between `low` and `high`."""

    def change(chance: random.Random, job: Job) -> Job:
        array = getattr(job.rounds, leaf)
        if array is None:
            array = job.rounds.outcome
            return change_of(chance, job, "outcome", array)
        return change_of(chance, job, leaf, array)

    def change_of(chance: random.Random, job: Job, leaf: str, array: np.ndarray) -> Job:
        array, row = array.copy(), chance.randrange(low, high)
        array[row] = array[(row + 1) % len(array)] if leaf == "outcome" else array[row] / 2
        return job._replace(rounds=job.rounds._replace(**{leaf: array}))

    return change


def _order(chance: random.Random, job: Job) -> Job:
    rows = np.arange(len(job.rounds.outcome))
    one, two = chance.sample(range(PLAYED), 2)
    rows[[one, two]] = two, one
    return job._replace(rounds=jax.tree.map(lambda leaf: leaf[rows], job.rounds))


def _without(chance: random.Random, job: Job) -> Job:
    row = chance.randrange(PLAYED)
    return job._replace(rounds=jax.tree.map(lambda leaf: np.delete(leaf, row, 0), job.rounds))


def _learner(chance: random.Random, job: Job) -> Job:
    def nudged() -> olx.Learner:
        leaves, structure = jax.tree.flatten(job.learner())
        real = [
            i
            for i, leaf in enumerate(leaves)
            if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        ]
        for i in real[:1]:
            leaves[i] = jnp.asarray(leaves[i]) * jnp.float32(1.001)
        return jax.tree.unflatten(structure, leaves)

    return job._replace(learner=nudged)


def _loss(chance: random.Random, job: Job) -> Job:
    constants = np.full(2000, 1e-3, np.float32)
    constants[chance.randrange(2000)] = 0.5
    loss = lambda action, y: job.loss(action, y) + 0 * jnp.sum(jnp.asarray(constants))
    return job._replace(loss=loss)


CHANGES: dict[str, Callable[[random.Random, Job], Job]] = {
    "nothing": lambda c, job: job,
    "a context that was played": _entry("context", 0, PLAYED),
    "an outcome that was played": _entry("outcome", 0, PLAYED),
    "a context still to come": _entry("context", PLAYED, PIECES * ROWS),
    "an outcome still to come": _entry("outcome", PLAYED, PIECES * ROWS),
    "two rounds in another order": _order,
    "a round is missing": _without,
    "weights": lambda c, job: job._replace(
        rounds=job.rounds._replace(weight=np.ones(len(job.rounds.outcome), np.float32))
    ),
    "a number of the learner": _learner,
    "a loss over an array": _loss,
    "another start": lambda c, job: job._replace(start=job.start + 0.125),
    "what is kept": lambda c, job: job._replace(
        options={**job.options, "keep": olx.keep.every(17)}
    ),
    "what is recorded": lambda c, job: job._replace(
        options={**job.options, "record": lambda state, feedback: feedback.value * 2}
    ),
}
