r"""Certificates: the theorems of a learner, checked on a game.

Every learner carries its theorems. `certify` evaluates both sides of each after every round, of a
run that was recorded or of a stream that is played for the purpose.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, overload

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import PyTree

from olx import _check as check
from olx.certificate import Certificates
from olx.core import Batch, Learner, Loss, Rounds, Run, Trace
from olx.engine.audit import audited, sides
from olx.engine.boundary import check_game
from olx.engine.feed import dense, peek
from olx.engine.protocol import Watch
from olx.engine.run import stream
from olx.engine.sweep import streams
from olx.frameworks.lift import inside
from olx.keep import Keep
from olx.recorded import accept, check_rows, finite, vouched
from olx.streams.sparse_rows import SparseRows
from olx.theorem import Theorem, follow, start


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


def certify(
    learner: Learner | Batch, *game: Any, theorems: Any = None, **options: Any
) -> Certificates:
    """Check the theorems of `learner` against the comparator `u`, after every round.

    `certify(learner, run, u)` judges a recorded run, all its rounds kept with
    `record=olx.record.trace`; runs of a sweep with
    `jax.vmap(olx.certify, (0, 0, None))(learners, runs, u)`.

    `certify(learner, loss, rounds, params, u)` plays the stream through the engine and needs the
    memory of a state and of what it keeps: arrays, chunks, sparse rows, which it makes dense a few
    at a time, and batches of learners. `keep` says which rounds to keep, as for `olx.run`. The
    summary (`holds`, `tightness`, the first failure) is over all rounds in any case.

    u: any point of the domain; outside it the right sides are infinite.
    theorems: those to check; all that the learner carries if None. Theorems with further numbers,
        such as a margin, are made by functions beside their rules.

    Where the run leaves the conditions of a theorem its right side is infinite, and the certificate
    says which condition it is.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0], [0.0, 1.0]] * 8))
    >>> start, best = jnp.ones(2) / 2, jnp.array([1.0, 0.0])
    >>> proofs = olx.certify(olx.hedge(0.5), olx.losses.linear_loss, rounds, start, best)
    >>> bool(proofs.holds), proofs.names
    (True, ('master_inequality',))
    """
    one = learner.learners if isinstance(learner, Batch) else learner
    check.instance("certify", "learner", one, Learner)
    asked = asked_of(one, theorems)
    if isinstance(learner, Batch) and theorems is not None:
        asked = _repeated(asked, len(learner))
    if len(game) == 2 and not options and isinstance(learner, Learner):
        return _recorded(learner, asked, *game)
    if len(game) == 4:
        return replayed(learner, asked, *game, **options)[0]
    raise TypeError(
        "certify: takes `(learner, run, u)`, or `(learner, loss, rounds, params, u)` with `keep` "
        f"and `progress`; got {1 + len(game)} arguments and {sorted(options)}."
    )


def asked_of(learner: Learner, theorems: tuple[Theorem, ...] | None) -> tuple[Theorem, ...]:
    """The theorems to check; refuses those that are not about the learner."""
    if theorems is None:
        if not learner.theorems:
            raise TypeError(
                f"certify: {learner.update_fn.__module__} comes with no theorem; see `theorems`."
            )
        return learner.theorems
    return tuple(_about(learner, one) for one in theorems)


def _about(learner: Learner, one: Theorem) -> Theorem:
    """A theorem about the learner, or about one inside its models."""
    check.instance("certify", "theorems", one, Theorem)
    found = one if one.about is None or one.about.test(learner) else inside(learner, one)
    if found is None:
        kind = one.about and one.about.learners
        raise TypeError(
            f"certify: `{one.name}` is about {kind}, got a learner of "
            f"`{learner.update_fn.__module__}`; the theorems it carries are "
            f"{[own.name for own in learner.theorems]}."
        )
    return found


def _recorded(learner: Learner, asked: tuple[Theorem, ...], run: Run, u: PyTree) -> Certificates:
    trace, u, agrees = accept("certify", learner, run, u)
    check_rows(asked, trace.feedback.value.shape[0], u)
    return Certificates(tuple(vouched(one, agrees) for one in _fold(learner, asked, trace, u)))


@jax.jit
def _fold(learner: Learner, asked: tuple[Theorem, ...], trace: Trace, u: PyTree) -> tuple:
    first, kind = jax.tree.map(lambda leaf: leaf[0], trace.state), trace.feedback.value.dtype
    u = jax.tree.map(lambda leaf: jnp.asarray(leaf, kind), u)
    weight = jnp.broadcast_to(trace.feedback.weight, trace.feedback.value.shape)
    trace = trace._replace(feedback=trace.feedback._replace(weight=weight))

    def step(ledgers: tuple, here: Trace):
        new = tuple(
            follow(one, learner.hparams, ledger, *here, u)
            for one, ledger in zip(asked, ledgers, strict=True)
        )
        return new, tuple(dataclasses.replace(ledger.sides, so_far=None) for ledger in new)

    return lax.scan(step, tuple(start(one, learner.hparams, first, u) for one in asked), trace)[1]


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
    """Certificates of a stream, and the run that was played for them.

    asked: for a batch, with an axis of learners, as the theorems that its learners carry.
    """
    kind = jnp.result_type(*jax.tree.leaves(params))
    u = jax.tree.map(lambda leaf: jnp.asarray(leaf, kind), finite("certify", u))
    rows, rounds = peek("certify", rounds)
    if isinstance(rows, SparseRows):
        rounds = dense(rounds)
    watch = Watch(sides, after=True)
    options = {"keep": keep, "progress": progress, "checkpoint": None, "explain": False}
    if isinstance(learner, Batch):
        player, play = audited(learner.learners, asked, _repeated(u, len(learner))), streams
    else:
        check_game("certify", learner, loss)
        player, play = audited(learner, asked, u), stream
    done = play(player, loss, rounds, params, watch, owner="certify", **options)
    if done.curve is None:
        kept = (dataclasses.replace(one, so_far=None) for one in done.trace)
    else:
        kept = (dataclasses.replace(one, at=done.curve.at) for one in done.trace)
    return Certificates(tuple(kept)), done


def _repeated(tree: PyTree, count: int) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.stack([leaf] * count), tree)
