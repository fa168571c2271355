"""Read an experiment from one TOML file.

    title = "Which geometry serves?"
    seeds = 5                               # or a list; each seed is an order of the rows
    loss = "logistic"                       # of olx.losses, or { name = "margin_hinge", ... }
    metrics = ["error"]                     # of olx.lab.metrics
    comparator = "best"                     # regret is against it: best, zero, truth
    bound = "best"                          # certify the best configuration per job, or all

    [[data]]
    name = "sklearn:breast_cancer"          # see olx.lab.data
    scale = "standard"

    [[learners]]
    name = "omd"                            # of olx, or dotted: "experts.squint", or your own:
                                            # "mypackage.module:factory"
    linear = true                           # make a point learner predict <w, x>
    mirror = "pnorm"                        # or with arguments: { name = "pnorm", q = 1.5 }
    grid.eta = { geomspace = [1e-3, 10, 32] }
    grid."mirror.q" = [1.2, 1.5, 2.0]       # convex sets are arguments too:
                                            # domain = { name = "ball", radius = 2.0 }
    theorems = ["mirror_descent"]           # to check; all of the learner if left out

    [[learners]]
    name = "boost"                          # learners inside learners are tables as well
    inner = { name = "adagrad", eta = 0.5, linear = true }
    rule = { name = "online_bbm" }
    key = 0                                 # of random draws, which differ between seeds
    grid.n = [10, 40]                       # a count: one program per value
    grid."rule.gamma" = [0.05, 0.1, 0.2]
    grid."inner.eta" = { geomspace = [0.1, 10, 8] }

Paths are relative to the folder of the config. An unknown key is refused with a hint of the nearest
known key. A factory (of a learner, a map, a schedule, a loss, `stream:` data) may also be one
outside the library: see `olx.lab.outside`.
"""

import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from olx.lab.data import resolve_paths
from olx.lab.experiment import Budget, Data, Experiment, Player, Published, Random
from olx.lab.keys import keys
from olx.lab.refusals import ConfigError as ConfigError
from olx.lab.refusals import check
from olx.lab.refusals import nearest as nearest

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a word",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def read(path: str | os.PathLike, settings: Sequence[str] = ()) -> Experiment:
    """Read the experiment in the file `path`, changed by `settings` such as "seeds=3"."""
    path = Path(path)
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such config.") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; a config is a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}.") from None
    try:
        for setting in settings:
            _set(tree, setting)
        return resolve_paths(path.parent, parse(tree))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse(tree: dict[str, Any]) -> Experiment:
    """The experiment described by a dictionary of plain values."""
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
        raise _refusal(str(error), tree) from None
    check(experiment)
    return experiment


def _player(i: int, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(f"learners.{i}: expected a table, got {table!r}.")
    own = keys(Player)
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
        if word not in keys(kind):
            raise ConfigError(f"unknown key {where}{word}; {nearest(word, list(keys(kind)))}")


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
    raise ConfigError(f"--set {setting}: there is no {step!r} in the config.")


def _choices(key: str) -> list[str]:
    """The words that a key may be."""
    kinds = [keys(kind)[key].kind for kind in (Experiment, Data, Player) if key in keys(kind)]
    parts = [part for kind in kinds for part in (kind, *get_args(kind))]
    return [word for part in parts if get_origin(part) is Literal for word in get_args(part)]


def _refusal(said: str, tree: dict[str, Any]) -> ConfigError:
    """The message of msgspec in our words: the key, the value, and what is legal."""
    what, _, where = said.replace("`", "").partition(" - at $.")
    where = where.replace("[", ".").replace("]", "")
    if what.startswith("Object missing required field "):
        name = what.rpartition(" ")[2]
        asked = f"give at least one, as [[{name}]]" if not where else "it is missing"
        return ConfigError(f"{where + '.' if where else ''}{name}: {asked}.")
    if what.startswith("Invalid enum value "):
        word = what.removeprefix("Invalid enum value ").strip("'")
        legal = _choices(where.rpartition(".")[2])
        return ConfigError(f"{where}: there is no {word}; {nearest(word, legal)}")
    kinds = re.fullmatch("Expected (.*), got .*", what)
    if kinds is None:
        return ConfigError(f"{where}: {what[:1].lower() + what[1:]}.")
    legal = [KINDS[kind] for kind in kinds[1].split(" | ") if kind != "null"]
    given: Any = tree
    for step in where.split("."):
        given = given[int(step) if isinstance(given, list) else step]
    quoted = isinstance(given, str) and given.replace(".", "", 1).isdigit()
    hint = "; leave out the quotes" if quoted else ""
    return ConfigError(f"{where}: expected {' or '.join(legal)}, got {given!r}{hint}.")
