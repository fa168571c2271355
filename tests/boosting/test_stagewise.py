"""Batch gradient boosting against its reference, and (B.7), (B.8) with their conditions."""

import jax.numpy as jnp
import numpy as np
import pytest
import reference_gradient_boosting as reference

import olx
from olx import boosting, losses

RNG = np.random.default_rng(5)
ROWS = (RNG.random((40, 6)) < 0.5).astype(float)
SIGNS = 2 * ROWS - 1
COMPARATOR = SIGNS @ np.array([0.8, -0.5, 0.3, 0.0, 0.0, 0.0])
TARGETS = COMPARATOR + 0.1 * RNG.normal(size=40)
LABELS = np.where(TARGETS > 0, 1.0, -1.0)
NORM = 1.6
ETA, STEPS = 0.1, 40


def half_square(_, score, target):
    return (score - target) ** 2 / 2


HALF = losses.ScoreLoss(value_fn=half_square)
GAMES = {
    "squares": (HALF, TARGETS, reference.half_square(), 1.0),
    "logistic": (losses.logistic, LABELS, reference.logistic(), 0.25),
}
LEARNERS = {"stagewise": boosting.stagewise, "shrunken": boosting.shrunken_stagewise}


def play(name, game, weak=None, eta=ETA):
    loss, targets, plain, beta = GAMES[game]
    learner = LEARNERS[name](eta)
    nature = boosting.oracle(learner, weak or boosting.stumps(ROWS), targets, loss)
    run = olx.play(learner, nature, jnp.zeros(40), STEPS, record=olx.record.trace)
    return learner, run, plain, beta


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", LEARNERS)
def test_it_is_that_of_the_thesis_and_its_bound_holds_after_every_round(name, game):
    learner, run, plain, beta = play(name, game)
    targets, steps = GAMES[game][1], np.full(STEPS, ETA)
    fs, sigmas = reference.batch_boosting(SIGNS, targets, plain, steps, name == "shrunken")
    np.testing.assert_allclose(run.trace.feedback.action, fs[:-1], atol=1e-12)
    np.testing.assert_allclose(run.state.f, fs[-1], atol=1e-12)
    assert name != "shrunken" or game != "squares" or 0 < sigmas.sum() < STEPS

    (proof,) = olx.certify(
        learner, run, COMPARATOR, theorems=(olx.theorems.stagewise_loss(NORM, beta),)
    )
    assert proof.holds, str(proof)
    wanted = [
        reference.batch_bounds(fs[: n + 1], targets, plain, steps[:n], COMPARATOR, NORM, beta)
        for n in range(1, STEPS + 1)
    ]
    left, b7, b8 = np.array(wanted).T
    np.testing.assert_allclose(proof.left, left, atol=1e-12)
    np.testing.assert_allclose(proof.right, b8 if name == "shrunken" else b7, rtol=1e-10)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_driver_keeps_an_ensemble_that_predicts_new_rows(name):
    learner, run, *_ = play(name, "squares", eta=olx.schedules.decay(0.4))
    fitted = boosting.fit_stagewise(learner, boosting.stumps(ROWS), TARGETS, HALF, STEPS)
    np.testing.assert_allclose(fitted.losses[:-1], run.losses, atol=1e-12)
    np.testing.assert_allclose(fitted.ensemble.votes(ROWS), run.state.f, atol=1e-12)
    assert fitted.losses[-1] < fitted.losses[0] / 2


def conditions(broken):
    names = [name for name, first in broken.summary.broken.items() if first]
    return " ".join(names)


def test_broken_conditions_are_named():
    learner, run, *_ = play("shrunken", "squares", weak=lambda f, eta: SIGNS[:, 5])
    certify = lambda u, *numbers: olx.certify(
        learner, run, u, theorems=(olx.theorems.stagewise_loss(*numbers),)
    )[0]
    assert "oracle" in conditions(certify(COMPARATOR, NORM, 1.0))
    assert "smooth" in conditions(certify(COMPARATOR, NORM, 0.01))
    assert "`norm`" in conditions(certify(COMPARATOR, 0.5, 1.0))
    assert "as good as the start" in conditions(certify(-COMPARATOR, NORM, 1.0))
    assert certify(COMPARATOR, NORM, 1.0).holds


def test_the_game_refuses_large_hypotheses():
    says = r"play: shrunken_stagewise: hypotheses must lie in \[-1, 1\], got 3.0"
    with pytest.raises(ValueError, match=says):
        play("shrunken", "squares", weak=lambda f, eta: np.full(40, 3.0))


def fit(learner=None, weak=None, targets=TARGETS, loss=HALF, rounds=2):
    learner = boosting.stagewise(0.1) if learner is None else learner
    weak = boosting.stumps(ROWS) if weak is None else weak
    return boosting.fit_stagewise(learner, weak, targets, loss, rounds)


HALVES = boosting.weak_learner(lambda weights, labels: 0.5 * labels, lambda h, rows: h, ROWS)
BAD = {
    "eta 0": (lambda: boosting.stagewise(0.0), r"stagewise: `eta` must lie in \(0, 1\], got 0"),
    "eta 2": (lambda: boosting.shrunken_stagewise(2.0), "shrunken_stagewise: `eta` must lie in"),
    "no rounds": (lambda: fit(rounds=0), "fit_stagewise: `rounds` must be an integer"),
    "another learner": (lambda: fit(learner=olx.ogd(0.1)), "`inner` must be `stagewise` or"),
    "a game's loss": (lambda: fit(loss=jnp.dot), "`loss` must be a ScoreLoss"),
    "targets in a matrix": (lambda: fit(targets=ROWS), "`targets` must be a vector of numbers"),
    "labels of 0": (lambda: fit(targets=ROWS[:, 0], loss=losses.logistic), r"-1 or \+1"),
    "NaN": (lambda: fit(targets=TARGETS * np.nan), "nan"),
    "real hypotheses": (lambda: fit(weak=HALVES), r"must be -1 or \+1, got .*a function of f"),
    "large values": (lambda: fit(weak=lambda f, eta: 2 + f), r"must lie in \[-1, 1\], got 2.0"),
    "a function of weights": (lambda: fit(weak=lambda weights: weights), r"must take \(f, eta\)"),
    "norm 0": (lambda: olx.theorems.stagewise_loss(0.0, 1.0), "`norm` must be positive"),
}


@pytest.mark.parametrize("name", BAD)
def test_it_refuses_by_name(name):
    call, says = BAD[name]
    with pytest.raises((ValueError, TypeError), match=says):
        call()
