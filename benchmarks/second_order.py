"""Second-order learners: full matrices against numba loops, sketches against Vowpal Wabbit.

The numba loops keep the inverse itself, which is not stable in single precision; see
`benchmarks.matrix_loops`. Vowpal Wabbit's `--OjaNewton` learns from the same rows; its error and
that of olx are printed beside the speed. It clips its scores to the range of the labels before it
takes the slope of the squared loss. On labels of -1 and 1 that slope is the one of
`olx.losses.modified_huber`, so olx plays this loss. With the plain squared loss olx errs more: the
rows push scores back that are right and larger than 1.
"""

import tempfile
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, peers, targets
from benchmarks.data import Examples
from benchmarks.dense import EARLY, LOOP, agreement, play
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, Row, compared
from benchmarks.settings import Settings
from olx import second_order

WIDTHS = (48, 200)
WIDE = 1000
SIZES = (0, 5, 10, 20)
CONFIGURATIONS = 64
COLUMNS = (1_000, 10_000, 100_000, 1_000_000)
SQUARED, HINGE = olx.losses.squared, olx.losses.hinge
CLIPPED = olx.losses.modified_huber  # the slope of Vowpal Wabbit's squared loss
OLX = "olx from device"

# by the name of the numba loop: the learner and its loss
MATRICES: dict[str, tuple[Callable[..., olx.Learner], Callable]] = {
    "arow": (second_order.arow, HINGE),
    "arow_original": (second_order.arow_original, HINGE),
    "second_order_perceptron": (second_order.second_order_perceptron, HINGE),
    "vaw": (second_order.vaw, SQUARED),
    "ridge": (second_order.ridge, SQUARED),
    "newton": (lambda alpha: second_order.newton(alpha, 1.0, curvature=0.25), SQUARED),
    "diagonal_arow": (second_order.diagonal_arow, HINGE),
}


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    for width in WIDTHS:
        examples = data.dense(settings.size(4_000_000 // width**2 * 10, 1000), width)
        for name in MATRICES:
            rows += _matrix(name, examples, settings, timings)
    rows += _sweep(data.dense(settings.size(8000, 500), WIDTHS[0]), settings, timings)
    for width in (*WIDTHS, WIDE):
        rows += _sketches(data.dense(settings.size(20_000, 1000), width), settings, timings)
    rows += _columns(settings, timings)
    return Group("Second-order learners", rows, timings)


def _matrix(name: str, examples: Examples, settings: Settings, timings: dict) -> list[Row]:
    make, loss = MATRICES[name]
    case = f"d={examples.width}, {name}"
    learner = make(peers.ETA)
    ours = Contestant(OLX, lambda: play(learner, loss, *map(jnp.asarray, examples)), examples.count)
    loop = peers.numba(name, examples, module="matrix_loops")
    seen = kept_race(case, [ours, loop], settings.rounds, timings)
    target = targets.at_least(targets.SECOND_ORDER.get(name))
    rows = [compared(case, seen[OLX], seen[LOOP], target)]
    if not seen[LOOP].failure:
        early = examples.first(EARLY)
        rows.append(agreement(case, play(learner, loss, *early)(), name, early, "matrix_loops"))
    return rows


def _sweep(examples: Examples, settings: Settings, timings: dict) -> list[Row]:
    case = f"d={examples.width}, {CONFIGURATIONS} configurations of arow_original"
    etas = np.geomspace(0.1, 10, CONFIGURATIONS)
    learners = olx.batch(second_order.arow_original, r=jnp.asarray(etas))
    rounds = olx.Rounds(*map(jnp.asarray, examples))
    start, keep = jnp.zeros(examples.width), olx.keep.totals
    sweep = lambda: olx.sweep(learners, HINGE, rounds, start, keep=keep)
    ours = Contestant(OLX, lambda: sweep, examples.count * CONFIGURATIONS)
    loop = peers.numba("arow_original", examples, etas, module="matrix_loops")
    seen = kept_race(case, [ours, loop], settings.rounds, timings)
    target = targets.at_least(targets.SECOND_ORDER_SWEEP)
    return [compared(case, seen[OLX], seen[LOOP], target)]


def _sketches(examples: Examples, settings: Settings, timings: dict) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        cache = peers.VowpalCache(folder, examples)
        for size in SIZES:
            case = f"d={examples.width}, Oja m={size}"
            learner = oja(size)
            ours = play(learner, CLIPPED, *map(jnp.asarray, examples))
            options = ("--OjaNewton", "--sketch_size", str(max(size, 1)), "--normalize", "false")
            theirs = [] if size == 0 else [peers.vowpal(cache, *options)]
            mine = Contestant(OLX, lambda ours=ours: ours, examples.count)
            seen = kept_race(case, [mine, *theirs], settings.rounds, timings)
            if theirs:
                wanted = targets.OJA if (examples.width, size) == (WIDE, 10) else None
                peer = seen[theirs[0].name]
                rows.append(compared(case, seen[OLX], peer, targets.at_least(wanted)))
            error = float(np.mean(np.asarray(ours().trace) * examples.labels <= 0))
            rows.append(Row(case, "nothing", error, None, "progressive error of olx"))
            if theirs and not seen[theirs[0].name].failure:
                missed = peers.vowpal_error(cache, *options)
                rows.append(Row(case, theirs[0].name, missed, None, "progressive error of theirs"))
    return rows


def _columns(settings: Settings, timings: dict) -> list[Row]:
    """How the cost of a sparse row depends on the number of columns.

    The state is made before; copying it is subtracted, as the time of a run of few rows.
    """
    case, count, few = "sparse rows, Oja m=10, cost of columns", settings.size(20_000, 1000), 500
    learner, contestants = oja(10), []
    for width in COLUMNS:
        examples, start = data.sparse(count, width), jnp.zeros(width)
        state = learner.init(start)
        for part in (examples, examples.first(few)):
            rounds = olx.Rounds(olx.streams.sparse_rows(part.rows), part.labels)
            run = lambda rounds=rounds, start=start, state=state: jax.block_until_ready(
                olx.run(learner, SQUARED, rounds, start, state=state, keep=olx.keep.totals).state
            )
            name = f"d={width:,}, {part.count} rows"
            contestants.append(Contestant(name, lambda run=run: run, part.count))
    seen = kept_race(case, contestants, settings.rounds, timings)
    long = [seen[f"d={width:,}, {count} rows"].median for width in COLUMNS]
    short = [seen[f"d={width:,}, {few} rows"].median for width in COLUMNS]
    each = [(a - b) / (count - few) * 1e9 for a, b in zip(long, short, strict=True)]
    return [
        Row(case, f"d={width:,} / d={COLUMNS[0]:,}", spent / each[0], None, f"({spent:.0f} ns)")
        for width, spent in zip(COLUMNS, each, strict=True)
    ]


def oja(size: int) -> olx.Learner:
    """Oja's sketch as Vowpal Wabbit has it: steps 1, rates 2 / t, half of each gradient sketched"""
    if size == 0:
        return second_order.sketched_newton(None, 1.0)
    sketch = second_order.oja(size, 2.0, key=jax.random.key(0))
    return second_order.sketched_newton(sketch, 1.0, curvature=0.25)
