"""What tuning found, and every configuration that it tried."""

from typing import Any, NamedTuple

import numpy as np

from olx._refusal import RefusedValue, public
from olx._words import words
from olx.core import Learner


class Trial(NamedTuple):
    """A configuration, and what it paid."""

    numbers: dict[str, float]
    rounds: int  # how many rounds of the stream it played, from the first one on
    total: float  # its loss on these rounds; not finite if it diverged
    slopes: dict[str, float] | None = None  # of `total` by each number; None if not computed


class Tuned(NamedTuple):
    """The best numbers of a stream, and how they were found."""

    numbers: dict[str, float]
    total: float  # the loss of these numbers on the whole stream
    learner: Learner  # made of these numbers
    history: tuple[Trial, ...]  # every configuration, in the order in which they were tried
    runs: float  # the cost: rounds played, divided by the rounds of the stream
    note: str = ""  # what a reader must know of the slopes; empty if all is well

    def __repr__(self) -> str:
        found = ", ".join(f"{name}={value:.4g}" for name, value in self.numbers.items())
        tried = f"{len(self.history)} trials, {self.runs:.1f} runs"
        parts = [found, f"total={self.total:.6g}", tried, f"learner={words(self.learner)}"]
        return f"Tuned({', '.join([*parts, *filter(None, [self.note])])})"

    @public
    def plot(self, axes: Any, name: str) -> None:
        """Draw the loss per round of every trial against one of its numbers.

        axes: of matplotlib. Trials of a part of the stream are drawn lighter. A star marks the
            best one.
        name: of the number.
        """
        if name not in self.numbers:
            known = ", ".join(f"`{one}`" for one in self.numbers)
            raise RefusedValue(f"no number is named `{name}`; there is {known}.")
        whole = max(trial.rounds for trial in self.history)
        for rounds in sorted({trial.rounds for trial in self.history}):
            mine = [trial for trial in self.history if trial.rounds == rounds]
            mine = [trial for trial in mine if np.isfinite(trial.total)]
            at = [trial.numbers[name] for trial in mine]
            paid = [trial.total / rounds for trial in mine]
            share = 0.2 + 0.8 * rounds / whole
            axes.plot(at, paid, "o", ms=4, color="C0", alpha=share, label=f"{rounds} rounds")
        axes.plot(self.numbers[name], self.total / whole, "*", ms=14, color="C1", label="best")
        if min(trial.numbers[name] for trial in self.history) > 0:
            axes.set_xscale("log")
        axes.set(xlabel=name, ylabel="loss per round")


def tuned(problem: Any, history: list[Trial], runs: float) -> Tuned:
    """The best trial of the whole stream; a trial that diverged is never the best."""
    done = [one for one in history if one.rounds == problem.length and np.isfinite(one.total)]
    if not done:
        raise RefusedValue(
            "no configuration has a finite total loss; all of them diverged. "
            "Lower the upper ends of the ranges."
        )
    best = min(done, key=lambda trial: trial.total)
    learner = problem.make(**best.numbers)
    return Tuned(best.numbers, best.total, learner, tuple(history), runs, _note(history))


def _note(history: list[Trial]) -> str:
    seen = [(trial.total, trial.slopes) for trial in history if trial.slopes is not None]
    if not seen:
        return ""
    names = list(seen[0][1])
    slopes = np.array([[each[name] for name in names] for _, each in seen])
    odd = [names[i] for i in np.flatnonzero(~np.isfinite(slopes).any(axis=0))]
    if odd:
        return f"the slope in {_listed(odd)} was never finite, so no step was taken by it"
    flat = [names[i] for i in np.flatnonzero(~slopes.any(axis=0))]
    return f"the slope in {_listed(flat)} was exactly 0 wherever it was computed" if flat else ""


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
