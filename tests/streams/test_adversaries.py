"""Adversaries force on every learner what they are said to force."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from olx import losses, streams
from olx.core import Adversary, Learner
from olx.engine.rollout import play
from olx.frameworks.lift import linear
from olx.frameworks.omd import hedge, omd
from olx.mirrors.base import mirror_map
from olx.mirrors.entropy import negative_entropy
from olx.record import trace


def _half_square(w):
    return jnp.vdot(w, w) / 2


def descent(eta):
    return omd(eta, mirror_map(_half_square, _half_square))


class Halving(NamedTuple):
    alive: jax.Array


def halving():
    """Vote by majority of the candidates that were never wrong; the context is their advice."""
    vote = lambda hp, state, x: jnp.sum(state.alive * x)
    learn = lambda hp, state, f: Halving(jnp.where(f.context == f.outcome, state.alive, 0.0))
    return Learner(None, lambda hp, params: Halving(jnp.ones_like(params)), vote, learn)


@pytest.mark.parametrize("eta", [0.1, 3.0])
@pytest.mark.parametrize("loss", [losses.hinge, losses.logistic, losses.zero_one])
def test_the_contradicting_adversary_forces_a_mistake_in_every_round(eta, loss):
    run = play(linear(descent(eta)), streams.contradicting(loss), jnp.zeros(1), 30, record=trace)
    score, label = np.asarray(run.trace.feedback.action), np.asarray(run.rounds.outcome)
    assert np.all(label * score <= 0)
    assert min(np.sum(label > 0), np.sum(label < 0)) <= 15
    if loss is losses.zero_one:
        assert float(run.total) == 30.0


@pytest.mark.parametrize("eta", [0.05, 1.0, 10.0])
def test_unit_vectors_cost_a_hinge_of_one_in_every_round_and_nothing_to_their_labels(eta):
    rounds = 12
    adversary = streams.unit_vectors(rounds, losses.hinge)
    start = jnp.linspace(-1.0, 1.0, rounds)
    run = play(linear(descent(eta)), adversary, start, rounds)
    assert np.all(np.asarray(run.losses) >= 1.0)
    np.testing.assert_array_equal(run.rounds.context, np.eye(rounds))
    u = np.asarray(run.rounds.outcome)
    assert np.all(np.maximum(0, 1 - u * (np.asarray(run.rounds.context) @ u)) == 0)
    assert u @ u == rounds
    assert float(run.total) >= rounds


@pytest.mark.parametrize("n", [2, 8, 64, 100])
@pytest.mark.parametrize("make", [halving, lambda: linear(omd(1.0, negative_entropy()))])
def test_thresholds_force_the_logarithm_of_their_number_of_mistakes(n, make):
    forced = int(np.log2(n))
    adversary = streams.threshold(n, losses.zero_one)
    run = play(make(), adversary, jnp.full(n, 1 / n), forced + 8)
    assert np.all(np.asarray(run.losses)[:forced] == 1.0)
    advice, label = np.asarray(run.rounds.context), np.asarray(run.rounds.outcome)
    right = np.all(advice == label[:, None], axis=0)
    assert np.sum(right) == 1
    assert np.all(np.diff(advice, axis=1) >= 0)
    if make is halving:
        assert float(run.total) <= np.log2(n)


def test_one_candidate_is_told_the_truth_about():
    run = play(halving(), streams.threshold(1, losses.zero_one), jnp.ones(1), 3)
    assert float(run.total) == 0.0


@pytest.mark.parametrize("eta", [0.1, 1.0])
def test_the_heaviest_expert_pays(eta):
    n, rounds = 5, 40
    run = play(hedge(eta), streams.heaviest_expert(), jnp.full(n, 1 / n), rounds, record=trace)
    weights, paid = np.asarray(run.trace.feedback.action), np.asarray(run.rounds.outcome)
    np.testing.assert_array_equal(np.argmax(paid, axis=1), np.argmax(weights, axis=1))
    np.testing.assert_array_equal(np.sum(paid, axis=1), 1.0)
    np.testing.assert_allclose(run.losses, np.max(weights, axis=1), atol=1e-12)
    assert np.all(np.asarray(run.losses) >= 1 / n - 1e-12)
    assert np.min(np.sum(paid, axis=0)) <= rounds / n


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_the_steepest_loss_points_along_the_action(radius):
    start = {"a": jnp.zeros(2), "b": jnp.zeros(())}
    square = mirror_map(lambda w: jnp.sum(w["a"] ** 2) / 2 + w["b"] ** 2 / 2)
    run = play(omd(0.3, square), streams.steepest(radius), start, 6, record=trace)
    flat = lambda tree: np.column_stack([np.asarray(tree["a"]), np.asarray(tree["b"])])
    w, z = flat(run.trace.feedback.action), flat(run.rounds.outcome)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), radius)
    np.testing.assert_allclose(z[0], radius / 3**0.5)
    np.testing.assert_allclose(run.losses, radius * np.linalg.norm(w, axis=1), atol=1e-12)
    assert np.all(np.linalg.norm(w[1:], axis=1) > 0)


def test_the_steepest_loss_is_differentiable_where_the_action_is_zero():
    play_one = lambda eta: play(descent(eta), streams.steepest(1.0), jnp.zeros(3), 5).total
    assert np.isfinite(jax.grad(play_one)(0.3))


def test_random_signs_ignore_the_action_and_repeat_with_their_key():
    adversary = streams.random_signs(jax.random.key(4))
    small = play(descent(0.01), adversary, jnp.zeros(2), 50)
    large = play(descent(1.0), adversary, jnp.zeros(2), 50)
    np.testing.assert_array_equal(small.rounds.outcome, large.rounds.outcome)
    assert set(np.unique(small.rounds.outcome)) == {-1.0, 1.0}
    other = play(descent(1.0), streams.random_signs(jax.random.key(5)), jnp.zeros(2), 50)
    assert not np.array_equal(other.rounds.outcome, large.rounds.outcome)


def _clipped():
    """Gradient descent on the interval from -1 to 1."""
    step = lambda hp, w, feedback: jnp.clip(w - hp * feedback.grad, -1.0, 1.0)
    return Learner(1.0 / 8, lambda hp, w: w, lambda hp, w, x: w, step)


def test_random_signs_force_a_regret_of_the_root_of_the_rounds_on_average():
    rounds, seeds = 64, 2000

    @jax.vmap
    def regret(key):
        run = play(_clipped(), streams.random_signs(key), jnp.zeros(()), rounds)
        return run.total + jnp.abs(jnp.sum(run.rounds.outcome))

    measured = np.asarray(regret(jax.random.split(jax.random.key(0), seeds)))
    expected = np.sqrt(2 * rounds / np.pi)
    error = 3 * np.std(measured) / np.sqrt(seeds)
    assert abs(np.mean(measured) - expected) <= error + 0.01 * expected


def test_a_batch_of_adversaries_is_swept_with_its_margin():
    margins = jnp.array([0.5, 2.0])
    adversary = jax.vmap(lambda m: streams.contradicting(losses.margin_hinge(m)))(margins)
    first = jax.vmap(lambda a: play(linear(descent(0.1)), a, jnp.zeros(1), 3).losses[0])(adversary)
    np.testing.assert_allclose(first, margins)


def test_a_loss_that_is_no_function_is_refused():
    with pytest.raises(TypeError, match="contradicting: `loss` must be a function, got str"):
        streams.contradicting("hinge")  # pyright: ignore[reportArgumentType]


ANSWERS = {
    "the other order": (lambda hp, s, a: (s, jnp.ones(())), "They seem to be in the other order"),
    "one thing": (lambda hp, s, a: jnp.ones(()), r"\(outcome, state\), got "),
    "another state": (
        lambda hp, s, a: (a, s[:1]),
        r"float64\[2\]; it gave the state float64\[1\]\.",
    ),
    "another kind of number": (
        lambda hp, s, a: (a, jnp.ones(2, int)),
        r"float64\[2\]; it gave the state int64\[2\]\.",
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_in_another_form_is_refused(case):
    answer, said = ANSWERS[case]
    ask = lambda hp, s: jnp.ones(1)
    adversary = Adversary(None, losses.squared, lambda hp: jnp.ones(2), ask, answer)
    with pytest.raises(TypeError, match=f"play: `answer_fn` must give.*{said}"):
        play(linear(descent(0.1)), adversary, jnp.zeros(1), 3)


FIELDS = {
    "no ask": ("ask_fn", None, "`ask_fn` must be a function, got NoneType; it may return None"),
    "a number to begin": ("init_fn", 3, "`init_fn` must be a function, got int"),
    "two arguments": ("answer_fn", lambda s, a: (a, s), r"must take \(hparams, state, action\)"),
}


@pytest.mark.parametrize("case", FIELDS)
def test_a_field_of_another_form_is_refused(case):
    field, value, said = FIELDS[case]
    adversary = dataclasses.replace(streams.random_signs(jax.random.key(0)), **{field: value})
    with pytest.raises(TypeError, match=f"play: .*{said}"):
        play(descent(0.1), adversary, jnp.zeros(1), 3)


def test_a_state_that_begins_as_a_number_of_python_may_become_a_float():
    answer = lambda hp, s, a: (jnp.ones(()), s + 0.5)
    ask = lambda hp, s: jnp.ones(1)
    adversary = Adversary(None, losses.squared, lambda hp: 0, ask, answer)
    assert play(linear(descent(0.1)), adversary, jnp.zeros(1), 3).losses.shape == (3,)
