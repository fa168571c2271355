"""Ader and Sword: equal to second implementations, and their theorems on hard streams and paths."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_reductions as ref

import olx
from olx.convex import sets
from olx.meta import ader, sword
from olx.theorems import path_regret, path_variation_regret

T, D, STREAMS = 100, 2, 200
LEARNERS = {
    "ader": (ader(sets.ball(1.0), 2.0, T), path_regret),
    "sword": (sword(sets.ball(1.0), 2.0, T, smooth=0.05), path_variation_regret),
    "sword, straight": (sword(sets.ball(1.0), 2.0, T, smooth=1e-3), path_variation_regret),
}


def pull(w, z):
    """A linear loss and the distance to a point: this has the sign that hurts."""
    return jnp.sum(z[0] * w) + z[2, 0] * jnp.linalg.norm(w - z[1] + 1e-9)


def games():
    """Outcomes of `pull` and paths of comparators: still, turning, jumping, and of random steps."""
    rng, t = np.random.default_rng(0), np.arange(T)
    rounds, paths = [], []
    for i in range(STREAMS):
        angle = [0 * t, t * 0.05, np.pi * (t // 25), np.cumsum(rng.normal(size=T) * 0.3)][i % 4]
        path = np.stack([np.cos(angle + i), np.sin(angle + i)], axis=1) * rng.random()
        noise = rng.normal(size=(T, D)) * rng.choice([0, 0.3])
        against = -path * rng.choice([0, 1])  # a linear loss that the path is good at
        size = 10.0 ** rng.uniform(-2, 1)
        rounds.append(np.stack([size * (noise + against), path, np.full((T, D), size)], axis=1))
        paths.append(path)
    return olx.Rounds(None, np.stack(rounds)), np.stack(paths)


@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def proofs(learner, theorem, rounds, paths):
    def alone(rounds, path):
        run = olx.rollout(learner, pull, rounds, jnp.zeros(D), record=olx.record.trace)
        return olx.certify(learner, run, path, theorems=(theorem,))[0]

    return jax.vmap(alone)(rounds, paths)


def uphill(learner):
    """The same learner with a wrong sign."""
    turned = lambda hp, state, told: learner.update_fn(hp, state, told._replace(grad=-told.grad))
    return dataclasses.replace(learner, update_fn=turned)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_theorem_holds_on_200_paths_and_fails_for_a_wrong_sign(name):
    learner, theorem = LEARNERS[name]
    proof = proofs(learner, theorem, *games())
    assert np.all(np.isfinite(proof.published))
    assert not np.any(proof.fails)
    assert np.max(proof.left / proof.published) > 0.1
    assert np.mean(np.any(proofs(uphill(learner), theorem, *games()).fails, axis=-1)) > 0.3


REFERENCES = {"ader": ref.ader, "sword": lambda *game: ref.sword(*game, smooth=0.05)}


@pytest.mark.parametrize("name", REFERENCES)
def test_decisions_equal_the_reference(name):
    turn = np.linspace(0, 4, T)
    targets = 0.9 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    loss = lambda w, y: jnp.sum((w - y) ** 2) / 2
    done = olx.rollout(
        LEARNERS[name][0],
        loss,
        olx.Rounds(None, targets),
        np.zeros(D),
        record=olx.record.actions,
    )
    wanted = REFERENCES[name](lambda x, t: x - targets[t], T, 2.0)
    np.testing.assert_allclose(done.trace, wanted, atol=1e-12)


def test_the_bound_of_sword_is_smaller_where_gradients_change_slowly():
    length = 10_000
    turn = np.linspace(0, 1, length)
    targets = 0.9 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    game = lambda w, y: jnp.sum((w - y) ** 2) / 2, olx.Rounds(None, targets), np.zeros(D), targets
    make = {path_regret: ader, path_variation_regret: lambda *one: sword(*one, smooth=1.0)}
    old, new = (
        olx.certify(of(sets.ball(1.0), 2.0, length), *game, theorems=theorem)[0].published[-1]
        for theorem, of in make.items()
    )
    assert new < 0.6 * old


def test_rounds_of_weight_0_keep_their_points():
    """A round of weight 0 has a point of the path too, and counts in the numbers of rounds."""
    learner, _ = LEARNERS["sword"]
    path = np.stack([np.cos(np.arange(9.0)), np.sin(np.arange(9.0))], axis=1)
    weight = np.array([0.0, 1, 1, 0, 0, 1, 1, 0, 1])
    rounds = olx.Rounds(None, np.ones((9, D)), weight)
    game, theorems = (olx.losses.linear_loss, rounds, np.zeros(D)), (path_variation_regret,)
    run = olx.run(learner, *game, record=olx.record.trace)
    recorded = olx.certify(learner, run, path, theorems=theorems)[0]
    played = olx.certify(learner, *game, path, theorems=theorems)[0]
    np.testing.assert_allclose(played.left, recorded.left, atol=1e-12)
    np.testing.assert_allclose(played.published, recorded.published, atol=1e-12)
    assert played.summary.slackest == recorded.summary.slackest
    actions = np.asarray(run.trace.feedback.action)
    wanted = np.cumsum(weight * np.sum(actions - path, axis=1))
    np.testing.assert_allclose(played.left, wanted, atol=1e-12)


def test_a_diameter_that_is_too_small_is_named():
    learner = ader(sets.ball(1.0), diameter=0.5, rounds=20)
    path, rounds = np.tile([1.0, 0.0], (20, 1)), olx.Rounds(None, np.ones((20, D)))
    game = olx.losses.linear_loss, rounds, np.zeros(D), path
    said = str(olx.certify(learner, *game, theorems=(path_regret,)))
    assert "It says nothing from round 1 on: points of `domain` must be at most" in said


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ader(1.0, 2.0, 10), "ader: `domain` must be a ConvexSet"),
        (lambda: ader(sets.ball(1.0), 2.0, 0), "ader: `rounds` must be an integer"),
        (lambda: sword(None, 2.0, 10, 1.0), "sword: `domain` must be a ConvexSet"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
