"""What regret says about risk, on laws of finite support, whose risks are sums.

Every stream is drawn from a fixed seed, so a test always gives the same answer. Where a theorem
holds with probability 1 - delta, the share of runs that break it may exceed delta by no more than
four standard deviations of a share (for another seed that would fail with chance below 1e-4); where
it holds in expectation, a mean may exceed the bound by no more than four standard errors.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_first_order as ref
from jax.lax import stop_gradient
from scipy.optimize import linprog, minimize

import olx
from olx import losses, mirrors
from olx.convex import sets
from olx.first_order.strongly_convex import strongly_convex_md, strongly_convex_ogd
from olx.hindsight import online_to_batch
from olx.meta import (
    average,
    averaged,
    candidates,
    random_stop,
    restarts,
    rising,
    stopped,
    validated,
)

T, RUNS, POINTS, D = 200, 400, 16, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(POINTS, D))
X /= 1.2 * np.linalg.norm(X, axis=1, keepdims=True)
Y = np.clip(X @ np.array([0.5, -0.4, 0.3]) + 0.15 * RNG.normal(size=POINTS), -1, 1)
LABELS = np.where(X @ np.array([0.5, -0.4, 0.3]) >= 0, 1.0, -1.0)
DRAWN = RNG.integers(POINTS, size=(RUNS, T))
G, ETA, BALL = 0.5 / 1.2, 0.2, 1.0
DELTAS = (0.5, 0.1, 0.02)

# Nearly all the time goes into compilation, and the programs are short-lived.
quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def half_absolute(score, outcome):
    """In [0, 1] for decisions in the unit ball."""
    return jnp.abs(score - outcome) / 2


def risk(w):
    """Of decisions along the last axis."""
    return np.abs(np.asarray(w) @ X.T - Y).mean(axis=-1) / 2


def best():
    """The decision of least risk: a linear program."""
    cost = np.r_[np.zeros(D), np.ones(POINTS)]
    above, below = np.c_[X, -np.eye(POINTS)], np.c_[-X, -np.eye(POINTS)]
    limits = [(None, None)] * D + [(0, None)] * POINTS
    w = linprog(cost, np.r_[above, below], np.r_[Y, -Y], bounds=limits).x[:D]
    assert np.linalg.norm(w) < BALL
    return w


BEST = best()
RISK = risk(BEST)
REGRET = np.linalg.norm(BEST) ** 2 / (2 * ETA) + ETA * T * G**2 / 2  # theorem 14.5


def rarely(broken, delta):
    """Whether a share of runs is at most `delta`, within four standard deviations."""
    return np.mean(np.asarray(broken)) <= delta + 4 * np.sqrt(delta * (1 - delta) / len(broken))


def at_most(values, bound):
    """Whether a mean is at most `bound`, within four standard errors."""
    return np.mean(values) <= bound + 4 * np.std(values) / np.sqrt(len(values))


@pytest.fixture(scope="module")
def runs():
    """Losses, decisions, the mean decision, the one kept at random, and theorem 14.5."""
    descent = olx.ogd(ETA, sets.ball(BALL))

    @quick
    def one(key, rows):
        learner = olx.linear(average(random_stop(descent, key)))
        rounds = olx.Rounds(jnp.asarray(X)[rows], jnp.asarray(Y)[rows])
        run = olx.rollout(learner, half_absolute, rounds, np.zeros(D), record=olx.record.trace)
        proof = olx.certify(learner, run, jnp.asarray(BEST))["gradient_descent"]
        w = jax.vmap(descent.predict)(run.trace.state.inner.inner)
        return run.losses, w, averaged(run.state), stopped(run.state.inner), proof

    return jax.tree.map(np.asarray, jax.vmap(one)(jax.random.split(jax.random.key(1), RUNS), DRAWN))


def test_the_mean_is_that_of_the_decisions_before_each_update(runs):
    np.testing.assert_allclose(runs[2], runs[1].mean(axis=1), atol=1e-12)


def test_what_is_paid_estimates_the_mean_risk_without_bias(runs):
    """Theorem 9; decisions that have seen the round they are judged on would be biased."""
    paid, w = runs[0], runs[1]
    error = np.mean(risk(w) - paid, axis=1)
    assert at_most(error, 0)
    assert at_most(-error, 0)
    rows = DRAWN[:, :-1]
    later = np.abs(np.einsum("rtd,rtd->rt", w[:, 1:], X[rows]) - Y[rows]) / 2
    assert not at_most(np.mean(risk(w[:, 1:]) - later, axis=1), 0)


def test_the_mean_risk_is_at_most_the_regret_above_the_best(runs):
    """Theorem 10."""
    mean = risk(runs[1]).mean(axis=1)
    bound = online_to_batch.mean_risk_bound(RISK, REGRET, T)
    assert at_most(mean, bound)
    assert np.mean(mean) - RISK > 0.1 * (bound - RISK)


def test_gradient_descent_has_the_regret_of_theorem_14_5(runs):
    proof = runs[4]
    assert np.all(proof.left <= proof.right + 1e-9)
    assert np.all(proof.right <= proof.published + 1e-9)
    np.testing.assert_allclose(proof.published[:, -1], REGRET, rtol=0.1)
    assert np.max(proof.left / proof.right) > 0.3


@pytest.mark.parametrize("delta", DELTAS)
def test_risk_bounds_hold_with_their_probability(runs, delta):
    """Lemmas 21 and 22 with mu = 0 and nu the regret, lemma 23, theorem 13, Zhang's 14.9."""
    paid, _, mean, kept, _ = runs
    own = np.abs(X[DRAWN] @ BEST - Y[DRAWN]).mean(axis=1) / 2
    assert rarely(own > online_to_batch.best_loss_bound(RISK, T, delta), delta)
    assert rarely(
        paid.mean(axis=1) > online_to_batch.mean_loss_bound(RISK, T, delta, 0.0, REGRET), delta
    )
    assert rarely(risk(mean) > online_to_batch.average_bound(paid.mean(axis=1), T, delta), delta)
    bound = online_to_batch.random_stop_bound(
        RISK, online_to_batch.mean_risk_bound(RISK, REGRET, T), delta
    )
    assert rarely(risk(kept) > bound, delta)
    distance = np.linalg.norm(BEST)
    assert rarely(
        risk(mean) > online_to_batch.oracle_bound(RISK, distance, ETA, G, 1.0, T, delta), delta
    )


def test_with_little_confidence_a_risk_bound_may_break(runs):
    """So that the test above could fail: lemma 21 without its last terms breaks half the time."""
    own = np.abs(X[DRAWN] @ BEST - Y[DRAWN]).mean(axis=1) / 2
    assert 0.4 < np.mean(own > RISK) < 0.6


def test_small_losses_are_learned_faster():
    """Theorem 11 with the constants of corollary 4, against theorem 10 with its square root."""
    mu, nu = online_to_batch.small_loss_constants(1.0, 0.5, 1.0)
    np.testing.assert_allclose([mu, nu], [3.3636 * 0.5**0.5, 3.3636 * 0.5**0.5 + 11.3137 / 2], 1e-4)
    assert online_to_batch.small_mean_risk_bound(
        0.0, 1e6, mu, nu
    ) < online_to_batch.mean_risk_bound(0.0, 1e3, 1e6)
    wanted = 0.1 + (mu + np.e) * np.sqrt(0.2 / 100) + (nu + np.e * (np.sqrt(3) * mu + 3)) / 100
    np.testing.assert_allclose(online_to_batch.small_mean_risk_bound(0.1, 100, mu, nu), wanted)


def test_every_round_is_as_likely_to_be_kept(runs):
    w, kept = runs[1], runs[3]
    distance = np.abs(w - kept[:, None]).sum(axis=2)
    assert np.all(distance.min(axis=1) < 1e-12)
    first = distance.argmin(axis=1)
    counts = np.bincount(first * 10 // T, minlength=10)
    assert np.sum((counts - RUNS / 10) ** 2 / (RUNS / 10)) < 35  # chi-squared, 9: chance 6e-5


@pytest.fixture(scope="module")
def blocks():
    """Losses and candidates of a learner that starts anew four times."""
    descent = olx.ogd(ETA, sets.ball(BALL))

    @quick
    def one(key, rows):
        learner = olx.linear(restarts(descent, T // 4, 4, key))
        rounds = olx.Rounds(jnp.asarray(X)[rows], jnp.asarray(Y)[rows])
        run = olx.rollout(learner, half_absolute, rounds, np.zeros(D), record=olx.record.trace)
        fresh = olx.Rounds(jnp.asarray(X), jnp.asarray(Y))
        chosen = validated(candidates(run.state), half_absolute, fresh, olx.dot)
        w = jax.vmap(descent.predict)(run.trace.state.inner)
        return w, candidates(run.state), chosen

    keys = jax.random.split(jax.random.key(2), RUNS)
    return jax.tree.map(np.asarray, jax.vmap(one)(keys, DRAWN))


def test_a_block_starts_anew(blocks, runs):
    w = blocks[0].reshape(RUNS, 4, T // 4, D)
    assert np.all(w[:, :, 0] == 0)
    np.testing.assert_allclose(w[:, 0], runs[1][:, : T // 4], atol=1e-12)
    assert np.any(w[:, 1] != w[:, 0])


def test_a_candidate_comes_from_its_own_block(blocks):
    w, picked, _ = blocks
    parts = w.reshape(RUNS, 4, T // 4, D)
    distance = np.abs(parts - picked[:, :, None]).sum(axis=3)
    assert np.all(distance.min(axis=2) < 1e-12)
    place = distance.argmin(axis=2) / (T // 4 - 1)
    assert abs(place.mean() - 0.5) < 5 * np.sqrt(1 / 12 / place.size)


def test_one_of_the_blocks_has_a_good_candidate(blocks):
    """Theorem 12, with probability 1 - exp(-4)."""
    regret = np.linalg.norm(BEST) ** 2 / (2 * ETA) + ETA * (T // 4) * G**2 / 2
    bound = online_to_batch.restart_bound(
        RISK, online_to_batch.mean_risk_bound(RISK, regret, T // 4)
    )
    assert rarely(risk(blocks[1]).min(axis=1) > bound, np.exp(-4))


def test_validation_takes_the_best_candidate(blocks):
    """On every point once, so that the loss seen is the risk."""
    np.testing.assert_allclose(risk(blocks[2]), risk(blocks[1]).min(axis=1), atol=1e-12)


SIGMA = 0.3


def ridge(w, outcome):
    x, y = outcome
    return jnp.abs(jnp.dot(w, x) - y) / 2 + SIGMA / 2 * jnp.dot(w, w)


def objective(w):
    return risk(w) + SIGMA / 2 * np.sum(np.square(w), axis=-1)


@functools.cache
def least():
    """The least objective, from several starts."""
    found = [minimize(objective, w, method="Nelder-Mead", tol=1e-12) for w in (BEST, np.zeros(D))]
    return min(found, key=lambda one: one.fun)


CURVED = {
    "uniform": (
        lambda: average(strongly_convex_md(SIGMA, mirrors.euclidean(sets.ball(BALL)))),
        lambda state: averaged(state),
        "strongly_convex_regret",
        online_to_batch.strongly_convex_risk_bound,
    ),
    "weighted": (
        lambda: average(strongly_convex_ogd(SIGMA, sets.ball(BALL)), rising()),
        lambda state: state.inner.mean,
        "weighted_regret",
        online_to_batch.weighted_risk_bound,
    ),
}


@pytest.fixture(scope="module", params=CURVED)
def curved(request):
    """The output, the mean of the wrapper and the certificate; and the bound of corollary 13."""
    make, output, theorem, bound = CURVED[request.param]
    learner = make()

    @quick
    def one(rows):
        rounds = olx.Rounds(None, (jnp.asarray(X)[rows], jnp.asarray(Y)[rows]))
        run = olx.rollout(learner, ridge, rounds, np.zeros(D), record=olx.record.trace)
        us = jnp.stack([jnp.asarray(least().x), jnp.zeros(D), jnp.full(D, -0.5)])
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u)[theorem])(us)
        return output(run.state), averaged(run.state), proofs

    least()
    return jax.tree.map(np.asarray, jax.vmap(one)(DRAWN)), bound


def test_strongly_convex_losses_give_fast_rates(curved):
    """Corollary 13, in expectation."""
    (w, _, _), bound = curved
    right = bound(least().fun, SIGMA, G, BALL, T)
    assert at_most(objective(w), right)
    assert right - least().fun < 0.1


def test_the_output_of_theorem_14_12_is_a_rising_average(curved):
    (w, mean, _), _ = curved
    np.testing.assert_allclose(w, mean, atol=1e-12)


def test_regret_on_strongly_convex_losses_has_its_bound(curved):
    """Theorem 5, which is Zhang's 14.11, and 14.12, after every round."""
    (_, _, proof), _ = curved
    assert np.all(proof.left <= proof.right + 1e-9)
    assert np.max(proof.left / proof.right) > 0.2


def test_the_weighted_output_equals_the_reference():
    x, y = X[DRAWN[0]], np.where(Y[DRAWN[0]] > 0, 1.0, -1.0)
    scores, wanted = ref.strongly_convex(x, y, ref.logistic_slope, 0.5)
    learner = olx.linear(strongly_convex_ogd(0.5))
    play = quick(lambda rounds: olx.rollout(learner, losses.logistic, rounds, np.zeros(D)))
    np.testing.assert_allclose(play(olx.Rounds(x, y)).state.mean, wanted, atol=1e-12)
    assert np.abs(scores).max() > 0.1


def mistake(score, label):
    """1 for a mistake, whose slope is that of the Perceptron: -y."""
    margin = label * score
    slope = jnp.where(margin <= 0, stop_gradient(margin) - margin, 0.0)
    return stop_gradient(jnp.where(margin <= 0, 1.0, 0.0)) + slope


def separator():
    """A point with margin 1 on every row, and the mistake bound it gives."""
    rows = LABELS[:, None] * X
    u = linprog(np.zeros(D), -rows, -np.ones(POINTS), bounds=[(None, None)] * D).x
    return u, float(u @ u * np.max(np.sum(X**2, axis=1)))


@pytest.fixture(scope="module")
def perceptron():
    """The Perceptron as gradient descent on another loss: scores' labels, and theorem 14.6."""
    u, _ = separator()
    learner = olx.linear(olx.ogd(1.0))

    @quick
    def one(rows):
        rounds = olx.Rounds(jnp.asarray(X)[rows], jnp.asarray(LABELS)[rows])
        run = olx.rollout(learner, mistake, rounds, np.zeros(D), record=olx.record.trace)
        us = jnp.stack([jnp.asarray(u), jnp.asarray(u) / 2, jnp.zeros(D)])
        theorem = olx.theorems.surrogate_regret(losses.hinge)
        prove = lambda u: olx.certify(learner, run, u, theorems=(theorem,))[0]
        return run.losses, run.trace.state.theta, jax.vmap(prove)(us)

    return jax.tree.map(np.asarray, jax.vmap(one)(DRAWN))


def test_the_perceptron_pays_at_most_the_hinge_of_another(perceptron):
    proof = perceptron[2]
    assert np.all(proof.left <= proof.right + 1e-9)
    assert np.max(proof.left / proof.right) > 0.5


def test_perceptrons_of_all_rounds_err_rarely(perceptron):
    """Proposition 4."""
    paid, w, _ = perceptron
    _, mistakes = separator()
    assert np.all(paid.sum(axis=1) <= mistakes)
    error = np.mean((w @ X.T) * LABELS <= 0, axis=(1, 2))
    for delta in DELTAS:
        assert rarely(error > online_to_batch.perceptron_bound(mistakes, T, delta), delta)


@pytest.mark.parametrize("mistakes", [0.1, 3.0, 100.0])
def test_the_perceptron_bound_is_the_least_over_lambda(mistakes):
    grid = np.geomspace(1e-3, 50, 100_000)
    values = (grid * mistakes + np.log(20)) / (-np.expm1(-grid) * T)
    np.testing.assert_allclose(
        online_to_batch.perceptron_bound(mistakes, T, 0.05), values.min(), rtol=1e-6
    )


def wrong_class(scores, label):
    """1 for a mistake; the slope is that of the multiclass Perceptron."""
    gap = jnp.max(scores) - scores[label]
    wrong = jnp.argmax(scores) != label
    return jnp.where(wrong, 1 + gap - stop_gradient(gap), 0.0)


def product(w, x):
    return w @ x


def test_multiclass_perceptrons_of_a_random_round_err_rarely():
    """Proposition 3, with psi(x, l) the rows of a matrix, two of which change in a mistake."""
    truth = np.array([[1.0, 0, 0], [-1.0, 1, 0], [-1.0, -1, 0]])
    labels = (X @ truth.T).argmax(axis=1)
    learner = olx.model(olx.ogd(1.0), product)

    @quick
    def one(rows):
        rounds = olx.Rounds(jnp.asarray(X)[rows], jnp.asarray(labels)[rows])
        keep = lambda state, feedback: state.theta
        return olx.rollout(learner, wrong_class, rounds, np.zeros((3, D)), record=keep).trace

    w = np.asarray(jax.vmap(one)(DRAWN))
    error = np.mean((X @ w.swapaxes(-1, -2)).argmax(axis=-1) != labels, axis=(1, 2))
    scores = X @ truth.T
    rival = np.where(np.eye(3, dtype=bool)[labels], -np.inf, scores).max(axis=1)
    margins = scores[np.arange(POINTS), labels] - rival
    size, radius = np.linalg.norm(truth), np.sqrt(2) * np.max(np.linalg.norm(X, axis=1))
    bounds = [
        online_to_batch.multiclass_perceptron_bound(
            np.mean(np.maximum(0, 1 - margins / gamma)), size, radius, gamma, T
        )
        for gamma in np.geomspace(0.01, 10, 40)
    ]
    assert at_most(error, min(bounds))
    assert np.mean(error) > 0.01
    assert min(bounds) < 1


def test_a_floor_keeps_the_slopes_of_the_entropy_bounded():
    """Theorem 5 on losses sigma psi + linear, on the simplex with a floor."""
    sigma, mirror = 0.5, mirrors.floored_entropy(0.02)
    learner = strongly_convex_md(sigma, mirror)
    loss = lambda w, z: sigma * mirror.potential(w) + jnp.dot(w, z)

    @quick
    def one(outcomes):
        rounds = olx.Rounds(None, outcomes)
        run = olx.rollout(learner, loss, rounds, np.full(4, 0.25), record=olx.record.trace)
        us = jnp.array([[0.25] * 4, [0.94, 0.02, 0.02, 0.02], [0.02, 0.48, 0.48, 0.02]])
        prove = lambda u: olx.certify(learner, run, u)["strongly_convex_regret"]
        return run.trace.feedback.action, jax.vmap(prove)(us)

    outcomes = np.random.default_rng(4).uniform(size=(3, T, 4)) + np.linspace(0, 1, 4)
    outcomes[1] = np.eye(4)[np.arange(T) % 2]
    outcomes[2, T // 2 :] = outcomes[2, T // 2 :, ::-1]
    w, proof = jax.vmap(one)(outcomes)
    np.testing.assert_allclose(np.sum(w, axis=-1), 1, atol=1e-12)
    assert np.min(w) >= 0.02 - 1e-12
    assert np.all(proof.left <= proof.right + 1e-9)
    assert np.max(proof.left / proof.right) > 0.02


def test_a_predictor_is_not_averaged():
    learner = average(olx.linear(olx.ogd(0.1)))
    with pytest.raises(TypeError, match="average: the action has shape"):
        olx.rollout(learner, half_absolute, olx.Rounds(X, Y), jnp.zeros(D))
