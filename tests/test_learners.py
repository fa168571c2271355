"""Every learner crossed with the shared checks."""

import jax
import numpy as np
import pytest
from cases import CASES

import olx


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return CASES[request.param]


def test_it_conforms(case):
    olx.testing.check_learner(case.learner, case.loss, case.rounds, case.params, trees=case.trees)


def test_its_certificate_holds_after_every_round(case):
    run = olx.rollout(case.learner, case.loss, case.rounds, case.params, record=olx.trace)
    for u in case.comparators:
        proof = olx.certify(case.learner, run, u)
        assert proof.holds, str(proof)
        assert np.all(np.isfinite(proof.right))


DELICATE = [  # all others run in float32 in `single_precision`
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
    case = CASES[name]
    single = lambda leaf: np.asarray(leaf, np.float32)
    half = jax.tree.map(single, (case.learner, case.rounds, case.params))
    run = olx.rollout(half[0], case.loss, half[1], half[2])
    full = olx.rollout(case.learner, case.loss, case.rounds, case.params)
    assert run.losses.dtype == np.float32
    np.testing.assert_allclose(run.losses, full.losses, rtol=2e-3, atol=2e-4)
