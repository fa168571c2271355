"""A learner and its state on rows of one width, as compiled programs that grow.

A new coordinate is where `init` puts it. This is right only if a feature that was always 0 has
changed nothing so far. That is tried out on a few rounds before the first growth.
"""

import copy
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner, Rounds
from olx.engine.game import first_state
from olx.interop.river._growth import copied, grows, kept, put, starts_alike
from olx.interop.river._programs import LEAD, Programs, own_of, programs
from olx.losses.score import ScoreLoss
from olx.streams.checks import judge, needs_of

_MADE = ("programs", "own", "packing", "needs")  # from the other fields


class Device:
    """A learner, its loss and its state.

    rows: how many rows of weights there are for a loss of classes; None for one row.
    labels: whether outcomes are numbers of classes.
    """

    def __init__(
        self, owner: str, learner: Learner, loss: ScoreLoss, rows: int | None, labels: bool
    ) -> None:
        self.owner, self.learner, self.loss = owner, learner, loss
        self.rows, self.labels = rows, labels
        self.width = 0
        self.state: tuple = ()
        self._load()

    def judge(self, rows: np.ndarray) -> None:
        """Refuse rows that the learner or the loss cannot take."""
        outcome = rows[:, 0].astype(np.int32) if self.labels else rows[:, 0]
        weight: Any = rows[:, 1]
        judge(self.owner, self.needs, None, Rounds(rows[:, LEAD:], outcome, weight))

    def learn(self, rows: np.ndarray) -> None:
        """Play rounds; those of weight 0 change nothing."""
        with jax.enable_x64(True):
            self.state = self.programs.block(self.own, self.state, rows)
            jax.block_until_ready(self.state)  # the caller may overwrite the rows

    def pair(self, rows: np.ndarray) -> np.ndarray:
        """Learn the first of two rows, then score the second, in one call."""
        with jax.enable_x64(True):
            self.state, found = self.programs.pair(self.own, self.state, rows)
            return np.asarray(found)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(self.programs.many(self.own, self.state, rows))

    def check_grows(self) -> None:
        """Refuse new features for a learner that depends on their number."""
        with jax.enable_x64(True):
            fine = self.width == 0 or grows(self.packing, self.own, self.rows, self.labels)
        if not fine:
            raise ValueError(
                f"{self.owner}: a new feature came, but {self.learner!r} depends on the number of "
                "features; give all features in the first row, 0 for those that are missing."
            )

    def widen(self, width: int) -> None:
        """Make room for `width` features."""
        before, now = self.programs, self._programs(width)
        with jax.enable_x64(True):
            if before is None:
                zeros = np.zeros(now.shape)
                state = first_state(self.owner, self.learner, zeros)  # refuses a bad start
                _check_action(self, state, zeros[(0,) * (zeros.ndim - 1)])
            fresh = now.start(self.own)
            old = self.state
            self.state = fresh if before is None else put(before.packing, now.packing, old, fresh)
        self.programs, self.width = now, width

    def reseat(self, learner: Learner, rows: int | None) -> None:
        """Go on with a learner of more classes: more copies, or more rows of weights."""
        new = copy.copy(self)  # so that a refusal changes nothing
        new.learner, new.rows = learner, rows
        new._load()
        if self.programs is not None:
            before, now = self.programs, new.programs
            with jax.enable_x64(True):
                if rows is None:
                    new.state = copied(before.packing, now.packing, self.state)
                elif starts_alike(before, now, self.own, new.own):
                    new.state = put(before.packing, now.packing, self.state, now.start(new.own))
                else:
                    raise ValueError(
                        f"{self.owner}: a new class came, but the start of {learner!r} depends on "
                        "the number of classes; name all of them, as `classes=(...)`."
                    )
        vars(self).update(vars(new))

    def tree(self, state: tuple | None = None) -> PyTree:
        """A state as the learner keeps it, in arrays of NumPy; None is the present one."""
        held = self.state if state is None else state
        return self.programs.packing.unpack(*jax.tree.map(kept, held))

    def _programs(self, width: int) -> Programs:
        shape = (width,) if self.rows is None else (self.rows, width)
        with jax.enable_x64(True):
            return programs(self.packing, shape, self.labels)

    def __getstate__(self) -> dict[str, Any]:
        own = dict(vars(self), state=jax.tree.map(kept, self.state))
        return {name: value for name, value in own.items() if name not in _MADE}

    def __setstate__(self, own: dict[str, Any]) -> None:
        vars(self).update(own)
        self._load()

    def _load(self) -> None:
        with jax.enable_x64(True):
            self.packing, self.own = own_of(self.learner, self.loss)
        needs = needs_of(self.learner, self.loss)
        self.needs = [one for one in needs if not (self.labels and one[0].where == "outcome")]
        self.programs: Any = self._programs(self.width) if self.width else None


def _check_action(device: Device, state: PyTree, row: np.ndarray) -> None:
    """Refuse a learner that does not predict one score, or one per class."""
    action = jax.eval_shape(device.learner.predict, state, row)
    seen = getattr(action, "shape", None)
    if seen is None or len(seen) != device.labels:
        wanted = "one score per class" if device.labels else "one score"
        raise TypeError(
            f"{device.owner}: `learner` must predict {wanted}, {device.learner!r} gives "
            f"{jax.tree.map(np.shape, action)}; make a point learner a predictor, as "
            "`olx.linear(olx.ogd(0.1))`."
        )
