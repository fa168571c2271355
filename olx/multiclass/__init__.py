"""Predictors of one of k classes: a row of weights per class, or many binary predictors."""

from olx.multiclass.exponentiated_gradient import exponentiated_gradient as exponentiated_gradient
from olx.multiclass.passive_aggressive import passive_aggressive as passive_aggressive
from olx.multiclass.passive_aggressive import passive_aggressive_1 as passive_aggressive_1
from olx.multiclass.passive_aggressive import passive_aggressive_2 as passive_aggressive_2
from olx.multiclass.perceptron import (
    multiclass_perceptron_mistakes as multiclass_perceptron_mistakes,
)
from olx.multiclass.perceptron import perceptron as perceptron
from olx.multiclass.perceptron import uniform_perceptron as uniform_perceptron
from olx.multiclass.pnorm_perceptron import pnorm_perceptron as pnorm_perceptron
