"""Gradient boosting against its references, its theorems on hard streams, and its refusals."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_gradient_boosting as reference
import scipy.sparse
from refusal import said

import olx
from olx import boosting, losses, mirrors, schedules, streams
from olx.boosting import _stages
from olx.boosting.greedy import BASE
from olx.convex import sets

quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
D, N, WIDTH = 0.4, 6, 4
ALPHAS = [0.9, 0.5, 0.4, 0.3, 0.2, 0.1]
RNG = np.random.default_rng(3)
ZEROS = jnp.zeros(WIDTH)


def unit_rows(rounds):
    x = RNG.normal(size=(rounds, WIDTH))
    return x / np.maximum(1, np.linalg.norm(x, axis=1))[:, None]


def ball(d=D):
    """As `BallDescent` of the reference."""
    steps = schedules.decay(2 * d)
    return olx.linear(olx.md(steps, mirrors.euclidean(sets.ball(d))))


def small(inner=None, eta=0.3, loss=losses.squared, bound=D, **options):
    inner = ball() if inner is None else inner
    return boosting.gradient_boost(inner, N, eta, loss, bound, **options)


@quick
def played(learner, rounds):
    """The actions and the states of a run with the loss of the learner."""
    watch = lambda state, feedback: (feedback.action, state)
    return olx.rollout(learner, learner.hparams.loss, rounds, ZEROS, record=watch).trace


X = unit_rows(2_000)
TRUTH = np.array([1.0, -0.8, 0.5, 0.2])
Y = np.clip(X @ TRUTH + 0.1 * RNG.normal(size=len(X)), -1, 1)
LABELS = np.where(Y >= 0, 1.0, -1.0)
HALF, LOGISTIC = reference.half_square(), reference.logistic()


def by_reference(name):
    learners = lambda make: [make() for _ in range(N)]
    fitting = lambda alpha, b: iter(
        [reference.GreedyDescent(WIDTH, each, HALF.lipschitz(b), D) for each in alpha]
    )
    plain = lambda: reference.BallDescent(WIDTH, D)
    radius = lambda loss, d=D: reference.radius(loss, 0.3, N, d)
    span = lambda make, loss, b, y=Y, **how: reference.span_boosting(
        learners(make), X, y, loss, 0.3, b, **how
    )
    match name:
        case "span":
            return span(plain, HALF, radius(HALF))
        case "span, logistic":
            return span(plain, LOGISTIC, radius(LOGISTIC), LABELS)
        case "span, cubic":
            cubic = reference.p_norm(3)
            return span(plain, cubic, radius(cubic))
        case "scaled":
            make = lambda: reference.Scaled(plain(), 2.0)
            return span(make, HALF, radius(HALF, 2 * D))
        case "symmetrized":
            make = lambda: reference.Symmetric(plain(), plain(), 0.2)
            return span(make, HALF, radius(HALF))
        case "greedy" | "greedy by stage":
            b = radius(HALF)
            own = fitting([0.5] * N if name == "greedy" else ALPHAS, b)
            return span(lambda: next(own), HALF, b, feedback="greedy")
        case "greedy hull":
            own = fitting(2 / (np.arange(N) + 2), D)
            return reference.hull_boosting(list(own), X, Y, HALF, D, feedback="greedy")
        case "linearized":
            return span(plain, HALF, 0.3 * N * D, feedback="linear")
        case "hull":
            return reference.hull_boosting(learners(plain), X, Y, HALF, D)
    raise KeyError(name)


LEARNERS = {
    "span": small(),
    "span, logistic": small(loss=losses.logistic),
    "span, cubic": small(loss=losses.power(3.0)),
    "scaled": small(boosting.scaled(ball(), 2.0), bound=2 * D),
    "symmetrized": small(boosting.symmetrized(ball(), olx.hedge(0.2))),
    "greedy": small(boosting.greedy(ball(), 0.5)),
    "greedy by stage": small(boosting.greedy(ball(), ALPHAS)),
    "greedy hull": boosting.gradient_boost_hull(boosting.greedy(ball()), N, losses.squared, D),
    "linearized": boosting.gradient_boost_linearized(ball(), N, 0.3, losses.squared, D),
    "hull": boosting.gradient_boost_hull(ball(), N, losses.squared, D),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_predictions_are_those_of_the_reference(name):
    learner, wanted = LEARNERS[name], by_reference(name)
    outcome = LABELS if name == "span, logistic" else Y
    actions, states = played(learner, olx.Rounds(X, outcome))
    np.testing.assert_allclose(actions, wanted.y, rtol=0, atol=1e-8)
    assert np.ptp(wanted.y) > 0.3
    if "span" in name:
        np.testing.assert_allclose(states.shrinkage, wanted.sigmas[:-1], rtol=0, atol=1e-8)


def test_shrinkage_that_moves_is_that_of_the_reference():
    b = reference.radius(HALF, 1.0, N, 1.0)
    learners = [reference.BallDescent(WIDTH, 1.0) for _ in range(N)]
    wanted = reference.span_boosting(learners, X, Y, HALF, 1.0, b)
    assert np.sum((wanted.sigmas > 0.01) & (wanted.sigmas < 0.99)) > 1_000
    learner = small(ball(1.0), eta=1.0, bound=1.0)
    _, states = played(learner, olx.Rounds(X, Y))
    np.testing.assert_allclose(states.shrinkage, wanted.sigmas[:-1], rtol=0, atol=1e-8)


@pytest.mark.parametrize("eta", [1 / N, 0.2, 1.0])
@pytest.mark.parametrize("d", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        (losses.squared, HALF),
        (losses.logistic, LOGISTIC),
        (losses.squared_hinge, reference.modified_squares()),
        (losses.power(3.0), reference.p_norm(3)),
        (losses.power(2.5), reference.p_norm(2.5)),
        (losses.aligned, reference.linear()),
    ],
    ids=["squared", "logistic", "squared hinge", "cubic", "power", "aligned"],
)
def test_the_radius_is_the_root(loss, plain, eta, d):
    seen = float(_stages.ball_radius(eta, N, loss, d, 1.0))
    assert seen == pytest.approx(reference.radius(plain, eta, N, d), rel=1e-12)


def test_the_radius_of_the_squared_loss_is_differentiable_in_the_step():
    radius = lambda eta: _stages.ball_radius(eta, 40, losses.squared, 0.3, 2.0)
    closed = lambda eta: (jnp.sqrt(0.3**2 + 8 * eta * 0.3) - 0.3) / (2 * eta)
    for eta in (0.2, 0.9):
        assert float(radius(eta)) == pytest.approx(float(closed(eta)), rel=1e-12)
        assert float(jax.grad(radius)(eta)) == pytest.approx(float(jax.grad(closed)(eta)), rel=1e-9)
    assert float(jax.grad(radius)(0.03)) == pytest.approx(40 * 0.3)  # the other end: eta N D


def drifting(rounds):
    angle = np.linspace(0, 4 * np.pi, rounds)
    u = np.stack([np.cos(angle), np.sin(angle), 0 * angle, 0 * angle], axis=1)
    return 0.9 * np.sum(X[:rounds] * u, axis=1)


SHORT = 250
IID = olx.Rounds(X[:SHORT], Y[:SHORT], np.ones(SHORT))
STREAMS = jax.tree.map(lambda *leaves: np.stack(leaves), IID, IID._replace(outcome=drifting(SHORT)))
COMPARATORS = np.array([0 * TRUTH, TRUTH, -4 * TRUTH, [0, 0, 0.1, 0]])


@quick
def certified(learner, many):
    """The certificates on each stream, against each comparator."""

    def one(rounds):
        loss = learner.hparams.loss
        run = olx.rollout(learner, loss, rounds, ZEROS, record=olx.record.trace)
        return jax.vmap(olx.certify, (None, None, 0))(learner, run, COMPARATORS)

    return jax.vmap(one)(many)


@pytest.mark.parametrize("name", ["span", "span, cubic", "scaled", "hull", "absolute"])
def test_theorems_hold_after_every_round(name):
    absolute = boosting.gradient_boost_linearized(ball(), N, 0.3, losses.absolute, D)
    proofs = certified(absolute if name == "absolute" else LEARNERS[name], STREAMS)
    assert np.all(proofs.holds)
    for proof in proofs:
        assert np.all(np.isfinite(proof.right))
        assert np.max(proof.tightness) > 0.3


@pytest.mark.parametrize("name", ["span, logistic", "hull", "linearized"])
def test_theorems_hold_against_an_adversary(name):
    learner = LEARNERS[name]
    adversary = streams.contradicting(learner.hparams.loss)

    @quick
    def play():
        run = olx.play(learner, adversary, jnp.zeros(1), SHORT, record=olx.record.trace)
        points = jnp.array([[0.3], [-2.0]])
        return run.rounds.outcome, jax.vmap(olx.certify, (None, None, 0))(learner, run, points)

    outcome, proofs = play()
    assert np.all(np.abs(outcome) == 1)
    assert np.all(proofs.holds)
    assert np.all(np.isfinite(proofs[0].right))


@pytest.mark.parametrize("name", ["span", "hull"])
def test_sides_are_those_of_the_reference(name):
    stream, u = IID, COMPARATORS[1]
    proofs = jax.tree.map(lambda leaf: leaf[0, 1], certified(LEARNERS[name], STREAMS))
    learners = [reference.BallDescent(WIDTH, D) for _ in range(N)]
    x, f = stream.context, stream.context @ u
    norm = max(1, np.linalg.norm(u) / D) if name == "span" else 1.0
    if name == "span":
        b = reference.radius(HALF, 0.3, N, D)
        run = reference.span_boosting(learners, x, stream.outcome, HALF, 0.3, b)
    else:
        run = reference.hull_boosting(learners, x, stream.outcome, HALF, D)
    delta = reference.excess(run, stream.outcome, HALF, f)
    owed = np.sum(run.gradients * (run.outputs - f[:, None] / norm), axis=0)
    most = max(owed.max(), 0)
    if name == "span":
        published = reference.theorem13(
            delta[0], HALF, 0.3, b, norm, N, SHORT, most / HALF.lipschitz(b)
        )
        left, right = reference.span_step(delta, HALF, 0.3, b, norm, SHORT, owed)
    else:
        published = reference.theorem14(HALF, D, N, SHORT, most / HALF.lipschitz(D))
        left, right = reference.hull_step(delta, HALF, D, SHORT, owed)
    assert float(proofs[0].left[-1]) == pytest.approx(delta[-1], rel=1e-9)
    assert float(proofs[0].published[-1]) == pytest.approx(published, rel=1e-9)
    assert np.all(left <= right)
    last = float(proofs[1].left[-1])
    at = np.argmin(np.abs(left - last))
    assert left[at] == pytest.approx(last, rel=1e-9)
    assert proofs[1].right[-1] <= right[at]


@pytest.mark.parametrize("name", ["greedy", "greedy by stage", "greedy hull"])
def test_greedy_learners_owe_little_in_linear_losses(name):
    learner, u = LEARNERS[name], D * TRUTH / np.linalg.norm(TRUTH)
    claims = olx.theorems.greedy_regret(), olx.theorems.greedy_regret(three)

    @quick
    def play():
        run = olx.rollout(learner, losses.squared, IID, ZEROS, record=olx.record.trace)
        return olx.certify(learner, run, u, theorems=claims)

    proof, void = play()
    assert proof.holds
    assert np.all(np.isfinite(proof.published))
    assert proof.left[-1] > 0
    assert void.summary.broken[BASE] == 1
    assert np.isinf(void.right[-1])


def three(u, x):
    """A function that is too large for a base function."""
    return 3 + 0 * jnp.vdot(u, x)


def test_boosting_is_far_better_than_its_base():
    """A base that is bounded by 0.1 cannot follow targets of about 0.5."""
    rounds, weak = olx.Rounds(X, 0.95 * X @ TRUTH / np.linalg.norm(TRUTH)), ball(0.1)
    total = quick(lambda learner: olx.rollout(learner, losses.squared, rounds, ZEROS).total)
    strong = boosting.gradient_boost(weak, 60, 0.3, losses.squared, bound=0.1)
    assert total(strong) < 0.25 * total(weak)


def test_a_model_is_boosted():
    weak = olx.model(olx.ogd(1.0), bounded)
    learner = boosting.gradient_boost(weak, 12, 0.5, losses.squared, bound=0.2)
    start = {"w": jnp.zeros(WIDTH), "b": jnp.zeros(())}
    u = {"w": jnp.asarray(TRUTH), "b": jnp.zeros(())}

    @quick
    def play():
        run = olx.rollout(learner, losses.squared, IID, start, record=olx.record.trace)
        alone = olx.rollout(weak, losses.squared, IID, start)
        return run.total, alone.total, olx.certify(learner, run, u)

    total, base, proofs = play()
    assert total < 0.6 * base
    assert proofs.holds
    assert np.isfinite(proofs[0].right[-1])


def bounded(params, x):
    return 0.2 * jnp.tanh(jnp.vdot(params["w"], x) + params["b"])


def test_sparse_rows_are_dense_rows():
    x = np.where(RNG.random((40, 9)) < 0.4, RNG.normal(size=(40, 9)) / 3, 0.0)
    rounds = olx.Rounds(x, np.clip(x.sum(axis=1), -1, 1))
    rows = rounds._replace(context=streams.sparse_rows(scipy.sparse.csr_array(x)))
    weak = boosting.greedy(boosting.scaled(olx.linear(olx.first_order.adagrad(0.2)), 1.2), 0.5)
    learner = boosting.gradient_boost(weak, 9, 0.4, losses.squared)  # as many copies as columns
    wanted, seen = (olx.run(learner, losses.squared, r, jnp.zeros(9)) for r in (rounds, rows))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, 1e-12, 1e-12),
        (seen.losses, seen.state),
        (wanted.losses, wanted.state),
    )


@pytest.mark.parametrize(
    "name", ["span", "hull", "linearized", "greedy", "greedy by stage", "greedy hull"]
)
def test_single_precision_stays_single_among_double_numbers(name):
    learner = LEARNERS[name]
    rounds, u = jax.tree.map(lambda leaf: np.asarray(leaf[:20], np.float32), (IID, TRUTH))

    def play():
        start = jnp.zeros(WIDTH, jnp.float32)
        watch = olx.record.trace
        run = olx.rollout(learner, learner.hparams.loss, rounds, start, record=watch)
        claims = (*learner.theorems, *([olx.theorems.greedy_regret()] if "greedy" in name else ()))
        return run.losses, run.state, olx.certify(learner, run, u, theorems=claims)

    for leaf in jax.tree.leaves(jax.eval_shape(play)):
        assert leaf.dtype != np.float64


def test_steps_are_swept_and_each_has_its_own_radius():
    etas, rounds = jnp.array([0.2, 0.5, 1.0]), olx.Rounds(X, Y)
    batch = olx.batch(lambda eta: small(eta=eta), eta=etas)
    runs = olx.sweep(batch, losses.squared, rounds, ZEROS)
    for eta, seen in zip(etas, runs.losses, strict=True):
        actions, _ = played(small(eta=float(eta)), rounds)
        np.testing.assert_allclose(seen, (actions - Y) ** 2 / 2, rtol=0, atol=1e-10)


def test_the_loss_is_differentiable_in_the_step_through_the_radius():
    rounds = jax.tree.map(lambda leaf: leaf[:40], IID)
    paid = lambda eta: olx.rollout(small(eta=eta), losses.squared, rounds, ZEROS).total
    step, total = 1e-6, quick(jax.value_and_grad(paid))
    difference = (total(0.6 + step)[0] - total(0.6 - step)[0]) / (2 * step)
    assert float(total(0.6)[1]) == pytest.approx(float(difference), rel=1e-6)


def test_broken_conditions_are_named():
    assert broken(small(), STREAMS) == set()
    assert broken(small(bound=0.1), STREAMS) == {_stages.BOUNDED}
    heavy = STREAMS._replace(weight=2 * STREAMS.weight)
    assert broken(small(), heavy) == {olx.certificate.UNIT_WEIGHTS}
    own = dataclasses.replace(losses.squared, value_fn=doubled)
    found = broken(small(loss=own), STREAMS)
    assert found >= {_stages.STEEP, _stages.SMOOTH}


def broken(learner, rounds):
    proof = jax.tree.map(lambda leaf: leaf[0, 1], certified(learner, rounds))[0]
    assert proof.holds
    return {name for name, first in proof.summary.broken.items() if first}


def doubled(_, score, outcome):
    """A loss that is steeper and more curved than it says, with the constants of `squared`."""
    return 2 * (score - outcome) ** 2


def test_a_game_with_another_loss_is_refused():
    for learner in (LEARNERS["span"], LEARNERS["hull"], LEARNERS["linearized"]):
        message = said(
            lambda learner=learner: olx.run(learner, losses.absolute, IID, ZEROS),
            TypeError,
        )
        assert "the game is played with the loss `tube`, but `loss` is `squared`" in message


def test_large_outcomes_are_refused_and_taken_with_a_larger_target():
    rounds = olx.Rounds(X[:9], 3.0 * np.ones(9))
    message = said(lambda: olx.run(small(), losses.squared, rounds, ZEROS), ValueError)
    assert "gradient_boost: outcomes must not exceed `target` in size, got 3.0" in message
    run = olx.run(small(target=3.0), losses.squared, rounds, ZEROS)
    assert np.all(np.isfinite(run.losses))


OWN = losses.ScoreLoss(value_fn=lambda _, s, y: jnp.cosh(s - y))
REFUSED = {
    "no copies": (lambda: boosting.gradient_boost(ball(), 0, 0.5, losses.squared), "at least 1"),
    "a short step": (lambda: small(eta=0.1), "`eta` must lie in [0.166667, 1], got 0.1"),
    "a long step": (lambda: small(eta=1.1), "`eta` must lie in [0.166667, 1], got 1.1"),
    "a bound": (lambda: small(bound=0.0), "gradient_boost: `bound` must be positive, got 0.0"),
    "a target": (lambda: small(target=-1.0), "gradient_boost: `target` must be positive"),
    "a factor": (lambda: boosting.scaled(ball(), 0.0), "scaled: `factor` must be positive"),
    "a greedy step": (lambda: boosting.greedy(ball(), -1.0), "greedy: `alpha` must be positive"),
    "a greedy step of a stage": (
        lambda: boosting.greedy(ball(), jnp.array([0.5, 0.0])),
        "greedy: `alpha` must be positive, got 0.0",
    ),
    "functions": (
        lambda: streams.coin_functions(jax.random.key(0), 5, 0),
        "coin_functions: `calls` must be an integer of at least 1",
    ),
}
REFUSED_KINDS = {
    "a point learner": (
        lambda: small(olx.ogd(0.1)),
        "`inner` must predict a real number, got a point learner; put a point learner into "
        "`olx.linear`",
    ),
    "a point learner without facts": (
        lambda: olx.run(
            boosting.gradient_boost_hull(olx.omd(0.1, mirrors.pnorm(1.5)), 3, losses.squared),
            losses.squared,
            IID,
            ZEROS,
        ),
        "got actions of shape (4,); put a point learner into `olx.linear`",
    ),
    "no constants": (
        lambda: small(loss=OWN),
        "`loss` states no constants for scores of bounded size; take one of `olx.losses`",
    ),
    "a loss that only counts": (lambda: small(loss=losses.zero_one), "states no constants"),
    "a loss with a kink": (
        lambda: boosting.gradient_boost_hull(ball(), 3, losses.absolute),
        "`loss` is not smooth; `gradient_boost_linearized` takes such losses",
    ),
    "greedy alone": (
        lambda: olx.run(boosting.greedy(ball(), 0.1), losses.squared, IID, ZEROS),
        "greedy: plays only as the base learner of gradient boosting",
    ),
    "too few greedy steps": (
        lambda: olx.run(small(boosting.greedy(ball(), ALPHAS[:2])), losses.squared, IID, ZEROS),
        "greedy: `alpha` has 2 numbers, but the booster has 6 stages; give one number per stage",
    ),
    "a learner that reads outcomes": (
        lambda: olx.run(small(olx.implicit(0.1, losses.squared)), losses.squared, IID, ZEROS),
        "gradient_boost: `inner` must learn from its loss alone, but it reads the outcome",
    ),
    "greedy inside another": (
        lambda: olx.run(
            small(boosting.scaled(boosting.greedy(ball(), 0.1), 2.0)), losses.squared, IID, ZEROS
        ),
        "greedy: plays only as the base learner of gradient boosting",
    ),
    "no learner": (lambda: small(3.0), "`inner` must be a Learner, got float"),
    "a theorem about others": (
        lambda: olx.certify(
            small(),
            losses.squared,
            IID,
            ZEROS,
            TRUTH,
            theorems=(olx.theorems.hull_regret(),),
        ),
        "`hull_regret` is about a `gradient_boost_hull`",
    ),
}


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_KINDS])
def test_bad_input_is_refused_by_name(name):
    act, words = (REFUSED | REFUSED_KINDS)[name]
    assert words in said(act, TypeError if name in REFUSED_KINDS else ValueError)


def test_few_coins_do_not_tell_the_targets_apart():
    """Theorem 15: with N coins in a round the regret to the mean is at least T / (4000 N).

    Copies of a learner that draws a function draw apart: else N coins would be as good as one. The
    mean of N coins has a variance of 1 / (4 N), so it pays about 1 / (8 N) in a round.
    """
    calls, rounds = 8, 600
    stream = streams.coin_functions(jax.random.key(1), rounds, calls, functions=300)
    values, targets = (np.asarray(part) for part in stream.rounds[:2])
    away = 1 / (10 * np.sqrt(calls))
    np.testing.assert_allclose(np.abs(targets - 0.5), away)
    assert abs(np.mean(values[targets > 0.5]) - 0.5 - away) < 0.005
    mean = np.sum((values @ stream.truth - targets) ** 2) / 2
    assert mean < rounds / 300
    draws = olx.linear(olx.experts.committed(olx.hedge(0.1), jax.random.key(2)))
    learner = boosting.gradient_boost_hull(draws, calls, losses.squared)
    run = olx.run(learner, losses.squared, stream.rounds, stream.truth)
    regret = float(run.total) - mean
    assert regret > rounds / (4000 * calls)
    assert regret < 3 * rounds / (8 * calls)
