r"""A round of sparse rows for learners that use the length of the whole state.

Such a learner plays the same in any orthogonal basis. So all coordinates where the row is zero act
like one extra coordinate with their common length, and an update multiplies all of them by one
factor. The engine plays the learner on the coordinates of the row and on this extra coordinate,
whose change gives the factor. The factor is one number for the whole table. It is multiplied into
the table before it becomes too large or too small. The squared length is updated by differences.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from olx import _sum
from olx.core import Feedback, Learner
from olx.engine.forms import Round, gathered, written
from olx.engine.protocol import revealed
from olx.engine.table import Layout, Packed, Whole, rows_of, state_of
from olx.streams.sparse_rows import LANES

_RANGE = 1e-3, 1e3  # of the common factor


def rotating(
    over: Callable, layout: Layout, packed: Packed, learner: Learner, now: Round
) -> tuple[Packed, Array, Array]:
    """The new table, and the score."""
    nothing = packed.table.shape[0] - 1
    index, x = now.row(nothing)
    lanes, x = gathered(packed.table, index), jnp.append(x, jnp.zeros((), x.dtype))

    def seen_by(lanes: Array, whole: Whole) -> Array:
        """The state on the coordinates of the row and on the extra one for all others."""
        own = lanes * whole.scale
        away = jnp.sqrt(jnp.maximum(whole.square.value - jnp.sum(own * own), 0.0))
        least = float(jnp.finfo(own.dtype).tiny) ** 0.8  # the factor divides by it; its square is 0
        return jnp.concatenate([own, jnp.maximum(away, least).reshape(1, 1)])

    def decide(learner: Learner, lanes: Array, rest: tuple, whole: Whole) -> Array:
        return learner.predict(state_of(layout, seen_by(lanes, whole), rest), x)

    def learn(learner: Learner, lanes: Array, rest: tuple, whole: Whole, score, value, grad):
        old = seen_by(lanes, whole)
        loss = revealed(now.loss, now.outcome)
        feedback = Feedback(x, score, now.outcome, loss, value, grad, now.weight)
        new = rows_of(layout, learner.update(state_of(layout, old, rest), feedback))
        factor, square = new.table[-1, 0] / old[-1, 0], lambda rows: jnp.sum(rows * rows)
        change = square(new.table[:-1]) - square(old[:-1])
        kept, afresh = _sum.add(whole.square, change), _sum.start(square(new.table))
        squares = jax.tree.map(lambda a, b: jnp.where(factor == 1, a, b), kept, afresh)
        scale, (low, high) = whole.scale * factor, _RANGE
        folds = jnp.isfinite(scale) & ((scale < low) | (scale > high))
        after = jnp.where(folds, 1.0, scale)
        rows = Packed(new.table[:-1] / after, new.rest, Whole(after, squares))
        return rows, jnp.where(folds, scale, 1.0)

    def fold(row: Int[Array, ""], table: Array) -> Array:
        return lax.dynamic_update_index_in_dim(
            table, lax.dynamic_index_in_dim(table, row) * into, row, 0
        )

    def write(block: Int[Array, ""], table: Array) -> Array:
        part = lambda leaf: lax.dynamic_slice_in_dim(leaf, block * LANES, LANES)
        return written(table, part(index), part(new.table))

    score = over(decide, (0, 2, 0, 0))(learner, lanes, packed.rest, packed.whole)
    value, grad = over(now.slope)(score)
    teach = over(learn, (0, 2, 0, 0, 0, 0, 0), (Packed(2, 0, 0), 0))
    new, into = teach(learner, lanes, packed.rest, packed.whole, score, value, grad)
    rows = jnp.where(jnp.any(into != 1), nothing + 1, 0)
    table = lax.fori_loop(0, rows, fold, packed.table)
    table = lax.fori_loop(0, now.last - now.first, write, table)
    return Packed(table, new.rest, new.whole), score, now.room
