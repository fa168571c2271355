"""Checks of an experiment that need no data."""

import difflib
import math
from collections.abc import Mapping, Sequence

from olx.lab.experiment import Experiment

SEEDS = 2**32  # the limit of `jax.random.key`
MANY = 10_000  # of seeds, and of points of a curve per decade


class ConfigError(ValueError):
    """The error of a config, in one line: the key, the problem, and the remedy."""


def nearest(word: str, legal: Sequence[str] | Mapping[str, str], otherwise: str = "") -> str:
    """A hint: the nearest legal word, or all of them; a mapping gives the text to show."""
    near = difflib.get_close_matches(str(word), legal, 1, 0.5)
    if not near:
        return otherwise or f"it takes {', '.join(legal)}."
    return f"did you mean {legal[near[0]] if isinstance(legal, Mapping) else near[0]}?"


def check(experiment: Experiment) -> None:
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
