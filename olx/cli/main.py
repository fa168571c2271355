"""Read the words of the `olx` command and do what they ask; an error is one line."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, NoReturn

from olx._terminal import as_line, say_aside
from olx.cli import (
    bench,
    certify,
    diff,
    example,
    help_words,
    list_names,
    new,
    playing,
    predict,
    report,
    run,
    show,
)

EXAMPLES = """examples:
  olx example                                     write quickstart.toml, a config to start from
  olx run quickstart.toml                         play it, print the leaderboard, write the report
  olx run quickstart.toml --set seeds=10 --out results/ten-seeds
  olx run quickstart.toml --executor processes:4  its jobs side by side
  olx list learners                               what a config may name
  olx list omd                                    one name: arguments, theorem, example
  olx show results/quickstart                     the leaderboard again
  olx diff results/quickstart results/ten-seeds   what got better or worse
  olx predict results/quickstart new.csv          predict new rows with the best learner
  olx certify quickstart.toml                     check all theorems of its learners on its runs
  olx new learner mine                            write a learner of your own, and its test
  olx help config                                 every key of a config

To continue a run that was interrupted, type the same command again."""

COMMANDS = (  # as `olx --help` lists them
    example,
    run,
    certify,
    show,
    report,
    diff,
    predict,
    list_names,
    new,
    help_words,
    bench,
)


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None:
        sys.excepthook = _say_traceback
    asked = _parser()[0].parse_args(arguments)
    try:
        return asked.do(asked)
    except KeyboardInterrupt:
        return _interrupted(asked, 130)
    except SystemExit as error:  # raised for SIGTERM
        return _interrupted(asked, int(error.code or 0))
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the reader has left)
        return 0
    except ModuleNotFoundError as error:
        from olx.lab.compare import missing_package

        if (said := missing_package(error)) is None:
            raise
        say_aside(f"olx {asked.command}: {said}")
        return 2
    except (ValueError, OSError) as error:
        say_aside(f"olx {asked.command}: {' '.join(str(error).split())}")
        return 2


def names() -> list[str]:
    """The names of all commands."""
    return list(_parser()[1])


def _interrupted(asked: argparse.Namespace, status: int) -> int:
    kept = playing.kept(asked) if asked.command in ("run", "certify") else ""
    say_aside(f"olx {asked.command}: interrupted{kept}.")
    return status


def _say_traceback(*error: Any) -> None:
    say_aside("".join(traceback.format_exception(*error)).rstrip())


class _Parser(argparse.ArgumentParser):
    """A parser that prints an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, as_line(f"{self.prog}: {message}; see {self.prog} --help") + "\n")


def _parser() -> tuple[argparse.ArgumentParser, dict[str, Any]]:
    """The parser, and that of each command by its name."""
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
    return parser, commands.choices
