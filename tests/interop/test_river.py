"""Learners as estimators of river: its own checks, and the numbers of `olx.rollout`."""

import copy
import importlib
import pickle
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from river import checks, datasets, evaluate, linear_model, metrics, optim, preprocessing

import olx
from olx.interop.river import OnlineClassifier, OnlineRegressor
from olx.interop.river._game import functions_of

DRAW = np.random.default_rng(0)
NAMES = ["a", "b", "c", "d", "e"]
MATRIX = DRAW.normal(size=(90, 5))
MATRIX[:20, 2:] = 0.0  # three features come later
MATRIX[40:50, 1] = 0.0  # and one is away for a while
ROWS = [{name: float(v) for name, v in zip(NAMES, row, strict=True) if v} for row in MATRIX]
WIDE = np.hstack([np.ones((90, 1)), MATRIX])
SIGNS = np.where(MATRIX[:, 0] > MATRIX[:, 1], 1.0, -1.0)
TARGET = MATRIX @ [1.0, -2.0, 0.5, 0.3, 0.0] + 3.0
THREE = np.array(["x", "y", "z"])[np.r_[np.arange(20) % 2, MATRIX[20:, :3].argmax(1)]]
OGD = olx.linear(olx.ogd(0.1))


@pytest.mark.parametrize(
    ("model", "count"), [(OnlineClassifier(OGD), 62), (OnlineRegressor(), 27)], ids=str
)
def test_the_checks_of_river_pass(model, count):
    passed = 0
    assert model._unit_test_skips() == set()
    for check in checks.yield_checks(model):
        check(model.clone())
        passed += 1
    assert passed == count


def rollout(learner, loss, outcome, start, rows=WIDE, weight=None):
    """What the learner plays in each round, and at the end on all rows."""
    rounds = olx.Rounds(jnp.asarray(rows), jnp.asarray(outcome), weight)
    run = olx.rollout(learner, loss, rounds, jnp.asarray(start), record=olx.record.actions)
    return np.asarray(run.trace), olx.predict(learner, run.state, rows)


def progressive(model, labels, ask):
    """What a model says about each row before it learns it."""
    found = []
    for x, y in zip(ROWS, labels, strict=True):
        found.append(ask(model)(x))
        model.learn_one(x, y)
    return found


LEARNERS = {
    "ogd": OGD,
    "adagrad": olx.linear(olx.first_order.adagrad(1.0)),
    "vaw": olx.second_order.vaw(1.0),
    "coin betting": olx.linear(olx.first_order.coin_betting(20.0)),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_it_plays_what_rollout_plays_while_features_come_and_go(name, monkeypatch):
    monkeypatch.setattr("olx.interop.river._rows._MOST", 16)  # rows, so that more must be learned
    learner, loss = LEARNERS[name], olx.losses.squared
    wanted, last = rollout(learner, loss, TARGET, np.zeros(6))
    model = OnlineRegressor(learner)
    found = progressive(model, TARGET, lambda model: model.predict_one)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    assert model._game.lane is not None
    np.testing.assert_allclose(model.predict_many(pandas.DataFrame(MATRIX, columns=NAMES)), last)


@pytest.fixture(scope="module")
def lasts():
    """The last scores of a binary game with weights, and those of a regressor."""
    weight = DRAW.integers(0, 3, 90).astype(float)
    learner, loss = LEARNERS["ogd"], olx.losses.logistic
    return weight, rollout(learner, loss, SIGNS, np.zeros(6), weight=jnp.asarray(weight))[1]


@pytest.mark.parametrize("most", [16, 256])
def test_rows_and_frames_with_weights_are_those_of_a_rollout(lasts, most, monkeypatch):
    monkeypatch.setattr("olx.interop.river._rows._MOST", most)
    weight, wanted = lasts
    one, many = OnlineClassifier(OGD), OnlineClassifier(OGD)
    frame = pandas.DataFrame(MATRIX, columns=NAMES)
    labels = pandas.Series(SIGNS > 0, name="sign")
    for x, y, w in zip(ROWS, SIGNS > 0, weight, strict=True):
        one.learn_one(x, y, w)
    many.learn_many(frame[NAMES[:2]][:20], labels[:20], pandas.Series(weight[:20]))
    many.learn_many(frame[20:], labels[20:], pandas.Series(weight[20:]))
    share = 1 / (1 + np.exp(-wanted))
    for model in (one, many):
        np.testing.assert_allclose(model.predict_proba_many(frame)[True], share, rtol=1e-9)
        assert (model.predict_many(frame) == (wanted > 0)).all()
        assert model.predict_proba_one(ROWS[-1])[True] == pytest.approx(share[-1])
    assert many.predict_many(frame).name == "sign"


def test_without_the_lane_it_is_the_same(monkeypatch):
    ask = lambda model: model.predict_proba_one
    quick = progressive(OnlineClassifier(OGD), SIGNS > 0, ask)
    monkeypatch.setattr("olx.interop.river._game.lane_of", lambda *_: None)
    slow = progressive(OnlineClassifier(OGD), SIGNS > 0, ask)
    assert quick[0] == slow[0] == {}
    for one, two in zip(quick[1:], slow[1:], strict=True):
        assert one == pytest.approx(two, rel=1e-9)


def test_a_round_with_a_condition_is_played_in_numpy():
    """Winnow centres its dual in rounds with a mistake only."""
    learner, loss, start = olx.classification.winnow(0.5), olx.losses.hinge, jnp.zeros(5)
    played = functions_of(learner, loss, 5)
    state = [
        leaf.item() if leaf.ndim == 0 else leaf
        for leaf in map(np.asarray, jax.tree.leaves(learner.init(start)))
    ]
    for x, y in zip(MATRIX, SIGNS, strict=True):
        state = played.calls[0](*state, y, x, *played.prepare(*state))
    wanted = olx.rollout(learner, loss, olx.Rounds(MATRIX, SIGNS), start).state
    jax.tree.map(
        lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12),
        state,
        jax.tree.leaves(wanted),
    )


def test_a_class_that_comes_later_was_known_all_the_time():
    copies = olx.multiclass.one_vs_rest(OGD, 3, loss=olx.losses.logistic)
    label = np.unique(THREE, return_inverse=True)[1]
    scores, _ = rollout(copies, olx.losses.multiclass_zero_one, label, np.zeros(6))
    model = OnlineClassifier(OGD)
    found = progressive(model, THREE, lambda model: model.predict_proba_one)
    met = int(np.argmax(THREE == "z"))
    assert met > 20
    assert set(found[met]) == {"x", "y"}
    two = 1 / (1 + np.exp(-scores[2 : met + 1, 1]))
    np.testing.assert_allclose([one["y"] for one in found[2 : met + 1]], two, rtol=1e-9)
    share = 1 / (1 + np.exp(-scores[met + 1 :]))
    share /= share.sum(1, keepdims=True)
    later = [[one[label] for label in "xyz"] for one in found[met + 1 :]]
    np.testing.assert_allclose(later, share, rtol=1e-9)
    assert model.predict_one(ROWS[0]) in {"x", "y", "z"}


def test_a_loss_of_classes_has_a_row_per_class():
    label = np.unique(THREE, return_inverse=True)[1]
    wanted, _ = rollout(OGD, olx.losses.cross_entropy, label, np.zeros((3, 6)))
    wanted = np.exp(wanted) / np.exp(wanted).sum(1, keepdims=True)
    ask = lambda model: model.predict_proba_one
    known = OnlineClassifier(OGD, olx.losses.cross_entropy, classes=("x", "y", "z"))
    found = [[one[label] for label in "xyz"] for one in progressive(known, THREE, ask)[1:]]
    np.testing.assert_allclose(found, wanted[1:], rtol=1e-9)
    later = OnlineClassifier(OGD, olx.losses.cross_entropy)
    progressive(later, THREE, ask)
    assert later.state.theta.shape == (3, 8)
    assert sum(later.predict_proba_one(ROWS[0]).values()) == pytest.approx(1.0)


def test_pickles_copies_and_clones():
    model = OnlineClassifier(OGD)
    for x, y in zip(ROWS, THREE, strict=True):
        model.learn_one(x, str(y))
    assert model._game.waiting > 0
    again, twin = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    wanted = model.predict_proba_one(ROWS[3])
    assert again.predict_proba_one(ROWS[3]) == twin.predict_proba_one(ROWS[3]) == wanted
    twin.learn_one({"new": 1.0}, "x")
    assert model.predict_proba_one(ROWS[3]) == wanted
    assert model.clone().predict_one(ROWS[3]) is None
    with jax.enable_x64(False):  # float64 is kept where JAX is in single precision
        single = pickle.loads(pickle.dumps(model))
        assert single.predict_proba_one(ROWS[3]) == pytest.approx(wanted, rel=1e-12)


def test_progressive_validation_is_that_of_river():
    theirs = linear_model.LogisticRegression(optim.SGD(0.1), intercept_lr=0.1)
    found = []
    for model in (theirs, OnlineClassifier(OGD)):
        scaled = preprocessing.StandardScaler() | model
        metric = metrics.LogLoss() + metrics.Accuracy()
        evaluate.progressive_val_score(datasets.Phishing(), scaled, metric)
        found.append([one.get() for one in metric])
    # they answer before the first label
    np.testing.assert_allclose(*found, rtol=2e-3)


@pytest.mark.parametrize("data", [datasets.TrumpApproval(), datasets.ChickWeights()], ids=repr)
def test_the_usual_regressor_beats_that_of_river_in_any_unit(data):
    theirs = preprocessing.StandardScaler() | linear_model.LinearRegression()
    rows = list(data)
    wanted = evaluate.progressive_val_score(rows, theirs, metrics.MAE()).get()
    found = evaluate.progressive_val_score(rows, OnlineRegressor(), metrics.MAE()).get()
    assert found < wanted
    units = dict(zip(rows[0][0], [1e6, 1e-6, 1e3, 1.0, 1e-3, 1e6], strict=False))
    scaled = [({name: units[name] * v for name, v in x.items()}, 1e-6 * y) for x, y in rows]
    again = evaluate.progressive_val_score(scaled, OnlineRegressor(), metrics.MAE()).get()
    assert again == pytest.approx(1e-6 * found, rel=1e-6)


def test_the_usual_classifier_has_a_smaller_loss_than_that_of_river():
    theirs = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    found = [
        evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss()).get()
        for model in (OnlineClassifier(), theirs)
    ]
    assert found[0] < found[1]


def test_another_model_of_a_kind_is_not_traced():
    predict = lambda hp, w, x: calls.append(1) or w @ x
    update = lambda hp, w, told: w - 0.1 * told.grad * told.context
    learner, calls = olx.Learner((), lambda hp, params: params, predict, update), []
    for _ in range(2):
        model, before = OnlineRegressor(learner), len(calls)
        for x in ROWS[20:24]:
            model.learn_one(x, model.predict_one(x) + 1.0)
    assert len(calls) == before > 0


def test_the_width_doubles():
    model = OnlineRegressor(OGD)
    for i in range(40):
        model.learn_one({f"x{i}": 1.0}, 1.0)
    assert model.state.theta.shape == (64,)
    assert len(model._game.table.columns) == 40


SHARES = olx.linear(olx.md(0.1, olx.mirrors.negative_entropy()))


def after(model, *rows):
    for x, y in rows:
        model.learn_one(x, y)
    return model


REFUSED = {
    "a word": (lambda: after(OnlineRegressor(), ({"a": "red"}, 1.0)), "OneHotEncoder()"),
    "a gap": (lambda: after(OnlineRegressor(), ({"a": np.nan}, 1.0)), "the feature 'a' must be a"),
    "nothing": (lambda: OnlineRegressor().predict_one({"a": None}), "got None; fill gaps"),
    "a target": (lambda: after(OnlineRegressor(), ({"a": 1.0}, np.inf)), "`y` must be a finite"),
    "a weight": (lambda: OnlineRegressor().learn_one({"a": 1.0}, 1.0, -1.0), "`w` must be non-neg"),
    "a frame": (
        lambda: OnlineRegressor().predict_many(pandas.DataFrame({"a": [1.0, np.nan]})),
        "the feature 'a' must be a finite number, got nan in row 1",
    ),
    "the number of features": (
        lambda: after(
            OnlineRegressor(olx.linear(olx.first_order.scale_invariant_adagrad(1.0))),
            ({"a": 1.0}, 1.0),
            ({"b": 1.0}, 1.0),
        ),
        "depends on the number of features; give all features in the first row",
    ),
    "the number of classes": (
        lambda: after(
            OnlineClassifier(olx.multiclass.one_vs_rest(OGD, 2), olx.losses.cross_entropy),
            ({"a": 1.0}, "x"),
            ({"a": 1.0}, "y"),
            ({"a": 1.0}, "z"),
        ),
        "`learner` is made for 2 classes, the labels are of 3",
    ),
    "a start": (lambda: OnlineRegressor(SHARES).predict_one({"a": 1.0}), "must lie in the domain"),
    "a point learner": (
        lambda: OnlineRegressor(olx.ogd(0.1)).predict_one({"a": 1.0}),
        "`learner` must predict one score, ogd(eta=0.1) gives (2,); make a",
    ),
    "divergence": (
        lambda: after(
            OnlineRegressor(olx.linear(olx.ogd(1e9))), *[({"a": 1e9}, 1.0)] * 30
        ).predict_one({"a": 1.0}),
        "the scores are not finite",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_play_is_refused_with_the_remedy(case):
    call, words = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=r"Online(Classifier|Regressor): ") as refusal:
        call()
    assert words in str(refusal.value)


def test_a_loss_without_a_link_has_no_probabilities():
    model = after(OnlineClassifier(loss=olx.losses.hinge), ({"a": 1.0}, True))
    assert model.predict_one({"a": 1.0}) is True
    with pytest.raises(NotImplementedError, match="have probabilities, the loss is"):
        model.predict_proba_one({"a": 1.0})


def test_without_river_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "olx.interop.river")
    with pytest.raises(ImportError, match="pip install river"):
        importlib.import_module("olx.interop.river")
