"""Regret, comparators, the best comparator in hindsight, and online-to-batch bounds."""

from olx.hindsight import online_to_batch as online_to_batch
from olx.hindsight.best import Hindsight as Hindsight
from olx.hindsight.best import best_in_hindsight as best_in_hindsight
from olx.hindsight.experts import expert_regrets as expert_regrets
from olx.hindsight.experts import quantile_regret as quantile_regret
from olx.hindsight.pruning import Pruning as Pruning
from olx.hindsight.pruning import best_pruning_in_hindsight as best_pruning_in_hindsight
from olx.hindsight.pruning import edge_losses as edge_losses
from olx.hindsight.regret import comparator_losses as comparator_losses
from olx.hindsight.regret import interval_regret as interval_regret
from olx.hindsight.regret import itself as itself
from olx.hindsight.regret import regret as regret
from olx.hindsight.regret import shifting_regret as shifting_regret
from olx.hindsight.regret import shifts as shifts
from olx.hindsight.regret import variation as variation
from olx.hindsight.regret import worst_interval as worst_interval
from olx.hindsight.shifting import best_shifting_expert as best_shifting_expert
from olx.hindsight.tracking import Piece as Piece
from olx.hindsight.tracking import intervals as intervals
from olx.hindsight.tracking import upward_variation as upward_variation
