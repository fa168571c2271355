"""`olx show`: print a result."""

import argparse
from typing import Any

from olx._terminal import say


def add(command: Any) -> None:
    parser = command("show", do, "print the leaderboard of a result")
    parser.add_argument("result", help="a folder that `olx run` wrote")


def do(asked: argparse.Namespace) -> int:
    from olx.lab import store
    from olx.lab.show import leaderboard

    say(leaderboard(store.read(asked.result)))
    return 0
