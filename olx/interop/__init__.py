"""Learners in the terms of other libraries: optimizers of optax, estimators of scikit-learn."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from olx.interop import optax as optax

if _TYPE_CHECKING:
    from olx.interop import sklearn as sklearn


def __getattr__(name: str) -> _Any:
    if name == "sklearn":  # loaded when it is first used: scikit-learn is optional
        return _import_module("olx.interop.sklearn")
    raise AttributeError(f"module 'olx.interop' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), "sklearn"})
