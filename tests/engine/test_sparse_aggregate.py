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
    "Winnow": classification.winnow,
    "aggressive entropy": lambda eta: olx.dual_ascent(
        eta, mirrors.negative_entropy(2.0), losses.logistic, olx.ascents.aggressive()
    ),
}


def sparse(dense):
    return streams.sparse_rows(scipy.sparse.csr_array(dense))


def close(seen, wanted, rtol=1e-11):
    parts = lambda run: (run.losses, run.trace, run.state)
    compare = lambda a, b: np.testing.assert_allclose(a, b, rtol, rtol)
    jax.tree.map(compare, parts(seen), parts(wanted))


CASES = [(name, "narrow") for name in LEARNERS]
CASES += [(name, "wide") for name in ("ROMMA", "omd pnorm", "signed EG", "Winnow")]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_sparse_rows_are_dense_rows(name, kind):
    rows = NARROW if kind == "narrow" else WIDE
    learner, options = LEARNERS[name](0.4), {"record": olx.record.actions}
    dense, same = olx.Rounds(rows, LABELS, WEIGHT), olx.Rounds(sparse(rows), LABELS, WEIGHT)
    wanted = olx.rollout(learner, losses.hinge, dense, START, **options)
    close(olx.run(learner, losses.hinge, same, START, **options), wanted)


@pytest.mark.parametrize("name", LEARNERS)
def test_sparse_rows_are_swept(name):
    learners = jax.vmap(LEARNERS[name])(jnp.geomspace(0.01, 0.9, 5))
    options = {"record": olx.record.actions}
    dense, same = olx.Rounds(NARROW, LABELS, WEIGHT), olx.Rounds(sparse(NARROW), LABELS, WEIGHT)
    play = jax.jit(lambda one: olx.rollout(one, losses.hinge, dense, START, **options))
    close(olx.sweep(learners, losses.hinge, same, START, **options), jax.vmap(play)(learners))


@pytest.mark.parametrize("name", ["ROMMA", "p-norm Perceptron", "balanced Winnow", "Winnow"])
def test_a_run_goes_on_from_a_state(name, retune):
    retune(CHUNK_ROUNDS=64)  # one program for pieces of all lengths
    learner = LEARNERS[name](0.4)
    rounds = olx.Rounds(sparse(NARROW), LABELS)
    whole = olx.run(learner, losses.hinge, rounds, START)
    cut = lambda low, high: jax.tree.map(lambda leaf: leaf[low:high], rounds)
    early = olx.run(learner, losses.hinge, cut(0, 50), START)
    last = olx.run(learner, losses.hinge, cut(50, LENGTH), START, state=early.state)
    np.testing.assert_allclose(np.r_[early.losses, last.losses], whole.losses, 1e-11, 1e-11)
    pieces = olx.run(learner, losses.hinge, [cut(0, 50), cut(50, LENGTH)], START)
    jax.tree.map(np.testing.assert_array_equal, pieces.state, whole.state)


HARD = {
    "p-norm Perceptron": lambda: classification.pnorm_perceptron(21.0),
    "ALMA, p": lambda: classification.alma(0.5, 21.0),
    "balanced Winnow": lambda: classification.balanced_winnow(1.0, 2.0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", HARD)
def test_a_sum_whose_largest_term_comes_and_goes_is_right(name, dtype):
    learner = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), HARD[name]())
    start, rtol = jnp.zeros(WIDTH, dtype), 2e-3 if dtype == np.float32 else 1e-10
    for high in (1e-8, 1.0, 1e8):
        draw = np.random.default_rng(3)
        x = narrow_rows()
        x[:, 0] = high * np.where(np.arange(LENGTH) % 2, 1.0, draw.normal(size=LENGTH))
        x, y = x.astype(dtype), draw.choice([-1.0, 1.0], LENGTH).astype(dtype)
        wanted = olx.rollout(learner, losses.hinge, olx.Rounds(x, y), start)
        seen = olx.run(learner, losses.hinge, olx.Rounds(sparse(x), y), start)
        np.testing.assert_allclose(seen.losses, wanted.losses, rtol, rtol, err_msg=f"{high=}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["Winnow", "aggressive entropy"])
def test_weights_whose_sum_is_fixed_come_and_go(name, dtype):
    """In a sweep some tables are shifted in almost every round, others never."""
    rounds, start = 20 * LENGTH, np.asarray(START, dtype)
    learners = jax.vmap(LEARNERS[name])(jnp.asarray([1e-3, 0.3, 2.0]))
    learners = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), learners)
    rtol = 2e-3 if dtype == np.float32 else 1e-11
    play = lambda one, dense: olx.rollout(one, losses.hinge, dense, start).losses
    many = jax.jit(jax.vmap(play, (0, None)))
    for high in (1e-8, 1.0, 30.0, 300.0):  # at 1e8 dense rows are not exact
        draw = np.random.default_rng(3)
        x = np.tile(narrow_rows(), (20, 1))
        x[:, 0] = high * np.where(np.arange(rounds) % 2, 1.0, draw.normal(size=rounds))
        x, y = x.astype(dtype), draw.choice([-1.0, 1.0], rounds).astype(dtype)
        wanted = many(learners, olx.Rounds(x, y))
        seen = olx.sweep(learners, losses.hinge, olx.Rounds(sparse(x), y), start).losses
        np.testing.assert_allclose(seen, wanted, rtol, rtol, err_msg=f"{high=}")


def test_a_aggregate_of_exponentials_has_terms_that_sum_to_one():
    aggregate, theta = mirrors.negative_entropy(2.0).aggregate, jnp.array([3.0, -1.0, 1000.0])
    centred = aggregate.center(theta)
    np.testing.assert_allclose(jnp.sum(aggregate.term(centred, 0.0)), 1.0, 1e-12)
    np.testing.assert_allclose(jnp.diff(centred), jnp.diff(theta), 1e-12)
    assert mirrors.negative_entropy(2.0, jnp.array([0.2, 0.8])).aggregate is None


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
