"""Compiled functions that forget old programs, and see what user functions read from outside.

JAX keeps the programs of a compiled function as long as the function lives, one for each structure
of its arguments, and a structure holds functions: a new loss is a new structure. A function of a
module lives as long as the process, so the programs of every loss that was ever played would stay.
Here a function is compiled anew for each structure, and the last ones of these are kept; JAX drops
the programs of the others with them.

A function of a user may read a global constant. If this changes, the function is compiled anew.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from olx._cache import Recent
from olx._readings import foreign_parts, visible_readings


def compiled(function: Callable, static: tuple[int, ...] = ()) -> Callable:
    """`jax.jit` of a function at module level, with the programs of its last structures only.

    static: the positions of the arguments that are part of the program; all are given by position.
    """
    programs: Recent[_Program] = Recent()

    @functools.wraps(function)
    def play(*given: object) -> Any:
        fixed = [given[i] for i in static]
        free = [one for i, one in enumerate(given) if i not in static] if static else given
        leaves, structure = jax.tree.flatten(free)
        key = structure, *fixed
        found = programs.get(key)
        if found is not None and not found.is_current:
            programs.drop(key)
            found = None
        if found is None:
            call = _of_leaves(function, static, fixed, structure)
            foreign = [part for one in key if _is_structure(one) for part in foreign_parts(one)]
            found = programs.put(key, _Program(call, foreign, visible_readings(foreign)))
        return found.call(leaves)

    return play


class _Program(NamedTuple):
    call: Callable  # of a list of leaves
    foreign: list[Any]  # the functions in the structures that are not of a library
    readings: tuple[object, ...]  # what these read, when this was made

    @property
    def is_current(self) -> bool:
        """Whether the functions still read the same."""
        return not self.foreign or visible_readings(self.foreign) == self.readings


def _is_structure(thing: object) -> bool:
    return isinstance(thing, jax.tree_util.PyTreeDef)


def _of_leaves(
    function: Callable, static: tuple[int, ...], fixed: list, structure: object
) -> Callable:
    """The function of the leaves of its arguments; JAX keeps its programs as long as it lives."""

    @functools.wraps(function)
    def of_leaves(leaves: list) -> Any:
        given = list(jax.tree.unflatten(structure, leaves))
        for i, one in zip(static, fixed, strict=True):  # in rising order
            given.insert(i, one)
        return function(*given)

    return jax.jit(of_leaves)


def call_once(function: Callable, *given: object) -> Any:
    """The result of the function, from a program that is not kept."""
    leaves, structure = jax.tree.flatten(given)
    return _of_leaves(function, (), [], structure)(leaves)


def result_shapes(function: Callable, *given: object) -> Any:
    """`jax.eval_shape`, for arguments that hold functions: JAX would keep their structure."""
    leaves, structure = jax.tree.flatten(given)
    return jax.eval_shape(_of_leaves(function, (), [], structure), leaves)
