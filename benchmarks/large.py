"""Large problems: streams that do not fit in memory, many columns, many configurations.

Every case is played by a process of its own, which says how much memory it had at most: the peak of
its resident memory, with the pages of mapped files, the interpreter and JAX. The file of a stream
is sparse: it has its full size, and all of it is read, but it takes no space on the disk.

    python -m benchmarks.large configurations '{"rounds": 2000, "folder": "."}'     # one case
"""

import functools
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data, peers, targets
from benchmarks.dense import HINGE, LOOP, OGD, descent
from benchmarks.harness import Group, Row

WIDTH, PIECE = 50, 1 << 16
SQUARED, TOTALS = olx.losses.squared, olx.keep.totals
GB = 1e9


def measure(group: Group) -> None:
    size = group.size(4_000_000_000, 200_000_000)
    rounds = group.size(10_000, 640)
    cases: list[tuple[Callable, dict[str, Any]]] = [
        (mapped, {"size": size}),
        (generated, {"size": size}),
        (affine, {"size": size // 10}),
        (columns, {"rows": group.size(100_000, 2000)}),
        (configurations, {"rounds": rounds // 10}),
        (configurations, {"rounds": rounds}),
    ]
    for play, given in cases:
        print(f"  {play.__name__} {given}", flush=True)
        rows, failure = _apart(play.__name__, given, group.folder)
        group.timings[f"{play.__name__} {given}"] = [row._asdict() for row in rows]
        group.rows += rows
        if failure:
            group.note(play.__name__, "", None, most=targets.LARGE, note=failure)


def _apart(name: str, given: dict[str, Any], folder: str) -> tuple[list[Row], str]:
    """The rows of a case that is played by a process of its own, and why it failed."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        words = [sys.executable, "-m", "benchmarks.large", name]
        words.append(json.dumps({**given, "folder": own}))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return [], (done.stderr.splitlines() or ["failed"])[-1]
    return [Row(**row) for row in json.loads(done.stdout.splitlines()[-1])], ""


def mapped(size: int, folder: str) -> list[Row]:
    """A memory map against arrays in memory."""
    return _against_arrays(f"memory map of {size / GB:g} GB", _map(size, folder))


def generated(size: int, folder: str) -> list[Row]:
    """Pieces that a generator gives, against arrays in memory."""
    block = data.dense(PIECE, WIDTH)
    pieces = size // block.rows.nbytes

    def stream() -> Iterator[olx.Rounds]:
        for _ in range(pieces):
            yield olx.Rounds(*block)

    return _against_arrays(f"generator of {size / GB:g} GB", stream(), pieces * PIECE)


def affine(size: int, folder: str) -> list[Row]:
    """A memory map, for a learner that needs a longer row."""
    learner, start = olx.affine(olx.ogd(0.1)), jnp.zeros(WIDTH + 1)
    olx.run(learner, SQUARED, _map(size, folder), start, keep=TOTALS)
    return [_memory(f"memory map of {size / GB:g} GB, with an intercept")]


def columns(rows: int, folder: str) -> list[Row]:
    """Ten million columns against a hundred thousand: the time of a row without that of a call."""
    few, many = 100_000, 10_000_000
    case, spent = f"{many:,} sparse columns", {}
    for width in (few, many):
        examples = data.sparse(rows, width)
        parts, start = (examples, examples.first(rows // 10)), jnp.zeros(width)
        calls = {"olx": [_sparse_run(start, part) for part in parts]}
        calls[LOOP] = [peers.numba("sparse_ogd_hinge", part).prepare() for part in parts]
        _forget_peak()
        for name, pair in calls.items():
            long, short = (_seconds(call, tries=7, of=min) for call in pair)
            spent[name, width] = (long - short) / (rows - parts[1].count) * GB
    growth = {name: spent[name, many] / spent[name, few] for name in ("olx", LOOP)}
    return [
        _memory(case),
        *(
            Row(f"{case}, {name}", f"{few:,} columns", growth[name], unit="times as long")
            for name in growth
        ),
        Row(case, f"{LOOP}, times as long", growth["olx"] / growth[LOOP], most=targets.LARGE_SPEED),
    ]


def _sparse_run(start: Any, examples: data.Examples) -> Callable[[], Any]:
    rounds = olx.Rounds(olx.streams.sparse_rows(examples.rows), examples.labels)
    return lambda: olx.run(OGD, HINGE, rounds, start, keep=TOTALS)


def configurations(rounds: int, folder: str) -> list[Row]:
    """A hundred thousand configurations against a few thousand, per configuration."""
    few, many = 4096, 100_000
    given, spent = olx.Rounds(*data.dense(rounds, WIDTH)), {}
    for count in (few, many):
        learners = olx.batch(descent, eta=np.geomspace(0.01, 1.0, count, dtype=np.float32))
        play = functools.partial(olx.sweep, learners, HINGE, given, jnp.zeros(WIDTH), keep=TOTALS)
        spent[count] = _seconds(play, tries=1) / count / rounds * GB
    case = f"{many:,} configurations, d={WIDTH}, {rounds:,} rounds"
    return [_memory(case), _compared(case, f"{few:,} configurations", spent[few], spent[many])]


def _map(size: int, folder: str) -> olx.Rounds:
    count = size // (4 * WIDTH)
    shapes = {"rows": (count, WIDTH), "targets": (count,)}
    paths = {name: pathlib.Path(folder, name) for name in shapes}
    for name, shape in shapes.items():
        with paths[name].open("wb") as file:
            file.truncate(4 * int(np.prod(shape)))
    maps = [np.memmap(paths[name], np.float32, "r", shape=shapes[name]) for name in shapes]
    return olx.Rounds(*maps)


def _against_arrays(case: str, stream: Any, count: int | None = None) -> list[Row]:
    """Play the stream once, and arrays in memory before and after it."""
    start, count = jnp.zeros(WIDTH), len(stream.outcome) if count is None else count
    block = data.dense(16 * PIECE, WIDTH)
    play = lambda rounds: olx.run(OGD, SQUARED, rounds, start, keep=TOTALS)
    arrays = lambda: play(olx.Rounds(*block))
    inside = [_seconds(arrays)]
    spent = _seconds(lambda: play(stream), tries=1, warm=False) / count * GB
    inside.append(_seconds(arrays))
    theirs = statistics.mean(inside) / block.count * GB
    case = f"{case}, d={WIDTH}"
    return [_memory(case), _compared(case, "arrays in memory", theirs, spent)]


def _compared(case: str, against: str, theirs: float, ours: float) -> Row:
    times = {"theirs": theirs, "ours": ours, "unit": "olx / theirs"}
    return Row(case, against, ours / theirs, most=targets.LARGE_SPEED, **times)


def _memory(case: str) -> Row:
    return Row(case, "peak of resident memory", _peak() / GB, most=targets.LARGE, unit="GB")


def _seconds(
    call: Callable[[], Any],
    tries: int = 3,
    warm: bool = True,
    of: Callable[[list[float]], float] = statistics.median,
) -> float:
    """The median, or another function, of the times of a call; the first call compiles."""
    spent = []
    for _ in range(tries + warm):
        begin = time.perf_counter()
        call()
        spent.append(time.perf_counter() - begin)
    return of(spent[warm:])


def _peak() -> int:
    """The largest resident memory of this process, in bytes."""
    status = pathlib.Path("/proc/self/status")
    if not status.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return 1024 * int(lines[0].split()[1])


def _forget_peak() -> None:
    """Start again to look for the largest memory, where Linux allows it."""
    reset = pathlib.Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")


if __name__ == "__main__":
    found = globals()[sys.argv[1]](**json.loads(sys.argv[2]))
    print(json.dumps([row._asdict() for row in found]))
