"""The streams of `experiments.tuning`: a learner of two numbers for each, and their ranges."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx import experts, first_order, losses, mirrors, schedules


class Case(NamedTuple):
    make: Callable[..., olx.Learner]
    over: dict[str, tuple[float, float]]
    loss: Callable
    rounds: olx.Rounds
    start: jax.Array


def pnorm(eta, q):
    return olx.linear(olx.omd(eta, mirrors.pnorm(q)))


def adagrad(eta, delta):
    return olx.linear(first_order.adagrad(eta, delta=delta))


def ftrl(eta, l2):
    return olx.linear(first_order.ftrl_proximal(eta, l2=l2))


def decaying(eta, power):
    return olx.linear(olx.ogd(schedules.decay(eta, power)))


def share(eta, alpha):
    return experts.fixed_share(eta, alpha)


def stored(name: str, folder: Path | None, make: Callable, loss: Callable, over: dict) -> Case:
    from olx.lab.data import load

    scale = "none" if name == "a9a" else "standard"
    data = load(name, folder, scale=scale, center_target=loss is losses.squared)
    rows = data.context.toarray() if hasattr(data.context, "toarray") else data.context
    rounds = olx.Rounds(np.asarray(rows, np.float32), np.asarray(data.outcome, np.float32))
    return Case(make, over, loss, rounds, jnp.zeros(rows.shape[1]))


def cases(folder: Path | None) -> dict[str, Callable[[], Case]]:
    kept = lambda name, *rest: lambda: stored(name, folder, *rest)
    return {
        "elec2": kept("elec2", pnorm, losses.logistic, {"eta": (1e-5, 1e2), "q": (1.05, 2.0)}),
        "cal_housing": kept(
            "cal_housing", adagrad, losses.squared, {"eta": (1e-4, 1e2), "delta": (1e-4, 1e4)}
        ),
        "a9a": kept("a9a", ftrl, losses.logistic, {"eta": (1e-4, 1e2), "l2": (1e-4, 1e4)}),
        "weather": kept(
            "weather", decaying, losses.logistic, {"eta": (1e-4, 1e2), "power": (0.0, 1.0)}
        ),
        "switching": switching,
    }


def switching() -> Case:
    rounds = olx.streams.switching_losses(jax.random.key(0), 20_000, 20, 10, 0.3).rounds
    over = {"eta": (1e-4, 1e2), "alpha": (1e-6, 1.0)}
    return Case(share, over, losses.linear_loss, rounds, jnp.full(20, 0.05))


def ranges(case: Case) -> dict[str, olx.tune.Range]:
    pick = lambda low, high: (olx.tune.loguniform if low > 0 else olx.tune.uniform)(low, high)
    return {name: pick(*ends) for name, ends in case.over.items()}
