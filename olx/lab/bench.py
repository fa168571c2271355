"""Measure how many rounds per second the engine plays on this machine, without files or tables."""

import time
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import olx
from olx import _check as check
from olx._refusal import public

FEATURES = 50


@public
def bench(rounds: int = 200_000) -> str:
    """One line per game: rounds per second, summed over all configurations."""
    check.count("rounds", rounds)
    with jax.enable_x64(False):
        return "\n".join(_lines(rounds))


def _lines(rounds: int) -> Iterator[str]:
    source = np.random.default_rng(0)
    x = source.normal(size=(rounds, FEATURES)).astype(np.float32)
    y = np.sign(x[:, 0] + 0.5 * source.normal(size=rounds)).astype(np.float32)
    few = scipy.sparse.csr_array(np.where(np.abs(x) > 1.5, x, 0.0))
    dense = olx.Rounds(x, y)
    sparse = olx.Rounds(olx.streams.sparse_rows(few), y)
    loss, start = olx.losses.logistic, np.zeros(FEATURES, np.float32)
    adagrad = lambda eta: olx.linear(olx.first_order.adagrad(eta))
    descent = lambda eta: olx.linear(olx.ogd(eta))
    run = lambda learner, rounds: olx.run(learner, loss, rounds, start, keep=olx.keep.totals)
    sweep = lambda make, count: olx.sweep(
        olx.batch(make, eta=jnp.geomspace(1e-3, 1.0, count)),
        loss,
        dense,
        start,
        keep=olx.keep.totals,
    )
    games: dict[str, tuple[int, Callable[[], object]]] = {
        f"gradient descent, {FEATURES} features": (1, lambda: run(descent(0.1), dense)),
        f"AdaGrad, {FEATURES} features": (1, lambda: run(adagrad(0.1), dense)),
        "AdaGrad, sparse rows": (1, lambda: run(adagrad(0.1), sparse)),
        "AdaGrad, 64 step sizes at once": (64, lambda: sweep(adagrad, 64)),
        "gradient descent, 512 step sizes at once": (512, lambda: sweep(descent, 512)),
    }
    width = max(map(len, games))
    for name, (count, play) in games.items():
        play()  # compiles
        started = time.perf_counter()
        play()
        rate = rounds * count / (time.perf_counter() - started)
        yield f"{name:<{width}}  {rate:>14,.0f} rounds per second"
