"""Losses against values by hand, and their facts against grids."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from olx import losses
from olx.core import Rounds
from olx.engine.rollout import rollout
from olx.frameworks.lift import linear
from olx.frameworks.omd import omd
from olx.mirrors.base import mirror_map
from olx.record import trace
from olx.testing import check_loss

BY_NAME = {
    "squared": losses.squared,
    "absolute": losses.absolute,
    "epsilon_insensitive": losses.epsilon_insensitive(0.3),
    "hinge": losses.hinge,
    "margin_hinge": losses.margin_hinge(0.4),
    "squared_hinge": losses.squared_hinge,
    "modified_huber": losses.modified_huber,
    "logistic": losses.logistic,
    "exponential": losses.exponential,
    "power": losses.power(3.0),
    "huber": losses.huber(1.0),
    "pinball": losses.pinball(0.8),
    "log_cosh": losses.log_cosh,
}
REAL = ("squared", "absolute", "epsilon_insensitive", "power", "huber", "pinball", "log_cosh")
FORMULAS = {
    "squared": lambda s, y: (s - y) ** 2 / 2,
    "absolute": lambda s, y: np.abs(s - y),
    "epsilon_insensitive": lambda s, y: np.maximum(0, np.abs(s - y) - 0.3),
    "hinge": lambda s, y: np.maximum(0, 1 - y * s),
    "margin_hinge": lambda s, y: np.maximum(0, 0.4 - y * s),
    "squared_hinge": lambda s, y: np.maximum(0, 1 - y * s) ** 2 / 2,
    "modified_huber": lambda s, y: np.where(
        y * s < -1, -2 * y * s, np.maximum(0, 1 - y * s) ** 2 / 2
    ),
    "logistic": lambda s, y: np.log1p(np.exp(-y * s)),
    "exponential": lambda s, y: np.exp(-y * s),
    "power": lambda s, y: np.abs(s - y) ** 3,
    "huber": lambda s, y: np.where(
        np.abs(s - y) <= 1, (s - y) ** 2 / 2, np.maximum(np.abs(s - y), 1) - 0.5
    ),
    "pinball": lambda s, y: np.maximum(0.8 * (y - s), 0.2 * (s - y)),
    "log_cosh": lambda s, y: np.logaddexp(s - y, y - s) - np.log(2),
}
SCORES = np.linspace(-6, 6, 1201)


def outcomes(name):
    return (-0.7, 0.0, 2.5) if name in REAL else (-1.0, 1.0)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_loss_is_its_formula(name):
    for y in outcomes(name):
        np.testing.assert_allclose(BY_NAME[name](SCORES, y), FORMULAS[name](SCORES, y), atol=1e-14)


@pytest.mark.parametrize(
    ("loss", "score", "outcome", "value"),
    [
        (losses.squared, 3.0, 1.0, 2.0),
        (losses.absolute, -3.0, 1.0, 4.0),
        (losses.epsilon_insensitive(0.5), -3.0, 1.0, 3.5),
        (losses.epsilon_insensitive(0.5), 1.25, 1.0, 0.0),
        (losses.hinge, 0.25, -1.0, 1.25),
        (losses.margin_hinge(3.0), 0.25, 1.0, 2.75),
        (losses.squared_hinge, -1.0, 1.0, 2.0),
        (losses.modified_huber, -1.5, 1.0, 3.0),
        (losses.logistic, 0.0, 1.0, 0.6931471805599453),
        (losses.exponential, 2.0, -1.0, 7.38905609893065),
        (losses.zero_one, 0.0, 1.0, 1.0),
        (losses.zero_one, -0.1, -1.0, 0.0),
        (losses.zero_one, -0.1, 1.0, 1.0),
    ],
)
def test_a_value_is_the_one_found_by_hand(loss, score, outcome, value):
    assert float(loss(score, outcome)) == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(
    ("loss", "score", "outcome", "slope"),
    [
        (losses.hinge, 1.0, 1.0, 0.0),
        (losses.hinge, -1.0, -1.0, 0.0),
        (losses.hinge, 0.999999, 1.0, -1.0),
        (losses.hinge, 0.0, -1.0, 1.0),
        (losses.hinge, 5.0, 1.0, 0.0),
        (losses.margin_hinge(0.5), 0.5, 1.0, 0.0),
        (losses.squared_hinge, 1.0, 1.0, 0.0),
        (losses.squared_hinge, 0.0, -1.0, 1.0),
        (losses.modified_huber, 1.0, 1.0, 0.0),
        (losses.modified_huber, -1.0, 1.0, -2.0),
        (losses.modified_huber, 7.0, -1.0, 2.0),
        (losses.absolute, 2.0, 2.0, 0.0),
        (losses.pinball(0.8), 2.0, 2.0, 0.0),
        (losses.pinball(0.8), 1.9, 2.0, -0.8),
        (losses.absolute, 2.1, 2.0, 1.0),
        (losses.epsilon_insensitive(0.5), 2.5, 2.0, 0.0),
        (losses.epsilon_insensitive(0.5), 1.4, 2.0, -1.0),
        (losses.logistic, 0.0, 1.0, -0.5),
        (losses.zero_one, 0.0, 1.0, 0.0),
    ],
)
def test_the_slope_at_a_kink_is_the_one_chosen(loss, score, outcome, slope):
    assert float(jax.grad(loss)(score, outcome)) == slope


@pytest.mark.parametrize("name", BY_NAME)
def test_a_conjugate_is_the_supremum_over_scores(name):
    loss, wide = BY_NAME[name], np.linspace(-40, 40, 400_001)
    taus = np.linspace(-0.995, 0.995, 41)
    for y in outcomes(name):
        inside = taus if name in REAL else -y * np.abs(taus)
        inside = np.clip(inside, -0.8, 0.19) if name == "pinball" else inside
        supremum = [np.max(tau * wide - FORMULAS[name](wide, y)) for tau in inside]
        np.testing.assert_allclose(loss.conjugate(inside, y), supremum, atol=2e-4)


@pytest.mark.parametrize(
    ("name", "tau", "outcome", "finite"),
    [
        ("hinge", -1.0, 1.0, True),
        ("hinge", -1.001, 1.0, False),
        ("hinge", 0.001, 1.0, False),
        ("hinge", 1.0, -1.0, True),
        ("margin_hinge", -0.001, -1.0, False),
        ("squared_hinge", 0.001, 1.0, False),
        ("squared_hinge", -9.0, 1.0, True),
        ("modified_huber", -2.0, 1.0, True),
        ("modified_huber", -2.001, 1.0, False),
        ("absolute", 1.001, 0.3, False),
        ("absolute", -1.0, 0.3, True),
        ("epsilon_insensitive", -1.001, 0.3, False),
        ("squared", 99.0, 0.3, True),
        ("pinball", -0.8, 0.3, True),
        ("pinball", -0.801, 0.3, False),
        ("pinball", 0.201, 0.3, False),
        ("log_cosh", 1.0, 0.3, True),
        ("log_cosh", -1.001, 0.3, False),
        ("logistic", -1.0, 1.0, True),
        ("logistic", 0.0, 1.0, True),
        ("logistic", -1.001, 1.0, False),
        ("logistic", 0.001, 1.0, False),
        ("exponential", 0.0, 1.0, True),
        ("exponential", 0.001, 1.0, False),
        ("exponential", -9.0, 1.0, True),
    ],
)
def test_a_conjugate_is_infinite_outside_its_domain_only(name, tau, outcome, finite):
    value = float(BY_NAME[name].conjugate(tau, outcome))
    assert np.isfinite(value) if finite else value == np.inf


@pytest.mark.parametrize("name", BY_NAME)
def test_fenchel_young_is_tight_at_the_slope(name):
    loss, slope = BY_NAME[name], jax.vmap(jax.grad(BY_NAME[name]), (0, None))
    scores = jnp.linspace(-4.0, 4.0, 83)
    for y in outcomes(name):
        tau = slope(scores, y)
        gap = loss(scores, y) + loss.conjugate(tau, y) - tau * scores
        np.testing.assert_allclose(gap, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_lipschitz_constant_is_the_largest_slope(name):
    loss, slope = BY_NAME[name], jax.vmap(jax.grad(BY_NAME[name]), (0, None))
    largest = lambda reach: max(
        float(jnp.max(jnp.abs(slope(jnp.linspace(-reach, reach, 801), y)))) for y in outcomes(name)
    )
    if loss.lipschitz is None:
        assert largest(40.0) > 9.0
    else:
        assert 0.999 * loss.lipschitz <= largest(40.0) <= loss.lipschitz


@pytest.mark.parametrize("name", BY_NAME)
def test_the_self_bounding_constant_is_the_least_one(name):
    loss = BY_NAME[name]
    scores = np.linspace(-12, 12, 2401) + 0.001
    worst = 0.0
    for y in outcomes(name):
        value = FORMULAS[name](scores, y)
        slope = np.asarray(jax.vmap(jax.grad(loss), (0, None))(jnp.asarray(scores), y))
        positive = value > 1e-12
        worst = max(worst, np.max(slope[positive] ** 2 / 2 / value[positive]))
        assert np.all(slope[~positive] ** 2 < 1e-9)
    if loss.self_bound is None:
        assert worst > 50.0
    else:
        assert loss.self_bound * (1 - 1e-4) <= worst <= loss.self_bound * (1 + 1e-9)


ON_BALL = {name: loss for name, loss in BY_NAME.items() if loss.on_ball is not None} | {
    "power of 2.5": losses.power(2.5),
    "huber, short": losses.huber(0.3),
    "aligned": losses.aligned,
}


@pytest.mark.parametrize("name", ON_BALL)
@pytest.mark.parametrize("top", [1.0, 1.7])
def test_constants_on_a_ball_are_the_least_ones(name, top):
    """The largest slope, curvature and fall at the boundary, over the legal outcomes."""
    loss = ON_BALL[name]
    labels = (-1.0, 1.0) if loss.needs else np.linspace(-top, top, 35)
    slope = jax.jit(jax.vmap(jax.vmap(jax.grad(loss), (0, None)), (None, 0)))
    for b in (0.2, 0.9, 1.0, 2.3):
        scores = jnp.linspace(-b, b, 2001)
        slopes = np.asarray(slope(scores, jnp.asarray(labels)))
        lipschitz, *smooth = (fn and fn(loss.hparams, b, top) for fn in loss.on_ball)
        assert float(lipschitz) == pytest.approx(np.max(np.abs(slopes)), rel=1e-3)
        if smooth[0] is None:
            continue
        bent = np.max(np.diff(slopes) / np.diff(scores))
        assert float(smooth[0]) == pytest.approx(max(bent, 0), rel=5e-3, abs=1e-9)
        fall = max(np.max(-slopes[:, -1]), np.max(slopes[:, 0]), 0.0)
        assert float(smooth[1]) == pytest.approx(fall, rel=1e-9, abs=1e-12)


def test_the_aligned_loss_is_linear_in_the_score():
    assert float(losses.aligned(0.5, -2.0)) == 1.0
    assert float(losses.aligned.conjugate(2.0, -2.0)) == 0.0
    assert float(losses.aligned.conjugate(1.9, -2.0)) == np.inf
    assert float(losses.aligned.prox(0.5, 1.0, -2.0)) == 0.0


def test_the_logistic_self_bound_is_the_one_derived():
    size = brentq(lambda q: np.exp(q) - 1 - 2 * q, 1.0, 2.0, xtol=1e-15)
    p = 1 - np.exp(-size)
    assert losses.logistic.self_bound == pytest.approx(p**2 / (2 * size), rel=1e-12)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_proximal_point_minimizes_its_objective(name):
    for y in outcomes(name):
        for step in (0.05, 0.8, 7.0):
            for center in (-3.1, -0.2, 0.55, 2.6):
                objective = lambda s, y=y, step=step, center=center: float(
                    step * FORMULAS[name](s, y) + (s - center) ** 2 / 2
                )
                best = minimize_scalar(objective, bounds=(-12, 12), options={"xatol": 1e-9})
                found = float(BY_NAME[name].prox(step, center, y))
                assert objective(found) <= best.fun + 1e-12
                assert found == pytest.approx(best.x, abs=1e-5)


def test_derivatives_of_the_logistic_proximal_point_are_right_to_second_order():
    prox = lambda step, center: losses.logistic.prox(step, center, -1.0)
    for order in (prox, jax.grad(prox, 0), jax.grad(prox, 1)):
        for number, h in ((0, 1e-5), (1, 1e-5)):
            ahead, behind = [1.7, 0.6], [1.7, 0.6]
            ahead[number] += h
            behind[number] -= h
            difference = float(order(*ahead) - order(*behind)) / (2 * h)
            assert float(jax.grad(order, number)(1.7, 0.6)) == pytest.approx(difference, abs=1e-8)


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "exponential"])
@pytest.mark.parametrize("score", [1e4, -1e4])
def test_large_scores_do_not_overflow_in_float32(name, score):
    y = jnp.float32(1.0)
    value, slope = jax.value_and_grad(BY_NAME[name])(jnp.float32(score), y)
    assert value.dtype == jnp.float32
    expected = FORMULAS["hinge" if name == "logistic" else name](score, 1.0)
    np.testing.assert_allclose(value, expected, rtol=1e-3)
    assert np.isfinite(slope)


@pytest.mark.parametrize("name", BY_NAME)
def test_second_derivatives_are_finite_at_kinks_and_ends(name):
    loss = BY_NAME[name]
    for score in (0.0, 1.0, 0.4, -0.3, 30.0):
        assert np.isfinite(jax.grad(jax.grad(loss))(score, 1.0))
    for tau in (-0.5, 0.0, 2.0):  # the slope of an entropy at 0 is infinite, never NaN
        assert not np.isnan(jax.grad(loss.conjugate)(tau, 1.0))


@pytest.mark.parametrize(
    ("factory", "value", "message"),
    [
        (losses.margin_hinge, 0.0, "margin_hinge: `margin` must be positive, got 0.0."),
        (losses.epsilon_insensitive, -1.0, "`epsilon` must be non-negative, got -1.0."),
    ],
)
def test_a_number_out_of_range_is_refused(factory, value, message):
    with pytest.raises(ValueError, match=message):
        factory(value)


def test_the_margin_is_swept_by_vmap_and_differentiated():
    margins = jnp.array([0.5, 1.0, 2.0])
    stack = jax.vmap(losses.margin_hinge)(margins)
    values = jax.vmap(lambda loss: loss(0.25, 1.0))(stack)
    np.testing.assert_allclose(values, [0.25, 0.75, 1.75])
    slopes = jax.vmap(jax.grad(lambda m: losses.margin_hinge(m)(0.6, 1.0)))(margins)
    np.testing.assert_allclose(slopes, [0.0, 1.0, 1.0])
    assert jax.grad(lambda m: losses.margin_hinge(m).conjugate(-0.5, 1.0))(0.7) == -0.5


def test_a_bad_margin_in_a_sweep_is_nan_at_its_own_index():
    stack = jax.vmap(losses.margin_hinge)(jnp.array([1.0, -1.0]))
    np.testing.assert_array_equal(
        np.isnan(jax.vmap(lambda loss: loss.hparams)(stack)), [False, True]
    )


@pytest.mark.parametrize("loss", [*BY_NAME.values(), losses.zero_one])
def test_a_score_that_is_not_a_number_shows_in_the_loss(loss):
    assert np.isnan(loss(jnp.nan, 1.0))


def test_three_margins_are_one_program():
    programs = []

    @jax.jit
    def paid(loss):
        programs.append(1)
        return loss(0.25, 1.0)

    assert [float(paid(losses.margin_hinge(m))) for m in (0.5, 1.0, 2.0)] == [0.25, 0.75, 1.75]
    assert len(programs) == 1


def test_a_loss_may_be_a_static_argument():
    paid = jax.jit(lambda loss, score: loss(score, 1.0), static_argnums=0)
    assert float(paid(losses.hinge, 0.25)) == 0.75
    assert losses.margin_hinge(1.0) == losses.hinge
    assert hash(losses.margin_hinge(1.0)) == hash(losses.hinge)


def _half_square(w):
    return jnp.vdot(w, w) / 2


def _run(margin):
    learner = linear(omd(0.1, mirror_map(_half_square, _half_square)))
    rounds = Rounds(jnp.array([[1.0, 2.0], [-1.0, 0.5], [0.3, 0.3]]), jnp.array([1.0, -1.0, 1.0]))
    return rollout(learner, losses.margin_hinge(margin), rounds, jnp.zeros(2), record=trace)


def test_a_run_is_swept_and_differentiated_in_the_margin_of_its_loss():
    w, expected = np.zeros(2), []
    for x, y in (((1.0, 2.0), 1.0), ((-1.0, 0.5), -1.0), ((0.3, 0.3), 1.0)):
        gap = 0.8 - y * np.dot(w, x)
        expected.append(max(gap, 0.0))
        w += 0.1 * y * np.array(x) * (gap > 0)
    runs = jax.jit(jax.vmap(_run))(jnp.array([0.05, 0.8]))
    np.testing.assert_allclose(runs.losses[1], expected, atol=1e-12)
    assert float(jax.grad(lambda m: _run(m).total)(0.8)) == pytest.approx(3.0)


def test_the_linear_loss_adds_up_over_a_tree():
    action = {"a": jnp.array([1.0, 2.0]), "b": jnp.array(3.0)}
    outcome = {"a": jnp.array([0.5, -1.0]), "b": jnp.array(2.0)}
    assert float(losses.linear_loss(action, outcome)) == 4.5
    assert float(losses.linear_loss(2.0, -3.0)) == -6.0


def test_the_log_loss_of_a_portfolio_is_minus_the_log_of_its_return():
    rng = np.random.default_rng(0)
    w, r = rng.dirichlet(np.ones(5)), rng.uniform(0.5, 1.5, 5)
    value, slope = jax.value_and_grad(losses.log_loss)(jnp.asarray(w), jnp.asarray(r))
    assert float(value) == pytest.approx(-np.log(w @ r), rel=1e-14)
    np.testing.assert_allclose(slope, -r / (w @ r), rtol=1e-13)


@pytest.mark.parametrize("loss", [losses.linear_loss, losses.log_loss], ids=["linear", "log loss"])
def test_the_conjugate_of_a_point_loss_is_the_supremum(loss):
    rng = np.random.default_rng(0)
    r = jnp.asarray(rng.uniform(0.5, 1.5, 3))
    points = jnp.asarray(rng.uniform(0.01, 9.0, (50, 3)))
    for w in points:
        theta = jax.grad(loss)(w, r)
        at = loss.conjugate(theta, r)
        touch = float(at + loss(w, r) - theta @ w)
        assert touch == pytest.approx(0.0, abs=1e-12)  # Fenchel-Young, with equality at its slope
        rest = at + jax.vmap(loss, (0, None))(points, r) - points @ theta
        assert float(rest.min()) >= -1e-12
    off = theta.at[0].add(1e-3)
    assert float(loss.conjugate(off, r)) == np.inf  # along w - t e_0 or w + t e_0 it grows freely
    assert float(losses.log_loss.conjugate(r, r)) == np.inf


def test_the_constants_of_point_losses():
    assert losses.linear_loss.lipschitz == 1.0
    assert losses.linear_loss.exp_concavity is None
    assert losses.log_loss.lipschitz is None
    rng = np.random.default_rng(0)
    w, v, r = (jnp.asarray(part) for part in rng.uniform(0.1, 2.0, (3, 4)))
    a = losses.log_loss.exp_concavity
    gain = lambda a, w: jnp.exp(-a * losses.log_loss(w, r))
    middle = lambda a: float(gain(a, (w + v) / 2) - (gain(a, w) + gain(a, v)) / 2)
    assert middle(a) == pytest.approx(0.0, abs=1e-12)
    assert middle(1.1 * a) < 0 < middle(0.9 * a)


CLASSES = {"cross_entropy": losses.cross_entropy}
TOGETHER = ("logistic", "exponential", "power", "cross_entropy")  # value and slope


@pytest.mark.parametrize("name", [*TOGETHER, "squared"])
def test_value_and_slope_agree(name):
    draw = np.random.default_rng(0)
    if name in CLASSES:
        check_loss(CLASSES[name], draw.normal(size=(9, 4)), np.arange(9) % 4)
        return
    scores = np.r_[draw.normal(size=9), 40.25, -40.25, 800.25, -800.25]
    scores = scores[:-2] if name in ("exponential", "power") else scores
    labels = np.repeat(outcomes(name), len(scores))
    check_loss(BY_NAME[name], np.tile(scores, len(outcomes(name))), labels)


def test_a_slope_that_is_none_of_the_loss_is_found():
    both = lambda _, s, y: (s**2, s)
    wrong = losses.ScoreLoss(value_fn=lambda _, s, y: s**2, value_and_slope_fn=both)
    with pytest.raises(AssertionError, match="gives another slope than"):
        check_loss(wrong, np.ones(2), np.ones(2))


@pytest.mark.parametrize("name", TOGETHER)
def test_value_and_slope_share_their_exponential(name):
    loss = (BY_NAME | CLASSES)[name]
    given = (np.ones(4), 1) if name in CLASSES else (1.0, 1.0)
    text = str(jax.make_jaxpr(loss.value_and_slope)(*given))
    assert text.count(" exp ") + text.count(" pow ") == 1


def test_the_extremes_of_a_score_have_a_value_and_a_slope():
    both = losses.logistic.value_and_slope
    assert [float(v) for v in both(jnp.array(jnp.inf), 1.0)] == [0.0, 0.0]
    assert [float(v) for v in both(jnp.array(-jnp.inf), 1.0)] == [np.inf, -1.0]
    assert np.isnan([float(v) for v in both(jnp.array(jnp.nan), 1.0)]).all()
