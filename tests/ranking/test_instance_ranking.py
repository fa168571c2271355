"""Ranking the rows of groups: pair losses, the aggressive update, groups of unequal size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_ranking as reference

import olx
from olx import losses, ranking

DRAW = np.random.default_rng(3)
SIZES = DRAW.integers(1, 6, 30)
ROWS = DRAW.normal(size=(SIZES.sum(), 4))
TRUTH = np.array([1.0, -2.0, 0.5, 0.0])
RELEVANCE = np.digitize(ROWS @ TRUTH + 0.3 * DRAW.normal(size=len(ROWS)), [-1.0, 1.0]).astype(float)
ROUNDS = ranking.group_rows(ROWS, RELEVANCE, SIZES)
EDGES = np.cumsum(SIZES)[:-1]
GROUPS = list(zip(np.split(ROWS, EDGES), np.split(RELEVANCE, EDGES), strict=True))
KINDS = [(losses.average_pairs, True), (losses.max_pairs, False)]


@pytest.mark.parametrize(("loss", "average"), KINDS)
def test_pair_losses_are_those_of_the_source(loss, average):
    w = DRAW.normal(size=4)
    seen = jax.vmap(loss)(ROUNDS.context @ w, ROUNDS.outcome)
    each = [reference.pair_losses(rows @ w, relevance) for rows, relevance in GROUPS]
    wanted = [(own.mean() if average else own.max()) if own.size else 0.0 for own in each]
    np.testing.assert_allclose(seen, wanted, atol=1e-12)
    assert min(map(len, each)) == 0  # some groups have nothing to rank


@pytest.mark.parametrize(("loss", "average"), KINDS)
@pytest.mark.parametrize("c", [0.2, 3.0])
def test_the_aggressive_update_is_that_of_the_source_and_its_theorems_hold(loss, average, c):
    one = ranking.instance_ranking(1 / c, loss)
    run = olx.rollout(one, loss, ROUNDS, jnp.zeros(4), record=olx.record.trace)
    wanted, w = reference.instance_ranking(GROUPS, c, average)
    np.testing.assert_allclose(run.losses, wanted, atol=1e-10)
    np.testing.assert_allclose(run.state.w, w, atol=1e-10)
    for u in (np.zeros(4), TRUTH, DRAW.normal(size=4)):
        proofs = olx.certify(one, run, u)
        assert proofs.names == ("instance_regret", "instance_duality")
        assert proofs.holds, str(proofs)


def test_theorems_hold_against_groups_that_contradict_each_other():
    """Two rows whose order is reversed every round."""
    rows = np.tile(np.eye(2), (40, 1))
    relevance = np.tile([2.0, 0.0, 0.0, 2.0], 20)
    rounds = ranking.group_rows(rows, relevance, np.full(40, 2))
    for loss, _ in KINDS:
        for eta in (0.05, 1.0, 20.0):
            one = ranking.instance_ranking(eta, loss)
            run = olx.rollout(one, loss, rounds, jnp.zeros(2), record=olx.record.trace)
            for u in (np.zeros(2), np.array([1.0, -1.0])):
                proofs = olx.certify(one, run, u)
                assert proofs.holds, str(proofs)


def test_theorems_hold_where_equal_rows_differ_in_relevance():
    """No weights rank them: the loss stays 1, and so does the dual of each round."""
    rounds = ranking.group_rows(np.ones((8, 2)), np.tile([1.0, 0.0], 4), np.full(4, 2))
    for loss, _ in KINDS:
        one = ranking.instance_ranking(1.0, loss)
        run = olx.rollout(one, loss, rounds, jnp.zeros(2), record=olx.record.trace)
        proofs = olx.certify(one, run, np.ones(2))
        assert proofs.holds, str(proofs)
        assert proofs["instance_duality"].left.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert np.all(run.state.w == 0)


def test_labels_are_rows_with_the_largest_pair():
    scores = DRAW.normal(size=(20, 5))
    masks = (DRAW.random((20, 5)) < 0.5).astype(float)
    labels = jax.vmap(losses.label_hinge())(scores, masks)
    np.testing.assert_allclose(jax.vmap(losses.max_pairs)(scores, masks), labels, rtol=1e-12)


def test_a_point_learner_ranks_rows():
    one = ranking.rank_rows(olx.ogd(0.1))
    run = olx.run(one, losses.average_pairs, ROUNDS, jnp.zeros(4))
    w = np.zeros(4)
    for loss, (rows, relevance) in zip(run.losses, GROUPS, strict=True):
        each, those = reference.pair_losses(rows @ w, relevance), reference.pairs(relevance)
        np.testing.assert_allclose(loss, each.mean() if those else 0.0, atol=1e-12)
        for (i, j), own in zip(those, each, strict=True):
            w = w + 0.1 * (own > 0) * (rows[i] - rows[j]) / len(those)


REFUSED = {
    "sizes": (ROWS, RELEVANCE, SIZES[:-1], ValueError, "`sizes` sums to"),
    "zero": (ROWS, RELEVANCE, np.r_[SIZES, 0], ValueError, "drop empty groups"),
    "real": (ROWS, RELEVANCE, SIZES / 1.0, ValueError, "integers of at least 1"),
    "short": (ROWS, RELEVANCE[1:], SIZES, TypeError, "one degree per row"),
    "negative": (ROWS, RELEVANCE - 1, SIZES, ValueError, "not negative, got -1.0 in row"),
    "nan": (ROWS, RELEVANCE * np.nan, SIZES, ValueError, "must be finite"),
    "vector": (ROWS[0], RELEVANCE, SIZES, TypeError, r"shape \(n, d\)"),
    "words": (ROWS.astype(str), RELEVANCE, SIZES, TypeError, "give real numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_groups_that_do_not_add_up_are_refused(name):
    *given, kind, words = REFUSED[name]
    with pytest.raises(kind, match=f"group_rows: .*{words}"):
        ranking.group_rows(*given)


def test_bad_rounds_are_refused_by_name():
    one = ranking.instance_ranking(1.0)
    play = lambda rounds, size=4: olx.run(one, losses.max_pairs, rounds, jnp.zeros(size))
    with pytest.raises(
        ValueError, match="average_pairs: relevance must be finite and not negative"
    ):
        play(ROUNDS._replace(outcome=ROUNDS.outcome * 2))
    with pytest.raises(TypeError, match="the outcome has shape"):
        play(ROUNDS._replace(outcome=ROUNDS.outcome[:, :2]))
    with pytest.raises(TypeError, match=r"row_scores: the rows have shape \(5, 4\), the weights"):
        play(ROUNDS, 3)
    with pytest.raises(TypeError, match=r"`loss` must be `olx\.losses\.average_pairs`"):
        ranking.instance_ranking(1.0, losses.hinge)
    with pytest.raises(ValueError, match="`eta` must be positive"):
        ranking.instance_ranking(0.0)
