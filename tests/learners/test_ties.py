"""Ties: scores that are equal in exact arithmetic are equal in every program.

A rule of mistakes learns from a tie, so a tie that rounding breaks in one program and not in
another makes them different learners.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_classification as reference
from scipy.sparse import csr_array

import olx
from olx import classification, losses, mirrors, multiclass, ranking

LENGTH, WIDTH, ACTIVE, LABELS = 200, 30, 4, 5
OPTIMIZED = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}


def few_features(draw, values):
    """Rows with few active features: many rounds see some for the first time, or only those."""
    rows = np.zeros((LENGTH, WIDTH))
    for row in rows:
        row[draw.choice(WIDTH, ACTIVE, replace=False)] = values(ACTIVE)
    return rows


DRAW = np.random.default_rng(1)
REAL, WORDS = few_features(DRAW, DRAW.normal), few_features(DRAW, np.ones)
SIGNED = few_features(DRAW, lambda size: DRAW.choice([-1.0, 1.0], size))
SIGNS = DRAW.choice([-1.0, 1.0], LENGTH)
CLASSES = DRAW.integers(0, LABELS, LENGTH)
MASKS = np.eye(LABELS)[CLASSES] + np.eye(LABELS)[DRAW.permutation(CLASSES)] > 0


def test_balanced_winnow_is_the_same_learner_in_every_program():
    """Also where the compiler fuses a product and a sum into one operation."""
    learner, loss, start = classification.balanced_winnow(0.3, 2.0), losses.hinge, jnp.zeros(WIDTH)
    play = jax.jit(lambda learner, rounds: olx.rollout(learner, loss, rounds, start).losses)
    fast = play.lower(learner, olx.Rounds(REAL, SIGNS)).compile(OPTIMIZED)
    for name, x in {"real": REAL, "words": WORDS, "signs": SIGNED}.items():
        scores = reference.balanced_winnow(x, SIGNS, 0.3, 2.0)
        assert np.sum(scores == 0) > 2
        rounds = olx.Rounds(x, SIGNS)
        rows = rounds._replace(context=olx.streams.sparse_rows(csr_array(x)))
        ways = {
            "rollout": play(learner, rounds),
            "rollout, optimized": fast(learner, rounds),
            "run": olx.run(learner, loss, rounds, start).losses,
            "sparse rows": olx.run(learner, loss, rows, start).losses,
        }
        wanted = np.maximum(1 - SIGNS * scores, 0.0)
        for way, seen in ways.items():
            np.testing.assert_allclose(seen, wanted, rtol=1e-12, err_msg=f"{name}, {way}")


def test_classes_whose_weights_tie_are_the_same_in_every_program():
    learner, loss = multiclass.exponentiated_gradient(0.5), losses.multiclass_hinge
    start = jnp.zeros((LABELS, WIDTH))
    play = jax.jit(lambda learner, rounds: olx.rollout(learner, loss, rounds, start).losses)
    for x in (WORDS, SIGNED):
        rounds = olx.Rounds(x, CLASSES)
        wanted = play(learner, rounds)
        np.testing.assert_allclose(olx.run(learner, loss, rounds, start).losses, wanted, rtol=1e-12)
        rows = rounds._replace(context=olx.streams.sparse_rows(csr_array(x)))
        np.testing.assert_allclose(olx.run(learner, loss, rows, start).losses, wanted, rtol=1e-12)


def label_ranking(eta):
    return ranking.label_ranking(eta, mirrors.euclidean(), ranking.conservative())


def class_perceptron(eta):
    return olx.dual_ascent(
        eta, mirrors.euclidean(), losses.multiclass_hinge, olx.ascents.conservative()
    )


FREE = {
    "label ranking": (label_ranking, ranking.mistake, MASKS.astype(float)),
    "multiclass": (class_perceptron, losses.multiclass_zero_one, CLASSES),
}


@pytest.mark.parametrize("name", FREE)
def test_a_step_size_that_only_scales_the_weights_changes_no_mistake(name):
    make, loss, outcomes = FREE[name]
    rounds, start = olx.Rounds(WORDS, outcomes), jnp.zeros((LABELS, WIDTH))
    learners = olx.batch(make, eta=np.array([1.0, 0.1, 0.3, 0.7, 1 / 3, 5.0]))
    mistakes = np.asarray(olx.sweep(learners, loss, rounds, start).losses)
    np.testing.assert_array_equal(mistakes, np.broadcast_to(mistakes[0], mistakes.shape))
    rows = rounds._replace(context=olx.streams.sparse_rows(csr_array(WORDS)))
    np.testing.assert_array_equal(olx.run(make(0.3), loss, rows, start).losses, mistakes[0])
