"""A learner that is played on dictionaries: rows wait in a queue until a score is asked for.

`learn` writes a row into the queue. When it is full, the device plays it: one call per `_QUEUE`
rows. A score needs the rows that wait. A short queue is learned by the functions of NumPy
(`_numpy_round`), if there are some. Else the device learns it; if one row waits, as in progressive
validation, it learns this row and scores the new one in one call.

The first row says how many features there are. When more come, the width becomes the next power of
2, so that programs are compiled seldom, and models share them. The classes of a classifier are met
one by one, too; each gets a place in the game.

`learn_many` and `predict_many` read frames of rows.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree
from river.utils import dataframe

from olx._refusal import RefusedValue
from olx.core import Learner
from olx.interop._estimator import Diverged, parts
from olx.interop.river._device import Device
from olx.interop.river._numpy_round import Lane, lane_of
from olx.interop.river._rows import Layout, Table
from olx.losses.class_hinges import multiclass_zero_one
from olx.losses.entropic import logistic
from olx.losses.score import ScoreLoss
from olx.multiclass.reductions import ReductionHparams, one_vs_rest

_QUEUE = 64  # rows that are learned in one call
_FEW = 16  # rows that the lane learns; the device is faster for more


class RiverGame:
    """A learner on its device, and the rows that it has not learned yet."""

    def __init__(
        self,
        learner: Learner,
        loss: ScoreLoss,
        intercept: bool,
        rows: int | None = None,
        labels: bool = False,
    ) -> None:
        """rows, labels: as in `Device`."""
        self.device = Device(learner, loss, rows, labels)
        self.table = Table(intercept, _QUEUE + 1)
        self.waiting = 0
        self.outcomes: list = [0.0] * _QUEUE  # of the rows that wait
        self.even = True  # whether the weights of all rows that wait are 1
        self.alone: tuple | None = None  # the learner, the loss and the sign of a lane
        self.lane: Lane | None = None
        self.tried = False  # whether there is no use in asking for a lane again

    def learn(self, x: Mapping, y: float, weight: float) -> None:
        """Put a row into the queue."""
        table = self.table
        layout = table.layouts.get(names := table.names(x)) or self.new_layout(x, names)
        if self.waiting == _QUEUE:
            self.flush()
        i = self.waiting
        table.write(i, layout, x, y, weight)
        if weight != 1.0:
            self._check_weight(weight)
        if self.device.needs:
            self.device.judge(table.rows[i : i + 1])
        self.outcomes[i] = float(y)
        self.waiting = i + 1

    def learn_many(
        self, matrix: np.ndarray, names: list, outcomes: np.ndarray, weights: np.ndarray
    ) -> None:
        """Learn many rows, in their order."""
        self.layout(tuple(names))
        self.flush()
        for begin in range(0, len(matrix), _QUEUE):
            here = slice(begin, begin + _QUEUE)
            count = len(outcomes[here])
            self.table.place(matrix[here], names)
            self.table.rows[:count, 0] = outcomes[here]
            self.table.rows[:count, 1] = weights[here]
            self.device.judge(self.table.rows[:count])
            self.waiting = count
            self.flush()

    def quick(self, x: Mapping) -> float | None:
        """The score of a learner that has a lane; None if the device must be asked."""
        table = self.table
        layout = table.layouts.get(names := table.names(x)) or self.new_layout(x, names)
        lane = self.lane or self._open()
        if lane is None or not self.even or self.waiting - lane.done > _FEW:
            return None
        if lane.held is None:
            lane.read(self.device.tree())
        table.write(_QUEUE, layout, x, 0.0, 1.0)
        return lane.play(table, self.outcomes, self.waiting, _QUEUE)

    def score(self, x: Mapping) -> np.ndarray:
        """What the learner plays on a row, after all rows that wait."""
        table = self.table
        layout = table.layouts.get(names := table.names(x)) or self.new_layout(x, names)
        if self.waiting > 1:
            self.flush()
        if self.waiting == 0:
            table.rows[0, 1] = 0.0  # a round of weight 0 changes nothing
        table.write(1, layout, x, 0.0, 0.0)
        found = self.device.pair(table.rows[:2])
        self._played()
        return found

    def scores(self, matrix: np.ndarray, names: list) -> np.ndarray:
        """What the learner plays on many rows."""
        self.layout(tuple(names))
        self.flush()
        found = []
        for begin in range(0, len(matrix), _QUEUE):
            part = matrix[begin : begin + _QUEUE]
            self.table.place(part, names)
            found.append(self.device.scores(self.table.rows[:_QUEUE])[: len(part)])
        return np.concatenate(found)

    def flush(self) -> None:
        """Learn the rows that wait."""
        if self.waiting:
            self.table.rows[self.waiting : _QUEUE, 1] = 0.0
            self.device.learn(self.table.rows[:_QUEUE])
            self._played()

    def new_layout(self, x: Mapping, names: tuple) -> Layout:
        """The layout of the first row with these names."""
        self.table.refuse_kind(x)
        return self.layout(names)

    def layout(self, names: tuple) -> Layout:
        """The layout of a row; makes room for new features."""
        new = [name for name in names if name not in self.table.columns]
        width, room = self.table.width + len(new), self.device.width
        if width > room or room == 0:
            self.flush()
            self.device.check_grows()
            self.device.widen(1 << (width - 1).bit_length() if room else max(width, 1))
            self.table.resize(self.device.width)
            self._close()
        self.table.add(new)
        return self.table.layout(names)

    def reseat(self, learner: Learner, rows: int | None) -> None:
        """Go on with a learner of more classes."""
        self.flush()
        self.device.reseat(learner, rows)
        self._close()

    def state(self) -> PyTree:
        """The state after all rows, as the learner keeps it; None before the first."""
        self.flush()
        return self.device.tree() if self.device.width else None

    def _check_weight(self, weight: float) -> None:
        if weight < 0:
            raise RefusedValue(f"`w` must be non-negative, got {weight!r}.")
        self.even = False

    def _played(self) -> None:
        self.waiting, self.even = 0, True
        if self.lane is not None:
            self.lane.forget()

    def _open(self) -> Lane | None:
        """The lane, when it is first asked for."""
        if self.alone is not None and not self.tried:
            self.tried = True
            with jax.enable_x64(True):
                self.lane = lane_of(self.device, self.table, *self.alone)
        return self.lane

    def _close(self) -> None:
        self.lane, self.tried = None, False

    def __getstate__(self) -> dict[str, Any]:
        self.flush()
        return dict(vars(self), lane=None, tried=False)


def features(X: Any) -> tuple[np.ndarray, list]:
    """The numbers of a frame, and the names of its columns; refuses what is not a finite number."""
    frame = dataframe.into_frame(X)
    names = list(frame.columns)
    if len(set(names)) < len(names):
        raise RefusedValue(f"the columns must have different names, got {names}.")
    try:
        matrix = dataframe.to_numpy(frame)
    except (TypeError, ValueError) as error:
        raise RefusedValue(f"the columns must hold numbers: {error}.") from None
    bad = ~np.isfinite(matrix)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise RefusedValue(
            f"the feature {names[column]!r} must be a finite number, got "
            f"{matrix[row, column]} in row {row}; fill gaps first."
        )
    return matrix, names


def weights(w: Any, matrix: np.ndarray) -> np.ndarray:
    """One weight per row."""
    plain = isinstance(w, int | float)
    given = np.full(len(matrix), float(w)) if plain else dataframe.into_series(w).to_numpy()
    if given.shape != (len(matrix),) or not ((given >= 0) & np.isfinite(given)).all():
        raise RefusedValue(f"`w` must be a finite number of at least 0 per row, got {w!r:.60}.")
    return given.astype(float)


_COPIES = 3  # at first: two classes, and those that are still to come


def known_with(label: Hashable) -> tuple:
    """The labels that are known with this one: False and True come together."""
    return (False, True) if isinstance(label, bool | np.bool_) else (label,)


def check_label(label: Any) -> None:
    """Refuse None and NaN: a label that is missing is no class."""
    if label is None or label != label:
        raise label_error(label)


def label_error(label: Any) -> ValueError:
    return RefusedValue(
        f"`y` must be a label, such as 1, True or a word, got {label!r:.60}; "
        "leave out rows without a label."
    )


def finite(scores: np.ndarray) -> np.ndarray:
    if not np.isfinite(scores).all():
        raise Diverged()
    return scores


def seat(model: Any) -> None:
    """Make room in the game for the classes of a model; refuses more than the learner can have."""
    k = len(model._labels)
    if model._game is None:
        model._game = _open_game(model, k)
    game = model._game
    device, own = game.device, game.device.learner.hparams
    if model._inner is not None and k + 1 > own.code.classes:
        game.reseat(one_vs_rest(model._inner, 2 * k, loss=own.loss), None)
    elif device.rows is not None and k > device.rows:
        game.reseat(device.learner, k)
    elif isinstance(own, ReductionHparams) and k > own.code.classes:
        raise RefusedValue(
            f"`learner` is made for {own.code.classes} classes, the labels are "
            f"of {k}: {model._labels}."
        )
    two = model._inner is not None and k == 2
    game.alone = (model._inner, own.loss, model._positive) if two else None


def _open_game(model: Any, k: int) -> RiverGame:
    intercept = model.fit_intercept
    learner, loss = parts(model, logistic)
    if loss.of_classes:
        copies = isinstance(learner.hparams, ReductionHparams)  # these start from one row
        return RiverGame(learner, loss, intercept, None if copies else max(2, k), labels=True)
    model._inner, copies = learner, max(_COPIES, k + 1)
    learner = one_vs_rest(learner, copies, loss=loss)
    return RiverGame(learner, multiclass_zero_one, intercept, labels=True)
