"""What drivers take and refuse of their data, and what becomes of numbers that they cannot see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import experts, losses
from olx.experts import expected_loss

X = np.random.default_rng(0).normal(size=(8, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
LINE = olx.linear(olx.ogd(0.1))
LOSSES = np.random.default_rng(1).random((8, 3))
UNIFORM = np.full(3, 1 / 3)
KEY = jax.random.key(0)


def both(learner, loss, rounds, params):
    """The losses of `run`, which must be those of `rollout`."""
    seen = olx.run(learner, loss, rounds, params).losses
    wanted = olx.rollout(learner, loss, rounds, params).losses
    np.testing.assert_allclose(seen, wanted, rtol=1e-12)
    return wanted


def test_whole_labels_of_minus_one_and_one_are_taken():
    with jax.numpy_dtype_promotion("standard"):
        whole = both(
            olx.classification.perceptron(),
            losses.zero_one,
            olx.Rounds(X, Y.astype(int)),
            np.zeros(3),
        )
    real = both(olx.classification.perceptron(), losses.zero_one, olx.Rounds(X, Y), np.zeros(3))
    np.testing.assert_array_equal(whole, real)


def test_a_traced_label_that_is_no_sign_turns_losses_to_nan_from_its_round_on():
    play = lambda y: olx.rollout(LINE, losses.hinge, olx.Rounds(X, y), np.zeros(3)).losses
    seen = jax.jit(play)(np.where(np.arange(8) == 5, 0.0, Y))
    assert np.all(np.isfinite(seen[:5]))
    assert np.all(np.isnan(seen[5:]))


def test_a_traced_negative_weight_turns_losses_to_nan():
    play = lambda c: olx.rollout(LINE, losses.squared, olx.Rounds(X, Y, c), np.zeros(3)).losses
    assert np.isnan(jax.jit(play)(np.where(np.arange(8) == 0, -1.0, 1.0))).all()


def test_a_loss_that_leaves_the_range_by_rounding_alone_is_clipped():
    learner, single = experts.adahedge(), UNIFORM.astype(np.float32)
    exact = np.where(LOSSES > 0.5, 1, 0).astype(np.float32)
    rounded = np.where(exact == 1, np.float32(1 + 1e-6), np.float32(-1e-7))
    play = lambda z: olx.run(
        learner, losses.linear_loss, olx.Rounds(None, z), single, record=olx.record.actions
    )
    np.testing.assert_array_equal(play(rounded).trace, play(exact).trace)


def test_unknown_losses_of_sleeping_experts_are_taken_by_every_driver():
    awake = (LOSSES > 0.4).astype(float)
    awake[:, 0] = 1.0
    unknown = olx.Rounds(awake, np.where(awake == 0, np.nan, LOSSES))
    known = olx.Rounds(awake, LOSSES)
    learner = experts.ada_normal_hedge()
    np.testing.assert_array_equal(
        both(learner, expected_loss, unknown, UNIFORM), both(learner, expected_loss, known, UNIFORM)
    )


@pytest.mark.parametrize("name", ["exp3", "bandit"])
def test_a_live_bandit_whose_other_losses_are_unknown_plays_in_every_driver(name):
    made = {"exp3": experts.exp3(0.5, KEY), "bandit": experts.bandit(olx.hedge(0.5), KEY)}
    whole = olx.rollout(
        made[name], expected_loss, olx.Rounds(None, LOSSES), UNIFORM, record=olx.record.actions
    )
    live = olx.Rounds(None, np.where(whole.trace == 1, LOSSES, np.nan))
    np.testing.assert_array_equal(both(made[name], expected_loss, live, UNIFORM), whole.losses)


def test_a_start_that_one_learner_of_a_batch_cannot_take_is_nan_for_that_one():
    make = lambda radius: olx.linear(olx.ogd(0.1, olx.convex.sets.ball(radius)))
    batch = olx.batch(make, radius=np.array([1.0, 3.0]))
    seen = olx.sweep(batch, losses.squared, olx.Rounds(X, Y), np.ones(3)).losses
    assert np.all(np.isnan(seen[0]))
    np.testing.assert_allclose(
        seen[1], olx.run(make(3.0), losses.squared, olx.Rounds(X, Y), np.ones(3)).losses, rtol=1e-12
    )


def test_a_start_beside_the_domain_by_rounding_is_taken():
    start = np.array([0.1, 0.2, 0.7], np.float32).astype(float)
    assert start.sum() != 1
    assert np.isfinite(
        both(olx.hedge(0.5), losses.linear_loss, olx.Rounds(None, LOSSES), start)
    ).all()


@pytest.mark.parametrize("at", ["context", "outcome", "weight", "params"])
def test_a_number_too_large_for_single_precision_is_refused(at):
    given = {"context": X, "outcome": Y, "weight": np.ones(8), "params": np.zeros(3)}
    given[at] = given[at] + 1e39
    params = given.pop("params")
    with jax.enable_x64(False), pytest.raises(ValueError, match=rf"{at}.*not fit into float32"):
        olx.rollout(LINE, losses.squared, olx.Rounds(**given), params)


def test_a_label_too_large_for_four_bytes_is_refused():
    rounds = olx.Rounds(X, np.full(8, 2**40))
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"1099511627776 .*into int32"):
        olx.run(LINE, losses.squared, rounds, np.zeros(3))


def test_what_an_adversary_answers_is_judged_too():
    learner = olx.linear(olx.ogd(0.1))
    adversary = olx.streams.contradicting(losses.hinge)
    run = olx.play(learner, adversary, np.zeros(1), 5)
    assert np.isfinite(run.losses).all()


def test_needs_are_about_the_learner_inside():
    batch = olx.batch(
        lambda eta: olx.linear(olx.omd(eta, olx.mirrors.negative_entropy())), eta=[0.1]
    )
    mixed = olx.meta.mix(batch, olx.hedge(0.1))
    with pytest.raises(ValueError, match="omd: `params` must lie in the domain"):
        olx.run(mixed, losses.squared, olx.Rounds(X, Y), np.zeros(3))


def test_a_need_of_ones_own_is_checked_by_every_driver():
    positive = lambda hparams, params, rounds: rounds.outcome > 0
    need = olx.Need("outcome", positive, "outcomes must be positive", "mine", "add 1")
    inner = olx.ogd(0.1)
    mine = olx.Learner(
        inner.hparams, inner.init_fn, inner.predict_fn, inner.update_fn, needs=(need,)
    )
    says = r"mine: outcomes must be positive, got -1.0 in rounds.outcome at row \d; add 1"
    rounds = olx.Rounds(X, Y)
    for play in (olx.run, olx.rollout):
        with pytest.raises(ValueError, match=says):
            play(olx.linear(mine), losses.squared, rounds, np.zeros(3))
    seen = jax.jit(
        lambda y: (
            olx.rollout(olx.linear(mine), losses.squared, olx.Rounds(X, y), jnp.zeros(3)).losses
        )
    )(Y)
    assert np.isnan(seen[-1])
