r"""What is tuned: numbers in their ranges, the game that judges them, and what was found.

Points and steps are taken in the unit box. A point $z \in [0, 1]^n$ stands for the numbers

$$\lambda_i = \mathrm{low}_i + z_i (\mathrm{high}_i - \mathrm{low}_i) \quad\text{or}\quad
  \lambda_i = \mathrm{low}_i\, (\mathrm{high}_i / \mathrm{low}_i)^{z_i},$$

the second on a logarithmic axis. The first points of the box are those of an additive recurrence,
$z_k = \tfrac12 + k a \bmod 1$ with $a_i = \phi^{-i}$ and $\phi^{n + 1} = \phi + 1$. They cover the
box more evenly than random points, and they are the same in each call.

Niederreiter, Random Number Generation and Quasi-Monte Carlo Methods, 1992.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx._words import words
from olx.core import Batch, Feedback, Learner, Loss, Rounds, Run
from olx.engine.arguments import check_batch
from olx.engine.batch import batch
from olx.engine.execute import Options, execute
from olx.engine.game import game_of
from olx.engine.numbers import numbers_of
from olx.engine.round import recorder_of
from olx.keep import totals
from olx.streams.checks import check_params, check_rounds


class Range(NamedTuple):
    """The range of a number; made by `uniform` or `loguniform`."""

    low: float
    high: float
    logarithmic: bool  # whether steps are taken in the logarithm of the number

    def at(self, z: ArrayLike) -> np.ndarray:
        """The numbers at places from 0, the lower end, to 1, the upper end."""
        if not self.logarithmic:
            return self.low + np.asarray(z, float) * self.width
        return np.exp(math.log(self.low) + np.asarray(z, float) * self.width)

    def place(self, value: ArrayLike) -> np.ndarray:
        """The place of a number, from 0 to 1."""
        if not self.logarithmic:
            return (np.asarray(value, float) - self.low) / self.width
        return (np.log(value) - math.log(self.low)) / self.width

    def stretch(self, value: ArrayLike) -> np.ndarray:
        """The derivative of the number by its place."""
        value = np.asarray(value, float)
        return value * self.width if self.logarithmic else np.full_like(value, self.width)

    @property
    def width(self) -> float:
        """The length of the axis."""
        if self.logarithmic:
            return math.log(self.high) - math.log(self.low)
        return self.high - self.low


Ranges = Mapping[str, Range | tuple[float, float]]  # by the name of the number


@public
def uniform(low: float, high: float) -> Range:
    """A range whose numbers are spread evenly, as in the grids of the lab.

    >>> uniform(0.0, 2.0).at([0.0, 0.5, 1.0]).tolist()
    [0.0, 1.0, 2.0]
    """
    return _checked(low, high, False)


@public
def loguniform(low: float, high: float) -> Range:
    """A range of positive numbers that are spread evenly on a logarithmic axis.

    >>> loguniform(0.01, 1.0).at([0.0, 0.5, 1.0]).round(6).tolist()
    [0.01, 0.1, 1.0]
    """
    return _checked(low, high, True)


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


class Problem(NamedTuple):
    make: Callable[..., Learner]
    loss: Loss
    rounds: Rounds
    params: PyTree
    ranges: dict[str, Range]
    length: int  # the number of rounds
    dtype: np.dtype  # of the numbers, which is that of `params`

    def numbers(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """The numbers at points [K, n] of the unit box, as the learners get them."""
        columns = zip(self.ranges.items(), places.T, strict=True)
        return {name: one.at(z).astype(self.dtype) for (name, one), z in columns}

    def batch(self, numbers: dict[str, np.ndarray]) -> Batch:
        return batch(self.make, **{name: jnp.asarray(each) for name, each in numbers.items()})

    def rows(self, numbers: dict[str, np.ndarray]) -> list[dict[str, float]]:
        """The numbers of each configuration, by name."""
        lists = [each.astype(float).tolist() for each in numbers.values()]
        return [dict(zip(numbers, row, strict=True)) for row in zip(*lists, strict=True)]

    def sweep(
        self,
        learners: Learner,
        loss: Loss,
        rounds: Rounds,
        *,
        measure: Callable[[Feedback], PyTree] | None = None,
        state: PyTree = None,
    ) -> Run:
        """`olx.sweep` that keeps the total losses, and the sums of `measure`."""
        numbers = numbers_of(learners, loss, check_batch, stacked=True)
        recorder = recorder_of(None, measure, totals)
        game = game_of("tune", numbers, rounds, self.params, recorder, state)
        return execute(game, Options(totals, progress=False))

    def result(self, history: list[Trial], runs: float) -> Tuned:
        """The best trial of the whole stream; a trial that diverged is never the best."""
        done = [one for one in history if one.rounds == self.length and np.isfinite(one.total)]
        if not done:
            raise RefusedValue(
                "no configuration has a finite total loss; all of them diverged. "
                "Lower the upper ends of the ranges."
            )
        best = min(done, key=lambda trial: trial.total)
        learner = self.make(**best.numbers)
        return Tuned(best.numbers, best.total, learner, tuple(history), runs, _note(history))


def problem(
    make: Callable[..., Learner], loss: Loss, rounds: Rounds, params: PyTree, over: Ranges
) -> Problem:
    """Check all arguments that the ways to tune share."""
    check.function("make", make, _remedy(make))
    ranges = ranges_of(over)
    if not isinstance(rounds, Rounds) and hasattr(rounds, "__next__"):
        raise RefusedType(
            "`rounds` is an iterator, which can be played once only; tuning plays the "
            "stream several times: give arrays or memory maps in a `Rounds`."
        )
    length = check_rounds(rounds)
    check_params(params)
    dtype = np.result_type(*(np.dtype(jnp.result_type(one)) for one in jax.tree.leaves(params)))
    given = Problem(make, loss, rounds, params, ranges, length, dtype)
    _check_names(given)
    _check_continuous(given)
    _check_ends(given)
    return given


def spread(count: int, numbers: int) -> np.ndarray:
    """`count` points of the unit box, [count, numbers]; one number is divided evenly.

    >>> spread(4, 1)[:, 0].tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    if numbers == 1:
        return ((np.arange(count) + 0.5) / count)[:, None]
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (numbers + 1))
    steps = root ** -np.arange(1.0, numbers + 1)
    return (0.5 + np.arange(1, count + 1)[:, None] * steps) % 1.0


def ranges_of(over: Ranges) -> dict[str, Range]:
    """The range of each number; a pair of positive ends is a range on a logarithmic axis."""
    if not isinstance(over, Mapping) or not over:
        raise RefusedType(
            f"`over` must name at least one number and its range, as "
            f'over={{"eta": (1e-4, 10.0)}}, got {over!r:.80}.'
        )
    return {name: _range(name, given) for name, given in over.items()}


def _range(name: str, given: object) -> Range:
    if isinstance(given, Range):
        return given
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise RefusedType(
            f"the range of `{name}` must be a pair (low, high), got {given!r:.80}; "
            "`olx.tune.uniform` and `olx.tune.loguniform` also make one."
        )
    low, high = given
    return _checked(low, high, None, f"the range of `{name}`: ")


def _checked(low: float, high: float, logarithmic: bool | None, where: str = "") -> Range:
    real = lambda end: isinstance(end, int | float | np.number) and not isinstance(end, bool)
    if not (real(low) and real(high) and math.isfinite(low) and math.isfinite(high)):
        seen = f"{check.quote(low)} and {check.quote(high)}"
        raise RefusedType(f"{where}the ends must be finite numbers, got {seen}.")
    if low >= high:
        raise RefusedValue(f"{where}the lower end must come first and be less, got {low}, {high}.")
    if logarithmic and low <= 0:
        raise RefusedValue(
            f"the ends must be positive, got {low}; `olx.tune.uniform` takes any ends."
        )
    return Range(float(low), float(high), low > 0 if logarithmic is None else logarithmic)


def _remedy(make: object) -> str:
    if not isinstance(make, Learner):
        return ""
    return "give a function of the numbers to choose, as `lambda eta: olx.linear(olx.ogd(eta))`"


def _check_names(given: Problem) -> None:
    try:
        signature = inspect.signature(given.make)
    except ValueError:
        return  # functions written in C may have no signature
    names = ", ".join(f"`{name}`" for name in given.ranges)
    try:
        signature.bind(**given.ranges)
    except TypeError as error:
        takes = ", ".join(f"`{name}`" for name in signature.parameters) or "nothing"
        raise RefusedType(
            f"`over` names {names}, and `make` takes {takes}: {error}; name numbers "
            "that `make` takes, and bind the others, as `lambda eta: adagrad(eta, delta=1.0)`."
        ) from None
    for name in given.ranges:
        if name in signature.parameters and signature.parameters[name].annotation is int:
            _refuse(name, f"`make` takes an integer as `{name}`")


def _check_continuous(given: Problem) -> None:
    """Refuse numbers that are structure, such as the size of an array: they cannot be traced."""
    middle = {name: float(one.at(0.5)) for name, one in given.ranges.items()}
    for name in given.ranges:
        traced = lambda value, name=name: given.make(**{**middle, name: value})
        try:
            made = jax.eval_shape(traced, jax.ShapeDtypeStruct((), given.dtype))
        except TypeError as error:
            _refuse(name, str(error).split("\n")[0].rstrip("."))
        except ValueError:
            continue  # the numbers in the middle are refused; `_check_ends` says why
        check.instance("make(...)", made, Learner)


def _refuse(name: str, why: str) -> None:
    raise RefusedType(
        f"`{name}` is not a continuous number of this learner: {why}. Fix it in "
        "`make`, and tune the other numbers once for each value that it may have."
    )


def _check_ends(given: Problem) -> None:
    """Refuse ranges with an end that the learner does not take."""
    places = np.full((1 + 2 * len(given.ranges), len(given.ranges)), 0.5)
    for i in range(len(given.ranges)):
        places[1 + 2 * i, i], places[2 + 2 * i, i] = 0.0, 1.0
    for numbers in given.rows(given.numbers(places)):
        try:
            with own_name():
                given.make(**numbers)
        except ValueError as error:
            seen = ", ".join(f"{name} = {value:g}" for name, value in numbers.items())
            raise RefusedValue(
                f"the learner refuses {seen}, which the ranges allow: {error} "
                "Move the ends of that range inside what the learner takes."
            ) from error


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
