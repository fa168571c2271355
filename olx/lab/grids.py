"""Grids: the values of a hyperparameter as a list, a range, or a distribution.

[0.1, 1.0]                       these values; also tables and names
{ linspace = [0, 1, 5] }         evenly spaced, ends included
{ geomspace = [1e-3, 10, 32] }   evenly spaced on a logarithmic axis
{ uniform = [0, 1] }             drawn `random.samples` times, together with the other
{ loguniform = [1e-3, 10] }      laws of the same learner
"""

import itertools
import math
from typing import Any

import numpy as np

from olx.lab.config import ConfigError, nearest
from olx.lab.experiment import Player

SPACES = {"linspace": np.linspace, "geomspace": np.geomspace}
LAWS = ("uniform", "loguniform")


def points(where: str, player: Player) -> list[dict[str, Any]]:
    """All configurations: one value per axis of the grid; the last axis varies fastest."""
    fixed, drawn = {}, {}
    for axis, given in player.grid.items():
        place = f"{where}.grid.{axis}"
        _refuse_beside(where, player, axis)
        if isinstance(given, list):
            if not given:
                raise ConfigError(f"{place}: the list is empty.")
            if any(isinstance(value, float) and math.isnan(value) for value in given):
                raise ConfigError(f"{place}: the list holds nan; give numbers.")
            fixed[axis] = given
            continue
        kind, numbers = _law(place, given)
        if kind in LAWS:
            drawn[axis] = (kind, *_numbers(place, kind, numbers, 2))
        else:
            low, high, count = _numbers(place, kind, numbers, 3)
            if count < 1 or count % 1:
                raise ConfigError(f"{place}: give [low, high, count], got {numbers}.")
            fixed[axis] = SPACES[kind](low, high, int(count)).tolist()
    columns = [[{axis: value} for value in values] for axis, values in fixed.items()]
    if drawn:
        columns.append(_samples(where, player, drawn))
    elif player.random is not None:
        raise ConfigError(f"{where}.random: no axis of the grid is uniform or loguniform.")
    return [
        {k: v for part in parts for k, v in part.items()} for parts in itertools.product(*columns)
    ]


def _samples(where: str, player: Player, drawn: dict[str, tuple]) -> list[dict[str, Any]]:
    if player.random is None:
        axis = next(iter(drawn))
        raise ConfigError(
            f"{where}.grid.{axis} is drawn; give random = {{ samples = 64, seed = 0 }}."
        )
    if player.random.samples < 1:
        raise ConfigError(f"{where}.random.samples: give at least 1, got {player.random.samples}.")
    if player.random.seed < 0:
        raise ConfigError(f"{where}.random.seed: give at least 0, got {player.random.seed}.")
    source = np.random.default_rng(player.random.seed)
    columns = {}
    for axis, (kind, low, high) in drawn.items():
        shares = source.uniform(size=player.random.samples)
        if kind == "loguniform":
            columns[axis] = (low * (high / low) ** shares).tolist()
        else:
            columns[axis] = (low + (high - low) * shares).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _refuse_beside(where: str, player: Player, axis: str) -> None:
    """Refuse an argument that has a value and a grid."""
    here: Any = player.arguments
    for step in axis.split("."):
        here = here.get(step) if isinstance(here, dict) else None
    if here is not None:
        raise ConfigError(
            f"{where}.{axis} is {here!r}, and {where}.grid.{axis} gives values to try; leave out "
            "one of the two."
        )


def _law(place: str, given: Any) -> tuple[str, Any]:
    if not isinstance(given, dict) or len(given) != 1:
        raise ConfigError(
            f"{place}: give a list, or one of linspace, geomspace, uniform, loguniform, as in "
            f"{{ geomspace = [1e-3, 10, 32] }}; got {given!r}."
        )
    [(kind, numbers)] = given.items()
    if kind not in (*SPACES, *LAWS):
        raise ConfigError(f"{place}: there is no {kind}; {nearest(kind, (*SPACES, *LAWS))}")
    return kind, numbers


def _numbers(place: str, kind: str, numbers: Any, count: int) -> tuple[float, ...]:
    form = "[low, high, count]" if count == 3 else "[low, high]"
    legal = isinstance(numbers, list) and len(numbers) == count
    if not legal or any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
        raise ConfigError(f"{place}: {kind} takes {form}, got {numbers!r}.")
    if not all(math.isfinite(n) for n in numbers):
        raise ConfigError(f"{place}: {kind} takes finite numbers, got {numbers!r}.")
    if kind in LAWS and numbers[0] > numbers[1]:
        raise ConfigError(f"{place}: {kind} takes the lower end first, got {numbers!r}.")
    if kind in ("geomspace", "loguniform") and min(numbers[:2]) <= 0:
        raise ConfigError(f"{place}: {kind} takes positive ends, got {numbers!r}.")
    return tuple(numbers)
