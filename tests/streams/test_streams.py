"""Streams: what generators promise, and what arrays are refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from olx import streams
from olx.core import Rounds

T, D = 60, 6
GENERATORS = {
    "linear_regression": (streams.linear_regression, (T, D), (D,)),
    "heavy_tailed": (streams.heavy_tailed, (T, D), (D,)),
    "ill_conditioned": (streams.ill_conditioned, (T, D), (D,)),
    "sparse": (streams.sparse, (T, D, 3, 2), (D,)),
    "coin_functions": (streams.coin_functions, (T, 4, D), (D,)),
    "drifting": (streams.drifting, (T, D), (T, D)),
    "rotating": (streams.rotating, (T, D), (T, D)),
    "switching": (streams.switching, (T, D), (T, D)),
    "linear_classification": (streams.linear_classification, (T, D), (D,)),
    "logistic_labels": (streams.logistic_labels, (T, D), (D,)),
    "r_of_k": (streams.r_of_k, (T, D, 2, 3), (D,)),
    "stretched_classification": (streams.stretched_classification, (T, D, 2), (D,)),
    "expert_losses": (streams.expert_losses, (T, D), (D,)),
    "drifting_losses": (streams.drifting_losses, (T, D), (T, D)),
    "switching_losses": (streams.switching_losses, (T, D), (T, D)),
    "random_sign_losses": (streams.random_sign_losses, (T,), ()),
}
EXPERTS = ("expert_losses", "drifting_losses", "switching_losses")
REGRESSION = ("linear_regression", "heavy_tailed", "ill_conditioned", "sparse")
CHANGING = ("drifting", "rotating", "switching")
NUMBERS = {
    "linear_classification": {"margin": 0.0, "noise": 0.0},
    "heavy_tailed": {"dof": 3.0, "noise": 0.0},
    "ill_conditioned": {"condition": 100.0, "noise": 0.0},
    "stretched_classification": {"condition": 9.0},
    "drifting": {"speed": 0.03, "noise": 0.0},
    "rotating": {"speed": 0.2, "noise": 0.0},
    **{name: {"noise": 0.0} for name in ("linear_regression", "sparse", "switching")},
}


@functools.cache
def compiled(name):
    make, shape, _ = GENERATORS[name]
    return jax.jit(lambda key, **numbers: make(key, *shape, **numbers))


@functools.cache
def made(name, seed=0, **numbers):
    """All numbers are traced, so that a generator is compiled once for all tests."""
    return compiled(name)(jax.random.key(seed), **NUMBERS.get(name, {}) | numbers)


def at_once(make, *arguments, seed=0):
    """A stream of another shape, made in one program."""
    return jax.tree.map(
        np.asarray, jax.jit(lambda key: make(key, *arguments))(jax.random.key(seed))
    )


@pytest.mark.parametrize("name", GENERATORS)
def test_a_stream_has_the_shapes_it_promises(name):
    rounds, truth = made(name)
    assert isinstance(rounds, Rounds)
    assert jnp.shape(truth) == GENERATORS[name][2]
    if name in EXPERTS or name == "random_sign_losses":
        assert rounds.context is None
    else:
        assert rounds.context.shape == (T, D)
    assert rounds.outcome.shape == ((T, D) if name in EXPERTS else (T,))
    assert {leaf.dtype for leaf in jax.tree.leaves((rounds, truth))} == {jnp.dtype("float64")}
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(rounds))


@pytest.mark.parametrize("name", GENERATORS)
def test_another_key_is_another_stream(name):
    assert not np.allclose(made(name).rounds.outcome, made(name, 1).rounds.outcome)


def test_a_key_repeats_with_and_without_jit():
    plain = streams.linear_regression(jax.random.key(0), T, D, noise=0.0)
    np.testing.assert_allclose(plain.rounds.outcome, made("linear_regression").rounds.outcome)
    np.testing.assert_allclose(plain.truth, made("linear_regression").truth)


@pytest.mark.parametrize("name", REGRESSION + CHANGING)
def test_without_noise_the_truth_explains_every_outcome(name):
    (context, outcome, _), truth = made(name)
    expected = np.sum(np.asarray(context) * np.asarray(truth), axis=1)
    np.testing.assert_allclose(outcome, expected, atol=1e-12)
    first = truth[0] if truth.ndim == 2 else truth
    assert float(jnp.linalg.norm(first)) == pytest.approx(1.0)


@pytest.mark.parametrize("name", REGRESSION + CHANGING)
def test_noise_is_of_the_size_asked_for_and_moves_nothing_else(name):
    quiet, loud, louder = (made(name, 3, noise=noise) for noise in (0.0, 0.5, 1.0))
    chance = np.asarray(loud.rounds.outcome - quiet.rounds.outcome)
    assert 0.35 < np.std(chance) < 0.65
    np.testing.assert_allclose(louder.rounds.outcome - quiet.rounds.outcome, 2 * chance, atol=1e-12)
    np.testing.assert_array_equal(loud.rounds.context, quiet.rounds.context)


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6])
def test_the_condition_number_is_attained_with_a_geometric_spectrum(condition):
    rows = np.asarray(made("ill_conditioned", 1, condition=condition).rounds.context)
    spectrum = np.linalg.eigvalsh(rows.T @ rows / T)[::-1]
    np.testing.assert_allclose(spectrum, condition ** -(np.arange(D) / (D - 1)), rtol=1e-8)


def test_no_coordinate_is_an_axis_of_the_ill_conditioned_rows():
    rows = np.asarray(made("ill_conditioned", 1, condition=1e4).rounds.context)
    assert np.min(np.abs(np.linalg.eigh(rows.T @ rows)[1])) > 1e-3


def test_sparse_rows_and_truth_have_the_nonzeros_asked_for():
    (context, _, _), truth = made("sparse")
    np.testing.assert_array_equal(np.sum(np.asarray(context) != 0, axis=1), 3)
    assert np.sum(np.asarray(truth) != 0) == 2
    assert np.all(np.any(np.asarray(context) != 0, axis=0))


def test_fewer_degrees_of_freedom_make_heavier_tails():
    largest = lambda dof: float(jnp.max(jnp.abs(made("heavy_tailed", dof=dof).rounds.context)))
    assert largest(0.8) > 5 * largest(50.0)


def test_a_drifting_truth_walks_in_steps_of_its_speed():
    truth = np.asarray(made("drifting").truth)
    np.testing.assert_allclose(np.linalg.norm(np.diff(truth, axis=0), axis=1), 0.03)


def test_a_rotating_truth_turns_by_its_speed_on_the_sphere():
    truth = np.asarray(made("rotating").truth)
    np.testing.assert_allclose(np.linalg.norm(truth, axis=1), 1.0)
    np.testing.assert_allclose(np.sum(truth[1:] * truth[:-1], axis=1), np.cos(0.2))
    np.testing.assert_allclose(truth[1] @ truth[3], np.cos(0.4))


@pytest.mark.parametrize("switches", [0, 7, T - 1])
def test_a_switching_truth_switches_as_often_as_asked(switches):
    truth = at_once(streams.switching, T, D, switches).truth
    changed = np.any(np.diff(truth, axis=0) != 0, axis=1)
    assert np.sum(changed) == switches
    np.testing.assert_allclose(np.linalg.norm(truth, axis=1), 1.0)
    best = at_once(streams.switching_losses, T, D, switches).truth
    assert np.sum(np.any(np.diff(best, axis=0) != 0, axis=1)) == switches


@pytest.mark.parametrize("margin", [0.0, 0.5, 3.0])
def test_the_truth_separates_with_the_margin_asked_for(margin):
    (x, y, _), u = made("linear_classification", 2, margin=margin)
    margins = np.asarray(y) * (np.asarray(x) @ np.asarray(u))
    assert np.min(margins) >= margin - 1e-12
    assert margin == 0.0 or np.min(margins) < margin + 1e-12
    assert set(np.unique(y)) == {-1.0, 1.0}
    assert 0.3 < np.mean(np.asarray(y) > 0) < 0.7


@pytest.mark.parametrize("noise", [0.0, 0.25, 1.0])
def test_labels_are_flipped_as_often_as_asked(noise):
    (x, y, _), u = made("linear_classification", 2, margin=0.3, noise=noise)
    flipped = np.asarray(y) * (np.asarray(x) @ np.asarray(u)) < 0
    assert abs(np.mean(flipped) - noise) <= 3 * np.sqrt(noise * (1 - noise) / T)


def test_logistic_labels_are_calibrated():
    labels = functools.partial(streams.logistic_labels, scale=2.0)
    (x, y, _), u = at_once(labels, 20_000, 3, seed=2)
    chance = 1 / (1 + np.exp(-x @ u))
    assert np.linalg.norm(u) == pytest.approx(2.0)
    for low in (0.0, 0.25, 0.5, 0.75):
        among = (chance >= low) & (chance < low + 0.25)
        assert np.mean(y[among] > 0) == pytest.approx(np.mean(chance[among]), abs=0.03)


@pytest.mark.parametrize(("r", "k"), [(1, 1), (1, 5), (3, 5), (5, 5)])
def test_r_of_k_is_separated_in_the_simplex_with_its_margin(r, k):
    (x, y, _), u = at_once(streams.r_of_k, 400, 12, r, k, seed=5)
    assert np.sum(u) == pytest.approx(1.0)
    assert np.all(u >= 0)
    assert np.min(y * (x @ u)) == pytest.approx(0.5 / (r + k - 0.5))
    np.testing.assert_array_equal(y > 0, x[:, :-1] @ (u[:-1] > 0) >= r)
    np.testing.assert_array_equal(x[:, -1], -1.0)
    assert set(np.unique(x[:, :-1])) == {0.0, 1.0}
    assert 0.2 < np.mean(y > 0) < 0.8


def test_stretched_rows_have_their_spectrum_and_keep_their_labels():
    make = lambda condition: functools.partial(
        streams.stretched_classification, condition=condition
    )
    plain, wide = at_once(make(1.0), 20_000, 5, 2), at_once(make(9.0), 20_000, 5, 2)
    np.testing.assert_array_equal(plain.rounds.outcome, wide.rounds.outcome)
    for (x, y, _), u in (plain, wide):
        assert np.min(y * (x @ u)) > 0
    spectrum = np.linalg.eigvalsh(np.cov(wide.rounds.context.T))
    np.testing.assert_allclose(spectrum, [1.0, 1.0, 1.0, 5.0, 9.0], rtol=0.05)


@pytest.mark.parametrize("name", EXPERTS)
def test_losses_of_experts_are_bits_and_the_truth_a_vertex(name):
    (_, losses, _), truth = made(name)
    assert set(np.unique(losses)) == {0.0, 1.0}
    np.testing.assert_array_equal(np.sort(np.asarray(truth), axis=-1)[..., -1], 1.0)
    np.testing.assert_array_equal(np.sum(truth, axis=-1), 1.0)


def test_the_best_expert_is_better_by_the_gap():
    make = functools.partial(streams.expert_losses, gap=0.2)
    (_, losses, _), truth = at_once(make, 8000, 3)
    means, best = np.mean(losses, axis=0), truth == 1
    np.testing.assert_allclose(means, np.where(best, 0.3, 0.5), atol=0.03)


def test_switching_and_drifting_losses_favour_their_truth():
    switching = functools.partial(streams.switching_losses, gap=0.4)
    (_, losses, _), truth = at_once(switching, 8000, 4, 3)
    assert np.mean(np.sum(losses * truth, axis=1)) == pytest.approx(0.1, abs=0.03)
    assert np.min(np.mean(losses, axis=0)) > 0.15
    drifting = functools.partial(streams.drifting_losses, speed=0.01)
    (_, losses, _), truth = at_once(drifting, 8000, 4)
    assert np.mean(np.sum(losses * truth, axis=1)) < 0.1
    assert np.min(np.mean(losses, axis=0)) > 0.4


@pytest.mark.parametrize("experts", [2, 5])
def test_following_the_leader_pays_in_every_round_of_alternating_losses(experts):
    (_, losses, _), truth = streams.alternating_losses(41, experts)
    losses, sums, paid = np.asarray(losses), np.zeros(experts), []
    for row in losses:
        paid.append(row[np.argmin(sums)])
        sums += row
    assert np.all(np.array(paid[1:]) == 1.0)
    assert losses[0].tolist() == [0.5, 0.0, 0.5, 0.0, 0.5][:experts]
    assert np.min(sums) <= 20.5
    assert sums @ np.asarray(truth) == np.min(sums)


def test_the_truth_of_random_signs_gains_the_size_of_their_sum():
    make = jax.jit(lambda key: streams.random_sign_losses(key, 101))
    for seed in range(4):
        (_, signs, _), u = make(jax.random.key(seed))
        assert set(np.unique(signs)) == {-1.0, 1.0}
        assert np.sum(signs) * u == -abs(np.sum(signs))


def test_the_numbers_of_a_generator_are_swept():
    make = lambda margin: compiled("linear_classification")(jax.random.key(0), margin=margin)
    (x, _, _), u = jax.jit(jax.vmap(make))(jnp.array([0.1, 1.0, -1.0]))
    least = np.min(np.abs(np.einsum("mtd,md->mt", x, u)), axis=1)
    np.testing.assert_array_equal(least[:2] >= np.array([0.1, 1.0]) - 1e-12, True)
    assert np.isnan(least[2])
    swept = jax.vmap(lambda gap: streams.expert_losses(jax.random.key(0), 9, 3, gap).rounds.outcome)
    gaps = jax.jit(swept)
    np.testing.assert_array_equal(np.isnan(gaps(jnp.array([0.1, 0.9])))[:, 0, 0], [False, True])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: streams.linear_regression(k, 0, 3), "`rounds` must be an integer of at least 1"),
        (
            lambda k: streams.linear_regression(k, 5, 3, -1.0),
            "`noise` must be non-negative, got -1",
        ),
        (lambda k: streams.ill_conditioned(k, 5, 6), "`features` must be an integer from 1 to 5"),
        (lambda k: streams.ill_conditioned(k, 9, 6, 0.5), "`condition` must lie in"),
        (
            lambda k: streams.sparse(k, 9, 6, 7, 1),
            "`nonzeros` must be an integer from 1 to 6, got 7",
        ),
        (lambda k: streams.switching(k, 9, 6, 9), "`switches` must be an integer from 0 to 8"),
        (lambda k: streams.rotating(k, 9, 1), "rotating: `features` must be an integer from 2"),
        (lambda k: streams.r_of_k(k, 9, 6, 2, 6), "r_of_k: `k` must be an integer from 1 to 5"),
        (lambda k: streams.r_of_k(k, 9, 6, 4, 3), "r_of_k: `r` must be an integer from 1 to 3"),
        (
            lambda k: streams.stretched_classification(k, 9, 6, 7, 2.0),
            "`stretched` must be an integer from 0 to 6",
        ),
        (
            lambda k: streams.stretched_classification(k, 9, 6, 2, 0.5),
            "`condition` must lie in",
        ),
        (lambda k: streams.expert_losses(k, 9, 6, 0.6), "`gap` must lie in"),
        (lambda k: streams.linear_classification(k, 9, 6, 0.0, 1.5), "`noise` must lie in"),
    ],
)
def test_a_generator_refuses_what_it_cannot_make(call, message, key):
    with pytest.raises(ValueError, match=message):
        call(key)


def _with(value, row, column):
    array = np.ones((5, 6))
    array[row, column] = value
    return array


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((_with(np.nan, 3, 5), np.ones(5)), ValueError, "context holds nan at row 3, column 5."),
        ((_with(-np.inf, 0, 2), np.ones(5)), ValueError, "context holds -inf at row 0, column 2."),
        ((np.ones(3), [1.0, np.nan, 1.0]), ValueError, "outcome holds nan at row 1."),
        (({"a": _with(np.nan, 1, 2)}, np.ones(5)), ValueError, "context['a'] holds nan at row 1"),
        ((np.ones((3, 2)), np.ones(4)), TypeError, "rows differ (context: 3, outcome: 4)"),
        ((np.ones((3, 2)), np.ones(3), np.ones(2)), TypeError, "outcome: 3, weight: 2"),
        ((np.ones((0, 2)), np.ones(0)), ValueError, "there are no rows"),
        (([[1, 2], [3]], [1, 2]), TypeError, "ragged: row 1 has 1 entries, row 0 has 2."),
        (([[1, "red"], [3, 4]], [1, 2]), ValueError, "holds 'red' at row 0, column 1"),
        (([1, None], [1, 2]), ValueError, "context holds None at row 1"),
        ((np.ones(2), 3.0), TypeError, "outcome is a float; give a dense array"),
        ((np.ones(2), None), TypeError, "outcome holds no array"),
        ((np.ones(2) + 1j, np.ones(2)), ValueError, "context holds (1+1j) at row 0"),
        ((np.ones(2), np.ones(2), [1.0, -0.5]), ValueError, "weight holds -0.5 at row 1"),
        ((np.ones(2), np.ones(2), np.ones((2, 1))), TypeError, "weight has shape (2, 1)"),
        ((np.float32([1, 2]), np.ones(2), [1.0, np.nan]), ValueError, "weight holds nan at row 1"),
    ],
)
def test_bad_data_is_refused_by_row_and_column(arguments, kind, message):
    with pytest.raises(kind) as refusal:
        streams.from_arrays(*arguments)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith("from_arrays: ")


@pytest.mark.parametrize("bad", [-1, 0.5])
def test_classes_are_whole_numbers_from_zero(bad):
    with pytest.raises(ValueError, match=f"outcome holds {bad} at row 1; classes are whole"):
        streams.from_arrays(np.ones(2), [0, bad], labels=True)


def test_arrays_lists_and_trees_become_one_kind_of_float():
    context = {"a": np.arange(6, dtype=np.int32).reshape(3, 2), "b": ([True, False, True],)}
    rounds = streams.from_arrays(context, np.float32([1, -1, 1]), [1, 0, 2])
    assert {leaf.dtype for leaf in jax.tree.leaves(rounds)} == {jnp.dtype("float32")}
    assert rounds.context["a"].tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert rounds.context["b"][0].tolist() == [1.0, 0.0, 1.0]
    assert rounds.weight.tolist() == [1.0, 0.0, 2.0]
    assert isinstance(rounds.outcome, jax.Array)


def test_whole_numbers_become_floats_and_classes_stay_whole():
    rounds = streams.from_arrays([[1, 2], [3, 4]], [1, -1])
    assert rounds.outcome.dtype == rounds.context.dtype == jnp.dtype("float64")
    assert rounds.weight is None
    rounds = streams.from_arrays(None, np.array([2.0, 0.0]), labels=True)
    assert jnp.issubdtype(rounds.outcome.dtype, jnp.integer)
    assert rounds.outcome.tolist() == [2, 0]


def test_a_number_too_large_for_its_float_is_refused():
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"1e\+300 at row 1; .*float32"):
        streams.from_arrays([0.0, 1e300], [1.0, 1.0])
