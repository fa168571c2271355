"""`olx diff`: compare two results."""

import argparse
from pathlib import Path
from typing import Any

from olx._terminal import say

MORE = """Every learner is compared at its best configuration. A change counts as better or worse
if it is more than 2 standard errors over seeds. The tables also name what differs in the configs,
the data and the environments of the two results."""


def add(command: Any) -> None:
    parser = command("diff", do, "compare two results: what got better or worse", MORE)
    parser.add_argument("first", help="a folder that `olx run` wrote")
    parser.add_argument("second", help="another one")
    parser.add_argument("--out", type=Path, help="the page (SECOND/diff-FIRST.html)")


def do(asked: argparse.Namespace) -> int:
    from olx.lab import store
    from olx.lab.report.page import write_difference
    from olx.lab.show import differences

    first, second = store.read(asked.first), store.read(asked.second)
    name = f"diff-{first.folder.resolve().name}.html"
    say(differences(first, second))
    say(f"The page is in {write_difference(first, second, asked.out or second.folder / name)}.")
    return 0
