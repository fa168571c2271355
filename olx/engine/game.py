"""A learner, a loss and a start as a compiled program takes them.

To take a learner apart into its numbers and to put it together costs more than a short run. So it
is done once per learner: the engine remembers the last ones by their identity. A start that is
traced cannot be refused; if it is not legal, the state is NaN. Affine learners are played as linear
ones, on rows with a feature that is always 1: all fast implementations then apply, and sparse rows.
A record or a measure could see the longer row, so such runs are played as they are.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from olx._cache import Recent, compiled, result_shapes
from olx._memory import refuse_large_state
from olx._pytree import as_tree, pytree, static
from olx.core import Learner, Loss, Rounds
from olx.engine.arguments import check_state
from olx.engine.device import is_key
from olx.engine.memory_map import Readahead
from olx.engine.round import Recorder
from olx.frameworks.affine import as_linear, is_affine
from olx.needs import Need
from olx.record import actions
from olx.streams.arrays import appended
from olx.streams.checks import (
    check_iterable,
    check_params,
    check_rounds,
    is_traced,
    needs_of,
    remedy_of,
)
from olx.streams.sparse_rows import SparseRows


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """The structures of a learner and a loss, in one object: equal trees take long to compare."""

    learner: Any
    loss: Any


@pytree
class Game:
    """A learner and a loss, taken apart into their numbers and their structure."""

    own: list  # the leaves of the learner
    other: list  # the leaves of the loss
    structure: Structure = static()

    @property
    def numbers(self) -> tuple[list, list]:
        """The numbers without the structure: JAX would remember a structure among arguments."""
        return self.own, self.other

    def parts(self) -> tuple[Learner, Loss]:
        """The learner and the loss with these numbers."""
        learner = jax.tree.unflatten(self.structure.learner, self.own)
        return learner, jax.tree.unflatten(self.structure.loss, self.other)


class Known(NamedTuple):
    """What does not change between the runs of a learner."""

    learner: Learner  # kept, so that its `id` is not used again
    loss: Loss
    game: Game
    needs: list  # the result of `needs_of`
    parts: frozenset[str]  # of the rounds that these needs are about


_SEEN: Recent[Known] = Recent()
_STRUCTURES: Recent[Structure] = Recent()


def known(
    owner: str,
    learner: Learner,
    loss: Loss,
    check: Callable[[str, Learner, Loss], object],
    arrange: Callable[[list], list] | None = None,
) -> Known:
    """The game of a learner and a loss.

    check: refuses what the `owner` does not play; a function at module level.
    arrange: changes the leaves of the learner; a function at module level.
    """
    key = check, arrange, id(learner), id(loss)
    found = _SEEN.get(key)
    if found is not None:
        return found
    check(owner, learner, loss)
    found = numbers_of(owner, learner, loss, arrange)
    leaves = jax.tree.leaves((learner, as_tree(loss)))
    if all(isinstance(leaf, int | float | jax.Array) for leaf in leaves):
        _SEEN.put(key, found)  # a NumPy array may change until the next run
    return found


def is_known(learner: Learner, loss: Loss, check: Callable) -> bool:
    return _SEEN.get((check, None, id(learner), id(loss))) is not None


def numbers_of(
    owner: str, learner: Learner, loss: Loss, arrange: Callable[[list], list] | None = None
) -> Known:
    """The same for a learner that is not asked for again."""
    own, first = jax.tree.flatten(learner)
    other, second = jax.tree.flatten(as_tree(loss))
    refuse_tracers(owner, own + other)
    own = list(map(_argument, own)) if arrange is None else arrange(own)
    structure = _STRUCTURES.get((first, second))
    if structure is None:
        structure = _STRUCTURES.put((first, second), Structure(first, second))
    needs = needs_of(learner, loss)
    game = Game(own, list(map(_argument, other)), structure)
    return Known(learner, loss, game, needs, frozenset(need.where for need, _ in needs))


def refuse_tracers(
    owner: str, leaves: list, does: str = "compiles for itself", remedy: str = "`olx.rollout` can"
) -> None:
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise TypeError(
            f"{owner}: {does}, so it cannot be called inside jit, vmap or grad; {remedy}."
        )


def _argument(leaf: Any) -> Any:
    """An array, or a Python number as it is: a compiled call converts numbers faster."""
    return leaf if isinstance(leaf, int | float | jax.Array) else jnp.asarray(leaf)


def start_of(owner: str, known: Known, params: PyTree) -> PyTree:
    """The first state of a game; refuses `params` that the learner cannot start from."""
    check_params(owner, params)
    start = _start_own(known.game.structure.learner, known.game.own, params)
    state = _started(owner, known.learner, params, *start)
    return _apart(state, (params, known.game))


def first_state(owner: str, learner: Learner, params: PyTree) -> PyTree:
    """The first state; refuses `params` that the learner cannot start from."""
    check_params(owner, params)
    start = _start if is_traced((learner, params)) else _start_in_one_call
    return _started(owner, learner, params, *start(learner, params))


def given_state(owner: str, learner: Learner, params: PyTree, state: PyTree) -> PyTree:
    """The state to continue from; refuses a state of another learner or of another shape."""
    like = jax.eval_shape(learner.init, params)
    check_state(owner, state, like)
    return state


def first_states(
    owner: str,
    known: Known,
    params: PyTree,
    arrange: Callable[[PyTree], PyTree] | None = None,
    axes: PyTree = 0,
) -> PyTree:
    """The first states of a batch; refuses `params` that none of its learners can start from.

    arrange: a function of one state, applied to the state of every configuration.
    axes: where the result has the axis of configurations.
    """
    check_params(owner, params)
    structure, own = known.game.structure.learner, known.game.own
    start = _start_each(arrange, axes, structure, own, params)
    return _apart(_started(owner, known.learner, params, *start), (params, known.game))


def _start(learner: Learner, params: PyTree) -> tuple[list, PyTree]:
    """Whether each need is met, and the first state, which is NaN if a need is not met."""
    own = learner.hparams
    legal = [jnp.asarray(need.legal_fn(own, params, None)) for need in _about_params(learner)]
    if legal:
        fine = jnp.all(jnp.stack(legal))
        params = jax.tree.map(lambda leaf: jnp.where(fine, leaf, jnp.nan), params)
    return legal, learner.init(params)


_start_in_one_call = compiled(_start)


@functools.partial(compiled, static=(0,))
def _start_own(structure: Any, own: list, params: PyTree) -> tuple[list, PyTree]:
    """The same for the numbers of a learner of this structure."""
    return _start(jax.tree.unflatten(structure, own), params)


@functools.partial(compiled, static=(0, 1, 2))
def _start_each(
    arrange: Callable | None, axes: PyTree, structure: Any, own: list, params: PyTree
) -> tuple[list, PyTree]:
    def one(learner: Learner) -> tuple[list, PyTree]:
        legal, state = _start(learner, params)
        return legal, state if arrange is None else arrange(state)

    legal, state = jax.vmap(one, out_axes=(0, axes))(jax.tree.unflatten(structure, own))
    refuse_large_state("sweep", state)
    return legal, state


def _started(owner: str, learner: Learner, params: PyTree, legal: list, state: PyTree) -> PyTree:
    for need, fine in zip(_about_params(learner), legal, strict=True):
        if not is_traced(fine) and not np.asarray(fine).any():  # np.any would call the device
            first = np.asarray(jax.tree.leaves(params)[0])
            seen = np.array2string(first, threshold=6, precision=4)
            raise ValueError(f"{owner}: {need.owner}: {need.demand}, got {seen}{remedy_of(need)}.")
    return state


def _apart(state: PyTree, given: PyTree) -> PyTree:
    """The state without arrays of the caller: a program overwrites its state."""
    others = {id(leaf) for leaf in jax.tree.leaves(given)}
    return jax.tree.map(lambda leaf: jnp.array(leaf) if id(leaf) in others else leaf, state)


def _about_params(learner: Learner) -> list[Need]:
    return [need for need in learner.needs if need.where == "params"]


def states_of(
    owner: str,
    known: Known,
    params: PyTree,
    state: PyTree,
    arrange: Callable[[PyTree], PyTree] | None = None,
    axes: PyTree = 0,
) -> PyTree:
    """The states of a batch; refuses `state` if it is not one of these learners.

    state: of an earlier sweep; None to begin.
    arrange: a function of one state, applied to the state of every configuration.
    axes: where the result has the axis of configurations.
    """
    if state is None:
        return first_states(owner, known, params, arrange, axes)
    check_state(owner, state, result_shapes(_init, known.learner, params))
    count = np.shape(jax.tree.leaves(known.learner)[0])[0]
    short = np.shape(known.game.own[0])[0] - count
    state = jax.tree.map(lambda leaf: repeat_last(_copy(leaf), short), state)
    return state if arrange is None else _arranged(arrange, axes, state)


def repeat_last(leaf: jax.Array, short: int) -> jax.Array:
    """Repeat the last configuration `short` times, so that all devices get the same number."""
    return jnp.concatenate([leaf, jnp.repeat(leaf[-1:], short, axis=0)]) if short else leaf


def _copy(leaf: Any) -> jax.Array:
    """A copy; it does not lie on the devices of the earlier sweep, which may be others."""
    if jax.local_device_count() == 1:
        return jnp.array(leaf)
    if is_key(leaf):
        data = jnp.asarray(np.asarray(jax.random.key_data(leaf)))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    return jnp.asarray(np.array(leaf))


def _init(learners: Learner, params: PyTree) -> PyTree:
    return jax.vmap(lambda one: one.init(params))(learners)


@functools.partial(compiled, static=(0, 1))
def _arranged(arrange: Callable, axes: PyTree, state: PyTree) -> PyTree:
    return jax.vmap(arrange, out_axes=axes)(state)


_COPIED = 1 << 28  # bytes; longer rows of more than this are made in pieces
_PART = 1 << 24  # bytes per piece


def game_as_linear(
    owner: str,
    game: Known,
    rounds: Rounds | Iterable[Rounds],
    watch: Recorder,
    arrange: Callable[[list], list] | None = None,
) -> tuple[Known, Rounds | Iterable[Rounds]]:
    """The game and its rounds, as those of a linear learner where that is the same.

    arrange: changes the leaves of the learner, as for `known`.
    """
    seen = watch.record not in (None, actions) or watch.measure is not None
    if seen or not is_affine(game.learner):
        return game, rounds
    game = numbers_of(owner, as_linear(game.learner), game.loss, arrange)
    check_iterable(owner, rounds)
    if isinstance(rounds, Rounds):
        check_rounds(owner, rounds)
        if not isinstance(rounds.context, np.ndarray) or rounds.context.nbytes <= _COPIED:
            return game, rounds._replace(context=appended(owner, rounds.context))
        rounds = _parts(rounds)
    return game, _pieces(owner, rounds)


def rows_as_linear(owner: str, learner: Learner, rows: Any) -> tuple[Learner, Any]:
    """The same for the sparse rows of a prediction."""
    if not is_affine(learner) or not isinstance(rows, SparseRows):
        return learner, rows
    return as_linear(learner), appended(owner, rows)


def _parts(rounds: Rounds) -> Iterator[Rounds]:
    """The rounds in pieces: a longer row is a copy, and there may be no memory for all of them."""
    length = len(rounds.context)
    step = max(1, _PART * length // rounds.context.nbytes)
    with Readahead(rounds) as window:
        for low in range(0, length, step):
            window.move(low, low, min(low + step, length))
            yield jax.tree.map(lambda leaf, rows=slice(low, low + step): leaf[rows], rounds)


def _pieces(owner: str, rounds: Iterable[Rounds]) -> Iterator[Rounds]:
    for piece in rounds:
        check_rounds(owner, piece)
        yield piece._replace(context=appended(owner, piece.context))
