"""Streams: your own arrays, generators that are pure functions of a key, and adversaries."""

from olx.streams.adversaries import contradicting as contradicting
from olx.streams.adversaries import heaviest_expert as heaviest_expert
from olx.streams.adversaries import random_signs as random_signs
from olx.streams.adversaries import steepest as steepest
from olx.streams.adversaries import threshold as threshold
from olx.streams.adversaries import unit_vectors as unit_vectors
from olx.streams.arrays import from_arrays as from_arrays
from olx.streams.changing import drifting as drifting
from olx.streams.changing import rotating as rotating
from olx.streams.changing import switching as switching
from olx.streams.classification import linear_classification as linear_classification
from olx.streams.classification import logistic_labels as logistic_labels
from olx.streams.classification import r_of_k as r_of_k
from olx.streams.experts import alternating_losses as alternating_losses
from olx.streams.experts import drifting_losses as drifting_losses
from olx.streams.experts import expert_losses as expert_losses
from olx.streams.experts import random_sign_losses as random_sign_losses
from olx.streams.experts import switching_losses as switching_losses
from olx.streams.regression import heavy_tailed as heavy_tailed
from olx.streams.regression import ill_conditioned as ill_conditioned
from olx.streams.regression import linear_regression as linear_regression
from olx.streams.regression import sparse as sparse
from olx.streams.sparse_rows import SparseRows as SparseRows
from olx.streams.sparse_rows import read_svmlight as read_svmlight
from olx.streams.sparse_rows import sparse_rows as sparse_rows
from olx.streams.stream import Stream as Stream
