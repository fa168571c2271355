r"""Numbers of a learner that a network gives per token, by the names of the arguments.

The label of a learner (`olx._call`) knows the path from each argument of its factory to the leaf
that holds it. So `eta` of `olx.ogd(eta=0.1)` and `forget` of `olx.second_order.ridge(1.0, 0.9)` are
found under these names, also inside a wrapper. Learners with a default label use the names of the
fields of their hparams.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx._call import Call
from olx._refusal import RefusedType
from olx._words import call_of, value_at
from olx.core import Learner

Numbers = dict[str, Array]


def with_numbers(learner: Learner, numbers: Numbers | None) -> Learner:
    """The learner with these numbers in place of its own; each has the shape of its leaf."""
    if not numbers:
        return learner
    leaves, structure = jax.tree.flatten(learner)
    places = _places(learner)
    for name, value in numbers.items():
        leaves[places[name][0]] = value
    return jax.tree.unflatten(structure, leaves)


def check_numbers(
    learner: Learner, numbers: Numbers | None, lead: tuple[int, ...], dtype: PyTree
) -> Numbers:
    """The numbers as arrays of this dtype; refuses names and shapes that the learner has not.

    lead: the axes before those of the leaf: the number of tokens, or none for one token.
    """
    if not numbers:
        return {}
    if not isinstance(numbers, dict):
        raise RefusedType(
            f"`numbers` must be a dictionary of arrays by name, got a {type(numbers).__name__}."
        )
    places, checked = _places(learner), {}
    for name, value in numbers.items():
        found = places.get(name, [])
        if len(found) != 1:
            few = "has no number" if not found else f"has {len(found)} numbers"
            legal = sorted(own for own, leaves in places.items() if len(leaves) == 1)
            raise RefusedType(
                f"{learner!r} {few} `{name}`; `numbers` may hold {', '.join(legal) or 'none'}."
            )
        shape = (*lead, *np.shape(jax.tree.leaves(learner)[found[0]]))
        if np.shape(value) != shape:
            raise RefusedType(
                f"numbers[{name!r}] has shape {np.shape(value)}; it must have {shape}, "
                "one number per token, heads and batches by `jax.vmap`."
            )
        checked[name] = jnp.asarray(value, dtype)
    return checked


def _places(learner: Learner) -> dict[str, list[int]]:
    """By the name of an argument, the leaves of the learner that hold a number of that name."""
    paths, _ = jax.tree_util.tree_flatten_with_path(learner)
    leaves = {tuple(map(_key, path)): number for number, (path, _) in enumerate(paths)}
    places: dict[str, list[int]] = {}
    for name, path in _arguments(learner, ()):
        if path in leaves and leaves[path] not in places.setdefault(name, []):
            places[name].append(leaves[path])
    return {name: found for name, found in places.items() if found}


def _arguments(record: PyTree, before: tuple) -> Iterator[tuple[str, tuple]]:
    """The arguments of the call that made a record, and of those that made its parts."""
    call = getattr(record, "name", None)
    if isinstance(call, Call):
        unnamed = call.arguments is None and isinstance(record, Learner)
        yield from _of_call(record, call_of("learner", record) if unnamed else call, before)


def _of_call(record: PyTree, call: Call, before: tuple) -> Iterator[tuple[str, tuple]]:
    for argument in call.arguments or ():
        source = argument.source
        if isinstance(source, Call):
            yield from _of_call(record, source, before)
        elif isinstance(source, tuple):
            yield argument.name, (*before, *source)
            yield from _arguments(value_at(record, source), (*before, *source))


def _key(key: PyTree) -> str | int:
    """The name of an attribute, the index of an entry, or the key of a dictionary."""
    return next(getattr(key, name) for name in ("name", "idx", "key") if hasattr(key, name))
