"""Learners that keep a matrix: second-order regression, classification and Newton steps."""

from olx.second_order.adagrad_full import adagrad_full as adagrad_full
from olx.second_order.arow import arow as arow
from olx.second_order.arow import arow_original as arow_original
from olx.second_order.arow import diagonal_arow as diagonal_arow
from olx.second_order.arow import second_order_perceptron as second_order_perceptron
from olx.second_order.confidence_weighted import confidence_weighted as confidence_weighted
from olx.second_order.confidence_weighted import (
    soft_confidence_weighted as soft_confidence_weighted,
)
from olx.second_order.diagonal_adaptation import diagonal_adaptation as diagonal_adaptation
from olx.second_order.diagonal_arow_original import (
    diagonal_arow_original as diagonal_arow_original,
)
from olx.second_order.epoch_frequent_directions import (
    epoch_frequent_directions as epoch_frequent_directions,
)
from olx.second_order.frequent_directions import frequent_directions as frequent_directions
from olx.second_order.implicit_newton import implicit_newton as implicit_newton
from olx.second_order.invariant_newton import invariant_newton as invariant_newton
from olx.second_order.newton import best_matrix as best_matrix
from olx.second_order.newton import newton as newton
from olx.second_order.oja import adaptive_oja as adaptive_oja
from olx.second_order.oja import oja as oja
from olx.second_order.random_projection import random_projection as random_projection
from olx.second_order.rank_one import Rule as Rule
from olx.second_order.rank_one import Step as Step
from olx.second_order.rank_one import rank_one as rank_one
from olx.second_order.ridge import ridge as ridge
from olx.second_order.ridge import vaw as vaw
from olx.second_order.sketch import Sketch as Sketch
from olx.second_order.sketched_newton import sketched_newton as sketched_newton
