"""Decoding of structured outputs: Viterbi on many chains, against a NumPy loop.

The NumPy decoder takes one chain at a time, with one call per position for all pairs of labels. A
second one takes all chains at once.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import targets
from benchmarks.race import Contestant, kept_race
from benchmarks.report import Group, compared
from benchmarks.settings import Settings
from olx import structured

CHAINS, LENGTH, CLASSES = 1000, 50, 26
OURS = "Viterbi of olx"


def measure(settings: Settings) -> Group:
    chains = settings.size(CHAINS, 50)
    draw = np.random.default_rng(0)
    emission = draw.normal(size=(chains, LENGTH, CLASSES)).astype(np.float32)
    transition = draw.normal(size=(CLASSES, CLASSES)).astype(np.float32)
    start, end = draw.normal(size=(2, CLASSES)).astype(np.float32)
    timings: dict[str, Any] = {}
    case = f"{chains:,} chains of length {LENGTH}, {CLASSES} labels"
    given = emission, transition, start, end
    contestants = [_olx(*given), _looped(*given), _stacked(*given)]
    seen = kept_race(case, contestants, settings.rounds, timings)
    ours, looped, stacked = (seen[each.name] for each in contestants)
    rows = [
        compared(case, ours, looped, targets.at_least(targets.VITERBI)),
        compared(case, ours, stacked, None),
    ]
    return Group("Structured outputs", rows, timings)


def _olx(emission, transition, start, end) -> Contestant:
    def prepare() -> Callable[[], Any]:
        words = structured.chain(CLASSES, CLASSES)
        real = np.ones(emission.shape[:2], np.float32)
        given = (emission, transition, start, end, real)
        parts = structured.Parts(*map(jnp.asarray, given))
        each = jax.jit(jax.vmap(words.decode, (structured.Parts(0, None, None, None, 0),)))
        wanted = [viterbi(rows, transition, start, end) for rows in emission[:5]]
        if not np.array_equal(each(parts)[:5], wanted):
            raise RuntimeError("the decoders differ")
        return lambda: jax.block_until_ready(each(parts))

    return Contestant(OURS, prepare, emission[..., 0].size)


def _looped(emission, transition, start, end) -> Contestant:
    def prepare() -> Callable[[], Any]:
        return lambda: [viterbi(rows, transition, start, end) for rows in emission]

    return Contestant("NumPy, chain by chain", prepare, emission[..., 0].size)


def _stacked(emission, transition, start, end) -> Contestant:
    def prepare() -> Callable[[], Any]:
        return lambda: viterbi(emission.swapaxes(0, 1), transition, start, end)

    return Contestant("NumPy, all chains at once", prepare, emission[..., 0].size)


def viterbi(emission, transition, start, end):
    """The best labels of one chain [m, k], or of several [m, chains, k], as [m, ...]."""
    alpha, back = start + emission[0], []
    for row in emission[1:]:
        each = alpha[..., :, None] + transition
        back.append(each.argmax(axis=-2))
        alpha = each.max(axis=-2) + row
    labels = [(alpha + end).argmax(axis=-1)]
    for pointers in reversed(back):
        labels.append(np.take_along_axis(pointers, labels[-1][..., None], -1)[..., 0])
    return np.stack(labels[::-1])
