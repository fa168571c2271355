"""The multiclass learners: against second implementations and their binary originals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_multiclass as ref

import olx
from olx import classification, losses, mirrors, multiclass, streams

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
    "AROW": (multiclass.arow(2.0), lambda: ref.arow(X, Y, K, 2.0)),
    "diagonal AROW": (multiclass.diagonal_arow(2.0), lambda: ref.diagonal_arow(X, Y, K, 2.0)),
    "SCW-I": (
        multiclass.soft_confidence_weighted(0.8, 0.3),
        lambda: ref.soft_confidence_weighted(X, Y, K, 0.8, 0.3, False),
    ),
    "SCW-II": (
        multiclass.soft_confidence_weighted(0.8, 0.3, squared=True),
        lambda: ref.soft_confidence_weighted(X, Y, K, 0.8, 0.3, True),
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


def perceptron_step(row, sign, score):
    return sign * (sign * score <= 0)


def pa_step(row, sign, score):
    return sign * min(0.1, max(0.0, 1 - sign * score) / (row @ row))


def logistic_step(row, sign, score):
    return 0.1 * sign / (1 + np.exp(sign * score))


INNER = {
    "perceptron": (classification.perceptron(), perceptron_step),
    "PA-I": (classification.passive_aggressive_1(0.1), pa_step),
    "logistic": (olx.linear(olx.ogd(0.1)), logistic_step),
}
CODE = np.array([[1, 1, 0], [1, -1, 1], [-1, 1, 1], [-1, -1, 0]])
REDUCTIONS = {
    "one vs rest": (multiclass.one_vs_rest, K, ref.one_vs_rest(K)),
    "one vs one": (multiclass.one_vs_one, K, ref.one_vs_one(K)),
    "output codes": (multiclass.output_codes, CODE, (CODE, CODE)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("inner", INNER)
def test_a_reduction_equals_the_second_implementation(name, inner):
    reduce, how, codes = REDUCTIONS[name]
    learner, step = INNER[inner]
    seen = scores_of(reduce(learner, how, loss=losses.logistic), params=jnp.zeros(D))
    np.testing.assert_allclose(seen, ref.by_codes(X, Y, *codes, step), rtol=1e-8, atol=1e-8)


def test_the_banditron_equals_the_second_implementation():
    gamma, key = 0.3, jax.random.key(5)
    next_key = jax.jit(lambda key: (jax.random.split(key, 1)[0], jax.random.uniform(key, ())))
    bars = []
    for _ in range(T):
        key, bar = next_key(key)
        bars.append(float(bar))

    def draw(t, p):
        return int(bars[t] / gamma * K) if bars[t] < gamma else int(np.argmax(p))

    played, w = ref.banditron(X, Y, K, gamma, draw)
    learner = multiclass.banditron(gamma, jax.random.key(5))
    run = olx.run(
        learner, losses.multiclass_zero_one, ROUNDS, jnp.zeros((K, D)), record=olx.record.actions
    )
    np.testing.assert_array_equal(np.argmax(run.trace, -1), played)
    np.testing.assert_allclose(run.state.w, w, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(run.losses, played != Y)


def test_the_banditron_makes_no_more_mistakes_in_the_mean_than_its_bound():
    rounds, truth = stream(noise=0.0)
    rows = rounds.context / jnp.linalg.norm(rounds.context, axis=1, keepdims=True)
    rounds = rounds._replace(context=rows)
    keys = jax.random.split(jax.random.key(1), 20)
    learners = olx.batch(lambda key: multiclass.banditron(0.1, key), key=keys)
    runs = olx.sweep(learners, losses.multiclass_zero_one, rounds, jnp.zeros((K, D)))
    v = 3 * truth
    lost = float(jnp.sum(losses.multiclass_hinge(rows @ v.T, rounds.outcome)))
    bound = multiclass.banditron_bound(0.1, T, K, lost, float(jnp.linalg.norm(v)))
    published = published_banditron(0.1, T, K, lost, 2 * float(jnp.sum(v**2)))
    mean = float(jnp.mean(runs.losses.sum(1)))
    assert 0.1 * T * 0.5 < mean <= bound <= published


def published_banditron(gamma, rounds, k, lost, d):
    """Theorem 1 of the paper, for rows of length at most 1."""
    larger = 3 * max(k * d / gamma, np.sqrt(d * gamma * rounds))
    return lost + gamma * rounds + larger + np.sqrt(k * d * lost / gamma)


def two_classes():
    rounds, _ = stream(k=2)
    return rounds, olx.Rounds(rounds.context, 2.0 * np.asarray(rounds.outcome) - 1)


ORIGINALS = {
    "perceptron": (multiclass.perceptron(), classification.perceptron(), (2, D)),
    "uniform perceptron": (multiclass.uniform_perceptron(), classification.perceptron(), (2, D)),
    "EG": (
        multiclass.exponentiated_gradient(0.1),
        classification.balanced_winnow(0.1),
        (2, D),
    ),
    "p-norm": (multiclass.pnorm_perceptron(3.0), classification.pnorm_perceptron(3.0), (2, D)),
    "PA": (multiclass.passive_aggressive(), classification.passive_aggressive(), (2, D)),
    "PA-I": (
        multiclass.passive_aggressive_1(0.05),
        classification.passive_aggressive_1(0.1),
        (2, D),
    ),
    "PA-II": (
        multiclass.passive_aggressive_2(0.05),
        classification.passive_aggressive_2(0.1),
        (2, D),
    ),
    "AROW": (multiclass.arow(2.0), olx.second_order.arow(2.0), (2, D)),
    "SCW": (
        multiclass.soft_confidence_weighted(0.8, 0.3),
        olx.second_order.soft_confidence_weighted(0.8, 0.3),
        (2, D),
    ),
    "SCW-II": (
        multiclass.soft_confidence_weighted(0.8, 0.3, squared=True),
        olx.second_order.soft_confidence_weighted(0.8, 0.3, squared=True),
        (2, D),
    ),
    "one vs rest": (
        multiclass.one_vs_rest(classification.perceptron(), 2),
        classification.perceptron(),
        (D,),
    ),
    "one vs one": (
        multiclass.one_vs_one(olx.second_order.arow(2.0), 2),
        olx.second_order.arow(2.0),
        (D,),
    ),
    "aggressive dual ascent": (
        olx.dual_ascent(
            0.05, mirrors.euclidean(), losses.multiclass_hinge, olx.ascents.aggressive()
        ),
        classification.passive_aggressive_1(0.1),
        (2, D),
    ),
}


@pytest.mark.parametrize("name", ORIGINALS)
def test_two_classes_are_predicted_as_by_the_binary_original(name):
    learner, original, shape = ORIGINALS[name]
    many, two = two_classes()
    scores = scores_of(learner, many, jnp.zeros(shape))
    wanted = scores_of(original, two, jnp.zeros(D), losses.hinge)
    ahead = scores[:, 1] - scores[:, 0]
    np.testing.assert_array_equal(np.sign(ahead), np.sign(wanted))
    factor = float(np.vdot(ahead, wanted) / np.vdot(wanted, wanted))
    np.testing.assert_allclose(ahead, factor * wanted, rtol=1e-8, atol=1e-8)


def test_two_classes_of_diagonal_arow_are_the_binary_rule_of_the_paper():
    many, two = two_classes()
    scores = scores_of(multiclass.diagonal_arow(2.0), many, jnp.zeros((2, D)))
    wanted = ref.binary_diagonal_arow(np.asarray(two.context), np.asarray(two.outcome), 2.0)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], wanted, rtol=1e-10, atol=1e-10)
