"""Expert learners on the slope of a convex loss of their mixture."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stored import FOLDER, needs

import olx
from olx import experts, losses

SOURCE = np.random.default_rng(3)
ROUNDS, EXPERTS, SPREAD = 120, 6, 8.0
FORECASTS = SOURCE.uniform(-1, 3, (ROUNDS, EXPERTS))
TRUTH = FORECASTS @ np.array([0.5, 0.5, 0, 0, 0, 0]) + SOURCE.normal(0, 0.1, ROUNDS)
GAME = olx.Rounds(FORECASTS, TRUTH)
START = np.full(EXPERTS, 1 / EXPERTS)


def combine(inner):
    return olx.linear(experts.linearized(inner))


LEARNER = combine(experts.ada_normal_hedge(low=-SPREAD, high=SPREAD))


@pytest.fixture(scope="module")
def run():
    play = lambda rounds: olx.rollout(
        LEARNER, losses.absolute, rounds, START, record=olx.record.trace
    )
    return jax.jit(play)(GAME)


def test_it_is_the_expert_learner_on_slopes(run):
    """AdaNormalHedge as the notes have it, on losses that NumPy works out."""
    regret, size, seen = np.zeros(EXPERTS), np.zeros(EXPERTS), []
    for x, y in zip(FORECASTS, TRUTH, strict=True):
        level = lambda r, size=size: np.exp(np.maximum(r, 0) ** 2 / (3 * (size + 1)))
        w = level(regret + 1) - level(regret - 1)
        p = w / w.sum() if w.sum() > 0 else START
        seen.append(p @ x)
        charged = np.sign(p @ x - y) * (x - p @ x)
        r = -charged / (2 * SPREAD)
        regret, size = regret + r, size + np.abs(r)
    np.testing.assert_allclose(run.trace.feedback.action, seen, rtol=1e-10)


@pytest.mark.parametrize("u", [[0.5, 0.5, 0, 0, 0, 0], [0, 0, 1.0, 0, 0, 0], START])
def test_its_theorem_bounds_the_regret_to_every_mixture(run, u):
    proof = olx.certify(LEARNER, run, jnp.asarray(u))[0]
    assert proof.holds, str(proof)
    own = np.cumsum(np.asarray(run.losses) - np.abs(FORECASTS @ np.asarray(u) - TRUTH))
    assert np.all(own <= np.asarray(proof.left) + 1e-9)  # convexity


def test_it_beats_the_best_expert_where_a_mixture_does(run):
    best = np.abs(FORECASTS - TRUTH[:, None]).mean(0).min()
    assert np.mean(run.losses[60:]) < 0.8 * best


def test_a_slope_out_of_range_turns_later_losses_to_nan():
    narrow = combine(experts.ada_normal_hedge(low=-0.1, high=0.1))
    seen = jax.jit(lambda r: olx.rollout(narrow, losses.absolute, r, START).losses)(GAME)
    assert np.isfinite(seen[0])
    assert np.all(np.isnan(seen[1:]))


@needs("experts_french_load.npz")
def test_without_tuning_it_is_near_the_best_hedge_on_the_french_load():
    data = np.load(FOLDER / "experts_french_load.npz")
    relative = data["X"] / data["y"][:, None].astype(float)
    spread = float(np.max(np.ptp(relative, axis=1)))
    game = olx.Rounds(relative, np.ones(len(relative)))
    match = losses.absolute, game, np.full(relative.shape[1], 1 / relative.shape[1])
    etas, span = jnp.geomspace(1e-2, 1e3, 31), {"low": -spread, "high": spread}
    own = olx.run(combine(experts.ada_normal_hedge(**span)), *match)
    for step in (lambda eta: eta, olx.schedules.decay):
        make = lambda eta, step=step: combine(experts.anytime_hedge(step(eta), **span))
        tuned = olx.sweep(olx.batch(make, eta=etas), *match, keep=olx.keep.totals)
        assert own.total < 1.05 * np.min(tuned.total)


def test_a_loss_outside_the_range_is_named_and_not_judged():
    learner = olx.linear(olx.experts.linearized(olx.experts.ada_normal_hedge(low=-1.0, high=1.0)))
    context = np.array([[0.2, -0.3]] * 8)
    context[4] *= 1e6
    rounds = olx.Rounds(context, np.zeros(8))
    run = jax.jit(
        lambda rounds: olx.rollout(
            learner, olx.losses.absolute, rounds, jnp.ones(2) / 2, record=olx.record.trace
        )
    )(rounds)
    proof = olx.certify(learner, run, jnp.array([0.0, 1.0]))[0]
    assert not proof.holds  # the state is NaN then
    assert np.all(np.isfinite(proof.right) == (np.arange(8) < 4))
    says = (
        "It says nothing from round 5 on: losses of experts who are awake must lie in their range"
    )
    assert says in str(proof)
