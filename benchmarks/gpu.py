"""A chunk of rounds as one GPU kernel, beside the plain loop and the CPU.

    python -m benchmarks gpu              # with a GPU: times; without one: what can be counted
    python -m benchmarks gpu --quick      # small sizes
    python -m benchmarks.gpu_table        # every learner of the tests, interpreted, and lowered

Where JAX finds no GPU, the table shows what is known without one: the launches per chunk, the
registers and instructions of a round, counted in its legal form, and the rounds per second that
follow on paper. No number on paper was ever compared with a device.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from benchmarks import data
from benchmarks.dense import HINGE, adaptive, descent
from benchmarks.harness import Contestant, Group
from olx._memory import equations, inner_programs
from olx.engine import numbers
from olx.engine.arguments import check_batch
from olx.engine.game import game_of
from olx.engine.implementations import gpu_kernel
from olx.engine.implementations.gpu_resources import FREE, cut_of, numbers_of
from olx.engine.round import Recorder

TOTALS = olx.keep.totals


class Device(NamedTuple):
    """What the arithmetic on paper knows of a device."""

    name: str
    processors: int
    gigahertz: float


DEVICES = Device("A100", 108, 1.41), Device("RTX 4090", 128, 2.52)
ISSUED = 4 * 32 * 0.5  # instructions per cycle and processor: half of the peak
ADDRESSES = 1.2  # instructions in all, per instruction that computes
ROUND_CYCLES = 420  # of a round without reductions: the chain of its operations
REDUCTION_CYCLES = 170  # of a sum over threads: shuffles, shared memory, a barrier


SLOW = {
    "acos", "asin", "atan", "atan2", "cbrt", "cos", "cosh", "div", "erf_inv", "exp", "exp2",
    "expm1", "log", "log1p", "logistic", "pow", "rem", "rsqrt", "sin", "sinh", "sqrt", "tan",
    "tanh",
}  # fmt: skip
SLOW_INSTRUCTIONS = 8  # about as many for one of these


class Work(NamedTuple):
    """The work of a round of one configuration."""

    instructions: int  # one for each number that is computed, 8 for a root or a quotient
    reductions: int  # sums and maxima: barriers between threads


class Case(NamedTuple):
    name: str
    make: Callable[[Any], olx.Learner]
    loss: Any
    rounds: olx.Rounds
    start: Any


def measure(group: Group) -> None:
    if jax.default_backend() != "gpu":
        group.note("GPU", "", None, note=_ABSENT.format(jax.default_backend()))
        for case in _cases(group):
            _count(group, case)
        return
    for case in _cases(group):
        for count in (1, 1000, group.size(100_000, 4000)):
            _race(group, case, count)


_ABSENT = (
    "JAX finds no GPU: the backend is {}; install JAX for your device, as `pip install "
    "'jax[cuda12]'`. Below is what can be counted without one"
)


def _cases(group: Group) -> Iterator[Case]:
    """The cases of the page about GPUs."""
    count = group.size(4096, 128)
    narrow, middle = data.dense(count, 50), data.dense(count, 200)
    paid = np.random.default_rng(0).random((count, 1000), np.float32)
    copies = olx.boosting.online_bbm(0.1)
    vote = lambda eta: olx.boosting.boost(descent(eta), 100, copies, loss=HINGE)
    yield Case("ogd, d=50", descent, HINGE, olx.Rounds(*narrow), jnp.zeros(50))
    yield Case("AdaGrad, d=200", adaptive, HINGE, olx.Rounds(*middle), jnp.zeros(200))
    yield Case("AROW, d=50", _arow, HINGE, olx.Rounds(*narrow), jnp.zeros(50))
    linear = olx.losses.linear_loss
    yield Case("Hedge, 1,000", olx.hedge, linear, olx.Rounds(None, paid), jnp.full(1000, 1e-3))
    yield Case("BBM, 100 copies, d=50", vote, HINGE, olx.Rounds(*narrow), jnp.zeros(50))


def _arow(eta: Any) -> olx.Learner:
    return olx.second_order.arow(1 + eta)


def _batch(case: Case, count: int) -> olx.Batch:
    return olx.batch(case.make, eta=np.geomspace(0.01, 1.0, count, dtype=np.float32))


def _count(group: Group, case: Case) -> None:
    """Rows of what a round needs, and of what follows on paper."""
    asked = _asked(case)
    needs, work = gpu_kernel.needs_of(asked), work_of(asked)
    for count in (1, 1000, 100_000):
        cut = cut_of(needs, count)
        name = f"{case.name}, N={count:,}"
        note = (
            f"1 launch per chunk; blocks of {cut.block}, {cut.warps} warps, "
            f"about {cut.registers} registers per thread, {cut.shared / 1024:.1f} KB shared"
        )
        group.note(name, "instructions", work.instructions, note=note)
        for device in DEVICES:
            speed = rounds_per_second(work, count, device)
            group.note(name, f"{device.name}, on paper", speed / 1e3, unit="k rounds/s")


def _asked(case: Case) -> gpu_kernel.Asked:
    learners = numbers.numbers_of(_batch(case, 2).learners, case.loss, check_batch, stacked=True)
    game = game_of("sweep", learners, case.rounds, case.start, Recorder())
    asked = gpu_kernel.asked_of(game)
    assert asked is not None
    return asked


def work_of(asked: gpu_kernel.Asked) -> Work:
    """The work of a round, counted in its legal form."""
    program = gpu_kernel.legal_round(asked, 1).program.jaxpr
    names = [one.primitive.name for one in equations(program)]
    reductions = sum(name.startswith("reduce_") or name == "cumsum" for name in names)
    return Work(_instructions(program), reductions)


def _instructions(jaxpr: Any) -> int:
    """Instructions of a round; a loop that ends at a tolerance counts once."""
    total = 0
    for one in jaxpr.eqns:
        name = one.primitive.name
        inner = sum(_instructions(getattr(own, "jaxpr", own)) for own in inner_programs(one))
        size = sum(map(numbers_of, one.outvars))
        if name.startswith(("reduce_", "cum")):
            size = sum(map(numbers_of, one.invars))
        elif name == "dot_general":
            size *= one.invars[0].aval.shape[-1]
        elif name in FREE or inner:
            size = 0
        times = one.params.get("length", 1) if name == "scan" else 1
        total += inner * times + size * (SLOW_INSTRUCTIONS if name in SLOW else 1)
    return total


def rounds_per_second(work: Work, count: int, device: Device) -> float:
    """On paper: the longer of the chain of a round and the instructions of all configurations.

    A row comes from the cache a round before it is needed, and its bytes never take longest here.
    """
    chain = ROUND_CYCLES + REDUCTION_CYCLES * work.reductions
    each = work.instructions * ADDRESSES / ISSUED
    issue = each * -(-count // device.processors)
    return device.gigahertz * 1e9 / max(chain, issue)


def _race(group: Group, case: Case, count: int) -> None:
    """The kernel, the plain loop and the CPU side by side, per round and configuration."""
    given = _batch(case, count), case.loss, case.rounds, case.start
    work = count * len(jax.tree.leaves(case.rounds)[0])

    def contestant(name: str, **how: Any) -> Contestant:
        play = lambda: jax.block_until_ready(olx.sweep(*given, keep=TOTALS, **how).state)
        return Contestant(name, lambda: play, work)

    sides = [contestant(name, implementation=name) for name in ("gpu_kernel", "dense")]
    name = f"{case.name}, N={count:,}"
    kernel, plain = group.race(name, sides).values()
    group.compare(name, kernel, plain)
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        there = jax.tree.map(lambda leaf: jax.device_put(leaf, cpu), given[0].learners)
        alone = jax.jit(jax.vmap(lambda one: olx.rollout(one, *given[1:]).losses.sum()))
        play = lambda: jax.block_until_ready(alone(there))
        one = Contestant("rollout on the CPU", lambda: play, work)
        here = group.race(f"{name}, CPU", [one])[one.name]
    group.compare(name, kernel, here)
