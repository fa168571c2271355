"""Learners that use a sum over all coordinates play sparse rows as dense ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx import classification, losses, mirrors, streams
from olx.first_order import signed_exponentiated_gradient

WIDTH, LENGTH = 40, 120
DRAW = np.random.default_rng(1)


def narrow_rows(scale=1.0):
    """Rows of 0 to 8 entries: one block of a row of the table."""
    dense = np.zeros((LENGTH, WIDTH))
    for row in range(LENGTH):
        places = DRAW.choice(WIDTH, row % 9, replace=False)
        dense[row, places] = scale * DRAW.normal(size=row % 9)
    return dense


NARROW = narrow_rows()
WIDE = NARROW + np.where(np.arange(LENGTH) % 7, 0.0, 1.0)[:, None] * DRAW.normal(size=WIDTH)
LABELS = np.where(NARROW @ DRAW.normal(size=WIDTH) + 0.3 * DRAW.normal(size=LENGTH) > 0, 1.0, -1.0)
WEIGHT = 0.5 + 0.5 * (np.arange(LENGTH) % 3)
START = jnp.linspace(-0.01, 0.02, WIDTH)

LEARNERS = {
    "ROMMA": classification.romma,
    "ALMA": classification.alma,
    "ALMA, p": lambda eta: classification.alma(eta, 2.5 + 4 * eta),
    "p-norm Perceptron": lambda eta: classification.pnorm_perceptron(3 + 6 * eta),
    "omd pnorm": lambda eta: olx.linear(olx.omd(eta, mirrors.pnorm(1.5))),
    "md pnorm": lambda eta: olx.linear(olx.md(olx.schedules.decay(eta), mirrors.pnorm(1.3))),
    "aggressive pnorm": lambda eta: olx.dual_ascent(
        eta, mirrors.pnorm(1.4), losses.logistic, olx.ascents.aggressive()
    ),
    "balanced Winnow": lambda eta: classification.balanced_winnow(eta, 2.0),
    "signed EG": lambda eta: olx.linear(signed_exponentiated_gradient(eta, 3.0)),
}


def sparse(dense):
    return streams.sparse_rows(scipy.sparse.csr_array(dense))


def close(seen, wanted, rtol=1e-11):
    parts = lambda run: (run.losses, run.trace, run.state)
    compare = lambda a, b: np.testing.assert_allclose(a, b, rtol, rtol)
    jax.tree.map(compare, parts(seen), parts(wanted))


CASES = [(name, "narrow") for name in LEARNERS]
CASES += [(name, "wide") for name in ("ROMMA", "omd pnorm", "signed EG")]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_sparse_rows_are_dense_rows(name, kind):
    rows = NARROW if kind == "narrow" else WIDE
    learner, options = LEARNERS[name](0.4), {"record": olx.record.actions}
    dense, same = olx.Rounds(rows, LABELS, WEIGHT), olx.Rounds(sparse(rows), LABELS, WEIGHT)
    wanted = jax.jit(lambda r: olx.rollout(learner, losses.hinge, r, START, **options))(dense)
    close(olx.run(learner, losses.hinge, same, START, **options), wanted)


@pytest.mark.parametrize("name", LEARNERS)
def test_sparse_rows_are_swept(name):
    learners = jax.vmap(LEARNERS[name])(jnp.geomspace(0.01, 0.9, 5))
    options = {"record": olx.record.actions}
    dense, same = olx.Rounds(NARROW, LABELS, WEIGHT), olx.Rounds(sparse(NARROW), LABELS, WEIGHT)
    play = jax.jit(lambda one: olx.rollout(one, losses.hinge, dense, START, **options))
    close(olx.sweep(learners, losses.hinge, same, START, **options), jax.vmap(play)(learners))


@pytest.mark.parametrize("name", ["ROMMA", "p-norm Perceptron", "balanced Winnow"])
def test_a_run_goes_on_from_a_state(name):
    learner = LEARNERS[name](0.4)
    rounds = olx.Rounds(sparse(NARROW), LABELS)
    whole = olx.run(learner, losses.hinge, rounds, START)
    cut = lambda low, high: jax.tree.map(lambda leaf: leaf[low:high], rounds)
    first = olx.run(learner, losses.hinge, cut(0, 50), START)
    last = olx.run(learner, losses.hinge, cut(50, LENGTH), START, state=first.state)
    np.testing.assert_allclose(np.r_[first.losses, last.losses], whole.losses, 1e-11, 1e-11)
    pieces = olx.run(learner, losses.hinge, [cut(0, 50), cut(50, LENGTH)], START)
    jax.tree.map(np.testing.assert_array_equal, pieces.state, whole.state)


HARD = {
    "p-norm Perceptron": lambda: classification.pnorm_perceptron(21.0),
    "ALMA, p": lambda: classification.alma(0.5, 21.0),
    "balanced Winnow": lambda: classification.balanced_winnow(1.0, 2.0),
}


@pytest.mark.parametrize("high", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", HARD)
def test_a_sum_whose_largest_term_comes_and_goes_is_right(name, dtype, high):
    draw = np.random.default_rng(3)
    x = narrow_rows()
    x[:, 0] = high * np.where(np.arange(LENGTH) % 2, 1.0, draw.normal(size=LENGTH))
    x, y = x.astype(dtype), draw.choice([-1.0, 1.0], LENGTH).astype(dtype)
    learner = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), HARD[name]())
    start = jnp.zeros(WIDTH, dtype)
    wanted = jax.jit(lambda r: olx.rollout(learner, losses.hinge, r, start))(olx.Rounds(x, y))
    seen = olx.run(learner, losses.hinge, olx.Rounds(sparse(x), y), start)
    rtol = 2e-3 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(seen.losses, wanted.losses, rtol, rtol)


def minus_margin(score, label):
    return -score * label


def test_weights_that_are_all_tiny_have_a_norm():
    x = (1e-6 * narrow_rows()).astype(np.float32)
    learner, start = classification.pnorm_perceptron(jnp.float32(21.0)), jnp.zeros(WIDTH, "float32")
    y = LABELS.astype(np.float32)
    play = jax.jit(lambda r: olx.rollout(learner, minus_margin, r, start))
    wanted = play(olx.Rounds(x, y)).losses
    seen = olx.run(learner, minus_margin, olx.Rounds(sparse(x), y), start).losses
    np.testing.assert_allclose(seen, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
