"""First-order learners and their maps at the ends of the range of floats, and at zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import _clock as clock
from olx import convex, losses, mirrors, regularizers, schedules
from olx.frameworks.ascents.base import Problem
from olx.frameworks.ascents.optimal import best


@pytest.mark.parametrize(
    "learner",
    [
        olx.first_order.signed_exponentiated_gradient(0.1, 2.0),
        olx.omd(0.1, mirrors.pnorm(1.4)),
        olx.omd(0.1, mirrors.weighted_pnorm(1.4, jnp.array([1.0, 2.0, 0.5]))),
        olx.omd(0.1, mirrors.hypentropy(0.5)),
    ],
    ids=["EG+-", "p-norm", "weighted p-norm", "hypentropy"],
)
def test_the_derivative_in_a_start_at_zero_is_what_differences_say(learner):
    rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=6, features=3)
    rollout = lambda w: olx.rollout(olx.linear(learner), losses.squared, rounds, w).total
    total, zeros = jax.jit(rollout), jnp.zeros(3)
    step = 1e-6 * jnp.eye(3)
    differences = [float(total(h) - total(-h)) / 2e-6 for h in step]
    slope = np.asarray(jax.grad(rollout)(zeros))
    assert np.all(np.abs(slope) > 1e-3)
    np.testing.assert_allclose(slope, differences, rtol=1e-5)


@pytest.mark.parametrize("level", [0.0, -7e4, -7e5, 3e6])
def test_entropic_projections_add_up_to_one_far_from_zero(level):
    logits = np.float32(level) + np.array([0.0, -0.5, -1.0, -3.0], np.float32)
    exact = np.exp(logits.astype(float) - level)
    floored = mirrors.floored_entropy(0.05).to_primal(jnp.asarray(logits))
    assert floored.dtype == np.float32
    free = 0.95 * exact[:3] / exact[:3].sum()
    np.testing.assert_allclose(floored, [*free, 0.05], rtol=3e-6)
    # one far above the others is held at the cap, and the rest is split as exactly
    above = jnp.concatenate([jnp.asarray(logits), jnp.float32([level + 2e6])])
    capped = convex.projections.entropic_cap(above, 0.5)
    np.testing.assert_allclose(capped, [*(0.5 * exact / exact.sum()), 0.5], rtol=3e-6)


def test_mirror_descent_with_a_floor_stays_on_the_simplex():
    losses_ = np.random.default_rng(0).random((3000, 4)).astype(np.float32) + 20
    learner = olx.omd(1.0, mirrors.floored_entropy(0.05))
    start = jnp.full(4, 0.25, jnp.float32)
    run = olx.rollout(
        learner, losses.linear_loss, olx.Rounds(None, losses_), start, record=olx.record.actions
    )
    assert np.max(np.abs(run.trace.sum(axis=1) - 1)) <= 1e-6


def past_float32(stats):
    """The same statistics after as many rounds as a float32 can count by ones."""
    is_clock = lambda node: isinstance(node, clock.Clock)
    late = lambda node: clock.Clock(jnp.uint32(2**24), node.dtype) if is_clock(node) else node
    return jax.tree.map(late, stats, is_leaf=is_clock)


def test_counts_go_on_past_what_a_float32_can_add_ones_to():
    params = jnp.zeros(2, jnp.float32)
    feedback = olx.Feedback(jnp.ones(2, jnp.float32), jnp.float32(0), jnp.float32(1), None, 0, 0)
    for process in (
        schedules.decay(1.0, 1.0),
        schedules.mistakes(1.0, convex.norms.l2()),
        regularizers.growing(mirrors.euclidean()),
    ):
        stats = past_float32(process.init(params))
        for _ in range(2**4):
            stats = process.update(stats, feedback)
        counted = [leaf for leaf in jax.tree.leaves(stats) if leaf.dtype == jnp.uint32]
        assert counted == [2**24 + 2**4]
    learner = olx.classification.alma(0.5)
    state = past_float32(learner.init(params))
    state = learner.update(learner.update(state, feedback), feedback)
    assert int(state.corrections.rounds) == 2**24 + 2


def test_a_clock_stands_still_at_its_last_number():
    last = clock.Clock(jnp.uint32(2**32 - 1), jnp.dtype("float32"))
    assert int(clock.tick(None, last, None).rounds) == 2**32 - 1


@pytest.mark.parametrize("unit", [1e-15, 1e-9, 1.0, 1e15])
def test_romma_classifies_alike_in_any_unit_of_its_rows(unit):
    rounds, _ = olx.streams.linear_classification(jax.random.key(0), 300, 5, margin=0.01)

    def mistakes(unit, dtype):
        x, y = (jnp.asarray(part, dtype) for part in (unit * rounds.context, rounds.outcome))
        start = jnp.zeros(5, dtype)
        learner = jax.tree.map(dtype, olx.classification.romma())
        return olx.rollout(learner, losses.zero_one, olx.Rounds(x, y), start).total

    assert float(mistakes(unit, np.float32)) == float(mistakes(1.0, np.float64))


MIXED = np.random.default_rng(0).normal(size=(200, 5)) * np.logspace(-6, 6, 5)
LABELS = np.where(np.random.default_rng(1).random(200) < 0.5, -1.0, 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [losses.logistic, losses.squared], ids=["logistic", "squared"])
@pytest.mark.parametrize(
    "learner",
    [
        olx.classification.unnormalized_winnow(0.3),
        olx.linear(olx.omd(0.1, mirrors.hypentropy(0.5))),
        olx.linear(olx.ftrl(0.3, regularizers.growing(mirrors.hypentropy(0.5)))),
    ],
    ids=["winnow", "hypentropy", "growing"],
)
def test_contexts_of_mixed_scales_leave_no_number_undefined(learner, loss, dtype):
    learner = jax.tree.map(lambda leaf: np.asarray(leaf, dtype)[()], learner)
    shuffled = np.random.default_rng(2).permuted(MIXED, axis=1).astype(dtype)
    rounds = olx.Rounds(shuffled, LABELS.astype(dtype))
    run = jax.jit(olx.rollout)(learner, loss, rounds, jnp.zeros(5, dtype))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(run.state))
    assert not np.any(np.isnan(run.losses))  # the square of a huge score is infinite


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_best_step_in_the_dual_ends_at_the_margin_or_is_a_whole_slope(dtype):
    """Rows of size 1000: the score is flat in most of the steps that are possible."""
    rng = np.random.default_rng(0)
    acc = -rng.exponential(5, (2000, 4)).astype(np.float32)
    x = (1000 * rng.uniform(-1, 1, acc.shape)).astype(np.float32)
    mirror, one = mirrors.negative_entropy(), dtype(1)

    def tau(acc, x):
        score = mirror.to_primal(acc) @ x
        return best(Problem(mirror, losses.hinge, one, acc, x, one, one, score))

    found = np.float64(jax.jit(jax.vmap(tau))(acc.astype(dtype), x.astype(dtype)))
    theta = acc.astype(float) - found[:, None] * x
    weights = np.exp(theta - theta.max(axis=1, keepdims=True))
    after = np.sum(weights * x, axis=1) / np.sum(weights, axis=1)
    stepped = (found < 0) & (found > -1)
    assert np.sum(stepped) > 500
    np.testing.assert_allclose(after[stepped], 1.0, atol=0.1 if dtype == np.float32 else 1e-8)
    assert np.all(after[found == -1] <= 1.001)
    assert np.all(after[found == 0] >= 0.999)
