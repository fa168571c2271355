"""Regularizers against closed forms in NumPy, and the conformance kit on each of them."""

import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import convex, mirrors, regularizers

T, D = 9, 4
RNG = np.random.default_rng(5)
ROWS, LABELS = RNG.normal(size=(T, D)), np.sign(RNG.normal(size=T))
ROUNDS = olx.Rounds(ROWS, LABELS)
W = RNG.normal(size=D)
L1 = 0.3
EPS = np.finfo(float).eps

TABLE = {
    "adagrad": regularizers.adagrad(convex.l1(L1), 0.5, rate=0.7),
    "composite": regularizers.composite(convex.l1(L1), rate=0.7, power=0.25),
    "constant": regularizers.constant(mirrors.pnorm(1.5)),
    "full_adagrad": regularizers.full_adagrad(0.5),
    "growing": regularizers.growing(mirrors.euclidean(), 0.25),
    "largest_context": regularizers.largest_context(mirrors.euclidean()),
    "scale_invariant_adagrad": regularizers.scale_invariant_adagrad(2.0),
    "scale_invariant_pnorm": regularizers.scale_invariant_pnorm(2.0),
}


def test_the_table_holds_every_regularizer():
    names = [name for name, thing in vars(regularizers).items() if callable(thing)]
    assert sorted(TABLE) == sorted(names)


@pytest.mark.parametrize("name", TABLE)
def test_it_passes_the_kit(name):
    olx.testing.check_regularizer(TABLE[name], olx.losses.logistic, ROUNDS, jnp.zeros(D))


def reference(name, gradients, rows):
    """The potential at `W` after `gradients`; `rows` end with the row of the next round."""
    t, square, size = len(rows), np.sum(W**2), np.max(np.abs(rows), axis=0)
    if name == "adagrad":
        curvature = np.sqrt(0.5 + np.sum(gradients**2, axis=0))
        return np.sum(curvature * W**2) / 2 + 0.7 * t * L1 * np.sum(np.abs(W))
    if name == "composite":
        return t**0.25 * square / 2 + 0.7 * t * L1 * np.sum(np.abs(W))
    if name == "constant":
        return np.sum(np.abs(W) ** 1.5) ** (2 / 1.5) / 2 / 0.5
    if name == "full_adagrad":
        _, values, vectors = np.linalg.svd(gradients, full_matrices=False)  # loses no digits
        root = vectors.T * values @ vectors
        return W @ (0.5 * np.eye(D) + root) @ W / 2
    if name == "growing":
        return t**0.25 * square / 2
    if name == "largest_context":
        return np.max(np.sum(rows**2, axis=1)) * square / 2
    so_far = np.maximum.accumulate(np.abs(rows), axis=0)[: len(gradients)]
    scaled = np.abs(gradients) / so_far
    if name == "scale_invariant_adagrad":
        level = np.sqrt(4.0 + np.sum(scaled**2, axis=0))
        return np.sqrt(D) / 2 * np.sum(level * (W * size) ** 2)
    p = max(2.0, 2 * np.log(D))
    q, norms = p / (p - 1), np.sum(scaled**p, axis=1) ** (2 / p)
    beta = np.sqrt(np.e * 4.0 * (p - 1) + (p - 1) * np.sum(norms))
    return beta / 2 * np.sum((np.abs(W) * size) ** q) ** (2 / q)


@pytest.mark.parametrize("name", TABLE)
def test_its_potential_is_the_closed_form(name):
    learner = olx.linear(olx.ftrl(0.1, TABLE[name]))
    run = olx.rollout(learner, olx.losses.logistic, ROUNDS, jnp.zeros(D), record=olx.record.trace)
    slopes = run.trace.feedback.grad
    for t in (0, 3, T - 1):
        stats = (
            olx.rollout(
                learner, olx.losses.logistic, olx.Rounds(ROWS[:t], LABELS[:t]), jnp.zeros(D)
            ).state.stats
            if t
            else TABLE[name].init(jnp.zeros(D))
        )
        gradients = np.asarray(slopes[:t])[:, None] * ROWS[:t]
        wanted = reference(name, gradients, ROWS[: t + 1])
        seen = TABLE[name].at(stats, jnp.asarray(ROWS[t])).potential(jnp.asarray(W))
        # A sum of squares without full rank has an eigenvalue of 0 up to rounding, of which the
        # root is taken.
        lost = name == "full_adagrad" and 0 < t < D
        np.testing.assert_allclose(seen, wanted, rtol=D * EPS**0.5 if lost else 1e-10)
