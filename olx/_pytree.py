"""Frozen dataclasses that are pytrees: fields are leaves, `static()` fields are structure."""

import copyreg
import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

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
