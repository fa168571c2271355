"""The conformance kit finds what is broken, and says so."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import olx
from olx import losses, mirrors, streams
from olx.convex import norms, sets
from olx.facts import AddsContext, AddsGradient
from olx.testing.implementations import check_widths
from olx.testing.learner import check_theorems
from olx.testing.scale import check_scale
from olx.testing.ties import tied_rounds, with_more_features

GOOD = mirrors.euclidean()
THETA = jnp.array([0.5, -1.0, 2.0])


def broken(**changes):
    return dataclasses.replace(GOOD, **changes)


def function(f):
    return Partial(lambda w: f(jnp.sum(w**2) / 2))


def coupled(w):
    return jnp.sum(w**2) / 2 + jnp.sum(w) ** 2 / 2


BROKEN_MAPS = {
    "nan": (broken(potential=function(lambda half: half / 0.0 * 0.0)), "potential is not finite"),
    "infinite": (
        broken(conjugate=function(lambda half: half + jnp.inf)),
        "conjugate is not finite",
    ),
    "outside": (broken(contains=Partial(lambda w: jnp.array(False))), "lies outside the domain"),
    "too small": (broken(conjugate=function(lambda half: half - 1)), "gap is negative"),
    "too large": (broken(conjugate=function(lambda half: half + 1)), "conjugate is attained"),
    "not a dual": (
        broken(potential=function(lambda half: 2 * half), modulus=None),
        "conjugate is attained",
    ),
    "not separable": (
        dataclasses.replace(olx.mirror_map(coupled), separable=True),
        "says it is separable, but its derivative is not diagonal",
    ),
    "retraction": (broken(retraction=Partial(lambda theta: 2 * theta)), "retraction changes"),
    "centering": (broken(centering=Partial(lambda theta: theta - 1)), "centering changes a later"),
    "modulus": (broken(modulus=2.0), "less strongly convex than its modulus says"),
    "norm": (
        broken(norm=dataclasses.replace(norms.l2(), dual=norms.linf().primal)),
        "break Hoelder's inequality",
    ),
}


@pytest.mark.parametrize("name", BROKEN_MAPS)
def test_what_a_map_breaks_is_named(name):
    mirror, message = BROKEN_MAPS[name]
    with pytest.raises(AssertionError, match=message):
        olx.testing.check_mirror(mirror, THETA)


ROUNDS, _ = jax.jit(lambda: streams.linear_regression(jax.random.key(0), rounds=12, features=4))()
COUNT = itertools.count()


def learner(step, hparams=0.1, predict=lambda hp, w, x: w, **options):
    """Gradient descent with another step, inside `olx.linear`."""
    update = lambda hp, w, feedback: w + step(hp, w, feedback)
    return olx.linear(olx.Learner(hparams, lambda hp, w: w, predict, update, **options))


def plain(hp, w, feedback):
    return -hp * feedback.weight * feedback.grad


def not_for_every_platform(hp, w, feedback):
    roots, _ = jnp.linalg.eig(jax.lax.stop_gradient(jnp.outer(w, w)))
    return plain(hp, w, feedback) + 0 * roots.real


def rounded(hp, w, x):
    """Weights that are rounded differently in a program, by much less than any tolerance."""
    return w - 1e-18 * isinstance(w, jax.core.Tracer)


def after_mistakes(hp, w, feedback):
    y = jnp.sign(feedback.outcome)
    return jnp.where(
        y * jnp.vdot(feedback.action, feedback.context) > 0, 0.0, hp * y * feedback.context
    )


BROKEN_LEARNERS = {
    "impure": (
        learner(plain, predict=lambda hp, w, x: w + next(COUNT)),
        "predicting twice differs",
    ),
    "diverges": (learner(lambda hp, w, f: jnp.full(4, jnp.inf)), "losses are not finite"),
    "looks at tracers": (
        learner(lambda hp, w, f: plain(hp, w, f) * (1 + isinstance(w, jax.core.Tracer))),
        "jit changes the state",
    ),
    "breaks ties": (learner(after_mistakes, predict=rounded), "jit changes the state"),
    "no gradient": (
        learner(lambda hp, w, f: plain(jax.lax.stop_gradient(hp), w, f)),
        "disagrees with finite differences",
    ),
    "infinite gradient": (
        learner(lambda hp, w, f: plain(hp, w, f) + 0 * jnp.sqrt(hp - hp)),
        "gradient of total loss is not finite in",
    ),
    "mixes": (
        learner(
            lambda hp, w, f: plain(hp, w, f) / (1 + jnp.sum(w**2)),
            facts=olx.Facts(coordinates=olx.facts.Separable()),
        ),
        "says it takes sparse rows, but they differ",
    ),
    "mixes all rows": (
        learner(
            lambda hp, w, f: plain(hp, w, f) / (1 + jnp.sum(w**2)),
            facts=olx.Facts(coordinates=olx.facts.Rowwise()),
        ),
        "says it takes sparse rows, but they differ",
    ),
    "knows its basis": (
        dataclasses.replace(
            learner(lambda hp, w, f: plain(hp, w, f) - hp * w**3),
            facts=olx.Facts(coordinates=olx.facts.HasAggregate(lambda hp: norms.squares())),
        ),
        "says it takes sparse rows, but they differ",
    ),
    "adds another multiple": (
        learner(plain, facts=olx.Facts(adds=AddsGradient(lambda hp, f: -2 * hp * f.weight))),
        "a sweep of 65 is not rollout",
    ),
    "depends on the unit": (
        learner(plain, facts=olx.Facts(scale_free=True)),
        "says `scale_free`, but losses times 1e-06 change its actions",
    ),
    "cannot be lowered": (learner(not_for_every_platform), "does not lower for"),
}


def uphill(learner):
    """The same learner with the wrong sign in its update."""
    turned = lambda hp, state, feedback: learner.update_fn(
        hp, state, feedback._replace(grad=-feedback.grad)
    )
    return dataclasses.replace(learner, update_fn=turned, facts=olx.Facts())


SLOPES = olx.Rounds(None, jnp.full((12, 4), 0.5))
WRONG_SIGNS = {
    "omd": olx.omd(0.1, mirrors.euclidean()),
    "md": olx.ogd(0.1),
    "ftrl": olx.ftrl(0.3, olx.regularizers.adagrad()),
    "optimistic md": olx.optimistic_md(0.1, mirrors.euclidean()),
    "coin betting": olx.first_order.coin_betting(),
}


@pytest.mark.parametrize("name", WRONG_SIGNS)
def test_a_wrong_sign_breaks_the_theorem_and_the_round_is_named(name):
    learner, given = WRONG_SIGNS[name], (losses.linear_loss, SLOPES, jnp.zeros(4), None)
    says = r"the theorem `\w+` is violated after round \d+: "
    with pytest.raises(AssertionError, match=says):
        check_theorems(uphill(learner), *given)
    check_theorems(learner, *given)


def test_a_stream_that_a_theorem_says_nothing_about_tries_nothing():
    learner = olx.linear(olx.omd(0.1, mirrors.euclidean(sets.ball(1.0))))
    far = (jnp.full(4, 2.0),)
    says = "`master_inequality` says nothing about this stream .* `u` must lie in the domain"
    with pytest.raises(AssertionError, match=says):
        check_theorems(learner, losses.squared, ROUNDS, jnp.zeros(4), far)


@pytest.mark.parametrize("name", BROKEN_LEARNERS)
def test_what_a_learner_breaks_is_named(name):
    learner, message = BROKEN_LEARNERS[name]
    with pytest.raises(AssertionError, match=message):
        olx.testing.check_learner(learner, losses.squared, ROUNDS, jnp.zeros(4), trees=False)


@pytest.mark.parametrize("loss", [losses.linear_loss, losses.squared])
def test_a_learner_that_divides_by_the_largest_gradient_is_scale_free(loss):
    grow = lambda most, f: jnp.maximum(most, jnp.max(jnp.abs(f.grad)))
    update = lambda hp, state, f: (
        state[0] - f.weight * f.grad / jnp.where(grow(state[1], f) > 0, grow(state[1], f), 1.0),
        grow(state[1], f),
    )
    start, act = lambda hp, w: (w, jnp.zeros(())), lambda hp, state, x: state[0]
    free = olx.Learner(None, start, act, update, facts=olx.Facts(scale_free=True))
    assert olx.linear(free).facts.scale_free
    check_scale(olx.linear(free), loss, ROUNDS, jnp.zeros(4))


def test_scores_tie_in_rounds_of_the_same_shape():
    rows, labels = np.random.default_rng(0).normal(size=(24, 4)), np.arange(24) % 2 * 2.0 - 1
    rounds = olx.Rounds(rows, labels)
    tied = tied_rounds(olx.classification.perceptron(), losses.hinge, rounds, jnp.zeros(4))
    assert [leaf.shape for leaf in tied if leaf is not None] == [(24, 4), (24,)]
    first = np.argmax(tied.context != 0, axis=0)
    assert first.tolist() == [0, 8, 12, 13]  # the last two are alone in their rows
    assert np.sum(tied.context[12:14] != 0) == 2
    assert np.sum(~tied.context.any(axis=1)) > 3
    same = np.all(tied.context[1:] == tied.context[:-1], axis=1)
    assert np.any(same & (tied.outcome[1:] == tied.outcome[:-1]))
    words = (rows > 0).astype(float)
    wide, start = with_more_features(olx.hedge(0.1), olx.Rounds(words, labels), jnp.full(4, 0.25))
    assert wide.context.shape == (24, 20)
    np.testing.assert_allclose(np.sum(start), 1.0)
    np.testing.assert_array_equal(wide.context.sum(1), words.sum(1))


def half_distance(w, target):
    return jnp.sum((w - target) ** 2) / 2


def test_a_point_learner_that_says_it_adds_contexts_is_found_out():
    claims = AddsContext(lambda hp, f: -hp * f.weight)
    update = lambda hp, w, f: w + plain(hp, w, f)
    point = olx.Learner(
        0.1, lambda hp, w: w, lambda hp, w, x: w, update, facts=olx.Facts(adds=claims)
    )
    rounds = olx.Rounds(None, ROUNDS.context)
    with pytest.raises(AssertionError, match="a sweep of 65 is not rollout"):
        olx.testing.check_learner(point, half_distance, rounds, jnp.zeros(4), trees=False)


def point(step, **facts):
    """Gradient descent with another step, as a point learner that states facts."""
    update = lambda hp, w, f: w + step(hp, w, f)
    return olx.Learner(0.1, lambda hp, w: w, lambda hp, w, x: w, update, facts=olx.Facts(**facts))


def together(hp, w, feedback):
    return plain(hp, w, feedback) / (1 + jnp.sum(w**2))


def squares(hp):
    return norms.squares()


def shrink(hp, w, feedback):
    return plain(hp, w, feedback) - 0.1 * w


def large(hp, w):
    return jnp.asarray(True)


def longer(hp, w, sums):
    return 2 * w


MISTAKEN = "says it takes sparse rows, but they differ"
FALSE_CLAIMS = {
    "adds a gradient": (
        point(plain, adds=AddsGradient(lambda hp, f: -2 * hp * f.weight)),
        "a sweep of 65 is not rollout",
    ),
    "separable": (point(together, coordinates=olx.facts.Separable()), MISTAKEN),
    "separable, but all entries shrink": (
        point(shrink, coordinates=olx.facts.Separable()),
        MISTAKEN,
    ),
    "rowwise": (point(together, coordinates=olx.facts.Rowwise()), MISTAKEN),
    "aggregates": (
        point(
            lambda hp, w, f: plain(hp, w, f) - hp * w**3,
            coordinates=olx.facts.HasAggregate(squares),
        ),
        MISTAKEN,
    ),
    "linear": (
        dataclasses.replace(
            learner(together), facts=olx.Facts(coordinates=olx.facts.Linear(lambda hp: hp.inner))
        ),
        MISTAKEN,
    ),
    "refreshed": (
        point(
            together,
            coordinates=olx.facts.Refreshed(),
            refresh=olx.facts.Refresh(large, lambda hp, w, sums: w),
        ),
        MISTAKEN,
    ),
    "refresh": (
        point(plain, coordinates=olx.facts.Refreshed(), refresh=olx.facts.Refresh(large, longer)),
        "a refresh changes a prediction",
    ),
}


@pytest.mark.parametrize("name", FALSE_CLAIMS)
def test_a_false_claim_about_a_learner_is_found_out(name):
    learner, message = FALSE_CLAIMS[name]
    bare = name != "linear"
    loss = half_distance if bare else losses.squared
    rounds = olx.Rounds(None, ROUNDS.context) if bare else ROUNDS
    with pytest.raises(AssertionError, match=message):
        check_widths(learner, loss, rounds, jnp.linspace(-0.5, 1.0, 4))


TRUE_CLAIMS = {
    "omd": olx.omd(0.1, mirrors.euclidean()),
    "pnorm": olx.omd(0.1, mirrors.pnorm(1.5)),
    "coin betting": olx.first_order.coin_betting(),
}


@pytest.mark.parametrize("name", TRUE_CLAIMS)
def test_a_true_claim_about_a_point_learner_is_accepted(name):
    rounds = olx.Rounds(None, ROUNDS.context)
    check_widths(TRUE_CLAIMS[name], half_distance, rounds, jnp.linspace(-0.5, 1.0, 4))
