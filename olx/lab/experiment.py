"""The types of an experiment; `olx.lab.config` reads them from TOML."""

from typing import Any, Literal

import msgspec

from olx.lab import _toml


class Data(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A data set; the keys are the arguments of `olx.lab.data.load`."""

    name: str
    label: str = ""  # what tables call it; the name if empty
    order: Literal["shuffled", "file"] = "shuffled"  # file: played once, in file order
    rows: int | None = None  # the number of rows used, after shuffling; all if None
    labels: list[float | str] | None = None  # only rows with these labels; all if None
    without: list[int | str] = []  # columns to leave out, by name or number, from 0 on
    task: str | None = None  # of olx.lab.tasks
    binarize: float | str | bool | list[float | str] | None = None
    scale: str = "none"
    bias: bool | None = None  # an intercept; None adds one where it can change a prediction
    center_target: bool = False
    expert_loss: str = "absolute"
    target: str | int | None = None
    categories: list[str] = []  # columns of a table that hold words, even if they look like numbers
    fill: str | float | dict[str, Any] | None = None  # of missing values: mean, median, a number,
    # or a value per column; None refuses them
    encoding: str | None = None  # of a CSV file; UTF-8 if None
    separator: str | None = None  # of a CSV file; found if None
    header: bool | None = None  # whether row 0 of a CSV file names the columns; found if None
    sha256: str | None = None
    arguments: dict[str, Any] = {}


class Random(msgspec.Struct, kw_only=True):
    """Random search: the number of draws of the axes that are uniform or loguniform."""

    samples: int
    seed: int = 0


class Player(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A learner and the grid of its numbers; any other key of the table is an argument."""

    name: str
    label: str = ""  # what tables call it; the name if empty
    linear: bool = False
    first: float | Literal["uniform"] | None = None  # every coordinate of the first decision
    grid: dict[str, Any] = {}
    random: Random | None = None
    theorems: list[Any] | None = None  # to check: names, or tables for theorems with numbers
    compare_in: str | dict[str, Any] | None = None  # the set of its best comparator, of
    # olx.convex.sets; that of the experiment if None
    arguments: dict[str, Any] = {}


class Budget(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Limits of a job."""

    memory: float = 512.0  # megabytes for the rows of a set; larger sparse sets stay sparse
    save: float = 5e8  # a job with more rounds times configurations writes checkpoints


class Published(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Published numbers, shown beside ours."""

    learner: str
    metric: str
    source: str
    values: dict[str, float]  # by data set


class Experiment(msgspec.Struct, kw_only=True, omit_defaults=True):
    data: list[Data]
    learners: list[Player]
    title: str = ""
    description: str = ""
    seeds: int | list[int] = 1
    protocol: Literal["progressive", "split", "half"] = "progressive"
    # split: learn on the first rows, then test on the rest without learning (columns test_*).
    # half: learn on all rows; loss and metrics are of the first half, test_* of the second.
    test: float = 0.2  # the share of rows that `split` tests on
    precision: Literal["float32", "float64"] = "float32"
    loss: str | dict[str, Any] | None = None  # the task's usual loss if None
    metrics: list[str] | None = None  # the task's usual metrics if None
    comparator: Literal["best", "zero", "truth"] | None = None  # zero: uniform for experts
    radius: float | None = None  # of the ball in which to search the best comparator
    shifts: int = 1  # changes of expert in the comparator of theorems about sequences
    bound: Literal["best", "all"] | None = None
    baseline: bool = True  # whether the best constant so far is played beside the learners
    curve: int = 10  # points per decade of rounds
    models: bool = True  # store the best configuration of each learner, for `olx predict`
    data_folder: str | None = None
    budget: Budget = msgspec.field(default_factory=Budget)
    published: list[Published] = []

    @property
    def all_seeds(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def text(self) -> str:
        """The experiment as TOML, with settings of the command line; reads back as the same."""
        tree = msgspec.to_builtins(self)
        for player in tree["learners"]:
            player.update(player.pop("arguments", {}))
        return _toml.dumps(tree)
