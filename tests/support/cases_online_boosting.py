"""Rows of the table: online boosting for classification."""

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
    "boost, AdaBoost.OL, drawn": online(boosting.adaboost_ol(jax.random.key(3))),
    "boost, OSBoost.OCP": online(boosting.osboost_ocp(0.1)),
}
