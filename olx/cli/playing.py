"""What the commands that play a config share: its words, its folder, its result."""

import argparse
from pathlib import Path
from typing import Any


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the words of a command that plays a config."""
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


def folder(asked: argparse.Namespace) -> Path:
    """The folder of the result."""
    certified = "-certified" if asked.command == "certify" else ""
    return asked.out or Path("results") / f"{Path(asked.config).stem}{certified}"


def experiment(asked: argparse.Namespace) -> Any:
    """The experiment that the config describes, with the settings of the command line."""
    from olx.lab import config, user_factories
    from olx.lab.data.sources import SCHEMES

    home = Path(asked.config).resolve().parent
    user_factories.look_in(home, Path.cwd())
    made = config.read(asked.config, asked.set)
    own = user_factories.named_modules(made.plain(), SCHEMES)
    if own and user_factories.is_inside_result(home):
        raise ValueError(
            f"{asked.config} is inside a result and names the module {min(own)}, and no code of a "
            "result is run; copy the config to the folder where you keep the module."
        )
    return made


def played(asked: argparse.Namespace, experiment: Any) -> Any:
    """The result; an error names the file of the config."""
    from olx.lab.config import ConfigError
    from olx.lab.run import run

    try:
        options = {"force": asked.force, "wait": not asked.no_wait, "executor": asked.executor}
        return run(experiment, folder(asked), **options)
    except ConfigError as error:
        raise ConfigError(f"{asked.config}: {error}") from error


def kept(asked: argparse.Namespace) -> str:
    """What an interrupted run leaves behind."""
    from olx.lab.store import finished

    out = folder(asked)
    done = len(finished(out))
    return f"; {done} jobs are kept in {out}, repeat the same command to continue"
