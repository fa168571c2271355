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
from benchmarks.dense import EARLY, LOOP, agree, contestant, play, sweep
from benchmarks.harness import Contestant, Group
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


def measure(group: Group) -> None:
    for width in WIDTHS:
        rows = lambda cost, width=width: data.dense(group.size(40_000_000 // cost, 1000), width)
        matrix, diagonal = rows(width**2), rows(10 * width)
        for name in MATRICES:
            _matrix(group, name, diagonal if name.startswith("diagonal") else matrix)
    _sweep(group, data.dense(group.size(8000, 500), WIDTHS[0]))
    for width in (*WIDTHS, WIDE):
        _sketches(group, data.dense(group.size(20_000, 1000), width))
    _columns(group)


def _matrix(group: Group, name: str, examples: Examples) -> None:
    make, loss = MATRICES[name]
    case, learner = f"d={examples.width}, {name}", make(peers.ETA)
    ours = contestant(OLX, learner, loss, _on_device(examples))
    loop = peers.numba(name, examples, module="matrix_loops")
    seen = group.duel(case, ours, loop, least=targets.SECOND_ORDER.get(name))
    if not seen[LOOP].failure:
        early = examples.first(EARLY)
        agree(group, case, play(learner, loss, *early)(), name, early, "matrix_loops")


def _sweep(group: Group, examples: Examples) -> None:
    case = f"d={examples.width}, {CONFIGURATIONS} configurations of arow_original"
    numbers, rounds = np.geomspace(0.1, 10, CONFIGURATIONS), olx.Rounds(*_on_device(examples))
    make = second_order.arow_original
    ours = sweep(OLX, make, jnp.asarray(numbers), rounds, examples.width)
    loop = peers.numba("arow_original", examples, numbers, module="matrix_loops")
    group.duel(case, ours, loop, least=targets.SECOND_ORDER_SWEEP)


def _sketches(group: Group, examples: Examples) -> None:
    with tempfile.TemporaryDirectory(dir=group.folder) as folder:
        cache = peers.VowpalCache(folder, examples)
        for size in SIZES:
            case = f"d={examples.width}, Oja m={size}"
            ours = play(oja(size), CLIPPED, *_on_device(examples))
            options = ("--OjaNewton", "--sketch_size", str(max(size, 1)), "--normalize", "false")
            theirs = [] if size == 0 else [peers.vowpal(cache, *options)]
            mine = Contestant(OLX, lambda ours=ours: ours, examples.count)
            wanted = targets.OJA if (examples.width, size) == (WIDE, 10) else None
            seen = group.duel(case, mine, *theirs, least=wanted)
            error = float(np.mean(np.asarray(ours().trace) * examples.labels <= 0))
            group.note(case, "nothing", error, unit="progressive error of olx")
            if theirs and not seen[theirs[0].name].failure:
                missed = peers.vowpal_error(cache, *options)
                group.note(case, theirs[0].name, missed, unit="progressive error of theirs")


def _columns(group: Group) -> None:
    """How the cost of a sparse row depends on the number of columns.

    The state is made before; copying it is subtracted, as the time of a run of few rows.
    """
    case, count, few = "sparse rows, Oja m=10, cost of columns", group.size(20_000, 1000), 500
    learner, contestants = oja(10), []
    for width in COLUMNS:
        examples, start = data.sparse(count, width), jnp.zeros(width)
        state = learner.init(start)
        for part in (examples, examples.first(few)):
            rounds = olx.Rounds(olx.streams.sparse_rows(part.rows), part.labels)
            run = lambda rounds=rounds, start=start, state=state: jax.block_until_ready(
                olx.run(learner, SQUARED, rounds, start, state=state, keep=olx.keep.totals).state
            )
            contestants.append(
                Contestant(f"d={width:,}, {part.count} rows", lambda r=run: r, part.count)
            )
    seen = group.race(case, contestants)
    median = lambda width, rows: seen[f"d={width:,}, {rows} rows"].median
    each = [(median(d, count) - median(d, few)) / (count - few) * 1e9 for d in COLUMNS]
    for width, spent in zip(COLUMNS, each, strict=True):
        against, unit = f"d={width:,} / d={COLUMNS[0]:,}", f"({spent:.0f} ns)"
        group.note(case, against, spent / each[0], unit=unit)


def _on_device(examples: Examples) -> Examples:
    return Examples(*map(jnp.asarray, examples))


def oja(size: int) -> olx.Learner:
    """Oja's sketch as Vowpal Wabbit has it: steps 1, rates 2 / t, half of each gradient sketched"""
    if size == 0:
        return second_order.sketched_newton(None, 1.0)
    sketch = second_order.oja(size, 2.0, key=jax.random.key(0))
    return second_order.sketched_newton(sketch, 1.0, curvature=0.25)
