"""Compare the speed of olx with scikit-learn, Vowpal Wabbit, river and numba loops.

    pip install -e '.[bench]'
    python -m benchmarks                      # everything, under half an hour
    python -m benchmarks dense sweeps         # some groups
    python -m benchmarks --quick              # small sizes: does everything run?

All contestants run in this process and take turns; their median times are compared. The tables show
each ratio beside its target, and `missed` if it is not reached. Other work on the machine changes
the ratios, so the report includes the load.
"""

import argparse
import pathlib
import tempfile
import time

from benchmarks import (
    boosting,
    certificates,
    compile_time,
    dense,
    derived,
    experts,
    gpu,
    harness,
    lab,
    large,
    layers,
    outputs,
    overhead,
    second_order,
    sparse,
)

GROUPS = {  # by name: the title of the table, and what measures it
    "dense": ("Dense rows", dense.measure),
    "overhead": ("Overhead", overhead.measure),
    "certify": ("Certificates, per round", certificates.measure),
    "sparse": ("Sparse rows", sparse.measure),
    "sweeps": ("Sweeps, per example and configuration", dense.measure_sweeps),
    "experts": ("Hedge, per round and expert", experts.measure),
    "derived": ("Derived against hand-written learners", derived.measure),
    "first_order": ("First-order learners against Passive-Aggressive", dense.measure_first_order),
    "second_order": ("Second-order learners", second_order.measure),
    "boosting": ("Online boosting", boosting.measure),
    "batch_boosting": ("Batch boosting", boosting.measure_batch),
    "tasks": ("Structured outputs", outputs.measure_chains),
    "multiclass": ("Classes against scikit-learn", outputs.measure_classes),
    "dictionaries": ("Dictionaries", dense.measure_dictionaries),
    "lab": ("The lab against the engine, and against pandas", lab.measure),
    "compile_time": ("Compilation and the price of a call", compile_time.measure),
    "large": ("Large problems", large.measure),
    "layers": ("Fast weights, forward and backward, against a plain scan", layers.measure),
    "gpu": ("A chunk of rounds as one GPU kernel", gpu.measure),
}

OUT = pathlib.Path("results/benchmarks")


def main(arguments: list[str] | None = None) -> None:
    asked = _parser().parse_args(arguments)
    if unknown := set(asked.groups) - set(GROUPS):
        raise SystemExit(
            f"benchmarks: no group {', '.join(unknown)}; there are {', '.join(GROUPS)}."
        )
    if asked.rounds < 1:
        raise SystemExit(f"benchmarks: --rounds must be at least 1, got {asked.rounds}.")
    about = harness.environment(asked.rounds, asked.quick)
    groups = []
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.groups or GROUPS:
            print(f"{name}:", flush=True)
            title, measure = GROUPS[name]
            group = harness.Group(title, asked.rounds, asked.quick, folder)
            start = time.perf_counter()
            try:
                measure(group)
            except Exception as error:  # the other groups are still measured
                group.note("all", "", None, note=harness.reason(error))
            group.seconds = time.perf_counter() - start
            groups.append(group)
            print(f"\n{harness.table([group])}\n\n{group.seconds:.0f} s\n", flush=True)
            about["load at the end"] = harness.load()
            harness.write(asked.out, about, groups)
    if asked.quick:
        print("Sizes were small: fixed costs dominate, so the verdicts mean nothing.")
    print(f"{harness.summary(groups)}\n\nWritten to {asked.out}.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("groups", nargs="*", metavar="group", help=f"{', '.join(GROUPS)}; all if none is given")
    add("--rounds", type=int, default=5, help="turns of each contestant; 5 if not given")
    add("--quick", action="store_true", help="small sizes, at which the ratios mean nothing")
    add("--out", type=pathlib.Path, default=OUT, help=f"folder for the results; {OUT} if not given")
    return parser


if __name__ == "__main__":
    main()
