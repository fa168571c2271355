"""The references for boosting keep the theorems of the papers that they are written from."""

import numpy as np
import pytest
import reference_boosting as batch
import reference_gradient_boosting as gradient
import reference_online_boosting as online

RNG = np.random.default_rng(0)
LABELS = np.where(RNG.random(60) < 0.5, -1.0, 1.0)


@pytest.mark.parametrize("size", [1, 4, 7])
@pytest.mark.parametrize("gamma", [0.05, 0.3])
def test_the_potential_of_online_bbm_is_exact(size, gamma):
    votes = np.where(RNG.random((60, size)) < 0.5, -1.0, 1.0)
    learners = [online.Table(votes[:, i]) for i in range(size)]
    run = online.online_bbm(learners, np.zeros((60, 1)), LABELS, gamma)
    potential = lambda i, s: online.bbm_potential(size, gamma, i, s)
    left, right = online.lemma8(run, LABELS, gamma, potential)
    assert left == pytest.approx(right, abs=1e-9)


def test_the_training_error_of_adaboost_is_below_its_bound():
    rows = (RNG.random((60, 8)) < 0.5).astype(float)
    run = batch.adaboost(rows, LABELS, 15)
    loss, *bounds = batch.exponential_loss(run, LABELS)
    assert np.all(run.errors <= loss + 1e-12)
    assert all(np.all(loss <= bound + 1e-12) for bound in bounds)


@pytest.mark.parametrize(
    "loss",
    [gradient.p_norm(2), gradient.modified_squares(), gradient.logistic()],
    ids=["p-norm", "modified squares", "logistic"],
)
def test_slopes_are_derivatives(loss):
    y, label, step = np.linspace(-0.9, 0.9, 7), 1.0, 1e-6
    rise = (loss.value(label, y + step) - loss.value(label, y - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(label, y), rise, atol=1e-6)
