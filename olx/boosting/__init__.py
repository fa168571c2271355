"""Boosting: many copies of a weak learner vote, in the batch game and online."""

from olx.boosting.adaboost_mistakes import weak_adaboost_mistakes as weak_adaboost_mistakes
from olx.boosting.adaboost_ol import adaboost_ol as adaboost_ol
from olx.boosting.adaboost_ol import adaboost_ol_mean as adaboost_ol_mean
from olx.boosting.boost import boost as boost
from olx.boosting.majority import majority_mistakes_at as majority_mistakes_at
from olx.boosting.online_bbm import online_bbm as online_bbm
from olx.boosting.osboost import osboost as osboost
from olx.boosting.osboost import osboost_ocp as osboost_ocp
from olx.boosting.potential_booster import exponential_potential as exponential_potential
from olx.boosting.potential_booster import majority_potential as majority_potential
from olx.boosting.potential_booster import potential_booster as potential_booster
from olx.boosting.potential_booster import potential_mistakes as potential_mistakes
from olx.boosting.rule import BoostingRule as BoostingRule
