"""A learner that is played on dictionaries: rows wait in a queue until a score is asked for.

`learn` writes a row into the queue. When it is full, the device plays it: one call per `_QUEUE`
rows. A score needs the rows that wait. A short queue is learned by the lane, if there is one. Else
the device learns it; if one row waits, as in progressive validation, it learns this row and scores
the new one in one call.

The first row says how many features there are. When more come, the width becomes the next power of
2, so that programs are compiled seldom, and models share them.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner
from olx.interop.river._device import Device
from olx.interop.river._lane import Lane, lane_of
from olx.interop.river._rows import Layout, Table
from olx.losses.score import ScoreLoss

_QUEUE = 64  # rows that are learned in one call
_FEW = 16  # rows that the lane learns; the device is faster for more


class Game:
    """A learner on its device, and the rows that it has not learned yet."""

    def __init__(
        self,
        owner: str,
        learner: Learner,
        loss: ScoreLoss,
        intercept: bool,
        rows: int | None = None,
        labels: bool = False,
    ) -> None:
        """rows, labels: as in `Device`."""
        self.device = Device(owner, learner, loss, rows, labels)
        self.table = Table(owner, intercept, _QUEUE + 1)
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
            raise ValueError(f"{self.device.owner}: `w` must be non-negative, got {weight!r}.")
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
