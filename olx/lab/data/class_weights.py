"""Weights of rows by their class, so that a learner attends to classes that are rare.

A learner learns a row with the weight $c_k$ of its class $k$, as `Rounds.weight` says. "balanced"
gives each class the same weight in all: with $n$ rows, of which $n_k$ are of class $k$, and $K$
classes, $c_k = n / (K n_k)$. Losses and metrics count each row once, as those of test rows do.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from olx.lab.data.column_notes import Note
from olx.lab.data.dataset import Dataset
from olx.lab.data.table import Labels
from olx.lab.tasks import outcomes
from olx.streams.cells import Level

LEAST = 1e-6  # a weight; single precision holds it, and its products with numbers of a model
ClassWeights = str | Mapping[str, float] | None


def with_class_weights(data: Dataset, given: ClassWeights) -> Dataset:
    """The data set whose rows are learned with the weights of their classes.

    given: a weight by label, 1 for labels without one; or "balanced", which counts all rows.
    """
    if given is None:
        return data
    table = data.table
    if table is None or data.task.read not in (outcomes.signs, outcomes.classes):
        raise ValueError(
            f"{data.name}: class_weights are for rows of binary or multiclass data, this is "
            f"{data.task.name} data."
        )
    labels = table.labels
    weights = _balanced(labels, data.outcome) if given == "balanced" else _named(data, given)
    table = dataclasses.replace(table, labels=dataclasses.replace(labels, weights=weights))
    said = ", ".join(f"{name} {c:.3g}" for name, c in zip(labels.classes, weights, strict=True))
    others = tuple(note for note in data.notes if note.column != labels.name)
    note = Note(labels.name or "label", f"labels, learned with the weights {said}")
    return dataclasses.replace(data, table=table, notes=(note, *others))


def _balanced(labels: Labels, outcome: np.ndarray) -> tuple[float, ...]:
    classes = len(labels.classes)
    counts = np.bincount(labels.class_numbers(outcome), minlength=classes)
    return tuple((len(outcome) / (classes * counts)).tolist())


def _named(data: Dataset, given: str | Mapping[str, float]) -> tuple[float, ...]:
    assert data.table is not None  # the caller refused that
    known = [_word(label) for label in data.table.labels.classes]
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{data.name}: class_weights must be a table of weights by label, or balanced; got "
            f"{given!r}."
        )
    given = {_word(label): weight for label, weight in given.items()}
    for label, weight in given.items():
        if label not in known:
            quoted = [f'"{word}"' for word in known]
            raise ValueError(
                f'{data.name}: class_weights has the label "{label}"; known are '
                f"{outcomes.few(quoted)}."
            )
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not LEAST <= weight <= 1 / LEAST:
            raise ValueError(
                f"{data.name}: class_weights.{label} must be a number from {LEAST:g} to "
                f"{1 / LEAST:g}, got {weight!r}; to leave a class out, give labels = the others."
            )
    return tuple(float(given.get(label, 1)) for label in known)


def _word(label: Level) -> str:
    """A label as it is written in a config and in most files."""
    return str(label).lower() if isinstance(label, bool) else str(label)
