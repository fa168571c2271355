"""Caches that forget: they hold the results of what was asked for last."""

import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

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

    def drop(self, key: object) -> None:
        with self._lock:
            self._entries.pop(key, None)

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
