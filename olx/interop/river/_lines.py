"""One line of Python per operation of JAX: on plain numbers where JAX has scalars."""

import math
from typing import Any, NamedTuple

import numpy as np

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

    def constant(self, value: Any) -> Value:
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


def _of_arrays(writer: Writer, name: str, params: Any, given: list[Value], shape: tuple) -> Value:
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
