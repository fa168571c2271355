"""Threads that play the shares of a sweep at the same time, by one compiled program.

The configurations are cut into shares of one width. The cut depends on the number of
configurations, the form of the program and the rounds, never on the number of threads or processes
that play the shares. So the numbers do not depend on it either. JAX releases the lock of the
interpreter while a program runs. A plain loop is not cut into shares: XLA spreads its operations
over the cores.
"""

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import PyTree

from olx import _check as check
from olx._refusal import RefusedValue
from olx.engine import tuning
from olx.engine.compile import Program
from olx.engine.device import data_of
from olx.engine.numbers import Leaves
from olx.engine.round import Output


class Shares(NamedTuple):
    """How many shares of how many configurations; the last one may repeat a configuration."""

    configurations: int
    shares: int = 1
    width: int = 1  # configurations per share
    axes: Any = 0  # where the axis of configurations is in the state, as for `jax.vmap`
    of: int = 0  # the configurations of all processes, if these shares are those of one process


ALONE = Shares(1)


def shares_of(configurations: int, least: int, work: int, axes: PyTree = 0) -> Shares:
    """Equal shares, each of at least `least` configurations; one share if there is little work.

    Their number is a power of two where that fits, so that most numbers of threads divide it.

    work: about how many numbers the first piece of the stream changes, over all configurations.
    """
    if work < tuning.SHARES_WORK:
        return Shares(configurations)
    wide = min(configurations // tuning.SHARES_CONFIGURATIONS, tuning.SHARES_MOST)
    most = max(tuning.SHARES, wide)
    shares = 1 << max(min(configurations // least, most).bit_length() - 1, 0)
    width = -(-configurations // shares)
    return Shares(configurations, -(-configurations // width), width, axes)


@functools.partial(jax.jit, static_argnums=0)
def split(cut: Shares, state: PyTree, own: list) -> tuple[list, list]:
    """The shares of the states and of the numbers of the learners."""
    short = cut.shares * cut.width - cut.configurations

    def share(i: int, leaf: Any, axis: int) -> Any:
        start, end = i * cut.width, min((i + 1) * cut.width, cut.configurations)
        part = lax.slice_in_dim(leaf, start, end, axis=axis)
        again = [lax.slice_in_dim(leaf, end - 1, end, axis=axis)] * short
        return jnp.concatenate([part, *again], axis) if end - start < cut.width else part

    each = range(cut.shares)
    states = [_over(functools.partial(share, i), cut.axes, state) for i in each]
    return states, [[share(i, leaf, 0) for leaf in own] for i in each]


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def part(cut: Shares, start: int, stop: int, state: PyTree, own: list) -> tuple[PyTree, list]:
    """The states and the numbers of the configurations from `start` on, before `stop`."""
    take = lambda leaf, axis: lax.slice_in_dim(leaf, start, stop, axis=axis)
    return _over(take, cut.axes, state), [take(leaf, 0) for leaf in own]


def axes_of(axes: PyTree, state: PyTree) -> PyTree:
    """The axis of configurations of each leaf."""
    return _over(lambda _, axis: axis, axes, state)


@functools.partial(jax.jit, static_argnums=0)
def join(cut: Shares, states: list) -> PyTree:
    """The states of all configurations."""

    def join(axis: int, *leaves: Any) -> Any:
        return lax.slice_in_dim(jnp.concatenate(leaves, axis), 0, cut.configurations, axis=axis)

    return jax.tree.map(join, axes_of(cut.axes, states[0]), *states)


def _over(function: Callable, axes: PyTree, state: PyTree) -> PyTree:
    """`function` of each leaf and its axis; `axes` is a prefix of `state`."""
    under = lambda axis, tree: jax.tree.map(lambda leaf: function(leaf, axis), tree)
    return jax.tree.map(under, axes, state)


_OF_ONE_THREAD = ("jax_debug_nans", "jax_debug_infs")  # checks that other threads would not make


def threads_of(threads: int | None) -> int:
    """How many threads play: `threads`, else OLX_THREADS, else as many as there are cores."""
    if threads is not None:
        check.count("threads", threads)
        return int(threads)
    asked = os.environ.get("OLX_THREADS", "").strip()
    if not asked:
        usable = getattr(os, "sched_getaffinity", None)  # not on all systems
        return len(usable(0)) if usable else os.cpu_count() or 1
    if not (asked.isascii() and asked.isdecimal()) or int(asked) < 1:
        raise RefusedValue(
            f"the environment variable OLX_THREADS must be an integer of at least 1, got "
            f"{asked!r}; unset it to use all cores."
        )
    return int(asked)


class ThreadedSweep:
    """Threads that play the shares, and the states of the shares.

    Each thread has its own shares, and the caller goes on while they play. A team of one is the
    thread of the caller.
    """

    def __init__(self, cut: Shares, threads: int, state: PyTree, game: Leaves):
        alone = any(getattr(jax.config, name) for name in _OF_ONE_THREAD)
        self._cut, self._threads = cut, 1 if alone else min(threads, cut.shares)
        self._states, owns = split(cut, state, game.own)
        other = list(map(jnp.asarray, game.other))
        self._game, self._numbers = game, [(own, other) for own in owns]
        self._pools: list[ThreadPoolExecutor] = []
        self._compiled: dict[tuple, Callable] = {}  # by the shapes of a chunk; sparse ones may grow

    def choose(self, program: Program, width: int, *rest: PyTree) -> str:
        """Choose the form that plays a share, and say which; empty if it is the plain loop."""
        given, forms = (self._states[0], self._numbers[0]), program.forms(self._game)
        self._like = jax.tree.map(shape_of, given)
        self._form, path = forms.choose(width, *given, *rest)
        if self._form is forms.plain:
            return ""
        if self._threads > 1:
            self._pools = [ThreadPoolExecutor(1, "olx") for _ in range(self._threads)]
        many = "s" * (self._cut.shares > 1)
        of = f"{self._cut.shares} share{many} of {self._cut.width} configurations"
        return f"{path}, {of} on {self._threads} thread{'s' * (self._threads > 1)}"

    def __call__(
        self, _: "ThreadedSweep", __: tuple, *rest: PyTree
    ) -> tuple[tuple["ThreadedSweep", Any], None]:
        """Play a chunk, as a form of a `Program` does; its output is for `outputs_of`."""
        if not self._pools:
            played = self._play(self._form, 0, rest)
            return (self, _Output(self._cut, [lambda: played])), None
        rest = jax.device_put(rest)
        # Settings of JAX may be those of one thread: only the thread of the caller compiles.
        shapes = tuple(leaf.shape for leaf in jax.tree.leaves(rest))
        if shapes not in self._compiled:
            self._compiled[shapes] = self._form.lower(*self._like, *rest).compile()
        call = self._compiled[shapes]
        found = [pool.submit(self._finish, call, i, rest) for i, pool in enumerate(self._pools)]
        return (self, _Output(self._cut, [one.result for one in found])), None

    def whole(self) -> PyTree:
        """The state of all configurations, once all outputs were waited for."""
        return join(self._cut, self._states)

    def close(self) -> None:
        """Wait until no thread reads the rounds."""
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    def _play(self, call: Callable, thread: int, rest: tuple) -> list[Output]:
        """The outputs of the shares of a thread; the last one may still be computed."""
        outs = []
        for share in range(thread, self._cut.shares, self._threads):
            jax.block_until_ready(outs[-1:])  # else JAX could compute two at the same time
            (new, out), _ = call(self._states[share], self._numbers[share], *rest)
            self._states[share] = new
            outs.append(out)
        return outs

    def _finish(self, *what: Any) -> list[Output]:
        return jax.block_until_ready(self._play(*what))


class _Output(NamedTuple):
    """The output of a chunk, which the threads may still be computing."""

    cut: Shares
    found: list[Callable[[], list[Output]]]  # each waits for the outputs of a thread

    def parts(self) -> list[Output]:
        found = [wait() for wait in self.found]
        outs = [found[i % len(found)][i // len(found)] for i in range(self.cut.shares)]
        real = self.cut.configurations - (self.cut.shares - 1) * self.cut.width
        if real < self.cut.width:
            own = lambda leaf: np.asarray(data_of(leaf))[:, :real]
            paid, kept = jax.tree.map(own, (outs[-1].sums, outs[-1].records))
            outs[-1] = outs[-1]._replace(sums=paid, records=kept)
        return outs


def threaded_sweep(
    program: Program,
    width: int,
    cut: Shares,
    threads: int,
    state: PyTree,
    game: Leaves,
    *rest: PyTree,
) -> tuple[ThreadedSweep | None, str]:
    """The threads that play the shares, and in which form; None if a chunk is a plain loop."""
    team = ThreadedSweep(cut, threads, state, game)
    if path := team.choose(program, width, *rest):
        for leaf in jax.tree.leaves(state):  # as a program donates its state
            leaf.delete() if isinstance(leaf, jax.Array) else None
        return team, path
    if cut.of:  # one process would not cut, and then its bits are others
        raise RuntimeError("a chunk of this sweep is no kernel, but one of its rounds is one")
    return None, ""


def shape_of(leaf: Any) -> Any:
    """The shape and the dtype of an array, to compile for; a Python number as it is."""
    if isinstance(leaf, int | float):
        return leaf
    weak = getattr(leaf, "weak_type", False)  # a random key has none
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak)
