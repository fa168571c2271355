"""Traced functions as functions of NumPy, which need no compiler.

To compile a round takes a tenth of a second, and to call a compiled program some 20 microseconds,
whatever it does. A round of a linear learner is a handful of operations, and NumPy does one of them
in half a microsecond, Python one on plain numbers in a twentieth of that. So a function is traced
once, and written down: one line per operation, plain numbers where JAX has scalars, NumPy where it
has arrays. The first states of learners and short games are computed by such functions.

The lines are those of `numpy_operations`; what has none is refused by `Unknown`. A scalar is a
Python float, which has 64 bits; in single precision the scalars among the results are rounded.
Python raises where JAX goes on, as in a division by 0: see `LEFT`.
"""

import contextvars
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from olx.engine.numpy_operations import (
    VARIABLE,
    Unknown,
    Value,
    Writer,
    choice,
    line,
    parts,
    used_variables,
    variable_of,
)

Kind = tuple[tuple[int, ...], Any, bool]  # a shape, a dtype, and whether the dtype is weak

LEFT = (ZeroDivisionError, OverflowError, ValueError)  # raised where a number leaves the floats

_INNER = {"checkpoint", "closed_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit"}
_VIEWS = ".reshape(", ".transpose(", "broadcast_to(", "[", " if "  # what may share memory

_QUIET = contextvars.copy_context()
_QUIET.run(np.seterr, all="ignore")  # NumPy keeps this setting per context


def quietly(function: Callable, *given: Any) -> Any:
    """The result of a written function, without warnings of numbers that are not finite.

    `np.errstate` takes as long as three operations.
    """
    return _QUIET.copy().run(function, *given)


def plain_number(leaf: Any) -> Any:
    """An argument of a written function: an array, or a Python number if it has no dimension."""
    if type(leaf) in _PYTHON:
        return leaf
    leaf = np.asarray(leaf)
    return leaf if leaf.ndim else leaf.item()


def as_leaf(found: Any, dtype: np.dtype) -> Any:
    """A result of a written function as a leaf of a tree, with its dtype."""
    return found if isinstance(found, np.ndarray) else dtype.type(found)


def kind_of(leaf: Any) -> Kind:
    """The shape, the dtype and whether that is weak, of an array; the type of a Python number."""
    if type(leaf) in _PYTHON:
        return (), type(leaf), True
    return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)


_PYTHON = (float, int, bool)  # not their subclasses, as np.float64


def _struct(shape: tuple[int, ...], dtype: Any, weak: bool) -> jax.ShapeDtypeStruct:
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        raise Unknown("the key of random numbers")
    return jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype), weak_type=weak)


class Functions(NamedTuple):
    """Functions of NumPy, which share what depends on their first arguments alone."""

    prepare: Callable[..., list]  # (first arguments) -> what the calls need of them
    calls: list[Callable[..., list]]  # each of (all arguments, the result of `prepare`)


def numpy_functions(
    functions: Sequence[Callable], kinds: Sequence[Kind], lead: int, rounds: bool = True
) -> Functions:
    """Functions of numbers and arrays of these kinds, written with NumPy.

    kinds: results of `kind_of`.
    functions: each takes all arguments, and gives a list of arrays; a result of no dimension is
        then one number.
    lead: how many arguments change seldom. What depends on them alone is computed by `prepare`.
    rounds: whether results of no dimension are rounded to single precision, if they have it.
    """
    writer = Writer()
    leaves = [_struct(*kind) for kind in kinds]
    given = [
        Value(f"a{i}", leaf.shape, not leaf.shape, leaf.dtype) for i, leaf in enumerate(leaves)
    ]
    programs = [jax.make_jaxpr(one)(*leaves) for one in functions]
    results = [_write_program(writer, one, given, rounds) for one in programs]
    names = [value.name for value in given]
    early = _early_variables(writer.lines, set(names[lead:])) if lead else set()
    late = [text for text in writer.lines if variable_of(text) not in early]
    found = {name for result in results for name in result}
    used = {name for result in results for name in used_variables(late, result)}
    shared = sorted(early & (used | found))
    both = ", ".join([*names, *shared])
    prepare = writer.function(", ".join(names[:lead]), writer.lines, shared)
    return Functions(prepare, [writer.function(both, late, result) for result in results])


def _write_program(
    writer: Writer, closed: ClosedJaxpr, given: list[Value], rounds: bool
) -> list[str]:
    """The names of the results."""
    if closed.effects:
        raise Unknown("an effect, such as a print")
    found = _write(writer, closed.jaxpr, list(map(writer.constant, closed.consts)), given)
    return [_result(writer, value, rounds) for value in found]


def _result(writer: Writer, value: Value, rounds: bool) -> str:
    """A result that shares no memory with an argument, in its own precision."""
    name = writer.whole(value)
    if value.shape == ():
        narrow = rounds and value.dtype == np.float32
        return writer.add(f"float(np.float32({name}))", value, True).name if narrow else name
    return _own(writer, name)


def _own(writer: Writer, name: str) -> str:
    """An array that shares no memory with another one."""
    views = {variable_of(text) for text in writer.lines if any(word in text for word in _VIEWS)}
    mine = name[0] == "v" and name not in views
    return name if mine else writer.add(f"{name}.copy()", _NOTHING, False).name


_NOTHING = jax.ShapeDtypeStruct((), np.float64)


def _write(writer: Writer, jaxpr: Jaxpr, consts: list[Value], given: list[Value]) -> list[Value]:
    known = dict(zip(jaxpr.constvars, consts, strict=True))
    known |= dict(zip(jaxpr.invars, given, strict=True))
    needed = _needed_variables(jaxpr)
    value = lambda atom: writer.constant(atom.val) if hasattr(atom, "val") else known[atom]
    for equation in jaxpr.eqns:
        if not any(var in needed for var in equation.outvars):
            continue
        given, inner = list(map(value, equation.invars)), _inner(equation)
        if equation.primitive.name == "cond":
            found = _either(writer, equation, given)
        elif inner is not None:
            found = _called(writer, inner, given)
        elif equation.primitive.name in ("split", "unstack") or len(equation.outvars) > 1:
            found = parts(writer, equation, given[0])
        else:
            found = [line(writer, equation, given)]
        known |= dict(zip(equation.outvars, found, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _called(writer: Writer, inner: Any, given: list[Value]) -> list[Value]:
    consts = [writer.constant(one) for one in getattr(inner, "consts", ())]
    return _write(writer, getattr(inner, "jaxpr", inner), consts, given)


def _either(writer: Writer, equation: JaxprEqn, given: list[Value]) -> list[Value]:
    """The results of a condition; both branches are computed."""
    which, *given = given
    no, yes, *others = (_called(writer, one, given) for one in equation.params["branches"])
    if others:
        raise Unknown("a choice of more than two")
    return [choice(writer, which, *pair, pair[0]) for pair in zip(no, yes, strict=True)]


def _inner(equation: JaxprEqn) -> Jaxpr | ClosedJaxpr | None:
    """The program that an operation calls; None for other operations."""
    if equation.primitive.name not in _INNER:
        return None
    return equation.params.get("jaxpr", equation.params.get("call_jaxpr"))


def _needed_variables(jaxpr: Jaxpr) -> set:
    """The variables that the results depend on."""
    needed = {atom for atom in jaxpr.outvars if not hasattr(atom, "val")}
    for equation in reversed(jaxpr.eqns):
        if any(var in needed for var in equation.outvars):
            needed |= {atom for atom in equation.invars if not hasattr(atom, "val")}
    return needed


def _early_variables(lines: list[str], late: set[str]) -> set[str]:
    """The variables that depend on none of the late arguments."""
    late = set(late)
    for text in lines:
        name, _, right = text.partition(" = ")
        if late & set(VARIABLE.findall(right)):
            late.add(name)
    return {variable_of(text) for text in lines} - late
