"""The library against second implementations written from the papers."""

import jax.numpy as jnp
import numpy as np
import pytest
import references as ref
from jax import random

import olx
from olx import convex, losses, mirrors, regularizers, schedules, streams
from olx.convex import sets

T, D = 300, 6
REGRESSION, _ = streams.linear_regression(random.key(1), rounds=T, features=D)
X, Y = np.asarray(REGRESSION.context), np.asarray(REGRESSION.outcome)
EXPERTS, _ = streams.expert_losses(random.key(2), rounds=T, experts=D)
LOSSES = np.asarray(EXPERTS.outcome)
SLOPE = ref.squared_slope(X, Y)
ZEROS, UNIFORM = np.zeros(D), np.full(D, 1 / D)
same = lambda v: v


def decisions_of(learner, params):
    keep = lambda state, feedback: learner.hparams.inner.predict(state, feedback.context)
    return olx.rollout(learner, losses.squared, REGRESSION, jnp.asarray(params), record=keep).trace


def actions_of(learner, params):
    rounds = olx.Rounds(None, EXPERTS.outcome)
    run = olx.rollout(
        learner, losses.linear_loss, rounds, jnp.asarray(params), record=olx.record.actions
    )
    return run.trace


REGRESSIONS = {
    "lazy gradient descent": (
        olx.omd(0.05, mirrors.euclidean()),
        ref.lazy_gradient(ZEROS, 0.05, same, T, SLOPE),
        ZEROS,
    ),
    "lazy on a ball": (
        olx.omd(0.3, mirrors.euclidean(sets.ball(0.7))),
        ref.lazy_gradient(ZEROS, 0.3, lambda v: ref.ball(v, 0.7), T, SLOPE),
        ZEROS,
    ),
    "lazy on the simplex": (
        olx.omd(0.1, mirrors.euclidean(sets.simplex())),
        ref.lazy_gradient(UNIFORM, 0.1, ref.simplex, T, SLOPE),
        UNIFORM,
    ),
    "projected on a ball, shrinking": (
        olx.md(schedules.decay(0.5), mirrors.euclidean(sets.ball(0.7))),
        ref.projected_gradient(
            ZEROS, lambda t: 0.5 / np.sqrt(t), lambda v: ref.ball(v, 0.7), T, SLOPE
        ),
        ZEROS,
    ),
    "projected on the simplex": (
        olx.ogd(0.1, sets.simplex()),
        ref.projected_gradient(UNIFORM, lambda t: 0.1, ref.simplex, T, SLOPE),
        UNIFORM,
    ),
    "dual averaging, fixed quadratic": (
        olx.ftrl(0.05, regularizers.composite(convex.l1(0.1), rate=0.05, power=0.0)),
        ref.dual_averaging_l1(D, 0.05, 0.1, 0.0, T, SLOPE),
        ZEROS,
    ),
    "dual averaging, growing quadratic": (
        olx.ftrl(0.5, regularizers.composite(convex.l1(0.1), rate=0.5)),
        ref.dual_averaging_l1(D, 0.5, 0.1, 0.5, T, SLOPE),
        ZEROS,
    ),
    "adagrad with l1": (
        olx.ftrl(0.5, regularizers.adagrad(convex.l1(0.05), 0.3, rate=0.5)),
        ref.adagrad_l1(D, 0.5, 0.3, 0.05, T, SLOPE),
        ZEROS,
    ),
    "p-norm": (
        olx.ftrl(0.05, mirrors.pnorm(1.3)),
        ref.pnorm_descent(D, 0.05, 1.3, T, SLOPE),
        ZEROS,
    ),
    "optimistic": (
        olx.optimistic(0.03, mirrors.euclidean()),
        ref.optimistic_gradient(D, 0.03, T, SLOPE),
        ZEROS,
    ),
    "optimistic, projected": (
        olx.optimistic_md(0.1, mirrors.euclidean(sets.ball(0.7))),
        ref.optimistic_projected(ZEROS, 0.1, lambda v: ref.ball(v, 0.7), T, SLOPE),
        ZEROS,
    ),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_decisions_equal_the_reference(name):
    inner, wanted, start = REGRESSIONS[name]
    np.testing.assert_allclose(decisions_of(olx.linear(inner), start), wanted, atol=1e-10)


@pytest.mark.parametrize("factor", [1.0, 7.0])
def test_hedge_equals_the_reference(factor):
    start = factor * jnp.asarray(UNIFORM)  # weights need not sum to 1
    np.testing.assert_allclose(
        actions_of(olx.hedge(0.8), start), ref.hedge(LOSSES, 0.8), atol=1e-12
    )


def test_multiplicative_updates_equal_the_reference():
    learner = olx.md(schedules.decay(2.0, 1.0), mirrors.negative_entropy())
    wanted = ref.multiplicative(UNIFORM, lambda t: 2.0 / t, T, ref.linear_slope(LOSSES))
    np.testing.assert_allclose(actions_of(learner, UNIFORM), wanted, atol=1e-11)


def test_an_update_need_not_be_a_gradient():
    """Vovk-Azoury-Warmuth: f_t holds x_t before it predicts, and z_t = y_t x_t."""

    def toward_label(feedback):
        return feedback.outcome * feedback.context

    gram = olx.Process(
        2.0,
        lambda a, params: a * jnp.eye(params.size),
        lambda a, matrix, feedback: matrix + jnp.outer(feedback.context, feedback.context),
        lambda a, matrix, x: mirrors.full_quadratic(matrix + jnp.outer(x, x)),
        gives="regularizer",
    )
    learner = olx.linear(olx.ftrl(1.0, gram, toward_label))
    run = olx.rollout(learner, losses.squared, REGRESSION, jnp.zeros(D), record=olx.record.actions)
    np.testing.assert_allclose(run.trace, ref.vovk_azoury_warmuth(X, Y, 2.0), atol=1e-10)
    traced = olx.rollout(learner, losses.squared, REGRESSION, jnp.zeros(D), record=olx.record.trace)
    assert olx.certify(learner, traced, jnp.ones(D)).holds
