"""Rows of the table: boosters of examples, online boosters, and weak learners for them."""

import jax
import jax.numpy as jnp
import numpy as np
from cases import (
    CLASSES,
    KEY,
    LABELS,
    ONES,
    REGRESSION,
    UNIFORM,
    VERTICES,
    ZEROS,
    Case,
    classification,
)

import olx
from olx import Rounds, boosting, losses
from olx.convex import sets

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

ROWS = REGRESSION.context / np.linalg.norm(REGRESSION.context, axis=1).max()
SMALL = Rounds(ROWS, REGRESSION.outcome / (2 * np.abs(REGRESSION.outcome).max()))
SIGNS = Rounds(ROWS, LABELS.outcome)
BALL = olx.linear(olx.ogd(0.5, sets.ball(0.4)))

GRADIENT = {
    "gradient boost": Case(
        boosting.gradient_boost(olx.linear(olx.ogd(0.1)), 3, 0.5, losses.squared),
        losses.squared,
        SMALL,
        ZEROS,
        (ZEROS, ONES / 3, 2 * ONES),
    ),
    "gradient boost, hull": Case(
        boosting.gradient_boost_hull(
            boosting.greedy(boosting.scaled(BALL, 1.5), [0.5, 0.3, 0.2]),
            3,
            losses.logistic,
            0.6,
            2.0,
        ),
        losses.logistic,
        SIGNS,
        ZEROS,
        (ZEROS, ONES / 5),
    ),
    "gradient boost, linearized": Case(
        boosting.gradient_boost_linearized(BALL, 3, 0.5, losses.power(3.0), bound=0.4),
        losses.power(3.0),
        SMALL,
        ZEROS,
        (ZEROS, -ONES / 3),
    ),
}

LINE = olx.linear(olx.ogd(0.3))
PA = olx.classification.passive_aggressive_1(0.5)


def online(rule, n=5, inner=LINE, **options) -> Case:
    return classification(boosting.boost(inner, n, rule, **options))


ONLINE = {
    "boost, BBM": online(boosting.online_bbm(0.1), loss=losses.hinge),
    "boost, potential": online(
        boosting.potential_booster(boosting.exponential_potential(5, 0.1, 0.3)), inner=PA, key=KEY
    ),
    "boost, AdaBoost.OL, drawn": online(boosting.adaboost_ol(jax.random.key(3))),
    "boost, OSBoost.OCP": online(boosting.osboost_ocp(0.1)),
}

WEAK: dict[str, Case] = {
    "streaming stumps": classification(boosting.streaming_stumps()),
    "regression stumps": Case(
        boosting.regression_stumps(olx.linear(olx.ogd(0.1))),
        losses.squared,
        REGRESSION,
        ZEROS,
        (ZEROS,),
    ),
    "regression stumps, normalized": Case(
        boosting.regression_stumps(olx.first_order.normalized_adagrad(0.5)),
        losses.logistic,
        CLASSES,
        ZEROS,
        (ZEROS,),
    ),
    "clipped": Case(
        boosting.clipped(olx.linear(olx.ogd(0.3)), 0.4), losses.squared, REGRESSION, ZEROS, (ZEROS,)
    ),
    "sigmoid network": Case(
        boosting.sigmoid_network(olx.ogd(0.1), 3), losses.squared, REGRESSION, ZEROS, (ZEROS,)
    ),
    "boost scores": classification(
        boosting.boost_scores(
            olx.first_order.normalized_adagrad(0.5), 3, boosting.online_bbm(0.1), losses.squared
        )
    ),
}

BOOSTING = BATCH | GRADIENT | ONLINE | WEAK
