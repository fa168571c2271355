"""A traced function, played again on padded arrays with operations that Triton has.

The tables of `gpu_moves` and `gpu_rules` say how a primitive is played. Here are the order of the
equations and what holds other programs: calls, branches and loops.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array

from olx._memory import inner_programs
from olx.engine.implementations.gpu_moves import MOVES, Unfit
from olx.engine.implementations.gpu_padding import entry, fill, is_key, padded_shape, places, where
from olx.engine.implementations.gpu_rules import ELEMENTWISE, KEYS, RULES, check_generator

Value = Any  # a padded array, the two words of keys, or a number that is known while tracing
Constants = dict[int, Array]  # the padded arrays that a program holds, by the `id` of the original
_PROGRAM = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # the parameter of a call
_SAME = {"copy", "optimization_barrier", "random_clone", "sharding_constraint", "stop_gradient"}


def play(program: Any, constants: Constants, *given: Value) -> Sequence[Value]:
    """The results of a closed jaxpr on padded arguments.

    constants: the arrays of `constants_of`, padded, as the kernel has them.
    """
    jaxpr = getattr(program, "jaxpr", program)

    def constant(value: Any, kind: Any) -> Value:
        if is_key(kind):
            raise Unfit("a key that a function holds has no legal form; make it one of `hparams`")
        return constants[id(value)] if np.ndim(value) else np.asarray(value, kind.dtype)

    def read(atom: Any) -> Value:
        return constant(atom.val, atom.aval) if hasattr(atom, "val") else known[atom]

    known = dict(zip(jaxpr.invars, given, strict=True))
    for variable, value in zip(jaxpr.constvars, getattr(program, "consts", ()), strict=True):
        known[variable] = constant(value, variable.aval)
    for equation in jaxpr.eqns:
        results = _equation(equation, constants, list(map(read, equation.invars)))
        known.update(zip(equation.outvars, results, strict=True))
    return list(map(read, jaxpr.outvars))


def constants_of(program: Any) -> dict[int, Any]:
    """The arrays that a closed jaxpr and its inner ones hold; a kernel takes them as arguments."""
    found = {id(held): held for held in getattr(program, "consts", ()) if np.ndim(held)}
    for equation in getattr(program, "jaxpr", program).eqns:
        literals = [atom.val for atom in equation.invars if hasattr(atom, "val")]
        found |= {id(value): value for value in literals if np.ndim(value)}
        for inner in inner_programs(equation):
            found |= constants_of(inner)
    return found


def _equation(equation: Any, constants: Constants, given: list[Value]) -> Sequence[Value]:
    name, params = equation.primitive.name, equation.params
    kinds, outs = ([atom.aval for atom in atoms] for atoms in (equation.invars, equation.outvars))
    if not all(kind.size for kind in outs):
        return [None] * len(outs)  # nothing is there: only a concatenation may see it
    if name != "concatenate" and not all(kind.size for kind in kinds):
        raise Unfit(f"{name} of an array without elements has no legal form")
    keys = [kind for kind in (*kinds, *outs) if is_key(kind)]
    for kind in keys:
        check_generator(kind)
    if name in _SAME:
        return given
    if name in _HOLDERS:
        return _HOLDERS[name](constants, given, outs, **params)
    if inner := next((params[key] for key in _PROGRAM if key in params), None):
        return play(inner, constants, *given)
    several = equation.primitive.multiple_results
    if keys and name not in KEYS:
        if name not in MOVES:
            raise Unfit(f"{name} of keys has no legal form")
        word = lambda i: [value[i] if isinstance(value, tuple) else value for value in given]
        both = [MOVES[name](word(i), kinds, outs, **params) for i in (0, 1)]
        return list(zip(*both, strict=True)) if several else [tuple(both)]
    if not any(map(_is_traced, given)) and not any(kind.shape for kind in (*kinds, *outs)):
        with jax.ensure_compile_time_eval():  # some operations of Triton take no literals
            results = equation.primitive.bind(*given, **params)
            return [np.asarray(value) for value in jax.tree.leaves(results)]
    if name in ELEMENTWISE:
        return [equation.primitive.bind(*given, **params)]
    rule = KEYS.get(name) or MOVES.get(name) or RULES.get(name)
    if rule is None:
        raise Unfit(f"{name} has no legal form")
    results = rule(given, kinds, outs, **params)
    return results if several else [results]


def _is_traced(value: Value) -> bool:
    return isinstance(value, Tracer | tuple)


def _platform(constants, given, outs, platforms, **_):
    """The branch of a GPU, where a function has one for each platform."""
    fits = (k for k, one in enumerate(platforms) if one is None or "cuda" in one)
    return [np.asarray(next(fits), np.int32)]


def _branches(constants, given, outs, branches, **_):
    which, *given = given
    if not _is_traced(which):
        return play(branches[int(which)], constants, *given)
    plays = [lambda *own, one=one: tuple(play(one, constants, *own)) for one in branches]
    return lax.switch(which, plays, *map(_array, given))


def _while(constants, given, outs, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    """A loop. Of several games in one array each stops by itself, and the loop with the last."""
    asks, given = given[:cond_nconsts], given[cond_nconsts:]
    own, start = given[:body_nconsts], given[body_nconsts:]
    shape = cond_jaxpr.out_avals[0].shape
    axes = range(len(shape))
    ask = lambda carry: play(cond_jaxpr, constants, *asks, *carry)[0]

    def goes_on(carry: tuple) -> Array:
        on = ask(carry)
        return jnp.max(fill(on, shape, axes, False).astype(jnp.int32)) > 0 if shape else on

    def body(carry: tuple) -> tuple:
        new = tuple(play(body_jaxpr, constants, *own, *carry))
        if not shape:
            return jax.tree.map(_carried, new, carry)
        on = ask(carry)
        pick = lambda new, old: where(lax.broadcast_in_dim(on, old.shape, axes), new, old)
        return jax.tree.map(pick, new, carry)

    return lax.while_loop(goes_on, body, tuple(map(_array, start)))


def _scan(constants, given, outs, jaxpr, length, reverse, num_consts, num_carry, **_):
    """A loop that reads its rows and writes its results by index."""
    own, given = given[:num_consts], given[num_consts:]
    start, rows = given[:num_carry], given[num_carry:]
    if any(map(is_key, outs[num_carry:])) or any(isinstance(row, tuple) for row in rows):
        raise Unfit("scan over keys has no legal form")
    empty = [lax.full(padded_shape(kind.shape), 0, kind.dtype) for kind in outs[num_carry:]]

    def body(i: Array, both: tuple) -> tuple:
        carry, kept = both
        i = length - 1 - i if reverse else i
        here = [entry(row, 0, i) for row in rows]
        new = play(jaxpr, constants, *own, *carry, *here)
        write = lambda all, one: where(places(all.shape, 0) == i, lax.expand_dims(one, [0]), all)
        carry = jax.tree.map(_carried, tuple(new[:num_carry]), carry)
        return carry, tuple(map(write, kept, map(_array, new[num_carry:])))

    first = tuple(map(_array, start)), tuple(empty)
    carry, kept = lax.fori_loop(0, length, body, first)
    return [*carry, *kept]


def _solve(constants, given, outs, const_lengths, jaxprs):
    """A linear system, by the program that the caller gave to solve it."""
    skip = const_lengths.matvec + const_lengths.vecmat
    right = given[sum(const_lengths) :]
    return play(jaxprs.solve, constants, *given[skip : skip + const_lengths.solve], *right)


def _array(value: Value) -> Value:
    return value if _is_traced(value) else jnp.asarray(value)


def _carried(new: Value, old: Value) -> Value:
    """What a loop carries: the lowering of a loop cannot yield a number that is known."""
    if _is_traced(new) or np.ndim(new):
        return new
    return lax.select(lax.eq(old, old), *[jnp.asarray(new, old.dtype)] * 2)


_HOLDERS: dict[str, Callable[..., Sequence[Value]]] = {
    "cond": _branches,
    "custom_linear_solve": _solve,
    "platform_index": _platform,
    "scan": _scan,
    "while": _while,
}
