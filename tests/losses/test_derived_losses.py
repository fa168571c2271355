"""Conjugates and proximal maps that a loss does not give: found numerically, with derivatives."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_losses import BY_NAME, REAL

import olx
from olx import ascents, losses, mirrors
from olx.losses import ScoreLoss

RNG = np.random.default_rng(0)
N = 64


def derived(loss):
    return dataclasses.replace(loss, conjugate_fn=None, prox_fn=None)


def numbers(name, dtype):
    y = RNG.normal(size=N) if name in REAL else RNG.choice([-1.0, 1.0], N)
    center = RNG.normal(size=N) * 10 ** RNG.uniform(-2, 1, N)
    step, share = 10 ** RNG.uniform(-3, 3, N), RNG.uniform(0.01, 1, N)
    return tuple(jnp.asarray(part, dtype) for part in (step, center, share, y))


@functools.partial(jax.jit, static_argnums=1)
def maps(loss, own, step, center, share, y):
    """Both maps and their derivatives in the numbers of the call and, if `own`, of the loss."""
    tau = share * jax.vmap(jax.grad(loss))(center, y)
    new = lambda hparams: dataclasses.replace(loss, hparams=hparams)
    prox = lambda hparams, step, center, y: new(hparams).prox(step, center, y)
    conjugate = lambda hparams, tau, y: new(hparams).conjugate(tau, y)
    by = (0, 1, 2) if own else (1, 2)
    in_prox = jax.value_and_grad(prox, by)
    in_conjugate = jax.value_and_grad(conjugate, by[:-1])
    moved, prox_slopes = jax.vmap(in_prox, (None, 0, 0, 0))(loss.hparams, step, center, y)
    value, slopes = jax.vmap(in_conjugate, (None, 0, 0))(loss.hparams, tau, y)
    # at a slope of 0 there may be many scores, and each is a subgradient
    slopes = jax.tree.map(lambda slope: jnp.where(tau == 0, 0.0, slope), slopes)
    return moved, value, prox_slopes, slopes


CLOSED = [(name, np.float64) for name in BY_NAME if name not in ("hinge", "exponential")]


@pytest.mark.parametrize(("name", "dtype"), [*CLOSED, ("margin_hinge", np.float32)])
def test_a_derived_map_is_the_closed_form(name, dtype):
    given, at = BY_NAME[name], numbers(name, dtype)
    given = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), given)
    own = name in ("margin_hinge", "epsilon_insensitive")
    wanted, found = maps(given, own, *at), maps(derived(given), own, *at)
    unit = 1e-12 if dtype == np.float64 else 1e-5
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=unit, atol=unit)


INFINITE = {
    "hinge": (-1.001, 0.001, 9.0),
    "absolute": (1.001, -1.001, 7.0),
    "epsilon_insensitive": (-1.001, 1.001, 7.0),
    "squared_hinge": (0.001, 0.5, 3.0),
    "modified_huber": (-2.001, 0.001, 7.0),
    "logistic": (-1.001, 0.001, 7.0),
    "exponential": (0.001, 1.0, 2.0),
}


@pytest.mark.parametrize("name", INFINITE)
def test_a_derived_conjugate_is_infinite_where_no_slope_reaches(name):
    tau = jnp.array([*INFINITE[name], 0.0, -0.5, -0.9])
    own = jax.jit(jax.vmap(jax.value_and_grad(derived(BY_NAME[name]).conjugate), (0, None)))
    value, slope = own(tau, 1.0)
    assert np.isinf(value).tolist() == [True] * 3 + [False] * 3
    np.testing.assert_allclose(value[3:], BY_NAME[name].conjugate(tau[3:], 1.0), atol=1e-12)
    assert not np.isnan(slope).any()


def pinball(level, s, y):
    return jnp.maximum(level * (y - s), (level - 1) * (y - s))


OTHERS = {  # a loss in one line, its conjugate at slopes in its domain
    "log cosh": (
        ScoreLoss(value_fn=lambda _, s, y: jnp.log(jnp.cosh(s - y))),
        lambda t, y: t * y + ((1 + t) * np.log1p(t) + (1 - t) * np.log1p(-t)) / 2,
        np.array([-0.99, -0.3, 0.0, 0.7]),
    ),
    "Huber": (
        ScoreLoss(
            value_fn=lambda _, s, y: jnp.where(
                jnp.abs(s - y) <= 1, (s - y) ** 2 / 2, jnp.abs(s - y) - 0.5
            )
        ),
        lambda t, y: t * y + t**2 / 2,
        np.array([-1.0, -0.3, 0.0, 0.7]),
    ),
    "pinball": (
        ScoreLoss(0.3, value_fn=pinball),
        lambda t, y: t * y,
        np.array([-0.3, -0.1, 0.0, 0.7]),
    ),
    "linear": (
        ScoreLoss(value_fn=lambda _, s, y: y * s),
        lambda t, y: 0.0 * t,
        np.array([0.8]),
    ),
    "Poisson": (
        ScoreLoss(value_fn=lambda _, s, y: jnp.exp(s) - y * s),
        lambda t, y: (t + y) * np.log(t + y) - (t + y),
        np.array([-0.79, -0.3, 0.0, 30.0]),
    ),
    "logarithm": (
        ScoreLoss(start=1.0, value_fn=lambda _, s, y: s - y * jnp.log(s)),
        lambda t, y: -y + y * np.log(y / (1 - t)),
        np.array([-30.0, -0.3, 0.0, 0.999]),
    ),
    "half a line": (
        ScoreLoss(start=0.5, value_fn=lambda _, s, y: jnp.where(s >= 0, y * s, jnp.inf)),
        lambda t, y: 0.0 * t,
        np.array([-9.0, 0.0, 0.5, 0.8]),
    ),
    "reciprocal": (
        ScoreLoss(start=1.0, value_fn=lambda _, s, y: jnp.where(s > 0, y / s, jnp.inf)),
        lambda t, y: -2 * np.sqrt(-y * t),
        np.array([-1e6, -2.0, -1e-9, 0.0]),
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_loss_in_one_line_has_its_conjugate(name):
    loss, conjugate, tau = OTHERS[name]
    found = jax.jit(lambda loss, tau: loss.conjugate(tau, 0.8))(loss, tau)
    np.testing.assert_allclose(found, conjugate(tau, 0.8), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", OTHERS)
def test_a_loss_in_one_line_has_its_proximal_map(name):
    loss, y = OTHERS[name][0], 0.8
    step = 10 ** RNG.uniform(-2, 2, N)
    center = RNG.normal(size=N) * 5
    found = np.asarray(jax.jit(lambda loss, *at: loss.prox(*at, y))(loss, step, center))
    values = jax.vmap(lambda s: step * loss(s, y) + (s - center) ** 2 / 2)
    beside = found + np.array([[0.0], [-1e-4], [1e-4]]) * (1 + np.abs(found))
    here, *others = np.where(np.isnan(values(beside)), np.inf, values(beside))
    assert np.all(np.isfinite(here))
    for other in others:
        assert np.all(here <= other - 4e-9 * (1 + found**2) / 2)  # strongly convex around it


def test_derivatives_of_derived_maps_are_right_to_second_order_on_kinks_and_off():
    level, step, center, y = 0.3, 0.5, 0.1, 0.2  # on the kink; off it for a shorter step
    prox = lambda level, step, center, y: ScoreLoss(level, value_fn=pinball).prox(step, center, y)
    on = jax.grad(prox, (0, 1, 2, 3))(level, step, center, y)
    np.testing.assert_allclose(on, [0.0, 0.0, 0.0, 1.0], atol=1e-12)
    off = jax.grad(prox, (0, 1, 2, 3))(level, 0.1, center, y)
    np.testing.assert_allclose(off, [0.1, 0.3, 1.0, 0.0], atol=1e-12)
    assert jax.grad(jax.grad(prox, 1), 0)(level, 0.1, center, y) == pytest.approx(1.0)

    conjugate = lambda level, tau, y: ScoreLoss(level, value_fn=pinball).conjugate(tau, y)
    np.testing.assert_allclose(
        jax.jit(jax.hessian(lambda at: conjugate(*at)))(jnp.array([level, 0.1, y])),
        [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
        atol=1e-12,
    )
    curved = lambda tau: OTHERS["log cosh"][0].conjugate(tau, 0.8)
    np.testing.assert_allclose(jax.grad(curved)(0.5), 0.8 + np.arctanh(0.5), rtol=1e-12)
    np.testing.assert_allclose(jax.grad(jax.grad(curved))(0.5), 1 / (1 - 0.25), rtol=1e-12)


def test_a_batch_of_derived_maps_is_a_loop_of_them():
    loss = OTHERS["log cosh"][0]
    center = jnp.linspace(-3.0, 3.0, 5)
    both = jax.jit(lambda c: (loss.prox(0.7, c, 0.1), loss.conjugate(jnp.tanh(c) / 2, 0.1)))
    together, alone = both(center), [both(c) for c in center]
    mapped = jax.jit(jax.vmap(both))(center)
    np.testing.assert_allclose(together, np.transpose(alone), rtol=1e-13)
    np.testing.assert_allclose(together, mapped, rtol=1e-13)


def test_a_score_or_a_slope_that_is_not_a_number_shows():
    loss = OTHERS["log cosh"][0]
    assert np.isnan(loss.prox(1.0, jnp.nan, 0.0))
    assert np.isnan(loss.conjugate(jnp.nan, 0.0))
    beside = ScoreLoss(value_fn=lambda _, s, y: -jnp.log(s))  # 0 is not in its domain
    assert np.isnan(beside.conjugate(-0.5, 0.0))
    assert np.isnan(beside.prox(1.0, -1.0, 0.0))


SQUARED_TUBE = ScoreLoss(value_fn=lambda _, s, y: jnp.maximum(jnp.abs(s - y) - 0.1, 0.0) ** 2)
HINGE = ScoreLoss(lipschitz=1.0, value_fn=lambda _, s, y: jnp.maximum(1 - y * s, 0.0))
STREAM = olx.streams.linear_classification(jax.random.key(0), rounds=40, features=3)


def rollout(learner, loss):
    return olx.rollout(learner, loss, STREAM.rounds, jnp.zeros(3), record=olx.record.trace)


PLAYERS = {
    "implicit": lambda loss: olx.implicit(0.7, loss),
    "subgradient": lambda loss: olx.dual_ascent(
        2.0, mirrors.euclidean(), loss, ascents.subgradient()
    ),
    "aggressive p-norm": lambda loss: olx.dual_ascent(
        2.0, mirrors.pnorm(1.5), loss, ascents.aggressive()
    ),
}


@pytest.mark.parametrize("name", PLAYERS)
def test_a_loss_in_one_line_is_played_and_certified(name):
    learner = PLAYERS[name](SQUARED_TUBE)
    run = rollout(learner, SQUARED_TUBE)
    for u in (STREAM.truth, jnp.zeros(3)):
        assert bool(olx.certify(learner, run, u).holds)


def test_the_hinge_in_one_line_is_passive_aggressive():
    wanted = rollout(olx.classification.passive_aggressive_1(0.7), losses.hinge).losses
    assert 5 < float(jnp.sum(wanted)) < 40
    np.testing.assert_allclose(rollout(olx.implicit(0.7, HINGE), HINGE).losses, wanted, atol=1e-12)


def test_a_run_is_differentiated_through_a_derived_map():
    total = lambda eta: (
        olx.rollout(
            olx.implicit(eta, SQUARED_TUBE), SQUARED_TUBE, STREAM.rounds, jnp.zeros(3)
        ).total
    )
    value = jax.jit(jax.value_and_grad(total))
    ahead, behind = value(0.7 + 1e-6)[0], value(0.7 - 1e-6)[0]
    assert float(value(0.7)[1]) == pytest.approx(float(ahead - behind) / 2e-6, rel=1e-6)
