"""Caches that forget: results and compiled programs of what was asked for last.

JAX keeps the programs of a compiled function as long as the function lives, one for each structure
of its arguments, and a structure holds functions: a new loss is a new structure. A function of a
module lives as long as the process, so the programs of every loss that was ever played would stay.
Here a function is compiled anew for each structure, and the last `MOST` of these are kept; JAX
drops the programs of the others with them.
"""

import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import jax

MOST = 64  # entries of a cache; a program takes a few MB

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A dictionary of the `MOST` entries that were asked for last."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Any, Value] = OrderedDict()
        self._lock = threading.RLock()  # what is dropped may run code of its own
        _ALL.add(self)

    def get(self, key: object) -> Value | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: object, value: Value) -> Value:
        """Keep `value`; returns the value that is kept, which may be of another thread."""
        with self._lock:
            value = self._entries.setdefault(key, value)
            while len(self._entries) > MOST:
                self._entries.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


_ALL: "weakref.WeakSet[Recent[Any]]" = weakref.WeakSet()


def clear() -> None:
    """Forget all results and programs, as after a change of a constant that programs hold."""
    for cache in list(_ALL):
        cache.clear()


def cached(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function, which remembers its last results by its arguments."""
    results: Recent[tuple[Value]] = Recent()

    @functools.wraps(function)
    def remembered(*given: object, **named: object) -> Value:
        key = given, *named.items()
        found = results.get(key)
        return (results.put(key, (function(*given, **named),)) if found is None else found)[0]

    return remembered


def compiled(function: Callable, static: tuple[int, ...] = ()) -> Callable:
    """`jax.jit` of a function at module level, with the programs of its last structures only.

    static: the positions of the arguments that are part of the program; all are given by position.
    """
    programs: Recent[Callable] = Recent()

    @functools.wraps(function)
    def play(*given: object) -> Any:
        fixed = [given[i] for i in static]
        free = [one for i, one in enumerate(given) if i not in static] if static else given
        leaves, structure = jax.tree.flatten(free)
        key = structure, *fixed
        program = programs.get(key)
        if program is None:
            program = programs.put(key, _program(function, static, fixed, structure))
        return program(leaves)

    return play


def _program(
    function: Callable, static: tuple[int, ...], fixed: list, structure: object
) -> Callable:
    """The function of the leaves of its arguments; JAX keeps its programs as long as it lives."""

    @functools.wraps(function)
    def of_leaves(leaves: list) -> Any:
        given = list(jax.tree.unflatten(structure, leaves))
        for i, one in zip(static, fixed, strict=True):  # in rising order
            given.insert(i, one)
        return function(*given)

    return jax.jit(of_leaves)


def call_once(function: Callable, *given: object) -> Any:
    """The result of the function, from a program that is not kept."""
    leaves, structure = jax.tree.flatten(given)
    return _program(function, (), [], structure)(leaves)


def result_shapes(function: Callable, *given: object) -> Any:
    """`jax.eval_shape`, for arguments that hold functions: JAX would keep their structure."""
    leaves, structure = jax.tree.flatten(given)
    return jax.eval_shape(_program(function, (), [], structure), leaves)
