"""Batch boosters against references, scikit-learn, their theorems and a published table."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_boosting as reference
import scipy.sparse
from stored import FOLDER, needs

import olx
from olx import boosting, losses

RNG = np.random.default_rng(3)
ROWS = (RNG.random((80, 8)) < 0.5).astype(float)
LABELS = np.where(ROWS[:, 0] + ROWS[:, 1] + ROWS[:, 2] + RNG.normal(size=80) > 1.5, 1.0, -1.0)
REAL = np.round(RNG.uniform(-1, 1, (60, 4)), 1)  # with ties
REAL_LABELS = np.where(REAL @ [1, 0.6, -0.5, 0.0] + 0.3 * RNG.normal(size=60) > 0, 1.0, -1.0)
UNIFORM = jnp.full(80, 1 / 80)
ROUNDS = 25

RULES = {
    "majority": (boosting.majority(0.05), lambda x, y, T: reference.majority(x, y, T, 0.05)),
    "adaboost": (boosting.adaboost(), reference.adaboost),
    "capped": (boosting.adaboost(0.2), lambda x, y, T: reference.adaboost(x, y, T, 0.2)),
    "gentleboost": (boosting.gentleboost(), reference.gentleboost),
    "nh_boost": (boosting.nh_boost(), reference.nh_boost),
    "nh_boost_dt": (boosting.nh_boost_dt(), reference.nh_boost_dt),
}


def logged(weak, rows):
    """The same weak learner, and the list of the weights that it was given."""
    seen = []

    def fit(weights, labels):
        seen.append(weights.copy())
        return weak.fit(weights, labels)

    return boosting.weak_learner(fit, lambda h, _: weak.predict(h, weak.rows), rows), seen


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_that_of_its_paper_in_every_round(name):
    learner, plain = RULES[name]
    wanted = plain(ROWS, LABELS, ROUNDS)
    weak, weights = logged(boosting.stumps(ROWS), ROWS)
    got = boosting.boost_with(learner, weak, LABELS, ROUNDS)
    stumps = [(stump.feature, stump.sign) for stump in got.ensemble.hypotheses]
    assert stumps == wanted.descriptions
    np.testing.assert_allclose(np.array(weights), wanted.weights, atol=1e-12)
    np.testing.assert_allclose(got.ensemble.coefficients, wanted.alphas, rtol=1e-9)
    np.testing.assert_allclose(got.edges, wanted.edges, atol=1e-12)
    np.testing.assert_array_equal(got.errors, wanted.errors)
    np.testing.assert_allclose(got.zeros, wanted.zeros, atol=1e-12)
    margins = boosting.boost_with(learner, boosting.stumps(ROWS), LABELS, ROUNDS).ensemble.margins
    np.testing.assert_allclose(margins(ROWS, LABELS), wanted.margins, atol=1e-9)


@pytest.mark.parametrize("cap", [None, 0.3])
def test_the_line_search_finds_the_best_coefficient_of_real_hypotheses(cap):
    wanted = reference.line_search(REAL, REAL_LABELS, 12, cap)
    weak = lambda weights: reference.real_feature(REAL, REAL_LABELS, weights)[0]
    got = boosting.boost_with(boosting.line_search(cap), weak, REAL_LABELS, 12)
    np.testing.assert_allclose(got.ensemble.coefficients, wanted.alphas, rtol=1e-8)
    np.testing.assert_allclose(got.edges, wanted.edges, atol=1e-9)


def test_the_line_search_is_adaboost_for_hypotheses_of_signs():
    weak = boosting.stumps(ROWS)
    both = [
        boosting.boost_with(rule(), weak, LABELS, 10).ensemble.coefficients
        for rule in (boosting.adaboost, boosting.line_search)
    ]
    np.testing.assert_allclose(*both, rtol=1e-8)


def plus(_, score, y):
    return jnp.maximum(score, 0.0)


def plus_conjugate(_, tau, y):
    return jnp.where((tau >= 0) & (tau <= 1), 0.0, jnp.inf)


@pytest.mark.parametrize(
    ("learner", "ascent"),
    [
        (boosting.majority(0.1), olx.ascents.subgradient()),
        (boosting.adaboost(0.2), olx.ascents.aggressive()),
    ],
    ids=["majority", "capped adaboost"],
)
def test_a_rule_of_the_thesis_is_dual_ascent_with_the_entropy(learner, ascent):
    boosted = boosting.boost_with(learner, boosting.stumps(ROWS), LABELS, 12)
    v = boosted.ensemble.rounds(ROWS, LABELS).outcome
    loss = losses.ScoreLoss(value_fn=plus, conjugate_fn=plus_conjugate)
    dual = olx.dual_ascent(0.2, olx.mirrors.negative_entropy(), loss, ascent)
    run = olx.rollout(dual, loss, olx.Rounds(v, jnp.ones(12)), UNIFORM)
    np.testing.assert_allclose(run.losses, 2 * boosted.edges, rtol=1e-7)


def mirrored():
    """Rows that come with their complement and the other label: Gini and error agree on these."""
    rows = (RNG.random((100, 9)) < 0.5).astype(float)
    labels = np.where(rows[:, :4].sum(1) + RNG.normal(size=100) > 2, 1.0, -1.0)
    return np.vstack([rows, 1 - rows]), np.r_[labels, -labels]


def test_adaboost_is_that_of_scikit_learn_in_every_round():
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    rows, labels = mirrored()
    tree = DecisionTreeClassifier(max_depth=1)
    peer = AdaBoostClassifier(tree, n_estimators=20, random_state=0).fit(rows, labels)
    weak, weights = logged(boosting.stumps(rows), rows)
    got = boosting.boost_with(boosting.adaboost(), weak, labels, 20)
    np.testing.assert_allclose(2 * got.ensemble.coefficients, peer.estimator_weights_, rtol=1e-9)
    np.testing.assert_allclose(0.5 - got.edges, peer.estimator_errors_, atol=1e-12)
    own = np.full(len(labels), 1 / len(labels))
    for t, stage in enumerate(peer.estimators_):
        np.testing.assert_allclose(weights[t], own, rtol=1e-9)
        stump = got.ensemble.hypotheses[t]
        assert np.array_equal(stage.predict(rows), weak.predict(stump, rows))
        own = own * np.exp(peer.estimator_weights_[t] * (stage.predict(rows) != labels))
        own = own / own.sum()
    assert np.array_equal(got.ensemble.predict(rows), peer.predict(rows))


@pytest.mark.parametrize("name", ["adaboost", "nh_boost", "nh_boost_dt", "any experts"])
def test_the_game_against_the_weak_learner_is_certified_in_every_round(name):
    learner = boosting.booster(olx.experts.adahedge()) if name not in RULES else RULES[name][0]
    nature = boosting.adversary(boosting.stumps(ROWS), LABELS)
    run = olx.play(learner, nature, UNIFORM, ROUNDS, record=olx.record.trace)
    wrong = jnp.where(jnp.sum(run.rounds.outcome, axis=0) <= 0, 1.0, 1e-9)
    proofs = olx.certify(learner, run, wrong / wrong.sum())
    assert proofs.holds, str(proofs)
    driven = boosting.boost_with(learner, boosting.stumps(ROWS), LABELS, ROUNDS)
    np.testing.assert_allclose(run.losses, 2 * driven.edges, atol=1e-12)


def test_a_batch_of_boosters_plays_the_weak_learner_and_a_bad_one_shows_alone():
    nature = boosting.adversary(boosting.stumps(ROWS), LABELS)
    batch = olx.batch(boosting.majority, gamma=jnp.array([0.05, 0.7, 0.2]))
    runs = jax.vmap(lambda learner: olx.play(learner, nature, UNIFORM, 6))(batch.learners)
    for i, gamma in ((0, 0.05), (2, 0.2)):
        alone = boosting.boost_with(boosting.majority(gamma), boosting.stumps(ROWS), LABELS, 6)
        np.testing.assert_allclose(runs.losses[i], 2 * alone.edges, atol=1e-12)
    assert np.all(np.isnan(runs.losses[1, 1:]))


@pytest.mark.parametrize(
    "inner", [olx.hedge(0.5), olx.experts.squint(), olx.experts.fixed_share(0.5, 0.01)]
)
def test_any_learner_of_experts_is_a_booster(inner):
    weak, weights = logged(boosting.stumps(ROWS), ROWS)
    boosted = boosting.boost_with(inner, weak, LABELS, 30)
    assert np.mean(boosted.errors[-5:]) < boosted.errors[0]
    told = (1 + boosted.ensemble.rounds(ROWS, LABELS).outcome) / 2
    run = olx.rollout(
        inner, losses.linear_loss, olx.Rounds(None, told), UNIFORM, record=olx.record.actions
    )
    np.testing.assert_allclose(run.trace, weights, atol=1e-12)


def proofs_of(name, rounds=ROUNDS, **options):
    learner, plain = RULES[name]
    wanted = plain(ROWS, LABELS, rounds)
    game = olx.Rounds(None, LABELS * wanted.h)
    loss = losses.linear_loss
    return wanted, olx.certify(learner, loss, game, UNIFORM, UNIFORM, **options)


@pytest.mark.parametrize("name", ["adaboost", "gentleboost"])
def test_the_training_error_is_below_its_bound_after_every_round(name):
    run, proofs = proofs_of(name)
    loss, _, bound = reference.exponential_loss(run, LABELS)
    error, log_loss = proofs["training_error"], proofs["exponential_loss"]
    np.testing.assert_allclose(error.left, np.mean(LABELS * run.votes <= 0, axis=1), atol=1e-12)
    np.testing.assert_allclose(error.right, loss, rtol=1e-9)
    np.testing.assert_allclose(jnp.exp(log_loss.right), bound, rtol=1e-9)
    least = np.minimum.accumulate(run.edges)
    published = np.exp(-2 * least**2 * np.arange(1, ROUNDS + 1))
    np.testing.assert_allclose(error.published, published, rtol=1e-9)
    assert proofs.holds, str(proofs)
    assert error.right[-1] < 0.95


@pytest.mark.parametrize("name", ["majority", "capped"])
def test_a_promised_edge_is_a_condition(name):
    run, proofs = proofs_of(name)
    gamma = 0.05 if name == "majority" else 0.1
    kept = np.minimum.accumulate(run.edges) >= gamma
    assert 3 < kept.sum() < ROUNDS
    error = proofs["training_error"]
    assert np.array_equal(np.isfinite(error.right), kept)
    rounds = np.arange(1, ROUNDS + 1)[kept]
    np.testing.assert_allclose(error.published[kept], np.exp(-2 * gamma**2 * rounds), rtol=1e-9)
    assert "every edge must be at least" in str(error)
    assert proofs.holds, str(proofs)


@pytest.mark.parametrize("theta", [0.0, 0.05, -0.2])
def test_the_margins_of_nh_boost_dt_are_those_of_theorem_3(theta):
    theorems = (olx.theorems.margins(theta),)
    run, (proof,) = proofs_of("nh_boost_dt", 60, theorems=theorems)
    assert proof.holds, str(proof)
    left, right = reference.theorem3(run, theta)
    np.testing.assert_allclose(proof.left[-1], left, atol=1e-12)
    np.testing.assert_allclose(proof.published[-1], right, rtol=1e-9)


def test_margins_are_about_nh_boost_dt_only():
    with pytest.raises(TypeError, match="nh_boost_dt"):
        proofs_of("adaboost", theorems=(olx.theorems.margins(0.0),))


def test_first_weights_of_examples_are_kept():
    first = RNG.random(80)
    weak, weights = logged(boosting.stumps(ROWS), ROWS)
    boosting.boost_with(boosting.gentleboost(), weak, LABELS, 2, weights=first)
    np.testing.assert_allclose(weights[0], first / first.sum(), rtol=1e-12)


@pytest.mark.parametrize("mixed", [False, True])
def test_stumps_on_real_features_are_the_best_of_all_thresholds(mixed):
    noisy = (REAL_LABELS + 2 * RNG.normal(size=60) > 0).astype(float)
    rows = np.column_stack([REAL[:, 1], noisy, REAL, 1 - noisy]) if mixed else REAL
    weak, chosen = boosting.stumps(rows), set()
    for _ in range(20):
        weights = RNG.dirichlet(np.ones(60))
        weights[RNG.random(60) < 0.3] = 0.0
        h, description = reference.real_stump(rows, REAL_LABELS, weights)
        stump = weak.fit(weights, REAL_LABELS)
        assert stump == pytest.approx(description)
        assert np.array_equal(weak.predict(stump, rows), h)
        chosen.add(stump.feature)
    assert len(chosen) > 1


def test_stumps_are_the_same_on_dense_and_sparse_rows():
    sparse = scipy.sparse.csr_array(ROWS)
    forms = [ROWS, sparse, scipy.sparse.coo_array(ROWS), olx.streams.sparse_rows(sparse)]
    all_of = [
        boosting.boost_with(boosting.adaboost(), boosting.stumps(rows), LABELS, 8).ensemble
        for rows in forms
    ]
    for ensemble, rows in zip(all_of, forms, strict=True):
        assert ensemble.hypotheses == all_of[0].hypotheses
        assert np.array_equal(ensemble.votes(rows), all_of[0].votes(ROWS))
    moved = jax.tree.map(lambda leaf: leaf, all_of[0])
    assert np.array_equal(moved.predict(sparse), all_of[0].predict(ROWS))


def test_neighbour_values_have_a_threshold_between_them():
    close = np.nextafter(1.0, 2.0)
    weak = boosting.stumps(np.array([[1.0], [close]]))
    stump = weak.fit(np.full(2, 0.5), np.array([-1.0, 1.0]))
    assert weak.predict(stump, weak.rows).tolist() == [-1.0, 1.0]


def test_the_errors_of_an_ensemble_are_those_of_its_votes():
    boosted = boosting.boost_with(boosting.nh_boost_dt(), boosting.stumps(ROWS), LABELS, 9)
    ensemble = boosted.ensemble
    np.testing.assert_array_equal(ensemble.errors(ROWS, LABELS), boosted.errors)
    again = pickle.loads(pickle.dumps(ensemble))
    assert np.array_equal(again.votes(ROWS), ensemble.votes(ROWS))
    short = ensemble.first(4)
    assert np.mean(short.predict(ROWS) != LABELS) == boosted.errors[3]
    assert len(short) == 4


def test_it_stops_when_the_edge_is_gone():
    weak = lambda weights: ROWS[:, 0] * 2 - 1  # has no edge after one round
    boosted = boosting.boost_with(boosting.adaboost(), weak, LABELS, 20)
    assert len(boosted.ensemble) <= 3
    assert "edge" in boosted.stopped
    with pytest.raises(ValueError, match="no hypothesis is kept"):
        boosting.boost_with(boosting.adaboost(), lambda weights: -LABELS, LABELS, 5)


@pytest.mark.parametrize("double", [False, True])
def test_an_edge_that_is_rounding_stops_it_and_is_called_so(double):
    """Constant features: after one round the best stump has no edge."""
    weak, labels = boosting.stumps(np.ones((30, 2))), np.where(np.arange(30) % 3 == 0, -1.0, 1.0)
    with jax.enable_x64(double):
        boosted = boosting.boost_with(boosting.adaboost(), weak, labels, 5)
    assert len(boosted.ensemble) == 1
    assert "the edge of round 2 is 0 up to rounding: " in boosted.stopped


def test_it_stops_when_all_rows_are_classified():
    labels = np.where(ROWS[:, 0] + ROWS[:, 1] + ROWS[:, 2] > 1.5, 1.0, -1.0)
    boosted = boosting.boost_with(
        boosting.adaboost(), boosting.stumps(ROWS), labels, 50, until_fitted=True
    )
    assert len(boosted.ensemble) < 10
    assert boosted.errors[-1] == 0
    assert np.all(boosted.errors[:-1] > 0)
    assert boosted.stopped == "the training error is 0"


def test_a_hypothesis_without_an_error_has_a_finite_coefficient():
    for learner in (boosting.adaboost(), boosting.line_search(), boosting.adaboost(2.0)):
        boosted = boosting.boost_with(learner, lambda weights: LABELS, LABELS, 3)
        assert np.all(np.isfinite(boosted.ensemble.coefficients))
        assert boosted.errors.tolist() == [0.0] * 3


def test_it_stops_when_the_validation_error_does_not_improve():
    rows, labels = ROWS[:40], LABELS[:40]
    boosted = boosting.boost_with(
        boosting.adaboost(),
        boosting.stumps(rows),
        labels,
        200,
        validation=(ROWS[40:], LABELS[40:]),
        patience=5,
    )
    curve = boosted.validation_errors
    assert len(boosted.ensemble) == len(curve) < 200
    assert boosted.best == np.argmin(curve) + 1 == len(curve) - 5
    np.testing.assert_array_equal(boosted.ensemble.errors(ROWS[40:], LABELS[40:]), curve)


def boost(learner=None, weak=None, labels=LABELS, rounds=3, **options):
    learner = boosting.adaboost() if learner is None else learner
    weak = boosting.stumps(ROWS) if weak is None else weak
    return boosting.boost_with(learner, weak, labels, rounds, **options)


BAD = {
    "labels of 0 and 1": (
        lambda: boost(labels=ROWS[:, 0]),
        r"labels must be -1 or \+1.*2 \* y",
    ),
    "labels in a matrix": (lambda: boost(labels=ROWS), "`labels` must be a vector"),
    "no rounds": (lambda: boost(rounds=0), "`rounds` must be an integer of at least 1, got 0"),
    "gamma 0": (lambda: boosting.majority(0.0), r"majority: `gamma` must lie in \(0, 0.5\), got 0"),
    "gamma 1/2": (lambda: boosting.majority(0.5), r"must lie in \(0, 0.5\), got 0.5"),
    "gamma NaN": (lambda: boosting.majority(np.nan), r"must lie in \(0, 0.5\), got nan"),
    "cap 0": (lambda: boosting.adaboost(0.0), "adaboost: `cap` must be positive"),
    "cap of a line search": (lambda: boosting.line_search(-1.0), "line_search: `cap` must be"),
    "large predictions": (
        lambda: boost(weak=lambda weights: 2 * LABELS),
        r"predictions must lie in \[-1, 1\], got .*2.0 in row 0; divide",
    ),
    "NaN": (lambda: boost(weak=lambda weights: np.nan * LABELS), "got nan in row 0"),
    "too few predictions": (lambda: boost(weak=lambda weights: LABELS[:3]), r"80 in all, got .*3"),
    "real predictions": (
        lambda: boost(weak=lambda weights: 0.5 * LABELS),
        r"adaboost: y \* h\(x\) must be -1, 0 or \+1, got 0.5.*line_search",
    ),
    "no weak learner": (lambda: boost(weak=ROWS), "`weak` must be a weak learner.*stumps"),
    "no learner": (lambda: boost(learner=0.1), "`inner` must be a Learner"),
    "sparse numbers": (
        lambda: boosting.stumps(scipy.sparse.csr_array(REAL)),
        "sparse rows must hold 0 and 1.*toarray",
    ),
    "rows with NaN": (lambda: boosting.stumps(np.array([[1.0], [np.nan]])), "stumps: .*nan"),
    "a vector of rows": (lambda: boosting.stumps(np.ones(3)), "stumps: `rows` must be an array"),
    "constant rows": (lambda: boosting.stumps(np.full((3, 2), 7.0)), "every column .* is constant"),
    "patience alone": (lambda: boost(patience=3), "`patience` needs `validation`"),
    "weights of another length": (lambda: boost(weights=np.ones(3)), "one per label, 80"),
    "negative weights": (lambda: boost(weights=-np.ones(80)), "`weights` must be non-negative"),
    "new rows": (
        lambda: boost(weak=lambda weights: LABELS, rounds=1).ensemble.predict(ROWS),
        "no predictions on new rows.*weak_learner",
    ),
    "too few labels": (lambda: boost(labels=LABELS[:9]), "80 rows and 9 labels; give one per row"),
    "too few validation labels": (
        lambda: boost(validation=(ROWS, LABELS[:9])),
        "boost_with: `validation`: there are 80 rows and 9 labels",
    ),
    "too few labels of margins": (
        lambda: boost().ensemble.margins(ROWS, LABELS[:9]),
        "Ensemble: there are 80 rows and 9 labels",
    ),
    "rows of another width": (
        lambda: boost(rounds=1).ensemble.predict(ROWS[:, :5]),
        "rows must have 8 features, as the training rows have, got 5",
    ),
    "theta 2": (lambda: olx.theorems.margins(2.0), r"margins: `theta` must lie in \[-1, 1\]"),
}


@pytest.mark.parametrize("name", BAD)
def test_it_refuses_by_name(name):
    call, says = BAD[name]
    with pytest.raises((ValueError, TypeError), match=says):
        call()


def test_the_game_against_a_weak_learner_refuses_its_large_predictions():
    nature = boosting.adversary(lambda weights: 3 * LABELS, LABELS)
    with pytest.raises(ValueError, match=r"play: gentleboost: .*got 3.0 .*divide the predictions"):
        olx.play(boosting.gentleboost(), nature, UNIFORM, 2)


def test_the_game_refuses_large_outcomes():
    rounds = olx.Rounds(None, np.array([[0.5, 1.5]]))
    with pytest.raises(
        ValueError, match=r"gentleboost: y \* h\(x\) must lie in \[-1, 1\], got 1.5"
    ):
        olx.run(boosting.gentleboost(), losses.linear_loss, rounds, jnp.ones(2) / 2)


TABLE = {  # Luo 2016, table 2.2, a9a: zeros, training error, test error in percent
    "adaboost": (0.0, 15.4, 15.0),
    "nh_boost": (1.1, 15.8, 15.6),
    "nh_boost_dt": (22.1, 15.5, 15.2),
}


@needs("a9a.npz")
def test_table_2_2_on_a9a_is_reproduced():
    from experiments.boosting_table_2_2 import read

    train, test = read(FOLDER, "a9a")
    weak, zeros = boosting.stumps(train.rows), {}
    for name, (_, train_error, test_error) in TABLE.items():
        boosted = boosting.boost_with(RULES[name][0], weak, train.labels, 200)
        errors = boosted.ensemble.errors(test.rows, test.labels)
        assert abs(100 * boosted.errors[-1] - train_error) < 0.5
        assert abs(100 * errors[-1] - test_error) < 0.5
        zeros[name] = 100 * boosted.zeros.mean()
    assert zeros["adaboost"] == 0
    assert max(zeros, key=zeros.get) == "nh_boost_dt"
    assert zeros["nh_boost_dt"] > 15
