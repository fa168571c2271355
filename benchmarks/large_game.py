"""Compare regret and bound after every round, with 10,000 experts over 10,000 rounds.

    python -m benchmarks.large_game           # a few minutes
    python -m benchmarks.large_game --quick   # a hundred experts and rounds: does everything run?

A trace of such a game does not fit in memory. So each learner is played by a scan that keeps only
the regret to the best expert. The right sides are the published forms of the theorems, which need
only the numbers of rounds and experts. The exit status is 1 if a regret exceeds its bound.
"""

import argparse
import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx import experts
from olx.losses.points import linear_feedback

SIZE = 10_000


class Claim(NamedTuple):
    learner: olx.Learner
    bound: Callable[[np.ndarray], np.ndarray]  # from the number of rounds to the regret allowed


def claims(size: int, rounds: int) -> dict[str, Claim]:
    """Learners with a uniform prior, and their published bounds on the regret to the best."""
    log_n = np.log(size)
    eta, alpha = float(np.sqrt(8 * log_n / rounds)), 1 / rounds
    growth = lambda t: np.expm1(4 / 3) / 2 * (1 + np.log(t))
    ada = lambda t: log_n + np.log(2.5 + 1.5 * np.log1p(t)) + np.log1p(log_n)
    return {
        "adahedge": Claim(
            experts.adahedge(), lambda t: 2 * (np.sqrt(t * log_n) / 2 + 2 / 3 * log_n + 1)
        ),
        "anytime_hedge": Claim(experts.anytime_hedge(eta), lambda t: log_n / eta + t * eta / 8),
        "anytime_hedge, eta = 100": Claim(
            experts.anytime_hedge(100.0), lambda t: log_n / 100 + t * 100 / 8
        ),
        "anytime_hedge, decaying": Claim(
            experts.anytime_hedge(olx.schedules.decay(2 * float(np.sqrt(log_n)))),
            lambda t: np.sqrt(t * log_n) * (1 / 2 + 1 / 2),
        ),
        "fixed_share": Claim(
            experts.fixed_share(eta, alpha),
            lambda t: (log_n - (t - 1) * np.log1p(-alpha)) / eta + t * eta / 8,
        ),
        "normal_hedge_dt": Claim(
            experts.normal_hedge_dt(), lambda t: np.sqrt(3 * t * np.log1p(size * growth(t)))
        ),
        "ada_normal_hedge": Claim(experts.ada_normal_hedge(), lambda t: np.sqrt(3 * t * ada(t))),
        "two_norm": Claim(experts.two_norm(), lambda t: np.sqrt(t * size)),
        "prod": Claim(experts.prod(min(eta, 0.5)), lambda t: log_n / min(eta, 0.5) + t * eta),
    }


def coins(key: jax.Array, t: jax.Array, p: jax.Array) -> jax.Array:
    """The mean loss of one expert is lower than that of all others by 0.1."""
    chance = jnp.where(jnp.arange(p.size) == 7, 0.4, jnp.full((), 0.5, p.dtype))
    return jax.random.bernoulli(jax.random.fold_in(key, t), chance, p.shape).astype(p.dtype)


def lead_and_fall(key: jax.Array, t: jax.Array, p: jax.Array) -> jax.Array:
    """The first expert leads by 0.001 for a while; then it and the others alternate."""
    first = jnp.arange(p.size) == 0
    early = jnp.where(first, 0.0, jnp.full((), 1e-3, p.dtype))
    return jnp.where(t < 500, early, jnp.where(first == (t % 2 == 0), 1.0, 0.0)).astype(p.dtype)


def against(key: jax.Array, t: jax.Array, p: jax.Array) -> jax.Array:
    """The half of the experts with the largest weights loses 1; ties are broken at random."""
    chance = jax.random.uniform(jax.random.fold_in(key, t), p.shape, p.dtype, 1.0, 1.001)
    return (p * chance >= jnp.median(p * chance)).astype(p.dtype)


STREAMS = (coins, lead_and_fall, against)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def regrets(learner: olx.Learner, stream: Callable, size: int, rounds: int) -> jax.Array:
    """The regret to the best expert after every round."""
    start = jnp.ones(size)
    key = jax.random.key(0)

    def one(carry, t):
        state, own, others = carry
        p = learner.predict(state)
        told = linear_feedback(p, stream(key, t, p), 1.0)
        own, others = own + told.value, others + told.outcome
        return (learner.update(state, told), own, others), own - jnp.min(others)

    carry = learner.init(start), jnp.zeros((), start.dtype), jnp.zeros_like(start)
    return jax.lax.scan(one, carry, jnp.arange(rounds))[1]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    size = rounds = 100 if parser.parse_args(arguments).quick else SIZE
    t, broken = np.arange(1.0, rounds + 1), 0
    print("| learner | stream | precision | regret | bound | largest ratio | seconds |")
    print("|---|---|---|---|---|---|---|")
    for precise in (False, True):
        with jax.enable_x64(precise):
            for name, claim in claims(size, rounds).items():
                for stream in STREAMS:
                    begin = time.perf_counter()
                    seen = np.asarray(regrets(claim.learner, stream, size, rounds), np.float64)
                    took, right = time.perf_counter() - begin, claim.bound(t)
                    slack = 64 * np.finfo(np.float32).eps * t  # the tolerance for single precision
                    broken += not np.all(seen <= right + (0 if precise else slack))
                    print(
                        f"| {name} | {stream.__name__} | {'float64' if precise else 'float32'} | "
                        f"{seen[-1]:.1f} | {right[-1]:.1f} | {np.max(seen / right):.3f} | "
                        f"{took:.1f} |",
                        flush=True,
                    )
    print(
        f"\n{broken} of {2 * len(claims(size, rounds)) * len(STREAMS)} games broke their theorem."
    )
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()
