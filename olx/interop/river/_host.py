r"""A round as a function of NumPy: for one short row it takes less time than to call the device.

To call a compiled program takes some 20 microseconds, whatever it does. A round of a linear learner
is a handful of operations, and NumPy does one of them in half a microsecond, Python one on plain
numbers in a twentieth of that. So the round is traced once, and written down as a function: one
line per operation, plain numbers where JAX has scalars, NumPy where it has arrays.

Operations that are not named here are refused, and the caller stays with the compiled program. So
it does if a result leaves the floats, as by a division by 0: Python raises where JAX goes on.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from olx.interop.river._lines import Value, Writer, line

_INNER = {"checkpoint", "closed_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit"}
_VIEWS = ".reshape(", ".transpose(", "broadcast_to("


class Round(NamedTuple):
    """A round as functions of NumPy; `held` is the leaves of a state, then what `prepare` gave."""

    learn: Callable  # (*held, outcome, row) -> the leaves of the next state
    score: Callable  # (*held, row) -> a list of one number
    prepare: Callable | None  # leaves of a state -> what both others need of them; None if nothing


def written(learn: Callable, score: Callable, leaves: list, outcome: Any, row: Any) -> Round:
    """The functions of a round, written with NumPy.

    learn: (*leaves, outcome, row) -> leaves.
    score: (*leaves, row) -> one number.
    leaves, outcome, row: shapes and dtypes.
    """
    writer = Writer()
    state = [Value(f"s{i}", leaf.shape, not leaf.shape) for i, leaf in enumerate(leaves)]
    y, x = Value("y", (), True), Value("x", row.shape, False)
    after = _traced(writer, jax.make_jaxpr(learn)(*leaves, outcome, row), [*state, y, x])
    found = _traced(writer, jax.make_jaxpr(score)(*leaves, row), [*state, x])
    early = _early(writer.lines)
    late = [text for text in writer.lines if _name(text) not in early]
    needed = set(_used(late, after) + _used(late, found)) & early | early & {*after, *found}
    shared = sorted(needed)
    given = ", ".join(value.name for value in state)
    both = ", ".join([given, *shared])
    make = lambda arguments, lines, results: _function(writer, arguments, lines, results)
    return Round(
        make(f"{both}, y, x", late, after),
        make(f"{both}, x", late, found),
        make(given, writer.lines, shared) if shared else None,
    )


def _traced(writer: Writer, closed: Any, given: list[Value]) -> list[str]:
    """The names of the results."""
    found = _write(writer, closed.jaxpr, list(map(writer.constant, closed.consts)), given)
    return [_own(writer, writer.whole(value)) for value in found]


def _function(writer: Writer, arguments: str, lines: list[str], results: list[str]) -> Callable:
    used = set(_used(lines, results))
    kept = [text for text in lines if _name(text) in used]
    body = "\n    ".join([*kept, f"return [{', '.join(results)}]"])
    exec(f"def played({arguments}):\n    {body}", writer.held)
    return writer.held["played"]


def _name(text: str) -> str:
    return text.partition(" = ")[0]


def _early(lines: list[str]) -> set[str]:
    """The variables that depend on the state alone."""
    late = {"x", "y"}
    for text in lines:
        name, _, right = text.partition(" = ")
        if late & set(re.findall(r"\b[vxy]\d*\b", right)):
            late.add(name)
    return {_name(text) for text in lines} - late


def _used(lines: list[str], results: list[str]) -> list[str]:
    """The variables that the results need, if the lines are run."""
    needed = set(re.findall(r"\bv\d+\b", " ".join(results)))
    for text in reversed(lines):
        name, _, right = text.partition(" = ")
        if name in needed:
            needed |= set(re.findall(r"\bv\d+\b", right))
    return list(needed)


def _own(writer: Writer, name: str) -> str:
    """A result that shares no memory with the row."""
    views = {_name(text) for text in writer.lines if any(word in text for word in _VIEWS)}
    return writer.add(f"np.array({name})", (), False).name if name in {"x", *views} else name


def _write(writer: Writer, jaxpr: Any, consts: list[Value], given: list[Value]) -> list[Value]:
    known = dict(zip(jaxpr.constvars, consts, strict=True))
    known |= dict(zip(jaxpr.invars, given, strict=True))
    needed = _needed(jaxpr)
    value = lambda atom: writer.constant(atom.val) if hasattr(atom, "val") else known[atom]
    for equation in jaxpr.eqns:
        if not any(var in needed for var in equation.outvars):
            continue
        given, inner = list(map(value, equation.invars)), _inner(equation)
        if inner is None:
            known[equation.outvars[0]] = line(writer, equation, given)
            continue
        held = [writer.constant(one) for one in getattr(inner, "consts", ())]
        found = _write(writer, getattr(inner, "jaxpr", inner), held, given)
        known |= dict(zip(equation.outvars, found, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _needed(jaxpr: Any) -> set:
    """The variables that the results depend on."""
    needed = {atom for atom in jaxpr.outvars if not hasattr(atom, "val")}
    for equation in reversed(jaxpr.eqns):
        if any(var in needed for var in equation.outvars):
            needed |= {atom for atom in equation.invars if not hasattr(atom, "val")}
    return needed


def _inner(equation: Any) -> Any:
    """The program that an operation calls; None for other operations."""
    if equation.primitive.name not in _INNER:
        return None
    return equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
