"""Theorems about the losses themselves: their conditions, and runs against replays."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import olx
from olx import classification, convex, first_order, losses, mirrors, regularizers
from olx.frameworks import accounts

T, D = 40, 3
ROWS = np.asarray(jax.random.normal(jax.random.key(2), (T, D)))
TRUTH = np.array([1.0, -0.5, 0.25])
LABELS = np.where(ROWS @ TRUTH + np.sin(np.arange(T)) >= 0, 1.0, -1.0)
ZEROS = np.zeros(D)
GRADIENTS, CLASSES = olx.Rounds(None, ROWS), olx.Rounds(ROWS, LABELS)


def parabola(w, z):
    return jnp.vdot(w - z, w - z) / 4


def valley(w, z):
    """Not convex."""
    return jnp.sum(jnp.sin(3 * w) * z)


@functools.partial(jax.jit, static_argnums=1)
def judged(learner, loss, rounds, u):
    run = olx.rollout(learner, loss, rounds, ZEROS, record=olx.record.trace)
    return olx.certify(learner, run, u)


def broken(proof):
    """The conditions that break, each with its first round."""
    return {name: int(first) for name, first in proof.summary.broken.items() if first}


BROKEN = {  # a learner, a loss it is not about, the theorem and what it names
    "not convex": (olx.ogd(0.3), valley, "gradient_descent", accounts.CONVEX),
    "linear": (
        first_order.strongly_convex_md(0.5),
        losses.linear_loss,
        "strongly_convex_regret",
        accounts.STRONGLY_CONVEX,
    ),
    "flat": (
        first_order.strongly_convex_ogd(0.7),
        parabola,
        "weighted_regret",
        accounts.STRONGLY_CONVEX,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_losses_that_are_not_convex_enough_are_named(name):
    learner, loss, theorem, condition = BROKEN[name]
    proofs = judged(learner, loss, GRADIENTS, TRUTH)
    assert proofs.holds
    assert list(broken(proofs[theorem])) == [condition]
    assert np.isposinf(proofs[theorem].right[-1])
    assert not broken(proofs[0])  # on linearized losses, which are what they are


def test_losses_that_are_convex_enough_break_nothing():
    for make in (first_order.strongly_convex_md, first_order.strongly_convex_ogd):
        for proof in judged(make(0.5), parabola, GRADIENTS, TRUTH):
            assert proof.holds, str(proof)
            assert not broken(proof), str(proof)


@pytest.mark.parametrize(
    "make", [first_order.scale_invariant_pnorm, first_order.scale_invariant_adagrad]
)
def test_slopes_beyond_the_constant_are_named(make):
    steep = CLASSES._replace(outcome=np.where(np.arange(T) < 6, 0.5, 9.0) * LABELS)
    within = judged(olx.linear(make(1.0)), losses.logistic, CLASSES, TRUTH)
    beyond = judged(olx.linear(make(1.0, 2.0)), losses.squared, steep, ZEROS)
    assert within.holds
    assert beyond.holds
    assert not broken(within["scale_invariant_regret"])
    assert broken(beyond["scale_invariant_regret"]) == {
        "slopes in the score must be at most `lipschitz`": 7
    }


def test_nan_is_divergence_and_no_broken_condition():
    rounds = GRADIENTS._replace(outcome=np.where(np.arange(T)[:, None] == 9, np.nan, ROWS))
    proof = judged(olx.ogd(0.1), losses.linear_loss, rounds, TRUTH)["gradient_descent"]
    assert not broken(proof)
    assert int(proof.summary.diverged) == 10
    assert not proof.holds


def test_rounding_that_a_sum_keeps_aside_is_no_other_run():
    learner = olx.linear(olx.ftrl(0.3, regularizers.adagrad()))
    run = olx.rollout(learner, losses.logistic, CLASSES, ZEROS, record=olx.record.trace)
    state, feedback = run.trace
    theta = state.theta._replace(rest=jnp.zeros_like(state.theta.rest))
    other = dataclasses.replace(run, trace=olx.Trace(state._replace(theta=theta), feedback))
    assert np.any(state.theta.rest != 0)
    assert olx.certify(learner, other, TRUTH).holds


L1 = convex.l1(0.05)
REPLAYED = {  # learner, loss, rounds, theorems with numbers
    "rda": (olx.linear(first_order.rda(0.3, L1)), losses.logistic, CLASSES, ()),
    "root": (
        olx.linear(first_order.rda(0.3, L1)),
        losses.logistic,
        CLASSES,
        (olx.theorems.root_regret(mirrors.euclidean(), L1.value),),
    ),
    "ogd": (olx.ogd(0.3), parabola, GRADIENTS, ()),
    "surrogate": (
        olx.linear(olx.ogd(0.3)),
        losses.hinge,
        CLASSES,
        (olx.theorems.surrogate_regret(losses.hinge),),
    ),
    "strongly convex": (first_order.strongly_convex_md(0.5), parabola, GRADIENTS, ()),
    "coin betting": (first_order.coin_betting(5.0), losses.linear_loss, GRADIENTS, ()),
    "passive-aggressive": (
        classification.passive_aggressive_1(0.3),
        losses.zero_one,
        CLASSES,
        (),
    ),
    "alma": (
        classification.alma(0.9),
        losses.zero_one,
        CLASSES,
        (olx.theorems.alma_mistakes(0.2),),
    ),
}


@pytest.mark.parametrize("name", REPLAYED)
def test_a_replay_says_what_a_recorded_run_says(name):
    learner, loss, rounds, theorems = REPLAYED[name]
    rounds = rounds._replace(weight=np.where(np.arange(T) % 4 == 1, 0.0, 1.0))
    u, theorems = TRUTH / 2, theorems or None
    run = olx.rollout(learner, loss, rounds, ZEROS, record=olx.record.trace)
    recorded = olx.certify(learner, run, u, theorems=theorems)
    replayed = olx.certify(learner, loss, rounds, ZEROS, u, theorems=theorems, progress=False)
    assert recorded.names == replayed.names
    for one, other in zip(recorded, replayed, strict=True):
        assert one.holds, str(one)
        assert not broken(one)
        scale = one.scale
        for side in ("left", "right", "scale", "published"):
            a, b = getattr(one, side), getattr(other, side)
            if a is not None:
                assert np.all((a == b) | (np.abs(a - b) <= 1e-12 * scale)), side


def test_a_batch_carries_the_numbers_of_its_theorems():
    etas = np.array([0.1, 0.5])
    make = lambda eta: olx.linear(first_order.rda(eta, L1))
    given = (olx.theorems.root_regret(mirrors.euclidean(), L1.value),)
    game = losses.logistic, CLASSES, ZEROS, TRUTH
    for theorems in (None, given):
        together = olx.certify(olx.batch(make, eta=etas), *game, theorems=theorems, progress=False)
        for i, eta in enumerate(etas):
            alone = olx.certify(make(eta), *game, theorems=theorems, progress=False)
            for one, other in zip(together, alone, strict=True):
                np.testing.assert_allclose(one.right[i], other.right, rtol=1e-12)


SQUARE = mirrors.euclidean()
SUNK = dataclasses.replace(SQUARE, potential=Partial(lambda w: jnp.vdot(w, w) / 2 - 1))
ABSOLUTE = regularizers.composite(L1, rate=0.2)
OTHER_FORMS = {  # learner, a theorem about another form of its regularizer
    "another power": (
        olx.ftrl(1.0, regularizers.growing(SQUARE, 0.5)),
        olx.theorems.leader_regret(SQUARE),
        "the regularizer must be t times `penalty`, and the step size 1",
    ),
    "another step size": (
        olx.ftrl(0.5, regularizers.growing(SQUARE, 1.0)),
        olx.theorems.leader_regret(SQUARE),
        "the regularizer must be t times `penalty`, and the step size 1",
    ),
    "no root": (
        olx.ftrl(0.5, regularizers.growing(SQUARE, 1.0)),
        olx.theorems.root_regret(SQUARE),
        "the regularizer must be sqrt(t) times `base` plus eta t times `penalty`",
    ),
    "another number": (
        olx.ftrl(0.5, regularizers.adagrad(delta=2.0)),
        olx.theorems.composite_regret(regularizers.adagrad(delta=3.0)),
        "the regularizer must be `base` plus eta t times `penalty`",
    ),
    "another rate": (
        olx.ftrl(0.3, ABSOLUTE),
        olx.theorems.composite_regret(regularizers.growing(SQUARE), L1.value),
        "the regularizer must be `base` plus eta t times `penalty`",
    ),
    "a negative base": (
        olx.ftrl(0.3, SUNK),
        olx.theorems.composite_regret(SUNK),
        "`base` must not be negative and must not shrink",
    ),
}


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_a_corollary_says_nothing_about_another_form_of_the_regularizer(name):
    learner, theorem, condition = OTHER_FORMS[name]
    game = losses.linear_loss, GRADIENTS, ZEROS, TRUTH
    (proof,) = olx.certify(learner, *game, theorems=(theorem,), progress=False)
    assert set(broken(proof)) == {condition}
    assert proof.holds
    assert np.isinf(proof.right[-1])


def test_a_corollary_refuses_a_learner_whose_regularizer_has_another_structure():
    leader, steep = (
        olx.theorems.leader_regret(SQUARE),
        olx.theorems.composite_regret(regularizers.adagrad()),
    )
    for learner, theorem in [
        (olx.ftrl(1.0, SQUARE), leader),
        (olx.ftrl(1.0, SQUARE), steep),
        (olx.ftrl(1.0, regularizers.growing(SQUARE)), steep),
        (olx.ftrl(1.0, SQUARE, uphill), olx.theorems.composite_regret(SQUARE)),
    ]:
        with pytest.raises(TypeError, match="is about an `ftrl` of minus gradients"):
            olx.certify(learner, losses.linear_loss, GRADIENTS, ZEROS, TRUTH, theorems=(theorem,))


def uphill(feedback):
    return feedback.weight * feedback.grad


def test_a_value_is_computed_at_another_point_only():
    calls, point = [], {"a": jnp.arange(3.0), "b": jnp.ones(2)}

    def total(point):
        jax.debug.callback(lambda: calls.append(1))
        return point["a"].sum() + point["b"].sum()

    value = jax.jit(lambda point: accounts.value_at(total, point, 5.0, {**point, "b": jnp.ones(2)}))
    assert value(point) == 5.0
    jax.effects_barrier()
    assert not calls
    assert value(point | {"b": jnp.array([1.0, 2.0])}) == 6.0
    jax.effects_barrier()
    assert len(calls) == 1
