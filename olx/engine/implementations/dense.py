"""Round after round on dense rows: one learner, a sweep, or the learners of a sweep in turn.

A learner such as the p-norm Perceptron or Winnow changes its state in few rounds, but maps it to a
decision by powers or exponentials. Its round is cut into two parts: what depends on the state and
on the numbers of the learner alone, and the rest. The result of the first part is kept between the
rounds, and computed again only if a bit of the state has changed: inside one kernel a condition is
a branch. Both parts are the operations of the round itself, so the numbers stay the same.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Bool, Int, PyTree

from olx._cache import cached
from olx.core import Learner, Loss, Rounds
from olx.engine import tuning
from olx.engine.compile import Program, alone, at, over_rounds, unavailable
from olx.engine.finite import visible_leaves
from olx.engine.game import Game
from olx.engine.implementations.base import Implementation
from olx.engine.implementations.sparse_rounds import refresh
from olx.engine.round import Output, Recorder, feedback_of, finish_round


@cached
def dense_program(
    recorder: Recorder, layout: None = None, batched: bool = False, devices: int = 1
) -> Program:
    """Play one learner, or a batch of learners side by side, on a chunk."""
    over = jax.vmap if batched else alone
    return Program(functools.partial(_play, over, recorder), share=spread(devices))


@cached
def in_turn_program(recorder: Recorder, layout: None, batched: bool, devices: int) -> Program:
    """Play a batch of learners on the same chunk, one learner after the other."""
    return Program(functools.partial(_in_turn, recorder), share=spread(devices))


def _side_by_side(game: Game) -> str:
    """Why learners are not slower side by side than one after the other.

    On the CPU they are slower if each keeps a matrix: the matrix of one learner stays in the cache
    for a chunk, and its rows fill the SIMD lanes. The matrices of all learners would not fit.
    """
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(game.state)]
    least = tuning.MATRIX_ENTRIES
    if not any(len(shape) > 1 and math.prod(shape) >= least for shape in shapes):
        return f"no learner keeps a matrix of {least:,} numbers"
    return unavailable()


_NAME = "configurations"


@functools.cache
def spread(devices: int, axes: Any = 0) -> Callable | None:
    """Give each device an equal part of the configurations; None for one device.

    axes: where the axis of configurations is in the state, as for `jax.vmap`.
    """
    if devices == 1:
        return None
    mesh = jax.make_mesh(
        (devices,), (_NAME,), (AxisType.Auto,), devices=jax.local_devices()[:devices]
    )
    at = lambda axis: PartitionSpec(*[None] * axis, _NAME)
    state, alike = jax.tree.map(at, axes), PartitionSpec()
    out: Any = Output(at(1), at(1), at(0))  # pyright: ignore[reportArgumentType]
    return functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(state, at(0), alike, alike, alike),
        out_specs=((state, out), alike),
        check_vma=False,
    )


def _round(
    recorder: Recorder, learner: Learner, state: PyTree, loss: Loss, here: Rounds
) -> tuple[PyTree, Array | None, Output]:
    """The new state before its refresh, whether the refresh is due, and the output."""
    action = learner.predict(state, here.context)
    weight = 1.0 if here.weight is None else here.weight
    feedback = feedback_of(loss, here.context, action, here.outcome, weight)
    if sum(jnp.size(leaf) for leaf in jax.tree.leaves(action)) >= tuning.ACTION_NUMBERS:
        feedback = feedback._replace(grad=_after(feedback.value, feedback.grad))
    new, seen = finish_round(learner, learner.step, recorder, state, feedback)
    return new, None if learner.facts.refresh is None else learner.due(new, weight), seen


def _after(value: Array, grad: PyTree) -> PyTree:
    """The same gradient, known only after the loss.

    The gradient of a linear loss needs no action. An update could then come before the decision is
    used, so XLA would copy the state in every round. It does not know that nothing is above
    infinity.
    """
    one = jnp.where(value > jnp.inf, 2, 1)
    return jax.tree.map(lambda leaf: leaf * one.astype(leaf.dtype), grad)


def _play(
    over: Callable,
    recorder: Recorder,
    state: PyTree,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[PyTree, Output]:
    """The state after the rounds of `span`, and the output of each round."""
    one = over(functools.partial(_round, recorder), (0, 0, None, None))
    capacity = jax.tree.leaves(rounds)[0].shape[0]

    def play(state: PyTree, i: Int[Array, ""]) -> tuple[PyTree, Output]:
        new, due, seen = one(learner, state, loss, at(rounds, i))
        return refresh(over, learner, new, due), seen

    holds = over is alone and learner.facts.conservative and not unavailable()
    row = jax.tree.map(lambda leaf: leaf[0], rounds)  # for its shapes
    parts = split_round(one, (learner, state), (loss, row)) if holds else None
    if parts is None:
        return over_rounds(play, state, span, capacity)

    def hold(carry: tuple[PyTree, list], i: Int[Array, ""]) -> tuple[tuple[PyTree, list], Output]:
        state, held = carry
        new, due, seen = parts.rest(held, (learner, state), (loss, at(rounds, i)))
        new = refresh(over, learner, new, due)
        return (new, renew_decision(parts, held, (learner, state), (learner, new))), seen

    start = state, parts.held((learner, state))
    (state, _), out = over_rounds(hold, start, span, capacity)
    return state, out


def _in_turn(
    recorder: Recorder,
    state: PyTree,
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    span: Int[Array, "2"] | None,
) -> tuple[PyTree, Output]:
    play = lambda own: _play(alone, recorder, own[0], own[1], loss, rounds, span)
    state, out = lax.map(play, (state, learner))
    paid, kept = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), (out.sums, out.records))
    return state, Output(paid, kept, out.nonfinite)


_COSTLY = {
    "acosh", "asinh", "atanh", "cosh", "erf", "exp", "exp2", "expm1", "lgamma", "log", "log1p",
    "logistic", "pow", "sinh", "tanh", "while",
}  # fmt: skip


class Parts(NamedTuple):
    """A function of (known, other) in two parts; `known` is a learner and its state."""

    held: Callable[[PyTree], list[Array]]  # known -> what is held
    rest: Callable[[list[Array], PyTree, PyTree], Any]  # (held, known, other) -> the result
    read: tuple[int, ...]  # the leaves of `known` that the first part reads


def split_round(function: Callable, known: PyTree, other: PyTree) -> Parts | None:
    """The parts of a function; None if nothing costly depends on `known` alone."""
    shapes = jax.tree.map(_shape, (known, other))
    closed, out = jax.make_jaxpr(lambda a, b: function(*a, *b), return_shape=True)(*shapes)
    jaxpr, structure = closed.jaxpr, jax.tree.structure(out)
    count = len(jax.tree.leaves(known))
    own = {*jaxpr.invars[:count], *jaxpr.constvars}
    worth: set[Any] = set()
    for equation in jaxpr.eqns:
        if equation.effects or not all(_is_number(atom) or atom in own for atom in equation.invars):
            continue
        own.update(equation.outvars)
        if _is_costly(equation) or any(atom in worth for atom in _variables(equation.invars)):
            worth.update(equation.outvars)
    if not worth:
        return None
    late = [one for one in jaxpr.eqns if not worth.issuperset(one.outvars)]
    used = [*(atom for one in late for atom in one.invars), *jaxpr.outvars]
    border = list(dict.fromkeys(atom for atom in _variables(used) if atom in worth))
    early = _needed([one for one in jaxpr.eqns if own.issuperset(one.outvars)], border)
    reads = {atom for one in early for atom in _variables(one.invars)}
    read = tuple(i for i, atom in enumerate(jaxpr.invars[:count]) if atom in reads)

    first = _part(closed, early, jaxpr.invars[:count], border)
    second = _part(closed, late, [*border, *jaxpr.invars], jaxpr.outvars)

    def held(known: PyTree) -> list[Array]:
        return list(first(*jax.tree.leaves(known)))

    def rest(held: list[Array], known: PyTree, other: PyTree) -> Any:
        return jax.tree.unflatten(structure, second(*held, *jax.tree.leaves((known, other))))

    return Parts(held, rest, read)


def renew_decision(parts: Parts, held: list[Array], old: PyTree, new: PyTree) -> list[Array]:
    """What is held of `new`, if `held` is what is held of `old`."""
    pairs = list(zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True))
    moved = jnp.stack([_differs(*pairs[i]) for i in parts.read if pairs[i][0] is not pairs[i][1]])

    return lax.cond(jnp.any(moved), lambda _: parts.held(new), lambda held: held, held)


def _differs(old: Array, new: Array) -> Bool[Array, ""]:
    """Whether any bit of two arrays differs."""
    if jnp.issubdtype(old.dtype, jnp.floating):
        kind = np.dtype(f"i{old.dtype.itemsize}")
        old, new = (lax.bitcast_convert_type(leaf, kind) for leaf in (old, new))
    return jnp.any(old != new)


def _needed(equations: list, wanted: list) -> list:
    """The operations that some variables depend on, in their order."""
    needed, found = set(wanted), []
    for one in reversed(equations):
        if needed.intersection(one.outvars):
            needed.update(_variables(one.invars))
            found.append(one)
    return found[::-1]


def _part(whole: Any, equations: list, given: list, wanted: list) -> Callable[..., list]:
    """The function of some variables that these operations of a program compute."""
    names = whole.jaxpr.debug_info.with_unknown_names()
    part = whole.jaxpr.replace(
        eqns=equations, invars=given, outvars=wanted, effects=set(), debug_info=names
    )
    return jaxpr_as_fun(whole.replace(jaxpr=part))


def _is_costly(equation: Any) -> bool:
    """Whether an operation, or one inside it, is costly."""
    many = max(variable.aval.size for variable in equation.outvars) >= tuning.CACHED_NUMBERS
    if equation.primitive.name in _COSTLY and (many or equation.primitive.name == "while"):
        return True
    inner = [getattr(value, "jaxpr", value) for value in equation.params.values()]
    return any(_is_costly(one) for part in inner if hasattr(part, "eqns") for one in part.eqns)


def _is_number(atom: Any) -> bool:
    return hasattr(atom, "val")


def _variables(atoms: Any) -> list:
    return [atom for atom in atoms if not _is_number(atom)]


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    leaf = jnp.asarray(leaf)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)


DENSE = Implementation("dense", dense_program, visible_leaves, least=lambda: tuning.SHARE_DENSE)
IN_TURN = Implementation(
    "in_turn",
    in_turn_program,
    visible_leaves,
    sweeps=True,
    slower=_side_by_side,
    least=lambda: tuning.SHARE_IN_TURN,
)
