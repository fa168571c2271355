"""A job: a learner with all its configurations, on a data set in the order of a seed.

Configurations that differ only in numbers are a part of the job; a part is one compiled program.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import PyTree

import olx
from olx.convex.sets import ConvexSet
from olx.core import Batch, Learner
from olx.engine.certify import asked_of
from olx.lab.config import ConfigError, nearest
from olx.lab.data import Dataset
from olx.lab.experiment import Data, Player, Tree
from olx.lab.fingerprint import Fingerprint, job_name
from olx.lab.names import Lift, is_count, make
from olx.meta import delayed
from olx.structured import chain
from olx.theorem import Theorem

Point = Tree  # a configuration: one value per axis of the grid
Asked = list[str | Theorem] | None  # theorems by name, or made from a table
SPACES = {"linspace": np.linspace, "geomspace": np.geomspace}
LAWS = ("uniform", "loguniform")
_GRIDS = {word: word for word in (*SPACES, *LAWS)}


class Part(NamedTuple):
    """Configurations that differ only in numbers, so that they share one program."""

    make: Callable[..., Learner]  # makes a learner from numbers, by axis
    index: list[int]  # the indices of these configurations
    numbers: dict[str, list[float]]

    def first(self) -> Learner:
        """The learner at the first value of each axis."""
        return self.make(**{axis: values[0] for axis, values in self.numbers.items()})

    def batch(self, index: np.ndarray | None = None) -> Batch:
        """The configurations `index` of the part as one batch; all of them if None."""
        index = np.arange(len(self.index)) if index is None else index
        pick = lambda values: jnp.asarray(np.asarray(values)[index], float)
        numbers = {axis: pick(values) for axis, values in self.numbers.items()}
        build = lambda configuration, **values: self.make(**values)
        return olx.batch(build, configuration=jnp.asarray(index), **numbers)

    def learner(self, i: int) -> Learner:
        """Configuration `i` of the part, with its numbers as arrays."""
        return self.batch(np.array([i]))[0]


class Job(NamedTuple):
    """A learner with all its configurations; then also a data set and a seed."""

    where: str  # its key in the config
    learner: str  # its label
    first: float | str | None  # the first decision
    points: list[Point]
    parts: list[Part]
    theorems: Asked  # to check; all of the learner if None
    domain: ConvexSet | None  # of the best comparator; that of the experiment if None
    data: Data = Data(name="")
    seed: int = 0
    fingerprint: Fingerprint = {}  # noqa: RUF012 (never changed)

    @property
    def name(self) -> str:
        return job_name(self.fingerprint)

    @property
    def dataset(self) -> str:
        return self.data.label or self.data.name

    def on(self, data: Data, seed: int, fingerprint: Fingerprint) -> "Job":
        """The job on a data set, with other random keys for every seed but 0."""
        parts = self.parts
        if seed != 0:
            build = lambda part: functools.partial(_with_seed, part.make, seed)
            parts = [part._replace(make=build(part)) for part in parts]
        return self._replace(data=data, seed=seed, fingerprint=fingerprint, parts=parts)

    def find(self, configuration: int) -> tuple[Part, int]:
        """The part of a configuration, and its place there."""
        part = next(part for part in self.parts if configuration in part.index)
        return part, part.index.index(configuration)


def learner_job(
    i: int,
    player: Player,
    lift: Lift | None = olx.linear,
    classes: int = 2,
    features: int = 1,
    *,
    delay: int = 0,
) -> Job:
    """The job of learner number `i`, on no data yet; bad arguments are refused here.

    lift: applied to a point learner for `linear = true`; None refuses that key.
    delay: of the feedback, in rounds.
    classes, features: those of the data, for arguments such as k = "classes"; see `fill_in`.
    """
    where = f"learners.{i}"
    thing = player.name if player.thing is None else player.thing
    table = {"name": thing, "linear": player.linear}
    table |= fill_in(player.arguments, classes, features)
    every = grid_points(where, player) if player.points is None else player.points
    counts = {axis for axis in every[0] if is_count(where, table, axis)}
    groups: dict[str, tuple[Tree, list[int]]] = {}
    for index, point in enumerate(every):  # each table, name or count is a separate program
        shape = {k: v for k, v in point.items() if k in counts or not _is_number(v)}
        groups.setdefault(repr(sorted(shape.items())), (shape, []))[1].append(index)
    parts = []
    for shape, index in groups.values():
        axes = [axis for axis in every[0] if axis not in shape]
        numbers = {axis: [float(every[k][axis]) for k in index] for axis in axes}
        part = Part(functools.partial(_make, where, table, shape, lift, delay), index, numbers)
        _try(where, part)
        parts.append(part)
    label = player.label or player.name
    theorems = _theorems(where, label, player.theorems, parts)
    asked, domain = player.compare_in, None
    if asked is not None:
        domain = make(f"{where}.compare_in", asked, ConvexSet)
    return Job(where, label, player.first, every, parts, theorems, domain)


def fill_in(arguments: Mapping[str, object], classes: int, features: int) -> Tree:
    """The arguments, with "classes" and the structure "data" as the data have them."""
    known = {"classes": classes, "data": chain(max(classes, 1), features)}

    def fill(value: object) -> Any:
        if isinstance(value, Mapping):
            return {key: fill(each) for key, each in value.items()}
        if isinstance(value, list):
            return [fill(each) for each in value]
        return known[value] if isinstance(value, str) and value in known else value

    return fill(arguments)


def first_decision(job: Job, data: Dataset, dtype: DTypeLike) -> PyTree:
    """The first decision: from the config, or the usual one of the task."""
    first, shapes = data.task.decision.first, data.task.decision.starts(data)
    first = first if job.first is None else job.first
    number = 1 / data.width if first == "uniform" else first
    full = lambda like: np.full(like.shape, number, dtype)
    starts = [jax.tree.map(full, shape) for shape in shapes]
    if len(starts) == 1:
        return starts[0]
    wanted = data.task.decision.shape(data)
    seen = [_decision_shape(job.parts[0].first(), data, start) for start in starts]
    fits = [start for start, shape in zip(starts, seen, strict=True) if shape == wanted]
    legal = [start for start, shape in zip(starts, seen, strict=True) if shape is not None]
    return (fits or legal or starts)[0]


def grid_points(where: str, player: Player) -> list[Point]:
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


def _samples(where: str, player: Player, drawn: dict[str, tuple]) -> list[Point]:
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


def _law(place: str, given: object) -> tuple[str, object]:
    if not isinstance(given, dict) or len(given) != 1:
        raise ConfigError(
            f"{place}: give a list, or one of linspace, geomspace, uniform, loguniform, as in "
            f"{{ geomspace = [1e-3, 10, 32] }}; got {given!r}."
        )
    [(kind, numbers)] = given.items()
    if kind not in _GRIDS:
        known = {**_GRIDS, "logspace": "geomspace"}  # the name that NumPy gives to another range
        hint = nearest(kind, known, f"it takes {', '.join(_GRIDS)}.")
        raise ConfigError(f"{place}: there is no {kind}; {hint}")
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


def _theorems(where: str, label: str, asked: list[str | Tree] | None, parts: list[Part]) -> Asked:
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decision_shape(learner: Learner, data: Dataset, start: np.ndarray) -> tuple[int, ...] | None:
    """The shape of the decision of a learner that starts there; None if it cannot decide."""
    try:
        action = jax.eval_shape(
            lambda x: learner.predict(learner.init(start), x), data.row(start.dtype)
        )
    except (TypeError, ValueError):
        return None
    return getattr(action, "shape", None)


def _make(
    where: str, table: Tree, shape: Tree, lift: Lift | None, delay: int, /, **numbers: object
) -> Learner:
    filled = _copy(table)
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
    if delay == 0:
        return make(where, filled, Learner, lift=lift)
    linear = lift is not None and filled.pop("linear", False)
    late = delayed(make(where, filled, Learner, lift=lift), delay)
    return lift(late) if linear and lift else late


def _copy(table: Mapping[str, object]) -> Tree:
    """The table, and the tables in it, so that they can be filled in."""
    copied = lambda value: _copy(value) if isinstance(value, Mapping) else value
    return {key: copied(value) for key, value in table.items()}


def _with_seed(make: Callable[..., Learner], seed: int, /, **numbers: object) -> Learner:
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
