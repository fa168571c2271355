"""The `olx` command: run an experiment, show its result, list the names for configs."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

EXAMPLES = """examples:
  olx run configs/quickstart.toml                 play it, print the leaderboard, write the report
  olx run configs/quickstart.toml --set seeds=10 --out results/ten-seeds
  olx list learners                               what a config may name
  olx show results/quickstart                     the leaderboard again
  olx certify configs/quickstart.toml             check all theorems of its learners on its runs

To continue a run that was interrupted, type the same command again.
`olx run --help` shows the format of a config, `olx list data` shows the data sets."""


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
    said = f"olx {asked.command}: interrupted"
    if asked.command in ("run", "certify"):
        from olx.lab.store import finished

        out = _folder(asked)
        said += (
            f"; {len(finished(out))} jobs are kept in {out}, repeat the same command to continue"
        )
    print(f"{said}.", file=sys.stderr)
    return status


def _played(asked: argparse.Namespace, experiment: Any) -> Any:
    """The result; an error names the file of the config."""
    from olx.lab.config import ConfigError
    from olx.lab.run import run

    try:
        return run(experiment, _folder(asked))
    except ConfigError as error:
        raise ConfigError(f"{asked.config}: {error}") from error


def _folder(asked: argparse.Namespace) -> Path:
    certified = "-certified" if asked.command == "certify" else ""
    return asked.out or Path("results") / f"{Path(asked.config).stem}{certified}"


def _experiment(asked: argparse.Namespace) -> Any:
    from olx.lab import config, outside

    outside.look_in(Path(asked.config).resolve().parent, Path.cwd())
    return config.read(asked.config, asked.set)


def _run(asked: argparse.Namespace) -> int:
    from olx.lab.show import leaderboard

    out = _folder(asked)
    result = _played(asked, _experiment(asked))
    print(leaderboard(result))
    if not asked.no_report:
        from olx.lab.report import write

        print(f"The report is in {write(out)}.")
    print(f"The tables are in {out}.")
    return 0


def _certify(asked: argparse.Namespace) -> int:
    from olx.lab.show import certificates

    experiment = _experiment(asked)
    experiment.comparator = experiment.comparator or "best"
    experiment.bound = "all" if asked.all else experiment.bound or "best"
    result = _played(asked, experiment)
    print(certificates(result))
    return 0 if all(result.certificates.column("holds").to_pylist()) else 1


def _show(asked: argparse.Namespace) -> int:
    from olx.lab import store
    from olx.lab.show import leaderboard

    print(leaderboard(store.read(asked.result)))
    return 0


def _report(asked: argparse.Namespace) -> int:
    from olx.lab.report import write

    print(write(asked.result))
    return 0


def _list(asked: argparse.Namespace) -> int:
    from olx.lab.show import listing

    print(listing(asked.what))
    return 0


def _bench(asked: argparse.Namespace) -> int:
    from olx.lab.bench import bench

    print(bench(asked.rounds))
    return 0


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

    run = command(
        "run", _run, "play an experiment, print its leaderboard, write its report", FORMAT
    )
    run.add_argument("--no-report", action="store_true", help="print the leaderboard only")
    certify = command(
        "certify", _certify, "check all theorems of every learner on its runs", CERTIFY
    )
    certify.add_argument("--all", action="store_true", help="check every configuration")
    for one in (run, certify):
        one.add_argument("config", help="a TOML file, such as configs/quickstart.toml")
        one.add_argument(
            "--set", action="append", default=[], metavar="KEY=VALUE",
            help="change the config: seeds=3, data.0.name=a9a, learners.1.eta=0.1; may be repeated",
        )  # fmt: skip
        one.add_argument("--out", type=Path, help="folder of the result (results/<config>)")
    for name, do, help in (
        ("show", _show, "print the leaderboard of a result"),
        ("report", _report, "write the report of a result again"),
    ):
        command(name, do, help).add_argument("result", help="a folder that `olx run` wrote")
    listed = command("list", _list, "show what a config may name, one line each")
    listed.add_argument("what", nargs="?", help="learners, theorems, maps, schedules, data, ...")
    bench = command("bench", _bench, "measure how many rounds per second this machine plays", BENCH)
    bench.add_argument("--rounds", type=int, default=200_000, help="rounds to play (200000)")
    return parser


FORMAT = """a config:
  seeds = 5                                  # orders of the rows
  metrics = ["error"]

  [[data]]
  name = "sklearn:breast_cancer"             # or a9a, mine.csv, openml:..., stream:...
  scale = "standard"

  [[learners]]
  name = "omd"                               # of `olx list learners`, or mypackage.mine:factory
  linear = true                              # predict <w, x>
  mirror = { name = "pnorm", q = 1.5 }       # arguments by name, nested
  grid.eta = { geomspace = [1e-3, 10, 32] }  # 32 configurations, one program

All keys: python -c "import olx.lab.experiment as e; help(e)"."""
CERTIFY = """All theorems of a learner are checked on the run shown. To choose some, name them in
the config of the learner: theorems = ["mirror_descent"], or with arguments
theorems = [{ name = "winnow_mistakes", margin = 0.2 }]; `olx list theorems` shows all. The
comparator is the best in hindsight if the config names none; compare_in = "simplex" in the table of
a learner names the set to search. The exit status is 1 if a theorem fails."""
BENCH = "For races against other libraries: python -m benchmarks, in a checkout."

if __name__ == "__main__":
    sys.exit(main())
