"""Delayed feedback: gradients arrive when they are due, and the theorem pays for the delays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses
from olx.meta import Delayed, delayed

T, D, MOST = 40, 3, 5
DRAW = np.random.default_rng(2)
SLOPES = DRAW.normal(size=(T, D))
DELAYS = DRAW.integers(0, MOST + 1, T)
ROWS, TARGETS = DRAW.normal(size=(T, D)), DRAW.normal(size=T)


def played(learner, rounds, loss=losses.linear_loss):
    return np.asarray(olx.run(learner, loss, rounds, jnp.zeros(D), record=olx.record.actions).trace)


def descent(slope_of, delays, eta=0.1):
    """Gradient descent with delays in NumPy: each gradient is taken off when it arrives."""
    w, seen, waiting = np.zeros(D), [], []
    for t, delay in enumerate(delays):
        seen.append(w)
        waiting.append((t + delay, slope_of(t, w)))
        for due, slope in waiting:
            if due == t:
                w = w - eta * slope
    return np.array(seen)


def test_gradients_arrive_when_they_are_due():
    rounds = olx.Rounds(Delayed(None, DELAYS), SLOPES)
    wanted = descent(lambda t, w: SLOPES[t], DELAYS)
    np.testing.assert_allclose(played(delayed(olx.ogd(0.1), MOST), rounds), wanted, atol=1e-14)


def test_without_delays_in_the_contexts_every_delay_is_the_largest():
    wanted = descent(lambda t, w: SLOPES[t], np.full(T, MOST))
    rounds = olx.Rounds(None, SLOPES)
    np.testing.assert_allclose(played(delayed(olx.ogd(0.1), MOST), rounds), wanted, atol=1e-14)


def test_no_delay_changes_nothing():
    learner, rounds = olx.first_order.adagrad(0.3), olx.Rounds(None, SLOPES)
    plain = played(learner, rounds)
    np.testing.assert_allclose(played(delayed(learner, 0), rounds), plain, atol=1e-14)


def test_a_gradient_is_taken_at_the_decision_that_was_played():
    slope = lambda t, w: (ROWS[t] @ w - TARGETS[t]) * ROWS[t]
    decisions = descent(slope, DELAYS, 0.02)
    model = olx.model(delayed(olx.ogd(0.02), MOST), lambda w, both: w @ both.context)
    scores = played(model, olx.Rounds(Delayed(ROWS, DELAYS), TARGETS), losses.squared)
    np.testing.assert_allclose(scores, np.sum(decisions * ROWS, axis=1), atol=1e-13)


def test_a_round_of_weight_zero_does_not_count():
    weight = np.where(np.arange(T) % 3 == 1, 0.0, 1.0)
    kept = weight > 0
    learner = delayed(olx.ogd(0.1), 2)
    whole = played(learner, olx.Rounds(None, SLOPES, weight))
    alone = played(learner, olx.Rounds(None, SLOPES[kept]))
    np.testing.assert_allclose(whole[kept], alone, atol=1e-14)


STREAMS, LONG = 200, 60
INNER = {
    "ogd": (olx.ogd(0.2), jnp.zeros(D), 1.0),
    "hedge": (olx.hedge(0.5), jnp.ones(D) / D, 0.0),
    "ml_poly": (olx.experts.ml_poly(), jnp.ones(D) / D, 0.0),
}


@pytest.mark.parametrize("name", INNER)
def test_the_theorem_holds_on_hard_streams_and_fails_for_a_wrong_sign(name):
    """Random slopes, slopes that never change, and slopes that turn when they arrive."""
    inner, start, low = INNER[name]
    draw, kind = np.random.default_rng(4), np.arange(STREAMS)[:, None, None]
    slopes = draw.uniform(-low, 1.0, (STREAMS, LONG, D))
    turning = np.where(np.arange(LONG)[:, None] // (MOST + 1) % 2, slopes[:, :1], 1 - slopes[:, :1])
    slopes = np.select([kind % 3 == 1, kind % 3 == 2], [slopes[:, :1], turning], slopes)
    delays = draw.integers(0, MOST + 1, (STREAMS, LONG))
    delays[::4] = MOST

    @jax.jit
    def judge(learner, slopes, delays):
        def one(slopes, delays):
            rounds = olx.Rounds(Delayed(None, delays), slopes)
            run = olx.rollout(learner, losses.linear_loss, rounds, start, record=olx.record.trace)
            proofs = jax.vmap(lambda u: olx.certify(learner, run, u)[0])(jnp.eye(D))
            return proofs.holds, proofs.left, proofs.right

        return jax.vmap(one)(slopes, delays)

    learner = delayed(inner, MOST)
    holds, left, right = judge(learner, slopes, delays)
    assert np.all(holds)
    assert np.all(np.isfinite(right))
    assert np.max(left[..., -1] / right[..., -1]) > 0.3
    wrong = olx.testing.mutants(learner)["opposite step" if name == "ogd" else "opposite action"]
    assert not np.all(judge(wrong, slopes, delays)[0])


def test_the_left_side_is_the_regret_of_the_rounds_that_have_arrived():
    learner, rounds = delayed(olx.ogd(0.1), MOST), olx.Rounds(Delayed(None, DELAYS), SLOPES)
    run = olx.run(learner, losses.linear_loss, rounds, jnp.zeros(D), record=olx.record.trace)
    u, w = np.array([0.3, -0.2, 0.5]), np.asarray(run.trace.feedback.action)
    proof = olx.certify(learner, run, u)[0]
    for t in (MOST, 17, T - 1):
        there = np.arange(T) + DELAYS <= t
        wanted = np.sum((SLOPES * (w - u))[there])
        np.testing.assert_allclose(proof.left[t], wanted, atol=1e-12)
    assert np.all(proof.right <= proof.published + 1e-12)


BAD = {
    "a delay beyond the largest": (
        lambda: played(delayed(olx.ogd(0.1), 2), olx.Rounds(Delayed(None, DELAYS), SLOPES)),
        r"delayed: .*delays whole numbers from 0 to `most`, got \d",
    ),
    "a delay that is not whole": (
        lambda: played(delayed(olx.ogd(0.1), 2), olx.Rounds(Delayed(None, SLOPES[:, 0]), SLOPES)),
        "delayed: .*delays whole numbers from 0 to `most`, got",
    ),
    "a predictor": (
        lambda: played(delayed(olx.classification.perceptron(), 2), olx.Rounds(ROWS, TARGETS)),
        "delayed: `inner` must decide without a context, got perceptron",
    ),
    "a negative delay": (lambda: delayed(olx.ogd(0.1), -1), "delayed: `most` must be"),
    "confidences": (
        lambda: played(
            delayed(olx.experts.ml_poly(np.ones(D)), 1), olx.Rounds(np.ones((T, D)), SLOPES)
        ),
        "delayed: .*confidences of experts cannot be delayed",
    ),
    "a context that is not finite": (
        lambda: played(
            olx.linear(delayed(olx.ogd(0.1), 1)),
            olx.Rounds(np.where(np.max(ROWS) > ROWS, ROWS, np.nan), TARGETS),
            losses.squared,
        ),
        "delayed: contexts must be finite.*got nan",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_delayed_is_refused_by_name(name):
    call, says = BAD[name]
    with pytest.raises((TypeError, ValueError), match=says):
        call()
