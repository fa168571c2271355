"""Frozen dataclasses that are pytrees: fields are leaves, `static()` fields are structure.

`NOT_KEPT` stands in a run for losses that were not kept.
"""

import copyreg
import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import PyTree

from olx._words import words

Class = TypeVar("Class", bound=type)


def static(**options: Any) -> Any:
    """Mark a field as structure: it is compared by equality and never traced."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def pytree(cls: Class) -> Class:
    """Make `cls` a frozen dataclass and a pytree."""
    own = "__repr__" in vars(cls)
    cls = dataclasses.dataclass(frozen=True, repr=False)(cls)
    if not own:
        cls.__repr__ = words  # pyright: ignore[reportAttributeAccessIssue]
    fields = dataclasses.fields(cls)
    fixed = [field.name for field in fields if field.metadata.get("static", False)]
    free = [field.name for field in fields if field.name not in fixed]
    return jax.tree_util.register_dataclass(cls, data_fields=free, meta_fields=fixed)


def as_tree(function: Callable) -> Any:
    """A function as a pytree: unchanged if it is one already, else wrapped in a `Partial`."""
    return Partial(function) if jax.tree_util.all_leaves([function]) else function


def _by_name(function: Any) -> str:
    """A function with a derivative of its own is copied and pickled by its name, as others are."""
    return function.__qualname__


copyreg.pickle(jax.custom_jvp, _by_name)  # pyright: ignore[reportArgumentType]


def like(value: PyTree, tree: PyTree) -> PyTree:
    """A single number as a tree with the structure of `tree`; any other value unchanged."""
    single = jax.tree_util.all_leaves([value]) and jnp.ndim(value) == 0
    return jax.tree.map(lambda _: value, tree) if single else value


class NotKept:
    """What a run with a rule holds in place of its losses; whoever uses it is told what to do."""

    def _refuse(self, *given: object) -> NoReturn:
        raise TypeError(_NOT_KEPT)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_NOT_KEPT, name=name)

    def __repr__(self) -> str:
        return "not kept"

    __array__ = __jax_array__ = __getitem__ = __len__ = __iter__ = __float__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __radd__ = __rsub__ = __rmul__ = _refuse


_NOT_KEPT = (
    "run.losses: the losses of single rounds were not kept, since `keep` was given; `run.total` is "
    "their sum, `run.curve.total` the cumulative loss at the rounds `run.curve.at`. Play without "
    "`keep` to have them all."
)
NOT_KEPT = NotKept()
jax.tree_util.register_pytree_node(NotKept, lambda _: ((), None), lambda *_: NOT_KEPT)
