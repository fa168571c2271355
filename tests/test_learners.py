"""Every learner crossed with the shared checks."""

import jax
import numpy as np
import pytest
from table import TABLE

import olx

# Numbers or a map handed to the functions of another row, which is looked at instead.
ALIKE = {
    "omd box",
    "omd simplex",
    "omd hypentropy",
    "omd orthant entropy",
    "omd binary entropy",
    "omd unseen conjugate",
    "omd floored entropy",
    "omd tsallis",
    "omd log barrier",
    "omd schatten",
    "md entropy, decaying",
    "ftrl constant",
    "ftrl growing",
    "ftrl adagrad",
    "ftrl leader",
    "optimistic adagrad",
    "optimistic md entropy",
    "p-norm perceptron",
    "winnow",
    "winnow, positive orthant",
    "winnow, balanced",
    "dual ascent, structured",
    "PA",
    "PA-II",
    "romma, aggressive",
    "EG",
    "log regret",
    "rda",
    "adagrad",
    "self-confident, entropy",
    "ada normal hedge, exponent",
}


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ALIKE])
def test_it_conforms(name):
    learner, loss, rounds, params, _, trees = TABLE[name]
    olx.testing.check_learner(learner, loss, rounds, params, trees=trees)


PROVED = [name for name, case in TABLE.items() if case.learner.bound_fn is not None]


@pytest.mark.parametrize("name", PROVED)
def test_its_certificate_holds_after_every_round(name):
    learner, loss, rounds, params, comparators, _ = TABLE[name]
    play = jax.jit(lambda rounds: olx.rollout(learner, loss, rounds, params, record=olx.trace))
    run = play(rounds)
    for u in comparators:
        proof = olx.certify(learner, run, u)
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
    case = TABLE[name]
    single = lambda leaf: np.asarray(leaf, np.float32)
    half = jax.tree.map(single, (case.learner, case.rounds, case.params))
    run = olx.rollout(half[0], case.loss, half[1], half[2])
    full = olx.rollout(case.learner, case.loss, case.rounds, case.params)
    assert run.losses.dtype == np.float32
    np.testing.assert_allclose(run.losses, full.losses, rtol=2e-3, atol=2e-4)
