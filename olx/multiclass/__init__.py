"""Predictors of one of k classes: a row of weights per class, or many binary predictors."""

from olx.multiclass.banditron import banditron as banditron
from olx.multiclass.banditron import banditron_bound as banditron_bound
from olx.multiclass.passive_aggressive import passive_aggressive as passive_aggressive
from olx.multiclass.passive_aggressive import passive_aggressive_1 as passive_aggressive_1
from olx.multiclass.passive_aggressive import passive_aggressive_2 as passive_aggressive_2
from olx.multiclass.perceptron import exponentiated_gradient as exponentiated_gradient
from olx.multiclass.perceptron import perceptron as perceptron
from olx.multiclass.perceptron import pnorm_perceptron as pnorm_perceptron
from olx.multiclass.perceptron import uniform_perceptron as uniform_perceptron
from olx.multiclass.reductions import one_vs_one as one_vs_one
from olx.multiclass.reductions import one_vs_rest as one_vs_rest
from olx.multiclass.reductions import output_codes as output_codes
from olx.multiclass.second_order import arow as arow
from olx.multiclass.second_order import diagonal_arow as diagonal_arow
from olx.multiclass.second_order import soft_confidence_weighted as soft_confidence_weighted
