"""Boosted learners in configs: nested tables, rules, counts, keys and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx import boosting
from olx.boosting.gradient_boost import update
from olx.core import Learner
from olx.lab import names
from olx.lab.config import ConfigError, parse
from olx.lab.data import load
from olx.lab.jobs import learner_job
from olx.lab.listing import listing
from olx.lab.run import run

INNER = {"name": "normalized_adagrad", "eta": 0.5}
BBM = {"name": "online_bbm", "gamma": 0.1}
BOOST = {"name": "boost_scores", "n": 3, "inner": INNER, "rule": BBM}
CANCER = {"name": "sklearn:breast_cancer"}


def column(table, name):
    return np.array(table.column(name).to_pylist())


def test_a_config_boosts_on_real_data(tmp_path):
    grid = {"n": [3, 5], "rule.gamma": [0.1, 0.2], "inner.eta": [0.1, 1.0]}
    learner = {**BOOST, "inner": {"name": "normalized_adagrad"}, "rule": "online_bbm"}
    learner = {name: value for name, value in learner.items() if name != "n"} | {"grid": grid}
    tree = {"data": [CANCER], "learners": [learner], "baseline": False}
    tree |= {"protocol": "split", "metrics": ["error"]}
    tree |= {"precision": "float64", "loss": "modified_huber"}
    rows = run(parse({**tree, "models": False}), tmp_path / "r").configurations
    assert len(rows) == 8
    data = load("sklearn:breast_cancer", seed=0)
    cut = round(0.8 * len(data))
    weak = olx.first_order.normalized_adagrad(1.0)  # the fourth configuration
    strong = boosting.boost_scores(weak, 3, boosting.online_bbm(0.2))
    rounds = data.rounds(np.float64)
    rounds = rounds._replace(weight=np.where(np.arange(len(data)) < cut, 1.0, 0.0))
    start = jnp.zeros(data.width)
    wanted = olx.run(strong, olx.losses.modified_huber, rounds, start, record=olx.record.actions)
    wrong = np.asarray(wanted.trace) * rounds.outcome <= 0
    assert column(rows, "error")[3] == pytest.approx(wrong[:cut].mean(), rel=1e-12)
    assert column(rows, "test_error")[3] == pytest.approx(wrong[cut:].mean(), rel=1e-12)
    assert column(rows, "error").max() < 0.25


def test_the_three_base_learners_of_gradient_boosting_are_made():
    linear = {"name": "clipped", "inner": INNER, "bound": 2.0}
    stumps = {"name": "regression_stumps", "inner": INNER}
    network = {"name": "sigmoid_network", "inner": {"name": "adagrad", "eta": 0.1}, "key": 0}
    for inner in (linear, stumps, network):
        text = {"name": "gradient_boost", "inner": inner, "n": 3, "eta": 0.5, "loss": "squared"}
        made = names.make("learners.0", text, Learner)
        assert made.update_fn is update
        assert made.hparams.n == 3


def test_a_booster_takes_its_own_loss_or_none():
    own = names.make("learners.0", {**BOOST, "loss": "hinge"}, Learner)
    assert own.hparams.loss.value_fn is olx.losses.hinge.value_fn
    assert names.make("learners.0", BOOST, Learner).hparams.loss is None


def test_every_seed_has_other_keys_and_seed_0_those_of_the_config():
    table = {**BOOST, "rule": "adaboost_ol", "key": 7}
    each = learner_job(0, parse({"data": [CANCER], "learners": [table]}).learners[0])
    keys = [each.on(each.data, seed, {}).parts[0].first().hparams.key for seed in (0, 1, 2)]
    bits = {tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in keys}
    assert len(bits) == 3
    assert jnp.array_equal(jax.random.key_data(keys[0]), jax.random.key_data(jax.random.key(7)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rule": "online_bmm"}, "no boosting rule called 'online_bmm'; did you mean boosting.onl"),
        ({"rule": {"name": "online_bbm", "gama": 0.1}}, "rule.gama: online_bbm has no such argum"),
        ({"rule": {"name": "online_bbm", "gamma": 0.7}}, "`gamma` must lie"),
        ({"rule": 0.1}, "learners.0.rule: expected the name of a boosting rule, got 0.1"),
        ({"inner": "normalised_adagrad"}, "did you mean first_order.normalized_adagrad?"),
        ({"n": 2.5}, "learners.0.n: expected a whole number, got 2.5"),
        ({"n": 0}, "`n` must be an integer of at least 1, got 0"),
    ],
    ids=["rule", "argument", "range", "number", "inner", "fraction", "none"],
)
def test_a_typo_is_refused_with_the_nearest_name(changes, said):
    with pytest.raises(ConfigError) as refused:
        names.make("learners.0", {**BOOST, **changes}, Learner)
    assert said in str(refused.value)


def test_the_list_shows_boosters_and_rules():
    rules = listing("rules")
    assert "boosting.online_bbm" in rules
    assert "boosting.osboost_ocp" in rules
    assert "boosting.boost_scores" in listing("learners")


def test_test_rows_may_be_sparse(tmp_path):
    source = np.random.default_rng(0)
    x = scipy.sparse.random_array((60, 30), density=0.1, rng=source, format="csr")
    y = np.where(np.asarray(x.sum(1)).reshape(-1) > 1.4, 1.0, -1.0)
    np.savez(
        tmp_path / "rows.npz", data=x.data, indices=x.indices, indptr=x.indptr, shape=x.shape, y=y
    )
    tree = {"data": [{"name": str(tmp_path / "rows.npz")}], "learners": [BOOST], "baseline": False}
    tree |= {"protocol": "split", "precision": "float64", "loss": "modified_huber"}
    dense = run(parse({**tree, "models": False}), tmp_path / "dense").configurations
    sparse = run(
        parse({**tree, "models": False, "budget": {"memory": 1e-3}}), tmp_path / "sparse"
    ).configurations
    for name in ("loss", "test_loss", "test_error"):
        np.testing.assert_allclose(column(sparse, name), column(dense, name), rtol=1e-10)
