"""Compile time: the first call minus the second, for several lengths, widths and sweeps.

Every measurement uses a new `record` function, so the engine compiles a new program. The last part
is the cost of a call without compilation.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, targets
from benchmarks.dense import ADA, HINGE, LOG, OGD
from benchmarks.race import Contestant, race
from benchmarks.report import Group, Row, only
from benchmarks.settings import Settings

LENGTHS, WIDTHS, SWEEPS = (1000, 50_000), (10, 50, 1000), (8, 512)
TRIES = 2  # the faster one counts: other work only adds time


class Subject(NamedTuple):
    name: str
    learner: olx.Learner
    loss: Callable
    game: Callable[[int, int], tuple[olx.Rounds, Any]]  # (length, width) -> rounds, params


def _cosh(w):
    return jnp.sum(jnp.cosh(w))


def _rows(length: int, width: int) -> tuple[olx.Rounds, Any]:
    return olx.Rounds(*data.dense(length, width)), jnp.zeros(width)


def _experts(length: int, width: int) -> tuple[olx.Rounds, Any]:
    losses = np.random.default_rng(0).random((length, width), np.float32)
    return olx.Rounds(None, losses), jnp.full(width, 1 / width)


HYPERBOLIC = olx.linear(olx.omd(0.1, olx.mirrors.hypentropy(0.5)))
NUMERIC = olx.linear(olx.omd(0.1, olx.mirror_map(_cosh, separable=True)))
SUBJECTS = (
    Subject("OGD hinge", OGD, HINGE, _rows),
    Subject("OGD logistic", OGD, LOG, _rows),
    Subject("AdaGrad hinge", ADA, HINGE, _rows),
    Subject("Hedge", olx.hedge(0.1), olx.losses.linear_loss, _experts),
    Subject("hyperbolic entropy", HYPERBOLIC, HINGE, _rows),
    Subject("cosh, conjugate in numbers", NUMERIC, HINGE, _rows),
)


def measure(settings: Settings) -> Group:
    olx.run(OGD, HINGE, *_rows(8, 2))  # the engine probes the compiler once
    rows, timings = [], {}
    for subject in SUBJECTS:
        print(f"  {subject.name}", flush=True)
        sizes = [(settings.size(T, T // 10), d) for T in LENGTHS for d in WIDTHS]
        seen = {f"T={T:,}, d={d:,}": _compiles(_run, subject, T, d) for T, d in sizes}
        rows += _judged(subject.name, "run", seen)
        many = {f"N={n}": _compiles(_sweep(n), subject, 2000, 50) for n in SWEEPS}
        rows += _judged(subject.name, "sweep", many)
        timings[subject.name] = {**seen, **many}
    overhead = race(_calls(), settings.rounds * 4)
    timings["overhead"] = [timing.as_dict() for timing in overhead.values()]
    rows += [only("fixed cost of a call, d=10", timing) for timing in overhead.values()]
    return Group("Compilation and the price of a call", rows, timings)


def _run(record: Callable, subject: Subject, rounds: olx.Rounds, start: Any) -> Any:
    return olx.run(subject.learner, subject.loss, rounds, start, record=record)


def _sweep(configurations: int) -> Callable:
    def sweep(record: Callable, subject: Subject, rounds: olx.Rounds, start: Any) -> Any:
        same = lambda leaf: np.full(configurations, leaf, np.float32)
        learners = jax.tree.map(same, subject.learner)
        return olx.sweep(learners, subject.loss, rounds, start, record=record, keep=olx.keep.totals)

    return sweep


def _compiles(play: Callable, subject: Subject, length: int, width: int) -> float:
    """Seconds of a first call minus those of a second."""
    rounds, start = subject.game(length, width)

    def once() -> float:
        jax.clear_caches()
        record = lambda state, feedback: feedback.action
        spent = []
        for _ in range(2):
            begin = time.perf_counter()
            play(record, subject, rounds, start)
            spent.append(time.perf_counter() - begin)
        return spent[0] - spent[1]

    return min(once() for _ in range(TRIES))


def _judged(name: str, how: str, seen: dict[str, float]) -> list[Row]:
    target = targets.at_most(targets.COMPILE_SECONDS)
    rows = [Row(f"{name}, {how}", where, spent, target, "s") for where, spent in seen.items()]
    spread = max(seen.values()) / min(seen.values())
    limit = targets.at_most(targets.COMPILE_SPREAD)
    return [*rows, Row(f"{name}, {how}", "slowest / fastest of these", spread, limit)]


def _calls() -> list[Contestant]:
    """Whole calls of `olx.run`; one unit of work is one call."""

    def call(length: int) -> Contestant:
        rounds, start = _rows(length, 10)
        run = lambda: olx.run(OGD, HINGE, rounds, start, record=olx.record.actions)
        return Contestant(f"olx.run, T={length:,}", lambda: run, 1)

    return [call(1), call(1000)]
