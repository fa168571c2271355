"""Play every learner for a million rounds on eleven streams, in float32 and in float64.

    python -m benchmarks.soak                        # about an hour
    python -m benchmarks.soak --rounds 100000        # some minutes
    python -m benchmarks.soak --only hedge prod --streams alternating

The learners are the rows of the table of the tests. `olx.run` plays each in both precisions on the
same numbers: streams and hyperparameters are first rounded to float32. The average losses per round
are compared. Their difference is divided by the scale of the losses. The scale is the larger of two
averages of |loss| in float64: that of the learner, and that of its first decision played in every
round.

The verdicts:

- `ok`: the difference is at most 1e-3, and no loss of the float32 run is NaN or infinite.
- `drifts`: the difference is larger.
- `chaotic`: the difference is larger, but it is one of chance. Rules that update on a mistake only,
  and steps too large for the stream, amplify the last digit until other rounds are mistakes. So
  five streams are played in both precisions, each with all numbers but the labels moved by up to
  one part in a million, and with other keys where the learner draws; the two means differ by at
  most 1e-3, or by at most 3 standard errors. The note also says by how much float64 itself differs
  between the stream and the moved ones: where that is as large, the rule breaks at a number that
  this stream meets up to rounding, such as a hinge loss that is 0 only in float32.
- `not finite`: the float32 run has a loss that is NaN or infinite; all losses in float64 are finite
  and would be finite in float32.
- `diverges`: float64 has a loss that is NaN, infinite or above the largest float32 number, or its
  average is above 1000 times that of the first decision. The conditions of the theorems are broken:
  the step is too large for the stream, the stream leaves the range of losses or gradients that the
  learner was told, or it is not separable where it must be.
- `refused`: the engine refuses the stream by name.

Learners that draw their actions draw other ones in another precision. They are judged by 5 standard
errors of the average in place of 1e-3, where that is more.
"""

import argparse
import collections
import csv
import pathlib
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import soak_streams

TESTS = pathlib.Path(__file__).parents[1] / "tests" / "learners"
OUT = pathlib.Path("results/soak")
LIMIT = 1e-3
WORSE, REPLAYS, MOVE = 1000, 5, 1e-6
RANDOM = {"sampled", "committed", "bandit", "exp3"}  # these draw their actions
TOP = float(np.finfo(np.float32).max)


class Row(NamedTuple):
    learner: str
    stream: str
    verdict: str
    difference: float  # of the average losses, in units of `scale`
    single: float  # the average loss in float32
    double: float
    scale: float
    seconds: float  # of both runs, without compiling
    note: str = ""


def main(arguments: list[str] | None = None) -> None:
    asked = _parser().parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    cases = _table()
    if unknown := set(asked.only) - set(cases):
        raise SystemExit(f"soak: no learner {', '.join(sorted(unknown))} in the table.")
    began, rows = time.perf_counter(), []
    for name, case in cases.items():
        if asked.only and name not in asked.only:
            continue
        for stream, rounds in soak_streams.like(case.rounds, asked.rounds, signs="signs" in name):
            if asked.streams and stream not in asked.streams:
                continue
            rows.append(_judge(name, stream, case, rounds))
            print(_line(rows[-1]), flush=True)
            _write(asked.out, rows)
    counts = collections.Counter(row.verdict for row in rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    print(f"{time.perf_counter() - began:.0f} seconds. Written to {asked.out}/soak.csv.")


def absolute(feedback: olx.core.Feedback) -> tuple[jax.Array, jax.Array]:
    """Recorded sums beside the loss: its absolute value and its square."""
    return jnp.abs(feedback.value), feedback.value**2


def _judge(name: str, stream: str, case: Any, rounds: olx.Rounds) -> Row:
    length = len(jax.tree.leaves(rounds)[0])
    began = time.perf_counter()
    try:
        with jax.enable_x64(False):
            single = _play(case, rounds, np.float32)
        double = _play(case, rounds, np.float64)
    except (TypeError, ValueError) as error:
        return Row(name, stream, "refused", *[float("nan")] * 4, 0.0, str(error)[:200])
    spent = time.perf_counter() - began
    (size, squares), first = double.curve.sums, _first(case, rounds)
    low, high = np.float64(single.total) / length, np.float64(double.total) / length
    scale = np.maximum(size[-1] / length, first)
    with np.errstate(all="ignore"):
        difference = 0.0 if low == high else abs(low - high) / scale
        error = np.sqrt(np.maximum(squares[-1] / length - high**2, 0.0) / length)
    limit = max(LIMIT, 5 * error / (scale or 1.0) if name in RANDOM else 0.0)
    finite = np.isfinite(high) and float(size[-1]) < TOP and float(squares[-1]) < TOP**2
    if finite and difference <= limit:
        verdict = "ok"
    elif not finite or scale > WORSE * first > 0:
        verdict = "diverges"
    else:
        verdict = "drifts" if np.isfinite(low) else "not finite"
    if verdict == "drifts":
        apart, error, mean = _by_chance(case, rounds)
        moves = abs(mean - float(double.total))
        apart_by, error_by, moves_by = (n / length / scale for n in (apart, error, moves))
        note = f"on moved streams {apart_by:.1e} +- {error_by:.1e}; float64 moves by {moves_by:.1e}"
        verdict = "chaotic" if apart <= max(LIMIT * length * scale, 3 * error) else verdict
        return Row(name, stream, verdict, difference, low, high, scale, spent, note)
    return Row(name, stream, verdict, difference, low, high, scale, spent)


def _play(case: Any, rounds: olx.Rounds, dtype: type) -> olx.Run:
    learner, params = _cast((case.learner, case.params), dtype)
    rounds = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), rounds)
    return olx.run(
        learner, case.loss, rounds, params, measure=absolute, keep=olx.keep.totals, progress=False
    )


def _first(case: Any, rounds: olx.Rounds) -> float:
    """The average |loss| of the first decision."""
    learner, rounds, params = _cast((case.learner, rounds, case.params), np.float64)
    paid = jax.vmap(lambda x, y: case.loss(learner.predict(learner.init(params), x), y))
    return float(np.mean(np.abs(jax.jit(paid)(rounds.context, rounds.outcome))))


def _by_chance(case: Any, rounds: olx.Rounds) -> tuple[float, float, float]:
    """On moved streams: the difference of the means of both precisions, its standard error, and the
    mean in float64.
    """
    totals = np.zeros((2, REPLAYS))
    for seed in range(REPLAYS):
        moved, other = _moved(rounds, seed), case._replace(learner=_redrawn(case.learner, seed))
        with jax.enable_x64(False):
            totals[0, seed] = _play(other, moved, np.float32).total
        totals[1, seed] = _play(other, moved, np.float64).total
    error = np.sqrt(np.sum(np.var(totals, axis=1, ddof=1)) / REPLAYS)
    low, high = totals.mean(axis=1)
    return abs(float(high - low)), float(error), float(high)


def _redrawn(learner: olx.Learner, seed: int) -> olx.Learner:
    """The learner with other keys, if it draws."""
    is_key = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)
    fold = lambda leaf: jax.random.fold_in(leaf, seed) if is_key(leaf) else leaf
    return jax.tree.map(fold, learner)


def _moved(rounds: olx.Rounds, seed: int) -> olx.Rounds:
    """The stream with every number moved a little; labels and confidences stay."""
    rng = np.random.default_rng(seed)

    def move(leaf: np.ndarray) -> np.ndarray:
        if np.all(np.isin(leaf, (-1, 1) if leaf.ndim == 1 else (0, 1))):
            return leaf
        near = np.float32(leaf * (1 + MOVE * rng.uniform(-1, 1, leaf.shape)))
        return np.minimum(near, np.float32(1)) if leaf.max() <= 1 else near  # losses stay in range

    return jax.tree.map(move, rounds)


def _cast(tree: Any, dtype: type) -> Any:
    """Every real number rounded to float32, in the precision asked for."""
    real = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    cast = lambda leaf: np.asarray(leaf, np.float32).astype(dtype) if real(leaf) else leaf
    return jax.tree.map(cast, tree)


def _table() -> dict[str, Any]:
    sys.path.insert(0, str(TESTS))
    from table import TABLE

    return TABLE


def _line(row: Row) -> str:
    numbers = f"{row.difference:9.1e} {row.single:12.5g} {row.double:12.5g} {row.seconds:6.1f} s"
    return f"{row.learner:27} {row.stream:13} {row.verdict:10} {numbers} {row.note}"


def _write(folder: pathlib.Path, rows: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "soak.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Row._fields)
        writer.writerows(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rounds", type=int, default=1_000_000, help="of every run; 1,000,000 if not given")
    add("--only", nargs="*", default=[], metavar="learner", help="rows of the table; all if none")
    add("--streams", nargs="*", default=[], metavar="stream", help="all if none is given")
    add("--out", type=pathlib.Path, default=OUT, help=f"folder for the table; {OUT} if not given")
    return parser


if __name__ == "__main__":
    main()
