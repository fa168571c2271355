"""Boosting: many copies of a weak learner vote, in the batch game and online."""

from olx.boosting.gradient_boost import gradient_boost as gradient_boost
from olx.boosting.gradient_boost import span_regret as span_regret
from olx.boosting.gradient_boost import span_stages as span_stages
from olx.boosting.gradient_boost_hull import gradient_boost_hull as gradient_boost_hull
from olx.boosting.gradient_boost_hull import hull_regret as hull_regret
from olx.boosting.gradient_boost_hull import hull_stages as hull_stages
from olx.boosting.gradient_boost_linearized import (
    gradient_boost_linearized as gradient_boost_linearized,
)
from olx.boosting.gradient_boost_linearized import linearized_regret as linearized_regret
from olx.boosting.greedy import greedy as greedy
from olx.boosting.greedy_regret import greedy_regret as greedy_regret
from olx.boosting.scaled import scaled as scaled
from olx.boosting.symmetrized import symmetrized as symmetrized
