"""A learner that is played on dictionaries: rows wait in a queue until a score is asked for.

`learn` writes a row into the queue. When it is full, the device plays it in one call. A score needs
the rows that wait. A few of them are learned by a `Lane`: functions of NumPy
(`olx.engine.numpy_functions`), if there are some. The device learns these rows again when the queue
is full, and its state is the one that counts: the lane starts from it anew, so rounding errors of
the lane do not add up. Without a lane the device learns the queue; if one row waits, as in
progressive validation, it learns this row and scores the new one in one call.

The first row says how many features there are. When more come, the width becomes the next power of
2, so that programs are compiled seldom, and models share them.

`learn_many` and `predict_many` read frames of rows.
"""

import copy
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree
from river.utils import dataframe

from olx._cache import Recent
from olx._refusal import RefusedValue
from olx.core import Learner
from olx.engine.numpy_functions import (
    LEFT,
    Functions,
    kind_of,
    numpy_functions,
    quietly,
)
from olx.engine.numpy_operations import Unknown
from olx.engine.round import feedback_of
from olx.interop.river._device import LEAD, Device, own_of
from olx.interop.river._rows import Table
from olx.losses.score import ScoreLoss
from olx.needs import refuse_breach

_FEW = 16  # rows that the lane learns; the device is faster for more
_LARGE = 1 << 13  # numbers of a state, for which a compiled program is faster


class Lane:
    """One learner of a game, as functions of NumPy.

    sign: the number of the class whose label is +1, for a copy of a learner of two classes.
    """

    def __init__(self, functions: Functions, sign: int | None) -> None:
        self.prepare, (self.learn, self.score) = functions
        self.sign = sign
        self.held: list | None = None  # the state; None if it must be read
        self.shared: list = []  # what both functions need of the state
        self.done = 0  # rows of the queue that are learned

    def forget(self) -> None:
        """The state has changed."""
        self.held, self.done = None, 0

    def read(self, state: PyTree) -> None:
        """Start from the state of the game."""
        leaves = jax.tree.leaves(state)
        if self.sign is not None:
            leaves = [leaf[self.sign] for leaf in leaves]
        self.held = [leaf.item() if np.ndim(leaf) == 0 else np.array(leaf) for leaf in leaves]
        self.shared = self.prepare(*self.held)

    def play(self, table: Table, waiting: int, at: int) -> float | None:
        """The score of row `at` after the first `waiting` rows; None if it cannot be found."""
        try:
            found = quietly(self._play, table.features, table.rows, waiting, at)
        except LEFT:
            found = math.nan
        if math.isfinite(found):
            return found
        self.forget()
        return None

    def _play(self, features: list, rows: np.ndarray, waiting: int, at: int) -> float:
        held, shared, sign = self.held or [], self.shared, self.sign
        for i in range(self.done, waiting):
            y = rows.item(i, 0)
            if sign is not None:
                y = 1.0 if y == sign else -1.0
            held = self.learn(*held, y, features[i], *shared)
            shared = self.prepare(*held)
        self.held, self.shared, self.done = held, shared, waiting
        return self.score(*held, 0.0, features[at], *shared)[0]


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
        self.table = Table(intercept)
        self.waiting = 0
        self.even = True  # whether the weights of all rows that wait are 1
        self.alone: tuple | None = None  # the learner, the loss and the sign of a lane
        self.lane: Lane | None = None
        self.tried = False  # whether there is no use in asking for a lane again

    def learn(self, x: Mapping, y: float, weight: float) -> None:
        """Put a row into the queue."""
        if self.waiting == self.table.most:
            self.flush()
        if not self.table.write(self.waiting, x, y, weight):
            self._make_room(x)
            self.table.write(self.waiting, x, y, weight)
        i = self.waiting
        if weight != 1.0:
            self._check_weight(weight)
        if self.device.needs:
            self.device.judge(self.table.rows[i : i + 1])
        self.waiting = i + 1

    def learn_many(
        self, matrix: np.ndarray, names: list, outcomes: np.ndarray, weights: np.ndarray
    ) -> None:
        """Learn many rows, in their order."""
        self.layout(tuple(names))
        self.flush()
        for begin in range(0, len(matrix), self.table.most):
            here = slice(begin, begin + self.table.most)
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
        if not table.write(table.most, x, 0.0, 1.0):
            self._make_room(x)
            table.write(table.most, x, 0.0, 1.0)
        lane = self.lane or self._open()
        if lane is None or not self.even or self.waiting - lane.done > _FEW:
            return None
        if lane.held is None:
            lane.read(self.device.tree())
        return lane.play(table, self.waiting, table.most)

    def score(self, x: Mapping) -> np.ndarray:
        """What the learner plays on a row, after all rows that wait."""
        table = self.table
        if self.waiting > 1:
            self.flush()
        if not table.write(1, x, 0.0, 0.0):
            self._make_room(x)
            table.write(1, x, 0.0, 0.0)
        if self.waiting == 0:
            table.rows[0, 1] = 0.0  # a round of weight 0 changes nothing
        found = self.device.pair(table.rows[:2])
        self._played()
        return self._checked(found)

    def scores(self, matrix: np.ndarray, names: list) -> np.ndarray:
        """What the learner plays on many rows."""
        self.layout(tuple(names))
        self.flush()
        found, most = [], self.table.most
        for begin in range(0, len(matrix), most):
            part = matrix[begin : begin + most]
            self.table.place(part, names)
            found.append(self.device.scores(self.table.rows[:most])[: len(part)])
        return self._checked(np.concatenate(found))

    def _checked(self, scores: np.ndarray) -> np.ndarray:
        """The scores; refuses those of a learner of which a demand was broken."""
        if not np.isfinite(scores).all():
            refuse_breach(self.device.tree())
        return scores

    def flush(self) -> None:
        """Learn the rows that wait."""
        if self.waiting:
            self.device.learn(self.table.rows, self.waiting)
            self._played()

    def _make_room(self, x: Mapping) -> None:
        """Make room for the first row with its names."""
        self.table.refuse_kind(x)
        self.layout(tuple(x))

    def layout(self, names: tuple) -> None:
        """Make the layout of a row, and room for new features."""
        new = [name for name in names if name not in self.table.columns]
        width, room = self.table.width + len(new), self.device.width
        if width > room or room == 0:
            self.flush()
            self.device.check_grows()
            self.device.widen(1 << (width - 1).bit_length() if room else max(width, 1))
            self.table.resize(self.device.width)
            self._close()
        self.table.add(new)
        self.table.add_layout(names)

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

    def __getstate__(self) -> dict[str, object]:
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


_SEEN: Recent[tuple[Functions | None]] = Recent()  # by learner, loss and width


def lane_of(
    device: Device, table: Table, learner: Learner, loss: ScoreLoss, sign: int | None
) -> Lane | None:
    """The lane of a learner that is on the device, perhaps as one of copies; None if there is none.

    table: of rows like those of the game.
    """
    packing, own = own_of(learner, loss)
    key = packing, *(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(own)), device.width
    known = _SEEN.get(key)
    if known is None:
        known = _SEEN.put(key, (_tried_functions(device, copy.copy(table), learner, loss, sign),))
    return None if known[0] is None else Lane(known[0], sign)


def functions_of(learner: Learner, loss: ScoreLoss, width: int) -> Functions:
    """How a learner learns a row and scores one, as functions of (state, outcome, row)."""
    row, number = (jax.ShapeDtypeStruct(shape, np.float64) for shape in ((width,), ()))
    leaves, structure = jax.tree.flatten(jax.eval_shape(learner.init, row))
    if sum(math.prod(leaf.shape) for leaf in leaves) > _LARGE:
        raise Unknown("a large state")

    def learn(*given: Any) -> list:
        *state, outcome, x = given
        state = jax.tree.unflatten(structure, state)
        feedback = feedback_of(loss, x, learner.predict(state, x), outcome, 1.0)
        return jax.tree.leaves(learner.update(state, feedback))

    def score(*given: Any) -> list:
        *state, _, x = given
        return [learner.predict(jax.tree.unflatten(structure, state), x)]

    given = *leaves, number, row
    if jax.eval_shape(score, *given)[0].shape != ():
        raise Unknown("a score that is not one number")
    return numpy_functions([learn, score], list(map(kind_of, given)), len(leaves))


def _tried_functions(
    device: Device, table: Table, learner: Learner, loss: ScoreLoss, sign: int | None
) -> Functions | None:
    """The functions of a lane, if they play a few rounds as the device does; else None."""
    try:
        found = functions_of(learner, loss, device.width)
    except Exception:  # whatever NumPy cannot play, the device can
        return None
    table.resize(device.width)
    rows = table.rows
    rows[:, LEAD:] = np.random.default_rng(1).normal(size=(len(rows), device.width))
    rows[:, 0] = np.arange(len(rows)) % 2
    rows[:, 1] = 1.0
    start = device.programs.start(device.own)
    lane, other = Lane(found, sign), Lane(found, sign)
    lane.read(device.tree(start))
    other.read(device.tree(device.programs.block(device.own, start, rows, 4)))
    if lane.play(table, 4, 5) is None or not lane.held or not other.held:
        return None
    near = lambda one, two: np.allclose(one, two, rtol=1e-9, atol=1e-12)
    return found if all(map(near, lane.held, other.held)) else None
