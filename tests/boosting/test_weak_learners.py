"""Weak learners against references in NumPy, and what a booster asks of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_weak_learners import FeatureDescent, Network, NormalizedDescent, Stumps

import olx
from olx import boosting, losses

SQUARED = (lambda s, y: (s - y) ** 2 / 2, lambda s, y: s - y)


def stream(rows=120, features=5, zeros=0.4, seed=0):
    """Rows with zeros and different scales, labels that depend on two of them, and weights."""
    source = np.random.default_rng(seed)
    x = source.normal(size=(rows, features)) * np.geomspace(0.1, 10, features)
    x = np.where(source.random(x.shape) < zeros, 0.0, x)
    y = np.where(x[:, 1] + 0.1 * x[:, 3] + 0.05 * source.normal(size=rows) > 0, 1.0, -1.0)
    weights = np.where(source.random(rows) < 0.2, 0.0, source.random(rows))
    return olx.Rounds(x, y, weights)


def replay(reference, rounds):
    """The predictions of a reference; rounds of weight 0 are not shown to it."""
    found = []
    for x, y, weight in zip(*map(np.asarray, rounds), strict=True):
        found.append(reference.predict(x))
        if weight > 0:
            reference.update(x, y, weight)
    return np.array(found)


def predictions(learner, loss, rounds, params):
    return olx.rollout(learner, loss, rounds, params, record=olx.record.actions)


def test_stumps_follow_their_rule():
    rounds = stream()
    run = predictions(boosting.streaming_stumps(), losses.logistic, rounds, jnp.zeros(5))
    reference = Stumps(5)
    np.testing.assert_allclose(run.trace, replay(reference, rounds), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.state.mistakes, reference.wrong, rtol=1e-12)
    np.testing.assert_allclose(run.state.mean, reference.thresholds(), rtol=1e-12)


def test_regression_stumps_follow_their_rule():
    rounds = stream()
    rounds = rounds._replace(context=rounds.context / np.geomspace(0.1, 10, 5))
    learner = boosting.regression_stumps(olx.linear(olx.ogd(0.1)))
    run = predictions(learner, losses.squared, rounds, jnp.zeros(5))
    reference = FeatureDescent(5, 0.1, *SQUARED)
    np.testing.assert_allclose(run.trace, replay(reference, rounds), rtol=1e-12, atol=1e-12)


def test_the_network_is_trained_by_back_propagation(key):
    rounds = stream(zeros=0.0)
    learner = boosting.sigmoid_network(olx.ogd(0.05), 4, key)
    run = predictions(learner, losses.squared, rounds, jnp.zeros(5))
    first = map(np.asarray, boosting.first_weights(5, 4, key))
    reference = Network(*first, 0.05, SQUARED[1])
    np.testing.assert_allclose(run.trace, replay(reference, rounds), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("curvature", [0.25, 1.0])
def test_normalized_adagrad_follows_its_rule(curvature):
    rounds = stream()
    learner = olx.first_order.normalized_adagrad(0.7, curvature)
    run = predictions(learner, losses.squared, rounds, jnp.zeros(5))
    reference = NormalizedDescent(5, 0.7, SQUARED[1], curvature)
    np.testing.assert_allclose(run.trace, replay(reference, rounds), rtol=1e-9, atol=1e-10)


def test_normalized_adagrad_is_the_default_of_vowpal_wabbit():
    vowpalwabbit = pytest.importorskip("vowpalwabbit", reason="Vowpal Wabbit is not installed")
    source = np.random.default_rng(1)
    x = (source.random((400, 8)) < 0.3).astype(float)
    x[:, 0] = 1.0  # its constant
    y = np.where(x[:, 1] + x[:, 2] - x[:, 3] + source.normal(size=400) > 0.3, 1.0, -1.0)
    weights = source.uniform(0.1, 2.0, 400).round(3)
    peer, seen = (
        vowpalwabbit.Workspace(
            "--quiet --noconstant -l 0.1 --min_prediction -1 --max_prediction 1"
        ),
        [],
    )
    for row, label, weight in zip(x, y, weights, strict=True):
        words = " ".join(f"{i}:1" for i in np.flatnonzero(row))
        example = peer.example(f"{label:g} {weight:g} | {words}")
        peer.learn(example)
        seen.append(example.get_simplelabel_prediction())
        peer.finish_example(example)
    peer.finish()
    learner = olx.first_order.normalized_adagrad(0.1)
    rounds = olx.Rounds(x, y, weights)
    ours = predictions(learner, losses.modified_huber, rounds, jnp.zeros(8)).trace
    assert 0.3 < np.max(np.abs(ours)) < 1  # it does not count rounds with a score beyond its label
    np.testing.assert_allclose(ours, seen, atol=1e-4)


def test_a_lifted_network_is_the_same_predictor(key):
    rounds = stream(zeros=0.0)
    lifted = olx.model(olx.ogd(0.05), boosting.network)
    there = predictions(lifted, losses.squared, rounds, boosting.first_weights(5, 4, key))
    here = predictions(
        boosting.sigmoid_network(olx.ogd(0.05), 4, key), losses.squared, rounds, jnp.zeros(5)
    )
    np.testing.assert_allclose(here.trace, there.trace, rtol=1e-10, atol=1e-12)


def test_a_learner_that_starts_at_zero_trains_a_network(key):
    x = jax.random.normal(key, (1500, 2))
    rounds = olx.Rounds(x, jnp.sign(x[:, 0] * x[:, 1]))  # no linear model is better than chance
    learner = boosting.sigmoid_network(olx.first_order.adagrad(0.5), key=key)
    paid = olx.run(learner, losses.squared, rounds, jnp.zeros(2)).losses
    assert paid[-300:].mean() < 0.6 * paid[:300].mean()


def test_stumps_do_not_depend_on_the_scales_of_features():
    rounds = stream()
    moved = rounds._replace(context=rounds.context * 2.0 ** np.arange(-10, 15, 5))
    play = lambda rounds: predictions(
        boosting.streaming_stumps(), losses.zero_one, rounds, jnp.zeros(5)
    )
    np.testing.assert_array_equal(play(rounds).trace, play(moved).trace)


def test_a_weight_of_two_counts_as_two_rounds_of_the_stump():
    once, twice = Stumps(2), boosting.streaming_stumps()
    x, y = np.array([[1.0, -1.0], [2.0, 0.5], [-1.0, 3.0]]), np.array([1.0, -1.0, 1.0])
    rounds = olx.Rounds(x, y, np.array([2.0, 1.0, 2.0]))
    run = olx.rollout(twice, losses.zero_one, rounds, jnp.zeros(2))
    for row, label, weight in zip(*rounds, strict=True):
        once.update(row, label, weight)
    np.testing.assert_allclose(run.state.mistakes, once.wrong)
    np.testing.assert_allclose(run.state.weight, 5.0)


@pytest.mark.parametrize(
    "learner",
    [boosting.streaming_stumps(), boosting.regression_stumps(olx.linear(olx.ogd(0.1)))],
    ids=["streaming_stumps", "regression_stumps"],
)
def test_a_row_of_another_length_is_refused(learner):
    with pytest.raises(TypeError, match=r"the context has shape \(3,\), `params` has \(2,\)"):
        olx.rollout(learner, losses.logistic, olx.Rounds(np.ones((4, 3)), np.ones(4)), jnp.zeros(2))


def test_a_row_of_zeros_is_predicted_zero():
    rounds = olx.Rounds(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 1.0]))
    learner = boosting.regression_stumps(olx.linear(olx.ogd(0.5)))
    assert predictions(learner, losses.squared, rounds, jnp.zeros(2)).trace.tolist() == [0.0, 0.0]


def test_a_clipped_learner_learns_from_the_loss_continued_beyond_its_bound():
    rounds = stream(zeros=0.0)
    x, y = rounds.context / 10, 1.5 * rounds.outcome  # outcomes beyond the bound
    rounds = rounds._replace(context=x, outcome=y)
    learner = boosting.clipped(olx.linear(olx.ogd(0.4)), 1.0)
    ours = predictions(learner, losses.squared, rounds, jnp.zeros(5)).trace
    w, seen = np.zeros(5), []
    for row, target, weight in zip(*rounds, strict=True):
        seen.append(np.clip(w @ row, -1, 1))
        slope = seen[-1] - target
        if not (abs(w @ row) > 1 and slope * (w @ row) < 0):
            w = w - 0.4 * weight * slope * row
    np.testing.assert_allclose(ours, seen, rtol=1e-10, atol=1e-12)
    assert np.any(np.abs(ours) == 1)


def test_a_network_without_units_is_refused():
    with pytest.raises(ValueError, match="`hidden` must be an integer of at least 1, got 0"):
        boosting.sigmoid_network(olx.ogd(0.1), 0)


def test_copies_of_a_weak_learner_learn_different_things():
    from olx.frameworks import copies

    rounds, learner = stream(40), boosting.streaming_stumps()
    states = copies.start(learner, 3, jnp.zeros(5))
    for x, y, _ in zip(*rounds, strict=True):
        votes = copies.act(learner, states, jnp.asarray(x))
        linear = jax.tree_util.Partial(jnp.multiply, jnp.zeros(3))
        told = olx.core.Feedback(jnp.asarray(x), None, jnp.asarray(y), linear, None, None)
        states = copies.teach(learner, states, votes, linear, told, jnp.array([1.0, 0.5, 0.0]))
    np.testing.assert_allclose(states.weight, [40.0, 20.0, 0.0])
    np.testing.assert_allclose(states.mean[0], states.mean[1], rtol=1e-12)
    assert np.all(states.mean[2] == 0)
