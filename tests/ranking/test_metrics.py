"""Measures of rankings, against scikit-learn where it has them, and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics as sklearn

from olx import ranking

DRAW = np.random.default_rng(0)
SCORES = DRAW.normal(size=(60, 6))
SCORES[::3] = np.round(SCORES[::3])  # with ties
MASKS = (DRAW.random((60, 6)) < 0.4).astype(float)
MASKS[5], MASKS[11] = 0.0, 1.0


def mean(metric, scores=SCORES, relevance=MASKS):
    return float(np.mean(jax.jit(jax.vmap(metric))(scores, relevance)))


def test_coverage_is_that_of_scikit_learn():
    wanted = sklearn.coverage_error(MASKS, SCORES)
    np.testing.assert_allclose(mean(ranking.coverage), wanted, rtol=1e-12)


def test_ranking_loss_is_that_of_scikit_learn():
    wanted = sklearn.label_ranking_loss(MASKS, SCORES)
    np.testing.assert_allclose(mean(ranking.ranking_loss), wanted, rtol=1e-12)


def test_average_precision_is_that_of_scikit_learn():
    wanted = sklearn.label_ranking_average_precision_score(MASKS, SCORES)
    np.testing.assert_allclose(mean(ranking.average_precision), wanted, rtol=1e-12)


@pytest.mark.parametrize("top", [None, 1, 3])
def test_ndcg_is_that_of_scikit_learn(top):
    degrees = DRAW.integers(0, 3, SCORES.shape).astype(float)
    wanted = sklearn.ndcg_score(degrees, SCORES, k=top)
    seen = mean(lambda s, y: ranking.ndcg(s, y, top), relevance=degrees)
    np.testing.assert_allclose(seen, wanted, rtol=1e-12)


def test_one_error_and_mistakes_count_ties():
    scores = jnp.array([[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
    relevant = jnp.array([1.0, 0.0, 1.0])
    one = [ranking.one_error(row, relevant).item() for row in scores]
    wrong = [ranking.mistake(row, relevant).item() for row in scores]
    assert one == [0.0, 1.0, 0.0, 0.0]
    assert wrong == [1.0, 1.0, 1.0, 0.0]


def test_reciprocal_rank_is_that_of_the_first_relevant_entry():
    scores, at = jnp.array([4.0, 3.0, 2.0, 2.0]), jnp.eye(4)
    seen = [ranking.reciprocal_rank(scores, row).item() for row in at]
    np.testing.assert_allclose(seen, [1, 1 / 2, 1 / 4, 1 / 4])
    assert ranking.reciprocal_rank(scores, jnp.zeros(4)) == 0


ALL = (
    ranking.mistake,
    ranking.one_error,
    ranking.coverage,
    ranking.ranking_loss,
    ranking.average_precision,
    ranking.ndcg,
    ranking.reciprocal_rank,
)


@pytest.mark.parametrize("metric", ALL)
def test_padding_does_not_count(metric):
    longer = np.concatenate([SCORES[:, :2], np.full((60, 2), 9.0), SCORES[:, 2:]], axis=1)
    padded = np.concatenate([MASKS[:, :2], np.full((60, 2), -1.0), MASKS[:, 2:]], axis=1)
    np.testing.assert_allclose(mean(metric, longer, padded), mean(metric), rtol=1e-12)


@pytest.mark.parametrize("metric", ALL)
def test_masks_of_another_length_are_refused(metric):
    with pytest.raises(TypeError, match=rf"{metric.__name__}: the outcome has shape \(3,\)"):
        metric(jnp.zeros(4), jnp.zeros(3))


def test_a_perfect_order_has_perfect_measures():
    scores, relevant = jnp.array([3.0, 2.0, 1.0, 0.0]), jnp.array([1.0, 1.0, 0.0, 0.0])
    seen = [metric(scores, relevant).item() for metric in ALL]
    np.testing.assert_allclose(seen, [0, 0, 2, 0, 1, 1, 1])
