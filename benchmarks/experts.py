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
from benchmarks.harness import Contestant, Group

EXPERTS = (100, 1000, 10_000, 100_000, 1_000_000)
ETA = 0.05
VALUES = 20_000_000  # the number of losses, 80 MB: larger than the cache
WIDE = 10_000  # from here on memory speed is the lower limit


def measure(group: Group) -> None:
    hedge, tuned = olx.hedge(ETA), olx.experts.ada_normal_hedge()
    for experts in EXPERTS:
        case = f"{experts:,} experts"
        steps = min(20_000, max(2, group.size(VALUES, 2_000_000) // experts))
        losses = np.random.default_rng(0).random((steps, experts), np.float32)
        on_device = jnp.asarray(losses)
        contestants = (
            _olx("Hedge of olx", hedge, on_device),
            _olx("Hedge of olx from numpy", hedge, losses),
            _olx("AdaNormalHedge", tuned, on_device),
            Contestant("numba loop", lambda losses=losses: _loop(losses), losses.size),
            Contestant("one pass over memory", lambda losses=losses: _pass(losses), losses.size),
        )
        own, host, ada, loop, floor = group.race(case, contestants).values()
        group.compare(case, own, loop, least=targets.HEDGE)
        group.compare(f"{case}, from numpy", host, loop)
        limit = targets.HEDGE_FLOOR if experts >= WIDE else None
        group.compare(case, own, floor, most=limit, inverse=True)
        group.compare(f"{case}, {ada.name}", ada, own, most=targets.ADA_NORMAL_HEDGE)


def _olx(name: str, learner: olx.Learner, losses: Any) -> Contestant:
    rounds, start = olx.Rounds(None, losses), jnp.full(losses.shape[1], 1 / losses.shape[1])
    call = lambda: olx.run(learner, olx.losses.linear_loss, rounds, start)
    return Contestant(name, lambda: call, losses.size)


def _loop(losses: np.ndarray) -> Callable[[], None]:
    from benchmarks import loops

    paid = np.empty(len(losses), np.float32)
    return lambda: loops.hedge(losses, np.float32(ETA), paid)


def _pass(losses: np.ndarray) -> Callable[[], None]:
    total = np.zeros(losses.shape[1], np.float32)

    def call() -> None:
        for row in losses:
            np.add(total, row, out=total)

    return call
