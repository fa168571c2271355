"""Read the words of the `olx` command and do what they ask; an error is one line."""

import argparse
import difflib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from types import TracebackType
from typing import NoReturn

from olx._terminal import as_line, say_aside
from olx.cli import model_commands  # noqa: F401 (adds its commands)
from olx.cli.commands import COMMANDS, Asked, result_folder

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
  olx learn results/quickstart new.csv            learn the new rows, if they have labels
  olx serve results/quickstart                    predict and learn over HTTP
  olx certify quickstart.toml                     check all theorems of its learners on its runs
  olx new learner mine                            write a learner of your own, and its test
  olx help config                                 every key of a config

To continue a run that was interrupted, type the same command again."""


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None:
        sys.excepthook = _say_traceback
    asked, unknown = _parser().parse_known_args(arguments)
    if unknown:
        asked.parser.refuse(unknown[0])
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
    except (AssertionError, RuntimeError):
        if not _lacks_devices():
            raise
        say_aside(
            f"olx {asked.command}: JAX finds no device for JAX_PLATFORMS="
            f"{os.environ.get('JAX_PLATFORMS', '')}; unset it, or install JAX for this device."
        )
        return 2


def _lacks_devices() -> bool:
    """Whether JAX cannot start on the platforms that its environment names."""
    import jax

    try:
        return not jax.devices()
    except (AssertionError, RuntimeError):
        return True


def _interrupted(asked: Asked, status: int) -> int:
    """What an interrupted command leaves behind."""
    kept = ""
    if asked.command in ("run", "certify"):
        from olx.lab.store import finished_jobs

        out = result_folder(asked)
        done = len(finished_jobs(out))
        kept = f"; {done} jobs are kept in {out}, repeat the same command to continue"
    say_aside(f"olx {asked.command}: interrupted{kept}.")
    return status


def _say_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    say_aside("".join(traceback.format_exception(kind, error, trace)).rstrip())


class _Parser(argparse.ArgumentParser):
    """A parser that prints an error in one line."""

    def refuse(self, word: str) -> NoReturn:
        """End with what is wrong with a word that the command does not take."""
        near = difflib.get_close_matches(word.partition("=")[0], self._option_string_actions, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        kind = "option" if word.startswith("-") else "further word"
        self.error(f"it takes no {kind} {word}{hint}")

    def error(self, message: str) -> NoReturn:
        if wrong := re.match(r"argument command: invalid choice: '(.*?)'", message):
            near = difflib.get_close_matches(wrong[1], [each.name for each in COMMANDS], 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            message = f"there is no command {wrong[1]}{hint}"
        self.exit(2, as_line(f"{self.prog}: {message}; see {self.prog} --help") + "\n")


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    text = "Online learning in JAX."
    parser = _Parser(prog="olx", description=text, epilog=EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"olx {version('olx')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in COMMANDS:
        description = command.help[0].upper() + command.help[1:] + "."
        made = commands.add_parser(
            command.name, help=command.help, description=description, epilog=command.more,
            formatter_class=raw,
        )  # fmt: skip
        command.add_words(made)
        made.set_defaults(do=command.do, parser=made)
    return parser
