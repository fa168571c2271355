"""Rows of the table: the named first-order algorithms."""

import jax.numpy as jnp
import numpy as np
from cases import (
    CLASSES,
    LABELS,
    ONES,
    REGRESSION,
    TRUTH,
    UNIFORM,
    VERTICES,
    ZEROS,
    Case,
    classification,
    experts,
    regression,
)
from optax import tree

import olx
from olx import ascents, convex, losses, mirrors, schedules
from olx.convex import norms, sets

EUCLID, BALL = mirrors.euclidean(), mirrors.euclidean(sets.ball(0.8))
ENTROPY = mirrors.negative_entropy()
ON_SIMPLEX = (UNIFORM, VERTICES[1])


def logistic(learner: olx.Learner) -> Case:
    return Case(learner, losses.logistic, LABELS, ZEROS, (ZEROS, ONES / 3))


def parabola(w, outcome):
    apart = tree.sub(w, outcome)
    return tree.vdot(apart, apart) / 2


def curved(learner: olx.Learner) -> Case:
    """A loss that is 1-strongly convex in the decision."""
    rounds = olx.Rounds(None, REGRESSION.context)
    return Case(learner, parabola, rounds, ZEROS, (ZEROS, ONES / 3))


def dual(mirror, loss, ascent, eta=0.5) -> olx.Learner:
    return olx.dual_ascent(eta, mirror, loss, ascent)


SIGNS = CLASSES._replace(context=jnp.asarray(np.sign(np.round(1.5 * np.asarray(CLASSES.context)))))

FIRST_ORDER = {
    "dual ascent, own loss": Case(
        dual(EUCLID, losses.squared, ascents.aggressive(), schedules.own_loss(1.0, 2.0)),
        *regression(olx.ogd(0.1))[1:],
    ),
    "dual ascent, entropy": classification(
        dual(ENTROPY, losses.hinge, ascents.aggressive()), ON_SIMPLEX
    ),
    "dual ascent, signs": classification(
        dual(ENTROPY, losses.margin_hinge(0.3), ascents.aggressive_signs()), ON_SIMPLEX
    )._replace(rounds=SIGNS),
    "dual ascent, window": classification(dual(EUCLID, losses.hinge, ascents.window(3, 4))),
    "dual ascent, mini-updates": classification(
        dual(EUCLID, losses.hinge, ascents.mini_updates(3, 5))
    ),
    "dual ascent, structured": classification(
        dual(
            EUCLID,
            losses.hinge,
            ascents.conservative(ascents.aggressive()),
            schedules.structured(0.5, norms.l2()),
        )
    ),
    "perceptron": classification(olx.classification.perceptron()),
    "p-norm perceptron": classification(olx.classification.pnorm_perceptron(3.0)),
    "winnow": classification(olx.classification.winnow(0.3), ON_SIMPLEX),
    "winnow, positive orthant": classification(
        olx.classification.unnormalized_winnow(0.3), (UNIFORM,)
    ),
    "winnow, balanced": classification(olx.classification.balanced_winnow(0.3, 2.0)),
    "winnow, self-tuned": classification(olx.classification.self_tuned_winnow(), ON_SIMPLEX),
    "PA": classification(olx.classification.passive_aggressive()),
    "PA-I": classification(olx.classification.passive_aggressive_1(0.3)),
    "PA-II": classification(olx.classification.passive_aggressive_2(0.2)),
    "aggressive perceptron": classification(
        olx.classification.aggressive_perceptron(mirrors.pnorm(1.5))
    ),
    "self-tuned aggressive": classification(olx.classification.self_tuned_aggressive(EUCLID, 50.0)),
    "romma": classification(olx.classification.romma(0.01), (10 * TRUTH,)),
    "romma, aggressive": classification(olx.classification.romma(0.9), (10 * TRUTH,)),
    "alma": classification(olx.classification.alma(0.8)),
    "EG": regression(olx.first_order.exponentiated_gradient(0.1), UNIFORM, ON_SIMPLEX),
    "EG+-": regression(olx.first_order.signed_exponentiated_gradient(0.1, 2.0)),
    "implicit": logistic(olx.implicit(0.3, losses.logistic)),
    "strongly convex MD": curved(olx.first_order.strongly_convex_md(0.5, BALL)),
    "strongly convex ogd": curved(olx.first_order.strongly_convex_ogd(0.5)),
    "rda": regression(olx.first_order.rda(0.3, convex.l1(0.05))),
    "adagrad": regression(olx.first_order.adagrad(0.5, penalty=convex.l1(0.02))),
    "ftrl-proximal": regression(olx.first_order.ftrl_proximal(0.5, 1.0, 0.1, 0.1)),
    "p-norm lms": regression(olx.first_order.pnorm_lms(3.5)),
    "self-confident": regression(olx.first_order.self_confident(BALL, 1.0, 0.01)),
    "self-confident, entropy": experts(olx.first_order.self_confident(ENTROPY, 1.4, 0.01)),
    "scale-invariant p-norm": logistic(olx.linear(olx.first_order.scale_invariant_pnorm(0.5))),
    "normalized adagrad": logistic(olx.first_order.normalized_adagrad(0.5, 0.25)),
    "scale-invariant adagrad": logistic(olx.linear(olx.first_order.scale_invariant_adagrad(0.5))),
    "coin betting": logistic(olx.linear(olx.first_order.coin_betting(5.0))),
    "coordinate betting": logistic(olx.linear(olx.first_order.coordinate_betting(5.0))),
    "cocob": logistic(olx.linear(olx.first_order.cocob(2.0))),
    "freegrad": logistic(olx.linear(olx.first_order.freegrad())),
    "pistol": logistic(olx.linear(olx.first_order.pistol())),
    "erfi betting": logistic(olx.linear(olx.first_order.erfi_betting())),
    "ons betting": logistic(olx.linear(olx.first_order.ons_betting())),
    "scale free": regression(olx.scale_free()),
    "scale free, ball": regression(olx.scale_free(BALL)),
    "scale free descent": regression(olx.scale_free_md()),
    "normalized betting": logistic(olx.first_order.normalized_betting()),
    "average": regression(olx.meta.average(olx.ogd(0.1), olx.meta.rising())),
}
