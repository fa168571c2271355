"""The engine in one page: a game is played by an implementation, over a stream, into outputs."""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Curve, Run
from olx.engine import device, tuning
from olx.engine.checkpoint import Checkpoint, check_checkpoint, describe
from olx.engine.chunks import Checks, Chunk, Stream, len_of
from olx.engine.compile import explain_width
from olx.engine.device import Devices, accelerated, devices_of
from olx.engine.explain import explain_error
from olx.engine.finite import candidates
from olx.engine.game import Game
from olx.engine.implementations import Implementation, choose, table_of
from olx.engine.outputs import Outputs
from olx.engine.prepared import PREPARED, Prepared, kind_of_game
from olx.engine.processes import ProcessGroup, process_group
from olx.engine.round import Output
from olx.engine.sparse_layout import AXES, unpack
from olx.engine.threads import (
    ALONE,
    Shares,
    ThreadedSweep,
    shares_of,
    threaded_sweep,
    threads_of,
)
from olx.keep import Keep
from olx.streams.finite import widest_float


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
    saves = options.checkpoint is not None
    many = game.batched and jax.process_count() > 1
    given = game, options.progress, options.implementation
    kind = None if saves or many or options.explain else kind_of_game(*given)
    known = None if kind is None else PREPARED.get(kind)
    if known is not None:
        try:
            return _whole_run(game, known.play(game, options.keep, options.threads))
        except (TypeError, ValueError, AttributeError) as error:
            explain_error(error, game)
            raise
    checkpoint = check_checkpoint(options.checkpoint) if saves else None
    with process_group(game.name, _devices(game), saves) if many else _ALONE as group:
        try:
            stream = Stream(game)
            saved = None if checkpoint is None else checkpoint.implementation()
            implementation = choose(game, options.implementation, saved)
            program = Compiled(implementation, game, stream, options, group)
            with Outputs(game.name, program, options.keep, checkpoint, group) as outputs:
                state = outputs.resume(stream, program.start(), options.progress)
                for chunk in outputs.read(stream.chunks(program.checks, outputs.history)):
                    state, output = program(state, chunk)
                    outputs.add(chunk, output, state)
                run = outputs.run()
                if kind is not None and (found := program.prepared()) is not None:
                    PREPARED.put(kind, found)
        except (TypeError, ValueError, AttributeError) as error:
            explain_error(error, game)
            raise
        run = run if group is None else group.gathered(run)
    return _whole_run(game, run)


_ALONE = contextlib.nullcontext()  # the group of a single process


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
        self.checks = Checks(numbers.needs, game.params, visible.leaves)
        self._program = implementation.program(*form)
        self._leaves = device.put_on_device(numbers.leaves)
        self._implementation, self._game, self._stream = implementation, game, stream
        self._threads = threads_of(options.threads) if game.batched else 1
        self._shares = _shares_of(implementation, game, devices)
        self._group, self._explain = group, options.explain
        self._width = _width(game.state)
        self._call: Callable[..., PyTree] | None = None
        self._threaded: ThreadedSweep | None = None

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

    def _choose(self, state: PyTree, *rest: PyTree) -> tuple[PyTree, Callable[..., PyTree]]:
        """Choose one kernel or the plain loop, by threads or not: the first state, and the call."""
        shares, path = self._shares, ""
        if shares.shares > 1 or shares.of:
            form = self._program, self._width
            self._threaded, path = threaded_sweep(
                *form, shares, self._threads, state, self._leaves, *rest
            )
        if self._threaded is not None:
            state = self._call = self._threaded
        else:
            given = state, self._leaves.numbers, *rest
            self._call, path = self._program.forms(self._leaves).choose(self._width, *given)
        if self._explain:
            self._print(path)
        return state, self._call

    def _print(self, path: str) -> None:
        """Print how a chunk is played, and why by this implementation."""
        name, capacity = self._game.name, self._stream.plan.capacity
        path += "" if self._group is None else self._group.words
        print(f"{name}: {path}; chunks of {capacity} rounds on {jax.devices()[0].device_kind}.")
        if not self._program.says:  # else a chunk is one launch
            explain_width(name, self._shares.configurations)
        print("\n".join(table_of(self._game, self._implementation)))

    def prepared(self) -> Prepared | None:
        """How games of this kind are played, if they are one small chunk, played by one call."""
        plan = self._stream.plan
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(plan.first))
        if len_of(plan.first) > plan.capacity or size > tuning.CHUNK_BYTES:
            return None
        if self._call is None or self._threaded is not None:
            return None
        shapes = [(plan.capacity, *leaf.shape[1:]) for leaf in jax.tree.leaves(plan.first)]
        checked = self.checks.shown, widest_float(self._game.params)
        kinds, compiled = list(zip(shapes, plan.dtypes, strict=True)), self._program.host is None
        return Prepared(self._call, kinds, *checked, compiled)

    def outputs_of(self, out: Any) -> list[Output]:
        """The outputs of all shares of the configurations, in their order; waits for them."""
        return [out] if self._threaded is None else out.parts()

    def state_of(self, state: PyTree) -> PyTree:
        """The state of all configurations, which threads hold in shares."""
        return state if self._threaded is None else self._threaded.whole()

    def close(self) -> None:
        """Wait until no thread reads the rounds."""
        if self._threaded is not None:
            self._threaded.close()

    def description(self, state: PyTree, keep: Keep | None) -> tuple[dict[str, str], PyTree]:
        """What tells this run from others, and the shapes of an output, for a checkpoint."""
        row = self._stream.one_round(self.checks)
        traced = jax.jit(self._program.function).trace(state, *self._leaves.parts(), *row)
        learner, loss = jax.tree.map(jnp.asarray, self._leaves.parts())
        described = describe(learner, loss, state, self._stream.first, keep, traced)
        described["implementation"] = self._implementation.name
        return described, traced.out_info[1][:2]


def _devices(game: Game) -> Devices:
    return Devices(1, 1) if game.configurations is None else devices_of(game.configurations)


def _shares_of(implementation: Implementation, game: Game, devices: Devices) -> Shares:
    """How the configurations are cut into shares for threads and processes."""
    count, learner = game.configurations, game.numbers.learner
    if count is None:
        return ALONE
    axes, least = (0 if game.layout is None else AXES), implementation.least()
    if devices.all > 1 or accelerated():  # an accelerator plays all configurations at once
        return Shares(count, axes=axes)
    if game.layout is None:
        least = max(least, tuning.SHARE_DENSE_ADDS if learner.facts.adds is not None else 1)
        work = _length(game.first) * sum(np.size(leaf) for leaf in jax.tree.leaves(game.state))
    else:
        work = game.first.context.values.size * count
    return shares_of(count, least, work, axes)


def _length(first: object) -> int:
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
