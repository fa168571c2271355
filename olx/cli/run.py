"""`olx run`: play an experiment."""

import argparse
from typing import Any

from olx.cli import playing

FORMAT = """a config:
  seeds = 5                                  # orders of the rows
  metrics = ["error"]

  [[data]]
  name = "sklearn:breast_cancer"             # or a9a, mine.csv, openml:..., stream:...
  scale = "standard"

  [[learners]]
  name = "omd"                               # of `olx list learners`, or mypackage.mine:factory
  linear = true                              # predict <w, x>
  mirror = { name = "pnorm", q = 1.5 }       # arguments by name, nested
  grid.eta = { geomspace = [1e-3, 10, 32] }  # 32 configurations, one program

All keys: python -c "import olx.lab.experiment as e; help(e)"."""


def add(command: Any) -> None:
    said = "play an experiment, print its leaderboard, write its report"
    parser = command("run", do, said, FORMAT)
    parser.add_argument("--no-report", action="store_true", help="print the leaderboard only")
    playing.add(parser)


def do(asked: argparse.Namespace) -> int:
    from olx.lab.show import leaderboard

    out = playing.folder(asked)
    result = playing.played(asked, playing.experiment(asked))
    print(leaderboard(result))
    if not asked.no_report:
        from olx.lab.report import write

        print(f"The report is in {write(out)}.")
    print(f"The tables are in {out}.")
    return 0
