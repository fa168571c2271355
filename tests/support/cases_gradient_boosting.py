"""Rows of the table: online gradient boosting."""

import numpy as np
from cases import LABELS, ONES, REGRESSION, ZEROS, Case

import olx
from olx import boosting, losses
from olx.convex import sets

ROWS = REGRESSION.context / np.linalg.norm(REGRESSION.context, axis=1).max()
SMALL = olx.Rounds(ROWS, REGRESSION.outcome / (2 * np.abs(REGRESSION.outcome).max()))
SIGNS = olx.Rounds(ROWS, LABELS.outcome)
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
