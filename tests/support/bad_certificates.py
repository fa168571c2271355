"""Runs, learners and comparators that no theorem may judge."""

import functools

import jax.numpy as jnp
import numpy as np
from bad_inputs import Bad

import olx
from olx import hindsight, losses

D, T = 3, 8
ROWS = np.linspace(-1.0, 1.0, T * D).reshape(T, D) ** 3
LABELS = np.where(np.arange(T) % 3 == 0, -1.0, 1.0)
GRADIENTS = olx.Rounds(None, jnp.asarray(ROWS))
CLASSES = olx.Rounds(jnp.asarray(ROWS), jnp.asarray(LABELS))
ZEROS, UNIFORM = jnp.zeros(D), jnp.full(D, 1 / D)
OGD, PERCEPTRON, WINNOW = (
    olx.ogd(0.1),
    olx.classification.perceptron(),
    olx.classification.winnow(0.5),
)


@functools.cache
def points():
    return olx.rollout(OGD, losses.linear_loss, GRADIENTS, ZEROS, record=olx.record.trace)


@functools.cache
def classified(winnow=False):
    learner = WINNOW if winnow else PERCEPTRON
    return olx.rollout(learner, losses.zero_one, CLASSES, ZEROS, record=olx.record.trace)


@functools.cache
def thinned():
    options = {"record": olx.record.trace, "keep": olx.keep.every(2), "progress": False}
    return olx.run(OGD, losses.linear_loss, GRADIENTS, ZEROS, **options)


@functools.cache
def continued():
    state = classified().state
    return olx.rollout(
        PERCEPTRON, losses.zero_one, CLASSES, ZEROS, record=olx.record.trace, state=state
    )


NOT_ALL = "the run kept 4 of its rounds, and a theorem needs all of them"
BAD = {
    "a thinned run": Bad(
        lambda: olx.certify(OGD, thinned(), ZEROS), ValueError, f"certify: {NOT_ALL}"
    ),
    "a thinned run and a named theorem": Bad(
        lambda: hindsight.gradient_descent_bound(OGD, thinned(), ZEROS),
        ValueError,
        f"gradient_descent_bound: {NOT_ALL}",
    ),
    "a run that goes on from another": Bad(
        lambda: olx.certify(PERCEPTRON, continued(), ZEROS),
        ValueError,
        "certify: the run went on from the state of an earlier one",
    ),
    "a comparator that is a number": Bad(
        lambda: olx.certify(OGD, points(), jnp.zeros(())),
        TypeError,
        r"certify: `u` has shape \(\), the decision has \(3,\)",
    ),
    "a comparator of one coordinate": Bad(
        lambda: olx.certify(OGD, points(), jnp.zeros(1)),
        TypeError,
        r"certify: `u` has shape \(1,\), the decision has \(3,\)",
    ),
    "a comparator of another structure": Bad(
        lambda: olx.certify(OGD, points(), {"w": ZEROS}), TypeError, "certify: `u` has structure"
    ),
    "a comparator of scores": Bad(
        lambda: olx.certify(PERCEPTRON, classified(), jnp.zeros(())),
        TypeError,
        r"certify: `u` has shape \(\)",
    ),
    "a comparator that is NaN": Bad(
        lambda: olx.certify(OGD, points(), ZEROS + jnp.nan),
        ValueError,
        "certify: `u` must be finite, got nan",
    ),
    "an infinite comparator of a named theorem": Bad(
        lambda: hindsight.gradient_descent_bound(OGD, points(), ZEROS + jnp.inf),
        ValueError,
        "gradient_descent_bound: `u` must be finite, got inf",
    ),
    "another learner's run": Bad(
        lambda: olx.certify(OGD, classified(), ZEROS),
        TypeError,
        "certify: `run` must be one of this learner, got states of type DualAscentState",
    ),
    "another map's run": Bad(
        lambda: olx.certify(PERCEPTRON, classified(winnow=True), ZEROS),
        ValueError,
        "certify: `run` must be one of this learner, got an action in round 1",
    ),
    "another step's run": Bad(
        lambda: olx.certify(olx.ogd(0.2), points(), ZEROS),
        ValueError,
        "certify: `run` must be one of this learner, got a state in round 2",
    ),
    "a theorem of other steps": Bad(
        lambda: hindsight.strongly_convex_bound(OGD, points(), ZEROS, 1.0),
        TypeError,
        "strongly_convex_bound: `learner` must be an `md` or `ogd` with steps by `decay`, got one",
    ),
    "a theorem of shrinking steps": Bad(
        lambda: hindsight.gradient_descent_bound(
            olx.first_order.strongly_convex_md(1.0), points(), ZEROS
        ),
        TypeError,
        "gradient_descent_bound: `learner` must be an `ogd` or `md` with a fixed step",
    ),
    "Winnow's theorem for the Perceptron": Bad(
        lambda: hindsight.self_tuned_winnow_bound(PERCEPTRON, classified(), UNIFORM, 0.1),
        TypeError,
        "self_tuned_winnow_bound: `learner` must be `self_tuned_winnow`, got one",
    ),
    "the Perceptron's theorem for Winnow": Bad(
        lambda: hindsight.perceptron_mistake_bound(WINNOW, classified(winnow=True), UNIFORM),
        TypeError,
        "perceptron_mistake_bound: `learner` must be `perceptron` or `pnorm_perceptron`",
    ),
    "a theorem of the conservative for the aggressive": Bad(
        lambda: hindsight.conservative_bound(
            olx.classification.self_tuned_aggressive(olx.mirrors.euclidean(), 1.0),
            classified(),
            ZEROS,
            1.0,
        ),
        TypeError,
        "conservative_bound: `learner` must be a `dual_ascent` on a hinge by `conservative",
    ),
    "a theorem of experts for points": Bad(
        lambda: hindsight.quantile_bound(OGD, points(), 0.5),
        TypeError,
        "quantile_bound: `learner` must be one of `olx.experts` that see all losses",
    ),
    "the signs' rule with another map": Bad(
        lambda: olx.rollout(
            olx.dual_ascent(olx.mirrors.euclidean(), losses.hinge, olx.ascents.aggressive_signs()),
            losses.hinge,
            CLASSES,
            ZEROS,
        ),
        TypeError,
        "aggressive_signs: the map must be `negative_entropy` and the loss a hinge; use",
    ),
}
