"""A round as a function of NumPy: for one short row it takes less time than to call the device.

To call a compiled program takes some 20 microseconds, whatever it does. A round of a linear learner
is a handful of operations, and NumPy does one of them in half a microsecond, Python one on plain
numbers in a twentieth of that. So the round is traced once, and written down as a function: one
line per operation, plain numbers where JAX has scalars, NumPy where it has arrays.

Operations that are not named here are refused, and the caller stays with the compiled program. So
it does if a result leaves the floats, as by a division by 0: Python raises where JAX goes on.
"""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import ShapeDtypeStruct as Shape
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn
from jax.typing import ArrayLike

_BOTH = {  # the same for numbers and arrays
    "add": "{} + {}", "add_any": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "neg": "-{}",
    "square": "{0} * {0}", "abs": "abs({})", "gt": "{} > {}", "ge": "{} >= {}", "lt": "{} < {}",
    "le": "{} <= {}", "eq": "{} == {}", "ne": "{} != {}", "div": "{} / {}",
}  # fmt: skip
_APART = {  # for numbers, and for arrays
    "max": ("({0} if {0} > {1} or {0} != {0} else {1})", "np.maximum({}, {})"),
    "min": ("({0} if {0} < {1} or {0} != {0} else {1})", "np.minimum({}, {})"),
    "select_n": ("({2} if {0} else {1})", "np.where({0}, {2}, {1})"),
    "and": ("({} and {})", "np.logical_and({}, {})"),
    "or": ("({} or {})", "np.logical_or({}, {})"),
    "not": ("(not {})", "np.logical_not({})"),
    "sign": ("math.copysign(1.0, {0}) * ({0} != 0)", "np.sign({})"),
    "pow": ("math.pow({}, {})", "np.power({}, {})"),
    "rsqrt": ("1.0 / math.sqrt({})", "1.0 / np.sqrt({})"),
    "logistic": ("1.0 / (1.0 + math.exp(-{}))", "1.0 / (1.0 + np.exp(-{}))"),
    "is_finite": ("math.isfinite({})", "np.isfinite({})"),
    **{name: (f"math.{name}({{}})", f"np.{name}({{}})") for name in ("exp", "log", "log1p")},
    **{name: (f"math.{name}({{}})", f"np.{name}({{}})") for name in ("expm1", "sqrt", "tanh")},
}
_COUNTS = {"add", "convert_element_type", "select_n", "max", "min", "broadcast_in_dim"}  # integers


class Unknown(Exception):
    """An operation that has no line here."""


class Value(NamedTuple):
    """A variable of the written function."""

    name: str
    shape: tuple[int, ...]
    plain: bool  # whether it is one number, in place of an array that holds it everywhere


class Writer:
    """The lines of functions, and the arrays that they use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}  # of the variables, by their lines
        self.numbers: dict[str, Any] = {}  # constants, as they are written
        self.scaled: dict[str, tuple[Value, Value]] = {}  # products of a number and an array
        self.held: dict[str, Any] = {"np": np, "math": math, "inf": math.inf, "nan": math.nan}

    def times(self, one: Value, two: Value, shape: tuple[int, ...]) -> Value:
        """A product; a number times a number times an array is one product of an array."""
        one, two = (two, one) if two.plain else (one, two)
        if one.name == "(1.0)":
            return Value(two.name, shape, two.plain)
        if one.plain and two.name in self.scaled:
            factor, two = self.scaled[two.name]
            one = self.add(f"{one.name} * {factor.name}", (), True)
        found = self.add(f"{one.name} * {two.name}", shape, one.plain and two.plain)
        if one.plain and not two.plain:
            self.scaled[found.name] = one, two
        return found

    def add(self, text: str, shape: tuple[int, ...], plain: bool) -> Value:
        """A new variable, or the one that has the same line."""
        if text not in self.names:
            self.names[text] = f"v{len(self.lines)}"
            self.lines.append(f"{self.names[text]} = {text}")
        return Value(self.names[text], shape, plain)

    def constant(self, value: ArrayLike) -> Value:
        value = np.asarray(value)
        if value.ndim == 0:
            self.numbers[f"({value.item()!r})"] = value.item()
            return Value(f"({value.item()!r})", (), True)
        name = f"c{len(self.held)}"
        self.held[name] = value
        return Value(name, value.shape, False)

    def whole(self, value: Value) -> str:
        """The name of an array, where one number would not do."""
        if not value.plain or value.shape == ():
            return value.name
        return self.add(f"np.full({value.shape}, {value.name})", value.shape, False).name


def line(writer: Writer, equation: Any, given: list[Value]) -> Value:
    """The result of an operation."""
    name, params, out = equation.primitive.name, equation.params, equation.outvars[0].aval
    kind: str = out.dtype.kind
    plain = all(one.plain for one in given)
    counts = plain and kind in "iu" and name in _COUNTS
    if out.dtype not in (np.float64, np.bool_) and not counts:
        raise Unknown(f"{name} of {out.dtype}")
    if name in _BOTH or name in _APART:
        form = _BOTH.get(name) or _APART[name][0 if plain else 1]
        if name == "mul":
            return writer.times(given[0], given[1], out.shape)
        if name == "add" and "(0.0)" in (given[0].name, given[1].name):
            other = given[given[0].name == "(0.0)"]
            return Value(other.name, out.shape, other.plain)
        return writer.add(form.format(*(one.name for one in given)), out.shape, plain)
    one = given[0]
    if name in ("copy", "copy_p", "stop_gradient") or (name == "integer_pow" and params["y"] == 1):
        return one
    if name in ("reduce_sum", "reduce_max", "reduce_min") and not params["axes"]:
        return one
    if name == "integer_pow" and params["y"] == 2:
        return writer.add(f"{one.name} * {one.name}", out.shape, plain)
    if name == "convert_element_type":
        if one.name in writer.numbers:
            number = writer.constant(np.asarray(writer.numbers[one.name]).astype(out.dtype))
            return Value(number.name, out.shape, True)
        cast = {"b": "bool", "f": "float"}.get(kind, "int")
        text = f"{cast}({one.name})" if plain else f"{one.name}.astype({cast})"
        return writer.add(text, out.shape, plain)
    if plain and name in ("broadcast_in_dim", "reshape", "squeeze", "transpose"):
        return Value(one.name, out.shape, True)
    return _of_arrays(writer, name, params, given, out.shape)


def _of_arrays(
    writer: Writer, name: str, params: dict[str, Any], given: list[Value], shape: tuple
) -> Value:
    """An operation that is not done entry by entry."""
    one, *_ = names = [writer.whole(value) for value in given]
    if name == "dot_general":
        (left, right), batch = params["dimension_numbers"]
        if batch != ((), ()) or len(left) > 1:
            raise Unknown("a product with a batch")
        sides = [value.shape for value in given]
        if not all(sides):
            return writer.times(given[0], given[1], shape)
        if not left:
            text = f"np.multiply.outer({names[0]}, {names[1]})"
        elif left[0] == len(sides[0]) - 1 and right[0] == max(len(sides[1]) - 2, 0):
            text = f"{names[0]}.dot({names[1]})"
        else:
            text = f"np.tensordot({names[0]}, {names[1]}, ({list(left)}, {list(right)}))"
    elif name in ("reduce_sum", "reduce_max", "reduce_min"):
        text = f"{one}.{name.removeprefix('reduce_')}({params['axes']})"
    elif name in ("reshape", "squeeze"):
        text = f"{one}.reshape({shape})"
    elif name == "transpose":
        text = f"{one}.transpose({params['permutation']})"
    elif name == "broadcast_in_dim":
        placed = [1] * len(shape)
        for axis, size in zip(params["broadcast_dimensions"], given[0].shape, strict=True):
            placed[axis] = size
        text = f"np.broadcast_to({one}.reshape({placed}), {shape})"
    else:
        raise Unknown(name)
    return writer.add(f"float({text})" if shape == () else text, shape, shape == ())


_INNER = {"checkpoint", "closed_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit"}
_VIEWS = ".reshape(", ".transpose(", "broadcast_to("


class Round(NamedTuple):
    """A round as functions of NumPy; `held` is the leaves of a state, then what `prepare` gave."""

    learn: Callable  # (*held, outcome, row) -> the leaves of the next state
    score: Callable  # (*held, row) -> a list of one number
    prepare: Callable | None  # leaves of a state -> what both others need of them; None if nothing


def written_round(
    learn: Callable, score: Callable, leaves: list, outcome: Shape, row: Shape
) -> Round:
    """The functions of a round, written with NumPy.

    learn: (*leaves, outcome, row) -> leaves.
    score: (*leaves, row) -> one number.
    leaves, outcome, row: shapes and dtypes.
    """
    writer = Writer()
    state = [Value(f"s{i}", leaf.shape, not leaf.shape) for i, leaf in enumerate(leaves)]
    y, x = Value("y", (), True), Value("x", row.shape, False)
    after = _write_program(writer, jax.make_jaxpr(learn)(*leaves, outcome, row), [*state, y, x])
    found = _write_program(writer, jax.make_jaxpr(score)(*leaves, row), [*state, x])
    early = _early_variables(writer.lines)
    late = [text for text in writer.lines if _name(text) not in early]
    needed = set(_used_variables(late, after) + _used_variables(late, found)) & early | early & {
        *after,
        *found,
    }
    shared = sorted(needed)
    given = ", ".join(value.name for value in state)
    both = ", ".join([given, *shared])
    make = lambda arguments, lines, results: _function(writer, arguments, lines, results)
    return Round(
        make(f"{both}, y, x", late, after),
        make(f"{both}, x", late, found),
        make(given, writer.lines, shared) if shared else None,
    )


def _write_program(writer: Writer, closed: ClosedJaxpr, given: list[Value]) -> list[str]:
    """The names of the results."""
    found = _write(writer, closed.jaxpr, list(map(writer.constant, closed.consts)), given)
    return [_own(writer, writer.whole(value)) for value in found]


def _function(writer: Writer, arguments: str, lines: list[str], results: list[str]) -> Callable:
    used = set(_used_variables(lines, results))
    kept = [text for text in lines if _name(text) in used]
    body = "\n    ".join([*kept, f"return [{', '.join(results)}]"])
    exec(f"def played({arguments}):\n    {body}", writer.held)
    return writer.held["played"]


def _name(text: str) -> str:
    return text.partition(" = ")[0]


def _early_variables(lines: list[str]) -> set[str]:
    """The variables that depend on the state alone."""
    late = {"x", "y"}
    for text in lines:
        name, _, right = text.partition(" = ")
        if late & set(re.findall(r"\b[vxy]\d*\b", right)):
            late.add(name)
    return {_name(text) for text in lines} - late


def _used_variables(lines: list[str], results: list[str]) -> list[str]:
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
            known |= dict(zip(equation.outvars, found, strict=True))
            continue
        if inner is None:
            known[equation.outvars[0]] = line(writer, equation, given)
            continue
        found = _called(writer, inner, given)
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
    return [_choice(writer, which, *pair) for pair in zip(no, yes, strict=True)]


def _choice(writer: Writer, which: Value, no: Value, yes: Value) -> Value:
    plain = no.plain and yes.plain
    name = lambda one: one.name if plain else _own(writer, writer.whole(one))
    return writer.add(f"({name(yes)} if {which.name} else {name(no)})", no.shape, plain)


def _needed_variables(jaxpr: Jaxpr) -> set:
    """The variables that the results depend on."""
    needed = {atom for atom in jaxpr.outvars if not hasattr(atom, "val")}
    for equation in reversed(jaxpr.eqns):
        if any(var in needed for var in equation.outvars):
            needed |= {atom for atom in equation.invars if not hasattr(atom, "val")}
    return needed


def _inner(equation: JaxprEqn) -> Jaxpr | ClosedJaxpr | None:
    """The program that an operation calls; None for other operations."""
    if equation.primitive.name not in _INNER:
        return None
    return equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
