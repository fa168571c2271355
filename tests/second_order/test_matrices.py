"""Learners with a full matrix against references in NumPy, direct solves, and each other."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_second_order as ref
from jax import random
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.stats import norm
from stored import FOLDER, needs

import olx
from olx import losses, mirrors, second_order, streams

T, D = 2000, 6
REGRESSION, TRUTH = streams.linear_regression(random.key(3), rounds=T, features=D)
X, Y = np.asarray(REGRESSION.context), np.asarray(REGRESSION.outcome)
NOISE = np.where(np.random.default_rng(5).random(T) < 0.1, -1.0, 1.0)
LABELS = np.sign(X @ np.asarray(TRUTH)) * NOISE
C, SIGMA, L = 3.0, 1 / 72, 12.0
PHI = norm.ppf(0.8)


def scores(learner, loss, outcomes, rows=X):
    play = jax.jit(
        lambda rows: (
            olx.rollout(
                learner,
                loss,
                olx.Rounds(rows, jnp.asarray(outcomes)),
                jnp.zeros(D),
                record=olx.record.actions,
            ).trace
        )
    )
    return np.asarray(play(jnp.asarray(rows)))


def squared_slope(score, t):
    return score - Y[t]


def no_rate(t):
    return 0.0


def root_rate(t):
    return np.sqrt(D / t) / (C * L)


REGRESSIONS = {
    "vaw": (second_order.vaw(0.7), lambda: ref.vaw(X, Y, 0.7)),
    "ridge": (second_order.ridge(0.7), lambda: ref.ridge(X, Y, 0.7)),
    "ridge, forgetting": (second_order.ridge(0.7, 0.97), lambda: ref.ridge(X, Y, 0.7, 0.97)),
    "newton, implicit": (
        second_order.implicit_newton(losses.squared, 0.7),
        lambda: ref.implicit_newton(X, Y, 0.7, ref.SQUARED),
    ),
    "newton": (
        second_order.newton(0.4, C, curvature=SIGMA),
        lambda: ref.newton(X, squared_slope, 0.4, C, no_rate, SIGMA),
    ),
    "newton, lipschitz": (
        second_order.newton(0.4, C, lipschitz=L),
        lambda: ref.newton(X, squared_slope, 0.4, C, root_rate, 0.0),
    ),
    "newton, invariant": (
        second_order.invariant_newton(C, curvature=SIGMA),
        lambda: ref.invariant_newton(X, squared_slope, C, no_rate, SIGMA, fresh_zero=True),
    ),
    "adagrad, full": (
        olx.linear(second_order.adagrad_full(0.5, 0.3)),
        lambda: ref.adagrad_full(X, squared_slope, 0.5, 0.3),
    ),
}
CLASSIFIERS = {
    "newton, implicit": (
        second_order.implicit_newton(losses.logistic, 0.7),
        lambda: ref.implicit_newton(X, LABELS, 0.7, ref.LOGISTIC),
    ),
    "second-order perceptron": (
        second_order.second_order_perceptron(1.5),
        lambda: ref.second_order_perceptron(X, LABELS, 1.5),
    ),
    "arow": (second_order.arow(0.7), lambda: ref.arow(X, LABELS, 0.7)),
    "arow, original": (
        second_order.arow_original(0.7),
        lambda: ref.arow_original(X, LABELS, 0.7),
    ),
    "arow, diagonal": (
        second_order.diagonal_arow(0.7),
        lambda: ref.diagonal_arow(X, LABELS, 0.7),
    ),
    "arow, diagonal, original": (
        second_order.diagonal_arow_original(0.7),
        lambda: ref.diagonal_arow_original(X, LABELS, 0.7),
    ),
    "confidence-weighted": (
        second_order.confidence_weighted(0.8),
        lambda: ref.confidence_weighted(X, LABELS, PHI),
    ),
    "SCW-I": (
        second_order.soft_confidence_weighted(0.8, 0.3),
        lambda: ref.soft_confidence_weighted(X, LABELS, PHI, 0.3, 1),
    ),
    "SCW-II": (
        second_order.soft_confidence_weighted(0.8, 0.3, squared=True),
        lambda: ref.soft_confidence_weighted(X, LABELS, PHI, 0.3, 2),
    ),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_forecasts_equal_the_reference(name):
    learner, reference = REGRESSIONS[name]
    np.testing.assert_allclose(scores(learner, losses.squared, Y), reference(), atol=1e-8)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_margins_equal_the_reference(name):
    learner, reference = CLASSIFIERS[name]
    np.testing.assert_allclose(scores(learner, losses.hinge, LABELS), reference(), atol=1e-8)


def test_arow_predicts_the_label_of_the_original_in_every_state():
    """Both play the same state: the original's margin is that of the mirror form over r."""
    r = 0.7
    rounds = olx.Rounds(jnp.asarray(X), jnp.asarray(LABELS))
    keep = lambda state, feedback: (state.w @ feedback.context, feedback.action)
    run = olx.rollout(second_order.arow(r), losses.hinge, rounds, jnp.zeros(D), record=keep)
    margins, played = map(np.asarray, run.trace)
    assert np.all(np.sign(margins / r) == np.sign(played))
    assert np.all(np.abs(played) <= np.abs(margins))


def mixing(condition, seed):
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(D, D)))
    right, _ = np.linalg.qr(rng.normal(size=(D, D)))
    return left @ np.diag(np.geomspace(1, 1 / condition, D)) @ right


@pytest.mark.parametrize("condition", [1e1, 1e2, 1e4])
def test_invariant_newton_ignores_the_coordinates_and_newton_does_not(condition):
    rows = slice(300)
    mixed = X[rows] @ mixing(condition, 0).T
    invariant = second_order.invariant_newton(C, curvature=SIGMA)
    plain, other = (scores(invariant, losses.squared, Y[rows], x) for x in (X[rows], mixed))
    np.testing.assert_allclose(plain, other, atol=1e-6)
    newton = second_order.newton(0.4, C, curvature=SIGMA)
    plain, other = (scores(newton, losses.squared, Y[rows], x) for x in (X[rows], mixed))
    assert np.max(np.abs(plain - other)) > 0.1


def test_confidence_weighted_meets_its_constraint_after_every_update():
    rounds = olx.Rounds(jnp.asarray(X), jnp.asarray(LABELS))
    learner = second_order.confidence_weighted(0.8)
    keep = lambda state, feedback: learner.update(state, feedback)
    after = olx.rollout(learner, losses.hinge, rounds, jnp.zeros(D), record=keep).trace
    margin = LABELS * np.einsum("td,td->t", after.w, X)
    spread = np.linalg.norm(np.einsum("td,tdk->tk", X, after.root), axis=1)
    assert np.all(np.asarray(after.scale) == 1)
    assert np.all(margin >= PHI * spread - 1e-9)


@pytest.mark.parametrize("name", ["vaw", "ridge"])
def test_the_root_is_that_of_the_inverse_of_the_matrix(name):
    learner, _ = REGRESSIONS[name]
    run = jax.jit(lambda r: olx.rollout(learner, losses.squared, r, jnp.zeros(D)))(REGRESSION)
    wanted = np.linalg.inv(0.7 * np.eye(D) + X.T @ X)
    seen = np.asarray(run.state.root) @ np.asarray(run.state.root).T
    np.testing.assert_allclose(seen, wanted, rtol=1e-9, atol=1e-12)


def test_the_bounds_of_regression_are_nearly_attained():
    best = np.linalg.solve(0.7 * np.eye(D) + X.T @ X, X.T @ Y)
    learner = second_order.ridge(0.7)
    proof = olx.certify(learner, losses.squared, REGRESSION, jnp.zeros(D), jnp.asarray(best))[0]
    assert proof.holds
    np.testing.assert_allclose(proof.left[-1], proof.right[-1], rtol=1e-9)
    vaw = olx.certify(second_order.vaw(0.7), losses.squared, REGRESSION, jnp.zeros(D), TRUTH)[0]
    assert vaw.holds
    assert vaw.right[-1] < 5 * D * np.log(T)


LATE = X * (np.arange(T)[:, None] >= 30 * np.arange(D))  # features come one after the other
UNITS = 10.0 ** np.array([6, -6, 3, -3, 0, 1])


@pytest.mark.parametrize(("loss", "y"), [(losses.squared, Y), (losses.logistic, LABELS)], ids=str)
def test_units_of_features_and_outcomes_do_not_matter_to_implicit_steps(loss, y):
    learner = second_order.implicit_newton(loss)
    unit = 1e-6 if loss is losses.squared else 1.0
    found = scores(learner, loss, unit * y, LATE * UNITS)
    np.testing.assert_allclose(found / unit, scores(learner, loss, y, LATE), rtol=1e-6, atol=1e-9)


def test_the_bound_of_implicit_steps_is_attained_by_the_last_weights():
    learner = second_order.implicit_newton(losses.squared, 0.7)
    first = LATE[np.argmax(LATE != 0, axis=0), np.arange(D)]
    best = np.linalg.solve(np.diag(0.7 * first**2) + LATE.T @ LATE, LATE.T @ Y)
    game = losses.squared, olx.Rounds(LATE, Y), jnp.zeros(D), jnp.asarray(best)
    proof = olx.certify(learner, *game, progress=False)[0]
    assert proof.holds
    np.testing.assert_allclose(proof.left[-1], proof.right[-1], rtol=1e-9)


def test_the_regret_of_the_invariant_step_depends_on_the_rank():
    learner = second_order.invariant_newton(C, curvature=SIGMA)
    short = jax.tree.map(lambda leaf: leaf[:60], REGRESSION)
    short = short._replace(outcome=jnp.clip(short.outcome, -C, C))
    u = 0.2 * TRUTH
    named = (olx.theorems.rank_regret,)
    proof = olx.certify(learner, losses.squared, short, jnp.zeros(D), u, theorems=named)[0]
    assert proof.holds
    assert np.isfinite(proof.right[-1])


def times(score, y):
    """A loss whose gradients do not depend on the learner."""
    return score * y


def test_no_fixed_matrix_is_better_than_that_of_proposition_2():
    t, size = 60, 2.0
    draw, rows = np.random.default_rng(8), X[:60]
    y = np.clip(Y[:t], -1, 1)
    g = y[:, None] * rows
    gram, least = g.T @ g, size * np.sqrt(D * t)
    cost = lambda a: (t * size**2 * eigh(a, gram)[0][-1] + np.trace(np.linalg.solve(a, gram))) / 2
    best = np.asarray(second_order.best_matrix(g, size))
    np.testing.assert_allclose(best, np.sqrt(D / t) / size * gram)
    others = [m @ m.T + 0.1 * np.eye(D) for m in draw.normal(size=(20, D, D))]
    near = [best + 0.01 * best[0, 0] * (m + m.T) / 2 for m in draw.normal(size=(20, D, D))]
    assert cost(best) == pytest.approx(least)
    assert min(map(cost, (*others, *near))) > least
    u = np.linalg.cholesky(np.linalg.inv(gram))[:, 0]
    u = -u * size * np.sqrt(t / (u @ gram @ u))  # at the border of K'
    asked = (olx.theorems.fixed_matrix_regret(size),)
    certified = lambda learner, u: olx.certify(
        learner, times, olx.Rounds(rows, y), jnp.zeros(D), jnp.asarray(u), theorems=asked
    )[0]
    for a in (best, others[0]):
        learner = olx.linear(olx.omd(1.0, mirrors.full_quadratic(a)))
        proof = certified(learner, u)
        assert proof.holds, str(proof)
        paid = u @ a @ u + np.sum(g * np.linalg.solve(a, g.T).T)
        np.testing.assert_allclose(proof.right[-1], paid / 2, rtol=1e-9)
        np.testing.assert_allclose(proof.published[-1], cost(a), rtol=1e-9)
    plain = olx.linear(olx.omd(0.1, mirrors.euclidean()))
    np.testing.assert_allclose(certified(plain, u).published[-1], cost(10 * np.eye(D)), rtol=1e-9)
    assert np.isinf(certified(plain, 1.01 * u).published[-1])  # outside K'
    assert np.isinf(certified(plain, u).published[D - 2])  # not yet invertible
    learner = olx.omd(0.1, mirrors.euclidean())
    back = dataclasses.replace(learner, predict_fn=lambda *given: -10 * learner.predict_fn(*given))
    assert not certified(olx.linear(back), 0 * u).holds
    with pytest.raises(ValueError, match="best_matrix: the gradients must span all coordinates"):
        second_order.best_matrix(g[: D - 1], size)
    with pytest.raises(TypeError, match="one gradient per row"):
        second_order.best_matrix(g[0], size)
    with pytest.raises(TypeError, match=r"`fixed_matrix_regret` is about `olx\.omd`"):
        certified(olx.linear(olx.omd(0.1, mirrors.hypentropy(1.0))), u)


def test_single_precision_stays_positive_definite_at_condition_one_million():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    rows = (rng.normal(size=(20_000, 8)) * np.geomspace(1, 1e-3, 8)) @ turn
    labels = np.sign(rows @ rng.normal(size=8))
    rounds = olx.Rounds(jnp.asarray(rows, jnp.float32), jnp.asarray(labels, jnp.float32))
    learner = second_order.arow_original(0.1)
    run = olx.run(learner, losses.hinge, rounds, jnp.zeros(8, jnp.float32))
    root = np.asarray(run.state.root, np.float64)
    assert np.all(np.isfinite(run.losses))
    assert np.linalg.eigvalsh(root @ root.T)[0] > 0


STREAMS, LONG = 200, 60
HARD = {
    "diagonal arow": (losses.hinge, second_order.diagonal_arow_original, (-1, 2)),
    "implicit, squared": (
        losses.squared,
        lambda a: second_order.implicit_newton(losses.squared, a),
        (-2, 1),
    ),
    "implicit, logistic": (
        losses.logistic,
        lambda a: second_order.implicit_newton(losses.logistic, a),
        (-2, 1),
    ),
}


def uphill(learner):
    """The same learner with a wrong sign."""

    def update(hp, state, feedback):
        new = learner.update_fn(hp, state, feedback)
        return new._replace(w=2 * state.w - new.w)

    return dataclasses.replace(learner, update_fn=update)


@pytest.mark.parametrize("name", HARD)
def test_a_theorem_holds_on_200_hard_streams_and_fails_for_a_wrong_sign(name):
    """Rows of many sizes; in half of the streams every label is against the score."""
    loss, make, powers = HARD[name]
    draw = np.random.default_rng(6)
    sizes = 10.0 ** draw.uniform(-2, 2, (STREAMS, 1, D))
    rows = sizes * draw.standard_t(3, (STREAMS, LONG, D))
    labels = np.where(draw.random((STREAMS, LONG)) < 0.3, -1.0, 1.0)
    against, points = np.arange(STREAMS) % 2 == 0, draw.normal(size=(3, D))
    numbers = 10.0 ** draw.uniform(*powers, STREAMS)

    @functools.partial(jax.jit, static_argnums=0)
    def judge(change, *streams):
        def alone(number, *stream):
            first, ask = (lambda _: jnp.zeros((), int)), (lambda stream, t: stream[0][t])
            answer = lambda stream, t, score: (
                jnp.where(stream[2] & (score != 0), -jnp.sign(score), stream[1][t]),
                t + 1,
            )
            nature, learner = olx.Adversary(stream, loss, first, ask, answer), change(make(number))
            run = olx.play(learner, nature, jnp.zeros(D), LONG, record=olx.record.trace)
            return jax.vmap(lambda u: olx.certify(learner, run, u)[0])(points)

        return jax.vmap(alone)(*streams)

    proof = judge(lambda learner: learner, numbers, rows, labels, against)
    assert np.all(np.isfinite(proof.right))
    assert np.all(proof.holds)
    assert np.max(proof.tightness) > 0.9
    wrong = judge(uphill, numbers, rows, labels, against)
    assert np.mean(np.any(wrong.fails, axis=(1, 2))) > 0.3


@needs("a9a.npz")
def test_the_diagonal_rule_of_sol_depends_little_on_its_number():
    """One pass over 1605 rows of a9a, tested on the rest of its training rows."""
    data = np.load(FOLDER / "a9a.npz")
    rows = csr_array((data["data"], data["indices"], data["indptr"]), shape=data["shape"])
    rows, labels = rows.toarray().astype(float)[:32561], data["y"].astype(float)[:32561]
    first, start = olx.Rounds(rows[:1605], labels[:1605]), np.zeros(rows.shape[1])
    grid = olx.batch(second_order.diagonal_arow_original, r=np.array([0.5, 1, 2, 5, 10, 20, 40]))
    weights = np.asarray(olx.sweep(grid, losses.hinge, first, start).state.w)
    right = np.mean((rows[1605:] @ weights.T > 0) == (labels[1605:, None] > 0), axis=0)
    assert np.all(right > 0.837)
    assert np.all(right[1:] > 0.838)


REFUSED = [
    (lambda: second_order.vaw(0.0), "vaw: `a` must be positive"),
    (lambda: second_order.ridge(1.0, 1.5), r"ridge: `forget` must lie in \(0, 1\]"),
    (lambda: second_order.arow(-1.0), "arow: `r` must be positive"),
    (lambda: second_order.confidence_weighted(0.5), r"must lie in \(0.5, 1\)"),
    (lambda: second_order.confidence_weighted(np.float32(1.0)), r"must lie in \(0.5, 1\)"),
    (lambda: second_order.soft_confidence_weighted(0.9, 0.0), "`aggressiveness` must be positive"),
    (lambda: second_order.newton(1.0, 1.0), "give `curvature` if the loss has it"),
    (lambda: second_order.newton(1.0, 0.0, curvature=1.0), "`bound` must be positive"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_illegal_numbers_are_refused_by_name(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_forgetting_for_ever_overflows_nowhere():
    """Only one direction has data; in the others the inverse grows until it is held."""
    rows = np.zeros((20_000, 3), np.float32)
    rows[:, 0] = 1.0
    rounds = olx.Rounds(jnp.asarray(rows), jnp.ones(20_000, jnp.float32))
    learner = second_order.ridge(1.0, 0.9)
    run = olx.run(learner, losses.squared, rounds, jnp.zeros(3, jnp.float32))
    assert np.all(np.isfinite(run.losses))
    assert np.all(np.isfinite(run.state.root))
    np.testing.assert_allclose(run.state.w[0], 1.0, rtol=1e-5)
