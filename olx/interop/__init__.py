"""Learners in the terms of other libraries: optax, flax, equinox, scikit-learn and river."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from olx.interop import optax as optax

if _TYPE_CHECKING:
    from olx.interop import equinox as equinox
    from olx.interop import flax as flax
    from olx.interop import river as river
    from olx.interop import sklearn as sklearn

_OPTIONAL = (
    "equinox",
    "flax",
    "river",
    "sklearn",
)  # loaded when first used: these libraries may be missing


def __getattr__(name: str) -> _Any:
    if name in _OPTIONAL:
        return _import_module(f"olx.interop.{name}")
    raise AttributeError(f"module 'olx.interop' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_OPTIONAL})
