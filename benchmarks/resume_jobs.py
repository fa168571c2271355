"""Runs and sweeps of every kind of state, to be interrupted and resumed by `benchmarks.resume`."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

import olx
from olx import convex, experts, losses, mirrors, regularizers, schedules, streams
from olx.convex import sets

PIECES, ROWS, WIDTH = 24, 64, 4
CHANCE = np.random.default_rng(0)
X = CHANCE.normal(size=(PIECES * ROWS, WIDTH)).astype(np.float32)
Y = (X @ np.array([1.0, -0.5, 0.2, 0.0])).astype(np.float32)
ROUNDS = olx.Rounds(X, Y)
SIGNS = olx.Rounds(X, np.sign(Y))
SPARSE = olx.Rounds(np.where(np.abs(X) > 0.7, X, 0), Y)
EXPERTS = olx.Rounds(None, CHANCE.uniform(size=X.shape).astype(np.float32))


class Job(NamedTuple):
    """The arguments of a driver."""

    learner: Callable[[], olx.Learner]
    loss: Any
    rounds: olx.Rounds
    start: float = 0.0
    driver: str = "run"
    options: Mapping[str, Any] = MappingProxyType({})
    sparse: bool = False


def etas(make: Callable, count: int) -> Callable[[], olx.Learner]:
    return lambda: olx.batch(make, eta=jnp.geomspace(1e-3, 0.1, count))


def missed(feedback: olx.Feedback) -> dict[str, Any]:
    return {"far": abs(feedback.action - feedback.outcome) > 0.1, "paid": feedback.value}


def descent(eta):
    return olx.linear(olx.ogd(eta))


def adagrad(eta):
    return olx.linear(olx.ftrl(eta, regularizers.adagrad(penalty=convex.l1(0.02))))


CURVE = {"keep": olx.keep.every(30), "measure": missed}
JOBS = {
    "clock": Job(
        lambda: olx.linear(olx.md(schedules.decay(0.5), mirrors.euclidean(sets.ball(0.6)))),
        losses.squared,
        ROUNDS,
        options={"record": olx.record.actions},
    ),
    "statistics, trace": Job(
        lambda: adagrad(0.5), losses.squared, ROUNDS, options={"record": olx.record.trace}
    ),
    "hint": Job(
        lambda: olx.linear(olx.optimistic(0.1, mirrors.euclidean(sets.ball(0.8)))),
        losses.squared,
        ROUNDS,
        options=CURVE,
    ),
    "sparse lanes": Job(lambda: adagrad(0.5), losses.squared, SPARSE, sparse=True),
    "sparse rows": Job(
        lambda: olx.classification.passive_aggressive_1(0.1),
        losses.hinge,
        SPARSE._replace(outcome=SIGNS.outcome),
        options={"keep": olx.keep.totals},
        sparse=True,
    ),
    "classifier": Job(
        olx.classification.romma, losses.hinge, SIGNS, options={"keep": olx.keep.log_spaced(5)}
    ),
    "hedge": Job(lambda: olx.hedge(0.7), losses.linear_loss, EXPERTS, 0.25),
    "adahedge": Job(experts.adahedge, losses.linear_loss, EXPERTS, 0.25),
    "key": Job(
        lambda: olx.experts.sampled(olx.hedge(0.7), jax.random.key(1)),
        losses.linear_loss,
        EXPERTS,
        0.25,
    ),
    "mixture": Job(
        lambda: olx.meta.mix(olx.batch(descent, eta=jnp.array([0.01, 0.1])), olx.hedge(0.5)),
        losses.squared,
        ROUNDS,
    ),
    "sweep": Job(etas(adagrad, 5), losses.squared, ROUNDS, driver="sweep", options=CURVE),
    "sweep in blocks": Job(etas(descent, 64), losses.squared, ROUNDS, driver="sweep"),
}


class BrokenOff(Exception):
    """Raised to interrupt a run on purpose."""


def play(job: Job, place: Path | None = None, saves: int = 0) -> olx.Run:
    """Play a job with checkpoints in `place`; interrupt it after `saves` saves if positive."""
    driver = {"run": olx.run, "sweep": olx.sweep}[job.driver]
    options = dict(job.options)
    if place is not None:
        options["checkpoint"] = _saving(place, saves)
    # a sweep is played in blocks of rounds only where its stream is in memory
    rounds = job.rounds if job.driver == "sweep" else _pieces(job)
    start = jnp.full(WIDTH, job.start, jnp.float32)
    return driver(job.learner(), job.loss, rounds, start, **options)


def _pieces(job: Job) -> Iterator[olx.Rounds]:
    for start in range(0, len(job.rounds.outcome), ROWS):
        piece = jax.tree.map(lambda leaf, start=start: leaf[start : start + ROWS], job.rounds)
        if job.sparse:
            piece = piece._replace(context=streams.sparse_rows(csr_array(piece.context)))
        yield piece


def _saving(place: Path, saves: int) -> olx.engine.checkpoint.Checkpoint:
    checkpoint, count = olx.checkpoint(place, every=1), itertools.count(1)
    save = checkpoint.save

    def once_more(*given: Any) -> None:
        save(*given)
        if next(count) == saves:
            raise BrokenOff

    checkpoint.save = once_more
    return checkpoint


def bits(run: olx.Run) -> list[bytes]:
    is_key = lambda leaf: jnp.issubdtype(jnp.asarray(leaf).dtype, jax.dtypes.prng_key)
    plain = lambda leaf: np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
    return [plain(leaf).tobytes() for leaf in jax.tree.leaves(run)]
