"""Learners as layers of a network: fast weights that an online learner changes token by token."""

from olx.layers.fast_weights import FastWeights as FastWeights
from olx.layers.fast_weights import fast_weights as fast_weights
from olx.layers.forgetting import with_forgetting as with_forgetting
