"""Compute what depends on the state alone only after the state has changed.

A learner such as the p-norm Perceptron or Winnow changes its state in few rounds, but maps it to a
decision by powers or exponentials. So a round is cut into two parts: what depends on the state and
on the numbers of the learner alone, and the rest. The result of the first part is held between the
rounds, and computed again only if a bit of the state has changed: inside one kernel a condition is
a branch. Both parts are the operations of the round itself, so the numbers stay the same.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, Bool, PyTree

_COSTLY = {
    "acosh", "asinh", "atanh", "cosh", "erf", "exp", "exp2", "expm1", "lgamma", "log", "log1p",
    "logistic", "pow", "sinh", "tanh", "while",
}  # fmt: skip
_MANY = 8  # results of such an operation; fewer of them cost less than to hold them


class Parts(NamedTuple):
    """A function of (known, other) in two parts; `known` is a learner and its state."""

    held: Callable[[PyTree], list[Array]]  # known -> what is held
    rest: Callable[[list[Array], PyTree, PyTree], Any]  # (held, known, other) -> the result
    read: tuple[int, ...]  # the leaves of `known` that the first part reads


def parted(function: Callable, known: PyTree, other: PyTree) -> Parts | None:
    """The parts of a function; None if nothing costly depends on `known` alone."""
    shapes = jax.tree.map(_shape, (known, other))
    closed, out = jax.make_jaxpr(lambda a, b: function(*a, *b), return_shape=True)(*shapes)
    jaxpr, structure = closed.jaxpr, jax.tree.structure(out)
    count = len(jax.tree.leaves(known))
    own = {*jaxpr.invars[:count], *jaxpr.constvars}
    worth: set[Any] = set()
    for equation in jaxpr.eqns:
        if equation.effects or not all(_is_number(atom) or atom in own for atom in equation.invars):
            continue
        own.update(equation.outvars)
        if _is_costly(equation) or any(atom in worth for atom in _variables(equation.invars)):
            worth.update(equation.outvars)
    if not worth:
        return None
    late = [one for one in jaxpr.eqns if not worth.issuperset(one.outvars)]
    used = [*(atom for one in late for atom in one.invars), *jaxpr.outvars]
    border = list(dict.fromkeys(atom for atom in _variables(used) if atom in worth))
    early = _needed([one for one in jaxpr.eqns if own.issuperset(one.outvars)], border)
    reads = {atom for one in early for atom in _variables(one.invars)}
    read = tuple(i for i, atom in enumerate(jaxpr.invars[:count]) if atom in reads)

    first = _part(closed, early, jaxpr.invars[:count], border)
    second = _part(closed, late, [*border, *jaxpr.invars], jaxpr.outvars)

    def held(known: PyTree) -> list[Array]:
        return list(first(*jax.tree.leaves(known)))

    def rest(held: list[Array], known: PyTree, other: PyTree) -> Any:
        return jax.tree.unflatten(structure, second(*held, *jax.tree.leaves((known, other))))

    return Parts(held, rest, read)


def renewed(parts: Parts, held: list[Array], old: PyTree, new: PyTree) -> list[Array]:
    """What is held of `new`, if `held` is what is held of `old`."""
    pairs = list(zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True))
    moved = jnp.stack([_differs(*pairs[i]) for i in parts.read if pairs[i][0] is not pairs[i][1]])

    return lax.cond(jnp.any(moved), lambda _: parts.held(new), lambda held: held, held)


def _differs(old: Array, new: Array) -> Bool[Array, ""]:
    """Whether any bit of two arrays differs."""
    if jnp.issubdtype(old.dtype, jnp.floating):
        kind = np.dtype(f"i{old.dtype.itemsize}")
        old, new = (lax.bitcast_convert_type(leaf, kind) for leaf in (old, new))
    return jnp.any(old != new)


def _needed(equations: list, wanted: list) -> list:
    """The operations that some variables depend on, in their order."""
    needed, found = set(wanted), []
    for one in reversed(equations):
        if needed.intersection(one.outvars):
            needed.update(_variables(one.invars))
            found.append(one)
    return found[::-1]


def _part(whole: Any, equations: list, given: list, wanted: list) -> Callable[..., list]:
    """The function of some variables that these operations of a program compute."""
    names = whole.jaxpr.debug_info.with_unknown_names()
    part = whole.jaxpr.replace(
        eqns=equations, invars=given, outvars=wanted, effects=set(), debug_info=names
    )
    return jaxpr_as_fun(whole.replace(jaxpr=part))


def _is_costly(equation: Any) -> bool:
    """Whether an operation, or one inside it, is costly."""
    many = max(variable.aval.size for variable in equation.outvars) >= _MANY
    if equation.primitive.name in _COSTLY and (many or equation.primitive.name == "while"):
        return True
    inner = [getattr(value, "jaxpr", value) for value in equation.params.values()]
    return any(_is_costly(one) for part in inner if hasattr(part, "eqns") for one in part.eqns)


def _is_number(atom: Any) -> bool:
    return hasattr(atom, "val")


def _variables(atoms: Any) -> list:
    return [atom for atom in atoms if not _is_number(atom)]


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    leaf = jnp.asarray(leaf)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
