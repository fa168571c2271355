"""Runs, learners and comparators that no theorem may judge."""

import functools

import jax.numpy as jnp
import numpy as np
from bad_inputs import Bad

import olx
from olx import losses
from olx.classification.aggressive_perceptron import self_tuned_aggressive_mistakes
from olx.theorem import summed

D, T = 3, 8
ROWS = np.linspace(-1.0, 1.0, T * D).reshape(T, D) ** 3
LABELS = np.where(np.arange(T) % 3 == 0, -1.0, 1.0)
GRADIENTS = olx.Rounds(None, jnp.asarray(ROWS))
CLASSES = olx.Rounds(jnp.asarray(ROWS), jnp.asarray(LABELS))
ZEROS = jnp.zeros(D)
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


def _fourth(w):
    return jnp.sum(w**4)


def about(theorem, learner):
    """Ask for a theorem about other learners."""
    return lambda: olx.certify(learner, classified(), ZEROS, theorems=(theorem,))


def _zero(hp, state, u):
    return 0.0


def _value(hp, account, state, feedback, u):
    return account + feedback.value


def _below_one(hp, account, u):
    return olx.Certificate(account, account + 1.0, 1.0)


def own(init=_zero, add=_value, sides=_below_one):
    """Certify a theorem of these functions."""
    theorem = olx.Theorem("mine", "this table", init, add, sides)
    return lambda: olx.certify(OGD.carrying(theorem), points(), ZEROS, theorems=(theorem,))


def _one_more_name(hp, state, feedback, u):
    return {"sum": feedback.value, "more": feedback.value}


def _number_for_a_condition(hp, state, feedback, u):
    return {"sum": feedback.value, "met": feedback.value}


def total(terms, start):
    """Certify a theorem of this sum."""
    sides = lambda hp, sums, u: _below_one(hp, sums["sum"], u)
    theorem = summed("mine", "this table", terms, sides, lambda hp, state, u: start)
    return lambda: olx.certify(OGD.carrying(theorem), points(), ZEROS, theorems=(theorem,))


SELF_TUNED = olx.classification.self_tuned_aggressive(olx.mirrors.euclidean(), 1.0)
SURROGATE = olx.theorems.surrogate_regret(losses.hinge)
NO_NORM = olx.mirror_map(_fourth, separable=True)
NOT_ALL = "the run kept 4 of its rounds, and a theorem needs all of them"
BAD = {
    "a thinned run": Bad(
        lambda: olx.certify(OGD, thinned(), ZEROS), ValueError, f"certify: {NOT_ALL}"
    ),
    "a thinned run and a named theorem": Bad(
        lambda: olx.certify(OGD, thinned(), ZEROS, theorems=(SURROGATE,)),
        ValueError,
        f"certify: {NOT_ALL}",
    ),
    "a run that goes on from another": Bad(
        lambda: olx.certify(PERCEPTRON, continued(), ZEROS),
        ValueError,
        "certify: `run` must start with the first round",
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
        lambda: olx.certify(OGD, points(), ZEROS + jnp.inf, theorems=(SURROGATE,)),
        ValueError,
        "certify: `u` must be finite, got inf",
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
        about(olx.theorems.strongly_convex_regret(1.0), OGD),
        TypeError,
        "certify: `strongly_convex_regret` is about an `md` or `ogd` with steps by `decay`",
    ),
    "a theorem of shrinking steps": Bad(
        about(SURROGATE, olx.first_order.strongly_convex_md(1.0)),
        TypeError,
        "certify: `surrogate_regret` is about an `ogd` or `md` with a fixed step",
    ),
    "Winnow's theorem for the Perceptron": Bad(
        about(olx.theorems.self_tuned_winnow_mistakes(0.1), PERCEPTRON),
        TypeError,
        "certify: `self_tuned_winnow_mistakes` is about `self_tuned_winnow`, got a learner of",
    ),
    "the Perceptron's theorem for Winnow": Bad(
        about(olx.theorems.perceptron_mistakes, WINNOW),
        TypeError,
        "certify: `perceptron_mistakes` is about `perceptron` or `pnorm_perceptron`, got",
    ),
    "a theorem of the conservative for the aggressive": Bad(
        about(olx.theorems.conservative_mistakes(1.0), SELF_TUNED),
        TypeError,
        "certify: `conservative_mistakes` is about a `dual_ascent` on a hinge by `conservative",
    ),
    "a theorem of the Perceptron for a point learner": Bad(
        about(olx.theorems.separable_mistakes(1.0), olx.linear(OGD)),
        TypeError,
        "certify: `separable_mistakes` is about `perceptron` or `pnorm_perceptron`, got",
    ),
    "a theorem of a rate that follows from mistakes for a fixed one": Bad(
        about(self_tuned_aggressive_mistakes, PERCEPTRON),
        TypeError,
        "certify: `self_tuned_aggressive_mistakes` is about `self_tuned_aggressive`, got",
    ),
    "a theorem that another learner carries": Bad(
        lambda: olx.certify(OGD, points(), ZEROS, theorems=olx.hedge(0.1).theorems),
        TypeError,
        "certify: `master_inequality` is about the learners that carry it, got a learner of",
    ),
    "a theorem of no learner": Bad(
        lambda: olx.certify(
            OGD, points(), ZEROS, theorems=(olx.Theorem("mine", "", _zero, _value, _below_one),)
        ),
        TypeError,
        r"certify: `mine` is about the learners that carry it.*; `learner.carrying\(theorem\)`",
    ),
    "a tuple for a theorem": Bad(
        lambda: olx.certify(OGD, points(), ZEROS, theorems=((_zero, _value, _below_one),)),
        TypeError,
        "certify: `theorems` must be a Theorem, got tuple; make one of the functions, as `olx.Th",
    ),
    "a learner with a tuple for a theorem": Bad(
        lambda: OGD.carrying((_zero, _value, _below_one)),
        TypeError,
        "Learner: `theorems` must be a Theorem, got tuple; make one of the functions, as `olx.Th",
    ),
    "a learner with one theorem": Bad(
        lambda: olx.Learner(*[None] * 4, theorems=OGD.theorems[0]),
        TypeError,
        r"Learner: `theorems` must be a tuple, got the theorem `mirror_descent`; give `theorems=\(",
    ),
    "an account that becomes a tuple": Bad(
        own(add=lambda hp, account, state, feedback, u: (account, feedback.value)),
        TypeError,
        r"a round changed the account of `mine` from float\d+\[\] to \(float\d+\[\], .*same record",
    ),
    "an account that becomes a vector": Bad(
        own(add=lambda hp, account, state, feedback, u: account + feedback.grad),
        TypeError,
        r"certify: a round changed account of `mine` from .*\[\] to .*\[3\]; start it as jnp.zeros",
    ),
    "an account of another dtype": Bad(
        own(add=lambda hp, account, state, feedback, u: account.astype(jnp.float16)),
        TypeError,
        r"certify: a round changed account of `mine` from .* to float16\[\]; start it as jnp.zeros",
    ),
    "a sum with one name more": Bad(
        total(_one_more_name, {"sum": 0.0}),
        TypeError,
        "certify: a round changed the account of `mine` from {sum: .*} to {more: .*same record",
    ),
    "a sum with a number for a record": Bad(
        total(_number_for_a_condition, {"sum": 0.0, "met": (True, True)}),
        TypeError,
        "certify: a round changed the account of `mine` from {met: .*same record",
    ),
    "a sum with a number for a condition": Bad(
        total(_number_for_a_condition, {"sum": 0.0, "met": True}),
        TypeError,
        r"certify: a round changed account\['met'\] of `mine` from bool\[\] to float",
    ),
    "sides that are two numbers": Bad(
        own(sides=lambda hp, account, u: (account, account)),
        TypeError,
        r"certify: the sides of `mine` must be a Certificate, got tuple; return `olx.Certificate\(",
    ),
    "a side that is a vector": Bad(
        own(sides=lambda hp, account, u: olx.Certificate(account * u, account, 1.0)),
        TypeError,
        r"certify: `left` of `mine` must be one real number, got .*\[3\]; sum over coordinates",
    ),
    "a side that is a word": Bad(
        own(sides=lambda hp, account, u: olx.Certificate(account, account, "large")),
        TypeError,
        "certify: `scale` of `mine` must be one real number, got str; sum over coordinates",
    ),
    "a count that starts at 0": Bad(
        own(init=lambda hp, state, u: 0),
        TypeError,
        r"certify: `left` of `mine` must be one real number, got int\d+\[\]; .* start at 0.0",
    ),
    "a condition that is a number": Bad(
        own(sides=lambda hp, account, u: _below_one(hp, account, u).given("light", account)),
        TypeError,
        r"certify: the condition 'light' of `mine` must be one Boolean, got float.*; use jnp.all",
    ),
    "a theorem of a negative margin": Bad(
        lambda: olx.theorems.winnow_mistakes(-0.1),
        ValueError,
        "winnow_mistakes: `margin` must be positive, got -0.1",
    ),
    "a theorem of half a feature": Bad(
        lambda: olx.theorems.r_of_k_mistakes(0.5, 2),
        ValueError,
        "r_of_k_mistakes: `r` must be an integer of at least 1, got 0.5",
    ),
    "a theorem of experts for points": Bad(
        lambda: olx.certify(OGD, points(), ZEROS, theorems=(olx.theorems.interval_from(0),)),
        TypeError,
        "certify: `interval` is about an `ada_normal_hedge_tv`",
    ),
    "ALMA's theorem for the Perceptron": Bad(
        about(olx.theorems.alma_mistakes(0.1), PERCEPTRON),
        TypeError,
        "certify: `alma_mistakes` is about an `alma`, got a learner of",
    ),
    "a margin of 0": Bad(
        lambda: olx.theorems.alma_mistakes(0.0),
        ValueError,
        "alma_mistakes: `margin` must be positive, got 0.0",
    ),
    "a modulus below 0": Bad(
        lambda: olx.theorems.strongly_convex_regret(-1.0),
        ValueError,
        "strongly_convex_regret: `sigma` must be positive, got -1.0",
    ),
    "a surrogate that is no loss": Bad(
        lambda: olx.theorems.surrogate_regret(1.0),
        TypeError,
        "surrogate_regret: `surrogate` must be a function, got float",
    ),
    "a base that is a number": Bad(
        lambda: olx.theorems.composite_regret(1.0),
        TypeError,
        "composite_regret: `base` must be a MirrorMap or a Process",
    ),
    "a base that is a schedule": Bad(
        lambda: olx.theorems.composite_regret(olx.schedules.decay(1.0)),
        TypeError,
        "composite_regret: `base` must give a regularizer",
    ),
    "a penalty that is no function": Bad(
        lambda: olx.theorems.root_regret(olx.mirrors.euclidean(), 0.1),
        TypeError,
        "root_regret: `penalty` must be a function, got float",
    ),
    "a base without a norm": Bad(
        lambda: olx.theorems.root_regret(NO_NORM),
        TypeError,
        "root_regret: `base` must state its norm and its modulus",
    ),
    "a penalty without a norm": Bad(
        lambda: olx.theorems.leader_regret(NO_NORM),
        TypeError,
        "leader_regret: `penalty` must state its norm and its modulus",
    ),
    "the signs' rule with another map": Bad(
        lambda: olx.rollout(
            olx.dual_ascent(
                1.0, olx.mirrors.euclidean(), losses.hinge, olx.ascents.aggressive_signs()
            ),
            losses.hinge,
            CLASSES,
            ZEROS,
        ),
        TypeError,
        "aggressive_signs: the map must be `negative_entropy` and the loss a hinge; use",
    ),
}
