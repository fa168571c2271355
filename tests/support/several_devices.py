"""Sweeps ten configurations over four devices, as `test_sweep` asks, and saves what came out."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx import losses, regularizers

X = np.random.default_rng(0).normal(size=(90, 4))
ROUNDS = olx.Rounds(X, X @ np.array([1.0, -0.5, 0.2, 0.0]))


def sweep_ten() -> dict[str, np.ndarray]:
    make = lambda eta: olx.linear(olx.ftrl(eta, regularizers.adagrad()))
    learners = olx.batch(make, eta=jnp.geomspace(0.01, 1.0, 10))
    given = learners, losses.squared, ROUNDS, jnp.zeros(4)
    full = olx.sweep(*given, record=olx.record.actions)
    thinned = olx.sweep(*given, keep=olx.keep.every(20))
    few = jax.tree.map(lambda leaf: leaf[:3], (learners.learners, full.state))  # on three devices
    later = olx.sweep(few[0], *given[1:], state=few[1], keep=olx.keep.totals)
    return {
        "theta": np.asarray(full.state.theta),
        "losses": full.losses,
        "actions": full.trace,
        "eta": np.asarray(full.axes["eta"]),
        "at": thinned.curve.at,
        "totals": thinned.curve.total,
        "later": later.total,
    }


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 4)
    jax.config.update("jax_enable_x64", True)
    np.savez(sys.argv[1], devices=jax.local_device_count(), **sweep_ten())
