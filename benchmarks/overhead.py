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
from benchmarks.dense import ADA, BASIC, HINGE, LOG, OGD, PASSIVE, descent
from benchmarks.harness import Contestant, Group
from benchmarks.peers import ETA
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


def measure(group: Group) -> None:
    for width in WIDTHS:
        count = group.size(min(100_000, VALUES // width), 4000)
        examples = data.dense(count, width)
        paid = np.random.default_rng(0).random((count, width), np.float32)
        for entry in ENTRIES:
            experts = entry.step is jax_loops.hedge
            rounds = jax.tree.map(jnp.asarray, olx.Rounds(*((None, paid) if experts else examples)))
            start = jnp.full(width, 1 / width) if experts else jnp.zeros(width)
            _race(group, f"d={width}, {entry.name}", entry, rounds, start)
    _calls(group)
    _rollouts(group)


def _race(group: Group, case: str, entry: Entry, rounds: olx.Rounds, start: jax.Array) -> None:
    ways = {HAND: by_hand, KERNEL: by_kernel, RUN: by_run}
    contestants = [
        Contestant(name, functools.partial(way, entry, rounds, start), len(rounds.outcome))
        for name, way in ways.items()
    ]
    seen = group.race(case, contestants)
    group.compare(case, seen[KERNEL], seen[HAND], most=targets.OVERHEAD)
    group.compare(case, seen[RUN], seen[KERNEL], most=targets.OVERHEAD)
    early = jax.tree.map(lambda leaf: leaf[:EARLY], rounds)
    apart = float(np.max(np.abs(by_hand(entry, early, start)() - by_run(entry, early, start)())))
    unit = "largest difference of losses"
    group.note(case, HAND, apart, most=targets.AGREEMENT, unit=unit)


def by_hand(entry: Entry, rounds: olx.Rounds, start: jax.Array) -> Callable[[], Any]:
    scan = lambda state, given: lax.scan(entry.step, state, given)
    loop = compile._compiled(compile.as_kernel(scan, True))
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


def _calls(group: Group) -> None:
    rounds, start = olx.Rounds(jnp.ones((8, 10)), jnp.ones(8)), jnp.zeros(10)
    batch = olx.batch(descent, eta=jnp.geomspace(0.01, 1.0, 8))
    calls = {
        RUN: lambda: olx.run(OGD, HINGE, rounds, start),
        "olx.sweep": lambda: olx.sweep(batch, HINGE, rounds, start),
    }
    contestants = [Contestant(name, lambda call=call: call, 1) for name, call in calls.items()]
    for name, seen in group.race("a call", contestants, max(group.rounds, 50)).items():
        spent = seen.nanoseconds and seen.nanoseconds / 1000
        own = {"most": targets.CALL[name], "unit": "microseconds", "note": seen.failure}
        group.note("a call of 8 rounds", name, spent, **own)


def _rollouts(group: Group) -> None:
    rounds, start = olx.Rounds(*data.dense(300, 5)), jnp.zeros(5)
    separable = olx.mirror_map(lambda w: jnp.sum(jnp.cosh(w)), separable=True)
    coupled = olx.mirror_map(lambda w: jnp.sum(w**2) / 2 + jnp.log1p(jnp.sum(w**2)))
    makers = {
        "OGD": lambda eta: olx.linear(olx.ogd(eta)),
        "a derived separable map": lambda eta: olx.linear(olx.omd(eta, separable)),
        "a derived coupled map": lambda eta: olx.linear(olx.omd(eta, coupled)),
    }
    ways = {
        "olx.rollout": lambda total: total(0.05),
        "its gradient": lambda total: jax.grad(total)(0.05),
        "its vmap": lambda total: jax.vmap(total)(jnp.linspace(0.01, 0.1, 4)),
    }
    for name, make in makers.items():
        total = lambda eta, make=make: olx.rollout(make(eta), LOG, rounds, start).total
        contestants = [
            Contestant(way, lambda f=f, g=total: lambda: jax.block_until_ready(f(g)), 1)
            for way, f in ways.items()
        ]
        seen = group.race(f"rollout, {name}", contestants, max(group.rounds, 10))
        for way, timing in seen.items():
            spent = min(timing.busy) * 1e6 if timing.busy else None
            own = {"most": targets.ROLLOUT, "unit": "microseconds of CPU", "note": timing.failure}
            group.note(f"another call, {name}", way, spent, **own)
