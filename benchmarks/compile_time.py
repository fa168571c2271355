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
from benchmarks.harness import Contestant, Group

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


def measure(group: Group) -> None:
    olx.run(OGD, HINGE, *_rows(8, 2))  # the engine probes the compiler once
    for subject in SUBJECTS:
        print(f"  {subject.name}", flush=True)
        sizes = [(group.size(T, T // 10), d) for T in LENGTHS for d in WIDTHS]
        seen = {f"T={T:,}, d={d:,}": _compiles(_run, subject, T, d) for T, d in sizes}
        many = {f"N={n}": _compiles(_sweep(n), subject, 2000, 50) for n in SWEEPS}
        group.timings[subject.name] = {**seen, **many}
        _judge(group, f"{subject.name}, run", seen)
        _judge(group, f"{subject.name}, sweep", many)
    calls = []
    for length in (1, 1000):  # whole calls of `olx.run`; one unit of work is one call
        rounds, start = _rows(length, 10)
        run = lambda given=(rounds, start): olx.run(OGD, HINGE, *given, record=olx.record.actions)
        calls.append(Contestant(f"olx.run, T={length:,}", lambda run=run: run, 1))
    for name, timing in group.race("overhead", calls, group.rounds * 4).items():
        own = {"unit": "ns", "note": timing.failure}
        group.note("fixed cost of a call, d=10", name, timing.nanoseconds, **own)


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


def _judge(group: Group, case: str, seen: dict[str, float]) -> None:
    for where, spent in seen.items():
        group.note(case, where, spent, most=targets.COMPILE_SECONDS, unit="s")
    spread = max(seen.values()) / min(seen.values())
    group.note(case, "slowest / fastest of these", spread, most=targets.COMPILE_SPREAD)
