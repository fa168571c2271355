"""`olx list`: the names that a config may use."""

import argparse
from typing import Any


def add(command: Any) -> None:
    parser = command("list", do, "show what a config may name, one line each")
    parser.add_argument("what", nargs="?", help="learners, theorems, maps, schedules, data, ...")


def do(asked: argparse.Namespace) -> int:
    from olx.lab.show import listing

    print(listing(asked.what))
    return 0
