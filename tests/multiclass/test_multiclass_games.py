"""Theorems on hard streams, sparse rows, one kernel, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases_multiclass import MULTICLASS
from scipy.sparse import csr_array
from stored import FOLDER, needs

import olx
from olx import classification, losses, mirrors, multiclass, schedules, streams
from olx.classification.winnow import winnow_mistakes
from olx.convex import norms
from olx.engine.implementations.sparse_rounds import sizes
from olx.frameworks.mistakes import conservative_mistakes

K, D = 3, 5
ZERO_ONE = losses.multiclass_zero_one
FLAT, AGGRESSIVE = mirrors.euclidean(), olx.ascents.aggressive()


def hard_streams():
    """Separable rows; labels with much noise; random labels of rows of very different lengths."""
    separable, truth = streams.linear_classes(jax.random.key(0), 300, D, K, margin=0.3)
    noisy, _ = streams.linear_classes(jax.random.key(1), 300, D, K, noise=0.4)
    draw = np.random.default_rng(0)
    wild = olx.Rounds(
        jnp.asarray(draw.normal(size=(300, D)) * np.exp(draw.normal(size=(300, 1)))),
        jnp.asarray(draw.integers(0, K, 300)),
    )
    return [separable, noisy, wild], [0 * truth, truth, truth / 0.3, 3 * truth]


STREAMS, COMPARATORS = hard_streams()
WIDE = jnp.zeros((K, D))
CARRIERS = {
    "perceptron": (multiclass.perceptron(), (0.3, 1.0)),
    "uniform perceptron": (multiclass.uniform_perceptron(), (0.3, 1.0)),
    "p-norm perceptron": (multiclass.pnorm_perceptron(3.0), (0.3,)),
    "PA": (multiclass.passive_aggressive(), ()),
    "PA-I": (multiclass.passive_aggressive_1(0.1), ()),
    "PA-II": (multiclass.passive_aggressive_2(0.1), ()),
    "AROW": (multiclass.arow(3.0), ()),
    "aggressive": (olx.dual_ascent(0.3, FLAT, losses.multiclass_hinge, AGGRESSIVE), ()),
    "self-tuned": (
        olx.dual_ascent(
            schedules.mistakes(2.0, norms.l2()), FLAT, losses.multiclass_hinge, AGGRESSIVE
        ),
        (),
    ),
    "squared": (olx.dual_ascent(0.05, FLAT, losses.multiclass_squared_hinge, AGGRESSIVE), ()),
    "softmax": (olx.dual_ascent(0.3, FLAT, losses.cross_entropy, AGGRESSIVE), ()),
    "structured SVM by OGD": (olx.linear(olx.ogd(0.1)), ()),
}


@pytest.mark.parametrize("name", CARRIERS)
def test_theorems_hold_on_hard_streams(name):
    learner, margins = CARRIERS[name]
    more = [olx.theorems.multiclass_perceptron_mistakes(margin) for margin in margins]
    more += [conservative_mistakes(margin) for margin in margins]
    loss = losses.multiclass_hinge if "OGD" in name else ZERO_ONE
    each = jax.tree.map(lambda *rows: jnp.stack(rows), *STREAMS)

    def judged(rounds, u):
        run = olx.rollout(learner, loss, rounds, WIDE, record=olx.record.trace)
        own = olx.certify(learner, run, u)
        return [own, *(olx.certify(learner, run, u, theorems=(one,)) for one in more)]

    both = jax.vmap(jax.vmap(judged, (None, 0)), (0, None))
    for proofs in jax.jit(both)(each, jnp.stack(COMPARATORS)):
        assert proofs.holds.all()
        finite = [one.right for one in proofs if one.name != "self_bounded"]  # it needs a large c
        assert all(np.all(np.isfinite(right)) for right in finite)


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.multiclass_hinge])
def test_implicit_steps_are_the_best_dual_steps_and_meet_their_bound(loss):
    learner = olx.implicit(0.3, loss)
    rounds = STREAMS[2]._replace(
        context=STREAMS[2].context.at[3].set(0.0), weight=jnp.ones(300).at[5].set(0.0)
    )

    @jax.jit
    def both():
        run = olx.rollout(learner, loss, rounds, WIDE, record=olx.record.trace)
        proof = olx.certify(learner, run, COMPARATORS[1])
        ascent = olx.dual_ascent(0.3, FLAT, loss, AGGRESSIVE)
        return run.state.w, proof, 0.3 * olx.rollout(ascent, loss, rounds, WIDE).state.acc

    weights, proof, other = both()
    np.testing.assert_allclose(weights, other, rtol=1e-10, atol=1e-10)
    assert proof.holds.all()


def test_the_theorems_of_eg_hold_in_the_simplex():
    learner = multiclass.exponentiated_gradient(0.2)
    points = np.random.default_rng(1).dirichlet(np.ones(K * D), 3).reshape(3, K, D)
    for rounds in STREAMS:
        run = olx.rollout(learner, ZERO_ONE, rounds, WIDE, record=olx.record.trace)
        for u in points:
            assert olx.certify(learner, run, jnp.asarray(u)).holds
            assert olx.certify(learner, run, jnp.asarray(u), theorems=(winnow_mistakes(0.1),)).holds


def test_the_bound_of_the_perceptron_is_attained():
    """Two classes and a new coordinate in every round: all rounds are mistakes, with H = 0."""
    rounds = olx.Rounds(jnp.eye(6), jnp.array([0, 1, 1, 0, 1, 0]))
    learner = multiclass.perceptron()
    run = olx.rollout(learner, ZERO_ONE, rounds, jnp.zeros((2, 6)), record=olx.record.trace)
    signs = 1.0 - 2.0 * np.asarray(rounds.outcome)
    u = jnp.asarray(np.stack([signs, -signs]) / 2)
    found = next(
        each for each in olx.certify(learner, run, u) if each.name == "perceptron_mistakes"
    )
    assert float(run.total) == 6
    assert float(found.right[-1]) == pytest.approx(6.0)


SPARSE = {
    "perceptron": (multiclass.perceptron(), WIDE),
    "p-norm perceptron": (multiclass.pnorm_perceptron(5.0), WIDE),
    "EG": (multiclass.exponentiated_gradient(0.3), WIDE),
    "PA-I": (multiclass.passive_aggressive_1(0.1), WIDE),
    "softmax": (olx.linear(olx.ogd(0.1)), WIDE),
    "banditron": (multiclass.banditron(0.2, jax.random.key(0)), WIDE),
    "one vs rest": (multiclass.one_vs_rest(classification.passive_aggressive(), K), WIDE[0]),
    "one vs one": (multiclass.one_vs_one(classification.perceptron(), K), WIDE[0]),
}


def uneven_rows():
    """Rows of 0 to 30 entries, and some that are ten times as wide: two sizes in the engine."""
    draw = np.random.default_rng(0)
    widths = draw.integers(0, 30, 80)
    widths[[5, 40, 79]], widths[7] = (290, 150, 70), 0
    rows = np.zeros((80, 300))
    for row, width in zip(rows, widths, strict=True):
        row[draw.choice(300, width, replace=False)] = draw.normal(size=width)
    return rows, draw.integers(0, K, 80)


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_are_played_like_dense_ones(name):
    learner, params = SPARSE[name]
    rows, labels = uneven_rows()
    assert len(sizes(64)) == 2  # 290 entries are 37 blocks
    params = jnp.zeros((*params.shape[:-1], rows.shape[1]))
    play = jax.jit(lambda rounds: olx.rollout(learner, losses.cross_entropy, rounds, params).losses)
    sparse = olx.Rounds(streams.sparse_rows(csr_array(rows)), labels)
    seen = olx.run(learner, losses.cross_entropy, sparse, params)
    wanted = play(olx.Rounds(jnp.asarray(rows), jnp.asarray(labels)))
    np.testing.assert_allclose(seen.losses, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    ["multiclass perceptron", "multiclass PA-I", "multiclass arow", "one vs rest", "banditron"],
)
def test_a_round_is_one_kernel(name, capsys):
    learner, loss, rounds, params, *_ = MULTICLASS[name]
    olx.run(learner, loss, rounds, params, explain=True)
    assert capsys.readouterr().out.startswith("run: one kernel")


def play(learner, labels, params=WIDE, rows=None):
    rows = np.ones((3, D)) if rows is None else rows
    return olx.run(learner, ZERO_ONE, olx.Rounds(rows, np.array(labels)), params)


PA, OVR = multiclass.passive_aggressive(), multiclass.one_vs_rest(classification.perceptron(), K)
BAD = {
    "a label of too many": (lambda: play(PA, [0, 1, 3]), "from 0 to k - 1, got 3 .* row 2"),
    "a negative label": (lambda: play(PA, [0, -1, 2]), "from 0 to k - 1, got -1"),
    "labels that are floats": (lambda: play(PA, [0.0, 1.0, 2.0]), "must be integers .* number"),
    "labels that are truths": (lambda: play(PA, [True, False, True]), "must be integers"),
    "a label of no copy": (lambda: play(OVR, [0, 1, 3], WIDE[0]), "one_vs_rest: labels .* got 3"),
    "floats for copies": (lambda: play(OVR, [0.0, 1.0, 2.0], WIDE[0]), "labels must be integers"),
    "one class": (
        lambda: play(PA, [0, 0, 0], WIDE[:1]),
        "one row per class, for 2 classes or more",
    ),
    "a vector": (lambda: play(PA, [0, 0, 0], WIDE[0]), "start from jnp.zeros"),
    "one class of copies": (
        lambda: multiclass.one_vs_rest(classification.perceptron(), 1),
        "`k` must be an integer of at least 2, got 1",
    ),
    "half a class": (
        lambda: multiclass.one_vs_one(classification.perceptron(), 2.5),
        "`k` must be an integer of at least 2, got 2.5",
    ),
    "a point learner in a reduction": (
        lambda: play(multiclass.one_vs_rest(olx.ogd(0.1), K), [0, 1, 2], WIDE[0]),
        r"one_vs_rest: `inner` must predict one score, .* shape \(5,\); .* `olx.linear`",
    ),
    "a matrix for copies": (
        lambda: play(OVR, [0, 1, 2], WIDE),
        "one_vs_rest: `inner` must predict one score",
    ),
    "a loss of classes for copies": (
        lambda: multiclass.one_vs_rest(PA, K, loss=losses.cross_entropy),
        "`loss` must be a binary loss",
    ),
    "no learner": (lambda: multiclass.one_vs_rest("pa", K), "`inner` must be a Learner"),
    "a code of twos": (
        lambda: multiclass.output_codes(PA, 2 * np.eye(3)),
        "must be a matrix of -1, 0 and 1",
    ),
    "a code of equal rows": (
        lambda: multiclass.output_codes(PA, np.ones((3, 2))),
        "two rows of `code` are equal",
    ),
    "no exploration": (
        lambda: multiclass.banditron(0.0, jax.random.key(0)),
        r"`gamma` must lie in \(0, 1\], got 0",
    ),
    "a binary loss of scores": (
        lambda: olx.run(
            multiclass.perceptron(),
            losses.hinge,
            olx.Rounds(np.ones((3, D)), np.array([1, -1, 1])),
            WIDE,
        ),
        "labels must be integers|got -1",
    ),
    "a window of classes": (
        lambda: play(
            olx.dual_ascent(1.0, FLAT, losses.multiclass_hinge, olx.ascents.window(2)), [0, 1, 2]
        ),
        "use the rule `aggressive`",
    ),
    "a uniform rule of two signs": (
        lambda: olx.run(
            olx.dual_ascent(1.0, FLAT, losses.hinge, olx.ascents.uniform()),
            losses.hinge,
            olx.Rounds(np.ones((2, D)), np.array([1.0, -1.0])),
            WIDE[0],
        ),
        "the loss must be one of classes",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_game_of_classes_is_refused(name):
    act, message = BAD[name]
    with pytest.raises((TypeError, ValueError), match=message):
        act()


@needs("mnist.npz")
def test_one_pass_over_a_part_of_mnist():
    z = np.load(FOLDER / "mnist.npz")
    x, y = z["X"][:10_000].astype(np.float32), z["y"][:10_000].astype(np.int32)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    run = lambda learner: olx.run(learner, ZERO_ONE, olx.Rounds(x, y), jnp.zeros((10, 784), "f4"))
    first = run(multiclass.passive_aggressive_1(0.1)).losses
    assert np.mean(first) < 0.16
    assert np.mean(first[5000:]) < np.mean(first[:5000])


@pytest.mark.filterwarnings("ignore")
def test_copies_of_pa_are_those_of_scikit_learn():
    """Its multiclass classifiers play one against the rest. The class is deprecated since 1.8."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    if not hasattr(linear_model, "PassiveAggressiveClassifier"):
        pytest.skip("this version of scikit-learn has no PassiveAggressiveClassifier")
    rounds = STREAMS[1]
    peer = linear_model.PassiveAggressiveClassifier(
        C=0.1, max_iter=1, tol=None, shuffle=False, fit_intercept=False
    ).fit(np.asarray(rounds.context), np.asarray(rounds.outcome))
    learner = multiclass.one_vs_rest(classification.passive_aggressive_1(0.1), K)
    run = olx.run(learner, ZERO_ONE, rounds, WIDE[0])
    np.testing.assert_allclose(run.state.copies.w, peer.coef_, rtol=1e-8, atol=1e-10)


def test_the_best_matrix_in_hindsight_is_that_of_multinomial_regression():
    from sklearn.linear_model import LogisticRegression

    rounds = STREAMS[1]
    x, y = np.asarray(rounds.context), np.asarray(rounds.outcome)
    peer = LogisticRegression(C=1e8, fit_intercept=False, max_iter=5000, tol=1e-8).fit(x, y)
    least = float(jnp.sum(losses.cross_entropy(x @ peer.coef_.T, y)))
    found = olx.best_in_hindsight(losses.cross_entropy, rounds, WIDE, apply=olx.dot)
    assert found.u.shape == (K, D)
    assert float(found.value) == pytest.approx(least, rel=1e-5)
