"""The definition of a run: a scan of the three functions over a stream.

`play` is the same game against an adversary that answers each action.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun
from jaxtyping import PyTree

from olx import _check as check
from olx._compiled import compiled
from olx._memory import refuse_large_arrays
from olx._pytree import as_tree
from olx._readings import readings_of
from olx._refusal import RefusedType, public
from olx._words import words
from olx.core import Adversary, Learner, Loss, Rounds, Run
from olx.engine import round
from olx.engine.arguments import check_game
from olx.engine.explain import errors_explained
from olx.engine.game import first_state, given_state, player
from olx.engine.round import Output, Record, Recorder, feedback_of, finish_round
from olx.needs import refuse_breach
from olx.streams.checks import (
    check_rounds,
    is_traced,
    judge,
    legal_so_far,
    needs_of,
    on_host,
    refuse_unknown,
)
from olx.streams.sparse_rows import SparseRows


@public
def rollout(
    learner: Learner,
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    record: Record | None = None,
    state: PyTree = None,
    segment: int | None = None,
) -> Run:
    r"""Play `learner` on a stream. Pure: compose it with `jit`, `vmap` and `grad`.

    Another call with the same functions compiles nothing, whatever the numbers are. A function with
    a closure, or one that reads an array or an object besides its arguments, is compiled in every
    call, since these may have changed.

    loss: $\ell(a, y)$ of an action and an outcome, a named function or a `Partial`.
    params: where the learner starts; some learners use only its shape.
    record: (state before the update, feedback) -> what to keep of each round.
    state: continue from the `state` of an earlier run.
    segment: saves memory in reverse mode over long streams: only every `segment`-th state is kept,
        the others are computed again. The square root of the number of rounds saves most.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> run = olx.rollout(olx.hedge(0.5), olx.losses.linear_loss, rounds, jnp.array([0.5, 0.5]))
    >>> run.losses.round(3).tolist()
    [0.5, 0.378, 0.269, 0.182]
    """
    check_game(learner, loss)
    check_rounds(rounds)
    if isinstance(rounds.context, SparseRows):
        raise RefusedType("sparse rows are played by `olx.run`; here pass `rows.toarray()`.")
    if record is not None:
        check.takes("record", record, "state", "feedback")
    continued = state is not None
    start = first_state(learner, params) if state is None else given_state(learner, params, state)
    needs = needs_of(learner, loss)
    traced = judge(needs, params, jax.tree.map(on_host, rounds))
    state = jax.tree.map(jnp.asarray, start)
    rounds = jax.tree.map(_array, rounds)
    if segment is not None:
        check.count("segment", segment)
    with errors_explained(learner, loss, params, rounds, Recorder(record)):
        record = None if record is None else as_tree(record)
        given = player(learner), as_tree(loss), record, params, state, rounds
        state, ((losses, _), kept, _) = _play_rounds(segment, *given)
    if traced:
        losses = jnp.where(legal_so_far(traced), losses, jnp.nan)
    elif any(need.unknown for need, _ in needs) and not is_traced((losses, rounds)):
        refuse_unknown(needs, jax.tree.map(on_host, rounds), [np.asarray(losses)])
    refuse_breach(state)
    return Run(state, losses, kept, continued=continued)


def _array(leaf: object) -> Any:
    return leaf if isinstance(leaf, np.ndarray | jax.Array) else np.asarray(leaf)


def _play_rounds(segment: int | None, *given: Any) -> tuple[PyTree, Output]:
    """The last state and the outputs, from a program that is kept if all functions are known."""
    if readings_of(jax.tree.structure(given[:3])) is not None:
        shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(given))
        try:
            return _scan_again(segment, shapes, *given)
        except Exception:
            pass  # a function needs a number of the learner as it is; or it fails below too
    return _scan(segment, None, *given)


def _scan(
    segment: int | None,
    _: tuple | None,
    learner: Learner,
    loss: Loss,
    record: Record | None,
    params: PyTree,
    state: PyTree,
    rounds: Rounds,
) -> tuple[PyTree, Output]:
    def step(state: PyTree, one: Rounds) -> tuple[PyTree, Output]:
        context = round.cast_context(one.context, params)
        action = learner.predict(state, context)
        weight = 1.0 if one.weight is None else one.weight
        feedback = feedback_of(loss, context, action, one.outcome, weight)
        return finish_round(learner, Recorder(record), state, feedback)

    def play(state: PyTree, rounds: Rounds) -> tuple[PyTree, Output]:
        if segment is None:
            return lax.scan(step, state, rounds)
        return in_segments(step, state, rounds, segment)

    return _in_one_program(play, state, rounds)


_scan_again = compiled(_scan, static=(0, 1))
_DISABLED = "jax_disable_jit"


def _in_one_program(play: Callable, state: PyTree, rounds: Rounds) -> Any:
    """The same numbers; JAX would keep the program of a scan outside `jit` for ever."""
    if getattr(jax.config, _DISABLED):
        return play(state, rounds)
    closed, shapes = jax.make_jaxpr(play, return_shape=True)(state, rounds)
    refuse_large_arrays(closed.jaxpr)
    call = jax.jit(lambda consts, given: jaxpr_as_fun(closed.replace(consts=consts))(*given))
    found = call(closed.consts, jax.tree.leaves((state, rounds)))
    return jax.tree.unflatten(jax.tree.structure(shapes), found)


def in_segments(step: Callable, state: PyTree, rounds: PyTree, segment: int) -> tuple:
    """`lax.scan` that keeps one state per `segment` rounds, and plays them again to go back."""
    length = len(jax.tree.leaves(rounds)[0])
    whole = length - length % segment
    fold = lambda leaf: leaf[:whole].reshape(whole // segment, segment, *leaf.shape[1:])
    unfold = lambda leaf: leaf.reshape(whole, *leaf.shape[2:])
    replay = jax.checkpoint(lambda state, part: lax.scan(step, state, part))
    state, kept = lax.scan(replay, state, jax.tree.map(fold, rounds))
    kept = jax.tree.map(unfold, kept)
    if whole < length:
        state, tail = replay(state, jax.tree.map(lambda leaf: leaf[whole:], rounds))
        join = lambda a, b: jnp.concatenate([a, b])
        kept = jax.tree.map(join, kept, tail)
    return state, kept


@public
def play(
    learner: Learner,
    adversary: Adversary,
    params: PyTree,
    rounds: int,
    *,
    record: Record | None = None,
) -> Run:
    """Play `learner` for `rounds` rounds against `adversary`, which sees each action.

    `run.rounds` holds the rounds that the adversary made, to replay them or to measure regret.
    """
    check.instance("adversary", adversary, Adversary)
    check.takes("init_fn", adversary.init_fn, "hparams")
    check.takes("ask_fn", adversary.ask_fn, "hparams", "state", remedy="it may return None")
    check.takes("answer_fn", adversary.answer_fn, "hparams", "state", "action")
    check_game(learner, adversary.loss)
    check.count("rounds", rounds)
    if record is not None:
        check.takes("record", record, "state", "feedback")

    def step(states, _):
        state, nature = states
        context = round.cast_context(adversary.ask(nature), params)
        action = learner.predict(state, context)
        outcome, nature = _answer(adversary, nature, action)
        feedback = feedback_of(adversary.loss, context, action, outcome, 1.0)
        state, seen = finish_round(learner, Recorder(record), state, feedback)
        return (state, nature), (seen.sums[0], (seen.records, Rounds(context, outcome)))

    state = first_state(learner, params)
    states = jax.tree.map(jnp.asarray, (state, adversary.init()))
    (state, _), (losses, (kept, seen)) = lax.scan(step, states, length=rounds)
    refuse_breach(state)
    traced = judge(needs_of(learner, adversary.loss), params, jax.tree.map(on_host, seen))
    if traced:
        losses = jnp.where(legal_so_far(traced), losses, jnp.nan)
    return Run(state, losses, kept, seen)


def _answer(adversary: Adversary, nature: PyTree, action: PyTree) -> tuple[PyTree, PyTree]:
    """The outcome and the next state of the adversary; refuses another order, where it shows."""
    answer = adversary.answer(nature, action)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise RefusedType(f"`answer_fn` must give (outcome, state), got {type(answer).__name__}.")
    outcome, after = answer
    if not _is_like(nature, after):
        hint = " They seem to be in the other order." if _is_like(nature, outcome) else ""
        raise RefusedType(
            "`answer_fn` must give (outcome, state), with a state like that of `init_fn`, "
            f"{words(nature)}; it gave the state {words(after)}.{hint}"
        )
    return outcome, after


def _is_like(first: PyTree, second: PyTree) -> bool:
    """Whether a scan may replace the first tree by the second one."""
    if jax.tree.structure(first) != jax.tree.structure(second):
        return False
    kind = lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf))
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    promoted = lambda a, b: getattr(a, "weak_type", False) and jnp.shape(a) == jnp.shape(b)
    return all(kind(a) == kind(b) or promoted(a, b) for a, b in pairs)
