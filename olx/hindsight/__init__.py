"""Regret, comparators and certificates."""

from olx.hindsight.best import Hindsight as Hindsight
from olx.hindsight.best import best_in_hindsight as best_in_hindsight
from olx.hindsight.certify import certify as certify
from olx.hindsight.corollaries import composite_bound as composite_bound
from olx.hindsight.corollaries import leader_bound as leader_bound
from olx.hindsight.corollaries import no_penalty as no_penalty
from olx.hindsight.corollaries import root_bound as root_bound
from olx.hindsight.corollaries import strongly_convex_bound as strongly_convex_bound
from olx.hindsight.domains import ball as ball
from olx.hindsight.domains import box as box
from olx.hindsight.domains import everywhere as everywhere
from olx.hindsight.domains import simplex as simplex
from olx.hindsight.regret import comparator_losses as comparator_losses
from olx.hindsight.regret import constant as constant
from olx.hindsight.regret import interval_regret as interval_regret
from olx.hindsight.regret import regret as regret
from olx.hindsight.regret import shifting_regret as shifting_regret
from olx.hindsight.regret import shifts as shifts
from olx.hindsight.regret import variation as variation
from olx.hindsight.regret import worst_interval as worst_interval
from olx.hindsight.shifting import best_shifting_expert as best_shifting_expert
