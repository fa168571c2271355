"""Operations of JAX as lines of Python: plain numbers where JAX has scalars, NumPy for arrays.

Operations that are not named here are refused by `Unknown`, whose text is for users. A whole number
begins anew where it leaves its dtype, as in JAX. Floats that no integer can hold raise.
"""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

_BOTH = {  # the same for numbers and arrays
    "add": "{} + {}", "add_any": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "neg": "-{}",
    "square": "{0} * {0}", "abs": "abs({})", "gt": "{} > {}", "ge": "{} >= {}", "lt": "{} < {}",
    "le": "{} <= {}", "eq": "{} == {}", "ne": "{} != {}", "div": "{} / {}",
}  # fmt: skip
_OF_ONE = ("exp", "log", "log1p", "expm1", "sqrt", "tanh", "sinh", "cosh", "asinh")
_APART = {  # for numbers, and for arrays
    "max": ("({0} if {0} > {1} or {0} != {0} else {1})", "np.maximum({}, {})"),
    "min": ("({0} if {0} < {1} or {0} != {0} else {1})", "np.minimum({}, {})"),
    "clamp": ("min(max({1}, {0}), {2})", "np.minimum(np.maximum({1}, {0}), {2})"),
    "select_n": ("({2} if {0} else {1})", "np.where({0}, {2}, {1})"),
    "and": ("({} and {})", "np.logical_and({}, {})"),
    "or": ("({} or {})", "np.logical_or({}, {})"),
    "not": ("(not {})", "np.logical_not({})"),
    "sign": ("({0} if {0} != {0} else ({0} > 0) - ({0} < 0))", "np.sign({})"),
    "pow": ("math.pow({}, {})", "np.power({}, {})"),
    "rsqrt": ("1.0 / math.sqrt({})", "1.0 / np.sqrt({})"),
    "logistic": ("1.0 / (1.0 + math.exp(-{}))", "1.0 / (1.0 + np.exp(-{}))"),
    "is_finite": ("math.isfinite({})", "np.isfinite({})"),
    **{name: (f"math.{name}({{}})", f"np.{name}({{}})") for name in _OF_ONE},
}
_OF_FLOATS = {"div", "and", "or", "not", "pow", "square", *_OF_ONE}  # of integers they are others
_GROW = {"add", "add_any", "sub", "neg", "abs"}  # what may leave the numbers of an integer
_REDUCTIONS = {  # of arrays
    "reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_and": "all",
    "reduce_or": "any", "argmax": "argmax", "argmin": "argmin",
}  # fmt: skip
_SAME = {"copy", "copy_p", "stop_gradient", "reduce_precision"}
_MOVES = {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose"}
_SMALL = 256  # numbers of an array of one constant
_EVEN = np.empty((), bool)  # what is like a test of a mask
_KINDS = (np.float32, np.float64, np.bool_, np.int32, np.int64, np.uint32)


class Unknown(Exception):
    """An operation that has no line here."""


class Value(NamedTuple):
    """A variable of a written function."""

    name: str
    shape: tuple[int, ...]
    plain: bool  # whether it is one number, in place of an array that holds it everywhere
    dtype: np.dtype


class Writer:
    """The lines of functions, and the arrays that they use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}  # of the variables, by their lines
        self.numbers: dict[str, Any] = {}  # constants, as they are written
        self.scaled: dict[str, tuple[Value, Value]] = {}  # products of a number and an array
        self.spreads: dict[str, Value] = {}  # arrays of one constant
        self.held: dict[str, Any] = {"np": np, "math": math, "inf": math.inf, "nan": math.nan}
        self.held["integers"] = _integers

    def times(self, one: Value, two: Value, out: Any) -> Value:
        """A product; a number times a number times an array is one product of an array."""
        one, two = (two, one) if two.plain else (one, two)
        if one.name == "(1.0)":
            return Value(two.name, out.shape, two.plain, out.dtype)
        if one.plain and two.name in self.scaled:
            factor, two = self.scaled[two.name]
            one = self.add(f"{one.name} * {factor.name}", one, True)
        plain = one.plain and two.plain
        found = self.add(_within(f"{one.name} * {two.name}", out, plain), out, plain)
        if one.plain and not two.plain:
            self.scaled[found.name] = one, two
        return found

    def add(self, text: str, out: Any, plain: bool) -> Value:
        """A new variable, or the one that has the same line.

        out: what has its shape and its dtype.
        """
        if text not in self.names:
            self.names[text] = f"v{len(self.lines)}"
            self.lines.append(f"{self.names[text]} = {text}")
        return Value(self.names[text], out.shape, plain, np.dtype(out.dtype))

    def constant(self, value: ArrayLike) -> Value:
        value = np.asarray(value)
        if value.ndim == 0:
            self.numbers[f"({value.item()!r})"] = value.item()
            return Value(f"({value.item()!r})", (), True, value.dtype)
        name = f"c{len(self.held)}"
        self.held[name] = value
        return Value(name, value.shape, False, value.dtype)

    def whole(self, value: Value) -> str:
        """The name of an array, where one number would not do."""
        if not value.plain or value.shape == ():
            return value.name
        text = f"np.full({value.shape}, {value.name}, np.{value.dtype})"
        return self.add(text, value, False).name

    def spread(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> Value:
        """The constant of this name as an array, which is made once."""
        key = f"{name} {shape} {dtype}"
        if key not in self.spreads:
            self.spreads[key] = self.constant(np.full(shape, self.numbers[name], dtype))
        return self.spreads[key]

    def function(self, arguments: str, lines: list[str], results: list[str]) -> Callable[..., list]:
        """The function of these lines that are needed for the results."""
        used = set(used_variables(lines, results))
        kept = [text for text in lines if variable_of(text) in used]
        body = "\n    ".join([*kept, f"return [{', '.join(results)}]"])
        exec(f"def played({arguments}):\n    {body}", self.held)
        return self.held["played"]


def line(writer: Writer, equation: Any, given: list[Value]) -> Value:
    """The result of an operation."""
    name, params, out = equation.primitive.name, equation.params, equation.outvars[0].aval
    _check_kind(name, out)
    if name == "iota":
        count = np.arange(out.shape[params["dimension"]], dtype=out.dtype)
        lone = [-1 if axis == params["dimension"] else 1 for axis in range(len(out.shape))]
        return writer.constant(np.broadcast_to(count.reshape(lone), out.shape))
    plain = all(one.plain for one in given)
    if name in _BOTH or name in _APART:
        given = _filling(writer, given, out)
    if name == "mul":
        return writer.times(given[0], given[1], out)
    if name == "add" and "(0.0)" in (given[0].name, given[1].name):
        return _like(given[given[0].name == "(0.0)"], out)
    if name == "select_n" and len(given) == 3 and given[0].plain:
        return choice(writer, given[0], given[1], given[2], out)
    if name in _BOTH or (name in _APART and len(given) <= 3):
        given = given if plain else _spread(writer, given, out)
        text = (_BOTH.get(name) or _APART[name][0 if plain else 1]).format(*_names(given))
        if not plain and name == "select_n" and all(one.plain for one in given[1:]):
            text += f".astype(np.{out.dtype})"  # NumPy takes Python numbers for float64
        if name == "select_n" and not plain:
            text = _unless_even(writer, given, text)
        text = _within(text, out, plain) if name in _GROW else text
        return writer.add(text, out, plain)
    one = given[0]
    if name in _SAME or (name == "integer_pow" and params["y"] == 1):
        return one
    if plain and name in _REDUCTIONS and name[:3] != "arg":
        count = math.prod(one.shape[axis] for axis in params["axes"])
        times = f"{count} * " if name == "reduce_sum" and count > 1 else ""
        text = _within(f"{times}{one.name}", out, True)
        return writer.add(text, out, True) if times else _like(one, out)
    if name == "integer_pow" and params["y"] == 2:
        return writer.add(_within(f"{one.name} * {one.name}", out, plain), out, plain)
    if name == "integer_pow" and out.dtype.kind == "f":
        return writer.add(f"{one.name} ** {params['y']}", out, plain)
    if name == "convert_element_type":
        return _converted(writer, one, out)
    if plain and name in _MOVES:
        return _like(one, out)
    if name == "dot_general" and not (given[0].shape and given[1].shape):
        return writer.times(given[0], given[1], out)
    if plain and name == "dot_general":
        (axes, _), _ = params["dimension_numbers"]
        count = math.prod(one.shape[axis] for axis in axes)
        text = f"{count} * {one.name} * {given[1].name}"
        return writer.add(_within(text, out, True), out, True)
    text = _of_arrays(writer, name, params, given, out)
    cast = {"b": "bool", "f": "float"}.get(out.dtype.kind, "int")
    return writer.add(f"{cast}({text})" if out.shape == () else text, out, out.shape == ())


def _within(text: str, out: Any, plain: bool) -> str:
    """The line of a whole number of Python, which has no end: modulo the numbers of its dtype."""
    if not plain or out.dtype.kind not in "iu":
        return text
    count = 1 << 8 * out.dtype.itemsize
    if out.dtype.kind == "u":
        return f"({text}) & {count - 1}"
    return f"(({text}) + {count // 2} & {count - 1}) - {count // 2}"


def _integers(values: Any, low: int, high: int, kind: type) -> Any:
    """Floats without the digits after the point; raises where JAX takes another number."""
    if isinstance(values, float) and low - 1 < values < high + 1:
        return int(values)
    if isinstance(values, float) or not np.all((values > low - 1.0) & (values < high + 1.0)):
        raise OverflowError
    return values.astype(kind)


def _filling(writer: Writer, given: list[Value], out: Any) -> list[Value]:
    """The same arguments; arrays for plain numbers, if the other ones are smaller than the result.

    The axes of a mapped number, of shape (3, 1), are stretched to those of the number beside it.
    """
    arrays = [one.shape for one in given if not one.plain]
    if not arrays or np.broadcast_shapes(*arrays) == out.shape:
        return given
    return [Value(writer.whole(one), one.shape, False, one.dtype) for one in given]


def _spread(writer: Writer, given: list[Value], out: Any) -> list[Value]:
    """The same arguments; small arrays for constants, beside arrays.

    NumPy takes as long to read a Python number as for an operation on a small array.
    """
    if math.prod(out.shape) > _SMALL:
        return given
    of_two = len(given) == 2  # else the first may be a mask
    kind = next(one.dtype for one in given if not one.plain) if of_two else out.dtype
    return [
        writer.spread(one.name, out.shape, kind) if one.name in writer.numbers else one
        for one in given
    ]


def _unless_even(writer: Writer, given: list[Value], text: str) -> str:
    """The line of a choice entry by entry, but for masks whose entries are all the same.

    Most masks are guards that all entries pass. To look at a mask takes a tenth of a choice.
    """
    which, no, yes = given
    mask = f"{which.name}.tobytes()"  # of one byte per entry
    for one, even in ((yes, f"0 not in {mask}"), (no, f"{mask}.count(0) == {{}}")):
        if not one.plain and one.shape == which.shape:
            test = writer.add(even.format(math.prod(which.shape)), _EVEN, True)
            return f"({one.name} if {test.name} else {text})"
    return text


def _like(one: Value, out: Any) -> Value:
    """The same variable in another shape, which a plain number has in any case."""
    return Value(one.name, out.shape, one.plain, out.dtype)


def _check_kind(name: str, out: Any) -> None:
    whole = out.dtype.kind in "iu"
    unsigned = out.dtype.kind == "u" and name in ("sub", "neg", "mul")  # it would begin anew
    if out.dtype not in _KINDS or unsigned or (whole and name in _OF_FLOATS):
        raise Unknown(f"`{name}` of {out.dtype}")


def _names(given: list[Value]) -> list[str]:
    return [one.name for one in given]


def parts(writer: Writer, equation: Any, one: Value) -> list[Value]:
    """The parts of an array that an operation takes apart."""
    name, params = equation.primitive.name, equation.params
    if name not in ("split", "unstack"):
        raise Unknown(f"`{name}`")
    axis, low, found = params["axis"], 0, []
    for variable in equation.outvars:
        out = variable.aval
        _check_kind(name, out)
        high = low + (out.shape[axis] if name == "split" else 1)
        here = str(low) if name == "unstack" else f"{low}:{high}"
        text = f"{writer.whole(one)}[{':, ' * axis}{here}]"
        plain = out.shape == ()
        found.append(writer.add(f"{text}.item()" if plain else text, out, plain))
        low = high
    return found


def _converted(writer: Writer, one: Value, out: Any) -> Value:
    if one.name in writer.numbers:
        number = writer.constant(np.asarray(writer.numbers[one.name]).astype(out.dtype))
        return Value(number.name, out.shape, True, out.dtype)
    if one.dtype.kind == "f" and out.dtype.kind in "iu":
        held = np.iinfo(out.dtype)
        ends = f"{held.min}, {held.max}, np.{out.dtype}"
        return writer.add(f"integers({one.name}, {ends})", out, one.plain)
    if one.plain and one.dtype.kind == out.dtype.kind and one.dtype.itemsize <= out.dtype.itemsize:
        return _like(one, out)
    if one.plain:
        cast = {"b": "bool", "f": "float"}.get(out.dtype.kind, "int")
        return writer.add(_within(f"{cast}({one.name})", out, True), out, True)
    return writer.add(f"{one.name}.astype(np.{out.dtype})", out, False)


def _of_arrays(
    writer: Writer, name: str, params: dict[str, Any], given: list[Value], out: Any
) -> str:
    """An operation that is not done entry by entry."""
    one, *_ = names = [writer.whole(value) for value in given]
    if name == "dot_general":
        return _product(params, given, names)
    if name in _REDUCTIONS:
        argument = name[:3] == "arg"
        axes = params["axes"][0] if argument else params["axes"]
        kind = f", dtype=np.{out.dtype}" if name == "reduce_sum" and out.dtype.kind in "iu" else ""
        return f"{one}.{_REDUCTIONS[name]}({axes}{kind})"
    if name in ("reshape", "squeeze", "expand_dims"):
        return f"{one}.reshape({out.shape})"
    if name == "transpose":
        return f"{one}.transpose({params['permutation']})"
    if name == "broadcast_in_dim":
        placed = [1] * len(out.shape)
        for axis, size in zip(params["broadcast_dimensions"], given[0].shape, strict=True):
            placed[axis] = size
        return f"np.broadcast_to({one}.reshape({placed}), {out.shape})"
    if name == "concatenate":
        return f"np.concatenate([{', '.join(names)}], {params['dimension']})"
    if name == "stack":
        parts = [f"np.full({value.shape}, {value.name}, np.{out.dtype})" for value in given]
        return f"np.stack([{', '.join(parts)}], {params['axis']})"
    if name == "slice":
        steps = params["strides"] or (1,) * len(given[0].shape)
        ends = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
        return f"{one}[{', '.join(f'{low}:{high}:{step}' for low, high, step in ends)}]"
    if name == "sort" and len(given) == 1:
        return f"np.sort({one}, {params['dimension']})"
    if name == "cumsum" and not params["reverse"]:
        return f"np.cumsum({one}, {params['axis']}, np.{out.dtype})"
    raise Unknown(f"`{name}`")


def _product(params: dict[str, Any], given: list[Value], names: list[str]) -> str:
    (left, right), batch = params["dimension_numbers"]
    if batch != ((), ()) or len(left) > 1:
        raise Unknown("a product of stacked arrays")
    sides = [value.shape for value in given]
    if not left:
        return f"np.multiply.outer({names[0]}, {names[1]})"
    if left[0] == len(sides[0]) - 1 and right[0] == max(len(sides[1]) - 2, 0):
        return f"{names[0]}.dot({names[1]})"
    return f"np.tensordot({names[0]}, {names[1]}, ({list(left)}, {list(right)}))"


def choice(writer: Writer, which: Value, no: Value, yes: Value, out: Any) -> Value:
    plain = no.plain and yes.plain
    name = lambda one: one.name if plain else writer.whole(one)
    return writer.add(f"({name(yes)} if {which.name} else {name(no)})", out, plain)


def variable_of(text: str) -> str:
    return text.partition(" = ")[0]


def used_variables(lines: list[str], results: list[str]) -> list[str]:
    """The variables that the results need, if the lines are run."""
    needed = set(VARIABLE.findall(" ".join(results)))
    for text in reversed(lines):
        name, _, right = text.partition(" = ")
        if name in needed:
            needed |= set(VARIABLE.findall(right))
    return list(needed)


VARIABLE = re.compile(r"\b[av]\d+\b")
