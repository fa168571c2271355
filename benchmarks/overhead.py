"""What generality costs: the kernel of a learner against one round written by hand in JAX.

Both are compiled as one kernel with the same options and play the same arrays of the device; so the
ratio is the cost of the learner, the loss and the feedback being separate things. `olx.run` is
compared with its own kernel: the difference is cutting, checking and collecting. Then come the time
of a call that plays 8 rounds, which is what a call costs besides its rounds, and that of another
call of `rollout`, of its gradient in the step size and of four step sizes at once, all without
`jit`: nothing is compiled again.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import olx
from benchmarks import data, jax_loops, targets
from benchmarks.dense import ADA, BASIC, HINGE, LOG, OGD, PASSIVE
from benchmarks.peers import ETA
from benchmarks.race import Contestant, Timing, kept_race
from benchmarks.report import Group, Row, compared
from benchmarks.settings import Settings
from olx.engine import chunks, compile
from olx.engine.arguments import check_game
from olx.engine.finite import candidates, visible_leaves
from olx.engine.game import game_of
from olx.engine.implementations.dense import dense_program
from olx.engine.numbers import numbers_of
from olx.engine.round import Recorder

WIDTHS = (10, 50, 64, 200, 1000)
VALUES = 50_000_000  # the largest number of values in a data set
EARLY = 200  # rounds whose losses are compared
HAND, KERNEL, RUN = "JAX loop", "kernel of olx", "olx.run"


class Entry(NamedTuple):
    name: str
    learner: olx.Learner
    loss: Callable
    step: Callable  # of `lax.scan`
    start: Callable[[jax.Array], Any]  # zeros -> the first state of the step


def _pair(zeros: jax.Array) -> tuple[jax.Array, jax.Array]:
    return zeros, zeros + 0


ENTRIES = (
    Entry("OGD hinge", OGD, HINGE, jax_loops.ogd_hinge, jnp.array),
    Entry("OGD logistic", OGD, LOG, jax_loops.ogd_logistic, jnp.array),
    Entry("PA", PASSIVE, HINGE, jax_loops.passive_aggressive, jnp.array),
    Entry("AdaGrad hinge", ADA, HINGE, jax_loops.adagrad_hinge, _pair),
    Entry("Perceptron", BASIC, HINGE, jax_loops.perceptron, jnp.array),
    Entry("Hedge", olx.hedge(ETA), olx.losses.linear_loss, jax_loops.hedge, jnp.array),
)


def measure(settings: Settings) -> Group:
    rows, timings = [], {}
    for width in WIDTHS:
        count = settings.size(min(100_000, VALUES // width), 4000)
        examples = data.dense(count, width)
        paid = np.random.default_rng(0).random((count, width), np.float32)
        for entry in ENTRIES:
            case = f"d={width}, {entry.name}"
            experts = entry.step is jax_loops.hedge
            given = (None, paid) if experts else examples
            rounds = jax.tree.map(jnp.asarray, olx.Rounds(*given))
            start = jnp.full(width, 1 / width) if experts else jnp.zeros(width)
            contestants = [
                Contestant(HAND, functools.partial(by_hand, entry, rounds, start), count),
                Contestant(KERNEL, functools.partial(by_kernel, entry, rounds, start), count),
                Contestant(RUN, functools.partial(by_run, entry, rounds, start), count),
            ]
            seen = kept_race(case, contestants, settings.rounds, timings)
            rows += _rows(case, entry, seen, rounds, start)
    rows += _calls(settings, timings) + _rollouts(settings, timings)
    return Group("Overhead", rows, timings)


def by_hand(entry: Entry, rounds: olx.Rounds, start: jax.Array) -> Callable[[], Any]:
    passes = ["dot-library-rewriter"] + (["tree_reduction_rewriter"] if start.size >= 64 else [])
    scan = lambda state, given: lax.scan(entry.step, state, given)
    loop = compile._compiled(compile.as_kernel(scan, True), passes)
    given = rounds.outcome if rounds.context is None else (rounds.context, rounds.outcome)
    fresh = _copier(entry.start(jnp.zeros(start.size)))
    return lambda: jax.block_until_ready(loop(fresh(), given))[0][1]


def by_kernel(entry: Entry, rounds: olx.Rounds, start: jax.Array) -> Callable[[], Any]:
    numbers = numbers_of(entry.learner, entry.loss, check_game)
    game = game_of("overhead", numbers, rounds, start, Recorder())
    plan = chunks.plan_of(jax.tree.map(np.asarray, rounds), start, 1, True)
    visible = visible_leaves(game, plan, candidates(plan, numbers.parts))
    given = numbers.leaves.numbers, rounds, np.array([0, chunks.len_of(rounds)], np.int32)
    program = dense_program(Recorder(fields=visible.fields))
    call, path = program.forms(numbers.leaves).choose(start.size, game.state, *given)
    if path != "one kernel":
        raise RuntimeError(f"{entry.name} is played as a {path}")
    fresh = _copier(game.state)
    return lambda: jax.block_until_ready(call(fresh(), *given))[0][1].sums[0]


def by_run(entry: Entry, rounds: olx.Rounds, start: jax.Array) -> Callable[[], Any]:
    return lambda: olx.run(entry.learner, entry.loss, rounds, start).losses


def _copier(state: Any) -> Callable[[], Any]:
    """A new copy in every call, since a program overwrites its state."""
    copy = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf + 0, state))
    return lambda: copy(state)


def _rows(
    case: str, entry: Entry, seen: dict[str, Timing], rounds: olx.Rounds, start: jax.Array
) -> list[Row]:
    target = targets.at_most(targets.OVERHEAD)
    early = jax.tree.map(lambda leaf: leaf[:EARLY], rounds)
    apart = np.abs(by_hand(entry, early, start)() - by_run(entry, early, start)())
    return [
        compared(case, seen[KERNEL], seen[HAND], target, inverse=True),
        compared(case, seen[RUN], seen[KERNEL], target, inverse=True),
        Row(
            case,
            HAND,
            float(np.max(apart)),
            targets.at_most(targets.AGREEMENT),
            "largest difference of losses",
        ),
    ]


def _calls(settings: Settings, timings: dict[str, Any]) -> list[Row]:
    rounds, start = olx.Rounds(jnp.ones((8, 10)), jnp.ones(8)), jnp.zeros(10)
    make = lambda eta: olx.linear(olx.omd(eta, olx.mirrors.euclidean()))
    batch = olx.batch(make, eta=jnp.geomspace(0.01, 1.0, 8))
    calls = {
        RUN: lambda: olx.run(OGD, HINGE, rounds, start),
        "olx.sweep": lambda: olx.sweep(batch, HINGE, rounds, start),
    }
    contestants = [Contestant(name, lambda call=call: call, 1) for name, call in calls.items()]
    seen = kept_race("a call", contestants, max(settings.rounds, 50), timings)
    return [
        Row(
            "a call of 8 rounds",
            name,
            timing.nanoseconds and timing.nanoseconds / 1000,
            targets.at_most(targets.CALL[name]),
            "microseconds",
            note=timing.failure,
        )
        for name, timing in seen.items()
    ]


def _rollouts(settings: Settings, timings: dict[str, Any]) -> list[Row]:
    examples = data.dense(300, 5)
    rounds, start = olx.Rounds(examples.rows, examples.labels), jnp.zeros(5)
    separable = olx.mirror_map(lambda w: jnp.sum(jnp.cosh(w)), separable=True)
    coupled = olx.mirror_map(lambda w: jnp.sum(w**2) / 2 + jnp.log1p(jnp.sum(w**2)))
    makers = {
        "OGD": lambda eta: olx.linear(olx.ogd(eta)),
        "a derived separable map": lambda eta: olx.linear(olx.omd(eta, separable)),
        "a derived coupled map": lambda eta: olx.linear(olx.omd(eta, coupled)),
    }
    rows = []
    for name, make in makers.items():
        total = lambda eta, make=make: olx.rollout(make(eta), LOG, rounds, start).total
        etas = jnp.linspace(0.01, 0.1, 4)
        calls = {
            "olx.rollout": lambda total=total: total(0.05),
            "its gradient": lambda total=total: jax.grad(total)(0.05),
            "its vmap": lambda total=total, etas=etas: jax.vmap(total)(etas),
        }
        contestants = [
            Contestant(called, lambda call=call: lambda: jax.block_until_ready(call()), 1)
            for called, call in calls.items()
        ]
        seen = kept_race(f"rollout, {name}", contestants, max(settings.rounds, 10), timings)
        rows += [
            Row(
                f"another call, {name}",
                called,
                min(timing.busy) * 1e6 if timing.busy else None,
                targets.at_most(targets.ROLLOUT),
                "microseconds of CPU",
                note=timing.failure,
            )
            for called, timing in seen.items()
        ]
    return rows
