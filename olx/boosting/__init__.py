"""Boosting: many copies of a weak learner vote, in the batch game and online."""

from olx.boosting.adaboost import adaboost as adaboost
from olx.boosting.adaboost_ol import adaboost_ol as adaboost_ol
from olx.boosting.adaboost_ol import adaboost_ol_mean as adaboost_ol_mean
from olx.boosting.boost import boost as boost
from olx.boosting.boost_scores import boost_scores as boost_scores
from olx.boosting.booster import booster as booster
from olx.boosting.clipped import clipped as clipped
from olx.boosting.fit import Boosted as Boosted
from olx.boosting.fit import Ensemble as Ensemble
from olx.boosting.fit import boost_with as boost_with
from olx.boosting.gentleboost import gentleboost as gentleboost
from olx.boosting.gradient_boost import gradient_boost as gradient_boost
from olx.boosting.gradient_boost_hull import gradient_boost_hull as gradient_boost_hull
from olx.boosting.gradient_boost_linearized import (
    gradient_boost_linearized as gradient_boost_linearized,
)
from olx.boosting.greedy import greedy as greedy
from olx.boosting.line_search import line_search as line_search
from olx.boosting.majority import majority as majority
from olx.boosting.nh_boost import nh_boost as nh_boost
from olx.boosting.nh_boost import nh_boost_dt as nh_boost_dt
from olx.boosting.online_bbm import online_bbm as online_bbm
from olx.boosting.oracle import oracle as oracle
from olx.boosting.osboost import osboost as osboost
from olx.boosting.osboost import osboost_ocp as osboost_ocp
from olx.boosting.potential_booster import exponential_potential as exponential_potential
from olx.boosting.potential_booster import majority_potential as majority_potential
from olx.boosting.potential_booster import potential_booster as potential_booster
from olx.boosting.regression_stumps import regression_stumps as regression_stumps
from olx.boosting.rule import BoostingRule as BoostingRule
from olx.boosting.scaled import scaled as scaled
from olx.boosting.sigmoid_network import first_weights as first_weights
from olx.boosting.sigmoid_network import network as network
from olx.boosting.sigmoid_network import sigmoid_network as sigmoid_network
from olx.boosting.stagewise import shrunken_stagewise as shrunken_stagewise
from olx.boosting.stagewise import stagewise as stagewise
from olx.boosting.stagewise_fit import Fitted as Fitted
from olx.boosting.stagewise_fit import fit_stagewise as fit_stagewise
from olx.boosting.streaming_stumps import streaming_stumps as streaming_stumps
from olx.boosting.stumps import stumps as stumps
from olx.boosting.symmetrized import symmetrized as symmetrized
from olx.boosting.weak import adversary as adversary
from olx.boosting.weak import weak_learner as weak_learner
