"""Learners as estimators of scikit-learn: its own checks, and the numbers of `olx.run`."""

import collections
import dataclasses
import pickle

import jax
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import olx
from olx.interop.sklearn import (
    BoostedClassifier,
    ExpertRegressor,
    OnlineClassifier,
    OnlineRegressor,
    OnlineSearchCV,
    _game,
)

DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(60, 3))
SIGNS = np.where(ROWS[:, 0] > ROWS[:, 1], 1.0, -1.0)
WORDS = np.array(["left", "right"])[(SIGNS > 0).astype(int)]
THREE = np.array(["x", "y", "z"])[ROWS.argmax(1)]
WEIGHT = DRAW.integers(0, 3, 60).astype(float)
LEARNER = olx.linear(olx.ogd(0.5))
ORDER = "the result of an online learner depends on the order of its rows, which this check changes"
UNEQUAL = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}


@pytest.mark.filterwarnings("ignore")  # the checks give bad data on purpose
@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor, ExpertRegressor])
def test_the_checks_of_scikit_learn_pass(kind):
    done = check_estimator(kind(), expected_failed_checks=UNEQUAL, on_skip=None, on_fail=None)
    bad = {one["check_name"]: one["exception"] for one in done if one["status"] == "failed"}
    assert bad == {}
    count = collections.Counter(one["status"] for one in done)
    assert count["passed"] >= 50
    assert count["xfail"] == sum(one["check_name"] in UNEQUAL for one in done) > 0
    skipped = {one["check_name"] for one in done if one["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # it needs SCIPY_ARRAY_API


@pytest.fixture(scope="module")
def fitted():
    return OnlineClassifier(LEARNER).fit(ROWS, WORDS, WEIGHT)


def played(learner, loss, outcome, start, rows=ROWS):
    """The scores after one run."""
    run = olx.run(learner, loss, olx.Rounds(rows, outcome, WEIGHT), start)
    return olx.predict(learner, run.state, rows)


def test_the_scores_are_those_of_a_run(fitted):
    wanted = played(olx.affine(olx.ogd(0.5)), olx.losses.logistic, SIGNS, np.zeros(4))
    np.testing.assert_allclose(fitted.decision_function(ROWS), wanted, atol=1e-12)
    assert (fitted.predict(ROWS) == np.where(wanted > 0, "right", "left")).all()
    share = fitted.predict_proba(ROWS)
    np.testing.assert_allclose(share[:, 1], 1 / (1 + np.exp(-wanted)), atol=1e-12)
    np.testing.assert_allclose(share.sum(1), 1.0, atol=1e-12)


def test_parts_and_sparse_rows_and_a_pickle_give_the_same(fitted):
    parts = OnlineClassifier(LEARNER)
    for here in (slice(0, 25), slice(25, 60)):
        part = scipy.sparse.csr_array(ROWS[here])
        parts.partial_fit(part, WORDS[here], ["right", "left"], WEIGHT[here])
    wanted = fitted.decision_function(ROWS)
    np.testing.assert_allclose(parts.decision_function(ROWS), wanted, atol=1e-12)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(ROWS), wanted)


OWN = dataclasses.replace(olx.first_order.normalized_betting(), name="own")
AROW = olx.second_order.arow(1.0)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (OnlineClassifier(), WORDS),
        (OnlineClassifier(AROW), WORDS),
        (OnlineClassifier(olx.second_order.diagonal_arow(1.0)), THREE),
        (OnlineClassifier(LEARNER, olx.losses.cross_entropy), THREE),
        (BoostedClassifier(AROW), WORDS),
        (OnlineRegressor(), SIGNS),
        (OnlineRegressor(olx.second_order.vaw(1.0)), SIGNS),
    ],
    ids=str,
)
def test_the_sparse_tag_says_what_the_learner_takes(model, target):
    rows = scipy.sparse.csr_array(ROWS)
    if get_tags(model).input_tags.sparse:
        model.fit(rows, target)
    else:
        with pytest.raises(TypeError, match="this one needs dense rows"):
            model.fit(rows, target)


def test_rows_in_many_pieces_give_the_same(fitted, monkeypatch):
    monkeypatch.setattr(_game, "_PIECE", 7)
    model = OnlineClassifier(LEARNER).fit(ROWS, WORDS, WEIGHT)
    found = model.decision_function(ROWS)
    np.testing.assert_allclose(found, fitted.decision_function(ROWS), atol=1e-12)


def test_float64_is_kept_where_jax_is_in_single_precision(fitted):
    with jax.enable_x64(False):
        single = OnlineClassifier(LEARNER).fit(ROWS, WORDS, WEIGHT)
        found = pickle.loads(pickle.dumps(single)).decision_function(ROWS)
    np.testing.assert_allclose(found, fitted.decision_function(ROWS), atol=1e-12)
    small = OnlineClassifier(LEARNER).fit(ROWS.astype(np.float32), WORDS, WEIGHT)
    assert small.decision_function(ROWS).dtype == np.float32


@pytest.mark.parametrize("loss", [olx.losses.logistic, olx.losses.cross_entropy], ids=repr)
def test_more_than_two_classes(loss):
    model = OnlineClassifier(LEARNER, loss, fit_intercept=False).fit(ROWS, THREE, WEIGHT)
    found, share = model.decision_function(ROWS), model.predict_proba(ROWS)
    label = ROWS.argmax(1)
    if loss.of_classes:
        wanted = played(LEARNER, loss, label, np.zeros((3, 3)))
        expected = np.exp(wanted)
    else:
        copies = olx.multiclass.one_vs_rest(LEARNER, 3, loss=loss)
        wanted = played(copies, olx.losses.multiclass_zero_one, label, np.zeros(3))
        expected = 1 / (1 + np.exp(-wanted))
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(share, expected / expected.sum(1, keepdims=True), atol=1e-12)
    assert (model.predict(ROWS) == np.array(["x", "y", "z"])[wanted.argmax(1)]).all()


def test_a_loss_of_classes_on_two_classes():
    model = OnlineClassifier(LEARNER, olx.losses.cross_entropy).fit(ROWS, WORDS)
    score = model.decision_function(ROWS)
    assert score.shape == (60,)
    np.testing.assert_allclose(model.predict_proba(ROWS)[:, 1], 1 / (1 + np.exp(-score)))
    assert model.score(ROWS, WORDS) > 0.9


def test_a_regressor_plays_what_run_plays_in_every_pass():
    target = ROWS @ [1.0, -2.0, 0.5] + 3.0
    learner, loss = olx.affine(olx.ogd(0.1)), olx.losses.squared
    twice = olx.Rounds(np.tile(ROWS, (2, 1)), np.tile(target, 2))
    run = olx.run(learner, loss, twice, np.zeros(4))
    model = OnlineRegressor(learner, loss, passes=2).fit(ROWS, target)
    np.testing.assert_allclose(
        model.predict(ROWS), olx.predict(learner, run.state, ROWS), atol=1e-12
    )


def test_it_works_in_the_tools_of_scikit_learn():
    scaler = StandardScaler().set_output(transform="pandas")
    pipe = make_pipeline(scaler, OnlineClassifier(LEARNER))
    assert cross_val_score(pipe, ROWS, WORDS, cv=3).min() > 0.7
    grid = {"onlineclassifier__learner": [olx.linear(olx.ogd(eta)) for eta in (1e-9, 0.5)]}
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(ROWS, WORDS)
    assert search.best_index_ == 1
    assert list(search.best_estimator_[-1].feature_names_in_) == ["x0", "x1", "x2"]
    copied = clone(OnlineClassifier(LEARNER, olx.losses.hinge, passes=3))
    assert copied.passes == 3
    assert not hasattr(copied, "predict_proba")


@pytest.mark.parametrize(
    ("model", "target", "shape"),
    [
        (OnlineRegressor(LEARNER), SIGNS, (3,)),
        (OnlineRegressor(), np.stack([SIGNS, 2 * SIGNS + 1], 1), (2, 3)),
        (OnlineRegressor(fit_intercept=False), SIGNS, (3,)),
        (OnlineClassifier(), WORDS, (1, 3)),
        (OnlineClassifier(), THREE, (3, 3)),
        (OnlineClassifier(LEARNER, olx.losses.cross_entropy), WORDS, (1, 3)),
    ],
    ids=str,
)
def test_the_weights_give_the_scores(model, target, shape):
    model = clone(model).fit(ROWS, target)
    assert model.coef_.shape == shape
    assert np.shape(model.intercept_) == shape[:-1]
    found = model.decision_function(ROWS) if hasattr(model, "classes_") else model.predict(ROWS)
    wanted = ROWS @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(found, wanted.reshape(found.shape), atol=1e-9)


def test_what_is_not_linear_has_no_weights():
    assert not hasattr(OnlineRegressor(), "coef_")
    for learner in (olx.second_order.vaw(1.0), olx.first_order.normalized_adagrad(0.5)):
        model = OnlineRegressor(learner).fit(100 * ROWS, SIGNS)
        with pytest.raises(AttributeError, match="no weights: the score"):
            _ = model.coef_


def test_several_outputs_are_learned_one_by_one():
    target = np.stack([ROWS @ [1.0, -2.0, 0.5], ROWS[:, 0] - 1.0], 1)
    model = OnlineRegressor(LEARNER).fit(ROWS[:30], target[:30], WEIGHT[:30])
    model.partial_fit(ROWS[30:], target[30:], WEIGHT[30:])
    for found, own in zip(model.predict(ROWS).T, target.T, strict=True):
        alone = OnlineRegressor(LEARNER).fit(ROWS, own, WEIGHT)
        np.testing.assert_allclose(found, alone.predict(ROWS), atol=1e-12)
    with pytest.raises(ValueError, match="one column, that of the first call was a matrix of 2"):
        model.partial_fit(ROWS, target[:, 0])


def test_class_weights_are_weights_of_the_rows():
    by_label = {"left": 2.0, "right": 0.5}
    weight = np.array([by_label[word] for word in WORDS])
    wanted = OnlineClassifier(LEARNER).fit(ROWS, WORDS, WEIGHT * weight).coef_
    model = OnlineClassifier(LEARNER, class_weight=by_label).fit(ROWS, WORDS, WEIGHT)
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-12)
    balanced = OnlineClassifier(LEARNER, class_weight="balanced")
    weight = 60 / (2 * np.array([np.sum(word == WORDS) for word in WORDS]))
    wanted = OnlineClassifier(LEARNER).fit(ROWS, WORDS, weight).coef_
    np.testing.assert_allclose(balanced.fit(ROWS, WORDS).coef_, wanted, atol=1e-12)


def test_numbers_of_a_learner_are_parameters():
    model = OnlineRegressor(LEARNER, olx.losses.huber(1.0))
    assert model.get_params()["learner__eta"] == 0.5
    model.set_params(learner__eta=0.25, loss__delta=2.0, passes=2)
    assert str(model.learner) == str(ogd(0.25))
    assert (str(model.loss), model.passes) == (str(olx.losses.huber(2.0)), 2)
    nested, wanted = (
        olx.linear(olx.ftrl(0.5, olx.regularizers.adagrad(delta=delta))) for delta in (0.1, 0.2)
    )
    for changed in (
        OnlineRegressor(nested).set_params(learner__delta=0.2),
        OnlineRegressor(nested).set_params(learner__inner__regularizer__delta=0.2),
    ):
        assert str(changed.learner) == str(wanted)


def test_a_grid_over_a_number_compiles_once():
    compiled = []
    listen = lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    search = GridSearchCV(OnlineRegressor(ogd(0.1)), {"learner__eta": [1e-9, 0.05]}, cv=2)
    search.fit(ROWS, SIGNS)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        search.set_params(param_grid={"learner__eta": [1e-8, 0.1, 0.2, 0.3]}).fit(ROWS, SIGNS)
        assert not compiled
        olx.run(ogd(0.1), olx.losses.hinge, olx.Rounds(ROWS, SIGNS), np.zeros(3), progress=False)
        assert compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert search.best_params_["learner__eta"] >= 0.1


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter_without_a_learner(unit):
    units, target = unit ** np.array([1.0, -1.0, 0.5]), ROWS @ [1.0, -2.0, 0.5] + 3.0
    model = OnlineRegressor().fit(ROWS, target)
    found = OnlineRegressor().fit(units * ROWS, unit * target).predict(units * ROWS)
    np.testing.assert_allclose(found / unit, model.predict(ROWS), rtol=1e-9)
    scores = OnlineClassifier().fit(units * ROWS, WORDS).decision_function(units * ROWS)
    wanted = OnlineClassifier().fit(ROWS, WORDS).decision_function(ROWS)
    np.testing.assert_allclose(scores, wanted, rtol=1e-9)


def test_wide_rows_have_a_learner_without_a_matrix():
    rows = np.hstack([ROWS] * 400)
    model = OnlineClassifier().fit(rows, WORDS)
    assert str(model.learner_) == "normalized_betting()"
    assert model.score(rows, WORDS) > 0.9


REFUSED = {
    "no number 'rate' in linear.ogd": lambda: OnlineRegressor(LEARNER).set_params(learner__rate=1),
    "`eta` must be positive": lambda: OnlineRegressor(LEARNER).set_params(learner__eta=-1.0),
    "`learner` must be a Learner, got None": lambda: OnlineRegressor().set_params(learner__eta=1.0),
    "no public factory makes": lambda: OnlineRegressor(OWN).set_params(learner__wealth=1.0),
    "class_weight has the label 'up'": lambda: OnlineClassifier(class_weight={"up": 1.0}).fit(
        ROWS, WORDS
    ),
    'must be a dictionary, "balanced" or': lambda: OnlineClassifier(class_weight="even").fit(
        ROWS, WORDS
    ),
    "counts the rows of all classes": lambda: OnlineClassifier(class_weight="balanced").partial_fit(
        ROWS, WORDS, ["left", "right"]
    ),
    "must be a loss of one score": lambda: BoostedClassifier(loss=olx.losses.cross_entropy).fit(
        ROWS, WORDS
    ),
    "`axes` holds no configuration": lambda: OnlineSearchCV(
        OnlineRegressor(), olx.ogd, {"eta": []}
    ).fit(ROWS, SIGNS),
    "`estimator` must be": lambda: OnlineSearchCV(StandardScaler(), olx.ogd, {}).fit(ROWS, SIGNS),
    "needs labels of at least 2 classes": lambda: OnlineClassifier().fit(ROWS, np.ones(60)),
    "classes must be given in the first": lambda: OnlineClassifier().partial_fit(ROWS, WORDS),
    "'right' is none of the classes": lambda: OnlineClassifier().partial_fit(
        ROWS[:1], WORDS[WORDS == "right"][:1], ["left", "up"]
    ),
    "`passes` must be an integer": lambda: OnlineRegressor(passes=0).fit(ROWS, SIGNS),
    "`learner` must be a Learner": lambda: OnlineRegressor("ogd").fit(ROWS, SIGNS),
    "plays an intercept, but": lambda: OnlineRegressor(
        olx.affine(olx.ogd(0.1)), fit_intercept=False
    ).fit(ROWS, SIGNS),
    "`learner` is made for 4 classes": lambda: OnlineClassifier(
        olx.multiclass.one_vs_rest(LEARNER, 4), olx.losses.multiclass_hinge
    ).fit(ROWS, THREE),
    "the learner diverged": lambda: (
        OnlineRegressor(olx.linear(olx.ogd(1e30))).fit(ROWS, SIGNS).predict(ROWS)
    ),
}


@pytest.mark.parametrize("match", REFUSED)
def test_refusals_say_what_is_wrong(match):
    with pytest.raises((TypeError, ValueError), match=match):
        REFUSED[match]()


def test_classes_must_stay(fitted):
    with pytest.raises(ValueError, match="are not those of the first call"):
        clone(fitted).fit(ROWS, WORDS).partial_fit(ROWS, WORDS, ["up", "left"])


def ogd(eta):
    return olx.linear(olx.ogd(eta))


@pytest.mark.parametrize("labels", [WORDS, THREE], ids=["two", "three"])
def test_a_grid_in_one_sweep_scores_as_one_fit_after_the_other(labels):
    etas = [1e-9, 0.05, 0.5]
    model = OnlineClassifier(passes=2)
    one = OnlineSearchCV(model, ogd, {"eta": etas}, cv=3).fit(ROWS, labels, WEIGHT)
    other = GridSearchCV(model, {"learner": [ogd(eta) for eta in etas]}, cv=3)
    other.fit(ROWS, labels, sample_weight=WEIGHT)
    for name in ("mean_test_score", "std_test_score", "rank_test_score", "split1_test_score"):
        np.testing.assert_allclose(one.cv_results_[name], other.cv_results_[name], atol=1e-12)
    assert one.best_params_ == {"eta": etas[other.best_index_]}
    found, wanted = one.predict_proba(ROWS), other.predict_proba(ROWS)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_configuration_that_diverges_is_never_the_best():
    search = OnlineSearchCV(OnlineRegressor(), ogd, {"eta": [1e30, 0.01]}, cv=2)
    search.fit(ROWS, SIGNS)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]
    assert search.cv_results_["rank_test_score"].tolist() == [2, 1]
    assert search.best_params_ == {"eta": 0.01}
    with pytest.raises(ValueError, match="every configuration diverged"):
        clone(search).set_params(axes={"eta": [1e30, 1e31]}).fit(ROWS, SIGNS)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e4])
def test_a_mixture_of_forecasts_does_not_depend_on_the_unit(unit):
    truth = ROWS[:, 0]
    forecasts = truth[:, None] + ROWS * [0.0, 0.1, 2.0]
    learner = olx.linear(olx.experts.linearized(olx.experts.adahedge(low=-100.0, high=100.0)))
    rounds = olx.Rounds(forecasts, truth)
    wanted = olx.run(learner, olx.losses.squared, rounds, np.ones(3) / 3).state
    model = ExpertRegressor().partial_fit(unit * forecasts[:20], unit * truth[:20])
    model.partial_fit(unit * forecasts[20:], unit * truth[20:])
    weights = olx.predict(learner, wanted, np.eye(3))
    np.testing.assert_allclose(model.weights_, weights, atol=1e-7)
    np.testing.assert_allclose(model.predict(forecasts), forecasts @ weights, atol=1e-6)
    assert model.weights_.argmax() == 0


def test_a_boosted_classifier_plays_what_run_plays():
    voters = olx.boosting.boost(
        olx.affine(olx.ogd(0.5)), 3, olx.boosting.adaboost_ol(), loss=olx.losses.logistic
    )
    wanted = played(voters, olx.losses.logistic, SIGNS, np.zeros(4))
    model = BoostedClassifier(LEARNER, n=3).fit(ROWS, WORDS, WEIGHT)
    np.testing.assert_allclose(model.decision_function(ROWS), wanted, atol=1e-12)
    parts = BoostedClassifier(LEARNER, n=3)
    for here in (slice(0, 25), slice(25, 60)):
        parts.partial_fit(ROWS[here], WORDS[here], ["left", "right"], WEIGHT[here])
    assert (parts.predict(ROWS) == model.predict(ROWS)).all()
    assert model.classes_.tolist() == ["left", "right"]
    assert not hasattr(model, "predict_proba")
