"""The engine in one page: a game is played by an implementation, over a stream, into outputs."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Curve, Run
from olx.engine import device
from olx.engine.checkpoint import Checkpoint, check_checkpoint, describe
from olx.engine.chunks import Checks, Chunk, Stream
from olx.engine.compile import explain_launches
from olx.engine.device import Devices, accelerated, devices_of
from olx.engine.explain import errors_explained
from olx.engine.finite import candidates
from olx.engine.game import Game
from olx.engine.implementations import Implementation, choose, table_of
from olx.engine.outputs import Outputs
from olx.engine.processes import ProcessGroup, process_group
from olx.engine.sparse_layout import AXES, unpack
from olx.engine.threads import ALONE, Shares, choose_program, close, shares_of, threads_of
from olx.keep import Keep


class Options(NamedTuple):
    """How a game is played; the arguments of `run` and `sweep`."""

    keep: Keep | None = None
    progress: bool | None = None
    checkpoint: Checkpoint | None = None
    explain: bool = False
    threads: int | None = None
    implementation: str | None = None


def execute(game: Game, options: Options) -> Run:
    """Play a game by the first implementation that takes it."""
    owner, numbers = game.owner, game.numbers
    traced = errors_explained(
        owner, numbers.learner, numbers.loss, game.params, game.first, game.recorder, game.batched
    )
    checkpoint = check_checkpoint(owner, options.checkpoint)
    with process_group(owner, _devices(game), checkpoint is not None) as group:
        with traced:
            stream = Stream(game)
            saved = None if checkpoint is None else checkpoint.implementation()
            implementation = choose(game, options.implementation, saved)
            program = Compiled(implementation, game, stream, options, group)
            with program, Outputs(owner, options.keep, checkpoint, group) as outputs:
                state = outputs.resume(program, stream, program.start(), options.progress)
                for chunk in outputs.read(stream.chunks(program.checks, outputs.history)):
                    state, output = program(state, chunk)
                    outputs.add(chunk, output, state)
                run = outputs.run()
        run = run if group is None else group.gathered(run)
    return _whole_run(game, run)


class Compiled:
    """An implementation, compiled for a game.

    The configurations of a sweep are divided over processes, devices and threads. Whether a chunk
    is one kernel or a plain loop is decided at the first chunk, whose shapes it depends on.
    """

    def __init__(
        self,
        implementation: Implementation,
        game: Game,
        stream: Stream,
        options: Options,
        group: ProcessGroup | None,
    ):
        plan, numbers = stream.plan, game.numbers
        visible = implementation.visible(game, plan, candidates(plan, numbers.parts))
        recorder = game.recorder._replace(fields=visible.fields)
        devices = _devices(game)
        form = recorder, game.layout, game.batched, devices.here
        self.checks = Checks(game.owner, numbers.needs, game.params, visible.leaves)
        self._program = implementation.program(*form)
        self._leaves = device.put_on_device(numbers.leaves)
        self._implementation, self._game, self._stream = implementation, game, stream
        self._threads = threads_of(game.owner, options.threads) if game.batched else 1
        self._shares = _shares_of(implementation, game, devices)
        self._group, self._explain = group, options.explain
        self._width = _width(game.state)
        self._call: Callable | None = None
        self._state: PyTree = None  # of the first call, whose threads are closed at the end

    def start(self) -> PyTree:
        """The state before the first round; of several processes, the part of this one."""
        state = self._game.state
        if self._group is None:
            return state
        row = self._stream.one_round(self.checks)
        given = self._program, self._width, self._shares, state, self._leaves, *row
        state, self._leaves, self._shares = self._group.deal(*given)
        return state

    def __call__(self, state: PyTree, chunk: Chunk) -> tuple[PyTree, Any]:
        """The state after a chunk, and its output."""
        rest = device.put_rounds(chunk.rounds, chunk.span, self._stream.plan.capacity)
        call = self._call
        if call is None:
            state, call = self._choose(state, *rest)
        (state, out), _ = call(state, self._leaves.numbers, *rest)
        return state, out

    def _choose(self, state: PyTree, *rest: Any) -> tuple[PyTree, Callable]:
        """Choose one kernel or the plain loop, by threads or not: the first state, and the call."""
        form = self._program, self._shares, self._threads, self._width
        state, call, path = choose_program(*form, state, self._leaves, *rest)
        self._state, self._call = state, call
        if self._explain:
            owner, rounds = self._game.owner, self._stream.plan.capacity
            path += "" if self._group is None else self._group.words
            print(f"{owner}: {path}; chunks of {rounds} rounds on {jax.devices()[0].device_kind}.")
            given = state, self._leaves.numbers, rest[0]
            explain_launches(owner, call, self._shares.configurations, *given)
            print("\n".join(table_of(self._game, self._implementation)))
        return state, call

    def description(self, state: PyTree, keep: Keep | None) -> tuple[dict[str, str], PyTree]:
        """What tells this run from others, and the shapes of an output, for a checkpoint."""
        row = self._stream.one_round(self.checks)
        traced = jax.jit(self._program.function).trace(state, *self._leaves.parts(), *row)
        learner, loss = jax.tree.map(jnp.asarray, self._leaves.parts())
        described = describe(learner, loss, state, self._stream.first, keep, traced)
        described["implementation"] = self._implementation.name
        return described, traced.out_info[1][:2]

    def __enter__(self) -> "Compiled":
        return self

    def __exit__(self, *error: object) -> None:
        close(self._state)


def _devices(game: Game) -> Devices:
    return (
        Devices(1, 1)
        if game.configurations is None
        else devices_of(game.owner, game.configurations)
    )


def _shares_of(implementation: Implementation, game: Game, devices: Devices) -> Shares:
    """How the configurations are cut into shares for threads and processes."""
    count, learner = game.configurations, game.numbers.learner
    if count is None:
        return ALONE
    axes, least = (0 if game.layout is None else AXES), implementation.least
    if devices.all > 1 or accelerated():  # an accelerator plays all configurations at once
        return Shares(count, axes=axes)
    if game.layout is None:
        least = max(least, _SHORT if learner.facts.adds is not None else 1)
        work = _length(game.first) * sum(np.size(leaf) for leaf in jax.tree.leaves(game.state))
    else:
        work = game.first.context.values.size * count
    return shares_of(count, least, work, axes)


_SHORT = 64  # configurations per share, if a round only adds a multiple: half take as long


def _length(first: Any) -> int:
    """The number of rounds of a piece; 0 if it is not legal, which is refused later."""
    leaves = jax.tree.leaves(first)
    return np.shape(leaves[0])[0] if leaves and np.ndim(leaves[0]) else 0


def _width(state: PyTree) -> int:
    """The length of the reductions of a round."""
    return max((np.shape(leaf)[-1] for leaf in jax.tree.leaves(state) if np.ndim(leaf)), default=1)


def _whole_run(game: Game, run: Run) -> Run:
    """The run with the state of the learner, and without configurations that were repeated."""
    if game.layout is not None:
        run = dataclasses.replace(run, state=unpack(game.layout, game.batched, run.state))
    count = game.configurations
    if count is not None and count % _devices(game).all:
        cut = lambda tree: jax.tree.map(lambda leaf: leaf[:count], tree)
        curve = run.curve and Curve(run.curve.at, *cut((run.curve.total, run.curve.sums)))
        run = Run(cut(run.state), cut(run.losses), cut(run.trace), curve=curve)
    return dataclasses.replace(run, continued=True) if game.continued else run
