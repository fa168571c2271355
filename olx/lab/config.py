"""An experiment as one TOML file: data, apart from the code that plays it and that judges it.

    title = "Which geometry serves?"
    seeds = 5                               # or a list; each is an order of the rows
    loss = "logistic"                       # of olx.losses, or { name = "margin_hinge", ... }
    metrics = ["error"]                     # of olx.lab.metrics
    comparator = "best"                     # regret against: best, zero, truth
    bound = "best"                          # certify: the best configuration of each job, or all

    [[data]]
    name = "sklearn:breast_cancer"          # see olx.lab.data
    scale = "standard"

    [[learners]]
    name = "omd"                            # of olx, or dotted: "experts.squint"
    linear = true                           # make a point learner predict <w, x>
    mirror = { name = "pnorm", q = 1.5 }    # arguments by name, nested
    grid.eta = { geomspace = [1e-3, 10, 32] }
    grid."mirror.q" = [1.2, 1.5, 2.0]

A key that is not known is refused with the nearest one that is.
"""

import difflib
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from olx.lab.experiment import Budget, Data, Experiment, Player, Published, Random


class ConfigError(ValueError):
    """A config that cannot be used, in one line: where, what, and the remedy."""


def read(path: str | os.PathLike, settings: Sequence[str] = ()) -> Experiment:
    """The experiment in the file `path`, changed by `settings` such as "seeds=3"."""
    path = Path(path)
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such config.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise ConfigError(f"{path} is not TOML: {error}.") from None
    try:
        for setting in settings:
            _set(tree, setting)
        return parse(tree)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse(tree: dict[str, Any]) -> Experiment:
    """The experiment of a dictionary of plain values."""
    _known(tree, Experiment, "")
    tree = {**tree, "learners": [_player(i, table) for i, table in _tables(tree, "learners")]}
    for i, table in _tables(tree, "data"):
        _known(table, Data, f"data.{i}.")
    for i, table in _tables(tree, "published"):
        _known(table, Published, f"published.{i}.")
    _known(tree.get("budget", {}), Budget, "budget.")
    try:
        experiment = msgspec.convert(tree, Experiment)
    except msgspec.ValidationError as error:
        what, _, where = str(error).replace("`", "").partition(" - at $.")
        raise ConfigError(f"{_dotted(where) + ': ' if where else ''}{_lower(what)}.") from None
    _check(experiment)
    return experiment


def nearest(word: str, legal: Sequence[str], otherwise: str = "") -> str:
    """A hint: the legal word that is nearest, or all of them."""
    near = difflib.get_close_matches(word, legal, 1, 0.5)
    return f"did you mean {near[0]}?" if near else otherwise or f"it takes {', '.join(legal)}."


def _player(i: int, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(f"learners.{i}: expected a table, got {table!r}.")
    own = [name for name in Player.__struct_fields__ if name != "arguments"]
    arguments = {name: value for name, value in table.items() if name not in own}
    if isinstance(table.get("random"), dict):
        _known(table["random"], Random, f"learners.{i}.random.")
    return {**{name: table[name] for name in own if name in table}, "arguments": arguments}


def _tables(tree: dict[str, Any], name: str) -> list[tuple[int, Any]]:
    tables = tree.get(name, [])
    if not isinstance(tables, list):
        raise ConfigError(f"{name}: expected tables, written [[{name}]], got one [{name}].")
    return list(enumerate(tables))


def _known(table: Any, kind: type[msgspec.Struct], where: str) -> None:
    if not isinstance(table, dict):
        raise ConfigError(f"{where.rstrip('.')}: expected a table, got {table!r}.")
    for word in table:
        if word not in kind.__struct_fields__:
            raise ConfigError(f"unknown key {where}{word}; {nearest(word, kind.__struct_fields__)}")


def _check(experiment: Experiment) -> None:
    for name, entries in (("data", experiment.data), ("learners", experiment.learners)):
        if not entries:
            raise ConfigError(f"{name}: give at least one, as [[{name}]].")
        labels = [entry.label or entry.name for entry in entries]
        for label in labels:
            if labels.count(label) > 1:
                raise ConfigError(f"{name}: two are called {label!r}; give one of them a label.")
    seeds = experiment.all_seeds
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ConfigError(f"seeds: give a number, or different seeds, got {experiment.seeds}.")
    if not 0 < experiment.test < 1:
        raise ConfigError(f"test: it is a share of the rows, got {experiment.test}.")
    if experiment.curve < 1:
        raise ConfigError(f"curve: give at least 1 point a decade, got {experiment.curve}.")
    if experiment.bound is not None and experiment.comparator is None:
        raise ConfigError('bound: a bound is against someone; give comparator = "best".')


def _set(tree: dict[str, Any], setting: str) -> None:
    key, equals, value = setting.partition("=")
    if not equals:
        raise ConfigError(f"--set {setting}: write it as key=value, such as seeds=3.")
    try:
        parsed = tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        parsed = value
    *path, last = key.strip().split(".")
    here: Any = tree
    for step in path:
        here = _step(here, step, setting)
    if isinstance(here, list):
        _step(here, last, setting)
        here[int(last)] = parsed
    else:
        here[last] = parsed


def _step(here: Any, step: str, setting: str) -> Any:
    if isinstance(here, dict):
        return here.setdefault(step, {})
    if isinstance(here, list) and step.isdigit() and int(step) < len(here):
        return here[int(step)]
    raise ConfigError(f"--set {setting}: there is no {step!r} on the way.")


def _dotted(where: str) -> str:
    return where.replace("[", ".").replace("]", "")


def _lower(what: str) -> str:
    return what[:1].lower() + what[1:]
