"""The experiments with sketches, on small streams."""

import functools

import jax
import numpy as np
import pytest

import olx
from experiments import held_out, sketch_eigenvalues, sketched_newton
from olx.second_order import oja
from olx.second_order import sketched_newton as newton


@pytest.fixture(scope="module")
def rounds():
    return olx.streams.stretched_classification(jax.random.key(0), 1500, 12, 2, 100.0).rounds


def test_a_sketch_of_all_stretched_directions_errs_less_than_gradient_descent(rounds):
    grid = {"step": 2.0 ** np.arange(-9, -2)}
    other = olx.streams.stretched_classification(jax.random.key(1), 1500, 12, 2, 100.0).rounds
    error = lambda make, grid: (
        held_out.compared(held_out.Entry(make, grid), olx.losses.logistic, other, rounds).error
    )
    sketch = functools.partial(sketched_newton.newton, 5)
    sketched = error(sketch, grid | {"curvature": np.array([0.1])})
    assert sketched < 0.7 * error(sketched_newton.descent, grid)


def test_numbers_are_chosen_on_the_other_stream(rounds):
    entry = held_out.Entry(sketched_newton.descent, {"step": 2.0 ** np.arange(-15, 6, 3)})
    few = jax.tree.map(lambda leaf: leaf[:200], rounds._replace(weight=None))
    long = few._replace(context=30 * few.context)
    loss = olx.losses.logistic
    choose = lambda rounds: held_out.errors(entry.make, loss, rounds, **entry.grid).argmin()
    assert choose(few) != choose(long)
    for other, shown in ((few, long), (long, few)):
        played = held_out.compared(entry, loss, other, shown)
        assert played.numbers["step"] == entry.grid["step"][choose(other)]
        assert played.error == held_out.errors(entry.make, loss, shown, **entry.grid)[choose(other)]


def test_errors_of_eigenvalues_fall_as_rows_are_seen(rounds):
    learner = newton(oja(2, key=jax.random.key(1)), 1.0, curvature=0.1)
    slopes, energy = sketched_newton.sketched(learner, sketched_newton.slope_one, rounds)
    np.testing.assert_array_equal(slopes, 1.0)
    vectors = np.sqrt(0.1) * np.asarray(rounds.context)
    early, late = sketched_newton.eigenvalue_errors(vectors, energy, np.array([40, 1499]))
    assert late < 0.15
    assert late < early


def test_exact_eigenvalues_have_no_error():
    rows = np.diag([3.0, 2.0, 1.0])
    energy = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [3.0, 4 / 3]])
    assert sketched_newton.eigenvalue_errors(rows, energy, np.array([3])) == pytest.approx(0.0)


def test_the_table_shows_the_step_of_each_learner():
    played = [held_out.Played(0.25, {"step": 2.0**-9})]
    text = sketched_newton.table([10.0], dict.fromkeys(sketched_newton.NAMES, played))
    assert text.count("0.2500 (2^-9)") == 4
    assert text.endswith("1.000")


def test_adapted_rows_are_compared_with_their_sketch(rounds):
    few = jax.tree.map(lambda leaf: leaf[:300], rounds._replace(weight=None))
    learned, alone = sketch_eigenvalues.compare(few, steps=np.array([0.5, 1.0]))
    assert 0 < learned < 1e3
    assert 0 < alone < 1e3
