"""What boosting gains over its weak learner: tables 3.2 and D.2 of Luo 2016 beside our numbers.

Reads the folders of results of configs/reproduce/luo_table_3_2.toml, or of luo_table_d2.toml and
luo_table_d2_regression.toml, and puts them into one table:

  OLX_DATA=... olx run configs/reproduce/luo_table_3_2.toml
  python experiments/boosting_tables.py results/luo_table_3_2

Each number is that of the configuration that is best on the rows for tuning; several seeds are
averaged before. The first table holds errors, ours and in print. The second table holds the
relative improvement over the weak learner in percent, (weak - boosted) / weak. A booster is
compared with the learner called by the first part of its label, such as "stumps" for "stumps,
algorithm 9", else with the "weak learner". A result that is not finished shows the jobs so far.
"""

import argparse
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from olx.lab.report.scores import scores, tuned

WEAK = "weak learner"


class Errors(NamedTuple):
    """By data set and learner."""

    ours: dict[tuple[str, str], float]
    printed: dict[tuple[str, str], float]
    datasets: list[str]
    learners: list[str]


def main() -> None:
    as_it_is = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_it_is)
    parser.add_argument("folders", type=Path, nargs="+", help="of results")
    folders = parser.parse_args().folders
    errors = joined([read(folder) for folder in folders])
    pages = [error_table(errors), gain_table(errors)]
    print("\n\n".join(pages))
    (folders[0] / "boosting.md").write_text("\n\n".join(pages) + "\n")


def read(folder: Path) -> Errors:
    """The errors of a result, and the published ones in its config."""
    if not (folder / "config.toml").is_file():
        sys.exit(f"boosting_tables: {folder} holds no result; `olx run` a config first.")
    config = tomllib.loads((folder / "config.toml").read_text())
    parts = sorted((folder / "jobs").glob("*/configurations.parquet"))
    if not parts:
        sys.exit(f"boosting_tables: no job of {folder} is finished yet.")
    everything = scores(pa.concat_tables(map(pq.read_table, parts), promote_options="default"))
    ours, printed = {}, {}
    for entry in config["published"]:
        for dataset, value in entry["values"].items():
            found = tuned(everything, dataset, entry["learner"], entry["metric"])
            if found is not None:
                ours[dataset, entry["learner"]] = found.means[entry["metric"]]
                printed[dataset, entry["learner"]] = value
    datasets = [each.get("label") or each["name"] for each in config["data"]]
    learners = [each.get("label") or each["name"] for each in config["learners"]]
    seen = lambda names, at: [name for name in names if any(pair[at] == name for pair in ours)]
    return Errors(ours, printed, seen(datasets, 0), seen(learners, 1))


def joined(parts: list[Errors]) -> Errors:
    ours = {pair: value for part in parts for pair, value in part.ours.items()}
    printed = {pair: value for part in parts for pair, value in part.printed.items()}
    datasets = list(dict.fromkeys(name for part in parts for name in part.datasets))
    learners = list(dict.fromkeys(name for part in parts for name in part.learners))
    return Errors(ours, printed, datasets, learners)


def error_table(errors: Errors) -> str:
    """Our error, the one in print, and the difference."""

    def cell(pair: tuple[str, str]) -> str:
        if pair not in errors.ours:
            return ""
        ours, printed = errors.ours[pair], errors.printed[pair]
        return f"{ours:.4g} ({printed:.4g}, {ours - printed:+.2g})"

    rows = [[name, *(cell((name, one)) for one in errors.learners)] for name in errors.datasets]
    return "Error, ours (in print, difference):\n\n" + table(["data", *errors.learners], rows)


def gain_table(errors: Errors) -> str:
    """Relative improvement over the weak learner, and its mean and median over data sets."""
    boosters = [one for one in errors.learners if weak_of(one, errors.learners) != one]
    ours = {one: gains(errors.ours, errors, one) for one in boosters}
    printed = {one: gains(errors.printed, errors, one) for one in boosters}

    def cell(name: str, one: str) -> str:
        return f"{ours[one][name]:.2f} ({printed[one][name]:.2f})" if name in ours[one] else ""

    def last(of, one: str) -> str:
        both = [of(list(each[one].values())) for each in (ours, printed)]
        return f"{both[0]:.2f} ({both[1]:.2f})"

    rows = [[name, *(cell(name, one) for one in boosters)] for name in errors.datasets]
    rows.append(["**mean**", *(last(np.mean, one) for one in boosters)])
    rows.append(["**median**", *(last(np.median, one) for one in boosters)])
    head = "Relative improvement over the weak learner in percent, ours (in print):\n\n"
    order = sorted(boosters, key=lambda one: -np.mean(list(ours[one].values())))
    ranks = ", ".join(f"{one} {np.mean(list(ours[one].values())):+.2f} %" for one in order)
    return head + table(["data", *boosters], rows) + f"\n\nBy mean improvement: {ranks}."


def gains(values: dict[tuple[str, str], float], errors: Errors, one: str) -> dict[str, float]:
    weak, found = weak_of(one, errors.learners), {}
    for name in errors.datasets:
        if (name, one) in values and (name, weak) in values:
            found[name] = 100 * (1 - values[name, one] / values[name, weak])
    return found


def weak_of(label: str, learners: list[str]) -> str:
    first, comma, _ = label.partition(",")
    return first if comma or WEAK not in learners else WEAK


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
