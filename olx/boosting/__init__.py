"""Boosting: many copies of a weak learner vote, in the batch game and online."""

from olx.boosting.gradient_boost import gradient_boost as gradient_boost
from olx.boosting.gradient_boost_hull import gradient_boost_hull as gradient_boost_hull
