"""What boosting gains over its weak learner: tables 3.2 and D.2 of Luo 2016 beside our numbers.

Reads the folders of results of configs/reproduce/luo_table_3_2.toml, or of luo_table_d2.toml and
luo_table_d2_regression.toml, and puts them into one table:

  OLX_DATA=... olx run configs/reproduce/luo_table_3_2.toml
  python experiments/boosting_tables.py results/luo_table_3_2

Each number is that of the configuration that is best on the rows for tuning, by its mean over the
orders of the rows (seeds). The first table holds errors, ours and in print. The second table holds
the relative improvement over the weak learner in percent, (weak - boosted) / weak, in the same
order of the rows. Both have the mean over the orders, and the standard deviation of one order after
the sign ±. A booster is compared with the learner called by the first part of its label, such as
"stumps" for "stumps, algorithm 9", else with the "weak learner". A result that is not finished
shows the jobs so far.
"""

import sys
import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from experiments import output
from olx.lab.report.scores import Score, scores, tuned_score

WEAK = "weak learner"


Orders = dict[int, float]  # a number for each order of the rows


class Errors(NamedTuple):
    """By data set and learner."""

    ours: dict[tuple[str, str], Orders]
    printed: dict[tuple[str, str], float]
    datasets: list[str]
    learners: list[str]


def main() -> None:
    parser = output.arguments(__doc__)
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
    table = pa.concat_tables(map(pq.read_table, parts), promote_options="default")
    everything = scores(table)
    ours, printed = {}, {}
    for entry in config["published"]:
        for dataset, value in entry["values"].items():
            found = tuned_score(everything, dataset, entry["learner"], entry["metric"])
            if found is not None:
                ours[dataset, entry["learner"]] = orders_of(table, found, entry["metric"])
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


def orders_of(table: pa.Table, score: Score, metric: str) -> Orders:
    """The metric of a configuration in each order of the rows."""
    mine = pc.field("dataset") == score.dataset
    mine &= pc.field("learner") == score.learner
    mine &= pc.field("configuration") == score.configuration
    found = table.filter(mine)
    return dict(zip(found["seed"].to_pylist(), found[metric].to_pylist(), strict=True))


def shown(values: Collection[float], digits: str) -> str:
    """The mean, and the standard deviation of one value if there are several."""
    spread = f" ± {np.std(list(values), ddof=1):{digits}}" if len(values) > 1 else ""
    return f"{np.mean(list(values)):{digits}}{spread}"


def error_table(errors: Errors) -> str:
    """Our error, and the one in print."""

    def cell(pair: tuple[str, str]) -> str:
        if pair not in errors.ours:
            return ""
        return f"{shown(errors.ours[pair].values(), '.4f')} ({errors.printed[pair]:.4g})"

    rows = [[name, *(cell((name, one)) for one in errors.learners)] for name in errors.datasets]
    return "Error, ours (in print):\n\n" + output.table(["data", *errors.learners], rows)


def gain_table(errors: Errors) -> str:
    """Relative improvement over the weak learner, and its mean and median over data sets."""
    boosters = [one for one in errors.learners if weak_of(one, errors.learners) != one]
    rows = [[name, *(gain_cell(errors, name, one) for one in boosters)] for name in errors.datasets]
    rows.append(["**mean**", *(last_cell(errors, np.mean, one) for one in boosters)])
    rows.append(["**median**", *(last_cell(errors, np.median, one) for one in boosters)])
    head = "Relative improvement over the weak learner in percent, ours (in print):\n\n"
    return head + output.table(["data", *boosters], rows)


def gain_cell(errors: Errors, name: str, one: str) -> str:
    both = gains(errors, name, one)
    return f"{shown(both[0].values(), '.2f')} ({both[1]:.2f})" if both else ""


def last_cell(errors: Errors, of: Callable[..., float], one: str) -> str:
    """Over the data sets: in each order of the rows, and in print."""
    known = [both for name in errors.datasets if (both := gains(errors, name, one))]
    orders = set.intersection(*(set(ours) for ours, _ in known))
    ours = [of([each[order] for each, _ in known]) for order in sorted(orders)]
    return f"{shown(ours, '.2f')} ({of([printed for _, printed in known]):.2f})"


def gains(errors: Errors, name: str, one: str) -> tuple[Orders, float] | None:
    """Ours in each order of the rows, and the one in print; None if one of the two is missing."""
    pair, base = (name, one), (name, weak_of(one, errors.learners))
    if pair not in errors.ours or base not in errors.ours:
        return None
    mine, weak = errors.ours[pair], errors.ours[base]
    ours = {order: gain(mine[order], weak[order]) for order in mine if order in weak}
    return ours, gain(errors.printed[pair], errors.printed[base])


def gain(boosted: float, weak: float) -> float:
    return 100 * (1 - boosted / weak)


def weak_of(label: str, learners: list[str]) -> str:
    first, comma, _ = label.partition(",")
    return first if comma or WEAK not in learners else WEAK


if __name__ == "__main__":
    main()
