"""Who refuses: an error gets the name of the public function that the user called.

The place that finds a mistake raises `RefusedType` or `RefusedValue` with the message alone. Each
`public` function that the error leaves writes its name on it, from the inside out, so the outermost
one stands: `omd` of `olx.omd(-1)`, and `hedge` of `olx.hedge(-1)`, which calls `omd`.

A function of the user may call functions of olx too. `own_name` stands around the call of it, so an
error of `olx.batch(make, ...)` names the `hedge` in `make`, and not `batch`.
"""

import functools
import inspect
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, ParamSpec, TypeVar, cast

from olx._call import Call
from olx._words import label

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Refusal(Exception):
    """An error that says what is wrong and what to do, after the name of who says it.

    name: the public function that refuses; empty until the error leaves one.
    keeps: whether the name stays what it is.
    """

    name = ""
    keeps = False

    def __str__(self) -> str:
        said = str(self.args[0]) if self.args else ""
        return f"{self.name}: {said}" if self.name else said

    def rename(self, name: str) -> None:
        if not self.keeps:
            self.name = name


class RefusedType(Refusal, TypeError):
    """Something of the wrong kind."""


class RefusedValue(Refusal, ValueError):
    """Something of the right kind with a wrong value."""


class RefusedFile(Refusal, OSError):
    """A file or a folder that cannot be used."""


class RefusedLock(Refusal, BlockingIOError):
    """A folder that another process uses."""


class RefusedImport(Refusal, ImportError):
    """A package, or a part of the system, that is not there."""


class own_name(ContextDecorator):
    """A block, or a function, whose errors keep the name that they have, or get and keep `name`."""

    def __init__(self, name: str = ""):
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Refusal):
            error.rename(self.name or error.name)
            error.keeps = bool(error.name)


def in_words(error: BaseException | None) -> str:
    """The kind of an error, and what it says; a refusal is of the kind that Python has."""
    kind = next(kind for kind in type(error).__mro__ if not issubclass(kind, Refusal))
    return f"{kind.__name__}: {error}"


def public(function: Callable[P, R]) -> Callable[P, R]:
    """A function that users call: its name is on errors that leave it and on what it makes."""
    return public_as(function.__qualname__)(function)


def public_as(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`public` under another name, such as that of the class of a method."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.isgeneratorfunction(function):
            return cast(Callable[P, R], _named_generator(name, function))

        @functools.wraps(function)
        def named(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                made = function(*args, **kwargs)
            except Refusal as error:
                error.rename(name)
                raise
            if isinstance(getattr(made, "name", None), Call):  # a record
                return label(made, name, function, args, kwargs)
            return made

        return named

    return decorate


def public_methods(kind: type[T]) -> type[T]:
    """A class whose methods are public under the name of the class."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(kind, name, public_as(kind.__name__)(method))
    return kind


def _named_generator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator raises while it is read, when the function has returned long ago."""

    @functools.wraps(function)
    def named(*args: object, **kwargs: object) -> Any:
        try:
            return (yield from function(*args, **kwargs))
        except Refusal as error:
            error.rename(name)
            raise

    return named
