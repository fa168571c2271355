"""Boosting: many copies of a weak learner vote, in the batch game and online."""

from olx.boosting.adaboost import adaboost as adaboost
from olx.boosting.booster import booster as booster
from olx.boosting.ensemble import Ensemble as Ensemble
from olx.boosting.fit import Boosted as Boosted
from olx.boosting.fit import boost_with as boost_with
from olx.boosting.gentleboost import gentleboost as gentleboost
from olx.boosting.line_search import line_search as line_search
from olx.boosting.majority import majority as majority
from olx.boosting.nh_boost import margins as margins
from olx.boosting.nh_boost import nh_boost as nh_boost
from olx.boosting.nh_boost import nh_boost_dt as nh_boost_dt
from olx.boosting.oracle import oracle as oracle
from olx.boosting.stagewise import shrunken_stagewise as shrunken_stagewise
from olx.boosting.stagewise import stagewise as stagewise
from olx.boosting.stagewise import stagewise_loss as stagewise_loss
from olx.boosting.stagewise_fit import Fitted as Fitted
from olx.boosting.stagewise_fit import fit_stagewise as fit_stagewise
from olx.boosting.stumps import stumps as stumps
from olx.boosting.weak import adversary as adversary
from olx.boosting.weak import weak_learner as weak_learner
