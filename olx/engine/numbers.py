"""The numbers of a learner and a loss, apart from their structure.

To take a learner apart into its numbers and to put it together costs more than a short run. So it
is done once per learner: the engine remembers the last ones by their identity. What the functions
of a user read besides their arguments, such as a global constant, is a part of the structure: if it
changes, all programs are made again.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import PyTree

from olx._cache import Recent
from olx._pytree import as_tree, pytree, static
from olx._readings import foreign_parts, visible_readings
from olx._refusal import RefusedType
from olx.core import Learner, Loss, Scalar
from olx.engine.device import devices_of
from olx.needs import Need
from olx.streams.checks import needs_of

TreeStructure = Any  # jax.tree_util.PyTreeDef, which is a variable for a type checker


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """The structures of a learner and a loss, in one object: equal trees take long to compare."""

    learner: TreeStructure
    loss: TreeStructure
    fixed: bool  # whether no part can be changed, as an entry of a dictionary can
    foreign: tuple[object, ...]  # its functions that are not of a library
    readings: tuple[object, ...]  # what these read, when this was made

    @property
    def is_current(self) -> bool:
        """Whether the functions still read the same."""
        return not self.foreign or visible_readings(self.foreign) == self.readings


@pytree
class Leaves:
    """A learner and a loss, taken apart into their numbers and their structure."""

    own: list[Scalar]  # the leaves of the learner
    other: list[Scalar]  # the leaves of the loss
    structure: Structure = static()

    @property
    def numbers(self) -> tuple[list[Scalar], list[Scalar]]:
        """The numbers without the structure: JAX would remember a structure among arguments."""
        return self.own, self.other

    def parts(self) -> tuple[Learner, Loss]:
        """The learner and the loss with these numbers."""
        learner = jax.tree.unflatten(self.structure.learner, self.own)
        return learner, jax.tree.unflatten(self.structure.loss, self.other)


class Numbers(NamedTuple):
    """What does not change between the runs of a learner, or of stacked learners."""

    learner: Learner  # kept, so that its `id` is not used again
    loss: Loss
    leaves: Leaves  # of stacked learners padded, so that all devices get the same number
    needs: list[tuple[Need, PyTree]]  # the result of `needs_of`
    parts: frozenset[str]  # of the rounds that these needs are about
    configurations: int | None  # None for a single learner
    kinds: tuple[Any, ...]  # the shapes and dtypes of the leaves, and the types of Python numbers
    arrays: dict[bool, Any]  # the leaves as arrays of JAX, by whether there are 64 bits


_SEEN: Recent[Numbers] = Recent()
_STRUCTURES: Recent[Structure] = Recent()
Check = Callable[[Learner, Loss], None]


def numbers_of(learner: Learner, loss: Loss, check: Check, stacked: bool = False) -> Numbers:
    """The numbers of a learner and a loss, remembered by identity.

    check: refuses what the driver does not play; a function at module level.
    stacked: whether `learner` is a stack of learners.
    """
    key = check, stacked, id(learner), id(loss)
    found = _SEEN.get(key)
    if found is not None:
        if found.leaves.structure.is_current:
            return found
        _SEEN.drop(key)
    check(learner, loss)
    found = new_numbers(learner, loss, stacked)
    leaves = jax.tree.leaves((learner, as_tree(loss)))
    plain = all(isinstance(leaf, int | float | jax.Array) for leaf in leaves)
    if plain and found.leaves.structure.fixed:
        _SEEN.put(key, found)  # a NumPy array or a dictionary may change until the next run
    return found


def has_numbers(learner: Learner, loss: Loss, check: Check) -> bool:
    """Whether the numbers of a single learner and a loss are remembered."""
    return _SEEN.get((check, False, id(learner), id(loss))) is not None


def new_numbers(learner: Learner, loss: Loss, stacked: bool) -> Numbers:
    """The same for a learner that is not asked for again."""
    own, first = jax.tree.flatten(learner)
    other, second = jax.tree.flatten(as_tree(loss))
    refuse_tracers(own + other)
    count = np.shape(own[0])[0] if stacked else None
    own = list(map(_argument, own)) if count is None else _padded_leaves(own, count)
    foreign = foreign_parts(first) + foreign_parts(second)
    key = first, second, visible_readings(foreign)
    structure = _STRUCTURES.get(key)
    if structure is None:
        fixed = _is_fixed(first) and _is_fixed(second)
        structure = _STRUCTURES.put(key, Structure(first, second, fixed, foreign, key[2]))
    needs = needs_of(learner, loss)
    leaves = Leaves(own, list(map(_argument, other)), structure)
    parts, kinds = (
        frozenset(need.where for need, _ in needs),
        tuple(map(_kind, [*leaves.own, *leaves.other])),
    )
    return Numbers(learner, loss, leaves, needs, parts, count, kinds, {})


def _is_fixed(structure: TreeStructure) -> bool:
    """Whether all nodes of a tree are tuples, frozen dataclasses or partial functions."""
    kind, children = (structure.node_data() or (None,))[0], structure.children()
    if kind is None:  # a leaf
        return True
    if issubclass(kind, Partial):  # nobody changes its dictionary of named arguments
        return all(_is_fixed(part) for child in children for part in child.children())
    parameters = getattr(kind, "__dataclass_params__", None)
    fixed = issubclass(kind, tuple | type(None)) or (parameters is not None and parameters.frozen)
    return fixed and all(map(_is_fixed, children))


def refuse_tracers(
    leaves: list[object], does: str = "compiles for itself", remedy: str = "`olx.rollout` can"
) -> None:
    """Refuse traced numbers, in the name of a driver that `does` what needs real ones."""
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise RefusedType(f"{does}, so it cannot be called inside jit, vmap or grad; {remedy}.")


def _argument(leaf: Scalar | np.ndarray) -> Scalar:
    """An array, or a Python number as it is: a compiled call converts numbers faster."""
    return leaf if isinstance(leaf, int | float | jax.Array) else jnp.asarray(leaf)


def _kind(leaf: Scalar) -> object:
    return type(leaf) if isinstance(leaf, int | float) else (leaf.shape, leaf.dtype)


def _padded_leaves(leaves: list[Scalar], count: int) -> list[Scalar]:
    short = -count % devices_of(count).all
    return [repeat_last(jnp.asarray(leaf), short) for leaf in leaves]


def arrays_of(numbers: Numbers) -> tuple[list[Scalar], list[Scalar]]:
    """The numbers as arrays, from the second time on that they are asked for.

    A compiled call takes an array faster, but to make one takes longer than the call.
    """
    wide, known = jax.config.read("jax_enable_x64"), numbers.arrays
    found = known.get(wide)
    if found is None:
        again, found = wide in known, numbers.leaves.numbers
        known[wide] = jax.tree.map(jnp.asarray, found) if again else None
    return found


def repeat_last(leaf: jax.Array, short: int) -> jax.Array:
    """Repeat the last configuration `short` times, so that all devices get the same number."""
    return jnp.concatenate([leaf, jnp.repeat(leaf[-1:], short, axis=0)]) if short else leaf
