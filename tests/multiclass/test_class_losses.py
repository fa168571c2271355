"""Losses of a vector of scores: values by hand, conjugates and proximal maps by optimization."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import losses
from olx.losses.margin import margin, mistaken

K = 4
COST = np.array([[0, 1, 2, 0.5], [1, 0, 3, 1], [0.2, 1, 0, 1], [1, 1, 4, 0]])


def hinges(s, y, cost):
    return np.array([cost[y, r] - (s[y] - s[r]) for r in range(len(s)) if r != y])


def ones(k=K):
    return np.ones((k, k))


FORMULAS = {
    "multiclass_hinge": lambda s, y: max(0, hinges(s, y, ones()).max()),
    "margin_multiclass_hinge": lambda s, y: max(0, hinges(s, y, 0.3 * ones()).max()),
    "max_of_hinges": lambda s, y: max(0, hinges(s, y, COST).max()),
    "multiclass_squared_hinge": lambda s, y: max(0, hinges(s, y, ones()).max()) ** 2 / 2,
    "average_hinge": lambda s, y: np.maximum(0, hinges(s, y, ones())).mean(),
    "cross_entropy": lambda s, y: np.log(np.exp(s).sum()) - s[y],
}
LOSSES = {
    "margin_multiclass_hinge": losses.margin_multiclass_hinge(0.3),
    "max_of_hinges": losses.max_of_hinges(COST),
} | {
    name: getattr(losses, name)
    for name in FORMULAS
    if name not in ("margin_multiclass_hinge", "max_of_hinges")
}
RANDOM = np.random.default_rng(0)
SCORES, LABELS = RANDOM.normal(size=(60, K)), RANDOM.integers(0, K, 60)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_its_formula(name):
    wanted = [FORMULAS[name](s, y) for s, y in zip(SCORES, LABELS, strict=True)]
    np.testing.assert_allclose(LOSSES[name](SCORES, LABELS), wanted, atol=1e-14)
    single = jax.vmap(LOSSES[name])(SCORES, LABELS)
    np.testing.assert_allclose(single, wanted, atol=1e-14)


@pytest.mark.parametrize("name", LOSSES)
def test_fenchel_and_young_are_equal_at_a_slope_and_unequal_elsewhere(name):
    """l(s) + l*(t) = <s, t> at the slope t of s; it is at least <v, t> for every other v."""
    loss = LOSSES[name]
    slopes = jax.vmap(jax.grad(loss))(SCORES, LABELS)
    conjugates = jax.vmap(loss.conjugate)(slopes, LABELS)
    np.testing.assert_allclose(
        loss(SCORES, LABELS) + conjugates, np.sum(SCORES * slopes, -1), atol=1e-12
    )
    for other in RANDOM.normal(size=(20, 60, K), scale=3):
        least = np.sum(other * slopes, -1) - loss(other, LABELS)
        assert np.all(conjugates >= least - 1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_a_conjugate_is_infinite_outside_its_domain(name):
    loss, y = LOSSES[name], 1
    for tau in ([0.5, 0.2, 0, 0], [-0.2, 0.2, 0, 0], [0.0, 0.5, -0.5, 0]):
        assert loss.conjugate(jnp.array(tau), y) == np.inf
    far = loss.conjugate(jnp.array([0.7, -1.4, 0.7, 0.0]), y)
    assert np.isfinite(far) == (name == "multiclass_squared_hinge")


@pytest.mark.parametrize("name", LOSSES)
def test_a_proximal_map_and_its_dual_are_equal_so_both_are_optimal(name):
    loss = LOSSES[name]

    def both(step, s, y):
        tau, point = loss.pull(step, s, y), loss.prox(step, s, y)
        primal = step * loss(point, y) + jnp.sum((point - s) ** 2) / 2
        dual = step * (tau @ s - loss.conjugate(tau, y)) - step**2 * (tau @ tau) / 2
        return primal, dual

    each = jax.vmap(jax.vmap(both, (None, 0, 0)), (0, None, None))
    primal, dual = jax.jit(each)(jnp.array([0.05, 0.7, 4.0]), SCORES, LABELS)
    np.testing.assert_allclose(primal, dual, atol=1e-11)


def nearest(step, v, y):
    """The proximal map of the cross-entropy by Newton's method in all scores, with halved steps."""
    label, s = np.eye(len(v))[y], v

    def slope(s):
        p = np.exp(s - s.max())
        return step * (p / p.sum() - label) + s - v, p / p.sum()

    for _ in range(100):
        g, p = slope(s)
        move = np.linalg.solve(np.eye(len(v)) + step * (np.diag(p) - np.outer(p, p)), -g)
        size = 1.0
        while size > 1e-3 and np.linalg.norm(slope(s + size * move)[0]) > np.linalg.norm(g):
            size /= 2
        s = s + size * move
    return s


def test_the_proximal_map_of_the_cross_entropy_is_that_of_numpy_for_steps_of_every_size():
    v = SCORES[:12] * np.array([0.1, 1.0, 30.0])[np.arange(12) % 3, None]
    steps = np.array([1e-6, 0.02, 0.7, 5.0, 300.0, 1e-3, 1.0, 40.0, 2.0, 1e4, 0.3, 9.0])
    maps = jax.jit(
        lambda *each: (losses.cross_entropy.prox(*each), losses.cross_entropy.pull(*each))
    )
    (found, pull), (_, still) = maps(steps, v, LABELS[:12]), maps(0 * steps, v, LABELS[:12])
    wanted = [nearest(*each) for each in zip(steps, v, LABELS[:12], strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found, v - steps[:, None] * pull, rtol=1e-12)
    shares = np.exp(v - v.max(-1, keepdims=True))  # at a step of 0 the dual is the slope
    slopes = shares / shares.sum(-1, keepdims=True) - np.eye(K)[LABELS[:12]]
    np.testing.assert_allclose(still, slopes, rtol=1e-12, atol=1e-15)


def test_the_sort_for_many_classes_gives_the_same_maps():
    k = 100
    s, y = RANDOM.normal(size=k), 3
    for loss in (losses.multiclass_hinge, losses.multiclass_squared_hinge):
        for step in (0.05, 2.0):
            tau = loss.pull(step, s, y)
            value = step * loss(s - step * tau, y) + step**2 * tau @ tau / 2
            gain = step * (tau @ s - loss.conjugate(tau, y)) - step**2 * tau @ tau / 2
            np.testing.assert_allclose(value, gain, atol=1e-11)


@pytest.mark.parametrize("name", LOSSES)
def test_constants_bound_the_slopes(name):
    loss = LOSSES[name]
    scores, labels = 3 * RANDOM.normal(size=(2000, K)), RANDOM.integers(0, K, 2000)
    squares = np.sum(jax.vmap(jax.grad(loss))(scores, labels) ** 2, -1)
    if loss.lipschitz is not None:
        assert np.all(np.sqrt(squares) <= loss.lipschitz + 1e-12)
        assert np.max(np.sqrt(squares)) > 0.8 * loss.lipschitz
    if loss.self_bound is not None:
        assert np.all(squares / 2 <= loss.self_bound * loss(scores, labels) + 1e-12)
    assert loss.lipschitz is not None or loss.self_bound is not None


def test_the_first_of_several_rivals_is_named():
    slope = jax.grad(losses.multiclass_hinge)(jnp.zeros(4), 0)
    np.testing.assert_array_equal(slope, [-1, 1, 0, 0])


def test_a_tie_and_a_nan_are_mistakes_and_a_nan_is_seen():
    assert mistaken(jnp.array([1.0, 1.0, 0.0]), 0)
    assert not mistaken(jnp.array([1.0, 0.5, 0.0]), 0)
    assert mistaken(jnp.array([1.0, jnp.nan, 0.0]), 0)
    assert mistaken(0.0, 1.0)
    assert mistaken(jnp.nan, 1.0)
    assert not mistaken(-0.1, -1.0)
    assert margin(jnp.array([3.0, 1.0, 2.0]), 0) == 1.0
    for loss in (*LOSSES.values(), losses.multiclass_zero_one):
        assert np.isnan(loss(jnp.array([1.0, jnp.nan, 0.0, 0.0]), 0))
    assert losses.multiclass_zero_one(jnp.array([1.0, 1.0]), 1) == 1.0
    assert losses.multiclass_zero_one(jnp.array([1.0, 2.0]), 1) == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.max_of_hinges(np.ones((2, 3))), "square matrix .* got shape \\(2, 3\\)"),
        (lambda: losses.max_of_hinges(np.ones((1, 1))), "2 classes or more"),
        (lambda: losses.max_of_hinges(-np.ones((2, 2))), "must be non-negative, got -1"),
        (lambda: losses.max_of_hinges(COST)(np.zeros(3), 0), "about 4 classes, the score has 3"),
        (lambda: losses.multiclass_hinge(0.5, 1), r"one number per class, got shape \(\)"),
        (lambda: losses.multiclass_hinge(np.zeros(1), 0), "2 classes or more, got 1"),
        (lambda: losses.margin_multiclass_hinge(0.0), "`margin` must be positive, got 0"),
        (lambda: losses.multiclass_zero_one.prox(1.0, np.zeros(3), 0), "no proximal map"),
    ],
)
def test_what_is_no_loss_of_classes_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    ("labels", "seen"),
    [
        ([0, 1, 3], "integers from 0 to k - 1, got 3 .* row 2"),
        ([0, -1, 2], "got -1"),
        ([0.0, 1.0, 2.0], "integers .* got 0.0 .*; number the classes"),
    ],
)
def test_labels_outside_the_classes_are_refused(labels, seen):
    rounds = olx.Rounds(jnp.ones((3, 2)), np.array(labels))
    with pytest.raises(ValueError, match=seen):
        olx.run(olx.linear(olx.ogd(0.1)), losses.cross_entropy, rounds, jnp.zeros((3, 2)))
