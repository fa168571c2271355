"""`olx run`: play an experiment."""

import argparse
from typing import Any

from olx._terminal import say
from olx.cli import playing

MORE = """`olx example` writes a config to start from, `olx help config` explains every key,
`olx list` shows what a config may name."""


def add(command: Any) -> None:
    said = "play an experiment, print its leaderboard, write its report"
    parser = command("run", do, said, MORE)
    parser.add_argument("--no-report", action="store_true", help="print the leaderboard only")
    playing.add(parser)


def do(asked: argparse.Namespace) -> int:
    from olx.lab.show import leaderboard

    out = playing.folder(asked)
    result = playing.played(asked, playing.experiment(asked))
    say(leaderboard(result))
    if not asked.no_report:
        from olx.lab.report import write

        say(f"The report is in {write(out)}.")
    say(f"The tables are in {out}.")
    return 0
