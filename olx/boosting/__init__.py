"""Boosting: many copies of a weak learner vote, in the batch game and online."""

from olx.boosting.regression_stumps import regression_stumps as regression_stumps
from olx.boosting.sigmoid_network import first_weights as first_weights
from olx.boosting.sigmoid_network import network as network
from olx.boosting.sigmoid_network import sigmoid_network as sigmoid_network
from olx.boosting.streaming_stumps import streaming_stumps as streaming_stumps
