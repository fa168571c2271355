r"""Prove that a number which is not finite shows in the loss or in the action of its round.

A look at every number of a stream is one more pass over memory; for wide rows it costs as much as
learning. It is not needed where a bad number cannot hide. In $s = \langle w, x \rangle$ every entry
of $x$ is multiplied and added, so $s$ is NaN or infinite if an entry of $x$ is, whatever $w$ is.

So one round is traced, and every operation is asked whether it passes on what is not finite: sums,
products and roots do, a maximum, a comparison or an exponential may hide it. If the loss or the
action must show it, the engine looks at these (one number per round) and at the rounds of a chunk
only if one of them is not finite. It looks at all other numbers before it plays them.
"""

import functools
from collections.abc import Set
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx._cache import cached
from olx.engine import tuning
from olx.engine.chunks import Plan
from olx.engine.game import Game
from olx.engine.view import is_cast
from olx.streams.sparse_rows import SparseRows

_HIDDEN, _SOME, _ALL = range(3)  # how many entries of an array are not finite, at least
_SAME = {
    "abs", "broadcast_in_dim", "copy", "copy_p", "expand_dims", "log", "log1p", "neg",
    "reduce_precision", "reduce_sum", "reshape", "rev", "sqrt", "square", "squeeze", "transpose",
}  # fmt: skip
_EITHER = {"add", "add_any", "mul", "sub"}
_PART = {"dynamic_slice", "reduce_max", "reduce_min", "slice"}  # of the entries; see only `_ALL`
_INNER = {"checkpoint", "closed_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit"}


class Visible(NamedTuple):
    """Which leaves of the rounds need no look before they are played, and where they show."""

    leaves: frozenset[int] = frozenset()  # their numbers
    fields: tuple[str, ...] = ()  # of the `Feedback` of a round, whose numbers must be watched


def candidates(plan: Plan, told: Set[str]) -> tuple[int, ...]:
    """The leaves of the rounds for which a proof is worth its time.

    They have many numbers per round, and they are many in all. They are floats: one that does not
    fit into the dtype that it is cast to is then infinite.

    told: the parts of the rounds that are checked before they are played in any case.
    """
    parts = [
        (name, leaf)
        for name, part in plan.first._asdict().items()
        for leaf in jax.tree.leaves(part)
    ]
    return tuple(
        number
        for number, (name, leaf) in enumerate(parts)
        if name not in told and _is_wide(leaf, plan.dtypes[number])
    )


def visible_leaves(game: Game, plan: Plan, leaves: tuple[int, ...]) -> Visible:
    """Which of these leaves show in a round of a game, for dense rows.

    leaves: the result of `candidates`.
    """
    if not leaves:
        return Visible()
    rows, form = jax.tree.flatten(plan.first)
    held, structure = jax.tree.flatten(game.state)
    numbers, batched = game.numbers.leaves, game.batched
    kinds = (
        tuple(_kind(leaf, batched) for leaf in numbers.own),
        tuple(_kind(leaf, 0) for leaf in numbers.other),
        tuple(_kind(leaf, batched) for leaf in held),
        tuple(_row_kind(leaf, plan.dtypes[i]) for i, leaf in enumerate(rows)),
    )
    double = jax.config.read("jax_enable_x64")
    both = numbers.structure.learner, numbers.structure.loss
    return _shown((*both, structure, form), kinds, leaves, double)


def _is_wide(leaf: Any, dtype: np.dtype) -> bool:
    numbers = leaf.values if isinstance(leaf, SparseRows) else leaf
    floats = jnp.issubdtype(dtype, jnp.floating)
    many = len(leaf.shape) > 1 and numbers.size >= tuning.FINITE_NUMBERS
    warns = isinstance(leaf, SparseRows) and is_cast(dtype)  # the host casts them
    return many and floats and not warns


def _row_kind(leaf: Any, dtype: np.dtype) -> tuple:
    return leaf.shape[1:], jax.dtypes.canonicalize_dtype(dtype), False


def _kind(leaf: Any, lead: int) -> tuple:
    if isinstance(leaf, int | float):
        return (), type(leaf), True
    return leaf.shape[lead:], leaf.dtype, getattr(leaf, "weak_type", False)


@cached
def _shown(structures: tuple, kinds: tuple, wide: tuple[int, ...], _: bool) -> Visible:
    parts = [list(map(_struct, own)) for own in kinds]
    try:
        closed = jax.make_jaxpr(functools.partial(_round, structures))(*parts)
    except Exception:  # the program of the round fails in the same way, and its error is better
        return Visible()
    count, seen = sum(map(len, parts)), {}
    for number in wide:
        levels = [_HIDDEN] * count
        levels[count - len(parts[-1]) + number] = _SOME
        *actions, value = _levels(closed.jaxpr, levels)
        seen[number] = {"value": value > _HIDDEN, "action": max(actions, default=0) > _HIDDEN}
    return _least(seen)


def _struct(kind: tuple) -> jax.ShapeDtypeStruct:
    shape, dtype, weak = kind
    dtype = jnp.result_type(dtype) if isinstance(dtype, type) else dtype  # of a Python number
    return jax.ShapeDtypeStruct(shape, dtype, weak_type=weak)


def _least(seen: dict[int, dict[str, bool]]) -> Visible:
    """The fewest fields that show all leaves which any field shows; the loss is one number."""
    leaves = frozenset(number for number, by in seen.items() if any(by.values()))
    for fields in (("value",), ("action",), ("value", "action")):
        if leaves and all(any(seen[number][name] for name in fields) for number in leaves):
            return Visible(leaves, fields)
    return Visible()


def _round(structures: tuple, *parts: list) -> tuple[PyTree, Array]:
    """The action and the loss of a round."""
    learner, loss, state, here = map(jax.tree.unflatten, structures, parts)
    action = learner.predict(state, here.context)
    return action, jnp.asarray(loss(action, here.outcome))


def _levels(jaxpr: Any, given: list[int]) -> list[int]:
    """How many entries of each result are not finite, if so many of the arguments are."""
    known = dict(zip(jaxpr.invars, given, strict=True))
    level = lambda atom: _HIDDEN if hasattr(atom, "val") else known.get(atom, _HIDDEN)
    for equation in jaxpr.eqns:
        found = _passed(equation, [level(atom) for atom in equation.invars])
        for variable, one in zip(equation.outvars, found, strict=True):
            floats = jnp.issubdtype(variable.aval.dtype, jnp.floating)
            single = one and variable.aval.size == 1
            known[variable] = _HIDDEN if not floats else _ALL if single else one
    return [level(atom) for atom in jaxpr.outvars]


def _passed(equation: Any, given: list[int]) -> list[int]:
    """What an operation passes on; nothing is assumed of operations that are not named here."""
    name, params = equation.primitive.name, equation.params
    hidden = [_HIDDEN] * len(equation.outvars)
    if not any(given) or any(variable.aval.size == 0 for variable in equation.outvars):
        return hidden
    if name in _INNER:
        inner = params.get("jaxpr", params.get("call_jaxpr"))
        inner = getattr(inner, "jaxpr", inner)
        return hidden if inner is None else _levels(inner, given)
    if name in _SAME or name == "convert_element_type":  # `_levels` drops what is not a float
        return given[:1]
    if name in _EITHER:
        return [max(given)]
    if name in _PART:
        return [_ALL if given[0] == _ALL else _HIDDEN]
    if name == "div":
        return given[:1]
    if name == "integer_pow":
        return given if params["y"] > 0 else hidden
    if name in ("max", "min"):
        return [_ALL if min(given) == _ALL else _HIDDEN]
    if name == "select_n":
        return [_ALL if min(given[1:]) == _ALL else _HIDDEN]
    if name == "concatenate":
        return [min(_SOME, max(given))]
    if name == "dot_general":
        return [_product(equation, given)]
    return hidden


def _product(equation: Any, given: list[int]) -> int:
    """A bad entry of a vector spoils all products with it; one of a matrix spoils some."""
    contracted, _ = equation.params["dimension_numbers"]
    found = [_HIDDEN]
    for atom, level, own in zip(equation.invars, given, contracted, strict=True):
        whole = level == _ALL or (level == _SOME and atom.aval.ndim == len(own))
        found.append(_ALL if whole else level)
    return max(found)
