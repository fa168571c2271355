"""Round after round in NumPy, without a compiler: for games of a few rounds of one learner.

A round is written down as a function of NumPy (`numpy_functions`), which takes microseconds per
round and no time to compile. Which games are short is decided by their sizes alone, so that the
same call gives the same bits every time.

Python raises where JAX goes on with infinity or NaN, as after a division by 0. A chunk in which
that happens, or whose result is not finite, is played again by the compiled program of `dense`.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import contextlib
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx._cache import cached
from olx.core import Rounds
from olx.engine import tuning
from olx.engine.chunks import Plan
from olx.engine.compile import Program, alone
from olx.engine.device import accelerated
from olx.engine.finite import Visible
from olx.engine.game import Game
from olx.engine.implementations.base import Implementation
from olx.engine.implementations.dense import dense_program, play_round
from olx.engine.numbers import Leaves, Structure
from olx.engine.numpy_functions import (
    LEFT,
    Functions,
    as_leaf,
    kind_of,
    numpy_functions,
    plain_number,
)
from olx.engine.numpy_operations import Unknown
from olx.engine.round import Output, Recorder, context_dtypes
from olx.engine.view import capacity_of, rows_on_host


class HostRound(NamedTuple):
    """The rounds of all learners of one structure, on states and rows of one shape."""

    functions: Functions  # one, of (numbers, state, row) -> (next state, output)
    held: int  # leaves of the state
    kinds: list[Any]  # dtypes of the leaves of the state, then of the output
    after: Any  # the structure of the next state and the output

    def result(self, found: list[Any]) -> tuple[PyTree, Output]:
        """The next state and the output of a round as trees; the leaves are those of NumPy."""
        return jax.tree.unflatten(self.after, map(as_leaf, found, self.kinds))


def host_round(
    structure: Structure,
    recorder: Recorder,
    numbers: tuple[list[Any], list[Any]],
    state: PyTree,
    row: Rounds,
) -> HostRound | str:
    """The round of learners and losses of one structure; or why it cannot be written with NumPy.

    numbers, state, row: arrays, or shapes and dtypes; only these are used.
    """
    held, own = jax.tree.flatten(state)
    here, form = jax.tree.flatten(row)
    kinds = tuple(tuple(map(kind_of, leaves)) for leaves in (*numbers, held, here))
    return _written(structure, recorder, own, form, kinds, jax.config.read("jax_enable_x64"))


@cached
def _written(
    structure: Structure,
    recorder: Recorder,
    state: Any,
    row: Any,
    kinds: tuple[Any, ...],
    _: bool,
) -> HostRound | str:
    own, other, held, here = kinds
    ends = np.cumsum([0, len(own), len(other), len(held), len(here)])
    after: list[Any] = []

    def play(*leaves: Any) -> list[Any]:
        parts = [list(leaves[low:high]) for low, high in itertools.pairwise(ends)]
        learner, loss = Leaves(parts[0], parts[1], structure).parts()
        given = jax.tree.unflatten(state, parts[2]), loss, jax.tree.unflatten(row, parts[3])
        found, tree = jax.tree.flatten(play_round(alone, recorder, learner, *given))
        after.extend([tree, [jnp.result_type(leaf) for leaf in found]])
        return found

    try:
        functions = numpy_functions([play], [*own, *other, *held, *here], len(own) + len(other))
    except Unknown as reason:
        return f"NumPy has no form here for {reason}, which a round needs"
    except Exception:  # the program of the round fails in the same way, and its error is better
        return "a round cannot be traced"
    return HostRound(functions, len(held), after[1], after[0])


def play_chunk(
    recorder: Recorder,
    structure: Structure,
    width: int,
    state: PyTree,
    numbers: tuple[list[Any], list[Any]],
    rounds: Rounds,
    span: np.ndarray,
) -> tuple[tuple[PyTree, Output], None]:
    """Play a chunk, as a form of a `Program` does."""
    low, high = map(int, span)
    rows = rows_on_host(rounds, low, high)
    row, rows = jax.tree.map(_row, rows), jax.tree.leaves(rows)
    written = host_round(structure, recorder, numbers, state, row)
    found = None
    if not isinstance(written, str):  # else the dtype of a state has changed from weak to strong
        with contextlib.suppress(*LEFT):
            found = _played(written, state, numbers, rows)
    if found is None:
        forms = dense_program(recorder).forms(Leaves(*numbers, structure))
        given = state, numbers, rounds, span
        call, _ = forms.choose(width, *given)
        return call(*given)
    state, seen = found
    fill = lambda leaf: _placed(leaf, low, capacity_of(rounds))
    return (jax.device_put(state), jax.tree.map(fill, seen)), None


def _played(
    written: HostRound, state: PyTree, numbers: tuple[list[Any], list[Any]], rows: list[np.ndarray]
) -> tuple[PyTree, Output] | None:
    """The state after the rows, and the outputs of all rounds; None if they are not finite."""
    prepare, (play,) = written.functions
    own = [plain_number(leaf) for leaf in (*numbers[0], *numbers[1])]
    held = [plain_number(leaf) for leaf in jax.tree.leaves(state)]
    count, seen = written.held, []
    with np.errstate(all="ignore"):
        shared = prepare(*own)
        for row in zip(*(leaf.tolist() if leaf.ndim == 1 else leaf for leaf in rows), strict=True):
            found = play(*own, *held, *row, *shared)
            held = found[:count]
            seen.append(found[count:])
    kinds = written.kinds[count:]
    outputs = [
        np.array(one, kind) for one, kind in zip(zip(*seen, strict=True), kinds, strict=True)
    ]
    state, output = written.result(held + outputs)
    finite = all(map(is_finite, (output.sums[0], *jax.tree.leaves(state))))
    return (state, output) if finite else None


def is_finite(leaf: Any) -> bool:
    """Whether all numbers are finite."""
    return bool(np.isfinite(leaf).all())


def _row(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _placed(rows: np.ndarray, low: int, capacity: int) -> np.ndarray:
    """The rows of a whole chunk; those that were not played are not read."""
    if len(rows) == capacity:
        return rows
    whole = np.zeros((capacity, *rows.shape[1:]), rows.dtype)
    whole[low : low + len(rows)] = rows
    return whole


@cached
def host_program(recorder: Recorder, layout: None, batched: bool, devices: int) -> Program:
    """Play one learner on a chunk without the compiler."""

    def form(structure: Structure, width: int) -> Callable[..., PyTree]:
        return lambda *given: play_chunk(recorder, structure, width, *given)

    return Program(dense_program(recorder).function, host=form)


def _cannot(game: Game) -> str:
    if game.batched:
        return "a batch of learners is played"
    if accelerated():
        return "the rounds are played on an accelerator"
    kinds = [leaf.dtype for leaf in jax.tree.leaves(game.first._replace(context=None))]
    kinds = [*context_dtypes(game.first.context, game.params, 1), *kinds]
    leaves, form = jax.tree.flatten(game.first)
    row = [
        jax.ShapeDtypeStruct(leaf.shape[1:], jax.dtypes.canonicalize_dtype(kind))
        for leaf, kind in zip(leaves, kinds, strict=True)
    ]
    leaves, row = game.numbers.leaves, jax.tree.unflatten(form, row)
    found = host_round(leaves.structure, game.recorder, leaves.numbers, game.state, row)
    return found if isinstance(found, str) else ""


def _slower(game: Game) -> str:
    """Why the game is not short.

    A compiled program is faster from its second call on. To compile it takes .1 s and more, and
    NumPy loses .1 to .4 ms per call in a game of 16 rounds; in one of hundreds, milliseconds.
    """
    most = tuning.HOST_ROUNDS
    if not isinstance(game.rounds, Rounds) or len(jax.tree.leaves(game.rounds)[0]) > most:
        return f"there may be more than {most} rounds"
    numbers = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(game.state))
    if numbers > tuning.HOST_NUMBERS:
        return f"a state has more than {tuning.HOST_NUMBERS:,} numbers"
    return ""


def _nothing_visible(game: Game, plan: Plan, leaves: tuple[int, ...]) -> Visible:
    return Visible()


HOST = Implementation("host", host_program, _nothing_visible, cannot=_cannot, slower=_slower)
