"""Read an experiment from one TOML file.

    title = "Which geometry serves?"
    seeds = 5                               # or a list; each seed is an order of the rows
    loss = "logistic"                       # of olx.losses, or { name = "margin_hinge", ... }
    metrics = ["error", "mine:cost"]        # of `olx list metrics`, or of yours
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
    name = "boost"                          # learners inside learners are tables; several, a list
    inner = { name = "adagrad", eta = 0.5, linear = true }
    rule = { name = "online_bbm" }
    key = 0                                 # of random draws, which differ between seeds
    grid.n = [10, 40]                       # a count: one program per value
    grid."rule.gamma" = [0.05, 0.1, 0.2]
    grid."inner.eta" = { geomspace = [0.1, 10, 8] }

Paths are relative to the folder of the config. An unknown key is refused with a hint of the nearest
known key. A factory (of a learner, a map, a schedule, a loss, `stream:` data) or a metric may also
be one outside the library: see `olx.lab.user_factories`.

Values of a grid:

  [0.1, 1.0]                       these values; also tables and names
  { linspace = [0, 1, 5] }         evenly spaced, ends included
  { geomspace = [1e-3, 10, 32] }   evenly spaced on a logarithmic axis
  { uniform = [0, 1] }             drawn `random.samples` times, together with the other
  { loguniform = [1e-3, 10] }      laws of the same learner

A metric of yours is a function in a module, here mine.py beside the config. It returns the number
of a round, in functions of jax.numpy; the mean over all rounds is shown, and less is better:

  def cost(action, outcome):
      return jnp.where(action * outcome > 0, 0.0, 5.0)
"""

import difflib
import inspect
import math
import os
import re
import textwrap
import tomllib
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from olx.lab.experiment import Budget, Data, Experiment, Key, Player, Published, Random, Tree, keys

SEEDS = 2**32  # the limit of `jax.random.key`
MANY = 10_000  # of seeds, and of points of a curve per decade
TABLES = {
    "": Experiment,
    "[[data]]": Data,
    "[[learners]]": Player,
    "random, of a learner": Random,
    "[budget]": Budget,
    "[[published]]": Published,
}
# types in messages of msgspec and in `olx help config`
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a word",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
TYPES = {str: "word", int: "whole number", float: "number", bool: "true or false", dict: "table"}


class ConfigError(ValueError):
    """The error of a config, in one line: the key, the problem, and the remedy."""


def nearest(word: str, legal: Sequence[str] | Mapping[str, str], otherwise: str = "") -> str:
    """A hint: the nearest legal word, or all of them; a mapping gives the text to show."""
    word = str(word)
    few = 1 + len(word) // 6 if len(word) > 2 else 0
    edits = {each: _edits(word.lower(), each.lower()) for each in legal}
    near = [each for each in edits if edits[each] == min(edits.values()) <= few]
    near = difflib.get_close_matches(word, near or legal, 1, 0.0 if near else 0.5)
    if not near:
        return otherwise or f"it takes {', '.join(legal)}."
    return f"did you mean {legal[near[0]] if isinstance(legal, Mapping) else near[0]}?"


def _edits(a: str, b: str) -> int:
    """How many letters to insert, drop, replace or swap with the next one to make `b` of `a`."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        above, row = row, [i + 1]
        for j, y in enumerate(b):
            row.append(min(above[j + 1] + 1, row[j] + 1, above[j] + (x != y)))
            if i and j and x == b[j - 1] and y == a[i - 1]:
                row[-1] = min(row[-1], before[j - 1] + 1)
        before = above
    return row[-1]


def read(path: str | os.PathLike, settings: Sequence[str] = ()) -> Experiment:
    """Read the experiment in the file `path`, changed by `settings` such as "seeds=3"."""
    path = Path(path)
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = [each.name for each in path.parent.glob("*.toml")]
        hint = nearest(path.name, there, "`olx example` writes one to start from.")
        raise ConfigError(f"{path}: no such config; {hint}") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; a config is a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}.") from None
    try:
        for setting in settings:
            _set(tree, setting)
        from olx.lab.data import resolve_paths  # data import the names of tasks and errors

        return resolve_paths(path.parent, parse(tree))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse(tree: Tree) -> Experiment:
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
    _check(experiment)
    return experiment


def _player(i: int, table: object) -> Tree:
    if not isinstance(table, dict):
        raise ConfigError(f"learners.{i}: expected a table, got {table!r}.")
    own = keys(Player)
    arguments = {name: value for name, value in table.items() if name not in own}
    if isinstance(table.get("random"), dict):
        _known(table["random"], Random, f"learners.{i}.random.")
    return {**{name: table[name] for name in own if name in table}, "arguments": arguments}


def _tables(tree: Tree, name: str) -> list[tuple[int, object]]:
    tables = tree.get(name, [])
    if not isinstance(tables, list):
        raise ConfigError(f"{name}: expected tables, written [[{name}]], got one [{name}].")
    return list(enumerate(tables))


def _known(table: object, kind: type[msgspec.Struct], where: str) -> None:
    if not isinstance(table, dict):
        raise ConfigError(f"{where.rstrip('.')}: expected a table, got {table!r}.")
    for word in table:
        if word not in keys(kind):
            raise ConfigError(f"unknown key {where}{word}; {nearest(word, list(keys(kind)))}")


def _set(tree: Tree, setting: str) -> None:
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


def _refusal(said: str, tree: Tree) -> ConfigError:
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


def _check(experiment: Experiment) -> None:
    """Refuse settings that no run could use, by their key."""
    for name, entries in (("data", experiment.data), ("learners", experiment.learners)):
        if not entries:
            raise ConfigError(f"{name}: give at least one, as [[{name}]].")
        labels = [entry.label or entry.name for entry in entries]
        for label in labels:
            if labels.count(label) > 1:
                raise ConfigError(f"{name}: two are called {label!r}; give one of them a label.")
    _check_numbers(experiment)
    for i, entry in enumerate(experiment.data):
        if entry.rows is not None and entry.rows < 1:
            raise ConfigError(f"data.{i}.rows: give at least 1, got {entry.rows}.")
    for i, player in enumerate(experiment.learners):
        if isinstance(player.first, float) and not math.isfinite(player.first):
            raise ConfigError(f"learners.{i}.first: give a finite number, got {player.first}.")
    if experiment.bound is not None and experiment.comparator is None:
        raise ConfigError('bound: it needs a comparator; give comparator = "best".')
    _check_published(experiment)


def _check_numbers(experiment: Experiment) -> None:
    if isinstance(experiment.seeds, int) and experiment.seeds > MANY:
        raise ConfigError(
            f"seeds: give at most {MANY:,} orders of the rows, got {experiment.seeds}."
        )
    seeds = experiment.all_seeds
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ConfigError(f"seeds: give a number, or different seeds, got {experiment.seeds}.")
    if max(seeds) >= SEEDS:
        raise ConfigError(f"seeds: a seed is less than {SEEDS}, got {max(seeds)}.")
    if not 0 < experiment.test < 1:
        raise ConfigError(f"test: it is a share of the rows, got {experiment.test}.")
    if not 1 <= experiment.curve <= MANY:
        raise ConfigError(f"curve: give 1 to {MANY:,} points per decade, got {experiment.curve}.")
    if experiment.shifts < 0:
        raise ConfigError(f"shifts: give a number from 0 on, got {experiment.shifts}.")
    if experiment.radius is not None and not 0 < experiment.radius < math.inf:
        raise ConfigError(f"radius: give a positive number, got {experiment.radius}.")
    if not experiment.budget.memory > 0:
        raise ConfigError(f"budget.memory: give megabytes, got {experiment.budget.memory}.")
    if not experiment.budget.save >= 0:
        raise ConfigError(f"budget.save: give a number from 0 on, got {experiment.budget.save}.")
    metrics = experiment.metrics or []
    for name in metrics:
        if metrics.count(name) > 1:
            raise ConfigError(f"metrics: {name} is named twice.")


def _check_published(experiment: Experiment) -> None:
    learners = [player.label or player.name for player in experiment.learners]
    datasets = [entry.label or entry.name for entry in experiment.data]
    for i, entry in enumerate(experiment.published):
        if entry.learner not in learners:
            hint = nearest(entry.learner, learners)
            raise ConfigError(f"published.{i}: there is no learner {entry.learner}; {hint}")
        for name in entry.values:
            if name not in datasets:
                hint = nearest(name, datasets)
                raise ConfigError(f"published.{i}.values: there is no data set {name}; {hint}")


def config_help() -> str:
    """The format of a config, and all its keys with type, default and meaning."""
    parts = [inspect.cleandoc(str(__doc__))]
    for title, kind in TABLES.items():
        about = (inspect.getdoc(kind) or "").split("\n")[0]
        head = f"{title}: {about}" if title else about
        parts.append("\n".join([head, *map(_row, keys(kind).values())]))
    return "\n\n".join(parts)


def _row(key: Key) -> str:
    default = "" if key.default is msgspec.NODEFAULT else _default(key.default)
    must = ", must be given" if key.default is msgspec.NODEFAULT else ""
    text = f"{key.meaning} ({_kind(key.kind)}{must}{default})"
    first, *rest = textwrap.wrap(text, 80, break_on_hyphens=False)
    return "\n".join([f"  {key.name:<14}{first}", *(f"  {'':<14}{line}" for line in rest)])


def _default(value: object) -> str:
    if value is None or isinstance(value, msgspec.Struct):
        return ""
    return f"; default {str(value).lower() if isinstance(value, bool) else _shown_default(value)}"


def _shown_default(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else "{}" if value == {} else repr(value)


def _kind(kind: object) -> str:
    """A type in words."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(part) for part in inside if part is not type(None))
    if origin is Literal:
        return " | ".join(inside)
    if origin is list:
        return f"list of {_kind(inside[0])}s" if inside[0] in TYPES else "list"
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        return "table"
    return TYPES.get(origin or kind, "value")
