"""From a trained run to use: predictions, single rounds, files."""

import copy
import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from table import KINDS, TABLE

import olx

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 5))
LABELS = np.where(ROWS[:, 0] > 0, 1.0, -1.0)
ROUNDS = olx.Rounds(jnp.asarray(ROWS), jnp.asarray(LABELS))
THIN = np.where(RNG.random((40, 30)) < 0.2, RNG.normal(size=(40, 30)), 0.0)
LEARNERS = {
    "ogd": olx.linear(olx.ogd(0.1)),
    "adagrad": olx.linear(olx.ftrl(0.5, olx.regularizers.adagrad())),
    "PA-I": olx.classification.passive_aggressive_1(0.5),
    "p-norm": olx.classification.pnorm_perceptron(3.0),
    "arow, diagonal": olx.second_order.diagonal_arow(1.0),
    "arow, original": olx.second_order.arow_original(1.0),
}


def trained(learner, rows=ROWS, loss=olx.losses.hinge):
    rounds = olx.Rounds(jnp.asarray(rows), jnp.asarray(LABELS))
    return olx.rollout(learner, loss, rounds, jnp.zeros(rows.shape[1])).state


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("rows", [ROWS, THIN], ids=["dense", "thin"])
def test_predictions_are_those_of_the_learner(name, rows):
    learner = LEARNERS[name]
    state = trained(learner, rows)
    wanted = [learner.predict(state, row) for row in rows]
    np.testing.assert_allclose(olx.predict(learner, state, rows), wanted, rtol=1e-12)
    sparse = scipy.sparse.csr_array(rows)
    for given in (sparse, olx.streams.sparse_rows(sparse)):
        np.testing.assert_allclose(
            olx.predict(learner, state, given), wanted, rtol=1e-10, atol=1e-12
        )


def test_predictions_come_in_pieces(retune):
    retune(PREDICT_ROWS=16)
    learner = LEARNERS["ogd"]
    state = trained(learner)
    wanted = ROWS @ np.asarray(olx.decision(learner, state, ROWS[0]))
    for rows in (ROWS, scipy.sparse.csr_array(ROWS)):
        np.testing.assert_allclose(olx.predict(learner, state, rows), wanted, rtol=1e-12)


def test_predictions_of_several_classes_and_of_trees():
    learner = olx.linear(olx.ogd(0.1))
    weights = RNG.normal(size=(3, 5))
    np.testing.assert_allclose(
        olx.predict(learner, learner.init(jnp.asarray(weights)), ROWS), ROWS @ weights.T
    )
    sparse = scipy.sparse.csr_array(ROWS)
    np.testing.assert_allclose(
        olx.predict(learner, learner.init(jnp.asarray(weights)), sparse), ROWS @ weights.T
    )
    state = learner.init({"a": jnp.ones(2), "b": jnp.ones(3)})
    tree = {"a": ROWS[:, :2], "b": ROWS[:, 2:]}
    np.testing.assert_allclose(olx.predict(learner, state, tree), ROWS.sum(1))


def test_integers_do_not_overflow():
    learner = olx.linear(olx.ogd(0.1))
    rows = np.full((2, 4), 100, np.int8)
    state = learner.init(jnp.full(4, 10.0))
    np.testing.assert_allclose(olx.predict(learner, state, rows), [4000.0, 4000.0])


@pytest.mark.parametrize(
    ("contexts", "words"),
    [
        (ROWS[:, :4], "trained on rows of another shape"),
        (scipy.sparse.csr_array(ROWS[:, :4]), "trained on rows of another shape"),
        (np.where(np.arange(200).reshape(40, 5) == 107, np.nan, ROWS), "row 21, column 2"),
        (ROWS[:0], "`contexts` is empty"),
        (np.array("x"), "holds <U1"),
        (3.0, "is a scalar"),
        ({"a": ROWS, "b": ROWS[:3]}, "differ in length"),
        (None, "holds no array"),
    ],
)
def test_predict_refuses(contexts, words):
    learner = LEARNERS["ogd"]
    with pytest.raises((TypeError, ValueError), match=f"predict: .*{words}"):
        olx.predict(learner, learner.init(jnp.zeros(5)), contexts)


def test_predict_and_save_refuse_a_batch(tmp_path):
    batch = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.ones(2))
    with pytest.raises(TypeError, match=r"predict: `learner` is a batch.*batch\[0\]"):
        olx.predict(batch, None, ROWS)
    with pytest.raises(TypeError, match=r"save: `learner` is a batch.*batch\[0\]"):
        olx.save(tmp_path / "m", batch, None)


@pytest.mark.parametrize("name", LEARNERS)
def test_steps_are_the_rounds_of_a_run(name):
    learner = LEARNERS[name]
    run = olx.rollout(learner, olx.losses.hinge, ROUNDS, jnp.zeros(5))
    state, losses = learner.init(jnp.zeros(5)), []
    for x, y in zip(ROWS, LABELS, strict=True):
        done = olx.step(learner, olx.losses.hinge, state, x, y)
        assert isinstance(done, olx.Step)
        state, action, loss = done
        losses.append(loss)
        assert np.shape(action) == ()
    np.testing.assert_allclose(losses, run.losses, rtol=1e-12, atol=1e-12)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), state, run.state)


def test_a_step_without_a_context():
    learner, state = olx.hedge(0.5), jnp.array([0.5, 0.5])
    state = learner.init(state)
    state, action, loss = olx.step(learner, olx.losses.linear_loss, state, None, np.array([1.0, 0]))
    assert float(loss) == 0.5
    np.testing.assert_allclose(action, [0.5, 0.5])
    assert learner.predict(state)[0] < 0.5


def test_steps_compose_with_vmap_and_grad():
    loss = olx.losses.squared

    def paid(eta, x):
        learner = olx.linear(olx.ogd(eta))
        state, *_ = olx.step(learner, loss, learner.init(jnp.zeros(5)), x, 1.0)
        return olx.step(learner, loss, state, x, 1.0).loss

    each = jax.vmap(paid, (0, None))(jnp.array([0.01, 0.1]), ROUNDS.context[0])
    assert each[0] > each[1]
    assert jax.grad(paid)(0.01, ROUNDS.context[0]) < 0


@pytest.mark.parametrize(
    ("x", "y", "weight", "words"),
    [
        (np.array([1.0, np.nan, 0, 0, 0]), 1.0, 1.0, "context holds nan at entry 1"),
        (np.ones(5), 0.5, 1.0, "hinge: .*0.5"),
        (np.ones(5), 1.0, -1.0, "weight must be non-negative"),
        (np.ones(5), 1.0, np.nan, "weight"),
        (np.ones(4), 1.0, 1.0, "another shape"),
    ],
)
def test_a_step_refuses(x, y, weight, words):
    learner = LEARNERS["ogd"]
    state = learner.init(jnp.zeros(5))
    olx.step(learner, olx.losses.hinge, state, np.ones(5), 1.0)
    with pytest.raises((TypeError, ValueError), match=f"step: .*{words}"):
        olx.step(learner, olx.losses.hinge, state, x, y, weight)


@pytest.mark.parametrize("name", TABLE)
def test_a_learner_and_its_state_survive_a_file_and_a_pickle(name, tmp_path):
    learner = TABLE[name].learner
    state = learner.init(TABLE[name].params) if name in KINDS else TABLE[name].params
    olx.save(tmp_path / "one.olx", learner, state)
    other, kept = olx.load(tmp_path / "one.olx", trust=["cases"])
    copies = [other, copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    for made in copies:
        assert jax.tree.structure(made) == jax.tree.structure(learner)
        jax.tree.map(_same_bits, made, learner)
    assert jax.tree.structure(kept) == jax.tree.structure(state)
    jax.tree.map(_same_bits, kept, state)


def _same_bits(a, b):
    if hasattr(b, "dtype") and jnp.issubdtype(b.dtype, jax.dtypes.prng_key):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert np.asarray(a).dtype == np.asarray(b).dtype


def test_a_loaded_learner_goes_on_with_the_same_bits(tmp_path):
    learner = LEARNERS["adagrad"]
    half = jax.tree.map(lambda leaf: leaf[:20], ROUNDS)
    rest = jax.tree.map(lambda leaf: leaf[20:], ROUNDS)
    game = olx.losses.logistic
    first = olx.run(learner, game, half, jnp.zeros(5))
    olx.save(tmp_path / "one.olx", learner, first.state)
    other, state = olx.load(tmp_path / "one.olx")
    again = olx.run(other, game, rest, jnp.zeros(5), state=state)
    wanted = olx.run(learner, game, rest, jnp.zeros(5), state=first.state)
    assert np.asarray(again.losses).tobytes() == np.asarray(wanted.losses).tobytes()


def test_files_that_are_foreign_newer_truncated_or_damaged_are_refused(tmp_path):
    learner, path = LEARNERS["ogd"], tmp_path / "one.olx"
    olx.save(path, learner, learner.init(jnp.zeros(5)))
    whole = path.read_bytes()
    broken = {
        b"PK\x03\x04 something": "is not a file of `olx.save`",
        whole.replace(b"format 1", b"format 9", 1): "format 9.*Install a newer olx",
        whole[:-7]: "truncated or damaged",
        whole[:200] + b"?" + whole[201:]: "truncated or damaged",
        b"": "is not a file",
    }
    for content, words in broken.items():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"load: .*{words}"):
            olx.load(path)
    with pytest.raises(FileNotFoundError, match="load: there is no file"):
        olx.load(tmp_path / "none")


def test_functions_without_a_name_and_modules_without_trust_are_refused(tmp_path):
    mine = olx.linear(olx.omd(0.1, olx.mirror_map(lambda w: jnp.sum(jnp.cosh(w)))))
    with pytest.raises(TypeError, match=r"save: .*lambda.*move it to the top of a module"):
        olx.save(tmp_path / "m", mine, None)
    named = TABLE["model"].learner
    olx.save(tmp_path / "m", named, named.init(TABLE["model"].params))
    with pytest.raises(ValueError, match=r"load: .*cases:affine.*trust=\['cases'\]"):
        olx.load(tmp_path / "m")


@pytest.mark.parametrize("function", [olx.save, olx.streams.read_svmlight])
def test_a_file_cannot_name_a_function_of_files(function, tmp_path):
    learner = dataclasses.replace(LEARNERS["ogd"], predict_fn=function)
    olx.save(tmp_path / "m", learner, None)
    with pytest.raises(ValueError, match=r"load: .*is not a part of olx that makes learners"):
        olx.load(tmp_path / "m")


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "arow, diagonal"])
def test_the_decision_gives_the_scores(name):
    learner = LEARNERS[name]
    state = trained(learner)
    w = olx.decision(learner, state, ROWS[0])
    np.testing.assert_allclose(ROWS @ w, olx.predict(learner, state, ROWS), rtol=1e-10)


def test_the_decision_of_a_point_learner_is_its_action():
    learner = olx.ogd(0.1)
    assert olx.decision(learner, learner.init(jnp.ones(3))).tolist() == [1.0, 1.0, 1.0]


def test_learners_without_weights_are_refused():
    newton = olx.second_order.vaw(1.0)
    state = newton.init(jnp.zeros(5))
    state = olx.step(newton, olx.losses.squared, state, ROWS[0], 2.0).state
    with pytest.raises(TypeError, match=r"decision: .*not a linear function.*olx\.predict"):
        olx.decision(newton, state, ROWS[0])
    with pytest.raises(TypeError, match=r"decision: .*give one row"):
        olx.decision(LEARNERS["ogd"], trained(LEARNERS["ogd"]))
