"""Worst cases: the search, the semidefinite program and closed forms agree; what is refused."""

import itertools
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from experiments import worst_cases
from olx.convex import sets
from olx.hindsight import (
    exact_worst_case,
    label_losses,
    linear_losses,
    score_losses,
    worst_case,
)

ETA, T, G, R = 0.5, 3, 2.0, 1.5
BALLS = {"streams": linear_losses(sets.ball(G)), "comparators": sets.ball(R)}
QUICK = {"searches": 2, "steps": 2}


def descent_regret(eta, gradients, u):
    """The regret of gradient descent from 0 on linear losses, in NumPy."""
    w, paid = np.zeros_like(u), 0.0
    for g in gradients:
        paid += g @ (w - u)
        w = w - eta * g
    return paid


def worst_of_descent(eta, rounds):
    """The largest regret, by hand, for two rounds or more.

    With S the sum of the gradients it is R |S| - eta |S|^2 / 2 + eta sum |g|^2 / 2. All gradients
    have length G, and their sum may have any length up to G T.
    """
    length = min(R / eta, G * rounds)
    return R * length - eta * length**2 / 2 + eta * G**2 * rounds / 2


@pytest.fixture(scope="module")
def found():
    return worst_case(olx.ogd(ETA), T, params=jnp.zeros(3), searches=8, steps=200, **BALLS)


@pytest.fixture(scope="module")
def exact():
    return exact_worst_case(olx.ogd(ETA), T, jnp.zeros(2), gradient=G, radius=R)


def test_the_search_and_the_program_agree_with_the_closed_form(found, exact):
    closed = worst_of_descent(ETA, T)
    np.testing.assert_allclose(exact.regret, closed, rtol=1e-6)
    np.testing.assert_allclose(found.regret, closed, rtol=1e-4)
    assert found.regret <= exact.regret + 1e-6


def test_a_stream_has_the_regret_that_is_claimed(found, exact):
    for worst, most in ((found, 1e-9), (exact, 1e-5)):
        gradients, u = np.asarray(worst.stream.rounds.outcome), np.asarray(worst.stream.truth)
        np.testing.assert_allclose(descent_regret(ETA, gradients, u), worst.regret, rtol=most)
        assert np.all(np.linalg.norm(gradients, axis=1) <= G + most)
        assert np.linalg.norm(u) <= R + most


def test_the_bound_of_gradient_descent_is_attained(found):
    assert found.proofs.holds
    loose = found.looseness["gradient_descent"]
    np.testing.assert_allclose([loose.right, loose.published], 1.0, rtol=1e-4)
    assert max(found.each) == pytest.approx(float(found.regret))


def test_other_functions_play_the_stream(found):
    rounds, loss = found.stream.rounds, olx.losses.linear_loss
    nature = olx.streams.replaying(loss, rounds)
    played = olx.play(olx.ogd(ETA), nature, jnp.zeros(3), T + 1)
    theirs = olx.rollout(olx.ogd(ETA), loss, rounds, jnp.zeros(3))
    np.testing.assert_allclose(played.losses[:T], theirs.losses, rtol=1e-12)
    np.testing.assert_array_equal(played.rounds.outcome[T], rounds.outcome[0])
    with pytest.raises(ValueError, match=r"replaying: .* weights"):
        olx.streams.replaying(loss, rounds._replace(weight=jnp.ones(T)))


def test_a_short_step_leaves_the_bound_loose():
    worst = exact_worst_case(olx.ogd(0.1), T, jnp.ones(2), gradient=G, radius=R)
    np.testing.assert_allclose(worst.regret, worst_of_descent(0.1, T), rtol=1e-6)
    assert worst.regret < 0.9 * (R**2 / 0.2 + 0.1 * G**2 * T / 2)


def test_projected_descent_is_no_worse_than_its_bound():
    for lazy in (False, True):
        worst = worst_cases.over_domains(lazy, None, 2)
        assert 1.0 < worst <= np.sqrt(2) + 1e-6


def test_hedge_is_as_bad_as_the_worst_stream_of_a_grid():
    eta, rounds = 2.0, 2
    grid = np.array(list(itertools.product(np.linspace(0, 1, 5), repeat=4))).reshape(-1, rounds, 2)
    second = 1 / (1 + np.exp(eta * (grid[:, 0, 1] - grid[:, 0, 0])))  # the share of expert 2
    paid = grid[:, 0].mean(-1) + (1 - second) * grid[:, 1, 0] + second * grid[:, 1, 1]
    most = np.max(paid - grid.sum(1).min(-1))
    streams, start = linear_losses(sets.box(0.0, 1.0)), jnp.array([0.5, 0.5])
    search = {"comparators": sets.simplex(), "theorems": (), "searches": 8, "steps": 100}
    worst = worst_case(olx.hedge(eta), rounds, streams, start, **search)
    assert worst.regret >= most - 1e-6
    assert worst.regret <= most + 0.02  # between the points of the grid
    assert worst.proofs is None


def test_rows_and_labels_are_searched():
    streams = label_losses(olx.losses.hinge, sets.ball(G))
    worst = worst_case(
        olx.linear(olx.ogd(ETA)),
        2,
        streams,
        jnp.zeros(2),
        comparators=sets.ball(R),
        apply=olx.dot,
        theorems=(),
        searches=8,
        steps=100,
    )
    x, y = np.asarray(worst.stream.rounds.context), np.asarray(worst.stream.rounds.outcome)
    assert set(y) <= {-1.0, 1.0}
    assert np.all(np.linalg.norm(x, axis=1) <= G + 1e-9)
    assert 1.5 < worst.regret <= worst_of_descent(ETA, 2) + 1e-9  # of all losses with such slopes


def test_the_table_of_the_documentation_is_sound():
    page = Path(worst_cases.__file__).parents[1] / "docs/pages/concepts/worst_cases.md"
    lines = [line.strip("|").split("|") for line in page.read_text().splitlines()]
    rows = [[cell.strip() for cell in line] for line in lines]
    rows = [row for row in rows if row[0] in worst_cases.CASES]
    assert len(rows) == 5 * len(worst_cases.CASES)
    for method, rounds, exact, bits, found, _, bound, _ in rows:
        assert float(bits or 0.0) - 1e-4 <= float(found) <= float(bound) + 1e-4
        if exact:
            assert abs(float(found) - float(exact)) <= 2e-4
        if method in ("gradient descent", "projected descent"):
            assert float(exact) == pytest.approx(int(rounds) ** 0.5, abs=1e-4)


class Leader(NamedTuple):
    totals: jax.Array
    index: jax.Array


def leader(integer):
    """Follow the expert with the least loss; the state holds its number, or does not."""
    init = lambda _, params: Leader(params, jnp.zeros((), int))
    predict = lambda _, state, x: jax.nn.one_hot(state.index, 2, dtype=state.totals.dtype)

    def update(_, state, feedback):
        totals = state.totals + feedback.outcome
        return Leader(totals, jnp.argmin(totals) if integer else state.index)

    return olx.Learner(None, init, predict, update)


BOXES = {"streams": linear_losses(sets.box(0.0, 1.0)), "comparators": sets.simplex()}
REFUSED = {
    "`rounds` must be an integer of at least 1, got 0": (olx.ogd(1.0), 0, {}),
    "`comparators` must be bounded": (olx.ogd(1.0), 2, {"comparators": sets.everywhere()}),
    "`streams.outcome` must be bounded": (
        olx.ogd(1.0),
        2,
        {"streams": linear_losses(sets.box(0.0, jnp.inf))},
    ),
    "`pace` must be positive, got -1": (olx.ogd(1.0), 2, {"pace": -1.0}),
    "anytime_hedge: losses .* make its sets smaller": (
        olx.experts.anytime_hedge(1.0, low=0.0, high=1.0),
        2,
        {"streams": linear_losses(sets.box(0.0, 2.0)), "comparators": sets.simplex()},
    ),
    "`state.index` .* is an integer that depends on the stream": (
        leader(True),
        3,
        BOXES | {"searches": 8},
    ),
    "the learner predicts from rows": (olx.linear(olx.ogd(1.0)), 2, {}),
    "give the model as `apply`": (
        olx.linear(olx.ogd(1.0)),
        2,
        {"streams": label_losses(olx.losses.hinge, sets.ball(1.0))},
    ),
    "gradient 0 at every first stream": (
        olx.classification.perceptron(),
        2,
        {"streams": label_losses(olx.losses.zero_one, sets.ball(1.0)), "apply": olx.dot},
    ),
    "2 of 2 searches diverge": (
        olx.linear(olx.ogd(1e200)),
        3,
        {
            "streams": score_losses(olx.losses.squared, sets.ball(1.0), sets.box(-1.0, 1.0)),
            "apply": olx.dot,
        },
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_it_refuses(message):
    learner, rounds, changed = REFUSED[message]
    start = jnp.array([0.5, 0.5])
    with pytest.raises((TypeError, ValueError), match=f"worst_case: .*{message}"):
        worst_case(learner, rounds, params=start, **(BALLS | QUICK | changed))


def test_an_integer_that_does_not_depend_on_the_stream_is_no_obstacle():
    worst = worst_case(leader(False), 2, params=jnp.zeros(2), **BOXES, searches=4, steps=20)
    assert worst.regret == pytest.approx(2.0)
    assert worst.proofs is None
    assert worst.looseness == {}


def test_the_program_refuses(monkeypatch):
    numbers = {"gradient": G, "radius": R}
    with pytest.raises(TypeError, match="must be linear in the gradients"):
        exact_worst_case(olx.ogd(ETA, sets.ball(1.0)), T, jnp.zeros(2), **numbers)
    with pytest.raises(ValueError, match="`radius` must be positive, got -1"):
        exact_worst_case(olx.ogd(ETA), 2, jnp.zeros(2), gradient=G, radius=-1.0)
    monkeypatch.setitem(sys.modules, "PEPit", None)
    with pytest.raises(ImportError, match="pip install pepit"):
        exact_worst_case(olx.ogd(ETA), 1, jnp.zeros(2), **numbers)
