"""Hedge with 100 to 1,000,000 experts, against a numba loop and memory speed; also AdaNormalHedge.

Any algorithm with one number per expert must make one pass over memory per round: read a row of
losses, read and write the state. The addition of NumPy in place does the same, and is the lower
limit. Below 10,000 experts this limit is dominated by the cost of a NumPy call.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import targets
from benchmarks.race import Contestant, race
from benchmarks.report import Group, compared
from benchmarks.settings import Settings

EXPERTS = (100, 1000, 10_000, 100_000, 1_000_000)
ETA = 0.05
VALUES = 20_000_000  # the number of losses, 80 MB: larger than the cache
HEDGE = "Hedge of olx"
WIDE = 10_000  # from here on memory speed is the lower limit


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    for experts in EXPERTS:
        case = f"{experts:,} experts"
        print(f"  {case}", flush=True)
        steps = min(20_000, max(2, settings.size(VALUES, 2_000_000) // experts))
        losses = np.random.default_rng(0).random((steps, experts), np.float32)
        held = jnp.asarray(losses)
        ours, loop, floor = _olx(HEDGE, olx.hedge(ETA), held), _numba(losses), _floor(losses)
        host = _olx(f"{HEDGE} from numpy", olx.hedge(ETA), losses)
        tuned = _olx("AdaNormalHedge", olx.experts.ada_normal_hedge(), held)
        seen = race([ours, host, tuned, loop, floor], settings.rounds)
        timings[case] = [timing.as_dict() for timing in seen.values()]
        own = seen[ours.name]
        rows.append(compared(case, own, seen[loop.name], targets.at_least(targets.HEDGE)))
        rows.append(compared(f"{case}, from numpy", seen[host.name], seen[loop.name], None))
        least = targets.at_most(targets.HEDGE_FLOOR) if experts >= WIDE else None
        rows.append(compared(case, own, seen[floor.name], least, inverse=True))
        limit = targets.at_most(targets.ADA_NORMAL_HEDGE)
        rows.append(compared(f"{case}, {tuned.name}", seen[tuned.name], own, limit, inverse=True))
    return Group("Hedge, per round and expert", rows, timings)


def _olx(name: str, learner: olx.Learner, losses: Any) -> Contestant:
    def prepare() -> Callable[[], olx.Run]:
        start = jnp.full(losses.shape[1], 1 / losses.shape[1])
        rounds = olx.Rounds(None, losses)
        return lambda: olx.run(learner, olx.losses.linear_loss, rounds, start)

    return Contestant(name, prepare, losses.size)


def _numba(losses: np.ndarray) -> Contestant:
    def prepare() -> Callable[[], None]:
        from benchmarks import loops

        paid = np.empty(len(losses), np.float32)
        return lambda: loops.hedge(losses, np.float32(ETA), paid)

    return Contestant("numba loop", prepare, losses.size)


def _floor(losses: np.ndarray) -> Contestant:
    def prepare() -> Callable[[], None]:
        total = np.zeros(losses.shape[1], np.float32)

        def call() -> None:
            for row in losses:
                np.add(total, row, out=total)

        return call

    return Contestant("one pass over memory", prepare, losses.size)
