"""Rankers: labels by relevance, rows of a group by relevance, and how rankings are judged."""

from olx.ranking.geometries import aggressive as aggressive
from olx.ranking.geometries import conservative as conservative
from olx.ranking.geometries import optimal as optimal
from olx.ranking.instance_ranking import group_rows as group_rows
from olx.ranking.instance_ranking import instance_ranking as instance_ranking
from olx.ranking.instance_ranking import rank_rows as rank_rows
from olx.ranking.instance_ranking import row_scores as row_scores
from olx.ranking.label_ranking import label_ranking as label_ranking
from olx.ranking.metrics import average_precision as average_precision
from olx.ranking.metrics import coverage as coverage
from olx.ranking.metrics import log_discount as log_discount
from olx.ranking.metrics import mistake as mistake
from olx.ranking.metrics import ndcg as ndcg
from olx.ranking.metrics import one_error as one_error
from olx.ranking.metrics import ranking_loss as ranking_loss
from olx.ranking.metrics import reciprocal_rank as reciprocal_rank
