"""`olx certify`: check theorems on the runs of an experiment."""

import argparse
from typing import Any

from olx._terminal import say
from olx.cli import playing

MORE = """All theorems of a learner are checked on the run shown. To choose some, name them in
the config of the learner: theorems = ["mirror_descent"], or with arguments
theorems = [{ name = "winnow_mistakes", margin = 0.2 }]; `olx list theorems` shows all. The
comparator is the best in hindsight if the config names none; compare_in = "simplex" in the table of
a learner names the set to search. The exit status is 1 if a theorem fails."""


def add(command: Any) -> None:
    parser = command("certify", do, "check all theorems of every learner on its runs", MORE)
    parser.add_argument("--all", action="store_true", help="check every configuration")
    playing.add(parser)


def do(asked: argparse.Namespace) -> int:
    from olx.lab.show import certificates

    experiment = playing.experiment(asked)
    experiment.comparator = experiment.comparator or "best"
    experiment.bound = "all" if asked.all else experiment.bound or "best"
    result = playing.played(asked, experiment)
    say(certificates(result))
    return 0 if all(result.certificates.column("holds").to_pylist()) else 1
