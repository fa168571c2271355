r"""One program for a chunk of rounds, as one native function where the compiler can be asked for it.

XLA on the CPU pays 100 ns and more for every kernel of every round. It can emit a whole loop as one
native function instead, which is what a hand-written loop would be; it is asked to by an attribute
on the call of the loop. That attribute is not documented, so it is used on the CPU only, tried once
on a small program, and given up for the plain loop whenever the compiler refuses, as it does for
sorts, factorizations and scatters. The numbers are the same either way.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

_ATTRIBUTES = {"xla_cpu_small_call": "true", "inlineable": "false"}
_UNFIT = {"sort", "scatter", "scatter-add", "cholesky", "eigh", "lu", "qr", "svd", "triangular_solve"}
_WIDE = 64  # from this width on, splitting a reduction into a tree costs more than it saves


class Program:
    """A function compiled as one kernel where it can be; its first argument is donated.

    `choose` settles, once for arguments of one kind, which form to call.
    """

    def __init__(self, function: Callable, share: Callable = lambda function: function):
        """share: spreads a function over devices; the kernel is what each of them runs."""
        self.function = function
        self._plain = jax.jit(share(function), donate_argnums=0)
        self._narrow = _one_kernel(function, share, ["dot-library-rewriter"])
        disabled = ["dot-library-rewriter", "tree_reduction_rewriter"]
        self._wide = _one_kernel(function, share, disabled)
        self._refusals: dict[Any, str] = {}

    def choose(self, width: int, *arguments: Any) -> tuple[Callable, str]:
        """The form to call for such arguments, and in words which one it is and why.

        width: how long the reductions of a round are.
        """
        if reason := unavailable():
            return self._plain, f"plain loop: {reason}"
        leaves, structure = jax.tree.flatten(arguments)
        kind = structure, tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
        fast = self._wide if width >= _WIDE else self._narrow
        if kind not in self._refusals:
            self._refusals[kind] = _refusal(fast, arguments)
        if reason := self._refusals[kind]:
            return self._plain, f"plain loop: {reason}"
        return fast, "one kernel"


@functools.cache
def unavailable() -> str:
    """Why the one-kernel form is not to be used here; empty if it is."""
    if jax.default_backend() != "cpu":
        return f"one kernel is for the CPU, this is {jax.default_backend()}"
    probe = lambda carry, xs: lax.scan(lambda c, x: (c + jnp.vdot(x, c) * x, c[0]), carry, xs)
    carry, xs = jnp.ones(4), jnp.ones((3, 4))
    wanted = jax.jit(probe)(carry, xs)
    try:
        seen = _one_kernel(probe, lambda function: function, ["dot-library-rewriter"])(carry + 0, xs)
    except Exception as error:
        return f"this version of jax does not take the attribute ({type(error).__name__})"
    same = jax.tree.map(lambda a, b: bool(np.allclose(a, b)), wanted, seen)
    return "" if all(jax.tree.leaves(same)) else "one kernel gave other numbers on a probe"


def _one_kernel(function: Callable, share: Callable, disabled: list[str]) -> Any:
    inner = jax.jit(function)
    return jax.jit(
        share(lambda *arguments: set_xla_metadata(inner(*arguments), **_ATTRIBUTES)),
        compiler_options={"xla_disable_hlo_passes": ",".join(disabled)},
        donate_argnums=0,
    )


def _refusal(fast: Any, arguments: tuple) -> str:
    """Why the compiler refuses; empty if it does not. Compiling here fills the cache of `fast`."""
    traced = fast.trace(*arguments)
    if unfit := _UNFIT & _primitives(traced.jaxpr.jaxpr):
        return f"a round holds {', '.join(sorted(unfit))}, which has no place in one kernel"
    try:
        traced.lower().compile()
    except jax.errors.JaxRuntimeError as error:
        return f"the compiler refuses one kernel ({str(error).splitlines()[0][:100]})"
    return ""


def _primitives(jaxpr: Any) -> set[str]:
    """The names of all operations, those of inner programs included."""
    names = set()
    for equation in jaxpr.eqns:
        names.add(equation.primitive.name)
        for inner in jax.core.jaxprs_in_params(equation.params):
            names |= _primitives(inner)
    return names
