"""Compare learners from Python: the same jobs, tables and report as those of a config.

This file is imported without the extra `lab`, and says what to install if it is missing.
"""

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from olx.core import Batch, Learner, Rounds
from olx.streams import Stream

if TYPE_CHECKING:
    from olx.lab.executors import Executor
    from olx.lab.store import Result

F = TypeVar("F", bound=Callable[..., Any])
PACKAGES = ("msgspec", "pyarrow", "matplotlib", "jinja2", "pooch", "sklearn")


def missing_package(error: ModuleNotFoundError) -> str | None:
    """What to install; None if the module is not of the lab."""
    name = (error.name or "").partition(".")[0]
    if name not in PACKAGES:
        return None
    return f"{name} is not installed; install the lab with pip install 'olx[lab]'."


def _explained(function: F) -> F:
    """`function`, which says what to install if a package of the lab is missing."""

    @functools.wraps(function)
    def called(*given: object, **named: object) -> object:
        try:
            return function(*given, **named)
        except ModuleNotFoundError as error:
            if (said := missing_package(error)) is None:
                raise
            raise ModuleNotFoundError(f"{function.__name__}: {said}", name=error.name) from None

    return cast(F, called)


@_explained
def compare(
    learners: Mapping[str, Any],
    data: Any,
    *,
    out: str | os.PathLike | None = None,
    progress: bool | None = None,
    executor: "Executor | str | None" = None,
    **settings: Any,
) -> "Result":
    """Play learners on data, and give the result as `olx run` does: tables, and a report.

    learners: by the name to show, each a learner; a batch; a function that makes a learner, alone
        or in a pair with the values of its arguments, as in `(make, olx.grid(eta=etas))`; or a
        name or a table as in a config, in which `name` may be a function.
    data: the name of a data set or a table, as in a config; (X, y); a frame of pandas, polars or
        pyarrow, whose last column is the label; `Rounds`, which are played in their order; or
        several of these, by the name to show. In a table, `name` may be the rows themselves, as in
        `{"name": (X, y), "scale": "standard"}`.
    out: the folder of the result; a temporary one, which goes when Python ends, if None. All is
        played again if it holds a result, for a function of Python may have changed.
    progress: whether to show a progress bar; None shows it on a terminal, and elsewhere a
        line each minute.
    executor: who plays the jobs, as for `olx.lab.run.run`; None plays them here.
    settings: the keys at the top of a config, such as `seeds=5`; see `olx help config`. The loss
        may be a function. The precision is that of JAX if not given.

    The result shows its leaderboard when it is printed. `result.report()` writes the page,
    `result.table()` is a table for a paper, `result.plot("loss")` a chart of matplotlib, and
    `result.configurations.to_pandas()` a table of all configurations.

    >>> import jax.numpy as jnp, olx, olx.lab
    >>> make = lambda eta: olx.linear(olx.ogd(eta))
    >>> mine = {"descent": (make, olx.grid(eta=[0.01, 0.1])), "adam": {"name": "optax.adam",
    ...     "learning_rate": 0.1, "linear": True}}
    >>> rounds = olx.Rounds(jnp.eye(2).repeat(5, 0), jnp.ones(10))
    >>> result = olx.lab.compare(mine, rounds, title="Two learners")
    >>> result.configurations.column("learner").to_pylist()
    ['descent', 'descent', 'adam', 'baseline: majority class']
    """
    from olx.lab.config import ConfigError, parse
    from olx.lab.run import run

    if not isinstance(learners, Mapping) or not learners:
        seen = "none" if isinstance(learners, Mapping) else f"a {type(learners).__name__}"
        raise ConfigError(
            f'compare: `learners` must be a dictionary, as in {{"mine": learner}}, got {seen}.'
        )
    settings.setdefault("precision", "float64" if jax.config.read("jax_enable_x64") else "float32")
    loss: Any = settings.pop("loss", None)
    by_name = {"loss": loss} if isinstance(loss, str | Mapping) else {}
    try:
        given = [_learner(label, thing) for label, thing in learners.items()]
        rows = [_rows(label, thing) for label, thing in _several(data).items()]
        tables = {"learners": [one.table for one in given], "data": [one.table for one in rows]}
        experiment = parse({**settings, **by_name, **tables})
        for entry, one in zip(experiment.data, rows, strict=True):
            entry.thing = one.thing
        for entry, one in zip(experiment.learners, given, strict=True):
            entry.thing, entry.points = _cast(one.thing, experiment.precision), one.points
        if not by_name:  # a function, or a `ScoreLoss`
            experiment.loss = loss  # pyright: ignore[reportAttributeAccessIssue]
        return run(experiment, _folder(out), progress, force=True, executor=executor)
    except ConfigError as error:
        raise ConfigError(f"compare: {error}") from None


class _Entry(NamedTuple):
    """What the lab gets in place of a table of a config."""

    table: dict[str, Any]
    thing: object = None
    points: list[dict[str, Any]] | None = None


def _learner(label: str, given: object) -> _Entry:
    from olx.lab.config import ConfigError
    from olx.lab.experiment import object_name

    if isinstance(given, str):
        return _Entry({"name": given, "label": label})
    if isinstance(given, Mapping):
        name = given.get("name")
        if isinstance(name, str | None):
            return _Entry({"label": label, **given})
        return _Entry({"label": label, **given, "name": object_name(name)}, name)
    if isinstance(given, Batch):
        return _Entry({"name": repr(given), "label": label}, given, _points(label, given.axes))
    if isinstance(given, tuple) and len(given) == 2 and callable(given[0]):
        make, axes = given
        if not isinstance(axes, Mapping):
            raise ConfigError(
                f"{label}: give the values of a function as a dictionary, such as "
                f"olx.grid(eta=etas), got a {type(axes).__name__}."
            )
        return _Entry({"name": object_name(make), "label": label}, make, _points(label, axes))
    if isinstance(given, Learner) or callable(given):
        return _Entry({"name": object_name(given), "label": label}, given)
    raise ConfigError(
        f"{label}: give a learner, a batch, a function, (function, olx.grid(...)), a name or a "
        f"table, got a {type(given).__name__}."
    )


def _pick(batch: Batch, **numbers: object) -> Learner:
    """The learner of a batch that was made from these numbers."""
    same = [jnp.asarray(axis) == numbers[name] for name, axis in batch.axes.items()]
    i = jnp.argmax(functools.reduce(jnp.logical_and, same))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[i], batch.learners)


def _points(label: str, axes: Mapping[str, jax.Array]) -> list[dict[str, Any]]:
    """One value per axis for each configuration; axes have one length, as those of `olx.batch`."""
    from olx.lab.config import ConfigError

    values = {name: np.asarray(axis) for name, axis in axes.items()}
    lengths = {name: len(axis) for name, axis in values.items() if axis.ndim == 1}
    for name, axis in values.items():
        if axis.ndim != 1 or axis.size == 0 or axis.dtype.kind not in "fiu":
            raise ConfigError(
                f"{label}: the values of {name} must be numbers, one per configuration, got "
                f"{axes[name]!r:.80}."
            )
    if len(set(lengths.values())) != 1:
        seen = ", ".join(f"{name}: {length}" for name, length in lengths.items()) or "none"
        raise ConfigError(
            f"{label}: axes must have one length (here {seen}); olx.grid takes their product."
        )
    columns = [axis.tolist() for axis in values.values()]
    return [dict(zip(values, row, strict=True)) for row in zip(*columns, strict=True)]


def _several(data: object) -> dict[str, Any]:
    """Data sets by the name to show; a single one has the name "data" if it has none."""
    if isinstance(data, Mapping) and "name" not in data:
        return dict(data)
    return {"": data} if isinstance(data, str | Mapping) else {"data": data}


def _rows(label: str, given: object) -> _Entry:
    table: dict[str, Any] = {"label": label} if label else {}
    if isinstance(given, str):
        return _Entry({**table, "name": given})
    thing = given
    if isinstance(given, Mapping):
        table, thing = {**table, **given}, given.get("name")
        if isinstance(thing, str | None):
            return _Entry(table)
    if isinstance(thing, Rounds | Stream):  # their order is a part of the game
        table = {"order": "file", **table}
    return _Entry({**table, "name": table.get("label", "data")}, thing)


def _cast(thing: object, precision: str) -> Any:
    """Learners with their numbers in the precision of the experiment; a batch as a factory."""
    if isinstance(thing, Batch):
        parts = _cast(thing.learners, precision), _cast(thing.axes, precision)
        return functools.partial(_pick, Batch(*parts))
    if not isinstance(thing, Learner | dict):
        return thing
    is_array = lambda leaf: isinstance(leaf, jax.Array | np.ndarray)
    is_real = lambda leaf: is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)
    return jax.tree.map(lambda leaf: np.asarray(leaf, precision) if is_real(leaf) else leaf, thing)


def _folder(out: str | os.PathLike | None) -> Path:
    if out is None:
        made = tempfile.mkdtemp(prefix="olx-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return Path(made)
    return Path(out)
