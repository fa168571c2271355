"""Reductions whose gradients are taken elsewhere than at the decisions of the learner inside."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import reference_reductions as ref
from optax import contrib
from refusal import said

import olx
from olx.convex import sets
from olx.interop.optax import from_optax
from olx.meta import anytime, averaged, mechanic, online_to_nonconvex, rising, schedule_free

T, D = 50, 3
TARGETS = np.random.default_rng(0).normal(size=(T, D)) + 1.0
START = np.array([0.3, -0.2, 0.5])
KEY = jax.random.key(3)


def parabola(w, target):
    return jnp.sum((w - target) ** 2) / 2


def slope_at(t, w):
    return w - TARGETS[t]


def played(learner):
    rounds = olx.Rounds(None, TARGETS)
    return olx.rollout(learner, parabola, rounds, START, record=olx.record.actions)


def close(seen, wanted, rtol=1e-12):
    np.testing.assert_allclose(seen, wanted, rtol=rtol, atol=1e-12)


def test_anytime_equals_the_reference():
    wanted = ref.anytime(slope_at, START, 0.02, np.arange(1.0, T + 1) + 1)
    run = played(anytime(olx.ogd(0.02), rising()))
    close(run.trace, wanted)
    close(averaged(run.state), wanted[-1])


def test_schedule_free_equals_the_reference():
    weights = np.arange(1.0, T + 1) + 1
    actions, mean = ref.schedule_free(slope_at, START, 0.2, 0.7, weights)
    run = played(schedule_free(olx.ogd(0.2), 0.7, rising()))
    close(run.trace, actions)
    close(averaged(run.state), mean)


def test_mechanic_equals_the_reference():
    run = played(mechanic(olx.ogd(1.0), first_scale=0.01))
    close(run.trace, ref.mechanic(slope_at, START, 1.0, T, first=0.01), 1e-9)
    assert np.sum(run.state.scales) > 0.02


def test_online_to_nonconvex_equals_the_reference():
    shares = [jax.random.uniform(jax.random.fold_in(KEY, t), (), float) for t in range(T)]
    run = played(online_to_nonconvex(olx.ogd(0.5, sets.ball(1.0)), KEY))
    close(run.trace, ref.online_to_nonconvex(slope_at, START, 0.5, shares))


def trained(optimizer):
    """The params that optax trains, the last ones, and the last state."""

    def step(carry, target):
        w, state = carry
        change, state = optimizer.update(jax.grad(parabola)(w, target), state, w)
        return (optax.apply_updates(w, change), state), w

    with jax.numpy_dtype_promotion("standard"):
        start = jnp.asarray(START)
        (last, state), params = jax.lax.scan(step, (start, optimizer.init(start)), TARGETS)
    return params, last, state


def rising_rate(count):
    """The square root of `rising()`, so that the square is the weight of optax."""
    return 0.05 * jnp.sqrt(count + 1.0)


def adam(learning_rate):
    return optax.adam(learning_rate, b1=0.0)


SCHEDULE_FREE = {
    "sgd": (optax.sgd, 0.1, 0.9, 1.0),
    "adam without momentum": (adam, 0.1, 0.95, 1.0),
    "rising steps": (optax.sgd, rising_rate, 0.5, rising()),
}


@pytest.mark.parametrize("name", SCHEDULE_FREE)
def test_schedule_free_is_that_of_optax(name):
    make, rate, beta, weights = SCHEDULE_FREE[name]
    params, last, state = trained(contrib.schedule_free(make(rate), rate, b1=beta))
    run = played(schedule_free(from_optax(make, learning_rate=rate), beta, weights))
    close(run.trace, params)
    close(averaged(run.state), contrib.schedule_free_eval_params(state, last))


@pytest.mark.parametrize("make", [optax.sgd, optax.adam])
def test_mechanic_is_that_of_optax_where_its_offsets_do_not_shrink(make):
    params, _, state = trained(contrib.mechanize(make(1.0), s_init=0.01, eps=1e-30))
    base = from_optax(make, learning_rate=1.0)
    run = played(mechanic(base, first_scale=0.01, eps=1e-30))
    close(run.trace, params)
    close(run.state.scales, state.s)


def test_optax_shrinks_the_offsets_and_does_nothing_else_that_differs():
    params = trained(contrib.mechanize(optax.sgd(1.0)))[0]
    wanted = ref.mechanic(slope_at, START, 1.0, T, shrinks=True)
    close(params, wanted, 1e-9)
    close(played(mechanic(olx.ogd(1.0))).trace, ref.mechanic(slope_at, START, 1.0, T), 1e-9)
    assert np.abs(wanted - ref.mechanic(slope_at, START, 1.0, T)).max() > 1e-4


def test_on_one_loss_the_left_sides_are_about_the_last_mean():
    rounds = olx.Rounds(None, np.tile(TARGETS[0], (T, 1)))
    game = parabola, rounds, START, TARGETS[0]
    learner = anytime(olx.ogd(0.02), rising())
    x = averaged(olx.rollout(learner, *game[:3]).state)
    total = T * (T + 1) / 2 + T
    close(olx.certify(learner, *game)[0].left[-1], total * parabola(x, TARGETS[0]))
    learner = schedule_free(olx.ogd(0.2))
    x = averaged(olx.rollout(learner, parabola, olx.Rounds(None, rounds.outcome[1:]), START).state)
    both = (T - 1) * parabola(x, TARGETS[0]) + parabola(START, TARGETS[0])
    close(olx.certify(learner, *game)[0].left[-1], both)


def test_points_are_uniform_on_a_step():
    constant = lambda hp, params: params + 1.0
    same = olx.Learner(None, constant, lambda hp, w, x: w, lambda hp, w, feedback: w)

    def point(key):
        learner = online_to_nonconvex(same, key)
        return learner.predict(learner.init(jnp.zeros(())))

    points = np.sort(jax.vmap(point)(jax.random.split(KEY, 4000)))
    even = (np.arange(4000) + 0.5) / 4000
    assert np.abs(points - even).max() < 1.95 / np.sqrt(4000)  # Kolmogorov-Smirnov, 0.1%


def waves(w, noise):
    """Neither convex nor smooth."""
    return jnp.sum(jnp.cos(3 * w) + jnp.abs(w)) / 3 + jnp.vdot(noise, w)


def test_the_mean_of_gradients_near_each_other_is_small():
    """The bound of the module, from the certificate of the best step in hindsight."""
    length, radius = 400, 0.02
    learner = online_to_nonconvex(olx.ogd(0.003, sets.ball(radius)), KEY)
    game = waves, olx.Rounds(None, np.zeros((length, D))), START
    points = olx.rollout(learner, *game, record=olx.record.actions).trace
    total = jnp.sum(jax.vmap(jax.grad(waves))(points, game[1].outcome), axis=0)
    u = -radius * total / jnp.linalg.norm(total)
    proof = olx.certify(learner, *game, u)[0]
    assert proof.holds
    x = olx.rollout(learner, *game).state.x
    bound = waves(START, jnp.zeros(D)) - waves(x, jnp.zeros(D)) + proof.right[-1]
    assert radius * jnp.linalg.norm(total) <= bound + 1e-9
    assert jnp.linalg.norm(total) / length < 0.5 * jnp.linalg.norm(
        jax.grad(waves)(START, 0 * START)
    )


REFUSALS = {
    "no learner": (lambda: anytime(0.1), TypeError, "anytime: `inner` must be a Learner"),
    "a step size": (
        lambda: anytime(olx.ogd(0.1), olx.schedules.decay(1.0)),
        TypeError,
        "anytime: `weights` must give a weight",
    ),
    "beta": (
        lambda: schedule_free(olx.ogd(0.1), 1.5),
        ValueError,
        "schedule_free: `beta` must lie in [0, 1]",
    ),
    "a predictor": (
        lambda: schedule_free(olx.linear(olx.ogd(0.1))).init(START),
        TypeError,
        "schedule_free: `inner` must decide without a context",
    ),
    "a scale": (
        lambda: mechanic(olx.ogd(1.0), first_scale=0.0),
        ValueError,
        "mechanic: `first_scale` must be positive",
    ),
    "no key": (
        lambda: online_to_nonconvex(olx.ogd(0.1), 3),
        TypeError,
        "online_to_nonconvex: `key` must be",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_makes_no_sense_is_refused(name):
    act, kind, message = REFUSALS[name]
    assert message in said(act, kind)
