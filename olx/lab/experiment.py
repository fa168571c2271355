"""The record of an experiment: `olx.lab.config` reads it from TOML, `olx help config` shows it.

A key of a config is a field with a meaning: `seeds: Annotated[int, means("orders of rows")] = 1`. A
field without a meaning is no key.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

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
    """The keys of a table of a config, by name."""
    found = {}
    for field in msgspec.structs.fields(kind):
        if get_origin(field.type) is Annotated:
            plain, meaning = get_args(field.type)
            made = field.default_factory
            default = field.default if made is msgspec.NODEFAULT else made()
            found[field.name] = Key(field.name, plain, default, meaning.description)
    return found


def means(text: str) -> msgspec.Meta:
    """The meaning of a key."""
    return msgspec.Meta(description=text)


class Data(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A data set; the keys are the arguments of `olx.lab.data.load`."""

    name: Annotated[
        str, means("a9a, sklearn:iris, mine.csv, openml:..., stream:..., mypackage.module:load")
    ]
    label: Annotated[str, means("what tables call it; the name if empty")] = ""
    order: Annotated[
        Literal["shuffled", "file"], means("of the rows; file: played once, in file order")
    ] = "shuffled"
    rows: Annotated[
        int | None, means("the number of rows used, after shuffling; all if left out")
    ] = None
    labels: Annotated[
        list[float | str] | None, means("only rows with these labels; all if left out")
    ] = None
    without: Annotated[
        list[int | str], means("columns to leave out, by name or number, from 0 on")
    ] = []
    task: Annotated[
        str | None, means("binary, multiclass, regression, ...; known sets have a task")
    ] = None
    binarize: Annotated[
        float | str | bool | list[float | str] | None,
        means("the label, or the labels, that count as +1, against all others"),
    ] = None
    scale: Annotated[
        str,
        means(
            "of the features: none, rows (each of length 1), standard (each column of mean 0 and "
            "variance 1) or maximum (each column at most 1; keeps zeros)"
        ),
    ] = "none"
    bias: Annotated[
        bool | None,
        means("an intercept; if left out there is one where it can change a prediction"),
    ] = None
    center_target: Annotated[
        bool, means("scale the target of a regression to mean 0 and variance 1")
    ] = False
    expert_loss: Annotated[str, means("the loss of forecasts: absolute or squared")] = "absolute"
    target: Annotated[
        str | int | None, means("the column of the labels, by name or number; the last one")
    ] = None
    categories: Annotated[
        list[str], means("columns that hold words, even if they look like numbers")
    ] = []
    fill: Annotated[
        str | float | Tree | None,
        means(
            "of missing values: mean, median, a number, or a table of one value per column; "
            "missing values are refused if left out"
        ),
    ] = None
    encoding: Annotated[str | None, means("of a CSV file; UTF-8 if left out")] = None
    separator: Annotated[str | None, means("of a CSV file; found if left out")] = None
    header: Annotated[
        bool | None, means("whether row 0 of a CSV file names the columns; found if left out")
    ] = None
    unpack: Annotated[
        float | None,
        means(
            "megabytes that a compressed file may become; 64, or 100 times its size up to 8000, if "
            "left out"
        ),
    ] = None
    sha256: Annotated[str | None, means("the expected digest of the file, for downloads")] = None
    arguments: Annotated[Tree, means("of a stream, or of a loader of yours")] = {}
    thing: object = None  # given from Python: the rows, in place of a name


class Random(msgspec.Struct, kw_only=True):
    """Random search over the axes of a grid that are uniform or loguniform."""

    samples: Annotated[int, means("the number of draws")]
    seed: Annotated[int, means("of the draws")] = 0


class Player(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A learner and the grid of its numbers; any other key of the table is an argument."""

    name: Annotated[str, means("of `olx list learners`, optax.adam, or mypackage.module:factory")]
    label: Annotated[str, means("what tables call it; the name if empty")] = ""
    linear: Annotated[bool, means("make a point learner predict <w, x>")] = False
    first: Annotated[
        float | Literal["uniform"] | None, means("every coordinate of the first decision")
    ] = None
    grid: Annotated[
        Tree,
        means(
            "values by argument, such as eta or mirror.q: a list, { geomspace = [low, high, n] }, "
            "linspace, or { loguniform = [low, high] } and uniform, which are drawn"
        ),
    ] = {}
    random: Annotated[Random | None, means("how often to draw: { samples = 64, seed = 0 }")] = None
    theorems: Annotated[
        list[str | Tree] | None, means("to check: names, or tables for theorems with numbers; all")
    ] = None
    compare_in: Annotated[
        str | Tree | None,
        means("the set of its best comparator (`olx list sets`); that of the experiment"),
    ] = None
    arguments: Tree = {}  # all other keys of the table
    thing: object = None  # given from Python: the learner or its factory, in place of a name
    points: list[Tree] | None = None  # and its configurations, in place of a grid


class Budget(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Limits of a job."""

    memory: Annotated[
        float, means("megabytes for the rows of a set; larger sparse sets stay sparse")
    ] = 512.0
    save: Annotated[
        float, means("a job with more rounds times configurations writes checkpoints")
    ] = 5e8


class Published(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Published numbers, shown beside ours."""

    learner: Annotated[str, means("the label of a learner")]
    metric: Annotated[str, means("loss, or a metric")]
    source: Annotated[str, means("where they were published")]
    values: Annotated[dict[str, float], means("the numbers, by the label of a data set")]


class Experiment(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The keys at the top of a config."""

    data: Annotated[list[Data], means("tables [[data]], one per data set")]
    learners: Annotated[list[Player], means("tables [[learners]], one per learner")]
    title: Annotated[str, means("of the report; the name of the result if empty")] = ""
    description: Annotated[str, means("shown below the title")] = ""
    seeds: Annotated[int | list[int], means("how many orders of the rows, or a list of seeds")] = 1
    protocol: Annotated[
        Literal["progressive", "split", "half"],
        means(
            "progressive: each row is predicted, then learned. split: learn on the first rows, "
            "then test on the rest without learning (columns test_*). half: learn on all rows; "
            "loss and metrics are of the first half, test_* of the second"
        ),
    ] = "progressive"
    test: Annotated[float, means("the share of rows that `split` tests on")] = 0.2
    precision: Annotated[Literal["float32", "float64"], means("of all numbers")] = "float32"
    loss: Annotated[str | Tree | None, means("of `olx list losses`; the usual one of the task")] = (
        None
    )
    metrics: Annotated[
        list[str] | None,
        means("of `olx list metrics`, or mypackage.module:metric; the usual ones of the task"),
    ] = None
    comparator: Annotated[
        Literal["best", "zero", "truth"] | None,
        means("regret is against it: the best in hindsight, zero (uniform for experts), or truth"),
    ] = None
    radius: Annotated[float | None, means("of the ball in which to search the best comparator")] = (
        None
    )
    shifts: Annotated[
        int, means("changes of expert in the comparator of theorems about sequences")
    ] = 1
    bound: Annotated[
        Literal["best", "all"] | None, means("certify the best configuration per job, or all")
    ] = None
    baseline: Annotated[
        bool, means("whether the best constant so far is played beside the learners")
    ] = True
    curve: Annotated[int, means("points of a curve per decade of rounds")] = 10
    models: Annotated[
        bool, means("whether the best configuration of each learner is stored, for `olx predict`")
    ] = True
    data_folder: Annotated[
        str | None, means("where data sets are; $OLX_DATA or the cache if left out")
    ] = None
    budget: Annotated[Budget, means("limits of a job: a table [budget]")] = msgspec.field(
        default_factory=Budget
    )
    published: Annotated[list[Published], means("tables [[published]] of numbers to compare")] = []

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
