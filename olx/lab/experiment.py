"""The record of an experiment: `olx.lab.config` reads it from TOML, `olx help config` shows it.

A key of a config is a field here, with its type, its default, and its meaning in the docstring. A
field without a meaning is no key.
"""

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from olx._words import words

Tree = dict[str, Any]  # a table of a config or of JSON


class Key(NamedTuple):
    """A key of a config."""

    name: str
    kind: object  # its type
    default: object  # msgspec.NODEFAULT if it must be given
    meaning: str


def keys(kind: type[msgspec.Struct]) -> dict[str, Key]:
    """The keys of a table of a config, by name: the fields that its docstring explains."""
    found = {}
    text = re.sub(r"\n {4,}", " ", inspect.getdoc(kind) or "")
    meanings = dict(re.findall(r"^(\w+): (.+)$", text, re.M))
    for field in msgspec.structs.fields(kind):
        if field.name in meanings:
            made = field.default_factory
            default = field.default if made is msgspec.NODEFAULT else made()
            found[field.name] = Key(field.name, field.type, default, meanings[field.name])
    return found


class Data(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A data set; the keys are the arguments of `olx.lab.data.load`.

    name: a9a, sklearn:iris, mine.csv, openml:..., stream:..., mypackage.module:load
    label: what tables call it; the name if empty
    order: of the rows; file: played once, in file order
    rows: the number of rows used, after shuffling; all if left out
    labels: only rows with these labels; all if left out
    class_weights: of rows in learning, by label; or balanced, so that each class weighs the same.
        Losses and metrics count each row once
    without: columns to leave out, by name or number, from 0 on
    task: binary, multiclass, regression, ...; known sets have a task
    binarize: the label, or the labels, that count as +1, against all others
    scale: of the features: none, rows (each of length 1), standard (each column of mean 0 and
        variance 1) or maximum (each column at most 1; keeps zeros)
    bias: an intercept; if left out there is one where it can change a prediction
    center_target: scale the target of a regression to mean 0 and variance 1
    expert_loss: the loss of forecasts: absolute or squared
    target: the column of the labels, by name or number; the last one
    group: the column that says which rows are one round: a query, or a sequence in order
    id: the column that says which row is which, by name or number: no feature, but shown beside
        the predictions of new rows
    categories: columns that hold words, even if they look like numbers
    fill: of missing values: mean, median, a number, or a table of one value per column; missing
        values are refused if left out
    dates: parts: the year, month, day of the week and hour of a date are features, as numbers and
        as sine and cosine of their place in the cycle; dates are refused if left out
    encoding: of a CSV file; UTF-8 if left out
    separator: of a CSV file; found if left out
    header: whether row 0 of a CSV file names the columns; found if left out
    unpack: megabytes that a compressed file may become; 64, or 100 times its size up to 8000,
        if left out
    sha256: the expected digest of the file, for downloads
    arguments: of a stream, or of a loader of yours
    """

    name: str
    label: str = ""
    order: Literal["shuffled", "file"] = "shuffled"
    rows: int | None = None
    labels: list[float | str] | None = None
    class_weights: Literal["balanced"] | Tree | None = None
    without: list[int | str] = []
    task: str | None = None
    binarize: float | str | bool | list[float | str] | None = None
    scale: str = "none"
    bias: bool | None = None
    center_target: bool = False
    expert_loss: str = "absolute"
    target: str | int | None = None
    group: str | int | None = None
    id: str | int | None = None
    categories: list[str] = []
    fill: str | float | Tree | None = None
    dates: Literal["parts"] | None = None
    encoding: str | None = None
    separator: str | None = None
    header: bool | None = None
    unpack: float | None = None
    sha256: str | None = None
    arguments: Tree = {}
    thing: object = None  # given from Python: the rows, in place of a name


class Random(msgspec.Struct, kw_only=True):
    """Random search over the axes of a grid that are uniform or loguniform.

    samples: the number of draws
    seed: of the draws
    """

    samples: int
    seed: int = 0


class Player(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A learner and the grid of its numbers; any other key of the table is an argument.

    name: of `olx list learners`, optax.adam, or mypackage.module:factory
    label: what tables call it; the name if empty
    linear: make a point learner predict <w, x>
    first: every coordinate of the first decision
    grid: values by argument, such as eta or mirror.q: a list, { geomspace = [low, high, n] },
        linspace, or { loguniform = [low, high] } and uniform, which are drawn
    random: how often to draw: { samples = 64, seed = 0 }
    theorems: to check: names, or tables for theorems with numbers; all
    compare_in: the set of its best comparator (`olx list sets`); that of the experiment
    """

    name: str
    label: str = ""
    linear: bool = False
    first: float | Literal["uniform"] | None = None
    grid: Tree = {}
    random: Random | None = None
    theorems: list[str | Tree] | None = None
    compare_in: str | Tree | None = None
    arguments: Tree = {}  # all other keys of the table
    thing: object = None  # given from Python: the learner or its factory, in place of a name
    points: list[Tree] | None = None  # and its configurations, in place of a grid


class Budget(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Limits of a job.

    memory: megabytes for the rows of a set; larger sparse sets stay sparse
    save: a job with more rounds times configurations writes checkpoints
    """

    memory: float = 512.0
    save: float = 5e8


class Published(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Published numbers, shown beside ours.

    learner: the label of a learner
    metric: loss, or a metric
    source: where they were published
    values: the numbers, by the label of a data set
    """

    learner: str
    metric: str
    source: str
    values: dict[str, float]


class Experiment(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The keys at the top of a config.

    data: tables [[data]], one per data set
    learners: tables [[learners]], one per learner
    title: of the report; the name of the result if empty
    description: shown below the title
    seeds: how many orders of the rows, or a list of seeds
    protocol: progressive: each row is predicted, then learned. split: learn on the first rows,
        then test on the rest without learning (columns test_*). half: learn on all rows; loss
        and metrics are of the first half, test_* of the second
    test: the share of rows that `split` tests on
    delay: rounds until a learner gets the feedback of a row; see `olx.meta.delayed`
    precision: of all numbers
    loss: of `olx list losses`; the usual one of the task
    metrics: of `olx list metrics`, or mypackage.module:metric; the usual ones of the task. One with
        an argument is a table: { name = "pinball", q = 0.9 }
    comparator: regret is against it: the best in hindsight, zero (uniform for experts), or
        truth
    radius: of the ball in which to search the best comparator
    shifts: changes of expert in the comparator of theorems about sequences
    bound: certify the best configuration per job, or all
    baseline: whether the best constant so far is played beside the learners
    curve: points of a curve per decade of rounds
    models: whether the best configuration of each learner is stored, for `olx predict`
    data_folder: where data sets are; $OLX_DATA or the cache if left out
    budget: limits of a job: a table [budget]
    published: tables [[published]] of numbers to compare
    """

    data: list[Data]
    learners: list[Player]
    title: str = ""
    description: str = ""
    seeds: int | list[int] = 1
    protocol: Literal["progressive", "split", "half"] = "progressive"
    test: float = 0.2
    delay: int = 0
    precision: Literal["float32", "float64"] = "float32"
    loss: str | Tree | None = None
    metrics: list[str | Tree] | None = None
    comparator: Literal["best", "zero", "truth"] | None = None
    radius: float | None = None
    shifts: int = 1
    bound: Literal["best", "all"] | None = None
    baseline: bool = True
    curve: int = 10
    models: bool = True
    data_folder: str | None = None
    budget: Budget = msgspec.field(default_factory=Budget)
    published: list[Published] = []

    @property
    def all_seeds(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def plain(self) -> Tree:
        """The experiment as plain values; objects of Python are named in words."""
        replace = msgspec.structs.replace
        learners = [
            replace(
                one,
                thing=None,
                points=None,
                grid=_plain(one.grid) if one.points is None else _axes(one.points),
                arguments=_plain(one.arguments),
            )
            for one in self.learners
        ]
        data = [replace(one, thing=None) for one in self.data]
        loss = _plain(self.loss)
        return msgspec.to_builtins(replace(self, data=data, learners=learners, loss=loss))

    def text(self) -> str:
        """The experiment as TOML, with settings of the command line; reads back as the same."""
        tree = self.plain()
        tree["learners"] = [one | one.pop("arguments", {}) for one in tree["learners"]]
        return as_toml(tree)


def object_name(thing: object) -> str:
    """An object that was given from Python, in words for the config of a result."""
    name = getattr(thing, "__qualname__", None)
    return f"{thing.__module__}:{name}" if name else words(thing)


def as_toml(tree: Mapping[str, Any]) -> str:
    """Plain values as TOML: values first, then tables; deeper tables are written inline.

    A line per key, as people write a config; `tomli_w` writes a line per value of a grid.

    >>> print(as_toml({"seeds": 5, "data": [{"name": "a9a", "bias": True}]}), end="")
    seeds = 5
    <BLANKLINE>
    [[data]]
    name = "a9a"
    bias = true
    """
    is_table = lambda value: isinstance(value, dict)
    is_tables = lambda value: isinstance(value, list) and value != [] and all(map(is_table, value))
    tables = {key: value for key, value in tree.items() if is_tables(value)}
    blocks = [_toml_lines({key: value for key, value in tree.items() if key not in tables})]
    for key, value in tables.items():
        blocks += [f"[[{_toml_key(key)}]]\n{_toml_lines(table)}" for table in value]
    return "\n".join(block for block in blocks if block)


def _toml_lines(table: Mapping[str, object]) -> str:
    return "".join(f"{_toml_key(k)} = {_toml(v)}\n" for k, v in table.items() if v is not None)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _toml(value: object) -> str:
    """A value of a key, in one line."""
    if isinstance(value, dict):
        lines = [_toml_lines({key: each}).rstrip("\n") for key, each in value.items()]
        inside = ", ".join(filter(None, lines))
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)


def _axes(points: list[Tree]) -> dict[str, list]:
    """The values of each argument of some configurations."""
    return {axis: sorted({point[axis] for point in points}) for axis in points[0]}


def _plain(value: object) -> Any:
    """A tree of plain values; all else is named in words."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | None) else object_name(value)
