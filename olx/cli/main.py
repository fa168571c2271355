"""Read the words of the `olx` command and do what they ask; an error is one line."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NoReturn

from olx.cli import bench, certify, list_names, playing, predict, report, run, show

EXAMPLES = """examples:
  olx run configs/quickstart.toml                 play it, print the leaderboard, write the report
  olx run configs/quickstart.toml --set seeds=10 --out results/ten-seeds
  olx list learners                               what a config may name
  olx show results/quickstart                     the leaderboard again
  olx predict results/quickstart new.csv          predict new rows with the best learner
  olx certify configs/quickstart.toml             check all theorems of its learners on its runs

To continue a run that was interrupted, type the same command again.
`olx run --help` shows the format of a config, `olx list data` shows the data sets."""

COMMANDS = (run, certify, show, report, predict, list_names, bench)  # as `olx --help` lists them


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    try:
        return asked.do(asked)
    except KeyboardInterrupt:
        return _interrupted(asked, 130)
    except SystemExit as error:  # raised for SIGTERM
        return _interrupted(asked, int(error.code or 0))
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the reader has left)
        return 0
    except (ValueError, OSError) as error:
        print(f"olx {asked.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _interrupted(asked: argparse.Namespace, status: int) -> int:
    kept = playing.kept(asked) if asked.command in ("run", "certify") else ""
    print(f"olx {asked.command}: interrupted{kept}.", file=sys.stderr)
    return status


class _Parser(argparse.ArgumentParser):
    """A parser that prints an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    text = "Online learning in JAX."
    parser = _Parser(prog="olx", description=text, epilog=EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"olx {version('olx')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, do: Any, help: str, more: str = "") -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=help, description=help[0].upper() + help[1:] + ".", epilog=more,
            formatter_class=raw,
        )  # fmt: skip
        made.set_defaults(do=do)
        return made

    for each in COMMANDS:
        each.add(command)
    return parser
