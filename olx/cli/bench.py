"""`olx bench`: the speed of this machine."""

import argparse
from typing import Any

from olx._terminal import say


def add(command: Any) -> None:
    said = "measure how many rounds per second this machine plays"
    more = "For races against other libraries: python -m benchmarks, in a checkout."
    parser = command("bench", do, said, more)
    parser.add_argument("--rounds", type=int, default=200_000, help="rounds to play (200000)")


def do(asked: argparse.Namespace) -> int:
    from olx.lab.show import bench

    say(bench(asked.rounds))
    return 0
