"""Compile a chunk of rounds as one native function, where XLA can do so.

XLA on the CPU pays 100 ns and more for every kernel of every round. An attribute on the call of a
loop makes XLA emit the whole loop as one native function, like a hand-written loop. The attribute
is not documented. So it is used on the CPU only and tried first on a small program. The plain loop
is used whenever the compiler refuses, as it does for sorts, factorizations and scatters. Both give
the same numbers.

The loop over the rounds of a chunk, shared by the programs of the engine.
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
from jaxtyping import Array, Int, PyTree

from olx._cache import cached
from olx._memory import equations, refuse_large_arrays
from olx.engine import tuning
from olx.engine.device import accelerated
from olx.engine.numbers import Leaves, Structure
from olx.engine.reductions import with_long_reductions
from olx.engine.round import Output
from olx.engine.view import View, arrays_map

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


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A function of (state, learner, loss, rounds, span); it is compiled per structure of games.

    fast: the same function with kernels inside it; None makes the function one kernel.
    share: makes a function run on all devices, each with its part; None for one device.
    host: (structure, width) -> a form that needs no compiler, which is then the only one.
    says: what a call is, in words, if the function is a kernel itself; it is then used as it is.
    trees: whether XLA may make trees of all its reductions, as it does of short ones. A tree has
        the same order of sums in every program. It is slower from `REDUCTION_LEAST` numbers on,
        but for sums of some lanes.
    """

    function: Callable
    fast: Callable | None = None
    share: Callable | None = None
    host: Callable[[Structure, int], Callable] | None = None
    says: str = ""
    trees: bool = False

    def forms(self, game: Leaves) -> "Forms":
        return _forms(self, game.structure)


class Forms:
    """A fast and a plain compiled form of a function; the first argument is donated.

    A form takes the numbers of a `Leaves` in place of the learner and the loss, and has a second
    result, to be ignored; see `_reading`. `choose` picks the form, once per shapes and dtypes of
    the arguments.
    """

    def __init__(self, program: Program, structure: Structure):
        function, fast = program.function, program.fast
        self._says = program.says
        of = structure, program.share or (lambda function: function)
        self.plain = jax.jit(_of_numbers(_reading, function, *of), donate_argnums=0)
        self.form = "one kernel" if fast is None else "blocks of rounds"
        whole = _of_numbers(*(as_kernel, function) if fast is None else (_reading, fast), *of)
        self._host, self._structure = program.host, structure
        self._trees = program.trees
        self._fast = {trees: _compiled(whole, trees) for trees in (False, True)}
        self._refusals: dict[Any, str] = {}

    def choose(self, width: int, *arguments: object) -> tuple[Callable, str]:
        """The form to call for these arguments, and which form it is and why, in words.

        width: the length of the reductions of a round.
        """
        if self._host is not None:
            return self._host(self._structure, width), "NumPy, round by round"
        if self._says:
            return self.plain, self._says
        if reason := unavailable():
            return self.plain, f"plain loop: {reason}"
        if width >= tuning.KERNEL_WIDTH_MOST:
            return self.plain, "plain loop: the rows are long enough for all cores"
        leaves, structure = jax.tree.flatten(arguments)
        kind = (structure, tuple(map(_kind, leaves)))
        if any(0 in shape for shape, _ in kind[1]):  # the compiler aborts on an empty argument
            return self.plain, "plain loop: one kernel cannot take an empty array"
        fast = self._fast[self._trees or width < tuning.REDUCTION_LEAST]
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
        seen, _ = _compiled(as_kernel(probe, True))(carry + 0, xs)
    except Exception as error:
        return f"this version of jax does not take the attribute ({type(error).__name__})"
    same = jax.tree.map(lambda a, b: bool(np.allclose(a, b)), wanted, seen)
    return "" if all(jax.tree.leaves(same)) else "one kernel gave other numbers on a probe"


def as_kernel(function: Callable, donated: bool = False) -> Callable:
    """The function as one kernel, with a second result to be ignored; see `_reading`."""
    inner = jax.jit(_reading(function, donated))
    return lambda *arguments: set_xla_metadata(inner(*arguments), **_ATTRIBUTES)


def _compiled(function: Callable, trees: bool = False) -> Any:
    disabled = "dot-library-rewriter" + ("" if trees else ",tree_reduction_rewriter")
    options = {"xla_disable_hlo_passes": disabled}
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
        leaf = jnp.asarray(leaf) if isinstance(leaf, int | float) else leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        half = leaf.size // 2  # the first may be outside of the array of a view
        return lax.slice(leaf.reshape(-1), [half], [half + 1])[0].astype(jnp.float32)

    def both(*arguments: object) -> tuple[Any, Any]:
        result = function(*arguments)
        read = (result[0], *arguments[1:]) if donated else arguments
        leaves = [leaf for leaf in jax.tree.leaves(read) if jnp.size(leaf)]
        return result, sum(map(entry, leaves))

    return both


def _of_numbers(
    make: Callable, function: Callable, structure: Structure, share: Callable
) -> Callable:
    """The function in a form that takes numbers; `make` is `_reading` or `as_kernel`."""

    def flat(state: PyTree, own: list, other: list, *rest: PyTree) -> Any:
        return function(state, *Leaves(own, other, structure).parts(), *rest)

    def whole(state: PyTree, numbers: tuple[list, list], *rest: PyTree) -> Any:
        return share(make(flat, True))(state, *numbers, *rest)

    return whole


def _kind(leaf: Any) -> tuple:
    return (leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else ((), type(leaf))


def over_rounds(
    one: Callable[[PyTree, Array], tuple[PyTree, Output]],
    state: PyTree,
    span: Int[Array, "2"] | None,
    capacity: int,
    long: bool = True,
) -> tuple[PyTree, Output]:
    """The state after the rounds of a chunk from `span[0]` up to `span[1]`, and their outputs.

    one: (state, number of the round) -> (next state, output of the round).
    long: whether its reductions are made longer where that is faster.

    A `span` of None is all rounds. Else it is traced, so streams of any length use one program.
    Rows outside it are neither read nor written. The first axis of the outputs is time.
    """

    def step(i: Int[Array, ""], carry: tuple[PyTree, Output]) -> tuple[PyTree, Output]:
        state, out = carry
        state, seen = one(state, i)
        return state, added(lambda rows, row: put(rows, row, i), out, seen)

    if long and not unavailable():
        one = with_long_reductions(one, state, FIRST)
    low, high = np.array([0, capacity], np.int32) if span is None else (span[0], span[1])
    shapes = jax.eval_shape(one, state, FIRST)[1]
    return lax.fori_loop(low, high, step, (state, nothing(shapes, capacity)))


def nothing(seen: Output, capacity: int, rounds: int = 0) -> Output:
    """The output before the first of `capacity` rounds.

    seen: the shapes of the output of a round; or of `rounds` rounds, if that is not 0.
    """
    own = lambda leaf: leaf.shape[1:] if rounds else leaf.shape
    rows = lambda leaf: jnp.zeros((capacity, *own(leaf)), leaf.dtype)
    paid, kept = jax.tree.map(rows, (seen.sums, seen.records))
    return Output(
        paid, kept, None if seen.nonfinite is None else jnp.zeros(seen.nonfinite.shape, bool)
    )


def added(write: Callable[[Array, Array], Array], out: Output, seen: Output) -> Output:
    """The output of a chunk, with that of more rounds; `write` puts their rows in their place."""
    paid, kept = jax.tree.map(write, (out.sums, out.records), (seen.sums, seen.records))
    return Output(paid, kept, jax.tree.map(jnp.logical_or, out.nonfinite, seen.nonfinite))


FIRST = jax.ShapeDtypeStruct((), jnp.int32)  # the number of a round


def at(tree: PyTree, i: Int[Array, ""]) -> PyTree:
    """Entry `i` of every leaf; `i` is not negative, which saves a comparison."""
    take = functools.partial(
        lax.dynamic_index_in_dim, index=i, keepdims=False, allow_negative_indices=False
    )
    return arrays_map(lambda leaf: leaf.row(i) if isinstance(leaf, View) else take(leaf), tree)


def put(rows: Array, row: Array, i: Int[Array, ""]) -> Array:
    """The array with another entry `i`, which is not negative."""
    return lax.dynamic_update_index_in_dim(rows, row, i, 0, allow_negative_indices=False)


def alone(function: Callable, *_: object) -> Callable:
    """Used in place of `jax.vmap` for a single configuration, which has no axis."""
    return function


def explain_width(owner: str, configurations: int) -> None:
    """Print how to fill an accelerator, if few configurations are played on one."""
    if accelerated() and configurations < tuning.LAUNCH_CONFIGURATIONS:
        print(
            f"{owner}: a round launches kernels for {configurations:,} "
            f"configuration{'s' * (configurations > 1)}; to fill the device, play thousands of "
            "configurations or seeds by one `olx.sweep`, copies by `olx.boosting.boost`, or wide "
            "rows; a single narrow learner is often faster on the CPU (JAX_PLATFORMS=cpu)."
        )
