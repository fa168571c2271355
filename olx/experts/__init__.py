"""Prediction with expert advice: a learner plays distributions over experts, who may sleep.

Three arguments have the same meaning in all factories:

prior: non-negative weights of the experts, need not add up to 1; `params` if None.
low, high: the range of losses, 0 and 1 if None; losses outside it are refused. `ml_poly` and
    `any_range` need none.
"""

from olx.experts.ada_normal_hedge import ada_normal_hedge as ada_normal_hedge
from olx.experts.any_range import any_range as any_range
from olx.experts.bandit import bandit as bandit
from olx.experts.base import Seen as Seen
from olx.experts.base import Weights as Weights
from olx.experts.base import expected_loss as expected_loss
from olx.experts.base import expert_learner as expert_learner
from olx.experts.best_pruning import Path as Path
from olx.experts.best_pruning import best_pruning as best_pruning
from olx.experts.conversions import experts_from_game as experts_from_game
from olx.experts.conversions import game_from_experts as game_from_experts
from olx.experts.drifting_game import drifting_game as drifting_game
from olx.experts.exp3 import exp3 as exp3
from olx.experts.exp3 import exp3_bound as exp3_bound
from olx.experts.exp3 import exp3_step as exp3_step
from olx.experts.fixed_share import fixed_share as fixed_share
from olx.experts.gibbs import gibbs as gibbs
from olx.experts.hedge import adahedge as adahedge
from olx.experts.hedge import anytime_hedge as anytime_hedge
from olx.experts.linearized import linearized as linearized
from olx.experts.ml_poly import ml_poly as ml_poly
from olx.experts.normal_hedge import normal_hedge as normal_hedge
from olx.experts.normal_hedge import normal_hedge_dt as normal_hedge_dt
from olx.experts.normal_hedge import two_norm as two_norm
from olx.experts.particles import particles as particles
from olx.experts.potential_experts import potential_experts as potential_experts
from olx.experts.prod import adapt_ml_prod as adapt_ml_prod
from olx.experts.prod import boa as boa
from olx.experts.prod import prod as prod
from olx.experts.sampled import committed as committed
from olx.experts.sampled import sampled as sampled
from olx.experts.squint import squint as squint
from olx.experts.tracking import ada_normal_hedge_streaming as ada_normal_hedge_streaming
from olx.experts.tracking import ada_normal_hedge_tv as ada_normal_hedge_tv
