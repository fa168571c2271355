"""A learner that is played on dictionaries: rows wait in a queue until a score is asked for.

`learn` writes a row into the queue. `score` plays the queue and the new row: if one row waits, as
in progressive validation, both are one call of a compiled program. The queue is also played when
it is full, so a sequence of `learn` costs one call per `_QUEUE` rows.

The first row says how many features there are. When more come, the width doubles, and the state
grows: a new coordinate is where `init` puts it. This is right only if a feature that was always 0
has changed nothing so far. That is tried out on a few rounds before the first growth.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner, Rounds
from olx.engine.boundary import first_state
from olx.interop.river._growth import copied, grows, kept, put, starts_alike
from olx.interop.river._lane import Lane, lane_of
from olx.interop.river._programs import LEAD, Programs, own_of, programs
from olx.interop.river._rows import Layout, Table
from olx.losses.score import ScoreLoss
from olx.streams.judge import judge, needs_of

_QUEUE = 64  # rows that are learned in one call
_FEW = 16  # rows that the lane learns; the device is faster for more
_MADE = ("programs", "own", "packing", "needs", "lane", "tried")  # from the other fields


class Game:
    """A learner, its state, and the rows that it has not learned yet.

    rows: how many rows of weights there are for a loss of classes; None for one row.
    labels: whether outcomes are numbers of classes.
    """

    def __init__(
        self,
        owner: str,
        learner: Learner,
        loss: ScoreLoss,
        intercept: bool,
        rows: int | None = None,
        labels: bool = False,
    ) -> None:
        self.owner, self.learner, self.loss = owner, learner, loss
        self.rows, self.labels = rows, labels
        self.table = Table(owner, intercept, _QUEUE + 1)
        self.width = 0  # of the state
        self.state: tuple = ()
        self.waiting = 0
        self.outcomes: list = [0.0] * _QUEUE  # of the rows that wait
        self.even = True  # whether the weights of all rows that wait are 1
        self.alone: tuple | None = None  # the learner, the loss and the sign of a lane
        self._load()

    def learn(self, x: Mapping, y: float, weight: float) -> None:
        """Put a row into the queue."""
        table = self.table
        names = tuple(x)
        layout = table.layouts.get(names) or self.layout(names)
        if self.waiting == _QUEUE:
            self.flush()
        if weight < 0:
            raise ValueError(f"{self.owner}: `w` must be non-negative, got {weight!r}.")
        table.write(self.waiting, layout, x, y, weight)
        self.outcomes[self.waiting] = y
        self.waiting += 1
        if weight != 1.0:
            self.even = False

    def learn_many(
        self, matrix: np.ndarray, names: list, outcomes: np.ndarray, weights: np.ndarray
    ) -> None:
        """Learn many rows, in their order."""
        self.layout(tuple(names))
        self.flush()
        for begin in range(0, len(matrix), _QUEUE):
            here = slice(begin, begin + _QUEUE)
            self.waiting = len(outcomes[here])
            self.table.place(matrix[here], names, 0)
            self.table.rows[: self.waiting, 0] = outcomes[here]
            self.table.rows[: self.waiting, 1] = weights[here]
            self.flush()

    def quick(self, x: Mapping) -> float | None:
        """The score of a learner that has a lane; None if the device must be asked."""
        table, names = self.table, tuple(x)
        layout = table.layouts.get(names) or self.layout(names)
        lane = self.lane or self._open()
        if lane is None or not self.even or self.waiting - lane.done > _FEW:
            return None
        if lane.held is None:
            lane.read(self._tree())
        table.write(_QUEUE, layout, x, 0.0, 1.0)
        return lane.play(table, self.outcomes, self.waiting, _QUEUE)

    def score(self, x: Mapping) -> np.ndarray:
        """What the learner plays on a row, after all rows that wait."""
        table = self.table
        names = tuple(x)
        layout = table.layouts.get(names) or self.layout(names)
        if self.waiting > 1 or self.needs:
            self.flush()
        if self.waiting == 0:
            table.rows[0, 1] = 0.0  # a round of weight 0 changes nothing
        table.write(1, layout, x, 0.0, 0.0)
        with jax.enable_x64(True):
            self.state, found = self.programs.pair(self.own, self.state, table.rows[:2])
            self._played()
            return np.asarray(found)

    def scores(self, matrix: np.ndarray, names: list) -> np.ndarray:
        """What the learner plays on many rows."""
        self.layout(tuple(names))
        self.flush()
        found = []
        for begin in range(0, len(matrix), _QUEUE):
            part = matrix[begin : begin + _QUEUE]
            self.table.place(part, names, 0)
            with jax.enable_x64(True):
                here = self.programs.many(self.own, self.state, self.table.rows[:_QUEUE])
                found.append(np.asarray(here)[: len(part)])
        return np.concatenate(found)

    def flush(self) -> None:
        """Learn the rows that wait."""
        if self.waiting == 0:
            return
        rows, waiting = self.table.rows, self.waiting
        if self.needs:
            part = rows[:waiting]
            outcome = part[:, 0].astype(np.int32) if self.labels else part[:, 0]
            judge(self.owner, self.needs, None, Rounds(part[:, LEAD:], outcome, part[:, 1]))
        rows[waiting:_QUEUE, 1] = 0.0
        with jax.enable_x64(True):
            self.state = self.programs.block(self.own, self.state, rows[:_QUEUE])
            jax.block_until_ready(self.state)  # the rows are overwritten next
        self._played()

    def layout(self, names: tuple) -> Layout:
        """The layout of a row; makes room for new features."""
        if self.table.add(names) and self.table.width > self.width:
            self.flush()
            self.widen(max(self.table.width, 2 * self.width))
        return self.table.layout(names)

    def widen(self, width: int) -> None:
        """Make room for `width` features."""
        before, self.width = self.programs_of(self.width), width
        self.table.resize(width)
        now = self.programs_of(width)
        with jax.enable_x64(True):
            fresh = now.start(self.own)
            if before is None:
                zeros = np.zeros(now.shape)
                first_state(self.owner, self.learner, zeros)  # refuses what cannot start there
                self.state = fresh
            elif not grows(self.packing, self.own, self.rows, self.labels):
                raise ValueError(
                    f"{self.owner}: a new feature came, but {self.learner!r} depends on the number "
                    "of features; give all features in the first row, 0 for those that are missing."
                )
            else:
                self.state = put(before.packing, now.packing, self.state, fresh)
        self.programs, self.lane, self.tried = now, None, False

    def reseat(self, learner: Learner, rows: int | None) -> None:
        """Go on with a learner of more classes: more copies, or more rows of weights."""
        self.flush()
        before, own = self.programs, self.own
        self.learner, self.rows = learner, rows
        self._load()
        if before is None:
            return
        with jax.enable_x64(True):
            if rows is None:
                self.state = copied(before.packing, self.programs.packing, self.state)
                return
            if not starts_alike(before, self.programs, own, self.own):
                raise ValueError(
                    f"{self.owner}: a new class came, but the start of {learner!r} depends on the "
                    "number of classes; name all of them, as `classes=(...)`."
                )
            fresh = self.programs.start(self.own)
            self.state = put(before.packing, self.programs.packing, self.state, fresh)

    def programs_of(self, width: int) -> Programs | None:
        shape = (width,) if self.rows is None else (self.rows, width)
        with jax.enable_x64(True):
            return programs(self.packing, shape, self.labels) if width else None

    def unpacked(self) -> PyTree:
        """The state after all rows, as the learner keeps it."""
        self.flush()
        return self._tree()

    def _tree(self) -> PyTree:
        return self.programs.packing.unpack(*jax.tree.map(np.asarray, self.state))

    def _played(self) -> None:
        self.waiting, self.even = 0, True
        if self.lane is not None:
            self.lane.forget()

    def _open(self) -> Lane | None:
        """The lane, when it is first asked for."""
        if self.alone is None or self.tried or self.needs:
            return None
        self.tried = True
        with jax.enable_x64(True):
            self.lane = lane_of(self, *self.alone)
        return self.lane

    def __getstate__(self) -> dict[str, Any]:
        self.flush()
        own = dict(vars(self), state=jax.tree.map(kept, self.state))
        return {name: own[name] for name in own if name not in _MADE}

    def __setstate__(self, own: dict[str, Any]) -> None:
        vars(self).update(own)
        self._load()

    def _load(self) -> None:
        with jax.enable_x64(True):
            self.packing, self.own = own_of(self.learner, self.loss)
        self.needs = needs_of(self.learner, self.loss)
        if self.labels:
            self.needs = [need for need in self.needs if need[0].where != "outcome"]
        self.programs: Any = self.programs_of(self.width)
        self.lane: Lane | None = None
        self.tried = False  # whether there is no use in asking for a lane again
