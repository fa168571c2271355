"""The lab: data sets, experiments described by configs, results on disk, reports."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from olx.lab.compare import compare as compare

if _TYPE_CHECKING:
    from olx.lab import config as config
    from olx.lab import data as data
    from olx.lab import learn as learn
    from olx.lab import models as models
    from olx.lab import report as report
    from olx.lab import run as run
    from olx.lab import store as store

_LAZY_MODULES = (
    "config",
    "data",
    "learn",
    "models",
    "report",
    "run",
    "store",
)  # need the extra `lab`


def __getattr__(name: str) -> object:
    if name in _LAZY_MODULES:
        return _import_module(f"olx.lab.{name}")
    raise AttributeError(f"module 'olx.lab' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_MODULES})
