"""Compile a chunk of rounds as one native function, where XLA can do so.

XLA on the CPU pays 100 ns and more for every kernel of every round. An attribute on the call of a
loop makes XLA emit the whole loop as one native function, like a hand-written loop. The attribute
is not documented. So it is used on the CPU only and tried first on a small program. The plain loop
is used whenever the compiler refuses, as it does for sorts, factorizations and scatters. Both give
the same numbers.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from olx._cache import cached
from olx._memory import equations, refuse_large_arrays
from olx.engine.game import Game, Structure

_ATTRIBUTES = {"xla_cpu_small_call": "true", "inlineable": "false"}
_UNFIT = {
    "sort",
    "scatter",
    "scatter-add",
    "cholesky",
    "eigh",
    "lu",
    "qr",
    "svd",
    "triangular_solve",
}
_HUGE = 1 << 19  # from this width on, one kernel on one core is slower than many on all cores
_WIDE = 64  # from this width on, splitting a reduction into a tree costs more than it saves


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A function of a state, a learner, a loss and more; it is compiled per structure of games.

    fast: the same function with kernels inside it; None makes the function one kernel.
    share: makes a function run on all devices, each with its part; None for one device.
    """

    function: Callable
    fast: Callable | None = None
    share: Callable | None = None

    def forms(self, game: Game) -> "Forms":
        return _forms(self, game.structure)


class Forms:
    """A fast and a plain compiled form of a function; the first argument is donated.

    A form takes the numbers of a `Game` in place of the learner and the loss, and has a second
    result, to be ignored; see `_reading`. `choose` picks the form, once per shapes and dtypes of
    the arguments.
    """

    def __init__(self, program: Program, structure: Structure):
        function, fast = program.function, program.fast
        of = structure, program.share or (lambda function: function)
        self.plain = jax.jit(_of_numbers(_reading, function, *of), donate_argnums=0)
        self.form = "one kernel" if fast is None else "blocks of rounds"
        whole = _of_numbers(*(as_kernel, function) if fast is None else (_reading, fast), *of)
        self._narrow = _compiled(whole, ["dot-library-rewriter"])
        self._wide = _compiled(whole, ["dot-library-rewriter", "tree_reduction_rewriter"])
        self._refusals: dict[Any, str] = {}

    def choose(self, width: int, *arguments: Any) -> tuple[Callable, str]:
        """The form to call for these arguments, and which form it is and why, in words.

        width: the length of the reductions of a round.
        """
        if reason := unavailable():
            return self.plain, f"plain loop: {reason}"
        if width >= _HUGE:
            return self.plain, "plain loop: the rows are long enough for all cores"
        leaves, structure = jax.tree.flatten(arguments)
        kind = (structure, tuple(map(_kind, leaves)))
        if any(0 in shape for shape, _ in kind[1]):  # the compiler aborts on an empty argument
            return self.plain, "plain loop: one kernel cannot take an empty array"
        fast = self._wide if width >= _WIDE else self._narrow
        if kind not in self._refusals:
            self._refusals[kind] = _refusal(fast, arguments)
        if reason := self._refusals[kind]:
            return self.plain, f"plain loop: {reason}"
        return fast, self.form


@cached
def _forms(program: Program, structure: Structure) -> Forms:
    return Forms(program, structure)


@functools.cache
def unavailable() -> str:
    """Why one kernel cannot be used on this machine; empty if it can."""
    if jax.default_backend() != "cpu":
        return f"one kernel is for the CPU, this is {jax.default_backend()}"
    probe = lambda carry, xs: lax.scan(lambda c, x: (c + jnp.vdot(x, c) * x, c[0]), carry, xs)
    carry, xs = jnp.ones(4), jnp.ones((3, 4))
    wanted = jax.jit(probe)(carry, xs)
    try:
        seen, _ = _compiled(as_kernel(probe, True), ["dot-library-rewriter"])(carry + 0, xs)
    except Exception as error:
        return f"this version of jax does not take the attribute ({type(error).__name__})"
    same = jax.tree.map(lambda a, b: bool(np.allclose(a, b)), wanted, seen)
    return "" if all(jax.tree.leaves(same)) else "one kernel gave other numbers on a probe"


def as_kernel(function: Callable, donated: bool = False) -> Callable:
    """The function as one kernel, with a second result to be ignored; see `_reading`."""
    inner = jax.jit(_reading(function, donated))
    return lambda *arguments: set_xla_metadata(inner(*arguments), **_ATTRIBUTES)


def _compiled(function: Callable, disabled: list[str]) -> Any:
    options = {"xla_disable_hlo_passes": ",".join(disabled)}
    return jax.jit(function, compiler_options=options, donate_argnums=0)


def _refusal(fast: Any, arguments: tuple) -> str:
    """Why the compiler refuses; empty if it compiles, and then the result is cached in `fast`."""
    traced = fast.trace(*arguments)
    refuse_large_arrays(traced.jaxpr.jaxpr)
    if unfit := _UNFIT & {one.primitive.name for one in equations(traced.jaxpr.jaxpr)}:
        return f"one kernel cannot hold {', '.join(sorted(unfit))}, which a round needs"
    try:
        traced.lower().compile()
    except jax.errors.JaxRuntimeError as error:
        return f"the compiler refuses one kernel ({str(error).splitlines()[0][:100]})"
    return ""


def _reading(function: Callable, donated: bool) -> Callable:
    """The function with a second result, to be ignored, that reads every argument.

    The compiler aborts the process on a kernel with an unused argument, such as a number of a
    learner that a round does not need.

    donated: whether the first argument becomes the first result. Then that result is read instead:
        a second read of the argument would make the compiler copy it before the loop.
    """

    def entry(leaf: Any) -> Any:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        return leaf[(0,) * leaf.ndim].astype(jnp.float32)

    def both(*arguments: Any) -> tuple[Any, Any]:
        result = function(*arguments)
        read = (result[0], *arguments[1:]) if donated else arguments
        leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(read)]
        return result, sum(entry(leaf) for leaf in leaves if leaf.size)

    return both


def _of_numbers(
    make: Callable, function: Callable, structure: Structure, share: Callable
) -> Callable:
    """The function in a form that takes numbers; `make` is `_reading` or `as_kernel`."""

    def flat(state: Any, own: list, other: list, *rest: Any) -> Any:
        return function(state, *Game(own, other, structure).parts(), *rest)

    def whole(state: Any, numbers: tuple[list, list], *rest: Any) -> Any:
        return share(make(flat, True))(state, *numbers, *rest)

    return whole


def _kind(leaf: Any) -> tuple:
    return (leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else ((), type(leaf))
