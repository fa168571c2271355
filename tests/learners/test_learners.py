"""Every learner crossed with the shared checks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from table import EACH, TABLE

import olx
from olx.testing.implementations import check_widths
from olx.testing.ties import tied_rounds


@pytest.mark.parametrize("name", EACH)
def test_it_conforms(name):
    learner, loss, rounds, params, comparators, trees = TABLE[name]
    olx.testing.check_learner(learner, loss, rounds, params, comparators=comparators, trees=trees)


def takes_another_form(learner):
    return learner.facts != olx.Facts()


FORMS = [
    name for name, case in TABLE.items() if name not in EACH and takes_another_form(case.learner)
]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_the_engine_plays_it_as_rollout_does(name):
    learner, loss, rounds, params, *_ = TABLE[name]
    check_widths(learner, loss, rounds, params)


@functools.partial(jax.jit, static_argnums=(1, 2))
def certified(learner, loss, is_judged, rounds, params, comparators):
    """The losses, and the certificates of all theorems for each comparator, if they are judged."""
    record = olx.record.trace if is_judged else None
    run = olx.rollout(learner, loss, rounds, params, record=record)
    if not is_judged:
        return run.losses, None
    return run.losses, jax.vmap(olx.certify, (None, None, 0))(learner, run, comparators)


ALSO = [name for name in TABLE if name not in EACH or name in quick.LEARNERS]  # the kit has `EACH`


@pytest.mark.parametrize("name", ALSO)
def test_the_engine_plays_it_as_rollout_does_and_its_certificate_holds_after_every_round(name):
    learner, loss, rounds, params, comparators, _ = TABLE[name]
    each = jax.tree.map(lambda *points: np.stack(points), *comparators)
    is_judged = bool(learner.theorems) and name not in EACH
    for stream in (rounds, tied_rounds(learner, loss, rounds, params)):
        wanted, proofs = certified(learner, loss, is_judged, stream, params, each)
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
