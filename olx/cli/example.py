"""`olx example`: write the example config."""

import argparse
from pathlib import Path
from typing import Any

from olx._terminal import say
from olx.cli.new import template, write

NAME = "quickstart.toml"


def add(command: Any) -> None:
    said = "write an example config, quickstart.toml, which needs no download"
    parser = command("example", do, said)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."), help="where (here)")


def do(asked: argparse.Namespace) -> int:
    path = asked.folder / NAME
    write({path: template(NAME)})
    say(f"Try it: olx run {path}")
    return 0
