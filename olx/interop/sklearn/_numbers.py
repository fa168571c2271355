"""The numbers of a record, such as `eta` of `olx.linear(olx.ogd(eta))`, by name.

A record of a public factory knows the call that made it (`olx._words`). A number is set by the same
call with another argument, so the factory checks it, and all that follows from it is new. A factory
is known by its name; it counts only if it makes the record again from its present arguments.

The name of a number is that of the argument, such as `eta`. If several arguments have that name, it
is the path to one of them, such as `inner__eta`.
"""

import ast
import collections
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from olx import _words
from olx._call import Call
from olx._refusal import RefusedValue
from olx.interop._estimator import is_key

Path = tuple[str, ...]
_NUMBERS = (int, float, np.number, np.ndarray, jax.Array)


def numbers(record: Any) -> dict[str, Any]:
    """The numbers of a record by name.

    >>> import olx
    >>> numbers(olx.linear(olx.ogd(0.1)))
    {'eta': 0.1}
    """
    found = dict(_numbers(record, ()))
    return {name: found[path] for name, path in _names(found).items()}


def remade(record: Any, changes: Mapping[str, Any]) -> Any:
    """The record that the same calls make with other numbers.

    >>> import olx
    >>> remade(olx.linear(olx.ogd(0.1)), {"eta": 0.5})
    linear(ogd(eta=0.5))
    """
    paths = [path for path, _ in _numbers(record, ())]
    names = {"__".join(path): path for path in paths} | _names(paths)
    for name, value in changes.items():
        if name not in names:
            known = ", ".join(names) or "none"
            raise RefusedValue(f"there is no number {name!r} in {record!r}; there are: {known}.")
        record = _with(record, names[name], value)
    return record


def _names(paths: Any) -> dict[str, Path]:
    count = collections.Counter(path[-1] for path in paths)
    return {path[-1] if count[path[-1]] == 1 else "__".join(path): path for path in paths}


def _numbers(record: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    for name, value in _arguments(record).items():
        if isinstance(getattr(value, "name", None), Call):
            yield from _numbers(value, (*path, name))
        elif isinstance(value, _NUMBERS) and not isinstance(value, bool) and not _is_key(value):
            yield (*path, name), value


def _arguments(record: Any) -> dict[str, Any]:
    """The arguments of the call that made a record, as far as they are known."""
    found = {}
    for name, source, default, _ in record.name.arguments or ():
        try:
            if not isinstance(source, str):
                found[name] = _words.value_at(record, source)
            elif source != default:
                found[name] = ast.literal_eval(source)
        except (ValueError, SyntaxError, KeyError, TypeError):  # `_with` then finds no factory
            continue
    return found


def _with(record: Any, path: Path, value: Any) -> Any:
    given, (name, *rest) = _arguments(record), path
    new = _with(given[name], tuple(rest), value) if rest else value
    return _factory(record, given)(**{**given, name: new})


def _factory(record: Any, given: Mapping[str, Any]) -> Callable[..., Any]:
    """The public factory that makes this record of these arguments."""
    olx = sys.modules["olx"]
    for home in [olx, *filter(inspect.ismodule, vars(olx).values())]:
        factory = getattr(home, str(record.name), None)
        try:
            if inspect.isfunction(factory) and _same(factory(**given), record):
                return factory
        except (TypeError, ValueError):  # another factory of this name
            continue
    raise RefusedValue(
        f"no public factory makes {record!r} again, so its numbers cannot be set one by one; "
        "set the learner or the loss as a whole."
    )


def _same(one: PyTree, other: PyTree) -> bool:
    (leaves, structure), (others, wanted) = jax.tree.flatten(one), jax.tree.flatten(other)
    if structure != wanted:
        return False
    return all(np.array_equal(_plain(a), _plain(b)) for a, b in zip(leaves, others, strict=True))


def _is_key(value: Any) -> bool:
    return isinstance(value, jax.Array) and is_key(value)


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf
