"""The jobs of an experiment: each is a data set, a learner with all its configurations, a seed."""

import re
from typing import Any, NamedTuple

import numpy as np

import olx
from olx.lab.config import ConfigError, nearest
from olx.lab.data import Dataset, digest, load
from olx.lab.experiment import Data, Experiment
from olx.lab.factories import LOSS, make
from olx.lab.metrics import METRICS
from olx.lab.plan import Plan, check_fit, first_decision, plan
from olx.lab.play import Game

LOSSES = {
    "binary": "logistic",
    "regression": "squared",
    "experts": "linear",
    "portfolio": "log_loss",
}
USUAL = {"binary": ["error"], "portfolio": ["wealth"]}


class Job(NamedTuple):
    name: str
    data: Data
    plan: Plan
    seed: int

    @property
    def dataset(self) -> str:
        return self.data.label or self.data.name


class Shelf:
    """The data sets of an experiment; the last one is kept at hand."""

    def __init__(self, experiment: Experiment):
        self._folder = experiment.data_folder
        self._last: tuple[Data, Dataset] | None = None

    def get(self, entry: Data, seed: int) -> Dataset:
        """A data set in the order that belongs to a seed."""
        if entry.name.startswith("stream:"):
            data = self._load(entry, seed)
        else:
            if self._last is None or self._last[0] is not entry:
                self._last = entry, self._load(entry, None)
            data = self._last[1]
            data = data if entry.order == "file" else data.shuffled(seed)
        return data if entry.rows is None else data.rows(slice(entry.rows))

    def _load(self, entry: Data, seed: int | None) -> Dataset:
        own = ("name", "label", "order", "rows")
        options = {k: getattr(entry, k) for k in entry.__struct_fields__ if k not in own}
        try:
            return load(entry.name, self._folder, seed=seed, **options)
        except (ValueError, OSError) as error:
            raise ConfigError(f"data: {error}") from error


class Prepared(NamedTuple):
    jobs: list[Job]
    digests: dict[str, Any]  # of the rows, by data set; of a stream those of the first seed


def prepare(experiment: Experiment, shelf: Shelf) -> Prepared:
    """All jobs in order; whatever is wrong with the experiment is refused before the first."""
    for name in experiment.metrics or []:
        if name not in METRICS:
            raise ConfigError(f"metrics: there is no {name}; {nearest(name, list(METRICS))}")
    plans = [plan(i, player) for i, player in enumerate(experiment.learners)]
    jobs, digests = [], {}
    for i, entry in enumerate(experiment.data):
        data = shelf.get(entry, experiment.all_seeds[0])
        _loss(experiment, data)
        digests[entry.label or entry.name] = digest(data)
        seeds = experiment.all_seeds if entry.order == "shuffled" else experiment.all_seeds[:1]
        for j, each in enumerate(plans):
            check_fit(each, data)
            name = f"{i:02d}-{_slug(entry.label or entry.name)}.{j:02d}-{_slug(each.label)}"
            jobs += [Job(f"{name}.{seed}", entry, each, seed) for seed in seeds]
    return Prepared(jobs, digests)


def game_of(experiment: Experiment, job: Job, data: Dataset) -> Game:
    """The game that a job plays on the rows of `data`."""
    dtype = np.dtype(experiment.precision)
    asked = USUAL.get(data.task, []) if experiment.metrics is None else experiment.metrics
    length, half, learn, test = len(data), None, data, None
    if experiment.protocol == "half":
        half = length // 2
    if experiment.protocol == "split":
        cut = data.train or round(length * (1 - experiment.test))
        learn, test = data.rows(slice(cut)), data.rows(slice(cut, None))
    large = len(learn) * data.width * dtype.itemsize > 1e6 * experiment.budget.memory
    return Game(
        _loss(experiment, data),
        learn.rounds(dtype, dense=not (data.is_sparse and large)),
        first_decision(job.plan, data, dtype),
        tuple(name for name in asked if data.task in METRICS[name].tasks),
        olx.log_spaced(experiment.curve),
        half,
        None if test is None else test.rounds(dtype),
    )


def _loss(experiment: Experiment, data: Dataset) -> Any:
    given = experiment.loss or LOSSES.get(data.task)
    if given is None:
        raise ConfigError(
            f"data: {data.name} has more than two classes; give binarize = one of them, or a loss."
        )
    return make("loss", given, *LOSS)


def _slug(label: str) -> str:
    return re.sub(r"[^\w-]+", "_", label)[:40]
