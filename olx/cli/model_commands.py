"""The commands of a stored model: `olx predict`, `olx learn` and `olx serve`."""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from olx._terminal import say, say_aside
from olx.cli.commands import Asked, command


def _model_words(parser: argparse.ArgumentParser) -> None:
    """The words that name a model."""
    parser.add_argument("--learner", help="its label (the best of the leaderboard)")
    parser.add_argument("--dataset", help="the label of the data it learned from, if several")
    parser.add_argument(
        "--trust", action="append", default=[], metavar="MODULE",
        help="a module of your own whose functions the learner may use; may be repeated",
    )  # fmt: skip


def _unknown_word(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-unknown", action="store_true", help="a word that is new becomes zeros"
    )


def _predict_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", type=Path, help="a folder that `olx run` wrote, or its model")
    parser.add_argument("data", type=Path, help="a file of rows, with or without labels")
    parser.add_argument(
        "--out", type=Path, default=Path("predictions.csv"),
        help="the file to write, .csv or .parquet (predictions.csv)",
    )  # fmt: skip
    _unknown_word(parser)
    _model_words(parser)


@command(
    "predict",
    "predict new rows with a learner of a result",
    _predict_words,
    """A run stores the best configuration of every learner as it was after its last round. New
rows are read as the first ones were: the same columns, categories, scale and intercept. With the
column of labels in the file, the loss is printed too. In Python: olx.lab.models.read(result) gives
the learner and its state.

A result is data: no code in its folder is run. If the learner is made by a module of your own, name
the module with --trust, and call the command from the folder where you keep it.""",
)
def _predict(asked: Asked) -> int:
    from olx.lab import models

    models.check_suffix(asked.out)
    _check_rows("predict", asked)
    _look_here(asked)
    words = asked.result, asked.data, asked.learner, asked.dataset, asked.allow_unknown, asked.trust
    try:
        served = models.predict(*words)
    except ValueError as error:
        raise ValueError(_as_typed(str(error))) from error
    models.write_predictions(served.table, asked.out)
    about = served.about
    say(f"{_learner_of(about)}, after {about['rounds']:,} rounds of {about['dataset']}.")
    if served.judged:
        say(", ".join(f"mean {name} {value:.4g}" for name, value in served.judged.items()) + ".")
    if served.note:
        say(_as_typed(served.note))
    say(f"The predictions of {served.table.num_rows:,} rows are in {asked.out}.")
    return 0


def _learn_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", type=Path, help="a folder that `olx run` wrote, or its model")
    parser.add_argument("data", type=Path, help="a file of rows with labels, in their order")
    _model_words(parser)


@command(
    "learn",
    "learn the rows of a new file with a learner of a result",
    _learn_words,
    """The rows are read as the first ones were, and each is predicted before it is learned. The
state goes into RESULT/learned, and `olx predict` uses it; the model of the run stays as it is. An
alarm is printed if the mean loss of the new rows is more than 3 standard errors above that of the
last rounds of the run: if rounds are independent, one alarm in 740 is false.""",
)
def _learn(asked: Asked) -> int:
    from olx.lab.learn import learn

    _check_rows("learn", asked)
    _look_here(asked)
    try:
        found = learn(asked.result, asked.data, asked.learner, asked.dataset, asked.trust)
    except ValueError as error:
        raise ValueError(_as_typed(str(error))) from error
    if found.replayed:
        say(f"{found.replayed:,} rows of a service that was stopped were learned first.")
    of = _learner_of(found.about)
    say(f"{of}, after {found.rounds:,} rounds; {found.count:,} of them are of {asked.data}.")
    said = (
        f"mean {name} {value:.4g}"
        + (f" ({found.past[name]:.4g} in its run)" if name in found.past else "")
        for name, value in found.means.items()
    )
    say(", ".join(said) + ".")
    (say_aside if found.alarm else say)(found.judgement)
    return 0


def _serve_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", type=Path, help="a folder that `olx run` wrote, or its model")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one (8000)")
    parser.add_argument("--host", default="127.0.0.1", help="the address (this machine alone)")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a name by which requests may ask for it, such as that of a proxy; may be repeated",
    )  # fmt: skip
    _unknown_word(parser)
    parser.add_argument(
        "--save-every", type=int, default=1000, metavar="ROUNDS", help="save the state (1000)"
    )
    _model_words(parser)


@command(
    "serve",
    "answer requests over HTTP: predict rows, and learn from rows with labels",
    _serve_words,
    """examples:
  olx serve results/mine --port 8000
  curl -H 'Content-Type: application/json' -d '{"age": 30, "city": "Oslo"}' localhost:8000/predict

POST /predict takes a row or a list of rows, POST /learn the same with labels, POST /save stores the
state, GET /health says how the model is. A row that /learn has acknowledged is on the disk: it is
not lost if the process is killed, and `olx serve` continues in the same state.""",
)
def _serve(asked: Asked) -> int:
    from olx.lab.http_server import allowed_hosts, is_loopback, serve
    from olx.lab.learn import open_model
    from olx.lab.service import Service

    if asked.save_every < 1:
        raise ValueError(f"--save-every must be 1 or more, got {asked.save_every}.")
    if not 0 <= asked.port < 1 << 16:
        raise ValueError(f"--port must be from 0 to 65535, got {asked.port}.")
    allowed_hosts(asked.host, asked.allow_host)  # which refuses what is no name
    if not is_loopback(asked.host):
        say_aside(
            f"olx serve: there is no password; whoever reaches {asked.host} can change the model."
        )
    _look_here(asked)
    try:
        with open_model(asked.result, asked.learner, asked.dataset, asked.trust) as model:
            service = Service(model, asked.save_every, asked.allow_unknown)
            if service.replayed:
                say(f"{service.replayed:,} rows were learned again from the log.")
            address = asked.host, asked.port, asked.allow_host
            serve(service, *address, lambda url: _say_served(url, service.health()))
            say(f"Saved after {service.newest.rounds:,} rounds.")
    except ValueError as error:
        raise ValueError(_as_typed(str(error))) from error
    return 0


def _say_served(url: str, health: dict[str, Any]) -> None:
    model = health["model"]
    of = f"{model['learner']} on {model['dataset']}, after {health['rounds']:,} rounds"
    say(f"Serving {of}, on {url}. Ctrl-C saves and stops.")
    sys.stdout.flush()  # whoever started it may wait for this line


def _look_here(asked: Asked) -> None:
    from olx.lab import user_factories

    if asked.trust:
        user_factories.look_in(Path.cwd())


def _learner_of(about: dict[str, Any]) -> str:
    """The learner of a model, with its numbers."""
    from olx.lab.report.scores import configuration

    numbers = configuration(about["hyperparameters"])
    return f"{about['learner']}{f' ({numbers})' if numbers else ''}"


def _check_rows(command: str, asked: Asked) -> None:
    """Refuse a folder in place of the file of rows, such as the result."""
    if asked.data.is_dir() and asked.result.is_file():
        raise ValueError(f"the result comes first: olx {command} {asked.data} {asked.result}")
    if asked.data.is_dir():
        raise ValueError(f"{asked.data} is a folder; give a file of rows.")


def _as_typed(said: str) -> str:
    """A message with the options of the command in place of the arguments of Python."""
    said = said.replace("allow_unknown=True", "--allow-unknown")
    said = re.sub(r"learner=('.*?')", r"--learner \1", said)
    return re.sub(r"trust=\['([\w.]+)'\]", r"--trust \1", said)
