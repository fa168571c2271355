"""The table of learners that the others are made of: how to make each, and a stream that suits it.

`cases_first_order` and `cases_experts` hold the named ones; `test_learners` reads all three.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from optax import tree

import olx
from olx import convex, losses, mirrors, regularizers, schedules, streams
from olx.convex import sets
from olx.frameworks import hints

KEY = jax.random.key(7)


@jax.jit  # one program, where each of their steps would be one
def generated():
    square = jax.random.normal(KEY, (24, 3, 3))
    return (
        streams.linear_classification(KEY, rounds=24, features=4, margin=0.1),
        streams.linear_regression(KEY, rounds=24, features=4)[0],
        streams.expert_losses(KEY, rounds=24, experts=4)[0],
        streams.logistic_labels(KEY, rounds=24, features=4)[0],
        olx.Rounds(None, (square + square.transpose(0, 2, 1)) / 2),
    )


(CLASSES, TRUTH), REGRESSION, EXPERTS, LABELS, MATRICES = generated()
ZEROS, UNIFORM, ONES = map(jnp.asarray, (np.zeros(4), np.full(4, 0.25), np.ones(4)))
VERTICES = [jnp.asarray(row) for row in np.eye(4)]
EYE = jnp.asarray(np.eye(3))


class Case(NamedTuple):
    learner: olx.Learner
    loss: olx.core.Loss
    rounds: olx.Rounds
    params: object
    comparators: tuple  # points of the domain
    trees: bool = True  # whether it means the same on a dictionary of two vectors


def regression(inner: olx.Learner, params=ZEROS, comparators=(ZEROS, ONES / 3)) -> Case:
    return Case(olx.linear(inner), losses.squared, REGRESSION, params, comparators)


def classification(learner: olx.Learner, comparators=(ZEROS, TRUTH)) -> Case:
    """The driver's loss is smooth, whatever the learner goes by."""
    return Case(learner, losses.logistic, CLASSES, ZEROS, comparators)


def experts(learner: olx.Learner, rounds=EXPERTS) -> Case:
    return Case(learner, losses.linear_loss, rounds, UNIFORM, (UNIFORM, VERTICES[2]))


def cosh(w):
    return tree.sum(jax.tree.map(jnp.cosh, w))


def affine(params, x):
    return tree.vdot(params["w"], x) + params["b"]


def matrix_loss(w, outcome):
    return jnp.vdot(w, outcome)


SIMPLEX_BALL = (UNIFORM, VERTICES[1])

CASES = {
    "omd euclidean": regression(olx.omd(0.1, mirrors.euclidean())),
    "omd ball": regression(olx.omd(0.1, mirrors.euclidean(sets.ball(0.8)))),
    "omd box": regression(olx.omd(0.1, mirrors.euclidean(sets.box(-0.5, 0.5)))),
    "omd simplex": regression(
        olx.omd(0.1, mirrors.euclidean(sets.simplex())), UNIFORM, SIMPLEX_BALL
    ),
    "omd pnorm": regression(olx.omd(0.1, mirrors.pnorm(1.4)), 0.1 * ONES),
    "omd hypentropy": regression(olx.omd(0.1, mirrors.hypentropy(0.5))),
    "omd orthant entropy": regression(
        olx.omd(0.1, mirrors.unnormalized_entropy()), ONES, (ONES, ONES / 3)
    ),
    "omd binary entropy": regression(
        olx.omd(0.3, mirrors.binary_entropy()), ONES / 2, (ONES / 2, ONES / 3)
    ),
    "omd unseen potential": regression(olx.omd(0.1, olx.mirror_map(cosh))),
    "omd unseen conjugate": regression(olx.omd(0.1, olx.mirror_map(conjugate=cosh))),
    "hedge": experts(olx.hedge(0.7)),
    "omd floored entropy": experts(olx.omd(0.7, mirrors.floored_entropy(0.05)))._replace(
        comparators=(UNIFORM, jnp.array([0.4, 0.3, 0.2, 0.1]))
    ),
    "omd tsallis": experts(olx.omd(0.5, mirrors.tsallis(0.5))),
    "omd log barrier": experts(olx.omd(0.2, mirrors.log_barrier_simplex()))._replace(
        comparators=(UNIFORM, jnp.array([0.4, 0.3, 0.2, 0.1]))
    ),
    "omd density matrices": Case(
        olx.omd(0.3, mirrors.von_neumann()),
        matrix_loss,
        MATRICES,
        EYE / 3,
        (EYE / 3, jnp.asarray(np.diag([0.5, 0.3, 0.2]))),
    ),
    "omd schatten": Case(
        olx.omd(0.1, mirrors.schatten(1.5)),
        matrix_loss,
        MATRICES,
        0.1 * EYE,
        (0 * EYE, EYE),
    ),
    "md euclidean": regression(olx.ogd(0.1)),
    "md ball, decaying": regression(
        olx.md(schedules.decay(0.5), mirrors.euclidean(sets.ball(0.6))),
        comparators=(ZEROS, ONES / 4),
    ),
    "md entropy, decaying": experts(olx.md(schedules.decay(0.5, 1.0), mirrors.negative_entropy())),
    "ftrl constant": regression(olx.ftrl(0.1, mirrors.euclidean())),
    "ftrl growing": regression(olx.ftrl(0.3, regularizers.growing(mirrors.hypentropy(0.5)))),
    "ftrl composite l1": regression(
        olx.ftrl(0.3, regularizers.composite(convex.l1(0.05), rate=0.3))
    ),
    "ftrl composite group": regression(
        olx.ftrl(0.3, regularizers.composite(convex.group_l2(0.02), rate=0.3, power=0.0))
    )._replace(trees=False),  # a vector is a group: two vectors are two groups
    "ftrl leader": regression(
        olx.ftrl(1.0, regularizers.growing(mirrors.quadratic(1.0, convex.l1(0.02)), 1.0))
    ),
    "ftrl adagrad": regression(olx.ftrl(0.5, regularizers.adagrad())),
    "ftrl adagrad l1": regression(
        olx.ftrl(0.5, regularizers.adagrad(penalty=convex.l1(0.02), rate=0.5))
    ),
    "optimistic": regression(olx.optimistic(0.1, mirrors.euclidean(sets.ball(0.8)))),
    "optimistic adagrad": regression(olx.optimistic(0.3, regularizers.adagrad())),
    "optimistic from context": Case(
        olx.optimistic(0.5, mirrors.negative_entropy(), hints.from_context()),
        losses.linear_loss,
        olx.Rounds(EXPERTS.outcome * 0.9, EXPERTS.outcome),
        UNIFORM,
        (UNIFORM, VERTICES[2]),
    ),
    "optimistic md": regression(olx.optimistic_md(0.1, mirrors.euclidean(sets.ball(0.8)))),
    "optimistic md entropy": experts(olx.optimistic_md(0.5, mirrors.negative_entropy())),
    "model": Case(
        olx.model(olx.ogd(0.1), affine),
        losses.squared,
        REGRESSION,
        {"w": ZEROS, "b": jnp.zeros(())},
        ({"w": ONES, "b": jnp.ones(())},),
    ),
    "affine": Case(
        olx.affine(olx.ogd(0.1)), losses.squared, REGRESSION, jnp.zeros(5), (jnp.ones(5),), False
    ),
}
