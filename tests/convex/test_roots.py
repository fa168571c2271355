"""Roots in brackets, against bisection in extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from olx import losses
from olx.convex import roots
from olx.convex.roots import power_weights

WIDE = np.longdouble


def bisect(excess, low, high):
    for _ in range(300):
        middle = (low + high) / 2
        above = excess(middle) >= 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def sigmoid(m):
    small = np.exp(-np.abs(m))
    return np.where(m < 0, small, 1) / (1 + small)


def hard_proximal_points():
    """Steps of all sizes; centers of all sizes, and those that put the root near 0."""
    rng = np.random.default_rng(0)
    step = 10 ** rng.uniform(-12, 12, 4000)
    center = rng.choice([-1, 1], 4000) * 10 ** rng.uniform(-6, 6, 4000)
    center[:1000] = -step[:1000] * rng.uniform(0, 1, 1000)
    center[1000:1500] = -step[1000:1500] / 2 * (1 + 1e-9 * rng.normal(size=500))
    return step, np.clip(center, -1e6, 1e6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_logistic_proximal_point_is_found_for_every_step_and_center(dtype):
    step, center = (numbers.astype(dtype) for numbers in hard_proximal_points())
    found = np.asarray(losses.logistic.prox(step, center, dtype(1)))
    assert found.dtype == dtype

    step, center = step.astype(WIDE), center.astype(WIDE)
    exact = bisect(lambda m: m - center - step * sigmoid(-m), center, center + step)
    p = sigmoid(-exact)
    slope = 1 + step * p * (1 - p)
    unit = np.finfo(dtype).eps * (np.abs(exact) + (np.abs(center) + step * p) / slope)
    assert np.max(np.abs(found - exact) / unit) <= 2


def test_a_long_step_reaches_the_logistic_proximal_point():
    step, center = 27.23175763239432, -3.0212942176538236
    exact = bisect(lambda m: m - center - step * sigmoid(-m), WIDE(center), WIDE(center + step))
    found = losses.logistic.prox(step, center, 1.0)
    assert float(found) == pytest.approx(float(exact), rel=1e-14)
    assert float(found) == pytest.approx(1.590, abs=1e-3)


@pytest.mark.parametrize(
    ("step", "center"), [(1e12, -1e6), (1e-12, 3.0), (50.0, -25.0), (0.0, 1.0)]
)
def test_derivatives_of_the_logistic_proximal_point_are_implicit(step, center):
    prox = lambda step, center: losses.logistic.prox(step, center, 1.0)
    m = float(prox(step, center))
    p = float(jax.nn.sigmoid(-m))
    slope = 1 + step * p * (1 - p)
    by_step, by_center = jax.grad(prox, (0, 1))(step, center)
    assert float(by_step) == pytest.approx(p / slope, rel=1e-9)
    assert float(by_center) == pytest.approx(1 / slope, rel=1e-9)
    bend = step * p * (1 - p) * (1 - 2 * p) / slope**3  # of the implicit function theorem
    second = float(jax.grad(jax.grad(prox, 1), 1)(step, center))
    assert second == pytest.approx(bend, rel=1e-6, abs=1e-12)


def test_a_diverged_center_gives_no_number():
    centers = jnp.array([jnp.nan, 1.0])
    found = losses.logistic.prox(jnp.ones(2), centers, 1.0)
    assert bool(jnp.isnan(found[0]))
    assert float(found[1]) == float(losses.logistic.prox(1.0, 1.0, 1.0))


def steep(a, m):
    return jnp.sign(m - a) * jnp.abs(m - a) ** (1 / 3)


def kinked(a, m):
    return jnp.where(m < a, 1e-6 * (m - a), 1e6 * (m - a))


def flat(a, m):
    return (m - a) ** 9


@pytest.mark.parametrize("function", [steep, kinked, flat])
@pytest.mark.parametrize("reach", [3.0, jnp.inf])
def test_no_step_leaves_the_bracket(function, reach):
    zeros = jnp.array([-1.5, 1e-3, 2.5])
    ends = jnp.full(3, reach)
    found = roots.root(Partial(function, zeros), -ends, ends, jnp.full(3, 0.7))
    np.testing.assert_allclose(found, zeros, rtol=1e-12 if function is not flat else 1e-2)


def rippled(a, m):
    """As a sum of many terms rounds where it no longer grows."""
    return jnp.tanh(1e4 * (m - a)) + 1e-15 * jnp.sin(1e5 * m)


def test_rounding_where_the_function_is_flat_does_not_close_a_known_bracket():
    zeros = jnp.linspace(0.01, 0.99, 99)
    none, whole = jnp.zeros_like(zeros), jnp.ones_like(zeros)
    for start in (none, whole):
        found = roots.root(Partial(rippled, zeros), none, whole, start)
        np.testing.assert_allclose(found, zeros, rtol=1e-12)


def test_a_batch_of_roots_is_a_loop_of_roots():
    one = lambda a: roots.root(Partial(kinked, a), -jnp.ones(()), jnp.ones(()), jnp.zeros(()))
    numbers = jnp.linspace(-0.9, 0.9, 7)
    for function in (one, jax.grad(one)):
        together = jax.vmap(function)(numbers)
        assert together.tolist() == [float(function(a)) for a in numbers]


def test_without_a_zero_in_the_bracket_the_answer_is_an_end():
    found = [
        roots.root(Partial(flat, a), -jnp.ones(()), jnp.ones(()), jnp.zeros(()))
        for a in (-3.0, 3.0)
    ]
    np.testing.assert_allclose(found, [-1.0, 1.0], rtol=1e-15)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 50.0])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_weights_of_a_power_add_up_to_one(exponent, unit):
    theta = np.array([0.0, -1e-9, -1.0, -40.0, -1e6])
    d = (0.0 - theta.astype(WIDE)) / WIDE(unit)
    total = lambda x: 1 - np.sum((1 + x + d) ** -WIDE(exponent))
    x = bisect(total, WIDE(0), WIDE(5) ** (1 / WIDE(exponent)))
    exact = (1 + x + d) ** -WIDE(exponent)
    np.testing.assert_allclose(
        power_weights(unit, exponent, theta), exact.astype(float), rtol=1e-12
    )
