"""`olx predict`: what a learner of a result says about new rows."""

import argparse
from pathlib import Path
from typing import Any

MORE = """A run stores the best configuration of every learner as it was after its last round. New
rows are read as the first ones were: the same columns, categories, scale and intercept. With the
column of labels in the file, the loss is printed too. In Python: olx.lab.models.read(result) gives
the learner and its state."""


def add(command: Any) -> None:
    parser = command("predict", do, "predict new rows with a learner of a result", MORE)
    parser.add_argument("result", type=Path, help="a folder that `olx run` wrote")
    parser.add_argument("data", type=Path, help="a file of rows, with or without labels")
    parser.add_argument("--learner", help="its label (the best of the leaderboard)")
    parser.add_argument("--dataset", help="the label of the data it learned from, if several")
    parser.add_argument(
        "--out", type=Path, default=Path("predictions.csv"),
        help="the file to write, .csv or .parquet (predictions.csv)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-unknown", action="store_true", help="a word that is new becomes zeros"
    )


def do(asked: argparse.Namespace) -> int:
    from olx.lab import outside, serving
    from olx.lab.report.words import configuration

    serving.check_suffix(asked.out)
    outside.look_in(asked.result.resolve(), Path.cwd())
    words = asked.result, asked.data, asked.learner, asked.dataset, asked.allow_unknown
    try:
        served = serving.predict(*words)
    except ValueError as error:
        raise ValueError(str(error).replace("allow_unknown=True", "--allow-unknown")) from error
    serving.write(served.table, asked.out)
    about = served.about
    numbers = configuration(about["hyperparameters"])
    of = f"{about['learner']}{f' ({numbers})' if numbers else ''}"
    print(f"{of}, after {about['rounds']:,} rounds of {about['dataset']}.")
    if served.judged:
        print(", ".join(f"mean {name} {value:.4g}" for name, value in served.judged.items()) + ".")
    if served.note:
        print(served.note)
    print(f"The predictions of {served.table.num_rows:,} rows are in {asked.out}.")
    return 0
