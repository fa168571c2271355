"""Table 8.1 of Shalev-Shwartz 2007 on the e-mails of one user, if the data are there."""

import jax.numpy as jnp
import numpy as np
from stored import FOLDER, needs

from experiments import label_ranking_tables as tables

USER = "williams_w3"


@needs(f"enron_{USER}.npz")
def test_mistakes_are_near_the_printed_ones():
    rows, masks = tables.emails(FOLDER, USER)
    seen = []
    for update, setting in {"I": tables.WHOLE, "II": (0.01, 1.0), "III": (0.01, 1.0)}.items():
        run = tables.pass_over(tables.learner(tables.EUCLIDEAN, update, *setting), rows, masks)
        seen.append(100 * float(np.mean(run.losses)))
    np.testing.assert_allclose(seen, tables.PRINTED[USER][:3], atol=1.0)
    assert seen[0] > seen[1] >= seen[2]


def test_a_word_of_one_message_has_a_column(tmp_path):
    np.savez(
        tmp_path / f"enron_{USER}.npz",
        data=np.array([3, 1, 2], np.uint16),
        indices=np.array([0, 1, 1], np.uint16),
        indptr=np.array([0, 2, 3]),
        shape=np.array([2, 2]),
        n_once=np.array([1, 2]),
        y=np.array([1, 0], np.uint8),
    )
    rows, masks = tables.emails(tmp_path, USER)
    np.testing.assert_array_equal(rows.toarray(), [[1, 1, 1, 0, 0], [0, 1, 0, 1, 1]])
    np.testing.assert_array_equal(masks, jnp.eye(2)[::-1])
