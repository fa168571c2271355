"""Inverse learning rates against NumPy, and the regret bounds they were made for."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_dual_ascent as ref

import olx
from olx import ascents, losses, mirrors, schedules, streams
from olx.convex import norms
from olx.frameworks.dual_ascent import dual_ascent

KEY = jax.random.key(5)
T, D = 150, 4
LOG = float(np.log(D))


@jax.jit
def generated():
    return (
        streams.linear_classification(KEY, T, D, noise=0.1),
        streams.drifting(KEY, T, D, noise=0.1).rounds,
        streams.linear_regression(KEY, T, D),
        streams.switching(KEY, T, D).rounds,
    )


MIXED, DRIFT, LINEAR, SWITCHING = generated()


def stacked(*all_rounds):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *all_rounds)


BINARY = stacked(
    MIXED.rounds,
    olx.Rounds(DRIFT.context, jnp.sign(DRIFT.outcome)),
    olx.Rounds(jnp.tile(jnp.eye(D), (38, 1))[:T], jnp.asarray(np.tile([1.0, -1.0, -1.0], 50))),
)
REAL = stacked(LINEAR.rounds, DRIFT, SWITCHING)
LONGEST = float(np.linalg.norm(np.concatenate([BINARY.context, REAL.context]), axis=-1).max())
LARGEST = float(np.abs(REAL.context).max())

SCORES = np.asarray(jax.random.normal(jax.random.key(9), (T,)))
FACTORIES = {  # the schedule, the rule of the notes, the norm of rows
    "S1": (schedules.lipschitz_horizon(90.0, 2.0, 0.5), lambda t, x, xm, m, g: np.sqrt(360.0)),
    "S2": (
        schedules.self_bounded(2.0, 0.5, 7.0),
        lambda t, x, xm, m, g: 2 + np.sqrt(4 + 2 * 7 / 0.5),
    ),
    "S3": (schedules.root_rounds(2.0, 0.5), lambda t, x, xm, m, g: np.sqrt(t * 2 / 0.5)),
    "S4": (
        schedules.root_lipschitz(1.5, 0.5, norms.l2()),
        lambda t, x, xm, m, g: np.sqrt(t * (1.5 * x) ** 2 / 2 / 0.5),
    ),
    "S5": (schedules.own_loss(1.2, 0.8), lambda t, x, xm, m, g: 0.8 * np.sqrt(1.2 + g)),
    "S6": (
        schedules.bounded_loss(3.0, 2.0, 0.5),
        lambda t, x, xm, m, g: 8**0.25 * np.sqrt(2 / 0.5) * np.sqrt(3 + g),
    ),
    "S7": (
        schedules.mistakes(LOG, norms.l1()),
        lambda t, x, xm, m, g: x * np.sqrt((m + 1) / LOG),
        lambda v: np.abs(v).max(),
    ),
    "S8": (schedules.root_norms(0.5, norms.l2()), lambda t, x, xm, m, g: np.sqrt(t / 0.5) * x),
    "S9": (schedules.mistakes(0.5, norms.l2()), lambda t, x, xm, m, g: x * np.sqrt((m + 1) / 0.5)),
    "S10": (
        schedules.structured(0.5, norms.l2()),
        lambda t, x, xm, m, g: xm * np.sqrt((m + 1) / (2 * 0.5)),
    ),
}


@jax.jit
def curves(processes, rounds, scores):
    """What every schedule gives on a stream of scores that are given."""

    def one(process):
        def step(stats, inputs):
            here, score = inputs
            c = 1 / process.at(stats, here.context)
            value = losses.squared(score, here.outcome)
            feedback = olx.Feedback(here.context, score, here.outcome, None, value, None, 1.0)
            return process.update(stats, feedback), c

        return jax.lax.scan(step, process.init(jnp.zeros(D)), (rounds, scores))[1]

    return [one(process) for process in processes]


def test_every_schedule_equals_its_formula():
    made = [made for made, *_ in FACTORIES.values()]
    seen = curves(made, MIXED.rounds, jnp.asarray(SCORES))
    x, y = np.asarray(MIXED.rounds.context), np.asarray(MIXED.rounds.outcome)
    for (name, (_, *formula)), curve in zip(FACTORIES.items(), seen, strict=True):
        schedule, wanted = ref.Schedule(*formula), []
        for t in range(T):
            wanted.append(schedule.before(x[t]))
            schedule.after(x[t], y[t], SCORES[t], (SCORES[t] - y[t]) ** 2 / 2)
        np.testing.assert_allclose(curve, wanted, rtol=1e-12, err_msg=name)
        if name != "S10":  # its rows count on mistakes only
            assert np.all(np.diff(curve) >= 0), name


class Claim(NamedTuple):
    make: object  # complexity -> learner
    theorem: str
    rounds: olx.Rounds
    comparators: jax.Array
    floor: float  # the largest regret / bound seen is above
    published: bool = True  # the published form is finite for some comparator


FREE = jnp.stack([MIXED.truth, jnp.zeros(D), LINEAR.truth / 2])
SIMPLEX = jnp.stack([jnp.full(D, 0.25), jnp.eye(D)[2], jax.nn.softmax(2 * LINEAR.truth)])
COMPLEXITIES = jnp.array([0.1, 0.6, 4.0])
EUCLIDEAN, ENTROPY = mirrors.euclidean(), mirrors.negative_entropy()
TUBE = losses.epsilon_insensitive(0.2)
WORST = float((LARGEST + np.abs(REAL.outcome).max()) ** 2 / 2)


CLAIMS = {
    "corollary 1, any c": Claim(
        lambda c: dual_ascent(0.05 / c, EUCLIDEAN, losses.hinge, ascents.aggressive()),
        "lipschitz",
        BINARY,
        FREE,
        0.6,
    ),
    "corollary 1, tuned": Claim(
        lambda u: dual_ascent(
            schedules.lipschitz_horizon(float(T), LONGEST**2 / 2, u),
            EUCLIDEAN,
            losses.hinge,
            ascents.subgradient(),
        ),
        "horizon",
        BINARY,
        FREE,
        0.4,
        False,
    ),
    "corollary 2": Claim(
        lambda u: dual_ascent(
            schedules.root_rounds(LONGEST**2 / 2, u), EUCLIDEAN, TUBE, ascents.subgradient()
        ),
        "root_rounds",
        REAL,
        FREE,
        0.3,
    ),
    "corollary 3": Claim(
        lambda u: dual_ascent(
            schedules.root_lipschitz(1.0, u, norms.l1()),
            ENTROPY,
            losses.hinge,
            ascents.subgradient(),
        ),
        "root_norms",
        BINARY,
        SIMPLEX,
        0.3,
    ),
    "(5.16)": Claim(
        lambda u: dual_ascent(
            schedules.root_norms(u, norms.l2()), EUCLIDEAN, losses.hinge, ascents.aggressive()
        ),
        "root_norms",
        BINARY,
        FREE,
        0.4,
    ),
    "theorem 1": Claim(
        lambda u: dual_ascent(
            schedules.self_bounded(LONGEST**2, u, 100.0),
            EUCLIDEAN,
            losses.squared,
            ascents.subgradient(),
        ),
        "self_bounded",
        REAL,
        FREE,
        0.5,
    ),
    "theorem 2": Claim(
        lambda u: dual_ascent(
            schedules.own_loss(2.0, 1 / u), EUCLIDEAN, losses.squared, ascents.aggressive()
        ),
        "own_loss",
        REAL,
        FREE,
        0.15,
        False,
    ),
    "corollary 4": Claim(
        lambda u: dual_ascent(
            schedules.bounded_loss(WORST, LARGEST**2, LOG + u),
            ENTROPY,
            losses.squared,
            ascents.subgradient(),
        ),
        "bounded_loss",
        REAL,
        SIMPLEX,
        0.03,
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_the_bound_holds_after_every_round(name):
    claim = CLAIMS[name]

    @jax.jit
    def judge(rounds, complexity):
        learner = claim.make(complexity)
        loss = learner.hparams.loss
        run = olx.rollout(learner, loss, rounds, jnp.zeros(D), record=olx.record.trace)
        proofs = jax.vmap(lambda u: olx.certify(learner, run, u))(claim.comparators)
        proof = proofs[claim.theorem]
        finite = jnp.isfinite(proof.right[:, -1])
        published = False if proof.published is None else jnp.isfinite(proof.published[:, -1])
        return proofs.holds, proof.tightness, finite, published

    each = jax.vmap(jax.vmap(judge, (None, 0)), (0, None))
    holds, tightness, finite, published = each(claim.rounds, COMPLEXITIES)
    assert np.all(holds)
    assert np.all(finite)
    assert np.max(tightness) > claim.floor, np.max(tightness)
    assert np.any(published) == claim.published


def test_where_a_schedule_was_told_too_little_the_bound_says_nothing():
    schedule = schedules.root_rounds(0.1, 1.0)
    learner = dual_ascent(schedule, EUCLIDEAN, losses.hinge, ascents.subgradient())
    u = MIXED.truth

    @jax.jit
    def judge(rounds):
        run = olx.rollout(learner, losses.hinge, rounds, jnp.zeros(D), record=olx.record.trace)
        return olx.certify(learner, run, u)

    proofs = judge(MIXED.rounds)
    assert np.all(np.isinf(proofs["root_rounds"].right))
    assert proofs.holds
    assert np.all(np.isfinite(proofs["primal_dual_inequality"].right))


def test_a_schedule_may_be_swept_and_differentiated():
    make = lambda u: dual_ascent(
        schedules.mistakes(u, norms.l2()), EUCLIDEAN, losses.squared, ascents.aggressive()
    )

    @jax.jit
    def total(u):
        return jnp.sum(olx.rollout(make(u), losses.squared, LINEAR.rounds, jnp.zeros(D)).losses)

    slopes = jax.vmap(jax.grad(total))(COMPLEXITIES)
    step = 1e-6 * COMPLEXITIES
    differences = jax.vmap(total)(COMPLEXITIES + step) - jax.vmap(total)(COMPLEXITIES - step)
    np.testing.assert_allclose(slopes, differences / (2 * step), rtol=1e-4)


def test_refusals_name_the_factory():
    with pytest.raises(ValueError, match=r"root_rounds: `energy` must be positive, got -1"):
        schedules.root_rounds(-1.0, 1.0)
    with pytest.raises(TypeError, match="mistakes: `norm` must be a Norm, got function"):
        schedules.mistakes(1.0, norms.l2)
    steps = schedules.root_rounds(1.0, 1.0)
    learner = dual_ascent(steps, EUCLIDEAN, losses.hinge, ascents.subgradient())
    with pytest.raises(TypeError, match=r"certify: .* play it with record=olx.record.trace"):
        olx.certify(learner, olx.Run(None, None), jnp.zeros(D))
