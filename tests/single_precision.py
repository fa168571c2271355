"""Plays every learner of the table in float32, as `test_run` asks; prints the names it finished."""

import jax
import numpy as np
from cases import CASES

import olx

if __name__ == "__main__":
    for name, case in CASES.items():
        learner, rounds, params = jax.tree.map(np.float32, (case.learner, case.rounds, case.params))
        run = olx.run(learner, case.loss, rounds, params)
        assert run.losses.dtype == np.float32
        assert np.all(np.isfinite(run.losses))
        print(name, flush=True)
