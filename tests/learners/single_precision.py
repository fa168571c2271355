"""Plays a learner of every kind in float32, as `test_run` asks; prints the names it finished."""

import jax
import jax.numpy as jnp
import numpy as np
from table import KINDS, TABLE

import olx


def single(leaf):
    return np.float32(leaf) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf


if __name__ == "__main__":
    for name in KINDS:
        case = TABLE[name]
        learner, rounds, params = jax.tree.map(single, (case.learner, case.rounds, case.params))
        run = olx.run(learner, case.loss, rounds, params)
        assert run.losses.dtype == np.float32
        assert np.all(np.isfinite(run.losses))
        print(name, flush=True)
