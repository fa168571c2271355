"""The types of the game, made by hand as a user would."""

import importlib.metadata

import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import olx
from olx import losses


def test_a_learner_updates_on_feedback_made_by_hand():
    learner, w, g = olx.ogd(0.5), jnp.array([1.0, 2.0]), jnp.array([2.0, -2.0])
    loss = Partial(jnp.vdot, g)
    feedback = olx.Feedback(None, w, g, loss, loss(w), g)
    after = learner.update(learner.init(w), feedback)
    np.testing.assert_allclose(learner.predict(after), [0.0, 3.0])


def test_an_adversary_of_ones_own_is_played():
    growing = olx.Adversary(
        2.0,
        Partial(jnp.vdot),
        lambda factor: jnp.ones(2),
        lambda factor, state: None,
        lambda factor, state, action: (state, factor * state),
    )
    run = olx.play(olx.ogd(0.1), growing, jnp.zeros(2), 3)
    np.testing.assert_allclose(run.rounds.outcome, [[1, 1], [2, 2], [4, 4]])
    np.testing.assert_allclose(run.losses, [0.0, 2 * 2 * -0.1, 2 * 4 * -0.3])


def test_a_norm_of_ones_own_gives_the_printed_bound():
    largest, sums = lambda w: jnp.max(jnp.abs(w)), lambda w: jnp.sum(jnp.abs(w))
    norm = olx.Norm(Partial(sums), Partial(largest))
    half = lambda w: jnp.vdot(w, w) / 2
    mirror = olx.mirror_map(half, half, norm=norm, modulus=0.5)  # |w|_1^2 <= 2 |w|_2^2 in the plane
    assert mirror.energy(jnp.array([3.0, -4.0])) == 16.0
    olx.testing.check_mirror(mirror, jnp.array([0.5, -1.0]))


def test_a_trace_holds_states_before_the_update():
    rounds = olx.Rounds(None, jnp.ones((3, 2)))
    run = olx.rollout(
        olx.ogd(1.0), losses.linear_loss, rounds, jnp.zeros(2), record=olx.record.trace
    )
    assert isinstance(run.trace, olx.Trace)
    np.testing.assert_allclose(run.trace.state.theta[:, 0], [0.0, -1.0, -2.0])


@pytest.mark.parametrize(
    ("left", "verdict", "holds"),
    [(0.5, "holds after each", True), (2.0, "FAILS after some", False)],
)
def test_a_certificate_says_what_it_found(left, verdict, holds):
    ones = jnp.ones(4)
    proof = olx.Certificate(left * ones, ones, ones, theorem="a theorem")
    assert bool(proof.holds) == holds
    assert str(proof).startswith(f"a theorem: {verdict} of 4 rounds.")
    assert float(proof.tightness) == left


def test_a_printed_side_below_the_right_one_fails():
    ones = jnp.ones(4)
    assert not olx.Certificate(ones / 2, ones, ones, ones / 4).holds


def test_a_swept_margin_has_its_best_in_hindsight():
    rounds = olx.Rounds(jnp.array([[1.0], [-1.0]]), jnp.array([1.0, -1.0]))
    loss = losses.margin_hinge(jnp.asarray(2.0))  # a number that is an array
    best = olx.best_in_hindsight(
        loss, rounds, jnp.zeros(1), apply=olx.dot, domain=olx.convex.sets.ball(1.0)
    )
    np.testing.assert_allclose(best.value, 2.0, rtol=1e-4)  # w = 1 is the best of the ball


def test_the_version_is_that_of_the_package():
    assert olx.__version__ == importlib.metadata.version("olx")
