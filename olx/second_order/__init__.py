"""Second-order learners: algorithms that use products of gradients."""

from olx.second_order.oja import adaptive_oja as adaptive_oja
from olx.second_order.oja import oja as oja
from olx.second_order.random_projection import random_projection as random_projection
from olx.second_order.sketch import Sketch as Sketch
from olx.second_order.sketched_newton import sketched_newton as sketched_newton
