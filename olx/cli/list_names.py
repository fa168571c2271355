"""`olx list`: the names that a config may use."""

import argparse
from typing import Any

from olx._terminal import say

MORE = """examples:
  olx list                        everything, one line each
  olx list learners               one kind
  olx list omd                    one name: its arguments, defaults, theorem, example"""


def add(command: Any) -> None:
    parser = command("list", do, "show what a config may name, or all about one name", MORE)
    parser.add_argument("what", nargs="?", help="learners, theorems, maps, data, ..., or a name")


def do(asked: argparse.Namespace) -> int:
    from olx.lab.show import listing

    say(listing(asked.what))
    return 0
