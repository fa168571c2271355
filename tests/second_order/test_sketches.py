"""Sketched Newton steps against dense references in NumPy, the full matrix, and their theorems."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_second_order as full
import reference_sketches as ref
from jax import random

import olx
from olx import losses
from olx.second_order import (
    adaptive_oja,
    diagonal_adaptation,
    epoch_frequent_directions,
    frequent_directions,
    oja,
    random_projection,
    sketched_newton,
)
from olx.second_order.random_projection import update as random_projection_update
from olx.second_order.sketch import orthonormal, products

T, D, M = 2000, 12, 4
C, SIGMA, L, ALPHA = 3.0, 1 / 36, 6.0, 60.0
KEY = random.key(3)
NOISE = np.random.default_rng(0)
X = NOISE.normal(size=(T, D)) * np.geomspace(3.0, 0.3, D)
TRUTH = NOISE.normal(size=D) / 6
Y = np.clip(X @ TRUTH + 0.1 * NOISE.normal(size=T), -C, C)
FLAT = NOISE.normal(size=(T, M - 1)) @ NOISE.normal(size=(M - 1, D))  # of rank M - 1
HOLES = X * (NOISE.random(X.shape) < 0.15)
SKETCHES = {
    "random projection": random_projection(M, KEY),
    "frequent directions": frequent_directions(M),
    "epochs": epoch_frequent_directions(M),
    "oja": oja(M, key=KEY),
    "oja, fast": oja(M, 2.0, key=KEY),
}


def draws(count):
    """The vectors of `random_projection`."""
    _, keys = jax.lax.scan(lambda key, _: tuple(random.split(key)), KEY, length=count)
    return np.asarray(jax.vmap(lambda key: random.normal(key, (M,)))(keys)) / np.sqrt(M)


def reference(name, rows=X):
    start = np.asarray(SKETCHES["oja"].init(1.0, jnp.zeros(D))[1])
    return {
        "random projection": lambda: ref.RandomProjection(draws(len(rows)), D),
        "frequent directions": lambda: ref.FrequentDirections(M, D),
        "epochs": lambda: ref.EpochFrequentDirections(M, D),
        "oja": lambda: ref.Oja(start, lambda t: 1 / t),
        "oja, fast": lambda: ref.Oja(start, lambda t: min(2 / t, 1.0)),
    }[name]()


def newton(sketch, alpha=ALPHA, lipschitz=None):
    return sketched_newton(sketch, alpha, C, curvature=SIGMA, lipschitz=lipschitz)


def played(learner, rows=X, record=olx.record.actions):
    rounds = olx.Rounds(jnp.asarray(rows), jnp.asarray(Y[: len(rows)]))
    play = lambda rounds: olx.rollout(learner, losses.squared, rounds, jnp.zeros(D), record=record)
    return jax.jit(play)(rounds)


def slope(score, t):
    return score - Y[t]


def no_rate(t):
    return 0.0


@pytest.mark.parametrize("rows", [X, HOLES], ids=["dense", "holes"])
@pytest.mark.parametrize("name", SKETCHES)
def test_scores_are_those_of_the_dense_reference(name, rows):
    wanted = ref.sketched_newton(rows, slope, reference(name), ALPHA, C, no_rate, SIGMA)
    seen = played(newton(SKETCHES[name]), rows).trace
    np.testing.assert_allclose(seen, wanted, atol=1e-8)


@pytest.mark.parametrize("name", SKETCHES)
def test_scores_with_falling_rates_and_adaptation_are_those_of_the_reference(name):
    rate, rows = (lambda t: np.sqrt(M / t) / (C * L)), X[:500]
    sketch = reference(name, rows)
    wanted = ref.sketched_newton(rows, slope, sketch, 2.0, C, rate, SIGMA, adapt=True)
    seen = played(diagonal_adaptation(newton(SKETCHES[name], 2.0, L)), rows).trace
    np.testing.assert_allclose(seen, wanted, atol=1e-8)


def test_an_adaptation_counts_the_round_before_its_update_if_asked():
    rows, w, squares, wanted = X[:200], np.zeros(D), np.full(D, 0.1), []
    for x, y in zip(rows, Y, strict=False):
        wanted.append(w @ (x / np.sqrt(squares)))
        g = wanted[-1] - y
        squares = squares + (g * x) ** 2
        w = w - 0.5 * g * x / np.sqrt(squares)
    learner = diagonal_adaptation(olx.linear(olx.ogd(0.5)), current=True)
    np.testing.assert_allclose(played(learner, rows).trace, wanted, atol=1e-8)


@pytest.mark.parametrize(
    ("sketch", "rows"),
    [
        (frequent_directions(D + 1), X),
        (frequent_directions(M), FLAT),
        (epoch_frequent_directions(M), FLAT),
    ],
)
def test_directions_that_lose_nothing_are_the_full_newton_step(sketch, rows):
    wanted = full.newton(rows, slope, ALPHA, C, no_rate, SIGMA)
    run = played(newton(sketch), rows)
    np.testing.assert_allclose(run.trace, wanted, atol=1e-8)
    assert run.state.small.lost < 1e-8


FEW = {
    "frequent directions": (frequent_directions(2), ref.FrequentDirections),
    "epochs": (epoch_frequent_directions(2), ref.EpochFrequentDirections),
}


@functools.partial(jax.jit, static_argnums=1)
def scores(sketch, kind, alpha, scale):
    """The scores on rows of X times `scale`."""
    rounds = olx.Rounds(scale * jnp.asarray(X, kind), jnp.asarray(Y, kind))
    learner = sketched_newton(sketch, alpha, C, curvature=SIGMA)
    record = olx.record.actions
    return olx.rollout(learner, losses.squared, rounds, jnp.zeros(D, kind), record=record).trace


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", FEW)
def test_one_direction_follows_its_dense_reference_on_rows_of_every_length(name, kind):
    sketch, dense = FEW[name]
    near = 1e-9 if kind is np.float64 else 1e-4
    share = float(np.finfo(kind).eps) ** -0.5 - 1
    for alpha, scale, rounding in ((ALPHA, 1.0, 0.0), (1.0, 1e-3, 0.0), (1e-2, 1e3, 1e-5)):
        counted = ref.Counted(dense(2, D), alpha * share)
        wanted = ref.sketched_newton(scale * X, slope, counted, alpha, C, no_rate, SIGMA)
        seen = scores(sketch, kind, alpha, scale)
        np.testing.assert_allclose(seen, wanted, atol=near + rounding)  # that of the reference
    least = scores(sketch, kind, 1e-7, 1e3)  # too small for the solver of the reference
    # All rows count as multiples of alpha. All scores are clipped, and in single precision the
    # margin of one may be lost in rounding, and with it the sign.
    lost = 2 if kind is np.float32 else 0
    assert np.sum(np.abs(least - seen) > 1e-6) <= lost


def test_a_projection_of_rows_far_longer_than_alpha_keeps_its_certificate():
    rounds = olx.Rounds(jnp.asarray(1e3 * X[:50]), jnp.asarray(Y[:50]))

    @jax.jit
    def proofs(key, alpha):
        learner = newton(random_projection(M, key), alpha, L)
        record = olx.record.trace
        run = olx.rollout(learner, losses.squared, rounds, jnp.zeros(D), record=record)
        return olx.certify(learner, run, jnp.asarray(TRUTH) / 1e3)

    for key in random.split(KEY, 4):
        for alpha in (1e-7, 1e-8, 1e-9):
            seen = proofs(key, alpha)
            assert seen.holds, str(seen)


@pytest.mark.parametrize("name", ["random projection", "frequent directions", "epochs"])
def test_without_a_number_alpha_is_the_squared_length_of_the_first_row(name):
    rows = np.concatenate([np.zeros((2, D)), X[:300]])
    game = olx.Rounds(rows, np.concatenate([np.ones(2), Y[:300]]))
    play = lambda alpha, game=game: olx.run(
        sketched_newton(SKETCHES[name], alpha, C, curvature=SIGMA),
        losses.squared,
        game,
        np.zeros(D),
    )
    own, given = play(None), play(float(X[0] @ X[0]))
    np.testing.assert_allclose(own.losses, given.losses, atol=1e-9)
    scaled = play(None, game._replace(context=1e3 * rows))
    np.testing.assert_allclose(scaled.losses, own.losses, atol=1e-7)


def test_no_sketch_is_gradient_descent():
    plain, descent = sketched_newton(None, ALPHA), olx.linear(olx.ogd(1 / ALPHA))
    np.testing.assert_allclose(played(plain).trace, played(descent).trace, atol=1e-12)


def fed(sketch, rows):
    """The sketch after all rows; when it was due, and how far V was from orthonormal before."""

    @jax.jit
    def feed(rows):
        def one(carry, g):
            small, z = carry
            small, delta = sketch.update(1.0, small, z @ g, g @ g)
            z = z + jnp.outer(delta, g)
            v, due = _frame(small) @ z, sketch.due_fn(small)
            error = jnp.max(jnp.abs(v @ v.T - jnp.eye(len(v), dtype=v.dtype)))
            basis = sketch.basis_fn(small, products(z))
            again = lambda: (sketch.rebased_fn(small), basis @ z)
            return jax.lax.cond(due, again, lambda: (small, z)), (due, error)

        return jax.lax.scan(one, sketch.init(1.0, jnp.zeros(D, rows.dtype)), rows)

    (small, z), (due, error) = feed(rows)
    return small, z, np.asarray(due), np.asarray(error)


@pytest.mark.parametrize("length", [1.0, 10.0, 1000.0])
def test_single_precision_keeps_directions_orthonormal_for_long_vectors(length):
    rows = jnp.asarray(length * FLAT, jnp.float32)
    _, _, _, error = fed(oja(M, key=KEY), rows)
    assert np.max(error) < 2e-3


@pytest.mark.parametrize("make", [oja, adaptive_oja])
def test_oja_finds_the_leading_eigenvalues(make):
    scales = np.array([3.0, 2.0, 1.5] + [0.1] * (D - 3))
    rows = jnp.asarray(np.random.default_rng(1).normal(size=(T, D)) * scales / 3)
    small, z, due, _ = fed(make(3, key=KEY), rows)
    v = np.asarray(_frame(small) @ z)
    np.testing.assert_allclose(v @ v.T, np.eye(3), atol=1e-8)
    true = np.linalg.eigvalsh(np.asarray(rows).T @ np.asarray(rows))[::-1][:3]
    np.testing.assert_allclose(small.clock.past * small.energy, true, rtol=0.15)
    assert due.sum() < T / 20


@pytest.mark.parametrize("name", SKETCHES)
def test_a_round_needs_only_the_coordinates_of_its_row(name):
    """What an engine for sparse rows may do: an update on some coordinates, a refresh on all."""
    learner, rows = newton(SKETCHES[name]), HOLES[:60]
    state, scores = learner.init(jnp.zeros(D)), []
    refresh = learner.facts.refresh

    @functools.partial(jax.jit, static_argnums=1)
    def small_round(state, width, some, x, y):
        part = state._replace(base=state.base[some], rows=state.rows[:, some])
        score = learner.predict(part, x)
        value, grad = jax.value_and_grad(losses.squared)(score, y)
        told = olx.Feedback(x, score, y, None, value, grad)
        new = learner.update_fn(learner.hparams, part, told)
        base, z = state.base.at[some].set(new.base), state.rows.at[:, some].set(new.rows)
        return score, new._replace(base=base, rows=z)

    for row, y in zip(rows, Y[: len(rows)], strict=True):
        some = np.flatnonzero(row)
        score, state = small_round(state, len(some), some, row[some], y)
        if refresh is not None and refresh.due_fn(learner.hparams, state):
            state = refresh.apply(learner.hparams, state)
        scores.append(score)
    np.testing.assert_allclose(scores, played(learner, rows).trace, atol=1e-10)


@pytest.mark.parametrize("name", SKETCHES)
def test_theorems_hold_and_say_something(name):
    learner = newton(SKETCHES[name], 5.0, L)
    run = played(learner, X[:300] / 3, olx.record.trace)
    proofs = olx.certify(learner, run, jnp.asarray(TRUTH))
    assert proofs.holds, str(proofs)
    assert proofs["newton_regret"].tightness > 0.01
    assert np.isfinite(proofs["newton_regret"].right[-1])


@pytest.mark.parametrize("name", ["frequent directions", "epochs"])
def test_directions_lose_no_more_than_the_best_low_rank(name):
    learner = newton(SKETCHES[name])
    run = played(learner, X[:300], olx.record.trace)
    asked = olx.theorems.best_rank_regret(), olx.theorems.lost_trace()
    proofs = olx.certify(learner, run, jnp.asarray(TRUTH), theorems=asked)
    assert proofs.holds, str(proofs)
    assert proofs["lost_trace"].tightness > 0.3
    assert np.isfinite(proofs["best_rank_regret"].right[-1])


def test_a_large_projection_costs_little():
    learner = sketched_newton(random_projection(400, KEY), ALPHA, C, curvature=SIGMA)
    run = played(learner, X[:100], olx.record.trace)
    at = lambda epsilon: olx.certify(
        learner, run, jnp.zeros(D), theorems=(olx.theorems.projection_terms(epsilon),)
    )
    loose, tight = at(0.5), at(0.01)
    assert loose.holds
    assert loose[0].tightness > 0.4
    assert np.isinf(tight[0].right[-1])  # no sketch is that close, and the certificate says so
    assert "1 - `epsilon`" in str(tight)


def diameter(run, u, sigma):
    """The third term of proposition 1 per round, from dense matrices."""
    growth = np.diff(run.matrices, axis=0) - sigma * run.g[:, :, None] * run.g[:, None, :]
    return np.einsum("ti,tij,tj->t", run.w - u, growth, run.w - u)


def test_the_draws_of_a_projection_add_what_theorem_17_says():
    """In the mean over draws of NumPy; and of one run, with the numbers of NumPy."""
    rows, u, eta = X[:30] / 3, TRUTH, lambda t: np.sqrt(M / t) / (C * L)
    rates = np.array([eta(t) for t in range(1, len(rows) + 1)])
    play = lambda r: ref.sketched_newton_run(
        rows, slope, ref.RandomProjection(r, D), 5.0, C, eta, SIGMA
    )
    noise, excess = np.random.default_rng(4), []
    for _ in range(200):
        run = play(noise.normal(size=(len(rows), M)) / np.sqrt(M))
        known = rates * np.sum(run.g * (run.w - u), axis=1) ** 2
        excess.append(np.sum(diameter(run, u, SIGMA) - known))
    assert abs(np.mean(excess)) < 3 * np.std(excess) / np.sqrt(len(excess))
    assert np.sum(known) <= 4 * (C * L) ** 2 * np.sum(rates)

    run, rate = play(draws(len(rows))), 0.05
    a, z = np.zeros(len(rows)), np.zeros(len(rows))
    S = np.zeros((M, D))
    for t, (w, g, r) in enumerate(zip(run.w, run.g, draws(len(rows)), strict=True)):
        ghat = np.sqrt(SIGMA + rates[t]) * g
        a[t], z[t], S = ghat @ (w - u), np.sum((S @ (w - u)) ** 2), S + np.outer(r, ghat)
    q = 2 * rate * a**2 / M
    luck = M / 2 * (-np.log(1 - q) - q) + rate * q * z / (1 - q)
    known = rates * np.sum(run.g * (run.w - u), axis=1) ** 2
    learner = newton(random_projection(M, KEY), 5.0, L)
    seen = played(learner, rows, olx.record.trace)
    asked = (olx.theorems.projection_drift(0.1, rate),)
    proof = olx.certify(learner, seen, jnp.asarray(u), theorems=asked)[0]
    np.testing.assert_allclose(proof.left, np.cumsum(diameter(run, u, SIGMA)), atol=1e-9)
    np.testing.assert_allclose(proof.right, np.cumsum(known + luck / rate) + np.log(10) / rate)
    assert proof.holds
    wide = olx.certify(
        learner, seen, jnp.asarray(u), theorems=(olx.theorems.projection_drift(0.1, 1e6),)
    )
    assert "`rate` must be below" in str(wide)

    sketch = random_projection(M, KEY)
    loud = lambda *given: (lambda small, r: (small, 30 * r))(*random_projection_update(*given))
    louder = newton(dataclasses.replace(sketch, update_fn=loud), 5.0, L)
    proof = olx.certify(
        louder, played(louder, rows, olx.record.trace), jnp.asarray(u), theorems=asked
    )
    assert not proof.holds  # draws of 30 times the size


def test_the_bound_on_directions_is_looser_for_the_source():
    learner = newton(frequent_directions(M), 5.0, L)
    proof = olx.certify(learner, played(learner, X[:300] / 3, olx.record.trace), jnp.asarray(TRUTH))
    assert np.all(proof["directions_regret"].right <= proof["directions_regret"].published)


@pytest.mark.parametrize("name", SKETCHES)
def test_single_precision_stays_sound_on_badly_conditioned_rows(name):
    noise = np.random.default_rng(2)
    turn = np.linalg.qr(noise.normal(size=(D, D)))[0]
    x = noise.normal(size=(100_000, D)) * np.geomspace(1.0, 1e-3, D) @ turn
    y = np.clip(x @ noise.normal(size=D), -C, C)
    rounds = olx.Rounds(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    learner = newton(SKETCHES[name], 2.0)
    start = jnp.zeros(D, jnp.float32)
    run = jax.jit(lambda rounds: olx.rollout(learner, losses.squared, rounds, start))(rounds)
    assert np.all(np.isfinite(run.losses))
    assert run.losses[-1000:].mean() < 0.01 * run.losses[:10].mean()
    small, z = run.state.small, np.asarray(run.state.rows, np.float64)
    if name == "random projection":
        inverse = np.asarray(small.root, np.float64) @ np.asarray(small.root, np.float64).T
        np.testing.assert_allclose(inverse @ (2.0 * np.eye(M) + z @ z.T), np.eye(M), atol=1e-2)
    else:
        v = np.asarray(_frame(small), np.float64) @ z
        v = v[: len(small.energy)]
        np.testing.assert_allclose(v @ v.T, np.eye(len(v)), atol=1e-3)


LARGE = {
    "frequent directions": frequent_directions(M),
    "oja": oja(M, key=KEY),
    "adaptive oja": adaptive_oja(M, key=KEY),
}


@pytest.mark.parametrize("name", LARGE)
def test_theorems_are_about_the_matrix_that_was_played(name):
    """Single precision, with energies far above 2,900 alpha: the steps of some sketches count less.

    The matrices are found from the steps alone, and the right side is computed from them.
    """
    alpha, count, u = 0.01, 300, np.float32(TRUTH) / 4
    x, y = FLAT[:count] / 3, np.where(np.arange(count) % 2, C, -C)  # slopes stay large
    rounds = olx.Rounds(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    learner = newton(LARGE[name], alpha)
    sketch, start = LARGE[name], jnp.zeros(D, jnp.float32)
    play = lambda rounds: olx.rollout(
        learner, losses.squared, rounds, start, record=olx.record.trace
    )
    run = jax.jit(play)(rounds)
    proofs, states = olx.certify(learner, run, u), run.trace.state
    states = jax.tree.map(lambda all, last: jnp.append(all, last[None], 0), states, run.state)
    some = lambda small, z, x: sketch.solve_fn(alpha, small, z @ x, x @ x)[0] @ z
    each = jax.vmap(some, (None, None, 0))
    away = jax.vmap(each, (0, 0, None))(states.small, states.rows, jnp.eye(D, dtype=jnp.float32))
    inverse = (np.eye(D) - np.asarray(away, float)) / alpha
    matrix = np.linalg.inv((inverse + inverse.swapaxes(1, 2)) / 2)
    values, vectors = np.linalg.eigh(matrix[-1])
    assert values[-1] > 2000 * alpha
    along = run.state.rows @ jnp.asarray(vectors[:, -1], jnp.float32)
    energy = sketch.energy_fn(alpha, run.state.small, along)
    np.testing.assert_allclose(energy, values[-1] - alpha, rtol=0.05)
    w = np.asarray(states.base + jnp.einsum("tm,tmd->td", states.mix, states.rows), float)[:-1]
    pulled, score = np.einsum("tij,tj->ti", inverse[:-1], x), np.sum(w * x, 1)
    back = (score - np.clip(score, -C, C)) / np.sum(pulled * x, 1)
    w = w - back[:, None] * pulled
    g = (np.sum(w * x, 1) - y)[:, None] * x
    growth = np.diff(matrix, axis=0) - SIGMA * np.einsum("ti,tj->tij", g, g)
    terms = np.einsum("ti,tij,tj->t", g, inverse[1:], g)
    terms += np.einsum("ti,tij,tj->t", w - u, growth, w - u)
    wanted = (alpha * u @ u + np.cumsum(terms)) / 2
    bound = proofs["newton_regret"]
    np.testing.assert_allclose(bound.right, wanted, rtol=0.01, atol=0.01 * np.max(np.abs(wanted)))
    assert proofs.holds, str(proofs)
    assert ("energies of the sketch" in str(proofs)) == (name == "frequent directions")


def test_bounds_on_directions_say_nothing_where_the_step_counts_less_than_the_sketch():
    rounds = olx.Rounds(jnp.asarray(X[:100], jnp.float32), jnp.asarray(Y[:100], jnp.float32))
    asked = olx.theorems.best_rank_regret(), olx.theorems.directions_regret
    for alpha, finite in {0.01: False, 60.0: True}.items():
        learner = newton(frequent_directions(M), alpha)
        start, record = jnp.zeros(D, jnp.float32), olx.record.trace
        run = olx.rollout(learner, losses.squared, rounds, start, record=record)
        assert (run.state.small.energy[0] > 5_000 * alpha) == (not finite)
        proofs = olx.certify(learner, run, np.float32(TRUTH), theorems=asked)
        assert [bool(np.isfinite(one.right[-1])) for one in proofs] == [finite] * 2


def _frame(small):
    """F of V = F Z, as the sketch has it."""
    return getattr(small.frame, "value", small.frame)


def test_a_tiny_slope_does_not_harm_the_directions():
    rows = X[:50].copy()
    rows[25:] *= 1e-16
    learner = newton(frequent_directions(M))
    state = played(learner, rows).state
    v = np.asarray(_frame(state.small) @ state.rows)[: M - 1]
    np.testing.assert_allclose(v @ v.T, np.eye(M - 1), atol=1e-10)


def test_weight_is_the_loss_many_times():
    """For a known curvature, a round of weight 2 adds twice the squares to the sketch."""
    learner = sketched_newton(frequent_directions(M), ALPHA, curvature=SIGMA)
    rounds = olx.Rounds(jnp.asarray(X[:1]), jnp.asarray(Y[:1]), 2.0 * jnp.ones(1))
    once = olx.rollout(learner, losses.squared, rounds._replace(weight=None), jnp.zeros(D))
    twice = olx.rollout(learner, losses.squared, rounds, jnp.zeros(D))
    np.testing.assert_allclose(twice.state.small.energy, 2 * once.state.small.energy)


def test_a_batch_over_keys_repeats_the_game():
    make = lambda key: newton(random_projection(M, key))
    learners = olx.batch(make, key=random.split(KEY, 3))
    rounds = olx.Rounds(jnp.asarray(X[:50]), jnp.asarray(Y[:50]))
    runs = olx.sweep(learners, losses.squared, rounds, jnp.zeros(D))
    assert len(np.unique(np.asarray(runs.losses[:, -1]))) == 3


BAD = {
    "sketched_newton: give `curvature`": lambda: sketched_newton(oja(2, key=KEY), 1.0),
    "sketched_newton: `lipschitz` needs `bound`": lambda: sketched_newton(
        oja(2, key=KEY), 1.0, lipschitz=1.0
    ),
    "sketched_newton: `alpha` must be positive": lambda: sketched_newton(None, 0.0),
    "sketched_newton: `bound` must be positive": lambda: sketched_newton(None, 1.0, -1.0),
    "sketched_newton: `sketch` must be a Sketch": lambda: sketched_newton(3, 1.0, curvature=1.0),
    "oja: `size` must be an integer": lambda: oja(0, key=KEY),
    "oja: `rate` must be positive": lambda: oja(2, 0.0, key=KEY),
    "adaptive_oja: `rate` must be positive": lambda: adaptive_oja(2, -1.0, key=KEY),
    "oja: `size` must be at most": lambda: oja(5, key=KEY).init(1.0, jnp.zeros(3)),
    "random_projection: `size` must be": lambda: random_projection(1.5, KEY),
    "frequent_directions: `size` must be at least 2": lambda: frequent_directions(1),
    "epoch_frequent_directions: `size` must be": lambda: epoch_frequent_directions(1),
    "diagonal_adaptation: `start` must be": lambda: diagonal_adaptation(newton(None), 0.0),
    "diagonal_adaptation: `current` must be a bool": lambda: diagonal_adaptation(
        newton(None), current=1
    ),
    "diagonal_adaptation: `inner` must be a Learner": lambda: diagonal_adaptation(3),
    "projection_terms: `epsilon` must": lambda: olx.theorems.projection_terms(1.0),
    "diagonal_adaptation: `inner` must predict one score": lambda: played(
        diagonal_adaptation(olx.ogd(0.1))
    ),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_arguments_are_refused_by_name(words):
    with pytest.raises((TypeError, ValueError), match=words.replace("(", r"\(")):
        BAD[words]()


def test_a_refresh_makes_directions_orthonormal_again_from_their_true_products():
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(3, 9)))
    frame = jnp.linalg.inv(jnp.linalg.cholesky(products(rows))) * (1 + 1e-4)
    better = orthonormal(frame, products(rows)) @ rows
    np.testing.assert_allclose(better @ better.T, np.eye(3), atol=1e-7)
