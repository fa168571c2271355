r"""`certify`: check the theorems of a learner on a game.

A learner carries its theorems. `certify` evaluates both sides of each theorem after every round,
either on a recorded run or while it plays a stream.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import PyTree

from olx import _check as check
from olx._compiled import compiled
from olx._refusal import RefusedType, public
from olx.certificate import Certificates
from olx.core import Batch, Learner, Loss, Rounds, Run, Trace
from olx.engine.arguments import check_batch, check_game
from olx.engine.execute import Options, execute
from olx.engine.game import game_of, peek
from olx.engine.numbers import numbers_of
from olx.engine.round import Recorder
from olx.engine.sparse_layout import dense
from olx.engine.with_theorems import same_player, sides, with_theorems
from olx.frameworks.lift import find_inner
from olx.keep import Keep, totals
from olx.streams.sparse_rows import SparseRows
from olx.theorem import Ledger, Theorem, advance, is_about, start
from olx.trace_checks import accept, check_rows, finite, vouched


@overload
def certify(
    learner: Learner, run: Run, u: PyTree, /, *, theorems: tuple[Theorem, ...] | None = None
) -> Certificates: ...


@overload
def certify(
    learner: Learner | Batch,
    loss: Loss,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    u: PyTree,
    /,
    *,
    theorems: tuple[Theorem, ...] | None = None,
    keep: Keep | None = None,
    progress: bool | None = None,
) -> Certificates: ...


@public
def certify(
    learner: Learner | Batch, *game: Any, theorems: Any = None, **options: Any
) -> Certificates:
    """Check the theorems of `learner` against the comparator `u`, after every round.

    `certify(learner, run, u)` checks a run that was played with `record=olx.record.trace` and
    without `keep`. For a sweep: `jax.vmap(olx.certify, (0, 0, None))(batch.learners, runs, u)`.

    `certify(learner, loss, rounds, params, u)` plays the stream through the engine: arrays, chunks,
    sparse rows (made dense a few at a time), and batches of learners. It needs memory for the state
    and for the rounds it keeps; `keep` chooses these, as for `olx.run`. The summary (`holds`,
    `tightness`, the first failure) is always over all rounds.

    u: any point of the domain; outside the domain the right sides are infinite.
    theorems: the theorems to check; all that the learner carries if None. Theorems with further
        numbers, such as a margin, are in `olx.theorems`.

    If the run breaks a condition of a theorem, its right side is infinite and the certificate names
    the condition and the round.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 1.0]] * 8))
    >>> start, best = jnp.ones(2) / 2, jnp.array([1.0, 0.0])
    >>> proofs = olx.certify(olx.hedge(0.5), olx.losses.linear_loss, rounds, start, best)
    >>> bool(proofs.holds), proofs.names
    (True, ('master_inequality',))
    """
    one = learner.learners if isinstance(learner, Batch) else learner
    check.instance("learner", one, Learner)
    asked = asked_of(one, theorems)
    if isinstance(learner, Batch) and theorems is not None:
        asked = _repeated(asked, len(learner))
    if len(game) == 2 and not options and isinstance(learner, Learner):
        return _recorded(learner, asked, *game)
    if len(game) == 4:
        return replayed(learner, asked, *game, **options)[0]
    raise RefusedType(
        "takes `(learner, run, u)`, or `(learner, loss, rounds, params, u)` with `keep` "
        f"and `progress`; got {1 + len(game)} arguments and {sorted(options)}. `u` is the decision "
        "to compare with, as jnp.zeros(d)."
    )


def asked_of(learner: Learner, theorems: tuple[Theorem, ...] | None) -> tuple[Theorem, ...]:
    """The theorems to check; refuses those that are not about the learner."""
    if theorems is None:
        if not learner.theorems:
            raise RefusedType(
                f"{learner.update_fn.__module__} has no theorem; give some as `theorems`."
            )
        return learner.theorems
    theorems = (theorems,) if isinstance(theorems, Theorem) else theorems
    return tuple(_about(learner, one) for one in theorems)


def _about(learner: Learner, one: Theorem) -> Theorem:
    """The theorem `one` about `learner`, or about the learner that its models wrap."""
    check.instance("theorems", one, Theorem)
    found = one if is_about(one, learner) else find_inner(learner, one)
    if found is None:
        kind = one.about.learners if one.about else "the learners that carry it"
        remedy = "" if one.about else "; `learner.carrying(theorem)` carries one more"
        raise RefusedType(
            f"`{one.name}` is about {kind}, got a learner of "
            f"`{learner.update_fn.__module__}`; the theorems it carries are "
            f"{[own.name for own in learner.theorems]}{remedy}."
        )
    return found


def _recorded(learner: Learner, asked: tuple[Theorem, ...], run: Run, u: PyTree) -> Certificates:
    trace, u, agrees = accept(learner, run, u)
    check_rows(asked, trace.feedback.value.shape[0], u)
    return Certificates(tuple(vouched(one, agrees) for one in _fold(learner, asked, trace, u)))


@compiled
def _fold(learner: Learner, asked: tuple[Theorem, ...], trace: Trace, u: PyTree) -> tuple:
    first, kind = jax.tree.map(lambda leaf: leaf[0], trace.state), trace.feedback.value.dtype
    u = jax.tree.map(lambda leaf: jnp.asarray(leaf, kind), u)
    weight = jnp.broadcast_to(trace.feedback.weight, trace.feedback.value.shape)
    trace = trace._replace(feedback=trace.feedback._replace(weight=weight))

    def step(ledger: Ledger, here: Trace):
        new = advance(asked, learner.hparams, ledger, *here, u)
        return new, tuple(dataclasses.replace(one, so_far=None) for one in new.sides)

    return lax.scan(step, start(asked, learner.hparams, first, u), trace)[1]


def replayed(
    learner: Learner | Batch,
    asked: tuple[Theorem, ...],
    loss: Loss,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    u: PyTree,
    keep: Keep | None = None,
    progress: bool | None = None,
) -> tuple[Certificates, Run]:
    """The certificates of a stream, and the run that was played for them.

    asked: the theorems; for a batch every leaf has a leading axis of learners.
    """
    kind = jnp.result_type(*jax.tree.leaves(params))
    given, u = u, jax.tree.map(lambda leaf: jnp.asarray(leaf, kind), finite(u))
    first, rounds = peek(rounds)
    if isinstance(first.context, SparseRows):
        rounds = dense(rounds)
    recorder = Recorder(None if keep is totals else sides, after=True)
    if isinstance(learner, Batch):
        player = with_theorems(learner.learners, asked, _repeated(u, len(learner)))
        numbers = numbers_of(player, loss, check_batch, stacked=True)
    else:
        check_game(learner, loss)
        player = same_player(learner, asked, u, given)
        numbers = numbers_of(player, loss, _any_game)
    game = game_of("certify", numbers, rounds, params, recorder)
    done = execute(game, Options(keep, progress))
    if done.curve is None:
        return Certificates(done.trace), done
    last = jax.tree.map(lambda leaf: np.asarray(leaf)[..., None], done.state.ledger.sides)
    kept = last if done.trace is None else done.trace
    both = zip(kept, last, strict=True)
    return Certificates(
        tuple(dataclasses.replace(a, at=done.curve.at, so_far=b.so_far) for a, b in both)
    ), done


def _any_game(learner: Learner, loss: Loss) -> None:
    """The game without the theorems was checked before."""


def _repeated(tree: PyTree, count: int) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.stack([leaf] * count), tree)
