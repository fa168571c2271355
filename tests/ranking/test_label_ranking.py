"""The six algorithms of label ranking: against NumPy and on hard streams.

All streams have one shape, so that each algorithm is compiled once. Sparse rows are compared with
dense ones by the kit, for each row of the table.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_ranking as reference
from scipy.sparse import csr_array

import olx
from olx import losses, mirrors, ranking, schedules
from olx.convex import norms

LABELS, WORDS, LENGTH = 4, 10, 36
ONES = np.ones(LENGTH)
UPDATES = {
    "I": ranking.conservative(),
    "II": ranking.aggressive(),
    "III": ranking.optimal(),
}
SIX = [(name, entropy) for entropy in (False, True) for name in UPDATES]


def learner(name, entropy, eta, margin):
    mirror = mirrors.negative_entropy() if entropy else mirrors.euclidean()
    return ranking.label_ranking(eta, mirror, UPDATES[name], margin)


def stream(entropy, seed=0):
    """Random rows, sets of labels (also none, and all) and weights; one row is zero."""
    draw = np.random.default_rng(seed)
    rows = (draw.random((LENGTH, WORDS)) < 0.4).astype(float)
    if not entropy:
        rows *= draw.normal(size=rows.shape)  # no ties
    masks = (draw.random((LENGTH, LABELS)) < 0.35).astype(float)
    masks[3], masks[5], rows[7] = 0.0, 1.0, 0.0
    return rows, masks, draw.uniform(0.5, 1.5, LENGTH)


@jax.jit
def played(one, rows, masks, margin, points, weight):
    """The run, and the certificates of all theorems for each point."""
    start = jnp.zeros((LABELS, WORDS))
    rounds, loss = olx.Rounds(rows, masks, weight), losses.label_hinge(margin)
    run = olx.rollout(one, loss, rounds, start, record=olx.record.trace)
    return run, jax.vmap(olx.certify, (None, None, 0))(one, run, points)


def comparators(entropy, rows, masks):
    draw, size = np.random.default_rng(9), rows.shape[1]
    if not entropy:
        best = masks.T @ rows - (1 - masks).T @ rows / LABELS
        return np.stack([np.zeros_like(best), best / 10, draw.normal(size=best.shape)])
    peaked = np.eye(size)[np.argmax(masks.T @ rows, axis=1)]
    spread = draw.dirichlet(np.ones(size), LABELS)
    return np.stack([np.full(peaked.shape, 1 / size), peaked, spread])


def checked(name, entropy, c, margin, rows, masks, weight=ONES):
    """The run, after its theorems were checked against three comparators."""
    return judged(learner(name, entropy, 1 / c, margin), entropy, margin, rows, masks, weight)


def judged(one, entropy, margin, rows, masks, weight, own="label_rate"):
    points = comparators(entropy, rows, masks)
    run, proofs = played(one, rows, masks, jnp.asarray(margin), points, weight)
    assert proofs.names == ("label_duality", "label_regret", own, "label_mistakes")
    for proof in proofs:
        assert np.all(np.isfinite(proof.right)), proof.name
        assert np.all(proof.holds), proof.name
    return run, proofs


@pytest.mark.parametrize(("name", "entropy"), SIX)
def test_it_plays_as_the_source_says_and_its_theorems_hold(name, entropy):
    for c, margin in ((0.7, 0.4), (3.0, 0.8)):
        rows, masks, weight = stream(entropy)  # with weights there are no ties by rounding
        run, _ = checked(name, entropy, c, margin, rows, masks, weight)
        scores, _, acc = reference.label_ranking(rows, masks, margin, c, name, entropy, weight)
        np.testing.assert_allclose(run.trace.feedback.action, scores, rtol=0, atol=1e-8)
        seen = run.state.theta * c if entropy else run.state.acc
        np.testing.assert_allclose(seen, acc, rtol=0, atol=1e-8)
        if entropy:  # what is kept beside the weights belongs to them
            level = np.log(np.exp(np.asarray(run.state.theta)).sum(1))
            np.testing.assert_allclose(run.state.level.value, level, rtol=1e-13)


@pytest.mark.parametrize(("name", "entropy"), [("I", True), ("II", False), ("III", True)])
def test_a_schedule_plays_as_the_source_says_and_its_theorems_hold(name, entropy):
    """Corollary 3, also where labels are contradicted; sparse rows for the Euclidean norm."""
    norm, margin, most = norms.l1() if entropy else norms.l2(), 0.4, 2.5
    one = learner(name, entropy, schedules.root_norms(most, norm), margin)
    rows, masks, weight = stream(entropy)
    weight = weight / 2  # the printed bound is about weights of at most 1
    run, proofs = judged(one, entropy, margin, rows, masks, weight, "label_schedule")
    assert np.all(np.isfinite(proofs["label_schedule"].published))
    longest = np.maximum.accumulate(np.linalg.norm(rows, np.inf if entropy else 2, axis=1))
    c = np.sqrt(np.arange(1, LENGTH + 1) / most) * longest
    scores, _, acc = reference.label_ranking(rows, masks, margin, c, name, entropy, weight)
    np.testing.assert_allclose(run.trace.feedback.action, scores, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.state.acc, acc, rtol=0, atol=1e-8)
    judged(one, entropy, margin, *contradictions(), ONES, "label_schedule")
    play = (
        olx.Rounds(olx.streams.sparse_rows(csr_array(rows)), masks, weight),
        jnp.zeros((LABELS, WORDS)),
    )
    if entropy:
        with pytest.raises(TypeError, match=r"needs dense rows: pass `rows.toarray\(\)`"):
            olx.run(one, losses.label_hinge(margin), *play)
    else:
        sparse = olx.run(one, losses.label_hinge(margin), *play)
        np.testing.assert_allclose(sparse.losses, run.losses, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "entropy"), SIX)
def test_nothing_changes_without_something_to_rank(name, entropy):
    rows, masks = np.ones((LENGTH, WORDS)), np.zeros((LENGTH, LABELS))
    masks[1::3] = 1.0
    rows[2::3], masks[2::3, 0] = 0.0, 1.0
    run, proofs = checked(name, entropy, 1.0, 0.5, rows, masks)
    assert np.all((run.state.theta if entropy else run.state.acc) == 0)
    wrong = jax.vmap(ranking.mistake)(run.trace.feedback.action, jnp.asarray(masks))
    assert np.sum(wrong) == LENGTH / 3  # a row of zeros cannot be ranked
    np.testing.assert_allclose(proofs["label_mistakes"].left[0], 0.5 * np.cumsum(wrong))


def fresh_words(name, entropy, c, margin):
    """An adversary: a new word per round, and relevant is the label with the lowest score."""
    rows, masks = np.zeros((LENGTH, WORDS)), np.zeros((LENGTH, LABELS))
    for t in range(WORDS):
        rows[t, t] = 1.0
        so_far = slice(0, t + 1)
        scores = reference.label_ranking(rows[so_far], masks[so_far], margin, c, name, entropy)[0]
        masks[t, np.argmin(scores[-1])] = 1.0
    return rows, masks


@pytest.mark.parametrize(("name", "entropy"), SIX)
def test_theorems_hold_against_fresh_words(name, entropy):
    """Every round with a word is a mistake; in Euclidean space its loss is the margin."""
    c, margin = 2.0, 0.5
    rows, masks = fresh_words(name, entropy, c, margin)
    run, proofs = checked(name, entropy, c, margin, rows, masks)
    wrong = jax.vmap(ranking.mistake)(run.trace.feedback.action, jnp.asarray(masks))
    assert np.all(wrong[:WORDS] == 1)
    np.testing.assert_allclose(proofs["label_mistakes"].left[:, -1], margin * WORDS)
    if name == "I":  # the dual rises by exactly the loss minus the divergence
        proof = proofs["label_duality"]
        np.testing.assert_allclose(proof.left, proof.right, atol=1e-12)


def contradictions():
    """The same row again and again, with sets of labels that contradict each other."""
    rows = np.ones((LENGTH, WORDS))
    rows[:, 4:] = 0.0
    masks = np.eye(LABELS)[np.arange(LENGTH) % LABELS]
    masks[1::2] = 1 - masks[1::2]
    return rows, masks


@pytest.mark.parametrize(("name", "entropy"), SIX)
def test_theorems_hold_where_labels_are_contradicted(name, entropy):
    for c, margin in ((0.1, 0.9), (10.0, 0.1)):
        checked(name, entropy, c, margin, *contradictions())


def test_the_pair_step_is_the_best_on_a_grid():
    draw = np.random.default_rng(8)
    grid = np.linspace(0.0, 1.0, 4001)
    spent = lambda share, step: np.log(1 - share + share * np.exp(step))
    for up, down in draw.random((40, 2)):
        margin, c = draw.choice([0.1, 0.5, 0.9]), draw.choice([0.3, 2.0])
        tried = np.r_[reference.entropic_pair(up, down, margin, c), grid]
        dual = margin * tried - c * (spent(up, tried / c) + spent(down, -tried / c))
        assert dual[0] >= dual.max() - 1e-12


def test_booleans_are_masks():
    rows, masks, weight = stream(False, seed=5)
    points = comparators(False, rows, masks)
    one, margin = learner("III", False, 1.0, 1.0), jnp.asarray(1.0)
    plain, bools = (
        played(one, rows, each, margin, points, weight)[0] for each in (masks, masks == 1)
    )
    np.testing.assert_array_equal(bools.losses, plain.losses)
