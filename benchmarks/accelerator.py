"""What a round costs on a GPU or a TPU.

python -m benchmarks accelerator            # on a machine with such a device
python -m benchmarks accelerator --quick    # on any machine: does everything run?
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data
from benchmarks.dense import ADA, HINGE, OGD
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, Row, compared
from benchmarks.settings import Settings

TOTALS = olx.keep.totals
TITLE = "On an accelerator, per example and configuration"


class Case(NamedTuple):
    name: str
    play: Callable[[], olx.Run]
    work: int  # examples times configurations


def measure(settings: Settings) -> Group:
    backend = jax.default_backend()
    if backend == "cpu" and not settings.quick:
        note = (
            "JAX finds no accelerator: the backend is cpu; install JAX for your device, as "
            "`pip install 'jax[cuda12]'`, or use --quick to see that it runs"
        )
        return Group(TITLE, [Row("accelerator", "", None, note=note)], {})
    rows, timings = [], {}
    for case in _cases(settings):
        seen = kept_race(case.name, [_contestant(case)], settings.rounds, timings)[case.name]
        rows.append(Row(case.name, "time", seen.nanoseconds, None, "ns", note=seen.failure))
    return Group(TITLE, [*rows, *_placed(settings, timings)], timings)


def _cases(settings: Settings) -> list[Case]:
    count = settings.size(10_000, 256)
    narrow, wide = data.dense(count, 50), data.dense(count, 1000)
    sparse = data.sparse(count, 47_236)
    rows = olx.streams.sparse_rows(sparse.rows)
    experts = settings.size(1_000_000, 1000)
    paid = np.random.default_rng(0).random((32, experts), np.float32)
    hedge = olx.hedge(0.1), olx.losses.linear_loss, olx.Rounds(None, paid)
    uniform = jnp.full(experts, 1 / experts)
    vote = olx.boosting.boost(OGD, 100, olx.boosting.online_bbm(0.1), loss=HINGE)
    cases = [
        Case("one learner, d=1,000", _run(OGD, *wide), count),
        Case("100 copies by boost, d=50", _run(vote, *narrow), count),
        Case("AdaGrad, sparse rows, d=47,236", _run(ADA, rows, sparse.labels), count),
        Case(f"Hedge, {experts:,} experts", lambda: olx.run(*hedge, uniform, keep=TOTALS), 32),
    ]
    for n in (64, 4096, settings.size(65_536, 8192)):
        play = _sweep(_additive, n, narrow)
        cases.append(Case(f"{n:,} configurations in blocks, d=50", play, n * count))
    play = _sweep(_adaptive, 4096, narrow)
    return [*cases, Case("4,096 configurations of AdaGrad, d=50", play, 4096 * count)]


def _additive(eta: Any) -> olx.Learner:
    return olx.linear(olx.omd(eta, olx.mirrors.euclidean()))


def _adaptive(eta: Any) -> olx.Learner:
    return olx.linear(olx.ftrl(eta, olx.regularizers.adagrad()))


def _run(learner: olx.Learner, rows: Any, labels: Any) -> Callable[[], olx.Run]:
    rounds, start = olx.Rounds(rows, labels), jnp.zeros(rows.shape[1])
    return lambda: olx.run(learner, HINGE, rounds, start, keep=TOTALS)


def _sweep(make: Callable, count: int, examples: data.Examples) -> Callable[[], olx.Run]:
    learners = olx.batch(make, eta=np.geomspace(0.01, 1.0, count, dtype=np.float32))
    rounds, start = olx.Rounds(*examples), jnp.zeros(examples.width)
    return lambda: olx.sweep(learners, HINGE, rounds, start, keep=TOTALS)


def _placed(settings: Settings, timings: dict[str, Any]) -> list[Row]:
    """What it costs that the rounds are on the host."""
    examples = data.dense(settings.size(20_000, 256), 1000)
    there = jax.tree.map(jnp.asarray, olx.Rounds(*examples))
    cases = [
        Case("rounds on the device", _run(OGD, there.context, there.outcome), examples.count),
        Case("rounds on the host", _run(OGD, *examples), examples.count),
    ]
    seen = kept_race("where", list(map(_contestant, cases)), settings.rounds, timings)
    device, host = (seen[case.name] for case in cases)
    return [compared("one learner, d=1,000, on the host", host, device, None, inverse=True)]


def _contestant(case: Case) -> Contestant:
    def block() -> None:
        jax.block_until_ready(case.play().state)

    return Contestant(case.name, lambda: block, case.work)
