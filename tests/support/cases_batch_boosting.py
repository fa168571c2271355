"""Rows of the table: batch boosters, over examples."""

import jax.numpy as jnp
import numpy as np
from cases import UNIFORM, VERTICES, ZEROS, Case

from olx import Rounds, boosting, losses

DRAWN = np.random.default_rng(2)
ANSWERS = jnp.asarray(np.where(DRAWN.random((24, 4)) < 0.65, 1.0, -1.0))
TURNS = jnp.asarray(1 - 2 * np.eye(4)[DRAWN.permuted(np.arange(24) % 4)])  # one error per round
REAL_ANSWERS = jnp.asarray(DRAWN.uniform(-0.6, 1.0, (24, 4)))
TARGETS = jnp.asarray(DRAWN.uniform(-1.0, 1.0, 4))


def examples(learner, answers=ANSWERS) -> Case:
    """A booster of four examples; an outcome is y h(x)."""
    return Case(learner, losses.linear_loss, Rounds(None, answers), UNIFORM, (UNIFORM, VERTICES[2]))


def fit(f, outcome):
    return jnp.mean((f - TARGETS.astype(f.dtype)) ** 2)


BATCH = {
    "majority": examples(boosting.majority(0.05), TURNS),
    "adaboost": examples(boosting.adaboost()),
    "adaboost, capped": examples(boosting.adaboost(0.1), TURNS),
    "gentleboost": examples(boosting.gentleboost(), REAL_ANSWERS),
    "line search": examples(boosting.line_search(), REAL_ANSWERS),
    "nh-boost": examples(boosting.nh_boost()),
    "nh-boost.dt": examples(boosting.nh_boost_dt()),
    "stagewise, shrunken": Case(
        boosting.shrunken_stagewise(0.1), fit, Rounds(None, ANSWERS), ZEROS, (ZEROS,), trees=False
    ),
}
