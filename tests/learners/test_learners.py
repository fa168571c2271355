"""Every learner crossed with the shared checks.

What does not depend on numbers or on a mirror map is checked for one row of every kind, which the
table finds by the functions of the learners: see `table.one_of_each`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from table import TABLE, algorithm, claims, one_of_each, program

import olx
from olx.testing.implementations import check_widths
from olx.testing.scale import check_scale
from olx.testing.ties import tied_rounds

SILENT = {"softmax by dual ascent"}  # one of its theorems says nothing at this step size
ALGORITHMS = [name for name in one_of_each(algorithm) if name not in SILENT]
PROGRAMS = set(one_of_each(program))
SCALE_FREE = [name for name, case in TABLE.items() if case.learner.facts.scale_free]
CLAIMS = [name for name in one_of_each(claims) if TABLE[name].learner.facts != olx.Facts()]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_conforms(name):
    learner, loss, rounds, params, comparators, trees = TABLE[name]
    olx.testing.check_learner(
        learner,
        loss,
        rounds,
        params,
        comparators=comparators,
        trees=trees,
        facts=False,  # below
        without_jit=name in PROGRAMS,
    )


@pytest.mark.parametrize("name", CLAIMS)
def test_every_implementation_of_the_engine_plays_it_as_rollout_does(name, retune):
    """With the switch to blocks at 3 configurations; `test_kit` has the measured one."""
    retune(BLOCK_CONFIGURATIONS=3)
    learner, loss, rounds, params, *_ = TABLE[name]
    check_widths(learner, loss, rounds, params)


@pytest.mark.parametrize("name", SCALE_FREE)
def test_the_unit_of_its_losses_does_not_matter(name):
    check_scale(*TABLE[name][:4])


@functools.partial(jax.jit, static_argnums=1)
def certified(learner, loss, rounds, params, comparators):
    """The losses, and the certificates of all theorems for each comparator."""
    if not learner.theorems:
        return olx.rollout(learner, loss, rounds, params).losses, None
    run = olx.rollout(learner, loss, rounds, params, record=olx.record.trace)
    return run.losses, jax.vmap(olx.certify, (None, None, 0))(learner, run, comparators)


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ALGORITHMS])
def test_the_engine_plays_it_as_rollout_does_and_its_certificate_holds_after_every_round(name):
    learner, loss, rounds, params, comparators, _ = TABLE[name]
    each = jax.tree.map(lambda *points: np.stack(points), *comparators)
    for stream in (rounds, tied_rounds(learner, loss, rounds, params)):
        wanted, proofs = certified(learner, loss, stream, params, each)
        run = olx.run(learner, loss, stream, params)
        np.testing.assert_allclose(run.losses, wanted, rtol=1e-12, atol=1e-12)
        if proofs is not None:
            assert stream is not rounds or np.all(np.isfinite(proofs[0].right))
            for i in np.flatnonzero(~proofs.holds):
                pytest.fail(str(jax.tree.map(lambda side, i=i: side[i], proofs)))


def single(tree):
    real = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32) if real(leaf) else leaf, tree)


@pytest.mark.parametrize("name", TABLE)
def test_nothing_is_promoted_to_double_precision(name):
    """Numbers of Python take the dtype of the data, whatever a factory computes from them."""
    case = TABLE[name]
    rounds, params = single((case.rounds, case.params))
    learner = single(case.learner) if name == "mix" else case.learner  # of arrays in float64
    play = lambda *given: olx.rollout(learner, case.loss, *given)
    for leaf in jax.tree.leaves(jax.eval_shape(play, rounds, params)):
        assert leaf.dtype != np.float64


DELICATE = [  # a learner of every kind is played in float32 by `single_precision`
    "hedge",
    "omd pnorm",
    "omd unseen potential",
    "omd density matrices",
    "omd floored entropy",
    "md entropy, decaying",
    "ftrl adagrad l1",
    "optimistic md entropy",
]


@pytest.mark.parametrize("name", DELICATE)
def test_float32_runs_stay_float32_and_close(name):
    case = TABLE[name]
    half = single((case.learner, case.rounds, case.params))
    play = jax.jit(lambda learner, rounds, params: olx.rollout(learner, case.loss, rounds, params))
    run, full = play(*half), play(case.learner, case.rounds, case.params)
    assert run.losses.dtype == np.float32
    np.testing.assert_allclose(run.losses, full.losses, rtol=2e-3, atol=2e-4)
