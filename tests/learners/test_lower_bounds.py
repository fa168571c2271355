"""What no learner can avoid, and what learners promise against nature at its worst."""

import functools
from math import comb

import jax
import numpy as np
import pytest

import olx
from olx import mirrors, schedules
from olx.convex import sets
from olx.first_order.coin_betting import coin_betting, coordinate_betting
from olx.first_order.ftrl_proximal import ftrl_proximal
from olx.first_order.self_confident import self_confident
from olx.first_order.strongly_convex import strongly_convex_ogd

T, RUNS = 100, 4000
INTERVAL = mirrors.euclidean(sets.box(-1.0, 1.0))
LEAST = T * comb(T, T // 2) / 2**T  # E |sum of T signs|

quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
LEARNERS = {
    "descent": olx.md(schedules.decay(1.0), INTERVAL),
    "lazy": olx.omd(T**-0.5, INTERVAL),
    "optimistic": olx.optimistic(T**-0.5, INTERVAL),
    "self-confident": self_confident(INTERVAL, 0.5),
}


@functools.cache
def played(name):
    """The loss of the learner and the sum of signs, in every run."""
    learner = LEARNERS[name]

    @quick
    def one(key):
        run = olx.play(learner, olx.streams.random_signs(key), np.zeros(1), T)
        return run.total, run.rounds.outcome.sum()

    keys = jax.random.split(jax.random.key(0), RUNS)
    return tuple(map(np.asarray, jax.vmap(one)(keys)))


@pytest.mark.parametrize("name", LEARNERS)
def test_random_signs_force_the_regret_of_theorem_3(name):
    """The expected loss is 0 whatever is played, and the better end of the interval gains |sum|:
    within four standard errors, so for another seed a failure has a chance of 3e-5."""
    total, signs = played(name)
    regret = total + np.abs(signs)
    assert abs(np.mean(total)) <= 4 * np.std(total) / np.sqrt(RUNS)
    assert np.mean(regret) >= LEAST - 4 * np.std(regret) / np.sqrt(RUNS)


@pytest.mark.parametrize("name", ["descent", "lazy", "self-confident"])
def test_what_is_forced_is_within_a_constant_of_what_is_promised(name):
    """Gradient descent with a tuned step promises 1.5 sqrt(T) at most to either end."""
    total, signs = played(name)
    assert np.max(total + np.abs(signs)) <= 2 * np.sqrt(T)
    assert np.mean(total + np.abs(signs)) > 0.35 * 2 * np.sqrt(T)


def test_the_expected_size_of_a_sum_of_signs_is_about_a_root():
    np.testing.assert_allclose(LEAST, np.sqrt(2 * T / np.pi), rtol=0.01)


PROMISES = {
    "coin betting": (coin_betting, 1.0),
    "coordinate betting": (coordinate_betting, 1.0),
    "ftrl proximal": (lambda number: ftrl_proximal(number, 1.0, 0.1, 0.1), 1.0),
    "self-confident": (
        lambda number: self_confident(mirrors.euclidean(sets.ball(2.0)), number, 1e-3),
        2.0,
    ),
    "strongly convex": (strongly_convex_ogd, 1.0),
}


@pytest.mark.parametrize("name", PROMISES)
def test_bounds_hold_when_nature_plays_steepest(name):
    """Against linear losses of length 1 along the decision itself, for three numbers each."""
    make, first = PROMISES[name]
    us = np.stack([np.zeros(4), np.full(4, -0.5), np.eye(4)[0]])

    @quick
    def one(learner):
        nature = olx.streams.steepest(1.0)
        run = olx.play(learner, nature, np.zeros(4), T, record=olx.record.trace)
        return jax.vmap(lambda u: olx.certify(learner, run, u)[0])(us)

    learners = [make(number * first) for number in (1.0, 2.0, 4.0)]
    proofs = jax.vmap(one)(jax.tree.map(lambda *numbers: np.stack(numbers), *learners))
    assert np.all(proofs.holds)
    assert np.all(np.isfinite(proofs.right))
    assert np.max(proofs.tightness) > 0.3
