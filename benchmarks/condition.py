"""Play second-order learners in float32 on rows of condition number 1e6, and watch their matrices.

    python -m benchmarks.condition                     # a million rounds, some minutes
    python -m benchmarks.condition --rounds 20000

The rows have 16 coordinates; the covariance matrix of a rotated Gaussian has eigenvalues from 1 to
1e-6. At twenty points of the stream the script looks at the inverse $P$ of the matrix of a learner:
it must be finite, symmetric and positive definite. At the end the average loss is compared with
that of the same run in float64, and the largest relative error of an eigenvalue of $P$ is printed.
The exit status is 1 if a matrix or a loss is not sound.
"""

import argparse
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx import second_order

WIDTH, CONDITION, POINTS = 16, 1e6, 20
HINGE, SQUARED = olx.losses.hinge, olx.losses.squared

LEARNERS: dict[str, tuple[olx.Learner, Callable]] = {
    "vaw": (second_order.vaw(1.0), SQUARED),
    "ridge": (second_order.ridge(1.0), SQUARED),
    "ridge, forgetting": (second_order.ridge(1.0, 0.999), SQUARED),
    "second-order perceptron": (second_order.second_order_perceptron(), HINGE),
    "arow": (second_order.arow(1.0), HINGE),
    "arow, original": (second_order.arow_original(1.0), HINGE),
    "confidence-weighted": (second_order.confidence_weighted(0.8), HINGE),
    "SCW-I": (second_order.soft_confidence_weighted(0.8, 0.1), HINGE),
    "SCW-II": (second_order.soft_confidence_weighted(0.8, 0.1, squared=True), HINGE),
    "newton": (second_order.newton(1.0, 2.0, curvature=1 / 16), SQUARED),
    "newton, invariant": (second_order.invariant_newton(2.0, curvature=1 / 16), SQUARED),
}


def stream(rounds: int, kind: type) -> Iterator[olx.Rounds]:
    """The rounds in `POINTS` parts, with one label in ten wrong."""
    random = np.random.default_rng(0)
    turn, _ = np.linalg.qr(random.normal(size=(WIDTH, WIDTH)))
    scales = np.geomspace(1, CONDITION**-0.5, WIDTH)
    truth = turn @ (random.normal(size=WIDTH) / scales)
    for _ in range(POINTS):
        rows = (random.normal(size=(rounds // POINTS, WIDTH)) * scales) @ turn.T
        flips = np.where(random.random(len(rows)) < 0.1, -1, 1)
        labels = np.where(rows @ truth >= 0, flips, -flips)
        yield olx.Rounds(jnp.asarray(rows, kind), jnp.asarray(labels, kind))


def played(name: str, rounds: int, kind: type) -> tuple[float, np.ndarray, bool]:
    """The average loss, the last inverse, and whether all losses and inverses were sound."""
    learner, loss = LEARNERS[name]
    start, state, total, sound, inverse = jnp.zeros(WIDTH, kind), None, 0.0, True, np.eye(WIDTH)
    for part in stream(rounds, kind):
        run = olx.run(learner, loss, part, start, state=state, keep=olx.keep.totals)
        state, total = run.state, total + float(run.total)
        root = np.asarray(state.root, float)
        inverse = float(getattr(state, "scale", 1)) * root @ root.T
        legal = np.isfinite(total) and np.all(np.isfinite(inverse))
        sound = bool(sound and legal and np.linalg.matrix_rank(root) == WIDTH)
    return total / rounds, inverse, sound


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.condition", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    asked = parser.parse_args(arguments)
    bad = []
    for name in LEARNERS:
        single, one, sound = played(name, asked.rounds, np.float32)
        with jax.enable_x64(True):
            double, two, _ = played(name, asked.rounds, np.float64)
        seen, wanted = (np.linalg.eigvalsh(np.nan_to_num(matrix)) for matrix in (one, two))
        error = float(np.max(np.abs(seen / wanted - 1)))
        verdict = "sound" if sound else "NOT SOUND"
        print(
            f"{name:25s} {verdict}: loss {single:.5f} in float32, {double:.5f} in float64; "
            f"P from {wanted[0]:.1e} to {wanted[-1]:.1e}, eigenvalues off by at most {error:.1e}",
            flush=True,
        )
        bad += [] if sound else [name]
    raise SystemExit(f"Not sound: {', '.join(bad)}." if bad else 0)


if __name__ == "__main__":
    main()
