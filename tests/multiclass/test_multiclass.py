"""The multiclass learners: against second implementations, their binary originals and theorems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_multiclass as ref

import olx
from olx import losses, mirrors, multiclass, streams

T, D, K = 2000, 6, 4


def stream(k=K, noise=0.1, rounds=T):
    drawn, truth = streams.linear_classes(jax.random.key(k), rounds, D, k, 0.2, noise)
    return drawn, truth


ROUNDS, TRUTH = stream()
X, Y = np.asarray(ROUNDS.context), np.asarray(ROUNDS.outcome)


def scores_of(learner, rounds=ROUNDS, params=None, loss=losses.multiclass_hinge):
    params = jnp.zeros((K, D)) if params is None else params
    return olx.run(learner, loss, rounds, params, record=olx.record.actions).trace


REFERENCES = {
    "perceptron": (multiclass.perceptron(), lambda: ref.perceptron(X, Y, K)),
    "uniform perceptron": (
        multiclass.uniform_perceptron(),
        lambda: ref.uniform_perceptron(X, Y, K),
    ),
    "exponentiated gradient": (
        multiclass.exponentiated_gradient(0.1),
        lambda: ref.exponentiated_gradient(X, Y, K, 0.1),
    ),
    "p-norm perceptron": (
        multiclass.pnorm_perceptron(3.0),
        lambda: ref.pnorm_perceptron(X, Y, K, 3.0),
    ),
    "PA": (multiclass.passive_aggressive(), lambda: ref.passive_aggressive(X, Y, K)),
    "PA-I": (multiclass.passive_aggressive_1(0.05), lambda: ref.passive_aggressive(X, Y, K, 0.05)),
    "PA-II": (
        multiclass.passive_aggressive_2(0.05),
        lambda: ref.passive_aggressive(X, Y, K, softness=10.0),
    ),
    "aggressive dual ascent": (
        olx.dual_ascent(
            0.3, mirrors.euclidean(), losses.multiclass_hinge, olx.ascents.aggressive()
        ),
        lambda: ref.best_dual(X, Y, K, 1 / 0.3, 1.0),
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_scores_equal_the_second_implementation(name):
    learner, wanted = REFERENCES[name]
    np.testing.assert_allclose(scores_of(learner), wanted(), rtol=1e-8, atol=1e-8)
