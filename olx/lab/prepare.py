"""The jobs of an experiment on its data; what does not fit is refused before the first job."""

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, PyTree

import olx
from olx._refusal import in_words, own_name
from olx.core import Feedback, Learner, Loss, Rounds
from olx.engine.game import first_state
from olx.keep import Keep
from olx.lab import user_factories
from olx.lab.config import ConfigError, nearest
from olx.lab.data import Dataset, digest, load
from olx.lab.data.column_notes import Note
from olx.lab.experiment import Data, Experiment, Player, Tree
from olx.lab.fingerprint import fingerprint
from olx.lab.jobs import Job, fill_in, first_decision, learner_job
from olx.lab.names import LOSS, make
from olx.lab.tasks.metrics import Metric, user_metric, with_loss
from olx.lab.tasks.task import METRICS, TASKS, Task
from olx.streams.checks import judge, needs_of

Learners = dict[tuple[str, int, int], list[Job]]  # on no data, by task, classes and features


class Game(NamedTuple):
    """A stream, its loss, and what to measure and keep."""

    loss: Loss
    rounds: Rounds
    start: PyTree  # the first decision
    metrics: tuple[Metric, ...]
    counts: Callable[[Feedback], Array] | None  # of two classes, summed beside the metrics
    keep: Keep  # which rounds the curve keeps
    half: int | None = None  # where the second half begins, if it is judged separately
    test: Rounds | None = None  # `rounds`, and test rounds of weight 0 after them, if any


class DataCache:
    """Loads the data sets of an experiment; caches the last one."""

    def __init__(self, experiment: Experiment):
        self._folder = experiment.data_folder
        self._last: tuple[Data, Dataset] | None = None
        self.notes: dict[str, tuple[Note, ...]] = {}  # on the columns of each table

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
            data = load(entry.name, self._folder, seed=seed, **options)
        except (ValueError, OSError) as error:
            raise ConfigError(f"data: {error}") from error
        if data.notes:
            self.notes[entry.label or entry.name] = data.notes
        return data


def prepare(experiment: Experiment, cache: DataCache) -> tuple[list[Job], Tree]:
    """All jobs in order; errors in the experiment are refused before the first job.

    Second come the digests per data set, of its rows (a stream: those of seed 0), and those of the
    files of factories and metrics outside the library.
    """
    for given in experiment.metrics or []:
        find_metric(given)
    if experiment.radius is not None and experiment.comparator != "best":
        raise ConfigError('radius: it is for the best comparator; give comparator = "best".')
    if experiment.delay < 0:
        raise ConfigError(f"delay: it must be at least 0, got {experiment.delay}.")
    players = list(enumerate(experiment.learners))
    for i, player in players:
        if player.compare_in is not None and experiment.comparator in ("zero", "truth"):
            raise ConfigError(f"learners.{i}.compare_in: it is for the best comparator.")
    for i, player in players:  # refuse bad arguments before any data are loaded
        learner_job(i, player)
    learners: Learners = {}
    jobs, digests = [], {}
    for entry in experiment.data:
        found, rows = jobs_on(experiment, cache, entry, learners)
        jobs += found
        digests[entry.label or entry.name] = rows
    tasks = {task for task, *_ in learners}
    for name in map(metric_name, experiment.metrics or []):
        meant = {task.name for task in TASKS.values() if task.metric(name)}
        if meant and not meant & tasks:
            legal, given = (" and ".join(sorted(each)) for each in (meant, tasks))
            fit = dict.fromkeys(each.name for task in sorted(tasks) for each in TASKS[task].metrics)
            hint = f" These have {', '.join(fit)}." if fit else ""
            raise ConfigError(f"metrics: {name} is for {legal} data, got {given}.{hint}")
    return jobs, digests | user_factories.digests(experiment.plain())


def jobs_on(
    experiment: Experiment, cache: DataCache, entry: Data, learners: Learners
) -> tuple[list[Job], Tree]:
    """The jobs on a data set, and the digest of its rows.

    learners: those that other data sets have needed; new ones are added.
    """
    data = cache.whole(entry, 0)
    loss = _loss(experiment, data)
    if entry.class_weights is not None and experiment.comparator is not None:
        raise ConfigError(
            f"data: {data.name} has class_weights, with which rows are learned, and regret counts "
            "each row once; leave out class_weights, or the comparator."
        )
    _check_rows(experiment, entry, data)
    rounds = data.rounds(np.dtype(experiment.precision), dense=False)
    rows = digest(data)
    seeds = experiment.all_seeds if entry.order == "shuffled" else experiment.all_seeds[:1]
    kind = data.task.name, data.classes, data.width if data.task.gather else 0
    players = [*experiment.learners, *_baseline(experiment, data.task)]
    if kind not in learners:
        sizes = data.task.decision.lift, data.classes, data.width
        delays = [experiment.delay] * len(experiment.learners) + [0]  # the baseline has none
        learners[kind] = [
            learner_job(i, player, *sizes, delay=delay)
            for i, (player, delay) in enumerate(zip(players, delays, strict=False))
        ]
    metrics = [each for each in metrics_of(experiment, data.task) if each.user_fn is not None]
    _check_readable(experiment, data)
    jobs = []
    for player, job in zip(players, learners[kind], strict=True):
        _check_fit(job, data, loss, rounds, metrics)
        for seed in seeds:
            jobs.append(job.on(entry, seed, fingerprint(experiment, entry, player, seed, rows)))
    return jobs, rows


def metric_name(given: str | Tree) -> str:
    """The name of a metric in a config, without its arguments."""
    return str(given.get("name")) if isinstance(given, dict) else given


def find_metric(given: str | Tree, task: Task | None = None) -> Metric:
    """The metric that a config names; one with a colon is a function outside the library.

    task: whose metric it is, if several tasks have one of this name.
    """
    name = metric_name(given)
    table = given if isinstance(given, dict) else {}
    arguments = {key: value for key, value in table.items() if key != "name"}
    if ":" in name:
        thing = user_factories.find("metrics", name)
        if not callable(thing) or not isinstance(thing, Hashable):
            kind = type(thing).__name__
            raise ConfigError(
                f"metrics: {name} is a {kind}; name a function of an action and an outcome."
            )
        found = user_metric(name, thing)
    elif name in METRICS:
        found = (task and task.metric(name)) or METRICS[name]
    else:
        raise ConfigError(f"metrics: there is no {name}; {nearest(name, list(METRICS))}")
    if found.takes_loss:
        make("metrics", {"name": name, **arguments}, *LOSS)  # refuses other arguments
        return with_loss(found, tuple(arguments.items()))
    if arguments:
        raise ConfigError(f"metrics: {name} takes no arguments.")
    return found


def metrics_of(experiment: Experiment, task: Task) -> tuple[Metric, ...]:
    """The metrics of a config that fit a task; the usual ones if it names none."""
    if experiment.metrics is None:
        return task.usual
    fits = lambda name: ":" in name or task.metric(name) is not None
    asked = [given for given in experiment.metrics if fits(metric_name(given))]
    return tuple(find_metric(given, task) for given in asked)


def _check_readable(experiment: Experiment, data: Dataset) -> None:
    """Refuse a metric of scores that mean something else with the loss of the experiment."""
    given = data.task.loss if experiment.loss is None else experiment.loss
    loss = given.get("name") if isinstance(given, dict) else given
    for metric in metrics_of(experiment, data.task):
        if metric.losses and loss not in metric.losses:
            legal = " or ".join(metric.losses)
            raise ConfigError(
                f"metrics: {metric.name} reads scores as those of loss = {legal}, on {data.name} "
                f"it is {loss}; leave it out, or play that loss."
            )


def job_game(experiment: Experiment, job: Job, data: Dataset) -> Game:
    """The game that a job plays on the rows of `data`."""
    dtype = np.dtype(experiment.precision)
    metrics, counts = metrics_of(experiment, data.task), data.task.counts
    start = first_decision(job, data, dtype)
    large = len(data) * data.width * dtype.itemsize > 1e6 * experiment.budget.memory
    blind = job.where == f"learners.{len(experiment.learners)}"  # the baseline
    if blind and data.is_sparse and experiment.comparator is None:  # it sees no features
        data = dataclasses.replace(data, context=np.zeros((len(data), 1)))
    dense = not (data.is_sparse and large)
    as_rounds = lambda rows: rows.rounds(dtype, dense, weighted=not blind)
    half, learn, test = None, data, None
    if experiment.protocol == "half":
        half = len(data) // 2
    if experiment.protocol == "split":
        cut = _training_rows(experiment, data)
        learn, test = data.rows(slice(cut)), as_rounds(data)
        learned = (np.arange(len(data)) < cut).astype(dtype)
        test = test._replace(weight=learned if test.weight is None else learned * test.weight)
    keep = olx.keep.log_spaced(experiment.curve)
    return Game(_loss(experiment, data), as_rounds(learn), start, metrics, counts, keep, half, test)


def _baseline(experiment: Experiment, task: Task) -> list[Player]:
    """The baseline of a task as a learner after all others; none if not asked."""
    trivial = task.baseline
    player = Player(name=trivial.name, label=trivial.label, theorems=[])
    return [player] if experiment.baseline else []


def _loss(experiment: Experiment, data: Dataset) -> Loss:
    given = data.task.loss if experiment.loss is None else experiment.loss
    if given is None:
        raise ConfigError(
            f"loss: {data.name} is {data.task.name} data, which have no usual loss; give one, or "
            "binarize = one of the labels."
        )
    if isinstance(given, dict):
        given = fill_in(given, data.classes, data.width)
    return make("loss", given, *LOSS)


def _check_rows(experiment: Experiment, entry: Data, data: Dataset) -> None:
    """Refuse numbers too large for the precision, and protocols that leave a part without rows."""
    most = np.finfo(experiment.precision).max
    parts: list[tuple[str, Any]] = [("feature", part) for part in data.parts]
    parts.append(("outcome", data.outcome))
    for what, array in parts:
        if array is None or np.size(array) == 0:
            continue
        numbers = array.data if scipy.sparse.issparse(array) else array
        if abs(numbers).max() > most:
            whole = array.toarray() if scipy.sparse.issparse(array) else array
            row, *column = np.argwhere(abs(whole) > most)[0].tolist()
            where = f"row {row}" + (f", column {column[0]}" if column else "")
            raise ConfigError(
                f"data: {data.name} holds the {what} {whole[(row, *column)]:g} at {where}, too "
                f'large for {experiment.precision}; scale it, or give precision = "float64".'
            )
    length = min(len(data), entry.rows or len(data))
    cut = {"half": length // 2, "split": _training_rows(experiment, data, length)}
    if not 0 < cut.get(experiment.protocol, 1) < length + (experiment.protocol == "progressive"):
        raise ConfigError(
            f"protocol: {experiment.protocol} leaves a part of {data.name} without rows; it has "
            f"{length} rows, test = {experiment.test}."
        )


def _training_rows(experiment: Experiment, data: Dataset, length: int | None = None) -> int:
    """The number of rows on which the protocol `split` learns."""
    length = len(data) if length is None else length
    return data.train or round(length * (1 - experiment.test))


def _check_fit(job: Job, data: Dataset, loss: Loss, rounds: Rounds, metrics: list[Metric]) -> None:
    """Refuse a learner that cannot play on the data, or not from its first decision."""
    start = first_decision(job, data, np.float32)
    for part in job.parts:
        learner = part.first()
        action = _check_decision(job, data, learner, start)
        for metric in metrics:
            _check_metric(metric, data, action, rounds)
        try:
            with own_name(f"{job.where} on {data.name}"):
                judge(needs_of(learner, loss), start, rounds)
                first_state(learner, start)
        except (TypeError, ValueError) as error:
            hint = " In a config that is first = a number, or uniform."
            raise ConfigError(f"{error}{hint if 'params' in str(error) else ''}") from error


def _check_decision(job: Job, data: Dataset, learner: Learner, start: PyTree) -> PyTree:
    """The shapes of the action; refuses one that the data do not ask for."""
    decision = data.task.decision
    wanted = decision.shape(data)
    try:
        action = jax.eval_shape(
            lambda x: learner.predict(learner.init(start), x), data.row(jnp.float32)
        )
    except (TypeError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise ConfigError(f"{job.where} does not fit {data.name}: {said}") from error
    shape = getattr(action, "shape", None)
    if shape != wanted:
        hint = "" if decision.lift is None else "; add linear = true"
        raise ConfigError(
            f"{job.where}: {job.learner} decides on {_shape_words(shape)}, {data.name} asks for "
            f"{_shape_words(wanted)}{hint}."
        )
    return action


def _check_metric(metric: Metric, data: Dataset, action: PyTree, rounds: Rounds) -> None:
    """Refuse a metric of a user that gives no number for a round of the data."""
    outcome = jax.ShapeDtypeStruct(np.shape(rounds.outcome)[1:], np.asarray(rounds.outcome).dtype)
    assert metric.user_fn is not None
    try:
        found = jax.eval_shape(metric.user_fn, action, outcome)
    except Exception as error:  # of code that is not ours
        said = " ".join(in_words(error).split()).rstrip(".")[:300]
        raise ConfigError(f"metrics: {metric.name} fails on {data.name}: {said}.") from error
    dtype = getattr(found, "dtype", None)
    if getattr(found, "shape", None) != () or dtype is None or dtype.kind not in "fiub":
        got = type(found).__name__ if dtype is None else f"{dtype}{list(found.shape)}"
        raise ConfigError(
            f"metrics: {metric.name} must return one number per round, got {got} on {data.name}."
        )


def _shape_words(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "a tree of arrays"
    return "a score" if shape == () else f"a point of {' x '.join(map(str, shape))} numbers"
