"""Plays runs and sweeps with checkpoints, as `test_checkpoint` asks, to be killed on the way."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import olx
from olx import convex, losses, mirrors, regularizers, schedules, streams
from olx.convex import sets

PIECES, ROWS = 8, 50
X = np.random.default_rng(0).normal(size=(PIECES * ROWS, 4))
Y = X @ np.array([1.0, -0.5, 0.2, 0.0])
SPARSE = scipy.sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
EXPERTS = np.abs(X)


def cut(context, outcome):
    for i in range(PIECES):
        rows = slice(i * ROWS, (i + 1) * ROWS)
        yield olx.Rounds(None if context is None else context[rows], outcome[rows])


def on_rows(inner, rows=X, **options):
    learner, pieces = olx.linear(inner), cut(rows, Y)
    return olx.run(
        learner, losses.squared, pieces, jnp.zeros(4), record=olx.record.actions, **options
    )


def on_experts(learner, **options):
    return olx.run(learner, losses.linear_loss, cut(None, EXPERTS), jnp.full(4, 0.25), **options)


def swept(**options):
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.geomspace(1e-3, 0.1, 5))
    pieces, keep = cut(X, Y), olx.keep.every(30)
    return olx.sweep(learners, losses.squared, pieces, jnp.zeros(4), keep=keep, **options)


JOBS = {
    "clock": lambda **options: on_rows(
        olx.md(schedules.decay(0.5), mirrors.euclidean(sets.ball(0.6))), **options
    ),
    "adagrad": lambda **options: on_rows(olx.ftrl(0.5, regularizers.adagrad()), **options),
    "optimistic": lambda **options: on_rows(
        olx.optimistic(0.1, mirrors.euclidean(sets.ball(0.8))), **options
    ),
    "sparse": lambda **options: on_rows(
        olx.ftrl(0.5, regularizers.adagrad(penalty=convex.l1(0.02))),
        streams.sparse_rows(SPARSE),
        **options,
    ),
    "hedge": lambda **options: on_experts(olx.hedge(0.7), **options),
    "sweep": swept,
}


def play(name: str, directory: Path | None = None) -> olx.Run:
    if directory is None:
        return JOBS[name]()
    return JOBS[name](checkpoint=olx.checkpoint(directory / name, every=1))


def leaves_of(run: olx.Run) -> list[np.ndarray]:
    is_key = lambda leaf: jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    plain = lambda leaf: jax.random.key_data(leaf) if is_key(leaf) else leaf
    return [np.asarray(plain(leaf)) for leaf in jax.tree.leaves(run)]


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    place = Path(sys.argv[1])
    for job in JOBS:
        np.savez(place / f"{job}.npz", *leaves_of(play(job, place)))
