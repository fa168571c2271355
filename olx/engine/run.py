"""`run`: the same game as `rollout`, compiled once, on streams of any size.

`sweep`: play many learners as one program, on one device or on all of them.
"""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from olx.core import Batch, Curve, Learner, Loss, Rounds, Run
from olx.engine.arguments import check_game, check_learners, check_loss
from olx.engine.checkpoint import Checkpoint
from olx.engine.chunks import peek
from olx.engine.device import accelerated, devices_of
from olx.engine.execute import execute
from olx.engine.explain import errors_explained
from olx.engine.finite import visible_leaves
from olx.engine.game import (
    Known,
    game_as_linear,
    given_state,
    known,
    repeat_last,
    start_of,
    states_of,
)
from olx.engine.implementations.blocks import block_program, fits
from olx.engine.implementations.dense import (
    last,
    mine,
    single_program,
    spread,
    sweep_program,
    takes_turns,
    turns_program,
)
from olx.engine.implementations.sparse import form_of, shown_by, sparse_program
from olx.engine.implementations.sparse_layout import AXES, Packed, layout_of, packer, unpack
from olx.engine.processes import process_group
from olx.engine.round import Measure, Record, Recorder, recorder_of
from olx.engine.threads import Shares, shares_of, threads_of
from olx.keep import Keep
from olx.record import actions
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
    watch = recorder_of("run", record, measure, keep)
    return stream(game, rounds, params, watch, state=state, **options)


def stream(
    game: Known,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    watch: Recorder,
    *,
    owner: str = "run",
    state: PyTree = None,
    **options: Any,
) -> Run:
    """`run` with its `Recorder`, for any `owner` of the error messages."""
    game, rounds = game_as_linear(owner, game, rounds, watch)
    learner = game.learner
    first, rounds = peek(owner, rounds)
    rows, traced = first.context, errors_explained(owner, learner, game.loss, params, first, watch)
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
            done = execute(owner, game, program, _shown_alone, rounds, params, state, **options)
    else:
        form = form_of(learner, layout, False)
        program = lambda fields: sparse_program(
            watch._replace(fields=fields), layout, form, batched=False
        )
        shows = functools.partial(shown_by, form)
        state = jax.jit(packer(layout))(state)
        with traced:
            done = execute(owner, game, program, shows, rounds, params, state, **options)
        done = dataclasses.replace(done, state=unpack(layout, False, done.state))
    return dataclasses.replace(done, continued=True) if continued else done


_shown_alone = functools.partial(visible_leaves, batched=False)


def sweep(
    learners: Batch | Learner,
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
    threads: int | None = None,
) -> Run:
    """Play every learner of a batch on the same stream; the leaves of the run get a leading axis.

    The numbers are those of `jax.vmap` of `rollout` over the learners. The arguments are those of
    `run`. The configurations are spread over all devices, and on one CPU over all its cores; after
    `jax.distributed.initialize`, over all processes, which all return the same result.
    `axes` of the result holds the values of each configuration, by name. With
    `keep=olx.keep.totals` thousands of configurations over millions of rounds fit in memory.

    learners: a batch, or a learner whose leaves have a leading axis.
    state: continue from the `state` of an earlier sweep; learner i goes on from entry i of it.
    threads: at most how many threads play; None is the number in the environment variable
        OLX_THREADS, else one for each core. The numbers do not depend on it, to the last bit.

    A configuration that diverges has non-finite losses at its own index; the others are unchanged.

    >>> import jax.numpy as jnp, olx
    >>> learners = olx.batch(olx.hedge, eta=jnp.array([0.1, 1.0, 10.0]))
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> runs = olx.sweep(learners, olx.losses.linear_loss, rounds, jnp.array([0.5, 0.5]))
    >>> runs.total.round(2).tolist(), runs.axes["eta"].tolist()
    ([1.85, 0.94, 0.5], [0.1, 1.0, 10.0])
    """
    axes = None
    if isinstance(learners, Batch):
        learners, axes = learners.learners, learners.axes
    game = known("sweep", learners, loss, check_batch, padded)
    options = {"keep": keep, "progress": progress, "checkpoint": checkpoint, "explain": explain}
    options["threads"] = threads
    watch = recorder_of("sweep", record, measure, keep)
    done = streams(game, rounds, params, watch, state=state, **options)
    return dataclasses.replace(done, axes=axes)


def streams(
    game: Known,
    rounds: Rounds | Iterable[Rounds],
    params: PyTree,
    watch: Recorder,
    *,
    owner: str = "sweep",
    state: PyTree = None,
    threads: int | None = None,
    **options: Any,
) -> Run:
    """`sweep` with its `Recorder`, for any `owner` of the error messages."""
    continued = state is not None
    options["threads"] = threads_of(owner, threads)
    options["light"] = watch.record in (None, actions)
    game, rounds = game_as_linear(owner, game, rounds, watch, padded)
    learners, count = game.learner, np.shape(jax.tree.leaves(game.learner)[0])[0]
    first, rounds = peek(owner, rounds)
    rows = first.context
    traced = errors_explained(owner, learners, game.loss, params, first, watch, stacked=True)
    devices = devices_of(owner, count)
    sparse = isinstance(rows, SparseRows)
    layout = layout_of(owner, learners, params, rows, batched=True) if sparse else None
    if layout is None:
        state, axes = states_of(owner, game, params, state), 0
        program = turns_program if takes_turns(state) else sweep_program
        program = block_program if fits(learners, watch, rounds, state, count) else program
        work = _length(first) * sum(np.size(leaf) for leaf in jax.tree.leaves(state))
        share, shows = spread(devices.here), _shown_by_each
        one = lambda fields: program(watch._replace(fields=fields), share)
        least = max(_LEAST[program], _SHORT if learners.facts.adds is not None else 1)
    else:
        work, axes, least = rows.values.size * count, AXES, _LEAST[sparse_program]
        share = spread(devices.here, Packed(last, mine, mine))
        form = form_of(learners, layout, True)
        one = lambda fields: sparse_program(
            watch._replace(fields=fields), layout, form, batched=True, share=share
        )
        state = states_of(owner, game, params, state, packer(layout), AXES)
        shows = functools.partial(shown_by, form)
    cut = Shares(count, axes=axes)
    if devices.all == 1 and not accelerated():  # an accelerator plays all configurations at once
        cut = shares_of(count, least, work, axes)
    with process_group(owner, devices, options["checkpoint"] is not None) as crew:
        with traced:
            done = execute(
                owner, game, one, shows, rounds, params, state, cut=cut, crew=crew, **options
            )
        done = done if crew is None else crew.gathered(done)
    if layout is not None:
        done = dataclasses.replace(done, state=unpack(layout, True, done.state))
    done = done if count % devices.all == 0 else _trim(done, count)
    return dataclasses.replace(done, continued=True) if continued else done


def _length(first: Rounds) -> int:
    """The number of rounds of a piece; 0 if it is not legal, which is refused later."""
    leaves = jax.tree.leaves(first)
    return np.shape(leaves[0])[0] if leaves and np.ndim(leaves[0]) else 0


def check_batch(owner: str, learners: Learner, loss: Loss) -> None:
    """Refuse all but a stack of learners and a loss of an action and an outcome."""
    check_learners(owner, learners)
    check_loss(owner, loss)
    _configurations(owner, learners)


def padded(leaves: list) -> list:
    """The leaves of a batch, padded so that all devices get the same number of configurations."""
    count = np.shape(leaves[0])[0]
    short = -count % devices_of("sweep", count).all
    return [repeat_last(jnp.asarray(leaf), short) for leaf in leaves]


def _configurations(owner: str, learners: Learner) -> int:
    leaves = jax.tree.leaves(learners)
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise TypeError(
            f"{owner}: compiles for itself, so it cannot be called inside jit, vmap or grad; "
            "there, use jax.vmap of olx.rollout over the learners."
        )
    lengths = {np.shape(leaf)[:1] for leaf in leaves}
    if len(lengths) != 1 or lengths == {()}:
        raise TypeError(
            f"{owner}: the leaves of `learners` share no leading axis; stack a factory with "
            "`olx.batch(make, eta=etas)`, or play a single learner with `olx.run`."
        )
    return lengths.pop()[0]


def _trim(run: Run, count: int) -> Run:
    """Drop the repeated configurations."""
    cut = lambda tree: jax.tree.map(lambda leaf: leaf[:count], tree)
    curve = run.curve and Curve(run.curve.at, *cut((run.curve.total, run.curve.sums)))
    return Run(cut(run.state), cut(run.losses), cut(run.trace), curve=curve)


_shown_by_each = functools.partial(visible_leaves, batched=True)
_LEAST = {block_program: 128, sweep_program: 32, turns_program: 1, sparse_program: 64}
"""Configurations per share; with fewer of them a share costs more than its part of the whole."""
_SHORT = 64  # the same, if a round only adds a multiple of a vector: half of them take as long
