"""Descriptions that tell runs apart, the same in every process."""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds
from olx.engine.collect import data_of
from olx.keep import Keep, rounds_kept


def describe(
    learner: Learner, loss: Loss, state: PyTree, first: Rounds, keep: Keep | None, traced: Any
) -> dict[str, str]:
    """A word or a digest for each part of a run.

    first: a piece of the stream; only its dtypes and shapes are used.
    traced: the program; it distinguishes functions of the same name and contains the arrays that
        they close over.
    """
    return {
        "learner": digest(learner),
        "loss": digest(loss),
        "start": digest(state),
        "stream": _named([(leaf.dtype, leaf.shape[1:]) for leaf in jax.tree.leaves(first)]),
        "record": _named(traced.out_info[1]),
        "keep": _named(keep),
        "dtype": str(jnp.zeros(()).dtype),
        "program": _program(traced.jaxpr),
        "jax": f"{jax.__version__} on {jax.default_backend()}",
    }


def marks_of(keep: Keep | None, rounds: int) -> bytes:
    """A digest of which of the first `rounds` rounds are kept."""
    marks = np.zeros(0, int) if keep is None else rounds_kept(keep, 0, rounds)
    return hashlib.sha256(marks.astype(np.int64).tobytes()).digest()


def numbered(tree: PyTree) -> list[tuple[str, np.ndarray]]:
    """The leaves with their numbers; random keys are converted to their data."""
    return [(str(i), np.asarray(data_of(leaf))) for i, leaf in enumerate(jax.tree.leaves(tree))]


def digest(tree: PyTree) -> str:
    """A digest of the structure and of all numbers."""
    found = hashlib.sha256(_named(jax.tree.structure(tree)).encode())
    for _, leaf in numbered(tree):
        _update(found, leaf)
    return found.hexdigest()[:16]


def _program(closed: Any) -> str:
    digest = hashlib.sha256(_named(closed).encode())
    for constant in _constants(closed):
        _update(digest, np.asarray(data_of(constant)))
    return digest.hexdigest()[:16]


def _constants(program: Any) -> Iterator[Any]:
    """The constant arrays of a program and of its inner programs; its text does not show them."""
    yield from getattr(program, "consts", ())
    for equation in getattr(program, "jaxpr", program).eqns:
        yield from (atom.val for atom in equation.invars if hasattr(atom, "val"))
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _constants(inner)
            elif isinstance(inner, np.ndarray | jax.Array):
                yield inner


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns")


def _update(digest: Any, array: np.ndarray) -> None:
    digest.update(f"{array.dtype}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())


def _named(thing: Any) -> str:
    """`str(thing)` without memory addresses, since these differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(thing))
