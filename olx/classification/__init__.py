"""Classifiers of linear scores, each with its mistake bound."""

from olx.classification.aggressive_perceptron import aggressive_perceptron as aggressive_perceptron
from olx.classification.aggressive_perceptron import self_tuned_aggressive as self_tuned_aggressive
from olx.classification.alma import alma as alma
from olx.classification.alma import small_margin_alma as small_margin_alma
from olx.classification.passive_aggressive import passive_aggressive as passive_aggressive
from olx.classification.passive_aggressive import passive_aggressive_1 as passive_aggressive_1
from olx.classification.passive_aggressive import passive_aggressive_2 as passive_aggressive_2
from olx.classification.perceptron import perceptron as perceptron
from olx.classification.perceptron import pnorm_perceptron as pnorm_perceptron
from olx.classification.romma import aggressive_romma as aggressive_romma
from olx.classification.romma import romma as romma
from olx.classification.winnow import balanced_winnow as balanced_winnow
from olx.classification.winnow import self_tuned_winnow as self_tuned_winnow
from olx.classification.winnow import unnormalized_winnow as unnormalized_winnow
from olx.classification.winnow import winnow as winnow
