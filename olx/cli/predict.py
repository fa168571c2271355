"""`olx predict`: what a learner of a result says about new rows."""

import argparse
import re
from pathlib import Path
from typing import Any

from olx._terminal import say

MORE = """A run stores the best configuration of every learner as it was after its last round. New
rows are read as the first ones were: the same columns, categories, scale and intercept. With the
column of labels in the file, the loss is printed too. In Python: olx.lab.models.read(result) gives
the learner and its state.

A result is data: no code in its folder is run. If the learner is made by a module of your own, name
the module with --trust, and call the command from the folder where you keep it."""


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
        "--trust", action="append", default=[], metavar="MODULE",
        help="a module of your own whose functions the learner may use; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--allow-unknown", action="store_true", help="a word that is new becomes zeros"
    )


def do(asked: argparse.Namespace) -> int:
    from olx.lab import outside, serving
    from olx.lab.report.scores import configuration

    serving.check_suffix(asked.out)
    if asked.trust:
        outside.look_in(Path.cwd())
    words = asked.result, asked.data, asked.learner, asked.dataset, asked.allow_unknown, asked.trust
    try:
        served = serving.predict(*words)
    except ValueError as error:
        raise ValueError(_as_typed(str(error))) from error
    serving.write(served.table, asked.out)
    about = served.about
    numbers = configuration(about["hyperparameters"])
    of = f"{about['learner']}{f' ({numbers})' if numbers else ''}"
    say(f"{of}, after {about['rounds']:,} rounds of {about['dataset']}.")
    if served.judged:
        say(", ".join(f"mean {name} {value:.4g}" for name, value in served.judged.items()) + ".")
    if served.note:
        say(_as_typed(served.note))
    say(f"The predictions of {served.table.num_rows:,} rows are in {asked.out}.")
    return 0


def _as_typed(said: str) -> str:
    """A message with the options of the command in place of the arguments of Python."""
    said = said.replace("allow_unknown=True", "--allow-unknown")
    return re.sub(r"trust=\['([\w.]+)'\]", r"--trust \1", said)
