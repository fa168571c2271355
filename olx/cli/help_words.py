"""`olx help`: every key of a config, or the words of a command."""

import argparse
from typing import Any

from olx._terminal import say

MORE = """examples:
  olx help                        all commands
  olx help run                    the words of a command
  olx help config                 every key of a config, with its meaning and default"""


def add(command: Any) -> None:
    parser = command("help", do, "explain a command, or every key of a config", MORE)
    parser.add_argument("topic", nargs="?", help="a command, or config")


def do(asked: argparse.Namespace) -> int:
    if asked.topic == "config":
        from olx.lab.config import config_help

        say(config_help())
        return 0
    from olx.cli.main import main, names

    if asked.topic is not None and asked.topic not in names():
        from difflib import get_close_matches

        near = get_close_matches(asked.topic, [*names(), "config"], 1)
        hint = f"did you mean {near[0]}?" if near else f"it is config, {', '.join(names())}."
        raise ValueError(f"there is no topic {asked.topic}; {hint}")
    try:
        main([*([asked.topic] if asked.topic else []), "--help"])
    except SystemExit as exit:
        return int(exit.code or 0)
    return 0
