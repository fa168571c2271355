r"""Prove that the multiple of the key which an update adds is affine in the score.

The chunk form needs $a_t = c_t - b_t s_t$ with one number $b_t$ for all rows, where $b_t$ and $c_t$
depend on the key, the value and the numbers of the token, but not on the score $s_t$. A fact of the
learner says what is added; whether this multiple is affine depends on the loss too. So the multiple
is traced, and every operation is asked what it makes of the score. A squared loss, or the implicit
step on it, passes; a hinge or a logistic loss does not, because its slope depends on the score.

An operation that is not named here is taken for one that is not affine.
"""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array, Float, PyTree

_NUMBER, _FREE, _AFFINE, _OTHER = range(4)
# one number in all entries, without the score; any array without it; affine in it; anything else
_CALLS = {"checkpoint", "closed_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit"}
_SAME = {"convert_element_type", "copy", "neg"}
_SUMS = {"add", "add_any", "sub"}
_EACH = {"max", "min", "integer_pow", "sqrt", "square", "select_n", "broadcast_in_dim", "sign"}
_EACH |= {"eq", "ne", "gt", "ge", "lt", "le", "and", "or", "not", "abs", "exp"} | _SAME | _SUMS
_EACH |= {"mul", "div"}  # these give one number in all entries if they get only such


def is_affine(function: Callable[..., Array], score: Float[Array, " dv"], *rest: PyTree) -> bool:
    r"""Whether `function(score, *rest)` is $c - b s$ with a number $b$, for every `rest`."""
    try:
        closed = jax.make_jaxpr(function)(score, *rest)
    except Exception:  # the plain round fails in the same way, and its error is better
        return False
    kinds = [_AFFINE, *(_free(variable) for variable in closed.jaxpr.invars[1:])]
    kinds = _results(closed.jaxpr, kinds)
    return max(kinds) <= _AFFINE and closed.out_avals[0].shape == score.shape


def _results(jaxpr: Any, given: list[int]) -> list[int]:
    """The kind of each result of a program, for arguments of these kinds."""
    known = dict(zip(jaxpr.invars, given, strict=True))
    kind = lambda atom: _free(atom) if hasattr(atom, "val") else known.get(atom, _free(atom))
    for equation in jaxpr.eqns:
        found = _kinds(equation, [kind(atom) for atom in equation.invars])
        known.update(zip(equation.outvars, found, strict=True))
    return [kind(atom) for atom in jaxpr.outvars]


def _free(atom: Any) -> int:
    return _NUMBER if atom.aval.shape == () else _FREE


def _kinds(equation: Any, given: list[int]) -> list[int]:
    """The kinds of the results of an operation."""
    name, params = equation.primitive.name, equation.params
    inner = params.get("jaxpr", params.get("call_jaxpr")) if name in _CALLS else None
    if inner is not None:
        return _results(getattr(inner, "jaxpr", inner), given)
    if max(given, default=_NUMBER) <= _FREE:
        single = name in _EACH and max(given, default=_NUMBER) == _NUMBER
        return [_NUMBER if single else _free(variable) for variable in equation.outvars]
    return [_of_score(name, params, given, equation)] * len(equation.outvars)


def _of_score(name: str, params: Any, given: list[int], equation: Any) -> int:
    """The kind of the result of an operation on something that is affine in the score."""
    shape = equation.outvars[0].aval.shape
    alike = all(atom.aval.shape in ((), shape) for atom in equation.invars)
    if _OTHER in given or not alike:
        return _OTHER
    if name in _SAME or name in _SUMS or (name == "integer_pow" and params["y"] == 1):
        floats = equation.outvars[0].aval.dtype.kind == "f"
        return _AFFINE if floats else _OTHER
    if name == "mul" and min(given) == _NUMBER:
        return _AFFINE
    if name == "div" and given == [_AFFINE, _NUMBER]:
        return _AFFINE
    if name == "select_n" and given[0] == _NUMBER:
        return _AFFINE
    if name == "broadcast_in_dim" and equation.invars[0].aval.shape == shape:
        return _AFFINE
    return _OTHER
