"""Boosting: many copies of a weak learner vote, in the batch game and online."""

from olx.boosting.adaboost_mistakes import weak_adaboost_mistakes as weak_adaboost_mistakes
from olx.boosting.adaboost_ol import adaboost_ol as adaboost_ol
from olx.boosting.adaboost_ol import adaboost_ol_mean as adaboost_ol_mean
from olx.boosting.boost import boost as boost
from olx.boosting.gradient_boost import gradient_boost as gradient_boost
from olx.boosting.gradient_boost_hull import gradient_boost_hull as gradient_boost_hull
from olx.boosting.majority import majority_mistakes_at as majority_mistakes_at
from olx.boosting.online_bbm import online_bbm as online_bbm
from olx.boosting.osboost import osboost as osboost
from olx.boosting.osboost import osboost_ocp as osboost_ocp
from olx.boosting.potential_booster import exponential_potential as exponential_potential
from olx.boosting.potential_booster import majority_potential as majority_potential
from olx.boosting.potential_booster import potential_booster as potential_booster
from olx.boosting.potential_booster import potential_mistakes as potential_mistakes
from olx.boosting.regression_stumps import regression_stumps as regression_stumps
from olx.boosting.rule import BoostingRule as BoostingRule
from olx.boosting.sigmoid_network import first_weights as first_weights
from olx.boosting.sigmoid_network import network as network
from olx.boosting.sigmoid_network import sigmoid_network as sigmoid_network
from olx.boosting.streaming_stumps import streaming_stumps as streaming_stumps
