"""Theorems with numbers of their own, such as a margin, or about sequences of comparators.

A learner carries the theorems that its numbers determine. These here are given to `olx.certify` as
`theorems=`. Each is stated in the file of the rule that it is about.
"""

from olx.boosting.adaboost_ol import weak_adaboost_mistakes as weak_adaboost_mistakes
from olx.boosting.gradient_boost import linearized_regret as linearized_regret
from olx.boosting.gradient_boost import span_regret as span_regret
from olx.boosting.gradient_boost import span_stages as span_stages
from olx.boosting.gradient_boost_hull import hull_regret as hull_regret
from olx.boosting.gradient_boost_hull import hull_stages as hull_stages
from olx.boosting.greedy import greedy_regret as greedy_regret
from olx.boosting.nh_boost import margins as margins
from olx.boosting.online_bbm import majority_mistakes_at as majority_mistakes_at
from olx.boosting.potential_booster import potential_mistakes as potential_mistakes
from olx.boosting.stagewise import stagewise_loss as stagewise_loss
from olx.classification.alma import alma_mistakes as alma_mistakes
from olx.classification.perceptron import perceptron_mistakes as perceptron_mistakes
from olx.classification.perceptron import separable_mistakes as separable_mistakes
from olx.classification.winnow import r_of_k_mistakes as r_of_k_mistakes
from olx.classification.winnow import (
    self_tuned_winnow_mistakes as self_tuned_winnow_mistakes,
)
from olx.classification.winnow import tuned_winnow_mistakes as tuned_winnow_mistakes
from olx.classification.winnow import winnow_mistakes as winnow_mistakes
from olx.experts.ada_normal_hedge import random_gap as random_gap
from olx.experts.conversions import equivalence as equivalence
from olx.experts.fixed_share import fixed_share_path as fixed_share_path
from olx.experts.particles import nearby_points as nearby_points
from olx.experts.quantiles import hedge_quantile as hedge_quantile
from olx.experts.quantiles import quantile as quantile
from olx.experts.sampled import committed_draws as committed_draws
from olx.experts.sampled import sampled_draws as sampled_draws
from olx.experts.tracking import changing as changing
from olx.experts.tracking import interval_from as interval_from
from olx.first_order.strongly_convex import strongly_convex_regret as strongly_convex_regret
from olx.frameworks.ftrl import composite_regret as composite_regret
from olx.frameworks.ftrl import leader_regret as leader_regret
from olx.frameworks.ftrl import root_regret as root_regret
from olx.frameworks.md import surrogate_regret as surrogate_regret
from olx.frameworks.mistakes import conservative_mistakes as conservative_mistakes
from olx.meta.ader import path_regret as path_regret
from olx.meta.sword import path_variation_regret as path_variation_regret
from olx.multiclass.perceptron import (
    multiclass_perceptron_mistakes as multiclass_perceptron_mistakes,
)
from olx.second_order.frequent_directions import best_rank_regret as best_rank_regret
from olx.second_order.frequent_directions import directions_regret as directions_regret
from olx.second_order.frequent_directions import lost_trace as lost_trace
from olx.second_order.invariant_newton import rank_regret as rank_regret
from olx.second_order.newton import fixed_matrix_regret as fixed_matrix_regret
from olx.second_order.random_projection import projection_drift as projection_drift
from olx.second_order.random_projection import projection_terms as projection_terms
from olx.second_order.sketched_newton import newton_regret as newton_regret
