"""Every implementation is `rollout`, on games so small that only other constants reach it."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

import olx
from olx import losses

X = np.random.default_rng(0).normal(size=(19, 9)) / 3
X[:, 3:] *= np.arange(19)[:, None] % 3 == 0  # short and long rows
DENSE = olx.Rounds(X, np.sign(X[:, 0] + 0.1))
SPARSE = DENSE._replace(context=olx.streams.sparse_rows(csr_array(X)))
START, ETAS = jnp.zeros(9), np.geomspace(0.01, 0.5, 5)


def descent(eta):
    return olx.linear(olx.ogd(eta))


def winnow(eta):
    return olx.classification.winnow(eta)


def matrix(eta):
    return olx.second_order.arow(r=eta)


BLOCKS = {"BLOCK_ROUNDS": 4, "BLOCK_CONFIGURATIONS": 2}
SHARES = {"SHARES_WORK": 0, "SHARE_BLOCKS": 2, "SHARE_DENSE": 1, "SHARE_DENSE_ADDS": 1}
SIZES = {"ROW_BLOCKS": 1, "ROW_GROWTH": 2, "ROW_WORTH": 2}
FOLDS = {"SCALE_LEAST": 0.99, "SCALE_MOST": 1.01, "SHIFT_MOST": 0.01, "SUM_FALL": 1.0}

# The learner, the rounds, the constants, and what `explain=True` says.
SWITCHES = {
    "blocks": (descent, DENSE, BLOCKS, "blocks of rounds"),
    "shares of blocks": (descent, DENSE, BLOCKS | SHARES, "2 shares of 3 "),
    "many shares": (
        winnow,
        DENSE,
        SHARES | {"SHARES": 1, "SHARES_CONFIGURATIONS": 1},
        "3 shares of 2 ",
    ),
    "all cores": (descent, DENSE, {"KERNEL_WIDTH_MOST": 9}, "long enough for all cores"),
    "in turn": (matrix, DENSE, {"MATRIX_ENTRIES": 4}, "one kernel"),
    "small chunks": (descent, DENSE, {"CHUNK_ROUNDS": 4, "SUM_PARTS": 0}, "chunks of 4 rounds"),
    "sparse rows": (winnow, SPARSE, SIZES | FOLDS, "one kernel"),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_is_rollout(name, retune, capsys):
    make, rounds, constants, said = SWITCHES[name]
    retune(**constants)
    learners = olx.batch(make, eta=ETAS)
    seen = olx.sweep(learners, losses.hinge, rounds, START, explain=True)
    assert said in capsys.readouterr().out
    play = lambda learner: olx.rollout(learner, losses.hinge, DENSE, START)
    wanted = jax.vmap(play)(learners.learners)
    of = lambda run: (run.state, run.losses)
    close = lambda a, b: np.testing.assert_allclose(a, b, 1e-9, 1e-12)
    jax.tree.map(close, of(seen), of(wanted))


def test_programs_that_hold_a_constant_are_forgotten(retune):
    traced = itertools.count()  # not a list: a changed list is a new program
    loss = lambda action, outcome: next(traced) * 0.0 + losses.hinge(action, outcome)

    def traces():
        before = next(traced)
        olx.sweep(olx.batch(descent, eta=ETAS), loss, DENSE, START)
        return next(traced) - before - 1

    retune(**BLOCKS)
    first = traces()
    assert first
    assert not traces()
    retune(SHARES=4)
    assert not traces()
    retune(BLOCK_ROUNDS=3)
    assert traces() == first
