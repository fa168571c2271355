"""First-order learners and their maps at the ends of the range of floats, and at zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import convex, losses


@pytest.mark.parametrize(
    "learner",
    [
        olx.signed_exponentiated_gradient(0.1, 2.0),
        olx.omd(0.1, convex.pnorm(1.4)),
        olx.omd(0.1, convex.weighted_pnorm(1.4, jnp.array([1.0, 2.0, 0.5]))),
        olx.omd(0.1, convex.hypentropy(0.5)),
    ],
    ids=["EG+-", "p-norm", "weighted p-norm", "hypentropy"],
)
def test_the_derivative_in_a_start_at_zero_is_what_differences_say(learner):
    rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=6, features=3)
    rollout = lambda w: olx.rollout(olx.linear(learner), losses.squared, rounds, w).total
    total, zeros = jax.jit(rollout), jnp.zeros(3)
    step = 1e-6 * jnp.eye(3)
    differences = [float(total(h) - total(-h)) / 2e-6 for h in step]
    slope = np.asarray(jax.grad(rollout)(zeros))
    assert np.all(np.abs(slope) > 1e-3)
    np.testing.assert_allclose(slope, differences, rtol=1e-5)
