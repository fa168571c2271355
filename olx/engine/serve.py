"""A trained learner in use: `predict` on many rows, `step` for live feedback."""

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._cache import Recent, cached
from olx._compiled import compiled
from olx._pytree import as_tree
from olx._refusal import RefusedType, RefusedValue, public
from olx.core import Batch, Learner, Loss, Rounds, Run, Scalar
from olx.engine import round, tuning
from olx.engine.arguments import check_game, check_state
from olx.engine.decision import start_like
from olx.engine.explain import errors_explained
from olx.engine.host_step import host_step
from olx.engine.numbers import Leaves, Numbers, Structure, has_numbers, numbers_of, refuse_tracers
from olx.engine.round import cast_context, feedback_of
from olx.engine.sparse_chunks import Entries, SparseChunks
from olx.engine.sparse_layout import Layout, dense, layout_of, packer, state_of
from olx.frameworks.lift import as_linear, is_affine
from olx.needs import refuse_breach
from olx.streams.arrays import rows_with_ones
from olx.streams.checks import (
    check_kind,
    is_array,
    is_plain,
    is_traced,
    judge,
    on_host,
    refuse_stranger,
)
from olx.streams.finite import check_finite, widest_float
from olx.streams.sparse_rows import SparseRows, sparse_rows

_INSIDE = "reads its rows in pieces", "`jax.vmap(learner.predict, (None, 0))(state, rows)` can"


@public
def predict(learner: Learner, state: PyTree, contexts: PyTree) -> PyTree:
    """The action of a learner in `state` for each of many contexts, as NumPy arrays.

    state: as a run returned it; it does not change.
    contexts: an array or a pytree of arrays with a leading axis of rows, a memory map, or sparse
        rows (`olx.streams.sparse_rows` or a SciPy matrix). Rows are read in pieces.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=500, features=3)
    >>> learner = olx.linear(olx.ogd(0.05))
    >>> run = olx.run(learner, olx.losses.squared, rounds, jnp.zeros(3))
    >>> olx.predict(learner, run.state, rounds.context[:2]).shape
    (2,)
    """
    if isinstance(learner, Batch):
        raise RefusedType("`learner` is a batch; give one of its learners, as in batch[0].")
    check.instance("learner", learner, Learner)
    refuse_tracers(jax.tree.leaves((state, contexts)), *_INSIDE)
    if hasattr(contexts, "tocsr"):
        contexts = sparse_rows(contexts)
    if isinstance(contexts, SparseRows) and is_affine(learner):
        learner, contexts = as_linear(learner), rows_with_ones(contexts)
    length = _check_rows(contexts)
    if isinstance(state, Run):
        check_state(state, ())
    refuse_breach(state)
    state = jax.tree.map(jnp.asarray, state)
    if isinstance(contexts, SparseRows):
        return _sparse(learner, state, contexts)
    row = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), contexts)
    start = start_like(learner, state, row)
    size = max(sum(leaf.nbytes for leaf in jax.tree.leaves(contexts)) // length, 1)
    step = _rows_per_call(length, size)
    pieces = []
    for begin in range(0, length, step):
        part = jax.tree.map(lambda leaf: np.asarray(leaf[begin : begin + step]), contexts)  # noqa: B023
        _check_finite(part, begin)
        pieces.append(_played(learner, state, start, part, step))
    return _joined(pieces)


def _sparse(learner: Learner, state: PyTree, rows: SparseRows) -> PyTree:
    check_finite("contexts", rows, 0)
    row = jax.ShapeDtypeStruct(rows.shape[1:], rows.dtype)
    start = start_like(learner, state, row)
    layout = None if start is None else _layout(learner, start, rows)
    if layout is None or layout.aggregates:  # a sum over all coordinates needs the whole state
        parts = [one.context for one in dense(Rounds(rows, np.zeros(rows.shape[0])))]
        return _joined([predict(learner, state, part) for part in parts])
    packed = jax.jit(packer(layout))(state)
    widest = int(np.max(np.diff(rows.pointers), initial=1))
    step = _rows_per_call(rows.shape[0], 16 * widest)
    chunks, pieces = SparseChunks(step, packed.table.dtype, owned=True), []
    for low, high in chunks.windows(rows, 0):
        action = _gathered(layout, learner, packed.table, packed.rest, chunks.chunk(low, high))
        pieces.append(_first(action, high - low))
    return _joined(pieces)


def _rows_per_call(length: int, row: int) -> int:
    """How many of `length` rows, of `row` bytes each, are played at a time."""
    enough = 1 << (length - 1).bit_length()
    return max(1, min(tuning.PREDICT_ROWS, tuning.PREDICT_BYTES // row, enough))


def _layout(learner: Learner, start: PyTree, rows: SparseRows) -> Layout | None:
    try:
        return layout_of(learner, start, rows, batched=False)
    except TypeError:  # this learner plays dense rows only
        return None


@functools.partial(compiled, static=(0,))
def _gathered(layout: Layout, learner: Learner, table: Any, rest: tuple, rows: Entries) -> PyTree:
    """Predictions from the coordinates of each row alone."""
    nothing = table.shape[0] - 1

    def one(first: Any, last: Any) -> PyTree:
        index, x = rows.row(first, last, nothing)
        return learner.predict(state_of(layout, table[index], rest), x)

    return jax.vmap(one)(rows.pointers[:-1], rows.pointers[1:])


@compiled
def _dense(learner: Learner, state: PyTree, start: PyTree, rows: PyTree) -> PyTree:
    fit = (lambda x: x) if start is None else (lambda x: cast_context(x, start))
    return jax.vmap(lambda x: learner.predict(state, fit(x)))(rows)


def _played(learner: Learner, state: PyTree, start: PyTree, part: PyTree, size: int) -> PyTree:
    """The actions of one piece; it is padded to `size` rows, so that all pieces share a program."""
    count = jax.tree.leaves(part)[0].shape[0]
    fill = lambda leaf: np.concatenate([leaf, np.repeat(leaf[-1:], size - count, 0)])
    part = part if count == size else jax.tree.map(fill, part)
    return _first(_dense(learner, state, start, part), count)


def _first(action: PyTree, count: int) -> PyTree:
    """The actions of the first rows, on the host; those of a traced learner are traced."""
    refuse_tracers(jax.tree.leaves(action), *_INSIDE)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], action)


def _joined(pieces: list[PyTree]) -> PyTree:
    return jax.tree.map(lambda *parts: np.concatenate(parts), *pieces)


def _check_rows(contexts: PyTree) -> int:
    if isinstance(contexts, Rounds):
        raise RefusedType("`contexts` is a Rounds; give its rows, as `rounds.context`.")
    if isinstance(contexts, list):
        raise RefusedType("`contexts` is a list; give an array, as np.array(contexts).")
    leaves = jax.tree_util.tree_leaves_with_path(contexts)
    if not leaves:
        raise RefusedType("`contexts` holds no array; give one row per prediction.")
    for path, leaf in leaves:
        name = f"contexts{jax.tree_util.keystr(path)}"
        refuse_stranger(name, leaf)
        check_kind(name, leaf)
        if np.ndim(leaf) == 0:
            raise RefusedType(f"{name} is a scalar; give it a leading axis of rows.")
    lengths = {np.shape(leaf)[0] for _, leaf in leaves}
    if len(lengths) > 1:
        raise RefusedType(f"leaves of `contexts` differ in length ({sorted(lengths)}).")
    if lengths == {0}:
        raise RefusedValue("`contexts` is empty.")
    return lengths.pop()


def _check_finite(part: PyTree, begin: int) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(part):
        check_finite(f"contexts{jax.tree_util.keystr(path)}", leaf, begin)


class Step(NamedTuple):
    """The result of one round."""

    state: PyTree  # after the round
    action: PyTree  # what the learner played
    loss: Array  # what it paid


@public
def step(
    learner: Learner,
    loss: Loss,
    state: PyTree,
    context: PyTree,
    outcome: PyTree,
    weight: Scalar = 1.0,
) -> Step:
    """Play one round: the learner acts on `context`, pays for `outcome`, and learns.

    It plays the round of `olx.run`. To know the action before the outcome, use `olx.predict` or
    `learner.predict`. With a small state it is played by NumPy where that is possible, and the
    leaves of the result are of NumPy; else it is compiled once per learner, loss and shape.

    loss: a named function, so that it is not traced again in every call.

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.linear(olx.ogd(0.1))
    >>> state = learner.init(jnp.zeros(2))
    >>> for x, y in [([1.0, 0.0], 2.0), ([1.0, 1.0], 3.0)]:
    ...     state, action, paid = olx.step(learner, olx.losses.squared, state, jnp.array(x), y)
    ...     print(f"{float(action):.2f}, {float(paid):.2f}")
    0.00, 2.00
    0.20, 3.92
    """
    given = (state, context, outcome, weight)
    played = host_step(learner, loss, given, _play, lambda: _begin(learner, loss, given))
    if played is not None:
        return played
    if is_traced(given) or _is_traced(learner, loss):
        return _round(learner, as_tree(loss), None, *given)
    game = numbers_of(learner, loss, check_game)
    _check_kinds(given[1:])
    one = Rounds(*jax.tree.map(_row, given[1:]))
    play = _play_of(game, state, one.context)
    _judge(game, play, one)
    try:
        played = play.program([*game.leaves.own, *game.leaves.other], *given)
    except (TypeError, ValueError, AttributeError) as error:
        _explain(error, game, play, state, one)
        raise
    refuse_breach(played.state)
    return played


def _is_traced(learner: Learner, loss: Loss) -> bool:
    return not has_numbers(learner, loss, check_game) and is_traced(learner)


def _begin(learner: Learner, loss: Loss, given: tuple) -> tuple[Numbers, PyTree] | None:
    """The numbers of a game, and what has the shape of its decision; None if it is traced."""
    if _is_traced(learner, loss):
        return None
    game = numbers_of(learner, loss, check_game)
    _check_kinds(given[1:])
    return game, _play_of(game, given[0], jax.tree.map(_row, given[1])).start


class Play(NamedTuple):
    """What does not change between the rounds of a game, for rows and states of one shape."""

    start: PyTree  # of the shape of the decision
    decision: Any  # its dtype
    most: float  # the sum of the squares of numbers that surely fit into that dtype
    program: Callable[..., Step]


_SEEN: Recent[Play] = Recent()


def _play_of(game: Numbers, state: PyTree, rows: PyTree) -> Play:
    """rows: the context as arrays with a leading axis."""
    leaves, tree = jax.tree.flatten((state, rows))
    kinds = [(leaf.shape, leaf.dtype) for leaf in leaves if is_array(leaf)]
    key = game.leaves.structure, tree, *kinds
    found = _SEEN.get(key)
    if found is not None:
        return found
    start = None if rows is None else start_like(game.learner, state, _kinds(rows))
    decision = widest_float(state)
    largest = float(jnp.finfo(jnp.float32 if decision is None else decision).max)
    most = min(largest * largest, sys.float_info.max)
    program = _program(game.leaves.structure, *_shape_of(start))
    return _SEEN.put(key, Play(start, decision, most, program))


def _check_kinds(given: tuple) -> None:
    """Refuse what is not real numbers, and more than one weight."""
    context, outcome, weight = given
    plain = all(type(leaf) is float or is_plain(leaf) for leaf in jax.tree.leaves(given))
    if plain and np.ndim(weight) == 0:
        return
    for path, leaf in jax.tree_util.tree_leaves_with_path(Rounds(context, outcome, weight)):
        name = jax.tree_util.keystr(path)[1:]
        refuse_stranger(name, leaf, "give one dense row, as `row.toarray()[0]`")
        check_kind(name, leaf)
    if np.ndim(weight):
        raise RefusedType(f"weight has shape {np.shape(weight)}; give one number.")


@cached
def _program(structure: Structure, tree: PyTree, kinds: tuple) -> Callable[..., Step]:
    """The compiled round of all learners and losses of one structure.

    A call with a flat list of numbers takes half the time of one with the learner itself.
    tree, kinds: the result of `_shape_of`.
    """
    start = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*kind) for kind in kinds])
    count = structure.learner.num_leaves

    def play(leaves: list, *rest: Any) -> Step:
        game = Leaves(leaves[:count], leaves[count:], structure)
        return _play(*game.parts(), start, *rest)

    return jax.jit(play)


def _shape_of(start: PyTree) -> tuple[Any, tuple]:
    leaves, tree = jax.tree.flatten(start)
    return tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def _judge(game: Numbers, play: Play, one: Rounds) -> None:
    """Refuse a bad round; a round has no number here, and its parts are arguments."""
    try:
        if not _is_fine(game, play, one):
            judge(game.needs, play.start, one, decision=play.decision)
    except (TypeError, ValueError) as error:
        said = str(error).replace("rounds.", "").replace(" at row 0, column", " at entry")
        kind = RefusedType if isinstance(error, TypeError) else RefusedValue
        raise kind(said.replace(" at row 0", "")) from None


def _explain(first: Exception, game: Numbers, play: Play, state: PyTree, one: Rounds) -> None:
    """Say why a round cannot be played, if that can be found out."""
    if one.context is not None:
        start_like(game.learner, state, _kinds(one.context))
    try:
        both = game.learner, game.loss
        errors_explained(*both, play.start, one, state=state).raise_found(first)
    except TypeError as error:
        raise RefusedType(str(error).replace("rounds.", "")) from error.__cause__


def _kinds(rows: PyTree) -> PyTree:
    """The shapes and dtypes of a row."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), rows)


def _is_fine(game: Numbers, play: Play, one: Rounds) -> bool:
    """A fast test; False if the round must be looked at closely."""
    for need, own in game.needs:
        legal = need.legal_fn(own, play.start, one)
        if not all(np.all(mask) for mask in jax.tree.leaves(legal)):
            return False
    for leaf in jax.tree.leaves(one):
        if leaf.dtype.kind not in "fb" or not float(np.vdot(leaf, leaf)) <= play.most:
            return False
    return one.weight is None or bool(np.all(one.weight >= 0))


def _play(
    learner: Learner,
    loss: Loss,
    start: PyTree,
    state: PyTree,
    context: PyTree,
    outcome: PyTree,
    weight: Scalar,
) -> Step:
    context = context if start is None else round.cast_context(context, start)
    action = learner.predict(state, context)
    feedback = feedback_of(loss, context, action, jax.tree.map(jnp.asarray, outcome), weight)
    return Step(learner.update(state, feedback), action, feedback.value)


_round = compiled(_play)


def _row(leaf: object) -> Any:
    return np.asarray(on_host(leaf))[None]
