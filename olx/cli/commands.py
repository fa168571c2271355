"""The commands of `olx`: a function for each, with its words above it.

A command imports what it needs when it is called, so that `olx --help` answers at once.
"""

import argparse
import importlib.util
import keyword
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from olx._terminal import say

if TYPE_CHECKING:
    from olx.lab.experiment import Experiment
    from olx.lab.store import Result

Asked = argparse.Namespace  # the words of a command
TEMPLATES = {  # of `olx new`, by kind: the template of each file, and its name
    "learner": {"learner.py.txt": "NAME.py", "test_learner.py.txt": "test_NAME.py"},
    "regularizer": {"regularizer.py.txt": "NAME.py", "test_regularizer.py.txt": "test_NAME.py"},
    "experiment": {"experiment.toml.txt": "NAME.toml"},
}


class Command(NamedTuple):
    """A command: its name, what it does, its words, and more help."""

    name: str
    do: Callable[[Asked], int]
    help: str
    add_words: Callable[[argparse.ArgumentParser], object]
    more: str = ""


COMMANDS: list[Command] = []  # as `olx --help` lists them


def names() -> list[str]:
    """The names of all commands."""
    return [command.name for command in COMMANDS]


def command(
    name: str, help: str, words: Callable[[argparse.ArgumentParser], object], more: str = ""
) -> Callable[[Callable[[Asked], int]], Callable[[Asked], int]]:
    """Make a function a command."""

    def add(do: Callable[[Asked], int]) -> Callable[[Asked], int]:
        COMMANDS.append(Command(name, do, help, words, more))
        return do

    return add


def _example_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, default=Path("."), help="where (here)")


@command(
    "example", "write an example config, quickstart.toml, which needs no download", _example_words
)
def _example(asked: Asked) -> int:
    path = asked.folder / "quickstart.toml"
    _write_files({path: _template("quickstart.toml")})
    say(f"Try it: olx run {path}")
    return 0


def _playing_words(parser: argparse.ArgumentParser) -> None:
    """The words of a command that plays a config."""
    parser.add_argument("config", help="a TOML file, such as configs/quickstart.toml")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="change the config: seeds=3, data.0.name=a9a, learners.1.eta=0.1; may be repeated",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="folder of the result (results/<config>)")
    parser.add_argument(
        "--force", action="store_true", help="play all jobs again, also those that have not changed"
    )
    parser.add_argument(
        "--no-wait", action="store_true", help="refuse, if another run is using the folder"
    )
    parser.add_argument(
        "--executor", metavar="WHO",
        help="who plays the jobs: processes:4, dask:ADDRESS, slurm:PARTITION or local:2; this "
        "process, one after the other, if left out",
    )  # fmt: skip


def _run_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-report", action="store_true", help="print the leaderboard only")
    _playing_words(parser)


@command(
    "run",
    "play an experiment, print its leaderboard, write its report",
    _run_words,
    """`olx example` writes a config to start from, `olx help config` explains every key,
`olx list` shows what a config may name.""",
)
def _run(asked: Asked) -> int:
    from olx.lab.show import leaderboard

    out = result_folder(asked)
    say(leaderboard(_result(asked, _experiment(asked))))
    if not asked.no_report:
        from olx.lab.report import write

        say(f"The report is in {write(out)}.")
    say(f"The tables are in {out}.")
    return 0


def _certify_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="check every configuration")
    _playing_words(parser)


@command(
    "certify",
    "check all theorems of every learner on its runs",
    _certify_words,
    """All theorems of a learner are checked on the run shown. To choose some, name them in
the config of the learner: theorems = ["mirror_descent"], or with arguments
theorems = [{ name = "winnow_mistakes", margin = 0.2 }]; `olx list theorems` shows all. The
comparator is the best in hindsight if the config names none; compare_in = "simplex" in the table of
a learner names the set to search. The exit status is 1 if a theorem fails.""",
)
def _certify(asked: Asked) -> int:
    from olx.lab.show import certificates

    experiment = _experiment(asked)
    experiment.comparator = experiment.comparator or "best"
    experiment.bound = "all" if asked.all else experiment.bound or "best"
    result = _result(asked, experiment)
    say(certificates(result))
    return 0 if all(result.certificates.column("holds").to_pylist()) else 1


def _result_word(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", help="a folder that `olx run` wrote")


@command("show", "print the leaderboard of a result", _result_word)
def _show(asked: Asked) -> int:
    from olx.lab import store
    from olx.lab.show import leaderboard

    say(leaderboard(store.read(asked.result)))
    return 0


@command("report", "write the report of a result again", _result_word)
def _report(asked: Asked) -> int:
    from olx.lab.report import write

    say(str(write(asked.result)))
    return 0


def _table_words(parser: argparse.ArgumentParser) -> None:
    _result_word(parser)
    formats, sides = ["latex", "markdown", "csv"], ["data", "learners"]
    parser.add_argument("--format", default="latex", choices=formats, help="of the text (latex)")
    parser.add_argument("--columns", default="data", choices=sides, help="what they are (data)")
    parser.add_argument("--metric", default="loss", help="loss, or a metric of the result (loss)")


@command(
    "table",
    "print a result as a table for a paper",
    _table_words,
    """Mean and standard error over seeds of every learner at its configuration of the smallest mean
loss. The best of a data set is bold; those that do not differ from it significantly are underlined.
The caption names the test.

  olx table results/mine > table.tex
  olx table results/mine --format markdown --columns learners --metric error""",
)
def _table(asked: Asked) -> int:
    from olx.lab import store
    from olx.lab.report.paper import paper_table, text_of

    table = paper_table(store.read(asked.result), asked.columns, asked.metric)
    say(text_of(table, asked.format))
    return 0


def _diff_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", help="a folder that `olx run` wrote")
    parser.add_argument("second", help="another one")
    parser.add_argument("--out", type=Path, help="the page (SECOND/diff-FIRST.html)")


@command(
    "diff",
    "compare two results: what got better or worse",
    _diff_words,
    """Every learner is compared at its best configuration. A change counts as better or worse
if it is more than 2 standard errors over seeds. The tables also name what differs in the configs,
the data and the environments of the two results.""",
)
def _diff(asked: Asked) -> int:
    from olx.lab import store
    from olx.lab.report.page import write_difference
    from olx.lab.show import differences

    first, second = store.read(asked.first), store.read(asked.second)
    name = f"diff-{first.folder.resolve().name}.html"
    say(differences(first, second))
    say(f"The page is in {write_difference(first, second, asked.out or second.folder / name)}.")
    return 0


@command(
    "list",
    "show what a config may name, or all about one name",
    lambda parser: parser.add_argument(
        "what", nargs="?", help="learners, theorems, maps, data, ..., or a name"
    ),
    """examples:
  olx list                        everything, one line each
  olx list learners               one kind
  olx list mirrors                one package of olx
  olx list omd                    one name: its arguments, defaults, theorem, example""",
)
def _list(asked: Asked) -> int:
    from olx.lab.listing import listing

    say(listing(asked.what))
    return 0


def _new_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=list(TEMPLATES), help="what to write")
    parser.add_argument("name", help="its name, such as momentum")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where to write it (here)")


@command(
    "new",
    "write a commented learner, regularizer or experiment of your own, which runs",
    _new_words,
    """examples:
  olx new learner momentum        momentum.py and test_momentum.py, which checks it
  olx new regularizer bowl        bowl.py, a mirror map from a formula, and test_bowl.py
  olx new experiment first        first.toml; play it with olx run first.toml""",
)
def _new(asked: Asked) -> int:
    name = asked.name
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(
            f"{name!r} is no name of Python; use letters, digits and _, such as my_{asked.kind}."
        )
    if asked.kind != "experiment" and importlib.util.find_spec(name) is not None:
        raise ValueError(f"there is a module {name} already; choose another name.")
    texts = {
        asked.folder / file.replace("NAME", name): _template(kept).replace("NAME", name)
        for kept, file in TEMPLATES[asked.kind].items()
    }
    _write_files(texts)
    next_step = "olx run" if asked.kind == "experiment" else "pytest"
    say(f"Try it: {next_step} {list(texts)[-1]}")
    return 0


@command(
    "help",
    "explain a command, or every key of a config",
    lambda parser: parser.add_argument("topic", nargs="?", help="a command, or config"),
    """examples:
  olx help                        all commands
  olx help run                    the words of a command
  olx help config                 every key of a config, with its meaning and default""",
)
def _help(asked: Asked) -> int:
    if asked.topic == "config":
        from olx.lab.config import config_help

        say(config_help())
        return 0
    if asked.topic is not None and asked.topic not in names():
        from difflib import get_close_matches

        near = get_close_matches(asked.topic, [*names(), "config"], 1)
        hint = f"did you mean {near[0]}?" if near else f"it is config, {', '.join(names())}."
        raise ValueError(f"there is no topic {asked.topic}; {hint}")
    from olx.cli.main import main

    try:
        main([*([asked.topic] if asked.topic else []), "--help"])
    except SystemExit as exit:
        return int(exit.code or 0)
    return 0


@command(
    "bench",
    "measure how many rounds per second this machine plays",
    lambda parser: parser.add_argument(
        "--rounds", type=int, default=200_000, help="rounds to play (200000)"
    ),
    "For races against other libraries: python -m benchmarks, in a checkout.",
)
def _bench(asked: Asked) -> int:
    from olx.lab.show import bench

    say(bench(asked.rounds))
    return 0


def result_folder(asked: Asked) -> Path:
    """The folder of the result."""
    certified = "-certified" if asked.command == "certify" else ""
    return asked.out or Path("results") / f"{Path(asked.config).stem}{certified}"


def _experiment(asked: Asked) -> "Experiment":
    """The experiment that the config describes, with the settings of the command line."""
    from olx.lab import config, user_factories
    from olx.lab.data.sources import SCHEMES

    home = Path(asked.config).resolve().parent
    user_factories.look_in(home, Path.cwd())
    made = config.read(asked.config, asked.set)
    plain = made.plain()
    named = {name for each in plain.pop("data", []) for name in user_factories.named_modules(each)}
    own = named - {*SCHEMES} | user_factories.named_modules(plain)  # schemes are only of data
    if own and user_factories.is_inside_result(home):
        raise ValueError(
            f"{asked.config} is inside a result and names the module {min(own)}, and no code of a "
            "result is run; copy the config to the folder where you keep the module."
        )
    return made


def _result(asked: Asked, experiment: "Experiment") -> "Result":
    """The result of playing; an error names the file of the config."""
    from olx.lab.config import ConfigError
    from olx.lab.run import run

    try:
        options = {"force": asked.force, "wait": not asked.no_wait, "executor": asked.executor}
        return run(experiment, result_folder(asked), **options)
    except ConfigError as error:
        raise ConfigError(f"{asked.config}: {error}") from error


def _template(name: str) -> str:
    return resources.files("olx.cli").joinpath("templates", name).read_text("utf-8")


def _write_files(texts: dict[Path, str]) -> None:
    """Write new files, all of them or none."""
    for path in texts:
        if path.exists():
            raise FileExistsError(f"{path} is there already; choose another name, or remove it.")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        say(f"Wrote {path}.")
