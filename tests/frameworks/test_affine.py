"""The affine lift is `linear` on rows with a feature that is always 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx.streams import sparse_rows, with_intercept

ROUNDS = olx.streams.linear_regression(jax.random.key(0), rounds=70, features=3)[0]
ROUNDS = ROUNDS._replace(outcome=ROUNDS.outcome + 2)
AFFINE, LINEAR = olx.affine(olx.ogd(0.1)), olx.linear(olx.ogd(0.1))
SQUARED, START = olx.losses.squared, jnp.zeros(4)


def actions(state, feedback):
    return feedback.action


def test_all_drivers_play_the_same_with_an_intercept():
    """Also where the engine plays it as linear: streams, sweeps and sparse rows."""
    wanted = olx.rollout(LINEAR, SQUARED, with_intercept(ROUNDS), START)
    plain = olx.rollout(AFFINE, SQUARED, ROUNDS, START)
    one = olx.run(AFFINE, SQUARED, ROUNDS, START)
    halves = [jax.tree.map(lambda x, s=s: x[s], ROUNDS) for s in (slice(35), slice(35, None))]
    cut = olx.run(AFFINE, SQUARED, iter(halves), START)
    seen = olx.run(AFFINE, SQUARED, ROUNDS, START, record=actions)
    etas = jnp.full(64, 0.1)  # so many that blocks are played
    runs = olx.sweep(
        olx.batch(lambda eta: olx.affine(olx.ogd(eta)), eta=etas), SQUARED, ROUNDS, START
    )
    rows = scipy.sparse.csr_array(np.asarray(ROUNDS.context))
    sparse = olx.run(AFFINE, SQUARED, ROUNDS._replace(context=sparse_rows(rows)), START)
    for run in (plain, one, cut, seen, sparse):
        np.testing.assert_allclose(run.losses, wanted.losses, rtol=2e-5, atol=1e-5)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5),
            run.state,
            wanted.state,
        )
    np.testing.assert_allclose(runs.losses[5], wanted.losses, rtol=2e-5, atol=1e-5)
    weights = olx.decision(AFFINE, one.state, ROUNDS.context[0])
    assert weights.shape == (4,)
    for given in (ROUNDS.context, rows):
        np.testing.assert_allclose(
            olx.predict(AFFINE, one.state, given),
            np.c_[ROUNDS.context, np.ones(70)] @ np.asarray(weights),
            rtol=1e-4,
        )


def test_its_words_are_one_line():
    assert repr(AFFINE) == "affine(ogd(eta=0.1))"


def test_a_start_without_the_intercept_is_refused():
    with pytest.raises(TypeError, match="start from one number more than there are features"):
        olx.run(AFFINE, SQUARED, ROUNDS, jnp.zeros(3), record=actions)
    with pytest.raises(TypeError, match=r"shape|\(4,\)|3"):
        olx.run(AFFINE, SQUARED, ROUNDS, jnp.zeros(3))


def test_its_score_is_the_model_of_a_comparator():
    u, x = jnp.array([1.0, 2.0, 0.5]), jnp.array([3.0, 4.0])
    assert olx.affine_dot(u, x) == 11.5
