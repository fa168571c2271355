"""The quick way to a score: the rows that wait are learned by a function of NumPy (`_host`).

The compiled program learns them again when the queue is full, and its state is the one that counts:
the lane starts from it anew. So rounding errors of the lane do not add up.
"""

import copy
import math
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from olx._cache import Recent
from olx.core import Learner
from olx.engine.round import feedback_of
from olx.interop.river._device import Device
from olx.interop.river._host import Round, written
from olx.interop.river._lines import Unknown
from olx.interop.river._programs import LEAD, own_of
from olx.interop.river._rows import Table
from olx.losses.score import ScoreLoss

_LARGE = 1 << 13  # numbers of a state, for which a compiled program is faster
_LEFT = (ZeroDivisionError, OverflowError, ValueError, RuntimeWarning)  # not a finite number


class Lane:
    """One learner of a game, as functions of NumPy.

    sign: the number of the class whose label is +1, for a copy of a learner of two classes.
    """

    def __init__(self, functions: Round, sign: int | None) -> None:
        self.learn, self.score, self.prepare = functions
        names = [one.__code__.co_names for one in functions if one is not None]
        self.silent = not any("np" in one for one in names)  # sums and products seldom warn
        self.sign = sign
        self.held: list | None = None  # the state; None if it must be read
        self.done = 0  # rows of the queue that are learned

    def forget(self) -> None:
        """The state has changed."""
        self.held, self.done = None, 0

    def read(self, state: PyTree) -> None:
        """Start from the state of the game."""
        leaves = jax.tree.leaves(state)
        if self.sign is not None:
            leaves = [leaf[self.sign] for leaf in leaves]
        held = [leaf.item() if np.ndim(leaf) == 0 else np.array(leaf) for leaf in leaves]
        self.held = self._with(held)

    def play(self, table: Table, outcomes: list, waiting: int, at: int) -> float | None:
        """The score of row `at` after the first `waiting` rows; None if it cannot be found."""
        try:
            if self.silent:
                found = self._play(table.features, outcomes, waiting, at)
            else:
                with np.errstate(all="ignore"):
                    found = self._play(table.features, outcomes, waiting, at)
        except _LEFT:
            found = math.nan
        if math.isfinite(found):
            return found
        self.forget()
        return None

    def _with(self, leaves: list) -> list:
        return leaves if self.prepare is None else leaves + self.prepare(*leaves)

    def _play(self, features: list, outcomes: list, waiting: int, at: int) -> float:
        held, sign = self.held or [], self.sign
        for i in range(self.done, waiting):
            y = outcomes[i]
            if sign is not None:
                y = 1.0 if y == sign else -1.0
            held = self._with(self.learn(*held, y, features[i]))
        self.held, self.done = held, waiting
        return self.score(*held, features[at])[0]


_SEEN: Recent[tuple[Round | None]] = Recent()  # by learner, loss and width


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
        known = _SEEN.put(key, (_tried(device, copy.copy(table), learner, loss, sign),))
    return None if known[0] is None else Lane(known[0], sign)


def functions_of(learner: Learner, loss: ScoreLoss, width: int) -> Round:
    row, number = (jax.ShapeDtypeStruct(shape, np.float64) for shape in ((width,), ()))
    leaves, structure = jax.tree.flatten(jax.eval_shape(learner.init, row))
    if sum(math.prod(leaf.shape) for leaf in leaves) > _LARGE:
        raise Unknown("a large state")

    def learn(*given: Any) -> list:
        *state, outcome, x = given
        state = jax.tree.unflatten(structure, state)
        feedback = feedback_of(loss, x, learner.predict(state, x), outcome, 1.0)
        return jax.tree.leaves(learner.update(state, feedback))

    def score(*given: Any) -> Any:
        return learner.predict(jax.tree.unflatten(structure, given[:-1]), given[-1])

    if jax.eval_shape(score, *leaves, row).shape != ():
        raise Unknown("a score that is not one number")
    return written(learn, score, leaves, number, row)


def _tried(
    device: Device, table: Table, learner: Learner, loss: ScoreLoss, sign: int | None
) -> Round | None:
    """The functions of a lane, if they play a few rounds as the device does; else None."""
    try:
        found = functions_of(learner, loss, device.width)
    except Exception:  # whatever NumPy cannot play, the device can
        return None
    table.resize(device.width)
    rows = table.rows
    rows[:, LEAD:] = np.random.default_rng(1).normal(size=(len(rows), device.width))
    rows[:, 0] = np.arange(len(rows)) % 2
    rows[:, 1] = np.arange(len(rows)) < 4
    start = device.programs.start(device.own)
    lane, other = Lane(found, sign), Lane(found, sign)
    lane.read(device.tree(start))
    other.read(device.tree(device.programs.block(device.own, start, rows[:-1])))
    if lane.play(table, rows[:, 0].tolist(), 4, 5) is None or not lane.held or not other.held:
        return None
    near = lambda one, two: np.allclose(one, two, rtol=1e-9, atol=1e-12)
    return found if all(map(near, lane.held, other.held)) else None
