"""`run`: the same game as `rollout`, compiled once, on streams of any size."""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds, Run
from olx.engine.affine import unfolded
from olx.engine.boundary import check_game, given_state, start_of
from olx.engine.checkpoint import Checkpoint
from olx.engine.chunk import single_program
from olx.engine.diagnosis import explained
from olx.engine.drive import drive
from olx.engine.feed import peek
from olx.engine.game import Known, known
from olx.engine.protocol import Measure, Record, Watch, watching
from olx.engine.shows import shown
from olx.engine.sparse import form_of, shown_by, sparse_program
from olx.engine.table import layout_of, packer, unpack
from olx.keep import Keep
from olx.streams.sparse_rows import SparseRows


def run(
    learner: Learner,
    loss: Loss,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    *,
    record: Record | None = None,
    measure: Measure | None = None,
    keep: Keep | None = None,
    state: PyTree = None,
    progress: bool | None = None,
    checkpoint: Checkpoint | None = None,
    explain: bool = False,
) -> Run:
    """Play `learner` on a stream through the engine: fast, with the same numbers as `rollout`.

    rounds: arrays or memory maps in a `Rounds`, or any iterable of `Rounds`. An iterable needs
        memory for one chunk and for the rounds that are kept.
    record: (state before the update, feedback) -> what to keep of each round; a named function.
    keep: which rounds to keep, a rule of `olx.keep`; all rounds if None. With a rule the run has a
        `curve` of the cumulative loss in place of the losses.
    measure: feedback -> numbers to sum beside the loss; a named function. The sums are in the
        curve, so it needs `keep`.
    state: continue from the `state` of an earlier run.
    progress: whether to show a progress bar; None shows it on a terminal only.
    checkpoint: where to save and resume from, made by `olx.checkpoint`.
    explain: print how the program was compiled, and why.

    Call it at top level: inside `jit`, `vmap` or `grad` use `rollout`.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=3000, features=5)
    >>> done = olx.run(olx.linear(olx.ogd(0.01)), olx.losses.squared, rounds, jnp.zeros(5),
    ...                keep=olx.keep.every(1000))
    >>> done.curve.at.tolist()
    [1000, 2000, 3000]
    """
    options = {"keep": keep, "progress": progress, "checkpoint": checkpoint, "explain": explain}
    game = known("run", learner, loss, check_game)
    watch = watching("run", record, measure, keep)
    return stream(game, rounds, params, watch, state=state, **options)


def stream(
    game: Known,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    watch: Watch,
    *,
    owner: str = "run",
    state: PyTree = None,
    **options: Any,
) -> Run:
    """`run` with its `Watch`, for any `owner` of the error messages."""
    game, rounds = unfolded(owner, game, rounds, watch)
    learner = game.learner
    first, rounds = peek(owner, rounds)
    rows, traced = first.context, explained(owner, learner, game.loss, params, first, watch)
    sparse = isinstance(rows, SparseRows)
    layout = layout_of(owner, learner, params, rows, batched=False) if sparse else None
    continued = state is not None
    if state is None:
        state = start_of(owner, game, params)
    else:
        state = given_state(owner, learner, params, state)
        state = jax.tree.map(jnp.array, state)  # a copy, since the program donates its state
    if layout is None:
        program = lambda fields: single_program(watch._replace(fields=fields))
        with traced:
            done = drive(owner, game, program, _shown_alone, rounds, params, state, **options)
    else:
        form = form_of(learner, layout, False)
        program = lambda fields: sparse_program(
            watch._replace(fields=fields), layout, form, batched=False
        )
        shows = functools.partial(shown_by, form)
        state = jax.jit(packer(layout))(state)
        with traced:
            done = drive(owner, game, program, shows, rounds, params, state, **options)
        done = dataclasses.replace(done, state=unpack(layout, False, done.state))
    return dataclasses.replace(done, continued=True) if continued else done


_shown_alone = functools.partial(shown, batched=False)
