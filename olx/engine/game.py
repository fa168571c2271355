"""What is asked in one call: learners, a loss, rounds and a start, as an implementation takes them.

`one_game` and `many_games` make a `Game` of the arguments of `run` and `sweep`, `certify` and
`tune`. They refuse what cannot be played, before anything is traced.

To take a learner apart into its numbers and to put it together costs more than a short run. So it
is done once per learner: the engine remembers the last ones by their identity. A start that is
traced cannot be refused; if it is not legal, the state is NaN.

Affine learners are played as linear ones, on rows with a feature that is always 1: all fast
implementations then apply, and sparse rows. A record or a measure could see the longer row, so such
runs are played as they are.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from olx._cache import Recent, call_once, compiled, result_shapes
from olx._memory import refuse_large_state
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, RefusedValue
from olx.core import Learner, Loss, Rounds
from olx.engine.affine import with_ones
from olx.engine.arguments import check_state
from olx.engine.device import devices_of, is_key
from olx.engine.readings import readings_of
from olx.engine.round import Recorder
from olx.engine.sparse_layout import AXES, Layout, layout_of, packer
from olx.frameworks.lift import as_linear, is_affine
from olx.needs import Need
from olx.record import actions
from olx.streams.checks import (
    check_iterable,
    check_params,
    check_piece,
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
class Leaves:
    """A learner and a loss, taken apart into their numbers and their structure."""

    own: list[Any]  # the leaves of the learner
    other: list[Any]  # the leaves of the loss
    structure: Structure = static()

    @property
    def numbers(self) -> tuple[list[Any], list[Any]]:
        """The numbers without the structure: JAX would remember a structure among arguments."""
        return self.own, self.other

    def parts(self) -> tuple[Learner, Loss]:
        """The learner and the loss with these numbers."""
        learner = jax.tree.unflatten(self.structure.learner, self.own)
        return learner, jax.tree.unflatten(self.structure.loss, self.other)


class Numbers(NamedTuple):
    """What does not change between the runs of a learner, or of stacked learners."""

    learner: Learner  # kept, so that its `id` is not used again
    loss: Loss
    leaves: Leaves
    needs: list[Any]  # the result of `needs_of`
    parts: frozenset[str]  # of the rounds that these needs are about


class Game(NamedTuple):
    """What is asked in one call. It is played once: a program overwrites the state."""

    name: str  # of the function that was called, for what is printed
    numbers: Numbers
    rounds: Rounds | Iterable[Rounds]
    first: Rounds  # the first piece of the rounds
    params: PyTree
    recorder: Recorder
    state: PyTree  # before the first round; of sparse rows in the form of the layout
    configurations: int | None = None  # None for a single learner
    layout: Layout | None = None  # of sparse rows
    continued: bool = False  # whether `state` is that of an earlier run
    rewrites: tuple[str, ...] = ()  # what was changed before the choice of an implementation

    @property
    def batched(self) -> bool:
        return self.configurations is not None


def one_game(
    name: str,
    numbers: Numbers,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    recorder: Recorder,
    state: PyTree = None,
) -> Game:
    """The game of one learner; `state` is that of an earlier run, or None to begin."""
    numbers, rounds, rewrites = _as_linear(numbers, rounds, recorder)
    first, rounds = peek(rounds)
    layout = _layout_of(numbers, params, first, False)
    if state is None:
        start = start_of(numbers, params)
    else:
        start = given_state(numbers.learner, params, state)
        start = jax.tree.map(jnp.array, start)  # a copy, since the program donates its state
    start = start if layout is None else jax.jit(packer(layout))(start)
    more = None, layout, state is not None, rewrites
    return Game(name, numbers, rounds, first, params, recorder, start, *more)


def many_games(
    name: str,
    numbers: Numbers,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    recorder: Recorder,
    state: PyTree = None,
) -> Game:
    """The game of stacked learners; `state` is that of an earlier sweep, or None to begin."""
    numbers, rounds, rewrites = _as_linear(numbers, rounds, recorder, padded)
    first, rounds = peek(rounds)
    layout = _layout_of(numbers, params, first, True)
    form = (None, 0) if layout is None else (packer(layout), AXES)
    start = states_of(numbers, params, state, *form)
    count = np.shape(jax.tree.leaves(numbers.learner)[0])[0]
    more = count, layout, state is not None, rewrites
    return Game(name, numbers, rounds, first, params, recorder, start, *more)


def peek(stream: Rounds | Iterable[Rounds]) -> tuple[Rounds, Rounds | Iterable[Rounds]]:
    """The first piece, and the stream with that piece put back."""
    if isinstance(stream, Rounds):
        return stream, stream
    check_iterable(stream)
    pieces = iter(stream)
    first = next(pieces, None)
    if first is None:
        raise RefusedValue("the stream is empty.")
    check_piece(first)
    return first, itertools.chain([first], pieces)


def _layout_of(numbers: Numbers, params: PyTree, first: Rounds, batched: bool) -> Layout | None:
    rows = first.context
    if not isinstance(rows, SparseRows):
        return None
    return layout_of(numbers.learner, params, rows, batched)


_SEEN: Recent[Numbers] = Recent()
_STRUCTURES: Recent[Structure] = Recent()


def numbers_of(
    learner: Learner,
    loss: Loss,
    check: Callable[[Learner, Loss], object],
    arrange: Callable[[list[Any]], list[Any]] | None = None,
) -> Numbers:
    """The numbers of a learner and a loss, remembered by identity.

    check: refuses what the driver does not play; a function at module level.
    arrange: changes the leaves of the learner; a function at module level.
    """
    key = check, arrange, id(learner), id(loss)
    found = _SEEN.get(key)
    if found is not None:
        return found
    check(learner, loss)
    found = new_numbers(learner, loss, arrange)
    leaves = jax.tree.leaves((learner, as_tree(loss)))
    if all(isinstance(leaf, int | float | jax.Array) for leaf in leaves):
        _SEEN.put(key, found)  # a NumPy array may change until the next run
    return found


def has_numbers(learner: Learner, loss: Loss, check: Callable[..., Any]) -> bool:
    return _SEEN.get((check, None, id(learner), id(loss))) is not None


def new_numbers(
    learner: Learner, loss: Loss, arrange: Callable[[list[Any]], list[Any]] | None = None
) -> Numbers:
    """The same for a learner that is not asked for again."""
    own, first = jax.tree.flatten(learner)
    other, second = jax.tree.flatten(as_tree(loss))
    refuse_tracers(own + other)
    own = list(map(_argument, own)) if arrange is None else arrange(own)
    structure = _STRUCTURES.get((first, second))
    if structure is None:
        structure = _STRUCTURES.put((first, second), Structure(first, second))
    needs = needs_of(learner, loss)
    leaves = Leaves(own, list(map(_argument, other)), structure)
    return Numbers(learner, loss, leaves, needs, frozenset(need.where for need, _ in needs))


def refuse_tracers(
    leaves: list[Any], does: str = "compiles for itself", remedy: str = "`olx.rollout` can"
) -> None:
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise RefusedType(f"{does}, so it cannot be called inside jit, vmap or grad; {remedy}.")


def _argument(leaf: Any) -> Any:
    """An array, or a Python number as it is: a compiled call converts numbers faster."""
    return leaf if isinstance(leaf, int | float | jax.Array) else jnp.asarray(leaf)


def start_of(numbers: Numbers, params: PyTree) -> PyTree:
    """The first state of a game; refuses `params` that the learner cannot start from."""
    check_params(params)
    leaves = numbers.leaves
    start = _start_own(leaves.structure.learner, leaves.own, params)
    state = _started(numbers.learner, params, *start)
    return _apart(state, (params, leaves))


def first_state(learner: Learner, params: PyTree) -> PyTree:
    """The first state; refuses `params` that the learner cannot start from."""
    check_params(params)
    learner = player(learner)
    read = readings_of(jax.tree.structure(learner))
    if read is not None:
        legal, state = _start_again(read, learner, params)
    else:
        start = _start if is_traced((learner, params)) else functools.partial(call_once, _start)
        legal, state = start(learner, params)
    return _started(learner, params, legal, state)


def player(learner: Learner) -> Learner:
    """The learner without what has no part in its states: its theorems, and needs about rounds."""
    return dataclasses.replace(learner, needs=tuple(_about_params(learner)), theorems=())


def given_state(learner: Learner, params: PyTree, state: PyTree) -> PyTree:
    """The state to continue from; refuses a state of another learner or of another shape."""
    like = jax.eval_shape(learner.init, params)
    check_state(state, like)
    return state


def first_states(
    numbers: Numbers,
    params: PyTree,
    arrange: Callable[[PyTree], PyTree] | None = None,
    axes: PyTree = 0,
) -> PyTree:
    """The first states of a batch; refuses `params` that none of its learners can start from.

    arrange: a function of one state, applied to the state of every configuration.
    axes: where the result has the axis of configurations.
    """
    check_params(params)
    leaves = numbers.leaves
    start = _start_each(arrange, axes, leaves.structure.learner, leaves.own, params)
    return _apart(_started(numbers.learner, params, *start), (params, leaves))


def _start(learner: Learner, params: PyTree) -> tuple[list[Any], PyTree]:
    """Whether each need is met, and the first state, which is NaN if a need is not met."""
    own = learner.hparams
    legal = [jnp.asarray(need.legal_fn(own, params, None)) for need in _about_params(learner)]
    if legal:
        fine = jnp.all(jnp.stack(legal))
        params = jax.tree.map(lambda leaf: jnp.where(fine, leaf, jnp.nan), params)
    return legal, learner.init(params)


@functools.partial(compiled, static=(0,))
def _start_again(_: tuple[Any, ...], learner: Learner, params: PyTree) -> tuple[list[Any], PyTree]:
    return _start(learner, params)


@functools.partial(compiled, static=(0,))
def _start_own(structure: Any, own: list[Any], params: PyTree) -> tuple[list[Any], PyTree]:
    """The same for the numbers of a learner of this structure."""
    return _start(jax.tree.unflatten(structure, own), params)


@functools.partial(compiled, static=(0, 1, 2))
def _start_each(
    arrange: Callable[..., Any] | None, axes: PyTree, structure: Any, own: list[Any], params: PyTree
) -> tuple[list[Any], PyTree]:
    def one(learner: Learner) -> tuple[list[Any], PyTree]:
        legal, state = _start(learner, params)
        return legal, state if arrange is None else arrange(state)

    legal, state = jax.vmap(one, out_axes=(0, axes))(jax.tree.unflatten(structure, own))
    refuse_large_state(state)
    return legal, state


def _started(learner: Learner, params: PyTree, legal: list[Any], state: PyTree) -> PyTree:
    for need, fine in zip(_about_params(learner), legal, strict=True):
        if not is_traced(fine) and not np.asarray(fine).any():  # np.any would call the device
            first = np.asarray(jax.tree.leaves(params)[0])
            seen = np.array2string(first, threshold=6, precision=4)
            raise RefusedValue(f"{need.owner}: {need.demand}, got {seen}{remedy_of(need)}.")
    return state


def _apart(state: PyTree, given: PyTree) -> PyTree:
    """The state without arrays of the caller: a program overwrites its state."""
    others = {id(leaf) for leaf in jax.tree.leaves(given)}
    return jax.tree.map(lambda leaf: jnp.array(leaf) if id(leaf) in others else leaf, state)


def _about_params(learner: Learner) -> list[Need]:
    return [need for need in learner.needs if need.where == "params"]


def states_of(
    numbers: Numbers,
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
        return first_states(numbers, params, arrange, axes)
    check_state(state, result_shapes(_init, numbers.learner, params))
    count = np.shape(jax.tree.leaves(numbers.learner)[0])[0]
    short = np.shape(numbers.leaves.own[0])[0] - count
    state = jax.tree.map(lambda leaf: repeat_last(_copy(leaf), short), state)
    return state if arrange is None else _arranged(arrange, axes, state)


def padded(leaves: list[Any]) -> list[Any]:
    """The leaves of a batch, padded so that all devices get the same number of configurations."""
    count = np.shape(leaves[0])[0]
    short = -count % devices_of(count).all
    return [repeat_last(jnp.asarray(leaf), short) for leaf in leaves]


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
def _arranged(arrange: Callable[..., Any], axes: PyTree, state: PyTree) -> PyTree:
    return jax.vmap(arrange, out_axes=axes)(state)


def _as_linear(
    numbers: Numbers,
    rounds: Rounds | Iterable[Rounds],
    recorder: Recorder,
    arrange: Callable[[list[Any]], list[Any]] | None = None,
) -> tuple[Numbers, Rounds | Iterable[Rounds], tuple[str, ...]]:
    """The numbers and the rounds, as those of a linear learner where that is the same; in words.

    arrange: changes the leaves of the learner, as for `numbers_of`.
    """
    if not is_affine(numbers.learner):
        return numbers, rounds, ()
    if recorder.record not in (None, actions) or recorder.measure is not None:
        return numbers, rounds, (_AS_IT_IS,)
    numbers = new_numbers(as_linear(numbers.learner), numbers.loss, arrange)
    return numbers, with_ones(rounds), (_AS_LINEAR,)


_AS_LINEAR = "affine as linear, on rows with one more feature, which is 1"
_AS_IT_IS = "affine as it is: `record` or `measure` could see a longer row"
