"""The classes of a classifier, which are met one by one, and their places in its game."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from olx.interop._estimator import Diverged, parts
from olx.interop.river._game import Game
from olx.losses.class_hinges import multiclass_zero_one
from olx.losses.entropic import logistic
from olx.multiclass._copies import ReductionHparams
from olx.multiclass.reductions import one_vs_rest

_COPIES = 3  # at first: two classes, and those that are still to come


def known_with(label: Hashable) -> tuple:
    """The labels that are known with this one: False and True come together."""
    return (False, True) if isinstance(label, bool | np.bool_) else (label,)


def check_label(label: Any) -> None:
    """Refuse None and NaN: a label that is missing is no class."""
    if label is None or label != label:
        raise label_error(label)


def label_error(label: Any) -> ValueError:
    return ValueError(
        f"OnlineClassifier: `y` must be a label, such as 1, True or a word, got {label!r:.60}; "
        "leave out rows without a label."
    )


def finite(model: Any, scores: np.ndarray) -> np.ndarray:
    if not np.isfinite(scores).all():
        raise Diverged(model)
    return scores


def seat(model: Any) -> None:
    """Make room in the game for the classes of a model; refuses more than the learner can have."""
    k = len(model._labels)
    if model._game is None:
        model._game = _opened(model, k)
    game = model._game
    device, own = game.device, game.device.learner.hparams
    if model._inner is not None and k + 1 > own.code.classes:
        game.reseat(one_vs_rest(model._inner, 2 * k, loss=own.loss), None)
    elif device.rows is not None and k > device.rows:
        game.reseat(device.learner, k)
    elif isinstance(own, ReductionHparams) and k > own.code.classes:
        raise ValueError(
            f"OnlineClassifier: `learner` is made for {own.code.classes} classes, the labels are "
            f"of {k}: {model._labels}."
        )
    two = model._inner is not None and k == 2
    game.alone = (model._inner, own.loss, model._positive) if two else None


def _opened(model: Any, k: int) -> Game:
    owner, intercept = type(model).__name__, model.fit_intercept
    learner, loss = parts(model, logistic)
    if loss.of_classes:
        copies = isinstance(learner.hparams, ReductionHparams)  # these start from one row
        return Game(owner, learner, loss, intercept, None if copies else max(2, k), labels=True)
    model._inner, copies = learner, max(_COPIES, k + 1)
    learner = one_vs_rest(learner, copies, loss=loss)
    return Game(owner, learner, multiclass_zero_one, intercept, labels=True)
