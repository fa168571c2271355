"""The primal-dual framework: every rule against NumPy, its dual, its lemmas."""

import functools
from typing import NamedTuple

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_dual_ascent as ref
from hypothesis import given, settings
from hypothesis import strategies as st

import olx
from olx import ascents, losses, mirrors, schedules, streams
from olx.convex import norms
from olx.frameworks.dual_ascent import dual_ascent

KEY = jax.random.key(3)
T, D = 150, 5
LOG = float(np.log(D))


def contradicting(x):
    """Labels that contradict a Perceptron in two rounds out of three."""
    w, labels = np.zeros(D), []
    for t, row in enumerate(x):
        wrong = -1.0 if w @ row >= 0 else 1.0
        y = wrong if t % 3 else -wrong
        w = w + y * row * (y * (w @ row) <= 0)
        labels.append(y)
    return np.array(labels)


def stacked(*all_rounds):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *all_rounds)


@jax.jit
def generated():
    return (
        streams.linear_classification(KEY, T, D, noise=0.1),
        streams.drifting(KEY, T, D, noise=0.1).rounds,
        streams.linear_regression(KEY, T, D).rounds,
        streams.heavy_tailed(KEY, T, D).rounds,
    )


IID, DRIFT, LINEAR, HEAVY = generated()
ROWS = np.array(IID.rounds.context)
BINARY = stacked(
    IID.rounds,
    olx.Rounds(DRIFT.context, jnp.sign(DRIFT.outcome)),
    olx.Rounds(IID.rounds.context, jnp.asarray(contradicting(ROWS))),
)
REAL = stacked(LINEAR, DRIFT, HEAVY)
SIGNS = stacked(
    *(
        olx.Rounds(jnp.asarray(np.sign(np.round(ROWS * scale))), IID.rounds.outcome)
        for scale in (1.0, 3.0)
    )
)
FREE = jnp.stack([IID.truth, jnp.zeros(D), -2 * IID.truth])
SIMPLEX = jnp.stack([jax.nn.softmax(3 * IID.truth), jnp.full(D, 1 / D), jnp.eye(D)[1]])


class Row(NamedTuple):
    learner: olx.Learner
    rounds: olx.Rounds  # several streams
    scores: object  # (x, y) -> those of the reference
    comparators: jax.Array
    potential: ref.Potential
    loss: ref.Loss
    rule: object = None  # the reference's, where a round looks at itself only


def row(mirror, loss, ascent, schedule, rounds, reference):
    """The learner and its reference: potential, loss, rule, a maker of schedules."""
    potential, own, rule, make = reference
    eta = schedule if isinstance(schedule, olx.Process) else 1 / schedule
    learner = dual_ascent(eta, mirror, loss, ascent)
    scores = lambda x, y: ref.play(x, y, potential, own, rule, make())[0]
    us = SIMPLEX if mirror.contains is not None else FREE
    return Row(learner, rounds, scores, us, potential, own, rule)


def constant(c):
    return lambda: ref.constant(c)


EUCLIDEAN, ENTROPY = mirrors.euclidean(), mirrors.negative_entropy()
TABLE = {
    "perceptron, self-tuned": row(
        EUCLIDEAN,
        losses.hinge,
        ascents.conservative(),
        schedules.mistakes(0.5, norms.l2()),
        BINARY,
        (
            ref.euclidean(),
            ref.hinge(),
            ref.conservative,
            lambda: ref.Schedule(lambda t, x, xm, m, loss: x * np.sqrt((m + 1) / 0.5)),
        ),
    ),
    "winnow, self-tuned": row(
        ENTROPY,
        losses.margin_hinge(0.2),
        ascents.conservative(),
        schedules.mistakes(LOG, norms.l1()),
        BINARY,
        (
            ref.entropy(),
            ref.hinge(0.2),
            ref.conservative,
            lambda: ref.Schedule(
                lambda t, x, xm, m, loss: x * np.sqrt((m + 1) / LOG), lambda v: np.abs(v).max()
            ),
        ),
    ),
    "logistic, growing": row(
        EUCLIDEAN,
        losses.logistic,
        ascents.subgradient(),
        schedules.root_rounds(2.0, 0.5),
        BINARY,
        (
            ref.euclidean(),
            ref.logistic(),
            ref.subgradient,
            lambda: ref.Schedule(lambda t, x, xm, m, loss: np.sqrt(t * 2.0 / 0.5)),
        ),
    ),
    "passive-aggressive": row(
        EUCLIDEAN,
        losses.hinge,
        ascents.aggressive(),
        3.0,
        BINARY,
        (ref.euclidean(), ref.hinge(), ref.passive_aggressive, constant(3.0)),
    ),
    "implicit regression": row(
        EUCLIDEAN,
        losses.squared,
        ascents.aggressive(),
        schedules.own_loss(1.0, 2.0),
        REAL,
        (
            ref.euclidean(),
            ref.squared(),
            ref.implicit,
            lambda: ref.Schedule(lambda t, x, xm, m, loss: 2.0 * np.sqrt(1 + loss)),
        ),
    ),
    "implicit tube": row(
        EUCLIDEAN,
        losses.epsilon_insensitive(0.3),
        ascents.aggressive(),
        4.0,
        REAL,
        (ref.euclidean(), ref.tube(0.3), ref.clipped_tube, constant(4.0)),
    ),
    "aggressive p-norm tube": row(
        mirrors.pnorm(1.4),
        losses.epsilon_insensitive(0.1),
        ascents.aggressive(),
        schedules.root_lipschitz(1.0, 1.5, norms.lp(1.4)),
        REAL,
        (
            ref.pnorm(1.4),
            ref.tube(0.1),
            ref.aggressive,
            lambda: ref.Schedule(
                lambda t, x, xm, m, loss: np.sqrt(t * x**2 / 2 / 1.5), ref.pnorm(1.4).dual_norm
            ),
        ),
    ),
    "aggressive entropy squared": row(
        ENTROPY,
        losses.squared,
        ascents.aggressive(),
        2.0,
        REAL,
        (ref.entropy(), ref.squared(), ref.aggressive, constant(2.0)),
    ),
    "aggressive entropy signs": row(
        ENTROPY,
        losses.margin_hinge(0.4),
        ascents.aggressive_signs(),
        1.5,
        SIGNS,
        (ref.entropy(), ref.hinge(0.4), ref.aggressive, constant(1.5)),
    ),
    "window of two": Row(
        dual_ascent(1 / 3.0, EUCLIDEAN, losses.hinge, ascents.window(2, 40)),
        BINARY,
        lambda x, y: ref.window_pair(x, y, 3.0),
        FREE,
        ref.euclidean(),
        ref.hinge(),
    ),
    "mini-updates": Row(
        dual_ascent(1 / 3.0, EUCLIDEAN, losses.hinge, ascents.mini_updates(4, 12)),
        BINARY,
        lambda x, y: ref.row_actions(x, y, 3.0, 4, 12),
        FREE,
        ref.euclidean(),
        ref.hinge(),
    ),
}


SELF_TUNED = TABLE["perceptron, self-tuned"]


class Judged(NamedTuple):
    """What a run did, an axis of streams in front; a certificate has one of comparators too."""

    score: object
    c: object
    acc: object  # before the first round and after each
    conjugates: object
    holds: object  # all theorems
    lemma: object  # whether it holds
    tightness: object  # of the lemma
    right: object


@jax.jit
def judged(learner, rounds, comparators):
    loss = learner.hparams.loss

    def one(rounds):
        run = olx.rollout(learner, loss, rounds, jnp.zeros(D), record=olx.record.trace)
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u))(comparators)
        proof, state = proofs["primal_dual_inequality"], run.trace.state
        c = 1 / jax.vmap(learner.hparams.eta.at)(state.stats, rounds.context)
        last = lambda before, after: jnp.concatenate([before, after[None]])
        return Judged(
            run.trace.feedback.action,
            c,
            last(state.acc, run.state.acc),
            last(state.conjugates, run.state.conjugates),
            proofs.holds,
            proof.holds,
            proof.tightness,
            proof.right,
        )

    return jax.vmap(one)(rounds)


@functools.cache
def result(name):
    case = TABLE[name]
    return Judged(*map(np.asarray, judged(case.learner, case.rounds, case.comparators)))


def each_stream(name):
    """The rows and labels of a stream, and what the run did on it."""
    x, y = map(np.asarray, TABLE[name].rounds[:2])
    for i in range(len(x)):
        yield x[i], y[i], Judged(*(leaf[i] for leaf in result(name)))


@pytest.mark.parametrize("name", TABLE)
def test_scores_equal_the_reference(name):
    for x, y, seen in each_stream(name):
        np.testing.assert_allclose(seen.score, TABLE[name].scores(x, y), atol=1e-10)


@pytest.mark.parametrize("name", TABLE)
def test_the_dual_rises_as_with_the_subgradient_and_stays_below_the_primal(name):
    """(3.9), (3.19) and weak duality, with primal and dual written in NumPy."""
    case = TABLE[name]
    f, loss, us = case.potential, case.loss, np.asarray(case.comparators)
    for x, y, run in each_stream(name):
        others = np.zeros(len(us))
        for t in range(T):
            c, score, paid = run.c[t], run.score[t], run.conjugates[t]
            counts = case.rule is not ref.conservative or y[t] * score <= 0
            tau = loss.slope(score, y[t]) if counts else 0.0
            dual = lambda acc, paid, c=c: -c * f.conjugate(acc / c) - paid
            plain = dual(run.acc[t] - tau * x[t], paid + (loss.conjugate(tau, y[t]) if tau else 0))
            risen = dual(run.acc[t + 1], run.conjugates[t + 1])
            rounding = 1e-12 * (1 + abs(paid) + abs(run.conjugates[t + 1]) + c)
            assert risen >= plain - rounding
            if counts:
                others += [loss.value(u @ x[t], y[t]) for u in us]
            assert np.all(risen <= c * np.array([f.value(u) for u in us]) + others + rounding)


@pytest.mark.parametrize("name", TABLE)
def test_its_theorems_hold_after_every_round(name):
    assert np.all(result(name).holds)
    assert np.all(np.isfinite(result(name).right))


def test_the_search_ends_on_the_maximum_wherever_it_lies():
    """Many duals, rows and rates: the best tau leaves no slope, or is all of the subgradient."""
    rng = np.random.default_rng(0)
    acc, x = rng.normal(size=(2, 4000, D)) * 10.0 ** rng.uniform(-2, 1, size=(2, 4000, 1))
    y, c = rng.normal(size=4000), 10.0 ** rng.uniform(-1, 2, size=4000)

    @jax.jit
    @jax.vmap
    def left(acc, x, y, c):
        score = jnp.vdot(ENTROPY.to_primal(acc / c), x)
        problem = ascents.Problem(ENTROPY, losses.squared, c, acc, x, y, jnp.ones(()), score)
        moved, _, _ = ascents.aggressive().step(None, problem)
        tau = jnp.vdot(acc - moved, x) / jnp.vdot(x, x)
        return jnp.vdot(ENTROPY.to_primal(moved / c), x) - tau - y, jnp.abs(tau) + jnp.abs(y)

    slope, size = left(*map(jnp.asarray, (acc, x, y, c)))
    long = np.linalg.norm(x, axis=1)
    rounding = np.finfo(float).eps * (1 + size) * (1 + long + (1 + np.abs(acc).max(1)) / long)
    assert np.max(np.abs(slope) / rounding) < 1e3


TIGHT = {"perceptron, self-tuned": 0.9, "winnow, self-tuned": 0.9, "aggressive entropy signs": 0.7}


@pytest.mark.parametrize("name", TIGHT)
def test_its_lemma_is_not_vacuous(name):
    assert result(name).tightness.max() > TIGHT[name]


def test_the_sandwich_holds_and_its_upper_half_is_weak_duality():
    learner, rounds, us = SELF_TUNED.learner, SELF_TUNED.rounds, SELF_TUNED.comparators

    @jax.jit
    def judge(rounds):
        run = olx.rollout(learner, losses.zero_one, rounds, jnp.zeros(D), record=olx.record.trace)
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u))(us)
        both, weak = proofs["sandwich"], proofs["weak_duality"]
        gap = jnp.abs(weak.left - both.right) + jnp.abs(weak.right - both.published)
        return both.holds, weak.holds, gap, both.left

    both, weak, gap, left = jax.vmap(judge)(rounds)
    assert np.all(both)
    assert np.all(weak)
    assert np.all(gap == 0)
    assert np.any(left > 1)  # so the dual has been raised


SMALL = jax.tree.map(lambda leaf: leaf[0, :16], BINARY)


def test_following_the_leader_closes_the_gap():
    """After each round the dual equals the least primal, which a convex solver finds."""
    c, x, y = 0.7, np.asarray(SMALL.context), np.asarray(SMALL.outcome)
    learner = dual_ascent(1 / c, EUCLIDEAN, losses.hinge, ascents.follow_the_leader(16, 60))

    @jax.jit
    def play(rounds):
        run = olx.rollout(learner, losses.hinge, rounds, jnp.zeros(D), record=olx.record.trace)
        return run.state.acc, olx.certify(learner, run, jnp.zeros(D))["weak_duality"].left

    acc, dual = play(SMALL)
    for t in (1, 7, 16):
        w = cvxpy.Variable(D)
        hinges = cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(y[:t], x[:t] @ w)))
        least = cvxpy.Problem(cvxpy.Minimize(c / 2 * cvxpy.sum_squares(w) + hinges))
        np.testing.assert_allclose(dual[t - 1], least.solve(solver=cvxpy.CLARABEL), rtol=1e-7)
    np.testing.assert_allclose(acc / c, w.value, atol=1e-5)


def test_the_search_finds_what_the_proximal_map_knows():
    """`aggressive` by number, for a map that is the Euclidean one but does not say so."""
    hidden = olx.mirror_map(EUCLIDEAN.potential, EUCLIDEAN.conjugate)
    make = lambda mirror: dual_ascent(1 / 3.0, mirror, losses.logistic, ascents.aggressive())
    play = jax.jit(lambda learner: olx.rollout(learner, losses.squared, SMALL, jnp.zeros(D)).losses)
    np.testing.assert_allclose(play(make(hidden)), play(make(EUCLIDEAN)), rtol=1e-12)


def test_the_search_agrees_with_the_formula_for_signs_whatever_weights_and_scale():
    rounds = jax.tree.map(lambda leaf: leaf[0], SIGNS)
    rounds = rounds._replace(weight=jnp.linspace(0.0, 2.0, T))
    mirror, loss = mirrors.negative_entropy(0.7), losses.margin_hinge(0.3)
    play = jax.jit(lambda learner: olx.rollout(learner, loss, rounds, jnp.zeros(D)).losses)
    seen = play(dual_ascent(1 / 1.3, mirror, loss, ascents.aggressive_signs()))
    wanted = play(dual_ascent(1 / 1.3, mirror, loss, ascents.aggressive()))
    np.testing.assert_allclose(seen, wanted, atol=1e-12)


@jax.jit
def signs_step(x, margin, acc):
    score, one = jnp.vdot(jax.nn.softmax(acc), x), jnp.ones(())
    hinge = losses.margin_hinge(margin)
    problem = ascents.Problem(ENTROPY, hinge, 1.0, acc, x, one, one, score)
    return ascents.aggressive_signs().step(None, problem)[0]


@pytest.mark.parametrize(
    ("x", "margin", "acc", "alpha"),
    [
        ([0.0, 0.0], 0.5, [0.0, 0.0], 1.0),  # a row of zeros
        ([-1.0, 0.0], 0.5, [0.0, 0.0], 1.0),  # no weight on the right side
        ([1.0, 1.0], 0.5, [0.0, 0.0], 0.0),  # all of it there
        ([1.0, -1.0], 1.0, [5.0, 0.0], 1.0),  # a margin out of reach
        ([1.0, -1.0], 0.5, [0.0, 0.0], np.log(3) / 2),
    ],
)
def test_the_formula_for_signs_knows_its_edges(x, margin, acc, alpha):
    x, acc = jnp.array(x), jnp.array(acc)
    np.testing.assert_allclose(signs_step(x, margin, acc), acc + alpha * x, atol=1e-12)


def test_a_row_too_short_to_matter_does_not_break_the_lemma():
    """With a stride below rounding the closed form falls back on the slope."""
    case = TABLE["passive-aggressive"]
    rounds = case.rounds._replace(context=1e-12 * case.rounds.context)
    assert np.all(judged(case.learner, rounds, case.comparators).holds)


def test_rows_of_zeros_teach_nothing_and_do_no_harm():
    case = SELF_TUNED
    rounds = case.rounds._replace(context=jnp.asarray(case.rounds.context).at[:, :9].set(0.0))
    seen = judged(case.learner, rounds, case.comparators)
    assert np.all(seen.holds)
    assert np.all(seen.score[:, :9] == 0)
    assert np.all(np.isfinite(seen.score))


def test_no_learner_beats_the_lower_bound_of_theorem_4():
    """Unit vectors and contradicting labels: a loss of 1 and more in each round, none for u."""
    rounds = 20
    learner = dual_ascent(1.0, EUCLIDEAN, losses.hinge, ascents.subgradient())
    adversary = streams.unit_vectors(rounds, losses.hinge)

    @jax.jit
    def play():
        run = olx.play(learner, adversary, jnp.zeros(rounds), rounds, record=olx.record.trace)
        return run.losses, olx.certify(learner, run, run.rounds.outcome)

    seen, proofs = play()
    proof = proofs["primal_dual_inequality"]
    assert np.all(seen >= 1)
    assert proof.left[-1] >= rounds
    assert proofs.holds
    np.testing.assert_allclose(proof.tightness, 1.0)  # f(u) = T / 2, and as much for moving


NUMBERS = st.floats(-3, 3, width=32)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.lists(NUMBERS, min_size=D, max_size=D), min_size=6, max_size=6),
    st.lists(NUMBERS, min_size=D, max_size=D),
)
@pytest.mark.parametrize("name", ["perceptron, self-tuned", "aggressive p-norm tube"])
def test_no_stream_breaks_the_lemma(name, rows, u):
    """Six rows again and again, with the labels of the table."""
    rows, u = np.array(rows), np.array(u)
    case, long = TABLE[name], np.tile(rows, (T // 6, 1))
    rounds = case.rounds._replace(context=jnp.asarray(np.stack([long, -long, long / 10])))
    seen = judged(case.learner, rounds, jnp.asarray(np.stack([u, -u, 0 * u])))
    assert np.all(seen.holds)


def test_a_wrong_step_fails_its_lemma():
    """The check can fail: an ascent that goes the other way breaks the lemma."""
    backwards = ascents.Ascent(
        None,
        lambda hp, params: None,
        lambda hp, memory, problem: (
            problem.acc - problem.weight * problem.y * problem.x,
            -problem.weight,
            None,
        ),
    )
    learner = dual_ascent(1.0, EUCLIDEAN, losses.hinge, backwards)
    assert not np.any(judged(learner, BINARY, FREE).lemma[0, 0])


def test_refusals_name_the_factory_and_the_remedy():
    with pytest.raises(ValueError, match=r"dual_ascent: `eta` must be positive, got -1"):
        dual_ascent(-1.0, EUCLIDEAN, losses.hinge, ascents.subgradient())
    with pytest.raises(TypeError, match="dual_ascent: `ascent` must be an Ascent"):
        dual_ascent(1.0, EUCLIDEAN, losses.hinge, ascents.subgradient)
    with pytest.raises(ValueError, match="window: `size` must be an integer of at least 1"):
        ascents.window(0)
