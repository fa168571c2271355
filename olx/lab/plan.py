"""The configurations of a learner, grouped into parts that share one compiled program."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx.convex.sets import ConvexSet
from olx.core import Learner
from olx.engine.certify import asked_of
from olx.lab.config import ConfigError, nearest
from olx.lab.data import Dataset
from olx.lab.decisions import chain_of
from olx.lab.experiment import Player
from olx.lab.factories import Lift, make
from olx.lab.grids import points
from olx.lab.names import is_count
from olx.theorem import Theorem

Asked = list[str | Theorem] | None  # theorems by name, or made from a table


class Part(NamedTuple):
    """Configurations that differ only in numbers, so that they share one program."""

    make: Callable[..., Learner]  # makes a learner from numbers, by axis
    index: list[int]  # the indices of these configurations
    numbers: dict[str, list[float]]

    def first(self) -> Learner:
        """The learner at the first value of each axis."""
        return self.make(**{axis: values[0] for axis, values in self.numbers.items()})


class Plan(NamedTuple):
    where: str
    label: str
    first: float | str | None
    points: list[dict[str, Any]]  # the configurations: one value per axis
    parts: list[Part]
    theorems: Asked  # to check; all of the learner if None
    domain: ConvexSet | None  # of the best comparator; that of the experiment if None

    def seeded(self, seed: int) -> "Plan":
        """The same plan with other random keys for every seed; seed 0 has those of the config."""
        if seed == 0:
            return self
        build = lambda part: functools.partial(_seeded, part.make, seed)
        return self._replace(parts=[part._replace(make=build(part)) for part in self.parts])


def plan(
    i: int, player: Player, lift: Lift | None = olx.linear, classes: int = 2, features: int = 1
) -> Plan:
    """The configurations of learner number `i`; bad arguments are refused here.

    lift: applied to a point learner for `linear = true`; None refuses that key.
    classes, features: those of the data, for arguments such as k = "classes"; see `filled`.
    """
    where = f"learners.{i}"
    thing = player.name if player.thing is None else player.thing
    table = {"name": thing, "linear": player.linear}
    table |= filled(player.arguments, classes, features)
    every = points(where, player) if player.points is None else player.points
    counts = {axis for axis in every[0] if is_count(where, table, axis)}
    groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
    for index, point in enumerate(every):  # each table, name or count is a separate program
        shape = {k: v for k, v in point.items() if k in counts or not _is_number(v)}
        groups.setdefault(repr(sorted(shape.items())), (shape, []))[1].append(index)
    parts = []
    for shape, index in groups.values():
        axes = [axis for axis in every[0] if axis not in shape]
        numbers = {axis: [float(every[k][axis]) for k in index] for axis in axes}
        part = Part(functools.partial(_make, where, table, shape, lift), index, numbers)
        _try(where, part)
        parts.append(part)
    label = player.label or player.name
    theorems = _theorems(where, label, player.theorems, parts)
    asked, domain = player.compare_in, None
    if asked is not None:
        domain = make(f"{where}.compare_in", asked, ConvexSet)
    return Plan(where, label, player.first, every, parts, theorems, domain)


def filled(arguments: Mapping[str, Any], classes: int, features: int) -> dict[str, Any]:
    """The arguments, with "classes" and the structure "data" as the data have them."""
    known = {"classes": classes, "data": chain_of(max(classes, 1), features)}

    def told(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: told(each) for key, each in value.items()}
        return known[value] if isinstance(value, str) and value in known else value

    return told(arguments)


def _theorems(where: str, label: str, asked: list[Any] | None, parts: list[Part]) -> Asked:
    """The theorems to check: names of theorems of the learner, and theorems with numbers."""
    if asked is None:
        return None
    learners = [part.first() for part in parts]
    known = list(dict.fromkeys(each.name for one in learners for each in one.theorems))
    found: list[str | Theorem] = []
    for k, given in enumerate(asked):
        at = f"{where}.theorems.{k}"
        if isinstance(given, Mapping):
            found.append(make(at, given, Theorem))
        elif given in known:
            found.append(given)
        else:
            hint = nearest(given, known, f"it has {', '.join(known)}." if known else "it has none.")
            raise ConfigError(f"{at}: there is no theorem {given} about {label}; {hint}")
    try:
        for learner in learners:
            asked_of(learner, tuple(one for one in found if isinstance(one, Theorem)))
    except TypeError as error:
        raise ConfigError(f"{where}.theorems: {error}") from error
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def first_decision(plan: Plan, data: Dataset, dtype: Any) -> Any:
    """The first decision: from the config, or the usual one of the task."""
    first, shapes = data.task.decision.first, data.task.decision.starts(data)
    first = first if plan.first is None else plan.first
    number = 1 / data.width if first == "uniform" else first
    full = lambda like: np.full(like.shape, number, dtype)
    starts = [jax.tree.map(full, shape) for shape in shapes]
    if len(starts) == 1:
        return starts[0]
    wanted = data.task.decision.shape(data)
    seen = [_decided(plan.parts[0].first(), data, start) for start in starts]
    fits = [start for start, shape in zip(starts, seen, strict=True) if shape == wanted]
    legal = [start for start, shape in zip(starts, seen, strict=True) if shape is not None]
    return (fits or legal or starts)[0]


def _decided(learner: Learner, data: Dataset, start: np.ndarray) -> tuple[int, ...] | None:
    """The shape of the decision of a learner that starts there; None if it cannot decide."""
    try:
        action = jax.eval_shape(
            lambda x: learner.predict(learner.init(start), x), data.row(start.dtype)
        )
    except (TypeError, ValueError):
        return None
    return getattr(action, "shape", None)


def _make(
    where: str, table: dict[str, Any], shape: dict[str, Any], lift: Lift | None, /, **numbers: Any
) -> Learner:
    filled = _copied(table)
    for axis, value in {**shape, **numbers}.items():
        *path, last = axis.split(".")
        here: Any = filled
        for step in path:
            inner = here.get(step)
            if isinstance(inner, str) or callable(inner):  # a name or a factory alone
                inner = here[step] = {"name": inner}
            if not isinstance(inner, dict):
                raise ConfigError(f"{where}.grid.{axis}: the learner has no table {step}.")
            here = inner
        here[last] = value
    return make(where, filled, Learner, lift=lift)


def _copied(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table, and the tables in it, so that they can be filled in."""
    copied = lambda value: _copied(value) if isinstance(value, Mapping) else value
    return {key: copied(value) for key, value in table.items()}


def _seeded(make: Callable[..., Learner], seed: int, /, **numbers: Any) -> Learner:
    is_key = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)
    return jax.tree.map(
        lambda leaf: jax.random.fold_in(leaf, seed) if is_key(leaf) else leaf, make(**numbers)
    )


def _try(where: str, part: Part) -> None:
    """Try to make the learner at the ends of its axes, and with traced numbers as in a sweep."""
    start = {axis: values[0] for axis, values in part.numbers.items()}
    part.make(**start)
    for axis, values in part.numbers.items():
        for value in (min(values), max(values)):
            part.make(**{**start, axis: value})
    try:
        jax.eval_shape(lambda numbers: part.make(**numbers), start)
    except TypeError as error:
        said = str(error).splitlines()[0]
        raise ConfigError(f"{where}: the learner cannot be swept: {said}") from error
