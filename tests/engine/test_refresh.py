"""A learner that changes its coordinates now and then plays the same in every driver."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx import losses, streams

WIDTH, LENGTH = 21, 60


class Folded(NamedTuple):
    z: Any  # the weights are `scale` times `z`
    scale: Any
    folds: Any  # how often the scale was multiplied into z


def init(hp, params):
    return Folded(params, jnp.ones((), params.dtype), jnp.zeros((), params.dtype))


def decide(hp, state, context):
    return state.scale * state.z


def descend(hp, state, feedback):
    """Gradient descent with weight decay: every round makes all weights smaller by one factor."""
    scale = state.scale * (1 - hp["decay"])
    z = state.z - hp["eta"] * feedback.weight * feedback.grad / scale
    return Folded(z, scale, state.folds)


def small(hp, state):
    return state.scale < hp["least"]


def fold(hp, state, sums):
    return Folded(state.scale * state.z, jnp.ones_like(state.scale), state.folds + 1)


FACTS = olx.Facts(coordinates=olx.facts.Refreshed(), refresh=olx.facts.Refresh(small, fold))


def decaying(eta, least=0.8):
    numbers = {"eta": eta, "decay": 0.3 * eta, "least": least}
    return olx.Learner(numbers, init, decide, descend, facts=FACTS)


def score(hp, state, x):
    return jnp.vdot(state.scale * state.z, x)


def descend_rows(hp, state, feedback):
    return descend(hp, state, feedback._replace(grad=feedback.grad * feedback.context))


def predictor(eta):
    return dataclasses.replace(decaying(eta), predict_fn=score, update_fn=descend_rows)


def lifted(eta):
    return olx.linear(decaying(eta))


MAKERS = {"predictor": predictor, "lifted": lifted}
DRAW = np.random.default_rng(0)
DENSE = DRAW.normal(size=(LENGTH, WIDTH)) * (DRAW.uniform(size=(LENGTH, WIDTH)) < 0.2)
OUTCOME = DENSE @ np.linspace(-1, 1, WIDTH)
WEIGHT = np.arange(LENGTH) % 3 * 0.5
ROUNDS = olx.Rounds(DENSE, OUTCOME, WEIGHT)
SPARSE = ROUNDS._replace(context=streams.sparse_rows(scipy.sparse.csr_array(DENSE)))
START = jnp.linspace(-1, 1, WIDTH)
ETAS = jnp.geomspace(0.02, 0.3, 5)


def rollout(learner, rounds=ROUNDS):
    return jax.jit(lambda learner: olx.rollout(learner, losses.squared, rounds, START))(learner)


def same(seen, wanted, rtol=1e-12):
    parts = lambda run: (run.losses, run.state)
    compare = lambda a, b: np.testing.assert_allclose(a, b, rtol, rtol)
    jax.tree.map(compare, parts(seen), parts(wanted))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("rounds", [ROUNDS, SPARSE], ids=["dense", "sparse"])
def test_it_is_played_as_rollout_plays_it(name, rounds):
    learner = MAKERS[name](0.3)
    wanted = rollout(learner)
    assert wanted.state.folds > 3
    same(olx.run(learner, losses.squared, rounds, START), wanted)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("rounds", [ROUNDS, SPARSE], ids=["dense", "sparse"])
def test_each_configuration_of_a_sweep_is_refreshed_when_it_is_due(name, rounds):
    learners = jax.vmap(MAKERS[name])(ETAS)
    wanted = jax.vmap(rollout)(learners)
    assert len(set(wanted.state.folds.tolist())) > 2
    same(olx.sweep(learners, losses.squared, rounds, START), wanted)


@pytest.mark.parametrize("count", [1, 6, 15])
def test_every_row_of_a_table_is_refreshed_once(count):
    x = DENSE[:, :count]
    rows = streams.sparse_rows(scipy.sparse.csr_array(x))
    play = lambda context: olx.run(
        predictor(0.3), losses.squared, olx.Rounds(context, OUTCOME), START[:count]
    )
    same(play(rows), play(x))


def test_a_refresh_changes_predictions_by_rounding_only():
    often, never = (olx.linear(decaying(0.3, least)) for least in (0.99, 0.0))
    seen, wanted = rollout(often), rollout(never)
    assert seen.state.folds > 10
    assert wanted.state.folds == 0
    np.testing.assert_allclose(seen.losses, wanted.losses, rtol=1e-10)


@pytest.mark.parametrize("rounds", [ROUNDS, SPARSE], ids=["dense", "sparse"])
def test_a_run_in_pieces_ends_in_the_same_bits(rounds):
    cut = lambda low, high: jax.tree.map(lambda leaf: leaf[low:high], rounds)
    whole = olx.run(lifted(0.3), losses.squared, rounds, START)
    first = olx.run(lifted(0.3), losses.squared, cut(0, 31), START)
    last = olx.run(lifted(0.3), losses.squared, cut(31, LENGTH), START, state=first.state)
    jax.tree.map(np.testing.assert_array_equal, last.state, whole.state)
    np.testing.assert_array_equal(np.r_[first.losses, last.losses], whole.losses)


def test_the_total_loss_is_differentiable():
    total = lambda eta: rollout(lifted(eta)).losses.sum()
    slope = jax.grad(total)(0.3)
    np.testing.assert_allclose(slope, (total(0.3 + 1e-6) - total(0.3 - 1e-6)) / 2e-6, rtol=1e-6)


def test_a_wrapper_refreshes_what_it_wraps():
    members = jax.vmap(decaying)(ETAS)
    learner = olx.linear(olx.meta.mix(members, olx.hedge(1.0)))
    run = olx.run(learner, losses.squared, ROUNDS, START)
    assert run.state.experts.folds.max() > 3
    same(run, rollout(learner))
    with pytest.raises(TypeError, match="this one needs dense rows"):
        olx.run(learner, losses.squared, SPARSE, START)


def test_facts_that_exclude_each_other_are_refused():
    with pytest.raises(TypeError, match="must pass it on"):
        olx.Facts(coordinates=FACTS.coordinates)
    for others in ({"coordinates": olx.facts.Rowwise()}, {"adds": olx.facts.AddsGradient(small)}):
        with pytest.raises(TypeError, match="a learner with a `refresh` changes all coordinates"):
            olx.Facts(refresh=FACTS.refresh, **others)


def test_it_conforms():
    rounds = olx.Rounds(DENSE[:24, :4], OUTCOME[:24])
    olx.testing.check_learner(lifted(0.1), losses.squared, rounds, START[:4], trees=False)


def squares(hp, state):
    """The sum of the squares of z, over all coordinates."""
    return jnp.vdot(state.z, state.z)


def fold_known(hp, state, sums):
    """Keep the sum in `folds`: it must be that of all coordinates, also on sparse rows."""
    return Folded(state.scale * state.z, jnp.ones_like(state.scale), sums)


def test_a_refresh_knows_sums_over_all_coordinates():
    facts = olx.Facts(
        coordinates=olx.facts.Refreshed(), refresh=olx.facts.Refresh(small, fold_known, squares)
    )
    learner = dataclasses.replace(decaying(0.2), facts=facts)
    dense = np.random.default_rng(3).normal(size=(LENGTH, WIDTH))
    dense[np.random.default_rng(4).random(dense.shape) < 0.7] = 0.0
    labels, start = np.sign(dense[:, 0] + 0.1), jnp.ones(WIDTH) / 7
    wanted = olx.rollout(olx.linear(learner), losses.squared, olx.Rounds(dense, labels), start)
    rows = streams.sparse_rows(scipy.sparse.csr_array(dense))
    seen = olx.run(olx.linear(learner), losses.squared, olx.Rounds(rows, labels), start)
    assert wanted.state.folds > 0
    np.testing.assert_allclose(seen.state.folds, wanted.state.folds, rtol=1e-12)
    np.testing.assert_allclose(seen.losses, wanted.losses, rtol=1e-12, atol=1e-12)
