"""`olx report`: write the report of a result."""

import argparse
from typing import Any

from olx._terminal import say


def add(command: Any) -> None:
    parser = command("report", do, "write the report of a result again")
    parser.add_argument("result", help="a folder that `olx run` wrote")


def do(asked: argparse.Namespace) -> int:
    from olx.lab.report import write

    say(str(write(asked.result)))
    return 0
