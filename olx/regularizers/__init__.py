"""Regularizers that change as the game goes on."""

from olx.regularizers.adagrad import adagrad as adagrad
from olx.regularizers.composite import composite as composite
from olx.regularizers.constant import constant as constant
from olx.regularizers.growing import growing as growing
