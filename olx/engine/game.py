"""What is asked in one call: learners, a loss, rounds and a start, as an implementation takes them.

`game_of` makes a `Game` of the arguments of `run` and `sweep`, `certify` and `tune`. It refuses
what cannot be played, before anything is traced. A start that is traced cannot be refused; if it is
not legal, the state is NaN.

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
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx._cache import Recent, cached
from olx._compiled import call_once, compiled, result_shapes
from olx._memory import refuse_large_state
from olx._readings import readings_of
from olx._refusal import RefusedValue
from olx.core import Learner, Rounds, Scalar
from olx.engine import tuning
from olx.engine.arguments import check_state
from olx.engine.device import accelerated, is_key
from olx.engine.memory_map import Readahead
from olx.engine.numbers import Numbers, Structure, TreeStructure, new_numbers, repeat_last
from olx.engine.numpy_functions import (
    LEFT,
    Functions,
    Kind,
    as_leaf,
    kind_of,
    numpy_functions,
    plain_number,
    quietly,
)
from olx.engine.numpy_operations import Unknown
from olx.engine.round import Recorder
from olx.engine.sparse_layout import AXES, Layout, layout_of, packer
from olx.frameworks.lift import as_linear, is_affine
from olx.needs import Need
from olx.record import actions
from olx.streams.arrays import rows_with_ones
from olx.streams.checks import (
    check_iterable,
    check_params,
    check_piece,
    check_rounds,
    is_traced,
    remedy_of,
)
from olx.streams.sparse_rows import SparseRows

Pieces = Rounds | Iterable[Rounds]
Start = tuple[list[Array], PyTree]  # whether each need about `params` is met; the first state


class Game(NamedTuple):
    """What is asked in one call. It is played once: a program overwrites the state."""

    name: str  # of the function that was called, for what is printed
    numbers: Numbers
    rounds: Pieces
    first: Rounds  # the first piece of the rounds
    params: PyTree
    recorder: Recorder
    state: PyTree  # before the first round; of sparse rows in the form of the layout
    layout: Layout | None = None  # of sparse rows
    continued: bool = False  # whether `state` is that of an earlier run
    rewrites: tuple[str, ...] = ()  # what was changed before the choice of an implementation

    @property
    def configurations(self) -> int | None:
        """The number of stacked learners; None for a single learner."""
        return self.numbers.configurations

    @property
    def batched(self) -> bool:
        return self.configurations is not None


def game_of(
    name: str,
    numbers: Numbers,
    rounds: Pieces,
    params: PyTree,
    recorder: Recorder,
    state: PyTree = None,
) -> Game:
    """The game of a learner or of stacked learners.

    name: of the function that was called.
    state: that of an earlier run or sweep, or None to begin.
    """
    numbers, rounds, rewrites = _as_linear(numbers, rounds, recorder)
    first, rounds = peek(rounds)
    layout = None
    if isinstance(first.context, SparseRows):
        stacked = numbers.configurations is not None
        layout = layout_of(numbers.learner, params, first.context, stacked)
    begin = _state_of if numbers.configurations is None else _states_of
    start = begin(numbers, params, state, layout)
    more = layout, state is not None, rewrites
    return Game(name, numbers, rounds, first, params, recorder, start, *more)


def peek(stream: Pieces) -> tuple[Rounds, Pieces]:
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


def first_state(learner: Learner, params: PyTree) -> PyTree:
    """The first state; refuses `params` that the learner cannot start from."""
    check_params(params)
    learner = player(learner)
    if readings_of(jax.tree.structure(learner)) is not None:
        start = _start_again(learner, params)
    elif is_traced((learner, params)):
        start = _start(learner, params)
    else:
        start = call_once(_start, learner, params)
    return _legal_state(learner, params, *start)


def player(learner: Learner) -> Learner:
    """The learner without what has no part in its states: its theorems, and needs about rounds."""
    return dataclasses.replace(learner, needs=tuple(_about_params(learner)), theorems=())


def given_state(learner: Learner, params: PyTree, state: PyTree) -> PyTree:
    """The state to continue from; refuses a state of another learner or of another shape."""
    check_state(state, jax.eval_shape(learner.init, params))
    return state


def _state_of(numbers: Numbers, params: PyTree, state: PyTree, layout: Layout | None) -> PyTree:
    """The state of a single learner to begin with, or to continue from."""
    if state is None:
        state = _begin(numbers, params)
    else:
        state = given_state(numbers.learner, params, state)
        state = jax.tree.map(jnp.array, state)  # a copy, since the program donates its state
    return state if layout is None else jax.jit(packer(layout))(state)


class _Begun(NamedTuple):
    """A first state; its arrays are never written to."""

    of: tuple[Numbers, PyTree]  # and the leaves of `params`: kept, so that no `id` is used again
    state: PyTree


_BEGUN: Recent[_Begun] = Recent()


def _begin(numbers: Numbers, params: PyTree) -> PyTree:
    """The first state on dense rows. One of NumPy is remembered for the same `params`."""
    given, form = jax.tree.flatten(params)
    wide = jax.config.read("jax_enable_x64")
    key = id(numbers), jax.default_backend(), wide, form, *map(id, given)
    if (found := _BEGUN.get(key)) is not None:
        return found.state
    check_params(params)
    leaves, alone = numbers.leaves, numbers.configurations is None
    start = _host_start(numbers, params)
    if start is None:
        like = leaves.structure.learner, leaves.own, params
        start = _start_alone(*like) if alone else _start_each(None, 0, *like)
        return _without(_legal_state(numbers.learner, params, *start), (params, leaves))
    state = _legal_state(numbers.learner, params, *start)
    refuse_large_state(state)
    if all(isinstance(leaf, jax.Array) for leaf in given):  # others may change until the next run
        _BEGUN.put(key, _Begun((numbers, given), state))
    return state


def _states_of(numbers: Numbers, params: PyTree, state: PyTree, layout: Layout | None) -> PyTree:
    """The same for stacked learners; `params` must be legal for one of them."""
    pack, axes = (None, 0) if layout is None else (packer(layout), AXES)
    leaves = numbers.leaves
    if state is None and pack is None:
        return _begin(numbers, params)
    if state is None:
        check_params(params)
        start = _start_each(pack, axes, leaves.structure.learner, leaves.own, params)
        return _without(_legal_state(numbers.learner, params, *start), (params, leaves))
    check_state(state, result_shapes(_init_each, numbers.learner, params))
    short = np.shape(leaves.own[0])[0] - (numbers.configurations or 0)
    state = jax.tree.map(lambda leaf: repeat_last(_copy(leaf), short), state)
    return state if pack is None else _pack_each(pack, axes, state)


def _start(learner: Learner, params: PyTree) -> Start:
    """Whether each need is met, and the first state, which is NaN if a need is not met."""
    own = learner.hparams
    legal = [jnp.asarray(need.legal_fn(own, params, None)) for need in _about_params(learner)]
    if legal:
        fine = jnp.all(jnp.stack(legal))
        params = jax.tree.map(lambda leaf: jnp.where(fine, leaf, jnp.nan), params)
    return legal, learner.init(params)


_start_again = compiled(_start)


@functools.partial(compiled, static=(0,))
def _start_alone(structure: TreeStructure, own: list[Scalar], params: PyTree) -> Start:
    """The same for the numbers of a learner of this structure."""
    return _start(jax.tree.unflatten(structure, own), params)


def _host_start(numbers: Numbers, params: PyTree) -> Start | None:
    """The same by NumPy, which compiles nothing; None if that is slower, or cannot be."""
    (leaves, tree), count = jax.tree.flatten(params), numbers.configurations
    size = sum(np.size(leaf) for leaf in leaves) * (count or 1)
    if size > tuning.HOST_NUMBERS or jax.device_count() > 1 or accelerated():
        return None
    given = *numbers.leaves.own, *leaves
    form = numbers.leaves.structure, tree, len(numbers.leaves.own), count is not None
    written = _written_start(form, tuple(map(kind_of, given)), jax.config.read("jax_enable_x64"))
    if written is None:
        return None
    functions, after, dtypes = written
    try:
        found = quietly(functions.calls[0], *map(plain_number, given))
    except LEFT:
        return None
    return jax.tree.unflatten(after, map(as_leaf, found, dtypes))


@cached
def _written_start(
    form: tuple[Structure, TreeStructure, int, bool], kinds: tuple[Kind, ...], _: bool
) -> tuple[Functions, TreeStructure, list[np.dtype]] | None:
    """`_start` as a function of NumPy, the structure of its result, and the dtypes.

    form: the structures of the learner and of the params, how many numbers the learner has, and
        whether it is a stack of learners.
    """
    structure, tree, count, stacked = form
    after = []

    def start(*given: Array) -> list[Array]:
        learner = jax.tree.unflatten(structure.learner, given[:count])
        params = jax.tree.unflatten(tree, given[count:])
        one = lambda learner: _start(learner, params)
        found, result = jax.tree.flatten((jax.vmap(one) if stacked else one)(learner))
        if any(getattr(leaf, "weak_type", True) for leaf in found):
            raise Unknown("a dtype that depends on others")
        after.extend([result, [np.dtype(leaf.dtype) for leaf in found]])
        return found

    try:
        functions = numpy_functions([start], kinds, 0)
    except Exception:  # the compiled start fails in the same way, and its error is better
        return None
    return functions, *after


@functools.partial(compiled, static=(0, 1, 2))
def _start_each(
    pack: Callable[[PyTree], PyTree] | None,
    axes: PyTree,
    structure: TreeStructure,
    own: list[Scalar],
    params: PyTree,
) -> Start:
    def one(learner: Learner) -> Start:
        legal, state = _start(learner, params)
        return legal, state if pack is None else pack(state)

    legal, state = jax.vmap(one, out_axes=(0, axes))(jax.tree.unflatten(structure, own))
    refuse_large_state(state)
    return legal, state


def _init_each(learners: Learner, params: PyTree) -> PyTree:
    return jax.vmap(lambda one: one.init(params))(learners)


@functools.partial(compiled, static=(0, 1))
def _pack_each(pack: Callable[[PyTree], PyTree], axes: PyTree, state: PyTree) -> PyTree:
    return jax.vmap(pack, out_axes=axes)(state)


def _legal_state(learner: Learner, params: PyTree, legal: list[Array], state: PyTree) -> PyTree:
    """The state; refuses `params` that break a need of the learner."""
    for need, fine in zip(_about_params(learner), legal, strict=True):
        if not is_traced(fine) and not np.asarray(fine).any():  # np.any would call the device
            first = np.asarray(jax.tree.leaves(params)[0])
            seen = np.array2string(first, threshold=6, precision=4)
            raise RefusedValue(f"{need.owner}: {need.demand}, got {seen}{remedy_of(need)}.")
    return state


def _about_params(learner: Learner) -> list[Need]:
    return [need for need in learner.needs if need.where == "params"]


def _without(state: PyTree, given: PyTree) -> PyTree:
    """The state without arrays of the caller: a program overwrites its state."""
    others = {id(leaf) for leaf in jax.tree.leaves(given)}
    return jax.tree.map(lambda leaf: jnp.array(leaf) if id(leaf) in others else leaf, state)


def _copy(leaf: jax.Array) -> jax.Array:
    """A copy; it does not lie on the devices of the earlier sweep, which may be others."""
    if jax.local_device_count() == 1:
        return jnp.array(leaf)
    if is_key(leaf):
        data = jnp.asarray(np.asarray(jax.random.key_data(leaf)))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    return jnp.asarray(np.array(leaf))


def _as_linear(
    numbers: Numbers, rounds: Pieces, recorder: Recorder
) -> tuple[Numbers, Pieces, tuple[str, ...]]:
    """The numbers and the rounds, as those of a linear learner where that is the same; in words."""
    if not is_affine(numbers.learner):
        return numbers, rounds, ()
    if recorder.record not in (None, actions) or recorder.measure is not None:
        return numbers, rounds, (_AS_IT_IS,)
    stacked = numbers.configurations is not None
    numbers = new_numbers(as_linear(numbers.learner), numbers.loss, stacked)
    return numbers, _with_ones(rounds), (_AS_LINEAR,)


_AS_LINEAR = "affine as linear, on rows with one more feature, which is 1"
_AS_IT_IS = "affine as it is: `record` or `measure` could see a longer row"


def _with_ones(rounds: Pieces) -> Pieces:
    """The rounds with a longer row; those of much memory in pieces."""
    check_iterable(rounds)
    if isinstance(rounds, Rounds):
        check_rounds(rounds)
        rows = rounds.context
        if not isinstance(rows, np.ndarray) or rows.nbytes <= tuning.LONGER_BYTES:
            return rounds._replace(context=rows_with_ones(rows))
        rounds = _in_pieces(rounds)
    return _longer_pieces(rounds)


def _in_pieces(rounds: Rounds) -> Iterator[Rounds]:
    """The rounds in pieces: a longer row is a copy, and there may be no memory for all of them."""
    length = len(rounds.context)
    step = max(1, tuning.LONGER_PIECE_BYTES * length // rounds.context.nbytes)
    with Readahead(rounds) as window:
        for low in range(0, length, step):
            window.move(low, low, min(low + step, length))
            yield jax.tree.map(lambda leaf, rows=slice(low, low + step): leaf[rows], rounds)


def _longer_pieces(rounds: Iterable[Rounds]) -> Iterator[Rounds]:
    for piece in rounds:
        check_rounds(piece)
        yield piece._replace(context=rows_with_ones(piece.context))
