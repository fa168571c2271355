"""The jobs of an experiment: one per data set, learner (all its configurations) and seed."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

import olx
from olx.lab import outside
from olx.lab.config import ConfigError, nearest
from olx.lab.data import Dataset, digest, load
from olx.lab.experiment import Data, Experiment, Player
from olx.lab.factories import make
from olx.lab.fitting import check_fit, check_rows, training_rows
from olx.lab.names import LOSS
from olx.lab.plan import Plan, filled, first_decision, plan
from olx.lab.stories import Story, name_of, story
from olx.lab.sweeps import LabGame
from olx.lab.tasks import METRICS, TASKS, Task

Plans = dict[tuple[str, int, int], list[Plan]]  # by task, classes and features


class Job(NamedTuple):
    name: str
    data: Data
    plan: Plan
    seed: int
    story: Story  # all that its numbers depend on

    @property
    def dataset(self) -> str:
        return self.data.label or self.data.name


class Shelf:
    """Loads the data sets of an experiment; caches the last one."""

    def __init__(self, experiment: Experiment):
        self._folder = experiment.data_folder
        self._last: tuple[Data, Dataset] | None = None

    def get(self, entry: Data, seed: int) -> Dataset:
        """A data set in the order of a seed."""
        data = self.whole(entry, seed)
        if entry.order == "shuffled" and not entry.name.startswith("stream:"):
            data = data.shuffled(seed)
        return data if entry.rows is None else data.rows(slice(entry.rows))

    def whole(self, entry: Data, seed: int) -> Dataset:
        """All rows in the order of the file; a stream is drawn with the seed."""
        if entry.name.startswith("stream:"):
            return self._load(entry, seed)
        if self._last is None or self._last[0] is not entry:
            self._last = entry, self._load(entry, None)
        return self._last[1]

    def _load(self, entry: Data, seed: int | None) -> Dataset:
        own = ("name", "label", "order", "rows")
        options = {k: getattr(entry, k) for k in entry.__struct_fields__ if k not in own}
        try:
            return load(entry.name, self._folder, seed=seed, **options)
        except (ValueError, OSError) as error:
            raise ConfigError(f"data: {error}") from error


class Prepared(NamedTuple):
    jobs: list[Job]
    digests: dict[str, Any]  # per data set, of its rows (a stream: those of seed 0); and of the
    # files of factories outside the library


def prepare(experiment: Experiment, shelf: Shelf) -> Prepared:
    """All jobs in order; errors in the experiment are refused before the first job."""
    for name in experiment.metrics or []:
        if name not in METRICS:
            raise ConfigError(f"metrics: there is no {name}; {nearest(name, list(METRICS))}")
    if experiment.radius is not None and experiment.comparator != "best":
        raise ConfigError('radius: it is for the best comparator; give comparator = "best".')
    players = list(enumerate(experiment.learners))
    for i, player in players:
        if player.compare_in is not None and experiment.comparator in ("zero", "truth"):
            raise ConfigError(f"learners.{i}.compare_in: it is for the best comparator.")
    for i, player in players:  # refuse bad arguments before any data are loaded
        plan(i, player)
    plans: Plans = {}
    jobs, digests = [], {}
    for entry in experiment.data:
        found, seen = jobs_on(experiment, shelf, entry, plans)
        jobs += found
        digests[entry.label or entry.name] = seen
    for name in experiment.metrics or []:
        meant = [task.name for task in TASKS.values() if METRICS[name] in task.metrics]
        if not set(meant) & (given := {task for task, *_ in plans}):
            meant, given = (" and ".join(sorted(each)) for each in (meant, given))
            raise ConfigError(f"metrics: {name} is for {meant} data, got {given}.")
    return Prepared(jobs, digests | outside.digests(experiment.plain()))


def jobs_on(
    experiment: Experiment, shelf: Shelf, entry: Data, plans: Plans
) -> tuple[list[Job], dict[str, Any]]:
    """The jobs on a data set, and the digest of its rows.

    plans: those that other data sets have needed; new ones are added.
    """
    data = shelf.whole(entry, 0)
    loss = _loss(experiment, data)
    check_rows(experiment, entry, data)
    rounds = data.rounds(np.dtype(experiment.precision), dense=False)
    seen = digest(data)
    seeds = experiment.all_seeds if entry.order == "shuffled" else experiment.all_seeds[:1]
    kind = data.task.name, data.classes, data.width if data.task.gather else 0
    players = list(enumerate(experiment.learners))
    every = [*players, *baseline(experiment, data.task, len(players))]
    if kind not in plans:
        lift = data.task.decision.lift
        sizes = data.classes, data.width
        plans[kind] = [plan(j, player, lift, *sizes) for j, player in every]
    jobs = []
    for (_, player), each in zip(every, plans[kind], strict=True):
        check_fit(each, data, loss, rounds)
        for seed in seeds:
            told = story(experiment, entry, player, seed, seen)
            jobs.append(Job(name_of(told), entry, each.seeded(seed), seed, told))
    return jobs, seen


def baseline(experiment: Experiment, task: Task, place: int) -> list[tuple[int, Player]]:
    """The baseline of a task as a learner after all others, with its number; none if not asked."""
    trivial = task.baseline
    player = Player(name=trivial.name, label=trivial.label, theorems=[])
    return [(place, player)] if experiment.baseline else []


def game_of(experiment: Experiment, job: Job, data: Dataset) -> LabGame:
    """The game that a job plays on the rows of `data`."""
    dtype = np.dtype(experiment.precision)
    metrics = data.task.usual
    if experiment.metrics is not None:
        asked = [METRICS[name] for name in experiment.metrics]
        metrics = tuple(metric for metric in asked if metric in data.task.metrics)
    start = first_decision(job.plan, data, dtype)
    large = len(data) * data.width * dtype.itemsize > 1e6 * experiment.budget.memory
    blind = job.plan.where == f"learners.{len(experiment.learners)}"  # the baseline
    if blind and data.is_sparse:  # it sees no features
        data = dataclasses.replace(data, context=np.zeros((len(data), 1)))
    as_rounds = lambda rows: rows.rounds(dtype, dense=not (data.is_sparse and large))
    half, learn, test = None, data, None
    if experiment.protocol == "half":
        half = len(data) // 2
    if experiment.protocol == "split":
        cut = training_rows(experiment, data)
        learn, weight = data.rows(slice(cut)), (np.arange(len(data)) < cut).astype(dtype)
        test = as_rounds(data)._replace(weight=weight)
    return LabGame(
        _loss(experiment, data),
        as_rounds(learn),
        start,
        metrics,
        olx.keep.log_spaced(experiment.curve),
        half,
        test,
    )


def _loss(experiment: Experiment, data: Dataset) -> Any:
    given = data.task.loss if experiment.loss is None else experiment.loss
    if given is None:
        raise ConfigError(
            f"loss: {data.name} is {data.task.name} data, which have no usual loss; give one, or "
            "binarize = one of the labels."
        )
    if isinstance(given, dict):
        given = filled(given, data.classes, data.width)
    return make("loss", given, *LOSS)
