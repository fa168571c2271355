"""Rows of the table: weak learners, for boosting."""

from cases import CLASSES, REGRESSION, ZEROS, Case, classification

import olx
from olx import boosting, losses

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
