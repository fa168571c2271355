"""Ader: equal to a second implementation, and its theorem on hard streams and paths."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx.convex import sets
from olx.meta import ader
from olx.theorems import path_regret

T, D, STREAMS = 100, 2, 200
LEARNER = ader(sets.ball(1.0), diameter=2.0, rounds=T)


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
def proofs(learner, rounds, paths):
    def alone(rounds, path):
        run = olx.rollout(learner, pull, rounds, jnp.zeros(D), record=olx.record.trace)
        return olx.certify(learner, run, path, theorems=(path_regret,))[0]

    return jax.vmap(alone)(rounds, paths)


def uphill(learner):
    """The same learner with a wrong sign."""
    turned = lambda hp, state, told: learner.update_fn(hp, state, told._replace(grad=-told.grad))
    return dataclasses.replace(learner, update_fn=turned)


def test_the_theorem_holds_on_200_paths_and_fails_for_a_wrong_sign():
    proof = proofs(LEARNER, *games())
    assert np.all(np.isfinite(proof.published))
    assert not np.any(proof.fails)
    assert np.max(proof.left / proof.published) > 0.1
    assert np.mean(np.any(proofs(uphill(LEARNER), *games()).fails, axis=-1)) > 0.3


def reference(gradient, rounds, diameter):
    """Zhang, Lu, Zhou 2018, algorithms 3 and 4, in the unit ball."""
    n = int(np.ceil(np.log2(1 + 4 * rounds / 7) / 2)) + 1
    steps = [2**i * diameter * np.sqrt(7 / (2 * rounds)) for i in range(n)]
    weights = np.array([(1 + 1 / n) / (i * (i + 1)) for i in range(1, n + 1)])
    points, played = np.zeros((n, D)), []
    for t in range(rounds):
        x = weights @ points
        g = gradient(x, t)
        played.append(x)
        weights = weights * np.exp(-np.sqrt(2 / rounds) / diameter * (points - x) @ g)
        weights = weights / weights.sum()
        points = np.array([x - eta * g for x, eta in zip(points, steps, strict=True)])
        points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1)
    return np.array(played)


def test_decisions_equal_the_reference():
    turn = np.linspace(0, 4, T)
    targets = 0.9 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    loss = lambda w, y: jnp.sum((w - y) ** 2) / 2
    done = olx.rollout(
        LEARNER, loss, olx.Rounds(None, targets), np.zeros(D), record=olx.record.actions
    )
    wanted = reference(lambda x, t: x - targets[t], T, 2.0)
    np.testing.assert_allclose(done.trace, wanted, atol=1e-12)


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
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
