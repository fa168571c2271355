"""Boosting: many copies of a weak learner vote, in the batch game and online."""

from olx.boosting.adaboost_ol import adaboost_ol as adaboost_ol
from olx.boosting.adaboost_ol import adaboost_ol_mean as adaboost_ol_mean
from olx.boosting.boost import boost as boost
from olx.boosting.online_bbm import online_bbm as online_bbm
from olx.boosting.rule import BoostingRule as BoostingRule
