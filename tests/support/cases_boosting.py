"""Rows of the table: boosted learners."""

import jax
from cases import KEY, Case, classification

import olx
from olx import boosting, losses

WEAK = olx.linear(olx.ogd(0.3))
PA = olx.classification.passive_aggressive_1(0.5)


def online(rule, n=5, inner=WEAK, **options) -> Case:
    return classification(boosting.boost(inner, n, rule, **options))


ONLINE = {
    "boost, BBM": online(boosting.online_bbm(0.1), loss=losses.hinge),
    "boost, potential": online(
        boosting.potential_booster(boosting.exponential_potential(5, 0.1, 0.3)), inner=PA, key=KEY
    ),
    "boost, AdaBoost.OL": online(boosting.adaboost_ol()),
    "boost, AdaBoost.OL, drawn": online(boosting.adaboost_ol(jax.random.key(3))),
    "boost, AdaBoost.OL, mean": online(boosting.adaboost_ol_mean()),
    "boost, OSBoost": online(boosting.osboost(0.1)),
    "boost, OSBoost.OCP": online(boosting.osboost_ocp(0.1)),
    "boost of boost": online(
        boosting.online_bbm(0.1), 3, boosting.boost(WEAK, 3, boosting.adaboost_ol())
    ),
}
BOOSTING: dict[str, Case] = ONLINE
