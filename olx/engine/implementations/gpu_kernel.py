"""A chunk of rounds as one GPU kernel, for any learner whose round has a legal form.

A plain loop launches several kernels in every round, and a launch takes longer than the work of a
small round. Here a round is traced once, written in operations that Triton has (`gpu_legalize`),
and played in a loop inside of one kernel of Pallas. A program of its grid plays a block of the
configurations; their states stay in registers for the whole chunk. A single learner is a block of
one, so the threads share its coordinates.

On other backends the kernel is interpreted: slow, and for tests. It has never run on a device.
"""

import functools
import itertools
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.dtypes import canonicalize_dtype
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array, Int, PyTree

from olx._cache import cached
from olx.core import Learner, Loss, Rounds
from olx.engine.compile import Program
from olx.engine.finite import visible_leaves
from olx.engine.game import Game
from olx.engine.implementations.base import Implementation
from olx.engine.implementations.dense import play_round, spread
from olx.engine.implementations.gpu_legalize import constants_of, play
from olx.engine.implementations.gpu_moves import Unfit
from olx.engine.implementations.gpu_padding import is_key, pad, padded_shape, unpad
from olx.engine.implementations.gpu_resources import Cut, Resources, cut_of, resources_of
from olx.engine.implementations.gpu_rules import unwrap, wrap
from olx.engine.numbers import repeat_last
from olx.engine.round import Output, Recorder, context_dtypes
from olx.engine.view import as_arrays, capacity_of


@cached
def kernel_program(
    recorder: Recorder, layout: None = None, batched: bool = False, devices: int = 1
) -> Program:
    """Play one learner, or a batch of learners, by one kernel per chunk."""
    interpret = jax.devices()[0].platform != "gpu"
    play = functools.partial(play_chunk, recorder, batched, interpret)
    says = "one kernel launch per chunk" + interpret * ", interpreted: slow, and for tests"
    return Program(play, share=spread(devices), says=says)


def play_chunk(
    recorder: Recorder,
    batched: bool,
    interpret: bool,
    state: PyTree,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[PyTree, Output]:
    """The state after the rounds of `span`, and the output of each round."""
    rounds = as_arrays(rounds, capacity_of(rounds) if span is None else span[1])
    leaves, structures = zip(*map(jax.tree.flatten, (learner, state, loss, rounds)), strict=True)
    own, held, other, rows = leaves
    kinds = tuple(map(_kinds, leaves, (batched, batched, 0, 1)))
    asked = Asked(structures, kinds, recorder, jax.config.read("jax_enable_x64"))
    count = own[0].shape[0] if batched else 1
    cut = cut_of(needs_of(asked), count)
    found = legal_round(asked, cut.block)
    if not batched:
        own, held = ([jnp.asarray(leaf)[None] for leaf in part] for part in (own, held))
    held, seen, alarm = _call(found, cut, interpret, count, (own, held, other, rows), span)
    if not batched:
        held, alarm = ([leaf[0] for leaf in part] for part in (held, alarm))
        seen = [leaf[:, 0] for leaf in seen]
    paid, kept = jax.tree.unflatten(found.output, seen)
    state = jax.tree.unflatten(structures[1], held)
    return state, Output(paid, kept, alarm[0] if alarm else None)


Kind = tuple[tuple[int, ...], Any, bool]  # shape, dtype, and whether the type is weak


class Asked(NamedTuple):
    """What a legal round depends on, to be remembered by."""

    structures: tuple[Any, ...]  # of the learner, the state, the loss and the rounds
    kinds: tuple[tuple[Kind, ...], ...]  # of their leaves, of one configuration and one round
    recorder: Recorder
    double: bool  # whether numbers may be of 8 bytes


class LegalRound(NamedTuple):
    """A round of a block of configurations in operations that Triton has."""

    program: Any  # a closed jaxpr: (constants, learner, state, loss, row) -> (state, output, alarm)
    constants: list[np.ndarray]  # the arrays that the round holds
    kinds: list[Any]  # the true shapes and dtypes of the results
    output: Any  # the structure of the output


@cached
def legal_round(asked: Asked, block: int) -> LegalRound:
    """The legal form of a round; `Unfit` if there is none."""
    closed, output = _traced_round(asked, block)
    if not all(kind.size for kind in (*closed.in_avals, *closed.out_avals)):
        raise Unfit("an array without elements has no legal form")
    held = constants_of(closed)

    def legal(constants: list[Array], *given: Array) -> list[Array]:
        known = dict(zip(held, constants, strict=True))
        pairs = zip(given, closed.in_avals, strict=True)
        values = [wrap(x) if is_key(kind) else x for x, kind in pairs]
        pairs = zip(play(closed, known, *values), closed.out_avals, strict=True)
        return [unwrap(x) if is_key(kind) else x for x, kind in pairs]

    own = lambda value: np.asarray(value, canonicalize_dtype(value.dtype))
    constants = list(map(own, held.values()))  # not of JAX: this may be called inside of a trace
    program = jax.make_jaxpr(legal)(list(map(_padded, constants)), *map(_padded, closed.in_avals))
    return LegalRound(program, constants, closed.out_avals, output)


@cached
def _traced_round(asked: Asked, block: int) -> tuple[Any, Any]:
    """A closed jaxpr of a round, and the structure of its output."""
    function = functools.partial(_round, asked, block)
    given = _structs(asked, (block,), (block,), (), ())
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*given)
    return closed, jax.tree.structure(shapes[1])


def _structs(asked: Asked, *leads: tuple[int, ...]) -> list[list[Any]]:
    """The leaves of a round as shapes, with first axes for each of the four parts."""
    return [
        [jax.ShapeDtypeStruct((*lead, *shape), dtype, weak_type=weak) for shape, dtype, weak in own]
        for lead, own in zip(leads, asked.kinds, strict=True)
    ]


def _round(
    asked: Asked, block: int, *leaves: list[Array]
) -> tuple[list[Array], tuple[PyTree, PyTree], list[Array]]:
    """The leaves of the state after a round, its output, and the alarm, if there is one."""
    learner, state, loss, here = map(jax.tree.unflatten, asked.structures, leaves)
    over = functools.partial(jax.vmap, axis_size=block)
    state, out = play_round(over, asked.recorder, learner, state, loss, here)
    alarm = [] if out.nonfinite is None else [out.nonfinite]
    return jax.tree.leaves(state), (out.sums, out.records), alarm


@cached
def needs_of(asked: Asked) -> Resources:
    """What a round of one configuration needs of a device."""
    return resources_of(legal_round(asked, 1).program)


def _call(
    found: LegalRound,
    cut: Cut,
    interpret: bool,
    count: int,
    leaves: Sequence[list[Array]],
    span: Int[Array, "2"] | None = None,
) -> list[list[Array]]:
    """The states of `count` configurations, the output of each round, and the alarm."""
    from jax.experimental import pallas  # imported here, since most runs do not need it
    from jax.experimental.pallas import triton

    own, held, other, rows = leaves
    short = -count % cut.block  # the last configuration again fills the last program
    stacked = lambda leaf: pad(repeat_last(_data(leaf), short), 1)
    given = (
        list(map(pad, found.constants)),
        [] if span is None else [span],
        [pad(jnp.atleast_1d(_data(leaf))) for leaf in other],
        [pad(_data(leaf), 1) for leaf in rows],
        list(map(stacked, own)),
        list(map(stacked, held)),
    )
    flat, counts = [leaf for part in given for leaf in part], [len(part) for part in given]
    capacity, first = given[3][0].shape[0], len(flat) - len(held)
    results = [len(held), found.output.num_leaves]
    is_output = [i in range(len(held), sum(results)) for i in range(len(found.kinds))]
    lead = lambda output, count: (capacity, count) if output else (count,)

    def block(leaf: Any, axis: int) -> Any:
        """A block of configurations along `axis`, at the number of the program; all for axis -1."""
        shape = [cut.block if k == axis else n for k, n in enumerate(leaf.shape)]
        return pallas.BlockSpec(shape, lambda g: [g if k == axis else 0 for k in range(leaf.ndim)])

    out_shape = [
        _padded(kind, lead(output, count + short))
        for kind, output in zip(found.kinds, is_output, strict=True)
    ]
    call = pallas.pallas_call(
        functools.partial(_kernel, found, cut.block, capacity, [*counts, *results]),
        grid=((count + short) // cut.block,),
        in_specs=[block(leaf, 0 if i >= first - len(own) else -1) for i, leaf in enumerate(flat)],
        out_specs=list(map(block, out_shape, is_output)),
        out_shape=out_shape,
        input_output_aliases={first + i: i for i in range(len(held))},
        interpret=interpret,
        compiler_params=None if interpret else triton.CompilerParams(num_warps=cut.warps),
        name="olx_rounds",
    )
    seen = zip(call(*flat), is_output, found.kinds, strict=True)
    return _parts([_true(leaf, lead(output, count), kind) for leaf, output, kind in seen], results)


def _kernel(
    found: LegalRound, block: int, capacity: int, counts: list[int], *references: Any
) -> None:
    """The rounds of one block of configurations; its arguments are references into memory."""
    parts = _parts(references, counts)
    constants, span, other, rows, own, held, after, written, alarms = parts
    load = lambda references: [reference[...] for reference in references]
    constants, own, start = load(constants), load(own), load(held)
    inputs = found.program.in_avals[len(constants) + len(own) + len(start) :]
    other = [ref[...] if kind.shape else ref[0] for ref, kind in zip(other, inputs, strict=False)]
    low, high = (span[0][0], span[0][1]) if span else (0, capacity)
    at = lambda reference, t: (t, *[slice(None)] * (len(reference.shape) - 1))
    read = lambda t: [reference[at(reference, t)] for reference in rows]

    def play_round(t: Array, carry: tuple) -> tuple:
        state, row, bad = carry
        ahead = read(jnp.minimum(t + 1, capacity - 1))
        results = jaxpr_as_fun(found.program)(*constants, *own, *state, *other, *row)
        state, seen, alarm = _parts(results, counts[-2:])
        for reference, value in zip(written, seen, strict=True):
            reference[at(reference, t)] = value
        bad = [old | new for old, new in zip(bad, alarm, strict=True)]
        without_weak_types = [lax.convert_element_type(leaf, leaf.dtype) for leaf in state]
        return without_weak_types, ahead, bad

    none = [lax.full((block,), False) for _ in alarms]
    first = start, read(jnp.minimum(low, capacity - 1)), none
    state, _, bad = lax.fori_loop(low, high, play_round, first)
    for reference, value in zip((*after, *alarms), (*state, *bad), strict=True):
        reference[...] = value


def _parts(values: Sequence[Any], counts: list[int]) -> list[list[Any]]:
    """The values in lists of these lengths, and the rest."""
    ends = [0, *itertools.accumulate(counts), len(values)]
    return [list(values[low:high]) for low, high in itertools.pairwise(ends)]


def _kinds(leaves: list, lead: int) -> tuple[Kind, ...]:
    """The kinds of leaves without their first `lead` axes."""
    number = lambda leaf: ((), jnp.result_type(type(leaf)), True)
    array = lambda leaf: (leaf.shape[lead:], leaf.dtype, getattr(leaf, "weak_type", False))
    return tuple((number if isinstance(leaf, int | float) else array)(leaf) for leaf in leaves)


def _data(leaf: Any) -> Array:
    """A leaf as numbers; a random key as two words, on a last axis."""
    leaf = jnp.asarray(leaf)
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def _true(leaf: Array, lead: tuple[int, ...], kind: Any) -> Array:
    """A result of the kernel without its padding, as numbers or keys."""
    shape = (*lead, *kind.shape[1:])
    if not is_key(kind):
        return unpad(leaf, shape)
    return jax.random.wrap_key_data(unpad(leaf, (*shape, 2)), impl="threefry2x32")


def _padded(kind: Any, lead: tuple[int, ...] | None = None) -> jax.ShapeDtypeStruct:
    """A padded argument of a legal round; for a kernel, with `lead` in place of the first axis."""
    shape = padded_shape(kind.shape) if lead is None else (*lead, *padded_shape(kind.shape[1:]))
    if is_key(kind):
        return jax.ShapeDtypeStruct((*shape, 2), jnp.uint32)
    return jax.ShapeDtypeStruct(shape, kind.dtype)


def _cannot(game: Game) -> str:
    """Why a kernel cannot play it: the primitive of the round that has no legal form."""
    asked = asked_of(game)
    reason = "" if asked is None else _refusal(asked, game.configurations or 1)
    if not reason:
        return ""
    learner = textwrap.shorten(repr(game.numbers.learner), 60, placeholder=" ...")
    return f"{reason}, in a round of {learner}"


def _slower(game: Game) -> str:
    """Why a device has no room for the states of a program, if the round has a legal form."""
    asked, count = asked_of(game), game.configurations or 1
    if asked is None or _refusal(asked, count):
        return ""
    return cut_of(needs_of(asked), count).why_not()


def asked_of(game: Game) -> Asked | None:
    """What the round of a game depends on; None if the rounds will be refused as they are."""
    leaves, first = game.numbers.leaves, game.first
    try:
        rest = [leaf.dtype for leaf in jax.tree.leaves(first._replace(context=None))]
        dtypes = map(canonicalize_dtype, context_dtypes(first.context, game.params, 1) + rest)
        rows = [leaf.shape[1:] for leaf in jax.tree.leaves(first)]
    except (AttributeError, IndexError, TypeError, ValueError):
        return None
    held, state = jax.tree.flatten(game.state)
    lead = game.batched, game.batched, 0
    kinds = map(_kinds, (leaves.own, held, leaves.other), lead)
    shown = tuple((shape, dtype, False) for shape, dtype in zip(rows, dtypes, strict=True))
    form = leaves.structure
    structures = form.learner, state, form.loss, jax.tree.structure(first)
    return Asked(structures, (*kinds, shown), game.recorder, jax.config.read("jax_enable_x64"))


@cached
def _refusal(asked: Asked, count: int) -> str:
    """Why a round has no legal form, or none that Triton takes; empty if it has one."""
    try:
        _traced_round(asked, 1)
    except Exception:
        return ""  # the program of the round fails in the same way, and its error is better
    try:
        cut = cut_of(needs_of(asked), count)
        call = functools.partial(_call, legal_round(asked, cut.block), cut, False, cut.block)
        leaves = _structs(asked, (cut.block,), (cut.block,), (), (1,))  # of one block and one round
        jax.jit(call).trace(leaves).lower(lowering_platforms=("cuda",))
    except Unfit as error:
        return str(error)
    except Exception as error:
        reason = str(error).splitlines()[0][:100] if str(error) else ""
        return (
            f"jax {jax.__version__} has no GPU form of a round ({type(error).__name__}: {reason})"
        )
    return ""


GPU_KERNEL = Implementation(
    "gpu_kernel", kernel_program, visible_leaves, cannot=_cannot, slower=_slower, backend="gpu"
)
