"""Rollout, batch, sweep and play: what they return, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from refusal import said

import olx
from olx import losses, mirrors, streams
from olx.convex import sets

ROUNDS, _ = streams.linear_regression(jax.random.key(0), rounds=20, features=3)
LEARNER = olx.linear(olx.ogd(0.1))


def roll(learner=LEARNER, loss=losses.squared, rounds=ROUNDS, params=None, **options):
    params = jnp.zeros(3) if params is None else params
    return olx.rollout(learner, loss, rounds, params, **options)


def test_a_run_resumes_from_its_state():
    first = roll(rounds=jax.tree.map(lambda leaf: leaf[:8], ROUNDS))
    second = roll(rounds=jax.tree.map(lambda leaf: leaf[8:], ROUNDS), state=first.state)
    np.testing.assert_array_equal(np.concatenate([first.losses, second.losses]), roll().losses)


def test_a_weight_of_two_is_a_gradient_twice_as_long():
    one = olx.Rounds(ROUNDS.context[:1], ROUNDS.outcome[:1], jnp.array([2.0]))
    doubled = roll(olx.linear(olx.ogd(0.2)), rounds=one._replace(weight=None))
    np.testing.assert_allclose(roll(rounds=one).state.theta, doubled.state.theta)


def test_rounds_of_weight_zero_leave_no_mark():
    weight = jnp.asarray(np.arange(20) % 2, float)
    kept = jax.tree.map(lambda leaf: leaf[1::2], ROUNDS)
    for inner in (
        olx.ogd(0.1),
        olx.ftrl(0.1, olx.regularizers.adagrad()),
        olx.optimistic(0.1, mirrors.euclidean()),
    ):
        learner = olx.linear(inner)
        skipped = roll(learner, rounds=ROUNDS._replace(weight=weight))
        jax.tree.map(np.testing.assert_array_equal, skipped.state, roll(learner, rounds=kept).state)


def test_a_bad_grid_point_shows_at_its_own_index():
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.1, -1.0, 0.2]))
    finite = np.isfinite(olx.sweep(learners, losses.squared, ROUNDS, jnp.zeros(3)).total)
    np.testing.assert_array_equal(finite, [True, False, True])


def test_a_diverging_configuration_disturbs_no_other():
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.1, 1e80]))
    totals = olx.sweep(learners, losses.squared, ROUNDS, jnp.zeros(3)).total
    assert not np.isfinite(totals[1])
    np.testing.assert_allclose(totals[0], roll().total)


def test_play_keeps_the_rounds_that_came_about():
    adversary = streams.steepest(1.0)
    learner = olx.ogd(0.1, sets.ball(1.0))
    run = olx.play(learner, adversary, jnp.full(3, 0.1), 15)
    replay = olx.rollout(learner, adversary.loss, run.rounds, jnp.full(3, 0.1))
    np.testing.assert_allclose(run.losses, replay.losses)


REFUSALS = {
    "negative eta": (
        lambda: olx.omd(-0.1, mirrors.euclidean()),
        ValueError,
        "omd: `eta` must be positive, got -0.1.",
    ),
    "no mirror": (
        lambda: olx.omd(0.1, 3.0),
        TypeError,
        "omd: `mirror` must be a MirrorMap, got float; take one of `olx.mirrors`, as "
        "`olx.mirrors.euclidean()`.",
    ),
    "no regularizer": (
        lambda: olx.ftrl(0.1, 3.0),
        TypeError,
        "ftrl: `regularizer` must be a MirrorMap or a Process made by olx.regularizers, got float; "
        "take one, as `olx.regularizers.adagrad()` or `olx.mirrors.euclidean()`.",
    ),
    "no map": (
        lambda: olx.mirror_map(),
        TypeError,
        "mirror_map: give a potential, a conjugate or both.",
    ),
    "not a function": (
        lambda: olx.mirror_map(3.0),
        TypeError,
        "mirror_map: `potential` must be a function, got float.",
    ),
    "lengths": (
        lambda: roll(rounds=olx.Rounds(jnp.zeros((3, 3)), jnp.zeros(4))),
        TypeError,
        "rollout: leaves of `rounds` differ in length (rounds.context: 3, rounds.outcome: 4); "
        "give one row per round.",
    ),
    "no rounds": (
        lambda: roll(rounds=olx.Rounds(jnp.zeros((0, 3)), jnp.zeros(0))),
        ValueError,
        "rollout: `rounds` is empty.",
    ),
    "scalar leaf": (
        lambda: roll(rounds=olx.Rounds(None, jnp.zeros(()))),
        TypeError,
        "rollout: rounds.outcome is a scalar; every leaf needs a leading axis of rounds, as "
        "np.full(T, 1.0).",
    ),
    "tuple for rounds": (
        lambda: roll(rounds=(ROUNDS.context, ROUNDS.outcome)),
        TypeError,
        "rollout: `rounds` must be a Rounds, got tuple; put arrays into `olx.Rounds(contexts, "
        "outcomes)`, one row per round.",
    ),
    "factory for learner": (
        lambda: roll(olx.ogd),
        TypeError,
        "rollout: `learner` must be a Learner, got function `ogd`; call it, as in `ogd(...)`.",
    ),
    "width": (
        lambda: roll(params=jnp.zeros(4)),
        TypeError,
        "rollout: a row of rounds.context has shape (3,), and `params` has (4,); start from "
        "jnp.zeros(3).",
    ),
    "structure": (
        lambda: roll(params={"a": jnp.zeros(3)}),
        TypeError,
        "rollout: a row of rounds.context is float64[3], and `params` is {a: float64[3]}; "
        "`olx.linear` needs both of one structure, and `olx.model(learner, apply)` plays any other "
        "model `apply(params, row)`.",
    ),
    "vector loss": (
        lambda: roll(loss=lambda score, y: jnp.stack([score, y])),
        TypeError,
        "rollout: the loss has type float64[2]; it must be a real scalar, for example a sum or a "
        "mean.",
    ),
    "dtype of state": (
        lambda: roll(_widening()),
        TypeError,
        "rollout: the update changed state from float32[3] to float64[3]. A state is scanned, so "
        "its shapes and dtypes stay as init made them: cast inside update, or start from the wider "
        "dtype.",
    ),
    "dtype of a number": (
        lambda: roll(_widening({"rate": 0.5, "eta": np.float64(0.1)})),
        TypeError,
        "rollout: the update changed state from float32[3] to float64[3]. A state is scanned, so "
        "its shapes and dtypes stay as init made them: give `hparams['eta']` in float32, or start "
        "from the wider dtype.",
    ),
    "structure of state": (
        lambda: roll(_restructuring()),
        TypeError,
        "rollout: the update changed the state from PyTreeDef(*) to PyTreeDef((*, *)). A state is "
        "scanned, so it keeps the structure init gave it.",
    ),
    "axes": (
        lambda: olx.batch(olx.hedge, eta=jnp.ones(2), beta=jnp.ones(3)),
        TypeError,
        "batch: axes differ in length (eta: 2, beta: 3); `batch(make, **olx.grid(...))` takes "
        "their product.",
    ),
    "no axis": (
        lambda: olx.batch(olx.hedge),
        TypeError,
        "batch: give at least one axis, as in `batch(..., eta=etas)`.",
    ),
    "axis of one number": (
        lambda: olx.batch(olx.hedge, eta=0.1),
        TypeError,
        "batch: axis `eta` is a single number; give an array of values.",
    ),
    "empty axis": (
        lambda: olx.grid(eta=jnp.zeros(0)),
        ValueError,
        "grid: axis `eta` is empty; give at least one value.",
    ),
    "sweep of one": (
        lambda: olx.sweep(LEARNER, losses.squared, ROUNDS, jnp.zeros(3)),
        TypeError,
        "sweep: the leaves of `learners` share no leading axis; stack a factory with "
        "`olx.batch(make, eta=etas)`, or play a single learner with `olx.run`.",
    ),
    "segment": (
        lambda: roll(segment=0),
        ValueError,
        "rollout: `segment` must be an integer of at least 1, got 0.",
    ),
    "no trace": (
        lambda: olx.certify(LEARNER, roll(), jnp.zeros(3)),
        TypeError,
        "certify: the run kept no trace; play it with record=olx.record.trace.",
    ),
    "rounds of play": (
        lambda: olx.play(olx.ogd(0.1), streams.steepest(1.0), jnp.zeros(3), 2.5),
        ValueError,
        "play: `rounds` must be an integer of at least 1, got 2.5.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_refuses(name):
    act, kind, message = REFUSALS[name]
    assert said(act, kind) == message


def _widening(hparams=None) -> olx.Learner:
    return olx.Learner(
        hparams,
        lambda hp, params: params.astype(jnp.float32),
        lambda hp, state, x: jnp.sum(state.astype(jnp.float64) * x),
        lambda hp, state, feedback: state.astype(jnp.float64),
    )


def _restructuring() -> olx.Learner:
    return olx.Learner(
        None,
        lambda hp, params: params,
        lambda hp, state, x: jnp.vdot(state, x),
        lambda hp, state, feedback: (state, state),
    )
