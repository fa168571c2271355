"""Every certificate, at every round, on every stream and adversary, for steps from 1e-3 to 10."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.tree_util import Partial

import olx
from olx import convex, losses, mirrors, regularizers, schedules, streams
from olx.convex import sets

KEY = jax.random.key(11)
ETAS = np.geomspace(1e-3, 10.0, 7)
T, D = 60, 4
ZEROS, UNIFORM = np.zeros(D), np.full(D, 1 / D)


@functools.cache
def regression():
    """Made by one program, and only where it is needed."""
    return jax.jit(
        lambda: {
            "linear": streams.linear_regression(KEY, T, D),
            "heavy tailed": streams.heavy_tailed(KEY, T, D),
            "ill conditioned": streams.ill_conditioned(KEY, T, D),
            "sparse": streams.sparse(KEY, T, D, nonzeros=2, relevant=2),
            "drifting": streams.drifting(KEY, T, D),
            "rotating": streams.rotating(KEY, T, D),
            "switching": streams.switching(KEY, T, D),
        }
    )()


@functools.cache
def classification():
    """Made by one program, and only where it is needed."""
    return jax.jit(
        lambda: {
            "margin": streams.linear_classification(KEY, T, D, margin=0.1),
            "noise": streams.linear_classification(KEY, T, D, noise=0.2),
            "logistic": streams.logistic_labels(KEY, T, D),
            "r of k": streams.r_of_k(KEY, T, D, r=1, k=2),
        }
    )()


@functools.cache
def experts():
    """Made by one program, and only where it is needed."""
    return jax.jit(
        lambda: {
            "gap": streams.expert_losses(KEY, T, D),
            "alternating": streams.alternating_losses(T, D),
            "drifting": streams.drifting_losses(KEY, T, D),
            "switching": streams.switching_losses(KEY, T, D),
        }
    )()


PREDICTORS = {  # eta -> learner on scores, and whether u must be small
    "omd": lambda eta: olx.linear(olx.omd(eta, mirrors.euclidean())),
    "omd ball": lambda eta: olx.linear(olx.omd(eta, mirrors.euclidean(sets.ball(2.0)))),
    "omd hypentropy": lambda eta: olx.linear(olx.omd(eta, mirrors.hypentropy(1.0))),
    "omd pnorm": lambda eta: olx.linear(olx.omd(eta, mirrors.pnorm(1.5))),
    "md ball": lambda eta: olx.linear(olx.md(eta, mirrors.euclidean(sets.ball(2.0)))),
    "md decaying": lambda eta: olx.linear(
        olx.md(schedules.decay(eta), mirrors.euclidean(sets.ball(2.0)))
    ),
    "ftrl growing": lambda eta: olx.linear(
        olx.ftrl(eta, regularizers.growing(mirrors.euclidean()))
    ),
    "ftrl composite": lambda eta: olx.linear(
        olx.ftrl(eta, regularizers.composite(convex.l1(0.1), rate=eta))
    ),
    "ftrl adagrad": lambda eta: olx.linear(
        olx.ftrl(eta, regularizers.adagrad(convex.l1(0.1), rate=eta))
    ),
    "optimistic": lambda eta: olx.linear(olx.optimistic(eta, mirrors.euclidean(sets.ball(2.0)))),
    "optimistic md": lambda eta: olx.linear(
        olx.optimistic_md(eta, mirrors.euclidean(sets.ball(2.0)))
    ),
}
POINTS = {
    "hedge": olx.hedge,
    "md entropy": lambda eta: olx.md(eta, mirrors.negative_entropy()),
    "omd simplex": lambda eta: olx.omd(eta, mirrors.euclidean(sets.simplex())),
    "optimistic": lambda eta: olx.optimistic(eta, mirrors.negative_entropy()),
    "optimistic md": lambda eta: olx.optimistic_md(eta, mirrors.negative_entropy()),
}


def scored(index, score, y):
    # the index is a traced number, so both losses share one program a learner
    return jax.lax.switch(index, [losses.squared, losses.hinge], score, y)


SQUARED, HINGE, LINEAR = Partial(scored, 0), Partial(scored, 1), Partial(losses.linear_loss)


@functools.partial(jax.jit, static_argnums=0)
def judge(make, loss, rounds, params, comparators):
    """Play a batch on a stream and check its certificates against several comparators."""
    learners = olx.batch(make, eta=ETAS).learners
    play = lambda learner: olx.rollout(learner, loss, rounds, params, record=olx.record.trace)
    runs = jax.vmap(play)(learners)
    one = lambda learner, run, u: olx.certify(learner, run, u)
    for_each_u = jax.vmap(jax.vmap(one, (0, 0, None)), (None, None, 0))
    proofs = for_each_u(learners, runs, comparators)
    finite = jnp.all(jnp.isfinite(runs.losses), axis=1)
    return proofs.holds, proofs[0].tightness, finite


def check(make, loss, rounds, params, comparators):
    holds, tightness, finite = map(np.asarray, judge(make, loss, rounds, params, comparators))
    assert np.all(holds | ~finite), (holds, finite)
    assert np.all(finite[:3])  # larger steps may diverge, as they may in theory
    return tightness


def comparators(truth):
    u = np.asarray(truth if truth.ndim == 1 else truth[-1])
    return np.stack([ZEROS, u / max(1.0, np.linalg.norm(u)), [0.5, -0.5, 0.0, 1.0]])


CORNERS = np.stack([*np.eye(D), UNIFORM])


@pytest.mark.parametrize("name", PREDICTORS)
def test_regression_certificates_hold(name):
    for stream in regression().values():
        check(PREDICTORS[name], SQUARED, stream.rounds, ZEROS, comparators(stream.truth))


@pytest.mark.parametrize("name", PREDICTORS)
def test_classification_certificates_hold(name):
    for stream in classification().values():
        check(PREDICTORS[name], HINGE, stream.rounds, ZEROS, comparators(stream.truth))


@pytest.mark.parametrize("name", POINTS)
def test_expert_certificates_hold(name):
    for stream in experts().values():
        check(POINTS[name], LINEAR, stream.rounds._replace(context=None), UNIFORM, CORNERS)


ADVERSARIES = {
    "steepest": (streams.steepest(1.0), lambda eta: olx.ogd(eta, sets.ball(1.0)), D),
    "random signs": (
        streams.random_signs(KEY),
        lambda eta: olx.omd(eta, mirrors.euclidean(sets.box(-1.0, 1.0))),
        D,
    ),
    "heaviest expert": (streams.heaviest_expert(), olx.hedge, D),
    "unit vectors": (
        streams.unit_vectors(T, losses.hinge),
        lambda eta: olx.linear(olx.omd(eta, mirrors.euclidean())),
        T,
    ),
    "threshold": (
        streams.threshold(16, losses.hinge),
        lambda eta: olx.linear(olx.omd(eta, mirrors.euclidean())),
        16,
    ),
    "zero one": (
        streams.contradicting(losses.hinge),
        lambda eta: olx.linear(olx.omd(eta, mirrors.euclidean())),
        1,
    ),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_certificates_hold_against_adversaries(name):
    adversary, make, size = ADVERSARIES[name]
    start = np.full(size, 1 / size) if name == "heaviest expert" else np.zeros(size)
    comparators = np.stack([start, np.eye(size)[0]])

    @jax.vmap
    def judge(learner):
        run = olx.play(learner, adversary, jnp.array(start), T, record=olx.record.trace)
        return jax.vmap(lambda u: olx.certify(learner, run, u).holds)(comparators)

    assert np.all(jax.jit(lambda: judge(olx.batch(make, eta=ETAS).learners))())


def test_bounds_are_tight_somewhere():
    """The largest regret / bound over the grid, for each algorithm on a stream that strains it."""
    stream = regression()["linear"]
    for name, make in PREDICTORS.items():
        seen = check(make, SQUARED, stream.rounds, ZEROS, comparators(stream.truth))
        assert np.nanmax(seen) > 0.7, (name, np.nanmax(seen))
    for name, make in POINTS.items():
        rounds = experts()["gap"].rounds._replace(context=None)
        seen = check(make, LINEAR, rounds, UNIFORM, CORNERS)
        assert np.nanmax(seen) > 0.2, (name, np.nanmax(seen))


NUMBERS = st.floats(-3, 3, width=32)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(NUMBERS, min_size=D, max_size=D), min_size=8, max_size=8),
    st.lists(NUMBERS, min_size=D, max_size=D),
)
@pytest.mark.parametrize("name", ["omd ball", "md ball", "ftrl adagrad", "optimistic md"])
def test_no_stream_of_linear_losses_breaks_a_certificate(name, rows, u):
    rounds = olx.Rounds(None, np.array(rows))
    holds, _, _ = judge(points(name), LINEAR, rounds, ZEROS, np.array([u]) / 4)
    assert np.all(holds)


@functools.cache
def points(name):
    """The learner of a predictor, on points."""
    return lambda eta: PREDICTORS[name](eta).hparams.inner


def played(learner, loss, rounds):
    return olx.rollout(learner, loss, rounds, jnp.array(ZEROS), record=olx.record.trace)


@functools.cache
def corollary_1():
    """The bounds of the corollary on a stream, for steps and comparators."""
    stream = classification()["noise"]
    penalty, base = convex.l1(0.1), mirrors.euclidean()

    def prove(eta, u):
        root = olx.linear(olx.ftrl(eta, regularizers.composite(penalty, rate=eta)))
        run = played(root, losses.hinge, stream.rounds)
        growing = regularizers.growing(base)
        steep = olx.linear(olx.ftrl(eta, regularizers.adagrad(penalty, 4.0, rate=eta)))
        steep_run = played(steep, losses.hinge, stream.rounds)
        adagrad = regularizers.adagrad(delta=4.0)
        tight = olx.theorems.composite_regret(growing, penalty.value)
        loose = olx.theorems.root_regret(base, penalty.value)
        both = olx.certify(root, run, u, theorems=(tight, loose))
        steeper = olx.theorems.composite_regret(adagrad, penalty.value)
        (own,) = olx.certify(steep, steep_run, u, theorems=(steeper,))
        return {"tight": both[0], "loose": both[1], "steep": own}

    return with_verdicts(prove)


def with_verdicts(prove):
    """Compile what makes certificates; each comes with whether it holds."""

    @jax.jit
    def judge(*given):
        proofs = prove(*given)
        return proofs, {name: proof.holds for name, proof in proofs.items()}

    return judge


@pytest.mark.parametrize("eta", [0.01, 0.3, 3.0])
def test_corollary_1_holds(eta):
    for u in comparators(classification()["noise"].truth):
        proofs, holds = corollary_1()(eta, u)
        for name, proof in proofs.items():
            assert holds[name], str(proof)
        assert np.all(proofs["loose"].right >= proofs["tight"].right - 1e-9)


def test_following_the_leader_on_composite_losses_has_logarithmic_regret():
    stream = classification()["noise"]
    both = mirrors.quadratic(0.5, convex.l1(0.05))
    learner = olx.linear(olx.ftrl(1.0, regularizers.growing(both, 1.0)))

    @with_verdicts
    def prove(u):
        run = played(learner, losses.hinge, stream.rounds)
        return {
            "leader": olx.certify(learner, run, u, theorems=(olx.theorems.leader_regret(both),))[0]
        }

    for u in comparators(stream.truth):
        proofs, holds = prove(u)
        assert holds["leader"], str(proofs["leader"])


@functools.cache
def theorem_5():
    """The bound of the theorem on a stream, for moduli and comparators."""
    stream = classification()["noise"]
    rounds = olx.Rounds(None, (stream.rounds.context, stream.rounds.outcome))

    def prove(sigma, u):
        def regularized(w, outcome):
            x, y = outcome
            return losses.hinge(jnp.vdot(w, x), y) + sigma * jnp.vdot(w, w) / 2

        learner = olx.md(schedules.decay(1 / sigma, 1.0), mirrors.euclidean(sets.ball(2.0)))
        run = played(learner, regularized, rounds)
        theorem = olx.theorems.strongly_convex_regret(sigma)
        return {"theorem 5": olx.certify(learner, run, u, theorems=(theorem,))[0]}

    return with_verdicts(prove)


@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_theorem_5_holds_for_strongly_convex_losses(sigma):
    for u in comparators(classification()["noise"].truth):
        proofs, holds = theorem_5()(sigma, u)
        assert holds["theorem 5"], str(proofs["theorem 5"])


def test_outside_the_domain_a_certificate_says_nothing():
    rounds = olx.Rounds(None, experts()["gap"].rounds.outcome)
    learner = olx.hedge(0.5)

    @jax.jit
    def judge(u):
        run = olx.rollout(
            learner, losses.linear_loss, rounds, jnp.array(UNIFORM), record=olx.record.trace
        )
        return olx.certify(learner, run, u)

    assert np.all(np.isinf(judge(np.ones(D))[0].right))


def test_a_wrong_update_fails_its_certificate():
    """The check can fail: a learner that moves against its own record breaks the inequality."""
    good = olx.hedge(0.5)
    cheat = olx.Learner(
        good.hparams,
        good.init_fn,
        lambda hp, state, x: jnp.roll(good.predict_fn(hp, state, x), 1),
        good.update_fn,
        theorems=good.theorems,
    )
    rounds = olx.Rounds(None, np.tile([1.0, 0.0, 0.0, 0.0], (T, 1)))

    @jax.jit
    def judge(u):
        run = olx.rollout(
            cheat, losses.linear_loss, rounds, jnp.array(UNIFORM), record=olx.record.trace
        )
        return olx.certify(cheat, run, u).holds

    assert not judge(np.eye(D)[2])
