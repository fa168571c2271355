r"""Rank the rows of a group with a point learner: scores $X_t w_t$ of its decisions $w_t$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.4.
"""

import numpy as np
from jaxtyping import Array

from olx import _check as check
from olx._refusal import RefusedType, public
from olx.core import Learner
from olx.frameworks.lift import model


@public
def rank_rows(inner: Learner) -> Learner:
    """Score the rows of a group by the decisions of a point learner, for any loss of the scores.

    >>> import jax.numpy as jnp, olx
    >>> play = olx.Rounds(jnp.eye(2)[None], jnp.array([[1.0, 0.0]]))
    >>> run = olx.rollout(rank_rows(olx.ogd(0.5)), olx.losses.max_pairs, play, jnp.zeros(2))
    >>> run.state.theta.tolist()
    [0.5, -0.5]
    """
    check.instance("inner", inner, Learner)
    return model(inner, row_scores)


@public
def row_scores(w: Array, rows: Array) -> Array:
    r"""The scores $X w$ of the rows $X$ of a group."""
    if np.ndim(w) != 1 or np.ndim(rows) != 2 or np.shape(rows)[1] != np.shape(w)[0]:
        raise RefusedType(
            f"the rows have shape {np.shape(rows)}, the weights {np.shape(w)}; a group "
            "is an array of rows (m, d) for weights (d,)."
        )
    return rows @ w
