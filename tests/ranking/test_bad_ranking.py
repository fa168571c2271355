"""What label ranking cannot take is refused by name, with the remedy."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

import olx
from olx import losses, mirrors, ranking

ROWS, MASKS = np.ones((3, 4)), np.eye(3)
START = jnp.zeros((3, 4))
FLAT, ENTROPY = mirrors.euclidean(), mirrors.negative_entropy()


def play(mirror=FLAT, rows=ROWS, masks=MASKS, start=START, margin=0.5):
    one = ranking.label_ranking(1.0, mirror, ranking.aggressive(), margin)
    return olx.run(one, losses.label_hinge(), olx.Rounds(rows, masks), start)


def test_good_data_is_played():
    assert play().losses.shape == (3,)
    assert play(ENTROPY).losses.shape == (3,)


def test_masks_of_another_length_are_refused():
    with pytest.raises(TypeError, match=r"label_hinge: the outcome has shape \(2,\), the scores"):
        play(masks=MASKS[:, :2])


def test_labels_that_are_not_masks_are_refused():
    with pytest.raises(TypeError, match=r"the outcome has shape \(\)"):
        play(masks=np.array([0.0, 1.0, 0.0]))
    with pytest.raises(ValueError, match=r"relevant labels must be 1, others 0, got 2\.0"):
        play(masks=2 * MASKS)
    with pytest.raises(ValueError, match="one_hot"):
        play(masks=MASKS * np.nan)


def test_one_label_is_refused():
    with pytest.raises(TypeError, match=r"label_ranking: `params` has shape \(1, 4\).*2 labels"):
        play(masks=MASKS[:, :1], start=START[:1])
    with pytest.raises(TypeError, match=r"label_ranking: `params` has shape \(4,\)"):
        play(start=START[0])


def test_rows_of_another_length_are_refused():
    with pytest.raises(TypeError, match=r"label_ranking: the context has shape \(3,\)"):
        play(rows=ROWS[:, :3])


@pytest.mark.parametrize("sparse", [False, True])
def test_the_entropy_refuses_counts(sparse):
    rows = ROWS.copy()
    rows[1, 2] = 3.0
    rows = olx.streams.sparse_rows(csr_array(rows)) if sparse else rows
    with pytest.raises(ValueError, match=r"rows must hold 0 and 1 only for the entropy.*row 1, c"):
        play(ENTROPY, rows=rows)


def test_the_entropy_refuses_a_margin_of_1():
    with pytest.raises(ValueError, match=r"`margin` must be below 1 for the entropy.*got 1\.0"):
        play(ENTROPY, margin=1.0)


def test_a_grid_shows_a_margin_of_1_at_its_own_index():
    make = lambda margin: ranking.label_ranking(1.0, ENTROPY, ranking.aggressive(), margin)
    learners = olx.batch(make, margin=jnp.array([0.5, 1.5]))
    rounds = olx.Rounds(np.eye(4)[:3], MASKS)
    run = olx.sweep(
        learners, losses.label_hinge(), olx.Rounds(*[np.tile(r, (2, 1)) for r in rounds[:2]]), START
    )
    assert np.all(np.isfinite(run.losses[0]))
    assert np.any(~np.isfinite(run.losses[1]))


def test_other_maps_and_numbers_are_refused():
    with pytest.raises(TypeError, match=r"`mirror` must be .*rowwise"):
        ranking.label_ranking(1.0, mirrors.pnorm(1.5), ranking.optimal())
    prior = mirrors.negative_entropy(prior=jnp.array([0.5, 0.5]))
    with pytest.raises(TypeError, match="without a prior"):
        ranking.label_ranking(1.0, prior, ranking.optimal(), 0.5)
    with pytest.raises(TypeError, match="`update` must be an Update"):
        ranking.label_ranking(1.0, FLAT, olx.ascents.aggressive())
    with pytest.raises(ValueError, match="`eta` must be positive"):
        ranking.label_ranking(-1.0, FLAT, ranking.optimal())
    with pytest.raises(ValueError, match="`margin` must be positive"):
        ranking.label_ranking(1.0, FLAT, ranking.optimal(), 0.0)
