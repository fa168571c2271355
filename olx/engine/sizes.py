"""A round of sparse rows at the cost of its own row, for forms that need a row of known length.

Such a form pads a row to a fixed number of blocks. One number for all rows would be that of the
widest row, and in text the widest row is often a hundred times as wide as the others. So there are
a few sizes, each some times the one before, and a round uses the smallest one that holds its row.
The choice is made by loops of one step or none: they work in place and inside one kernel.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from olx.core import Learner
from olx.engine.forms import Form, Round
from olx.engine.table import Layout, Packed

_FIRST, _GROWTH = 8, 8  # blocks; each size is one more program to compile
_WORTH = 4  # how many times a size the widest row must be for the size to be used


def sizes(widest: int) -> list[int]:
    """The numbers of blocks to which rows are padded; the last is `widest`."""
    found = []
    while _WORTH * (size := _FIRST * _GROWTH ** len(found)) <= widest:
        found.append(size)
    return [*found, widest]


def by_size(form: Form) -> Form:
    """The same form, on rows padded to one of a few sizes."""

    def played(
        over: Callable, layout: Layout, packed: Packed, learner: Learner, now: Round
    ) -> tuple[Packed, Array, Array]:
        widest, known = now.rows.widest, sizes(now.rows.widest.size)
        if len(known) == 1:
            return form(over, layout, packed, learner, now)
        length = now.last - now.first

        def at(size: int, packed: Packed, room: Array) -> tuple[Packed, Array, Array]:
            rows = now.rows._replace(widest=widest[:size])
            return form(over, layout, packed, learner, now._replace(rows=rows, room=room))

        def once(size: int, _: Int[Array, ""], carry: tuple) -> tuple[Packed, Array, Array]:
            return at(size, carry[0], carry[2])

        score = jax.eval_shape(lambda: at(known[0], packed, now.room))[1]
        carry = packed, jnp.zeros(score.shape, score.dtype), now.room
        for below, size in zip([-1, *known[:-1]], known, strict=True):
            fits = (length > below) & (length <= size)
            carry = lax.fori_loop(0, fits.astype(int), jax.tree_util.Partial(once, size), carry)
        return carry

    return played
