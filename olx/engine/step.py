"""`step`: one round of a game, for programs that learn from live feedback."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx._cache import Recent, cached, compiled
from olx._pytree import as_tree
from olx.core import Learner, Loss, Rounds, Scalar
from olx.engine import contexts
from olx.engine.boundary import check_game
from olx.engine.diagnosis import explained
from olx.engine.game import Game, Known, Structure, is_known, known
from olx.engine.protocol import feedback_of
from olx.engine.start_like import start_like
from olx.streams.foreign import is_array, refuse_stranger
from olx.streams.judge import is_traced, judge, on_host
from olx.streams.numbers import check_kind, widest_float


class Step(NamedTuple):
    """The result of one round."""

    state: PyTree  # after the round
    action: PyTree  # what the learner played
    loss: Array  # what it paid


def step(
    learner: Learner,
    loss: Loss,
    state: PyTree,
    context: PyTree,
    outcome: PyTree,
    weight: Scalar = 1.0,
) -> Step:
    """Play one round: the learner acts on `context`, pays for `outcome`, and learns.

    It plays the round of `olx.run`, and is compiled once per learner, loss and shape. To know the
    action before the outcome, use `olx.predict` or `learner.predict`.

    loss: a named function, so that it is not compiled again in every call.

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
    if is_traced(given) or (not is_known(learner, loss, check_game) and is_traced(learner)):
        return _round(learner, as_tree(loss), None, *given)
    game = known("step", learner, loss, check_game)
    _check_kinds(given[1:])
    one = Rounds(*jax.tree.map(_row, given[1:]))
    play = _play_of(game, state, one.context)
    _judge(game, play, one)
    try:
        return play.program([*game.game.own, *game.game.other], *given)
    except (TypeError, ValueError, AttributeError) as error:
        _explain(error, game, play, state, one)
        raise


class Play(NamedTuple):
    """What does not change between the rounds of a game, for rows and states of one shape."""

    start: PyTree  # of the shape of the decision
    decision: Any  # its dtype
    most: float  # the sum of the squares of numbers that surely fit into that dtype
    program: Callable[..., Step]


_SEEN: Recent[Play] = Recent()


def _play_of(game: Known, state: PyTree, rows: PyTree) -> Play:
    """rows: the context as arrays with a leading axis."""
    leaves, tree = jax.tree.flatten((state, rows))
    kinds = [(leaf.shape, leaf.dtype) for leaf in leaves if is_array(leaf)]
    key = game.game.structure, tree, *kinds
    found = _SEEN.get(key)
    if found is not None:
        return found
    start = None if rows is None else start_like("step", game.learner, state, _kinds(rows))
    decision = widest_float(state)
    largest = float(jnp.finfo(jnp.float32 if decision is None else decision).max)
    most = min(largest * largest, sys.float_info.max)
    program = _program(game.game.structure, *_shape_of(start))
    return _SEEN.put(key, Play(start, decision, most, program))


def _check_kinds(given: tuple) -> None:
    """Refuse what is not real numbers, and more than one weight."""
    context, outcome, weight = given
    if all(map(_is_plain, jax.tree.leaves(given))) and np.ndim(weight) == 0:
        return
    for path, leaf in jax.tree_util.tree_leaves_with_path(Rounds(context, outcome, weight)):
        name = jax.tree_util.keystr(path)[1:]
        refuse_stranger("step", name, leaf, "give one dense row, as `row.toarray()[0]`")
        check_kind("step", name, leaf)
    if np.ndim(weight):
        raise TypeError(f"step: weight has shape {np.shape(weight)}; give one number.")


def _is_plain(leaf: Any) -> bool:
    """A fast test of real numbers that JAX takes as they are."""
    return type(leaf) is float or (
        (type(leaf) is np.ndarray or isinstance(leaf, jax.Array)) and leaf.dtype in _PLAIN
    )


_PLAIN = frozenset(np.dtype(kind) for kind in (np.float32, np.float64, np.int32, np.int64))


@cached
def _program(structure: Structure, tree: Any, kinds: tuple) -> Callable[..., Step]:
    """The compiled round of all learners and losses of one structure.

    A call with a flat list of numbers takes half the time of one with the learner itself.
    tree, kinds: the result of `_shape_of`.
    """
    start = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*kind) for kind in kinds])
    count = structure.learner.num_leaves

    def play(leaves: list, *rest: Any) -> Step:
        game = Game(leaves[:count], leaves[count:], structure)
        return _play(*game.parts(), start, *rest)

    return jax.jit(play)


def _shape_of(start: PyTree) -> tuple[Any, tuple]:
    leaves, tree = jax.tree.flatten(start)
    return tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def _judge(game: Known, play: Play, one: Rounds) -> None:
    """Refuse a bad round; a round has no number here, and its parts are arguments."""
    try:
        if not _is_fine(game, play, one):
            judge("step", game.needs, play.start, one, decision=play.decision)
    except (TypeError, ValueError) as error:
        said = str(error).replace("rounds.", "").replace(" at row 0, column", " at entry")
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"step: {said.replace(' at row 0', '').removeprefix('step: ')}") from None


def _explain(first: Exception, game: Known, play: Play, state: PyTree, one: Rounds) -> None:
    """Say why a round cannot be played, if that can be found out."""
    if one.context is not None:
        start_like("step", game.learner, state, _kinds(one.context))
    try:
        both = game.learner, game.loss
        explained("step", *both, play.start, one, state=state).raise_found(first)
    except TypeError as error:
        raise TypeError(str(error).replace("rounds.", "")) from error.__cause__


def _kinds(rows: PyTree) -> PyTree:
    """The shapes and dtypes of a row."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), rows)


def _is_fine(game: Known, play: Play, one: Rounds) -> bool:
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
    context = context if start is None else contexts.cast(context, start)
    action = learner.predict(state, context)
    feedback = feedback_of(loss, context, action, jax.tree.map(jnp.asarray, outcome), weight)
    return Step(learner.update(state, feedback), action, feedback.value)


_round = compiled(_play)


def _row(leaf: Any) -> Any:
    return np.asarray(on_host(leaf))[None]
