"""Checks of the numbers of a chunk: before it is played, or after it if a bad number must show."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import PyTree

from olx.core import Rounds
from olx.streams.judge import judge, refuse_unknown


class Checks(NamedTuple):
    """What is checked of the rounds of a run, and when."""

    owner: str
    needs: list  # the result of `needs_of`
    params: PyTree
    shown: frozenset[int] = frozenset()  # the leaves of the rounds that are looked at afterwards

    @property
    def late(self) -> bool:
        """Whether something can be refused only after the rounds are played."""
        return bool(self.shown) or any(need.unknown for need, _ in self.needs)

    def before(self, part: Rounds, start: int) -> None:
        """Refuse what need not show in the output of these rounds."""
        try:
            judge(*self[:3], part, start, self.shown)
        except ValueError:
            self.all(part, start)  # of several bad numbers, it names the first
            raise

    def all(self, part: Rounds, start: int) -> None:
        """Refuse any bad number. `start` is the number of the first round."""
        judge(*self[:3], part, start)


class Look(NamedTuple):
    """A look at the rounds of a chunk, if its output asks for one."""

    checks: Checks
    part: Rounds
    start: int

    def after(self, alarm: Any, losses: list[np.ndarray]) -> None:
        """Refuse bad numbers. A bad number shows in all configurations, divergence in some.

        losses: [rounds, ...] of each share of the configurations; none if all have diverged.
        """
        if self.checks.shown and np.all(np.asarray(alarm)):
            self.checks.all(self.part, self.start)
        refuse_unknown(self.checks.owner, self.checks.needs, self.part, losses, self.start)
