"""Cut the configurations of a sweep into shares of one width.

The cut depends on the number of configurations, the form of the program and the rounds, never on
the number of threads or processes that play the shares. So the numbers do not depend on it either.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import PyTree

_MOST = 8  # shares; more of them cost more than they gain, since each is a call per chunk,
_WIDE = 2048  # but for those of so many configurations, whose states leave the cache,
_LIMIT = 64  # up to so many
_WORK = 1 << 23  # numbers: about 5 ms; to cut and to join takes about 2 ms


class Cut(NamedTuple):
    """How many shares of how many configurations; the last one may repeat a configuration."""

    configurations: int
    shares: int = 1
    width: int = 1  # configurations per share
    axes: Any = 0  # where the axis of configurations is in the state, as for `jax.vmap`
    of: int = 0  # the configurations of all processes, if these shares are those of one process


ALONE = Cut(1)


def cut_of(configurations: int, least: int, work: int, axes: Any = 0) -> Cut:
    """Equal shares, each of at least `least` configurations; one share if there is little work.

    Their number is a power of two where that fits, so that most numbers of threads divide it.

    work: about how many numbers the first piece of the stream changes, over all configurations.
    """
    if work < _WORK:
        return Cut(configurations)
    most = max(_MOST, min(configurations // _WIDE, _LIMIT))
    shares = 1 << max(min(configurations // least, most).bit_length() - 1, 0)
    width = -(-configurations // shares)
    return Cut(configurations, -(-configurations // width), width, axes)


@functools.partial(jax.jit, static_argnums=0)
def shared(cut: Cut, state: PyTree, own: list) -> tuple[list, list]:
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
def part(cut: Cut, start: int, stop: int, state: PyTree, own: list) -> tuple[PyTree, list]:
    """The states and the numbers of the configurations from `start` on, before `stop`."""
    take = lambda leaf, axis: lax.slice_in_dim(leaf, start, stop, axis=axis)
    return _over(take, cut.axes, state), [take(leaf, 0) for leaf in own]


def axes_of(axes: Any, state: PyTree) -> PyTree:
    """The axis of configurations of each leaf."""
    return _over(lambda _, axis: axis, axes, state)


@functools.partial(jax.jit, static_argnums=0)
def joined(cut: Cut, states: list) -> PyTree:
    """The states of all configurations."""

    def join(axis: int, *leaves: Any) -> Any:
        return lax.slice_in_dim(jnp.concatenate(leaves, axis), 0, cut.configurations, axis=axis)

    return jax.tree.map(join, axes_of(cut.axes, states[0]), *states)


def _over(function: Callable, axes: Any, state: PyTree) -> PyTree:
    """`function` of each leaf and its axis; `axes` is a prefix of `state`."""
    under = lambda axis, tree: jax.tree.map(lambda leaf: function(leaf, axis), tree)
    return jax.tree.map(under, axes, state)
