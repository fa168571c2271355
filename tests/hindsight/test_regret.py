"""Regret curves against sums written out in NumPy, and the shifting expert against brute force."""

import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from olx import losses
from olx.convex import norms
from olx.core import Rounds, Run
from olx.frameworks.lift import dot
from olx.hindsight.regret import (
    comparator_losses,
    interval_regret,
    regret,
    shifting_regret,
    shifts,
    variation,
    worst_interval,
)
from olx.hindsight.shifting import best_shifting_expert

T, D = 30, 3
RNG = np.random.default_rng(7)
X, Y, W = RNG.normal(size=(T, D)), RNG.normal(size=T), RNG.uniform(0, 2, size=T)
PAID, U = RNG.uniform(size=T), RNG.normal(size=D)
US = np.repeat(RNG.normal(size=(3, D)), T // 3, axis=0)
RUN = Run(None, jnp.asarray(PAID))
ROUNDS = Rounds(jnp.asarray(X), jnp.asarray(Y))
WEIGHTED = Rounds(jnp.asarray(X), jnp.asarray(Y), jnp.asarray(W))


def test_regret_of_a_linear_predictor_is_the_sum_written_out():
    theirs = 0.5 * (X @ U - Y) ** 2
    mine = regret(RUN, losses.squared, ROUNDS, jnp.asarray(U), dot)
    np.testing.assert_allclose(mine, np.cumsum(PAID - theirs), rtol=1e-12)


def test_weights_count_on_both_sides():
    theirs = 0.5 * (X @ U - Y) ** 2
    mine = regret(RUN, losses.squared, WEIGHTED, jnp.asarray(U), dot)
    np.testing.assert_allclose(mine, np.cumsum(W * PAID - W * theirs), rtol=1e-12)


def test_comparator_losses_are_not_weighted():
    mine = comparator_losses(losses.absolute, WEIGHTED, jnp.asarray(U), dot)
    np.testing.assert_allclose(mine, np.abs(X @ U - Y), rtol=1e-12)


def test_a_point_comparator_plays_itself():
    rounds = Rounds(None, jnp.asarray(X))
    mine = regret(RUN, losses.linear_loss, rounds, jnp.asarray(U))
    np.testing.assert_allclose(mine, np.cumsum(PAID - X @ U), rtol=1e-12)


def test_parameters_may_be_a_dictionary():
    rounds = Rounds({"a": jnp.asarray(X[:, :2]), "b": jnp.asarray(X[:, 2:])}, jnp.asarray(Y))
    u = {"a": jnp.asarray(U[:2]), "b": jnp.asarray(U[2:])}
    whole = regret(RUN, losses.absolute, ROUNDS, jnp.asarray(U), dot)
    chex.assert_trees_all_close(regret(RUN, losses.absolute, rounds, u, dot), whole, rtol=1e-12)


def test_many_comparators_are_a_loop():
    us = jnp.asarray(RNG.normal(size=(4, D)))
    together = jax.vmap(lambda u: regret(RUN, losses.squared, WEIGHTED, u, dot))(us)
    for u, mine in zip(np.asarray(us), together, strict=True):
        theirs = np.cumsum(W * (PAID - 0.5 * (X @ u - Y) ** 2))
        np.testing.assert_allclose(mine, theirs, rtol=1e-11)


def test_the_runs_of_a_sweep_get_a_curve_each():
    paid = RNG.uniform(size=(2, T))
    mine = regret(Run(None, jnp.asarray(paid)), losses.squared, WEIGHTED, jnp.asarray(U), dot)
    theirs = np.cumsum(W * (paid - 0.5 * (X @ U - Y) ** 2), axis=1)
    np.testing.assert_allclose(mine, theirs, rtol=1e-11)


def test_single_precision_stays_single():
    run = Run(None, jnp.asarray(PAID, jnp.float32))
    rounds = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), WEIGHTED)
    curve = regret(run, losses.squared, rounds, jnp.asarray(U, jnp.float32), dot)
    assert curve.dtype == jnp.float32


def test_a_run_without_losses_is_refused():
    with pytest.raises(TypeError, match="kept no losses"):
        regret(Run(None, None), losses.squared, ROUNDS, jnp.asarray(U), dot)


def test_shifting_regret_is_the_sum_written_out():
    theirs = 0.5 * (np.sum(X * US, axis=1) - Y) ** 2
    mine = shifting_regret(RUN, losses.squared, WEIGHTED, jnp.asarray(US), dot)
    np.testing.assert_allclose(mine, np.cumsum(W * (PAID - theirs)), rtol=1e-11)


@pytest.mark.parametrize(("norm", "order"), [(norms.l1(), 1), (norms.l2(), 2), (None, 2)])
def test_variation_is_the_length_of_the_path(norm, order):
    theirs = np.linalg.norm(np.diff(US, axis=0), ord=order, axis=1).sum()
    np.testing.assert_allclose(variation(jnp.asarray(US), norm), theirs, rtol=1e-12)


def test_shifts_counts_changes_of_any_leaf():
    us = {"a": jnp.array([1.0, 1.0, 2.0, 2.0]), "b": jnp.array([[0.0], [0.0], [0.0], [1.0]])}
    assert int(shifts(us)) == 2
    assert int(shifts(jnp.asarray(US))) == 2


def test_interval_regret_is_the_sum_over_the_interval():
    gains = RNG.normal(size=T)
    for start, stop in [(0, T), (3, 9), (5, 6)]:
        mine = interval_regret(jnp.cumsum(jnp.asarray(gains)), start, stop)
        np.testing.assert_allclose(mine, gains[start:stop].sum(), atol=1e-12)


@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0])
def test_the_worst_interval_is_the_worst_of_all(shift):
    gains = RNG.normal(size=12) + shift
    worst = worst_interval(jnp.cumsum(jnp.asarray(gains)))
    pairs = itertools.combinations(range(13), 2)
    np.testing.assert_allclose(worst.regret, max(gains[a:b].sum() for a, b in pairs), atol=1e-12)
    chosen = gains[int(worst.start) : int(worst.stop)].sum()
    np.testing.assert_allclose(chosen, worst.regret, atol=1e-12)


def test_worst_intervals_of_a_sweep_are_a_loop():
    curves = jnp.cumsum(jnp.asarray(RNG.normal(size=(3, 10))), axis=1)
    together = worst_interval(curves)
    apart = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(worst_interval, curves))
    chex.assert_trees_all_close(together, apart)


@pytest.mark.parametrize("budget", [0, 1, 2, 4])
@pytest.mark.parametrize("experts", [1, 2, 3])
def test_the_shifting_expert_is_the_best_of_all_paths(budget, experts):
    table = RNG.uniform(size=(5, experts))
    changes = lambda path: sum(a != b for a, b in itertools.pairwise(path))
    cost = lambda path: sum(table[t, i] for t, i in enumerate(path))
    paths = itertools.product(range(experts), repeat=5)
    least = min(cost(path) for path in paths if changes(path) <= budget)
    best = best_shifting_expert(jnp.asarray(table), budget)
    path = best.path.tolist()
    np.testing.assert_allclose(best.value, least, rtol=1e-12)
    np.testing.assert_allclose(cost(path), least, rtol=1e-12)
    assert changes(path) <= budget


def test_no_shift_is_the_best_expert():
    table = RNG.uniform(size=(T, 4))
    best = best_shifting_expert(jnp.asarray(table), 0)
    assert best.path.tolist() == [int(table.sum(0).argmin())] * T


def test_shifting_experts_of_many_tables_are_a_loop():
    tables = jnp.asarray(RNG.uniform(size=(3, 8, 2)))
    together = jax.vmap(lambda table: best_shifting_expert(table, 2))(tables)
    apart = [best_shifting_expert(table, 2).value for table in tables]
    chex.assert_trees_all_close(together.value, jnp.stack(apart))


def test_a_negative_number_of_shifts_is_refused():
    with pytest.raises(ValueError, match=r"non-negative integer, got -1"):
        best_shifting_expert(jnp.ones((3, 2)), -1)
