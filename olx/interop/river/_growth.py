"""States that grow with the number of features and of classes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx._cache import Recent
from olx.interop.river._programs import LEAD, Packing, Programs, programs

_WIDTHS = 2, 5
_SEEN: Recent[bool] = Recent()  # what was tried, by learner and loss


def put(before: Packing, now: Packing, small: tuple, large: tuple) -> tuple:
    """The state `small` in the room of the state `large`; what is new stays as it is in `large`."""

    def one(old: Any, new: Any) -> Any:
        if _is_key(old):
            return old
        new = np.array(new)
        new[tuple(map(slice, np.shape(old)))] = np.asarray(old)
        return new

    return now.pack(jax.tree.map(one, before.unpack(*small), now.unpack(*large)))


def copied(before: Packing, now: Packing, state: tuple) -> tuple:
    """The stacked states of more copies; each new one is a copy of the last."""

    def one(old: Any, shape: tuple[int, ...]) -> Any:
        more = shape[0] - np.shape(old)[0]
        return jnp.concatenate([old, jnp.repeat(old[-1:], more, 0)])

    shapes = jax.tree.unflatten(now.structure, [shape for shape, _ in now.kinds])
    return now.pack(jax.tree.map(one, before.unpack(*state), shapes))


def grows(packing: Packing, own: tuple, rows: int | None, labels: bool) -> bool:
    """Whether features that are always 0 change nothing, in the start and in a few rounds.

    packing, own: of the learner and the loss.
    """
    numbers = (np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(own) if not _is_key(leaf))
    key = packing, *numbers, rows, labels
    found = _SEEN.get(key)
    return _SEEN.put(key, _tried(packing, own, rows, labels)) if found is None else found


def _tried(packing: Packing, own: tuple, rows: int | None, labels: bool) -> bool:
    """Play a few rounds with few and with more features."""
    lead = () if rows is None else (rows,)
    before, now = (programs(packing, (*lead, width), labels) for width in _WIDTHS)
    if not _nested(before.packing, now.packing):
        return False
    drawn = np.random.default_rng(0).normal(size=(3, LEAD + _WIDTHS[1]))
    drawn[:, 0] = np.arange(3) % 2 if labels else 1.0
    drawn[:, 1] = 1.0
    drawn[:, LEAD + _WIDTHS[0] :] = 0.0
    small, large = before.start(own), now.start(own)
    fresh = large
    for _ in range(2):  # the second time, every coordinate has moved
        seen = put(before.packing, now.packing, small, fresh), large
        if not all(jax.tree.leaves(jax.tree.map(_near, *seen))):
            return False
        small = before.block(own, small, drawn[:, : LEAD + _WIDTHS[0]])
        large = now.block(own, large, drawn)
    scores = before.many(own, small, drawn[:, : LEAD + _WIDTHS[0]]), now.many(own, large, drawn)
    seen = put(before.packing, now.packing, small, fresh), large
    return all(jax.tree.leaves(jax.tree.map(_near, (seen[0], scores[0]), (seen[1], scores[1]))))


def starts_alike(before: Programs, now: Programs, own: PyTree, other: PyTree) -> bool:
    """Whether the start of a learner with more rows of weights begins with that of fewer rows."""
    if not _nested(before.packing, now.packing):
        return False
    fresh = now.start(other)
    seen = put(before.packing, now.packing, before.start(own), fresh), fresh
    return all(jax.tree.leaves(jax.tree.map(_near, *seen)))


def kept(leaf: Any) -> Any:
    """A leaf as NumPy holds it: JAX would read float64 from a pickle as float32."""
    return leaf if _is_key(leaf) else np.asarray(leaf)


def _nested(small: Packing, large: Packing) -> bool:
    """Whether every array of a state fits into that of a larger one."""
    if small.structure != large.structure:
        return False
    fits = lambda a, b: len(a) == len(b) and all(i <= j for i, j in zip(a, b, strict=True))
    pairs = zip(small.kinds, large.kinds, strict=True)
    return all(fits(one, two) for (one, _), (two, _) in pairs)


def _near(one: Any, two: Any) -> bool:
    return _is_key(one) or np.allclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
