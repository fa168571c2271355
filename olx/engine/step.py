"""`step`: one round of a game, for programs that learn from live feedback."""

import functools
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx._pytree import as_tree
from olx.core import Learner, Loss, Rounds, Scalar
from olx.engine import contexts
from olx.engine.boundary import check_game
from olx.engine.diagnosis import explained
from olx.engine.protocol import feedback_of
from olx.engine.start_like import start_like
from olx.needs import PARTS
from olx.streams.foreign import refuse_stranger
from olx.streams.judge import is_traced, judge, needs_of, on_host
from olx.streams.numbers import check_kind


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
    if is_traced(given) or ((id(learner), id(loss)) not in _SEEN and is_traced(learner)):
        return _round(learner, as_tree(loss), None, *given)
    one = Rounds(*jax.tree.map(_row, given[1:]))
    game = _game_of(learner, loss, state, one.context, context)
    if not _is_fine(game, one):
        _judge(game, one)
    try:
        return game.program(game.leaves, *given)
    except (TypeError, ValueError, AttributeError) as error:
        _explain(error, game, state, one)
        raise


class Game(NamedTuple):
    """What does not change between the rounds of a game."""

    learner: Learner  # kept, so that its `id` is not used again
    loss: Loss
    start: PyTree  # of the shape of the decision
    needs: list
    leaves: list  # the numbers of the learner and the loss, on the device
    program: Callable[..., Step]


_SEEN: OrderedDict[tuple[int, int], dict[Any, Game]] = OrderedDict()  # by learner and loss
_MOST = 256  # learners that are remembered


def _game_of(learner: Learner, loss: Loss, state: PyTree, rows: PyTree, given: PyTree) -> Game:
    """The game, remembered by the identity of its learner: comparing learners takes too long.

    rows: the context as arrays with a leading axis.
    given: the context as it was given.
    """
    kinds = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(rows))
    games = _SEEN.get((id(learner), id(loss)), {})
    if kinds in games:
        return games[kinds]
    check_game("step", learner, loss)
    for path, leaf in jax.tree_util.tree_leaves_with_path(given):
        name = f"context{jax.tree_util.keystr(path)}"
        refuse_stranger("step", name, leaf, "give one dense row, as `row.toarray()[0]`")
        check_kind("step", name, leaf)
    row = jax.tree.map(_kind, rows)
    start = None if rows is None else start_like("step", learner, state, row)
    leaves, structure = jax.tree.flatten((learner, as_tree(loss)))
    game = Game(
        learner,
        loss,
        start,
        needs_of(learner, loss),
        [leaf if isinstance(leaf, int | float) else jnp.asarray(leaf) for leaf in leaves],
        _program(structure, *_shape_of(start)),
    )
    games[kinds] = game
    _SEEN[id(learner), id(loss)] = games
    while len(_SEEN) > _MOST:
        _SEEN.popitem(last=False)
    return game


@functools.lru_cache(maxsize=256)
def _program(structure: Any, tree: Any, kinds: tuple) -> Callable[..., Step]:
    """The compiled round of all learners and losses of one structure.

    A call with a flat list of numbers takes half the time of one with the learner itself.
    tree, kinds: the result of `_shape_of`.
    """

    start = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*kind) for kind in kinds])

    def play(leaves: list, *rest: Any) -> Step:
        learner, loss = jax.tree.unflatten(structure, leaves)
        return _play(learner, loss, start, *rest)

    return jax.jit(play)


def _shape_of(start: PyTree) -> tuple[Any, tuple]:
    leaves, tree = jax.tree.flatten(start)
    return tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def _judge(game: Game, one: Rounds) -> None:
    """Refuse a round; a round has no number here, and its parts are arguments."""
    try:
        judge("step", game.needs, game.start, one)
    except ValueError as error:
        said = str(error).replace("rounds.", "").replace(" at row 0, column", " at entry")
        raise ValueError(said.replace(" at row 0", "")) from None


def _explain(first: Exception, game: Game, state: PyTree, one: Rounds) -> None:
    """Say why a round cannot be played, if that can be found out."""
    if one.context is not None:
        start_like("step", game.learner, state, jax.tree.map(_kind, one.context))
    try:
        explained("step", *game[:3], one, state=state).raise_found(first)
    except TypeError as error:
        raise TypeError(str(error).replace("rounds.", "")) from error.__cause__


def _kind(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _is_fine(game: Game, one: Rounds) -> bool:
    """A fast test; False if the round must be looked at closely."""
    told = set()
    for need, own in game.needs:
        legal = need.legal_fn(own, game.start, one)
        if not all(np.all(mask) for mask in jax.tree.leaves(legal)):
            return False
        told.add(need.where)
    for name, part in zip(PARTS[1:], one, strict=True):
        for leaf in () if name in told else jax.tree.leaves(part):
            if leaf.dtype.kind not in "fb" or not math.isfinite(np.vdot(leaf, leaf)):
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


_round = jax.jit(_play)


def _row(leaf: Any) -> Any:
    return np.asarray(on_host(leaf))[None]
