"""The eleven streams of `benchmarks.soak`, in the four forms that learners need.

A predictor gets rows and labels (signs, or real numbers where the row of the table has them), a
learner of experts gets losses in [0, 1], one of matrices gets symmetric matrices. All are float32.
"""

from collections.abc import Iterator

import numpy as np

import olx

WIDTH = 4  # as in the table
SMALL, LARGE = 1e-6, 1e6
SWITCHES = 10
ROWS = ("unit", "zeros", "tiny", "constant", "flipping", "mixed")
ROWS += ("switching", "outlier", "sparse", "large", "signs")
SEPARABLE = ("tiny", "outlier", "sparse", "large")  # labelled by a linear function without noise


def like(rounds: olx.Rounds, length: int, signs: bool) -> Iterator[tuple[str, olx.Rounds]]:
    """Every stream by name, shaped like `rounds`; contexts are signs where `signs` says so."""
    outcome = np.asarray(rounds.outcome)
    if outcome.ndim == 1:
        labels = bool(np.all(np.abs(outcome) == 1))
        for name, context, target in _rows(length, labels):
            yield name, olx.Rounds(np.sign(context) if signs else context, target)
        return
    streams = _losses(length) if outcome.ndim == 2 else _matrices(length)
    for name, losses in streams:
        context = rounds.context
        if context is not None and np.all(np.isin(context, (0, 1))):  # confidences
            asleep = _generator(1).random(losses.shape) < 0.3
            context = np.where(asleep, 0, 1).astype(np.float32)
        elif context is not None:  # a hint
            context = np.float32(0.9) * losses
        yield name, olx.Rounds(context, losses)


def _rows(length: int, labels: bool) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for name in ROWS:
        rng = _generator(0)
        x = rng.standard_normal((length, WIDTH))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        truth = np.array([0.6, -0.3, 0.2, 0.7])
        noise = 0.1 * rng.standard_normal(length)
        turn = np.ones(length)
        if name in SEPARABLE:
            noise[:] = 0
            x += 0.1 * np.where(x @ truth < 0, -1, 1)[:, None] * truth
        if name == "zeros":
            x[:] = 0
        elif name == "tiny":
            x *= SMALL
        elif name in ("constant", "flipping"):
            x[:] = x[0]
            noise[:] = 0
        elif name == "mixed":
            x *= 10 ** rng.uniform(-6, 6, x.shape)
        elif name == "switching":
            turn = 1 - 2 * (np.arange(length) * SWITCHES // length % 2)
        elif name == "outlier":
            x[length // 2] *= LARGE
        elif name == "sparse":
            x[rng.random(x.shape) < 0.9] = 0
        elif name == "large":
            x *= 1e3
        elif name == "signs":
            x = np.where(rng.random(x.shape) < 0.5, -1.0, 1.0)
        if name == "flipping":
            turn = 1 - 2 * (np.arange(length) % 2)
        size = np.linalg.norm(x, axis=1)
        target = turn * (x @ truth + noise * np.where(size == 0, 1, size))
        if name == "signs":
            target = np.where(rng.random(length) < 0.5, -1.0, 1.0)
        if labels:
            target = np.where(target >= 0, 1.0, -1.0)
        yield name, x.astype(np.float32), target.astype(np.float32)


def _losses(length: int) -> Iterator[tuple[str, np.ndarray]]:
    rng = _generator(0)
    drawn = rng.random((length, WIDTH))
    t, i = np.arange(length)[:, None], np.arange(WIDTH)
    zero = np.zeros((length, WIDTH))
    best = t * SWITCHES // length % WIDTH
    outlier = 0.01 * drawn
    outlier[length // 2] = [0, 1, 1, 1]
    lead = (t + i) % 2 + zero
    lead[: length // 100] = 0.01 * (i > 0)
    streams = {
        "uniform": drawn,
        "zeros": zero,
        "ones": zero + 1,
        "tiny": SMALL * drawn,
        "constant": zero + np.array([0.3, 0.2, 0.9, 0.5]),
        "alternating": (t + i) % 2 + zero,
        "switching": (drawn < 0.5 - 0.2 * (i == best)) + zero,
        "outlier": outlier,
        "ties": drawn[:, :1] + zero,
        "close": 0.5 + 1e-3 * (drawn - 0.5) - 1e-5 * (i == 2),
        "lead": lead,
    }
    for name, losses in streams.items():
        yield name, losses.astype(np.float32)


def _matrices(length: int) -> Iterator[tuple[str, np.ndarray]]:
    rng = _generator(0)
    square = rng.standard_normal((length, 3, 3)).astype(np.float32)
    drawn = (square + square.transpose(0, 2, 1)) / 4
    fixed = np.diag([0.3, 0.2, 0.9]) + 0.1
    turn = (1 - 2 * (np.arange(length) % 2))[:, None, None]
    half = (1 - 2 * (np.arange(length) * SWITCHES // length % 2))[:, None, None]
    outlier = drawn.copy()
    outlier[length // 2] *= 1e3
    mixed = drawn * 10 ** rng.uniform(-6, 2, (length, 1, 1))
    streams = {
        "unit": drawn,
        "zeros": 0 * drawn,
        "tiny": SMALL * drawn,
        "constant": fixed + 0 * drawn,
        "flipping": turn * fixed,
        "mixed": mixed,
        "switching": drawn + half * fixed,
        "outlier": outlier,
        "sparse": drawn * (np.abs(drawn) > 1),
        "large": 100 * drawn,
        "signs": np.sign(drawn),
    }
    for name, losses in streams.items():
        yield name, losses.astype(np.float32)


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
