"""Bad numbers in a round: `olx.step` and `olx.predict` refuse each of them in words."""

import jax
import jax.numpy as jnp
import numpy as np
import planted
import pytest
from table import TABLE

import olx

NAMES = [
    "omd euclidean",
    "hedge",
    "newton, random projection",
    "PA-I",
    "bandit",
    "multiclass PA-I",
    "structured perceptron",
    "structured, self-tuned, indices",
    "boost, potential",
]


@pytest.fixture(autouse=True)
def usual_promotion():
    """Users mix 32 and 64 bits."""
    with jax.numpy_dtype_promotion("standard"):
        yield


UNKNOWN = {"nan at 0", "nan at 3", "half precision"}  # a bandit need not know all losses


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", NAMES)
def test_no_bad_number_passes(name):
    case = TABLE[name]
    plants = [("step", *plant) for plant in planted.of_step(case)]
    if case.rounds.context is not None:
        plants += [("predict", *plant) for plant in planted.of_predict(case)]
    known = {f"outcome: leaf 0, {word}" for word in UNKNOWN} if name == "bandit" else set()
    assert len(plants) >= 27
    for owner, plant, call in plants:
        if plant not in known:
            with pytest.raises((TypeError, ValueError), match=f"^{owner}: "):
                pytest.fail(f"{owner} takes {plant}: {call()}")


LINE = olx.linear(olx.ogd(0.1))
STATE = LINE.init(jnp.zeros(2, jnp.float32))


ROW = np.ones(2)


def step(x=ROW, y=1.0, weight=1.0, learner=LINE):
    return olx.step(learner, olx.losses.squared, STATE, x, y, weight)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"x": np.ma.masked_array(np.ones(2), [True, False])}, "context is a masked array"),
        ({"x": np.array([1.0, 1e39])}, "context holds 1e\\+39 at entry 1, .* fit into float32"),
        ({"y": 1e39}, "outcome holds 1e\\+39, .* fit into float32; rescale it, or start from"),
        ({"weight": 1e39}, "weight holds 1e\\+39, .* fit into float32"),
        ({"weight": np.ones(2)}, "weight has shape \\(2,\\); give one number"),
        ({"y": np.array(1.0, np.longdouble)}, "outcome holds float128, which JAX does not have"),
        ({"x": np.ones(2, ">f4")}, "context holds >f4, which JAX does not have; cast it"),
    ],
)
def test_a_later_round_is_refused_as_the_first(given, words):
    step()
    with pytest.raises((TypeError, ValueError), match=f"^step: {words}"):
        step(**given)


def test_a_number_that_changes_in_place_is_read_again():
    eta = np.array(0.1)
    learner = olx.linear(olx.ogd(eta))
    seen = [step(learner=learner).state.theta[0]]
    eta[()] = 0.2
    seen.append(step(learner=learner).state.theta[0])
    np.testing.assert_allclose(seen, [0.1, 0.2], rtol=1e-6)


def test_half_precision_is_looked_at_in_every_driver():
    rounds = olx.Rounds(np.ones((2, 2)), np.array([1.0, np.nan]).astype(jnp.bfloat16))
    for play in (olx.run, olx.rollout):
        with pytest.raises(ValueError, match=r"rounds.outcome holds nan at row 1; clean it"):
            play(LINE, olx.losses.squared, rounds, jnp.zeros(2))


@pytest.mark.parametrize("outcome", [np.array([0.0, np.nan]), np.array([0.0, 1.0])], ids=str)
def test_classes_are_integers(outcome):
    rounds = olx.Rounds(np.ones((2, 2)), outcome)
    with pytest.raises(ValueError, match="labels must be integers"):
        olx.run(
            olx.multiclass.perceptron(),
            olx.losses.cross_entropy,
            rounds,
            jnp.zeros((2, 2)),
        )


def test_predict_and_save_inside_jit_are_refused_in_words(tmp_path):
    rows = jnp.ones((3, 2))
    inside = "cannot be called inside jit, vmap or grad"
    with pytest.raises(TypeError, match=f"predict: .*{inside}.*jax.vmap"):
        jax.jit(lambda rows: olx.predict(LINE, STATE, rows))(rows)
    with pytest.raises(TypeError, match=f"save: .*{inside}"):
        jax.jit(lambda state: olx.save(tmp_path / "one.olx", LINE, state))(STATE)


def test_structures_are_played_step_by_step():
    for name in ("structured perceptron", "structured, self-tuned, indices"):
        case = TABLE[name]
        wanted = olx.rollout(*case[:4])
        state, losses = case.learner.init(case.params), []
        for t in range(3):
            one = jax.tree.map(lambda leaf, t=t: np.asarray(leaf)[t], case.rounds)
            state, _, paid = olx.step(case.learner, case.loss, state, one.context, one.outcome)
            losses.append(paid)
        np.testing.assert_allclose(losses, wanted.losses[:3], rtol=1e-12)
