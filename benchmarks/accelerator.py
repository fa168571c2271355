"""What a round costs on a GPU or a TPU.

python -m benchmarks accelerator            # on a machine with such a device
python -m benchmarks accelerator --quick    # on any machine: does everything run?
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data
from benchmarks.dense import ADA, HINGE, OGD, adaptive, descent
from benchmarks.harness import Contestant, Group

TOTALS = olx.keep.totals


def measure(group: Group) -> None:
    if jax.default_backend() == "cpu" and not group.quick:
        note = (
            "JAX finds no accelerator: the backend is cpu; install JAX for your device, as "
            "`pip install 'jax[cuda12]'`, or use --quick to see that it runs"
        )
        group.note("accelerator", "", None, note=note)
        return
    for case in _cases(group):
        seen = group.race(case.name, [case])[case.name]
        group.note(case.name, "time", seen.nanoseconds, unit="ns", note=seen.failure)
    examples = data.dense(group.size(20_000, 256), 1000)
    there = jax.tree.map(jnp.asarray, olx.Rounds(*examples))
    places = (
        _case("rounds on the device", _run(OGD, there.context, there.outcome), examples.count),
        _case("rounds on the host", _run(OGD, *examples), examples.count),
    )
    device, host = group.race("where", places).values()
    group.compare("one learner, d=1,000, on the host", host, device, inverse=True)


def _cases(group: Group) -> list[Contestant]:
    count = group.size(10_000, 256)
    narrow, wide = data.dense(count, 50), data.dense(count, 1000)
    sparse = data.sparse(count, 47_236)
    rows = olx.streams.sparse_rows(sparse.rows)
    experts = group.size(1_000_000, 1000)
    paid = np.random.default_rng(0).random((32, experts), np.float32)
    hedge = olx.hedge(0.1), olx.losses.linear_loss, olx.Rounds(None, paid)
    uniform = jnp.full(experts, 1 / experts)
    vote = olx.boosting.boost(OGD, 100, olx.boosting.online_bbm(0.1), loss=HINGE)
    cases = [
        _case("one learner, d=1,000", _run(OGD, *wide), count),
        _case("100 copies by boost, d=50", _run(vote, *narrow), count),
        _case("AdaGrad, sparse rows, d=47,236", _run(ADA, rows, sparse.labels), count),
        _case(f"Hedge, {experts:,} experts", lambda: olx.run(*hedge, uniform, keep=TOTALS), 32),
    ]
    for n in (64, 4096, group.size(65_536, 8192)):
        play = _sweep(descent, n, narrow)
        cases.append(_case(f"{n:,} configurations in blocks, d=50", play, n * count))
    play = _sweep(adaptive, 4096, narrow)
    return [*cases, _case("4,096 configurations of AdaGrad, d=50", play, 4096 * count)]


def _case(name: str, play: Callable[[], olx.Run], work: int) -> Contestant:
    return Contestant(name, lambda: lambda: jax.block_until_ready(play().state), work)


def _run(learner: olx.Learner, rows: Any, labels: Any) -> Callable[[], olx.Run]:
    rounds, start = olx.Rounds(rows, labels), jnp.zeros(rows.shape[1])
    return lambda: olx.run(learner, HINGE, rounds, start, keep=TOTALS)


def _sweep(make: Callable, count: int, examples: data.Examples) -> Callable[[], olx.Run]:
    learners = olx.batch(make, eta=np.geomspace(0.01, 1.0, count, dtype=np.float32))
    rounds, start = olx.Rounds(*examples), jnp.zeros(examples.width)
    return lambda: olx.sweep(learners, HINGE, rounds, start, keep=TOTALS)
