"""Rows of the table: learners of classes."""

import jax
import jax.numpy as jnp
import numpy as np
from cases import KEY, ZEROS, Case

import olx
from olx import classification, losses, mirrors, multiclass, schedules, streams
from olx.convex import norms

ROUNDS, TRUTH = jax.jit(
    lambda: streams.linear_classes(KEY, rounds=24, features=4, classes=3, margin=0.1)
)()
WIDE = jnp.zeros((3, 4))
EVEN, ONE = np.full((3, 4), 1 / 12), np.eye(12)[5].reshape(3, 4)
COST = np.array([[0, 1, 2], [1, 0, 1], [3, 1, 0]])
CODE = np.array([[1, 1], [1, -1], [-1, 0]])


def classes(learner: olx.Learner, comparators=(WIDE, TRUTH)) -> Case:
    """The driver's loss is smooth, whatever the learner goes by."""
    return Case(learner, losses.cross_entropy, ROUNDS, WIDE, comparators)


def ascent(eta, mirror, loss, rule) -> olx.Learner:
    return olx.dual_ascent(eta, mirror, loss, rule)


def reduced(learner: olx.Learner) -> Case:
    return Case(learner, losses.cross_entropy, ROUNDS, ZEROS, (ZEROS,))


FLAT, AGGRESSIVE = mirrors.euclidean(), olx.ascents.aggressive()

MULTICLASS = {
    "multiclass perceptron": classes(multiclass.perceptron()),
    "multiclass perceptron, uniform": classes(multiclass.uniform_perceptron()),
    "multiclass p-norm perceptron": classes(multiclass.pnorm_perceptron(3.0)),
    "multiclass EG": classes(multiclass.exponentiated_gradient(0.5), (EVEN, ONE)),
    "multiclass PA": classes(multiclass.passive_aggressive()),
    "multiclass PA-I": classes(multiclass.passive_aggressive_1(0.3)),
    "multiclass PA-II": classes(multiclass.passive_aggressive_2(0.3)),
    "multiclass aggressive": classes(ascent(0.5, FLAT, losses.multiclass_hinge, AGGRESSIVE)),
    "multiclass aggressive, costs": classes(
        ascent(0.5, FLAT, losses.max_of_hinges(COST), AGGRESSIVE)
    ),
    "multiclass aggressive, squared": classes(
        ascent(0.5, FLAT, losses.multiclass_squared_hinge, AGGRESSIVE)
    ),
    "multiclass aggressive, average": classes(ascent(0.5, FLAT, losses.average_hinge, AGGRESSIVE)),
    "multiclass aggressive, p-norm": classes(
        ascent(0.5, mirrors.pnorm(1.5), losses.multiclass_hinge, AGGRESSIVE)
    ),
    "multiclass self-tuned": classes(
        ascent(schedules.mistakes(2.0, norms.l2()), FLAT, losses.multiclass_hinge, AGGRESSIVE)
    ),
    "softmax by dual ascent": classes(
        ascent(0.5, FLAT, losses.cross_entropy, olx.ascents.subgradient())
    ),
    "softmax regression": classes(olx.linear(olx.ogd(0.1))),
    "softmax regression, adagrad": classes(olx.linear(olx.first_order.adagrad(0.3))),
    "multiclass arow": classes(multiclass.arow(0.7)),
    "multiclass arow, diagonal": classes(multiclass.diagonal_arow(0.7)),
    "multiclass SCW-I": classes(multiclass.soft_confidence_weighted(0.8, 0.6)),
    "multiclass SCW-II": classes(multiclass.soft_confidence_weighted(0.8, 0.6, squared=True)),
    "one vs rest": reduced(multiclass.one_vs_rest(classification.passive_aggressive_1(0.3), 3)),
    "one vs one": reduced(multiclass.one_vs_one(olx.second_order.arow(0.7), 3)),
    "output codes": reduced(
        multiclass.output_codes(olx.linear(olx.ogd(0.2)), CODE, loss=losses.logistic)
    ),
    "banditron": classes(multiclass.banditron(0.3, jax.random.key(3))),
}
