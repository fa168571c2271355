"""Compare the speed of olx with scikit-learn, Vowpal Wabbit, river and numba loops.

    pip install -e '.[bench]'
    python -m benchmarks                      # everything, some minutes
    python -m benchmarks dense sweeps         # some groups
    python -m benchmarks --quick              # small sizes: does everything run?

All contestants run in this process and take turns; their median times are compared. The tables show
each ratio beside its target, and `missed` if it is not reached. Other work on the machine changes
the ratios, so the report includes the load.
"""

import argparse
import pathlib
import tempfile

from benchmarks import (
    accelerator,
    batch_boosting,
    boosting,
    compile_time,
    dense,
    derived,
    dictionaries,
    experts,
    first_order,
    lab,
    large,
    multiclass,
    overhead,
    report,
    second_order,
    sparse,
    sweeps,
    tasks,
)
from benchmarks.settings import Settings

GROUPS = {
    "dense": dense.measure,
    "overhead": overhead.measure,
    "sparse": sparse.measure,
    "sweeps": sweeps.measure,
    "experts": experts.measure,
    "derived": derived.measure,
    "first_order": first_order.measure,
    "second_order": second_order.measure,
    "boosting": boosting.measure,
    "batch_boosting": batch_boosting.measure,
    "tasks": tasks.measure,
    "multiclass": multiclass.measure,
    "dictionaries": dictionaries.measure,
    "lab": lab.measure,
    "compile_time": compile_time.measure,
    "large": large.measure,
    "accelerator": accelerator.measure,
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
    about = report.environment(asked.rounds, asked.quick)
    groups = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(asked.rounds, asked.quick, folder)
        for name in asked.groups or GROUPS:
            print(f"{name}:", flush=True)
            group = GROUPS[name](settings)
            groups.append(group)
            print(f"\n{report.table([group])}\n", flush=True)
            about["load at the end"] = report.load()
            report.write(asked.out, about, groups)
    if asked.quick:
        print("Sizes were small: fixed costs dominate, so the verdicts mean nothing.")
    print(f"{report.summary(groups)} Written to {asked.out}.")


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
