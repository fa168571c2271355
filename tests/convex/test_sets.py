"""Convex sets against cvxpy, identities of projections and finite differences."""

from functools import cache

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import olx
from olx import losses, mirrors
from olx.convex import indicator, sets

D = 5
LOW, HIGH = np.array([-0.5, 0.0, -2.0, 0.2, -np.inf]), np.array([0.5, 1.0, -1.0, 0.2, np.inf])
SETS = {  # the set and its constraints in cvxpy
    "ball": (sets.ball(1.3), lambda w: [cvxpy.norm2(w) <= 1.3]),
    "l1_ball": (sets.l1_ball(1.5), lambda w: [cvxpy.norm1(w) <= 1.5]),
    "simplex": (sets.simplex(1.5), lambda w: [w >= 0, cvxpy.sum(w) == 1.5]),
    "box": (sets.box(-0.5, np.full(D, 0.7)), lambda w: [w >= -0.5, w <= 0.7]),
    "orthant": (sets.box(0.0, np.inf), lambda w: [w >= 0]),
    "uneven box": (sets.box(LOW, HIGH), lambda w: [w[:4] >= LOW[:4], w[:4] <= HIGH[:4]]),
    "everywhere": (sets.everywhere(), lambda w: []),
}
BOUNDED = ("ball", "l1_ball", "simplex", "box")
every = pytest.mark.parametrize("name", SETS)
bounded = pytest.mark.parametrize("name", BOUNDED)


def drawn(count=8):
    rng = np.random.default_rng(7)
    return rng.normal(size=(count, D)) * np.array([0.1, 1.0, 10.0, 1e5])[np.arange(count) % 4, None]


@jax.jit
def look(domain, points):
    project, contains = jax.vmap(domain.project), jax.vmap(domain.contains)
    near = project(points)
    return {
        "near": near,
        "again": project(near),
        "inside": contains(near),
        "before": contains(points),
        "beside": contains(near * (1 + 1e-9) + 1e-9),
        "support": jax.vmap(domain.support)(points),
        "farthest": jax.vmap(domain.farthest)(points),
        "reached": contains(jax.vmap(domain.farthest)(points)),
    }


@cache
def seen_of(name):
    return jax.tree.map(np.asarray, look(SETS[name][0], drawn()))


def solved(objective, constraints, w):
    cvxpy.Problem(objective, constraints(w)).solve(solver="CLARABEL")
    return w.value


@every
def test_a_projection_is_that_of_cvxpy(name):
    for v, near in zip(drawn()[:3], seen_of(name)["near"], strict=False):
        w = cvxpy.Variable(D)
        theirs = solved(cvxpy.Minimize(cvxpy.sum_squares(w - v)), SETS[name][1], w)
        np.testing.assert_allclose(near, theirs, atol=1e-5)


@bounded
def test_the_support_is_that_of_cvxpy(name):
    for g, support in zip(drawn()[:3], seen_of(name)["support"], strict=False):
        w = cvxpy.Variable(D)
        theirs = g @ solved(cvxpy.Maximize(g @ w), SETS[name][1], w)
        np.testing.assert_allclose(support, theirs, rtol=1e-6)


@every
def test_a_projected_point_lies_in_the_set_and_stays(name):
    seen = seen_of(name)
    assert np.all(seen["inside"])
    size = 1 + np.abs(seen["near"]).max(axis=1, keepdims=True)
    assert np.all(np.abs(seen["again"] - seen["near"]) <= 4e-16 * D * size)


@every
def test_a_point_lies_in_the_set_if_it_is_its_own_projection_up_to_rounding(name):
    seen = seen_of(name)
    far = np.abs(seen["near"] - drawn()).max(axis=1) > 1e-9 * (1 + np.abs(drawn()).max(axis=1))
    np.testing.assert_array_equal(seen["before"], ~far)
    if name == "simplex":  # it holds no ball, so that this move leaves it everywhere
        assert not np.any(seen["beside"])


@every
def test_the_line_to_the_projection_makes_no_sharp_angle_with_the_set(name):
    """<v - P(v), w - P(v)> <= 0 for every w of the set, which characterizes projections."""
    near = seen_of(name)["near"]
    angles = np.einsum("id,ijd->ij", drawn() - near, near[None] - near[:, None])
    assert np.all(angles <= 1e-12 * np.abs(drawn()).max() ** 2)


@bounded
def test_the_farthest_point_attains_the_support_and_no_point_exceeds_it(name):
    seen, g = seen_of(name), drawn()
    assert np.all(seen["reached"])
    np.testing.assert_allclose(np.sum(g * seen["farthest"], axis=1), seen["support"], rtol=1e-14)
    assert np.all(g @ seen["near"].T <= seen["support"][:, None] * (1 + 1e-14))


@bounded
def test_the_projection_of_a_far_point_is_the_farthest_point(name):
    """P(t g) tends to a maximizer of <g, v>, so its value tends to the support."""
    domain, g = SETS[name][0], drawn()[1]
    value = g @ np.asarray(look(domain, 1e7 * g[None])["near"][0])
    np.testing.assert_allclose(value, seen_of(name)["support"][1], rtol=1e-6)


def test_the_support_of_an_unbounded_set_is_infinite_in_its_free_directions():
    g = jnp.array([[1.0, 0.0, -2.0], [-1.0, 0.0, -2.0], [0.0, 0.0, 0.0]])
    supports = lambda domain: jax.vmap(domain.support)(g).tolist()
    assert supports(sets.everywhere()) == [np.inf, np.inf, 0.0]
    assert supports(sets.box(0.0, np.inf)) == [np.inf, 0.0, 0.0]
    assert supports(sets.box(-np.inf, 1.0)) == [np.inf, np.inf, 0.0]
    assert not any(domain.bounded for domain in (sets.everywhere(), sets.box(0.0, np.inf)))
    assert all(SETS[name][0].bounded for name in BOUNDED)


@bounded
def test_a_tree_is_its_flat_vector(name):
    domain = sets.box(-0.5, 0.7) if name == "box" else SETS[name][0]
    v = drawn()[1]
    tree = {"a": v[:2], "b": {"c": v[2], "d": v[3:][None]}}
    flat = lambda tree: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
    act = lambda w: (domain.project(w), domain.farthest(w), domain.support(w), domain.contains(w))
    for own, whole in zip(jax.jit(act)(tree), jax.jit(act)(v), strict=True):
        np.testing.assert_allclose(flat(own), flat(whole), rtol=1e-15)


def test_a_box_may_differ_by_coordinate_of_a_tree():
    low, high = {"a": np.array([0.0, -1.0]), "b": -np.inf}, {"a": np.ones(2), "b": np.inf}
    near = sets.box(low, high).project({"a": jnp.array([-3.0, -3.0]), "b": jnp.array([5.0, 7.0])})
    assert near["a"].tolist() == [0.0, -1.0]
    assert near["b"].tolist() == [5.0, 7.0]


MAKERS = {
    "ball": (sets.ball, (1.3,)),
    "l1_ball": (sets.l1_ball, (1.5,)),
    "simplex": (sets.simplex, (1.5,)),
    "box": (sets.box, (-0.5, 0.7)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_derivatives_agree_with_differences(name):
    make, numbers = MAKERS[name]
    v, weights, eps = drawn()[1], drawn()[5], 1e-6

    @jax.jit
    def both(v, *numbers):
        value = lambda v, *numbers: jnp.vdot(jnp.sin(make(*numbers).project(v)), weights)
        return jax.value_and_grad(value, argnums=range(1 + len(numbers)))(v, *numbers)

    value, (slope, *slopes) = lambda *given: both(*given)[0], both(v, *numbers)[1]
    move = drawn()[4]
    along = value(v + eps * move, *numbers) - value(v - eps * move, *numbers)
    np.testing.assert_allclose(np.vdot(slope, move), along / (2 * eps), rtol=1e-6, atol=1e-8)
    for i, own in enumerate(slopes):
        moved = lambda by, i=i: [n + by * (i == j) for j, n in enumerate(numbers)]
        along = value(v, *moved(eps)) - value(v, *moved(-eps))
        np.testing.assert_allclose(own, along / (2 * eps), rtol=1e-6, atol=1e-8)


def test_the_ball_has_a_derivative_at_its_center():
    for radius in (0.1, 1.0):
        both = jax.jit(lambda w, radius=radius: jax.jacobian(sets.ball(radius).project)(w))
        np.testing.assert_array_equal(both(np.zeros(2)), np.eye(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_of_extreme_size_are_projected_on_the_ball(dtype):
    """Squares of 1e200, and of 1e30 in single precision, overflow; those of 1e-200 vanish."""
    big, small = (1e30, 1e-30) if dtype == np.float32 else (1e200, 1e-200)
    v = np.array([3.0, -4.0], dtype)
    with jax.numpy_dtype_promotion("strict"):
        near = jax.jit(lambda v, radius: sets.ball(radius).project(v))
        far = jax.jit(sets.ball(1.0).farthest)
        for size in (big, small):
            np.testing.assert_allclose(far(v * dtype(size)), [0.6, -0.8], rtol=1e-6)
        np.testing.assert_allclose(near(v * dtype(big), 1.0), [0.6, -0.8], rtol=1e-6)
        np.testing.assert_array_equal(near(v, big), v)
        np.testing.assert_array_equal(near(v * dtype(small), 1.0), v * dtype(small))
        assert near(v, 1.0).dtype == far(v).dtype == dtype


@every
def test_single_precision_stays_single(name):
    single = look(SETS[name][0], drawn()[:3].astype(np.float32))
    assert single["near"].dtype == single["support"].dtype == np.float32
    size = np.abs(drawn()[:3]).max()
    np.testing.assert_allclose(single["near"], seen_of(name)["near"][:3], atol=1e-6 * size)
    assert np.all(single["inside"])


@pytest.mark.parametrize("name", MAKERS)
def test_a_bad_number_in_a_batch_shows_as_nan_at_its_index(name):
    make, numbers = MAKERS[name]
    bad = (2.0, *numbers[1:]) if name == "box" else (-1.0,)
    batch = [jnp.array(pair) for pair in zip(numbers, bad, strict=True)]
    near = jax.vmap(lambda *numbers: make(*numbers).project(jnp.asarray(drawn()[1])))(*batch)
    assert np.all(np.isfinite(near[0]))
    assert np.any(np.isnan(near[1]))


@every
def test_nan_stays_nan(name):
    near = np.asarray(look(SETS[name][0], np.array([[np.nan, 3.0, 0.1, -1.0, 2.0]]))["near"][0])
    assert np.isnan(near[0])


def test_a_set_of_your_own_serves_everywhere():
    """The ball of radius 2 as its user would write it, in a map, a penalty and a comparator."""
    project = lambda radius, w: w * jnp.minimum(1.0, radius / jnp.linalg.norm(w))
    farthest = lambda radius, g: radius * g / jnp.linalg.norm(g)
    own = sets.projected(Partial(project, 2.0), Partial(farthest, 2.0))
    ball, v = sets.ball(2.0), jnp.array([3.0, 4.0])
    for act in (
        lambda domain: mirrors.euclidean(domain).to_primal(v),
        lambda domain: indicator(domain).prox(v, 0.3),
        lambda domain: indicator(domain).value(v),
        lambda domain: domain.support(v),
        lambda domain: (
            olx.best_in_hindsight(
                losses.linear_loss, olx.Rounds(None, v[None]), jnp.ones(2), domain=domain
            ).u
        ),
    ):
        np.testing.assert_allclose(act(own), act(ball), rtol=1e-14)


def test_the_indicator_of_a_set_allows_for_rounding():
    simplex = indicator(sets.simplex())
    assert simplex.value(jnp.full(7, 1 / 7)) == 0
    assert simplex.value(jnp.full(7, 1 / 7 + 1e-9)) == np.inf


def test_a_quotient_that_is_zero_stays_zero_when_compiled():
    """XLA joins two quotients into one whose divisor may underflow."""
    project = jax.jit(lambda w, level: sets.ball(0.8).project(w / level))
    np.testing.assert_array_equal(project(jnp.zeros(3), 0.01), jnp.zeros(3))


def test_the_origin_as_a_constant_of_a_program_stays_in_the_ball():
    zeros = {"a": jnp.zeros(1), "b": jnp.zeros(3)}  # the compiler multiplies constants first
    seen = jax.jit(lambda domain: domain.project(zeros))(sets.ball(0.5))
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(seen))
