"""What is tuned: a learner as a function of its numbers, and the game that judges them."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedType, RefusedValue, own_name
from olx.core import Batch, Learner, Loss, Rounds
from olx.engine.batch import batch
from olx.streams.checks import check_params, check_rounds
from olx.tune.ranges import Range, ranges_of


class Problem(NamedTuple):
    make: Callable[..., Learner]
    loss: Loss
    rounds: Rounds
    params: PyTree
    ranges: dict[str, Range]
    length: int  # the number of rounds
    dtype: Any  # of the numbers, which is that of `params`

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


def problem(
    make: Callable[..., Learner], loss: Loss, rounds: Rounds, params: PyTree, over: Any
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


def _remedy(make: Any) -> str:
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
