"""Expert learners without a range: their theorems on hard streams, any unit, the French load."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stored import FOLDER, needs

import olx
from olx import experts, losses
from olx.experts.any_range import clipped_regret
from olx.experts.base import seen as seen_by
from olx.testing.scale import check_scale

FREE = {
    "ml_poly": experts.ml_poly(),
    "boa": experts.any_range(experts.boa()),
    "squint": experts.any_range(experts.squint(rates=6)),
    "adapt_ml_prod": experts.any_range(experts.adapt_ml_prod()),
    "ada_normal_hedge": experts.any_range(experts.ada_normal_hedge()),
    "ada_normal_hedge, half": experts.any_range(experts.ada_normal_hedge(0.5)),
}
every_learner = pytest.mark.parametrize("name", FREE)
STREAMS, T, N = 200, 60, 5
MIXTURES = np.concatenate([np.eye(N), np.full((1, N), 1 / N)])


class Stream(NamedTuple):
    losses: np.ndarray
    confidence: np.ndarray
    prior: np.ndarray
    against: np.ndarray  # whether the heaviest expert gets the largest loss of its round


def streams() -> Stream:
    """Normal and Cauchy losses, sizes from 1e-6 to 1e6 that grow or jump, sleepers, priors."""
    draw, kind = np.random.default_rng(0), np.arange(STREAMS)[:, None, None]
    shape = STREAMS, T, N
    normal, cauchy = draw.normal(size=shape), draw.standard_cauchy(shape)
    growing = 10.0 ** np.linspace(-3, 3, T)[None, :, None]
    jumping = 10.0 ** (6 * (draw.random((STREAMS, T, 1)) < 0.05))
    sizes = np.select([kind % 4 == 1, kind % 4 == 2], [growing, jumping], 1.0)
    unit = 10.0 ** draw.uniform(-6, 6, (STREAMS, 1, 1))
    leaders = np.where(kind % 5 == 3, np.arange(N), 0.0)  # one expert is better
    made = unit * sizes * (np.where(kind % 3 == 0, cauchy, normal) + leaders)
    asleep = (kind % 7 < 2) & (draw.random(shape) < 0.3)
    confidence = np.where(asleep, 0.0, np.where(kind % 7 == 0, draw.random(shape), 1.0))
    return Stream(made, confidence, draw.random((STREAMS, N)), np.arange(STREAMS) >= STREAMS // 2)


HARD = streams()


def answer(row, t, p):
    worst = jnp.where(jnp.arange(N) == jnp.argmax(p), jnp.max(row.losses[t]), row.losses[t])
    return jnp.where(row.against, worst, row.losses[t]), t + 1


@jax.jit
def fails(learner, streams):
    """Whether a theorem fails, and the sides after the last round, per stream and mixture."""

    def one(row):
        adversary = olx.Adversary(
            row,
            experts.expected_loss,
            lambda row: jnp.zeros((), int),
            lambda row, t: row.confidence[t],
            answer,
        )
        run = olx.play(learner, adversary, row.prior, T, record=olx.record.trace)
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u)[0])(MIXTURES)
        return ~proofs.holds, proofs.left[:, -1], proofs.right[:, -1]

    return jax.vmap(one)(streams)


@every_learner
def test_the_theorem_holds_on_hard_streams_and_fails_for_a_wrong_sign(name):
    failed, left, right = fails(FREE[name], HARD)
    assert not np.any(failed)
    assert np.all(np.isfinite(right))
    assert np.mean(left[HARD.against] > 0.05 * right[HARD.against]) > 0.05  # it says something
    wrong, *_ = fails(olx.testing.mutants(FREE[name])["opposite action"], HARD)
    assert np.mean(np.any(wrong, axis=1)) > 0.02


@every_learner
def test_the_unit_of_the_losses_changes_no_weight(name):
    rounds = olx.Rounds(HARD.confidence[7], HARD.losses[7])
    check_scale(FREE[name], experts.expected_loss, rounds, jnp.ones(N))
    assert olx.linear(experts.linearized(FREE[name])).facts.scale_free


def test_clipping_the_loss_of_an_expert_with_weight_keeps_the_mean_regret_at_zero():
    learner = FREE["boa"]
    rounds = olx.Rounds(None, np.array([[0.0, 1.0, 5.0], [20.0, 0.0, 0.0]]))
    run = olx.rollout(learner, losses.linear_loss, rounds, jnp.ones(3), record=olx.record.trace)
    last = jax.tree.map(lambda leaf: leaf[1], run.trace)
    unit, p = last.state.stats.unit, last.feedback.action
    regret = clipped_regret(unit, seen_by(learner.hparams, last.state, last.feedback))
    np.testing.assert_allclose(unit, [2.0, 1.0, 3.0])
    np.testing.assert_allclose(p @ regret, 0.0, atol=1e-15)
    np.testing.assert_allclose(regret[0], -2.0)  # it lost far more
    np.testing.assert_allclose(regret[2] / regret[1], 3.0)  # both are clipped, then scaled


@needs("experts_french_load.npz")
@pytest.mark.parametrize(("name", "most"), [("ml_poly", 1.40), ("boa", 1.55)])
def test_without_a_range_it_forecasts_the_french_load(name, most):
    """The gradient trick on squared errors in megawatts, as the R package opera has it."""
    data = np.load(FOLDER / "experts_french_load.npz")
    forecasts, truth = data["X"].astype(float), data["y"].astype(float)
    learner = olx.linear(experts.linearized(FREE[name]))
    start = np.full(forecasts.shape[1], 1 / forecasts.shape[1])
    game = losses.squared, olx.Rounds(forecasts, truth), start
    mixed = olx.run(learner, *game, record=olx.record.actions).trace
    assert 100 * np.mean(np.abs(mixed - truth) / truth) < most
