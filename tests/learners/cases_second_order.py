"""Rows of the table: second-order algorithms."""

import jax
from cases import ONES, REGRESSION, TRUTH, ZEROS, Case, classification, regression

import olx
from olx import losses, second_order

BOUND = 6.0  # larger than every outcome of the regression stream
CURVATURE = 1 / (8 * BOUND**2)


def forecast(learner: olx.Learner) -> Case:
    return Case(learner, losses.squared, REGRESSION, ZEROS, (ZEROS, ONES / 3))


def margins(learner: olx.Learner) -> Case:
    return classification(learner, (ZEROS, 5 * TRUTH))


def sketched(sketch: olx.second_order.Sketch | None, alpha=4.0, **numbers) -> olx.Learner:
    return second_order.sketched_newton(sketch, alpha, BOUND, **{"curvature": CURVATURE} | numbers)


KEY = jax.random.key(11)
OJA = second_order.oja(2, key=KEY)

SECOND_ORDER = {
    "vaw": forecast(second_order.vaw(2.0)),
    "ridge": forecast(second_order.ridge(2.0)),
    "ridge, forgetting": forecast(second_order.ridge(2.0, 0.9)),
    "second-order perceptron": margins(second_order.second_order_perceptron(1.5)),
    "arow": margins(second_order.arow(0.7)),
    "arow, original": margins(second_order.arow_original(0.7)),
    "arow, diagonal": margins(second_order.diagonal_arow(0.7)),
    "arow, diagonal, original": margins(second_order.diagonal_arow_original(0.7)),
    "confidence-weighted": margins(second_order.confidence_weighted(0.8)),
    "SCW-I": margins(second_order.soft_confidence_weighted(0.8, 0.6)),
    "SCW-II": margins(second_order.soft_confidence_weighted(0.8, 0.6, squared=True)),
    "adagrad, full": regression(second_order.adagrad_full(0.5))._replace(trees=False),
    "newton": forecast(second_order.newton(0.5, BOUND, curvature=CURVATURE)),
    "newton, lipschitz": forecast(second_order.newton(0.5, BOUND, lipschitz=4 * BOUND)),
    "newton, invariant": forecast(second_order.invariant_newton(BOUND, curvature=CURVATURE)),
    "newton, implicit": forecast(second_order.implicit_newton(losses.squared, 2.0)),
    "newton, implicit, logistic": margins(second_order.implicit_newton(losses.logistic)),
    "newton, not sketched": forecast(sketched(None)),
    "newton, random projection": forecast(sketched(second_order.random_projection(3, KEY))),
    "newton, frequent directions": forecast(sketched(second_order.frequent_directions(3))),
    "newton, epochs": forecast(sketched(second_order.epoch_frequent_directions(2))),
    "newton, oja": forecast(sketched(OJA, lipschitz=2 * BOUND)),
    "newton, oja, first row": forecast(sketched(OJA, alpha=None)),
    "newton, adaptive oja": forecast(sketched(second_order.adaptive_oja(2, key=KEY))),
    "newton, oja, adapted": forecast(second_order.diagonal_adaptation(sketched(OJA))),
    "ogd, adapted": forecast(second_order.diagonal_adaptation(olx.linear(olx.ogd(0.1)))),
    "ogd, adapted at once": forecast(
        second_order.diagonal_adaptation(olx.linear(olx.ogd(0.1)), current=True)
    ),
}
