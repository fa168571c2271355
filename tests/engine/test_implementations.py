"""Every implementation that can play a game plays it as `rollout` does; the others say why not."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

import olx
from olx import losses, mirrors, regularizers
from olx.engine.arguments import check_batch, check_game
from olx.engine.game import game_of
from olx.engine.implementations import IMPLEMENTATIONS, choose, why_not
from olx.engine.numbers import numbers_of
from olx.engine.round import Recorder

WIDTH = 34  # a matrix of this width has more entries than `tuning.MATRIX_ENTRIES`
X = np.random.default_rng(0).normal(size=(40, WIDTH))
X *= abs(X) > 0.8
DENSE = olx.Rounds(X / 6, np.sign(X[:, 0] + 0.1))
SPARSE = DENSE._replace(context=olx.streams.sparse_rows(csr_array(DENSE.context)))
START = jnp.full(WIDTH, 1 / WIDTH)
ETAS = jnp.array([0.1, 0.3, 0.5])
OJA = olx.second_order.oja(2, key=jax.random.key(0))
LEARNERS = {
    "adds a multiple": lambda eta: olx.linear(olx.ogd(eta)),
    "separable": lambda eta: olx.linear(olx.ftrl(eta, regularizers.adagrad(rate=eta))),
    "one sum": lambda eta: olx.linear(olx.omd(eta, mirrors.pnorm(1.5))),
    "refreshes": lambda eta: olx.second_order.sketched_newton(OJA, 1 + eta, 5.0, lipschitz=1.0),
    "keeps a matrix": lambda eta: olx.second_order.arow(1 + eta),
    "affine": lambda eta: olx.affine(olx.ogd(eta)),
}


def start_of(name):
    return jnp.append(START, 0.1) if name == "affine" else START


def games(name, rounds):
    """The game of a learner and of a batch of such, and how to play each."""
    make, start = LEARNERS[name], start_of(name)
    batch, one = olx.batch(make, eta=ETAS), make(0.3)
    alone = numbers_of(one, losses.hinge, check_game)
    many = numbers_of(batch.learners, losses.hinge, check_batch, stacked=True)
    given = losses.hinge, rounds, start
    yield game_of("run", alone, rounds, start, Recorder()), partial(olx.run, one, *given)
    yield game_of("sweep", many, rounds, start, Recorder()), partial(olx.sweep, batch, *given)


def test_all_that_can_play_a_game_give_the_losses_of_rollout():
    played = dict.fromkeys([one.name for one in IMPLEMENTATIONS], 0)
    for name, rounds in itertools.product(LEARNERS, (DENSE, SPARSE)):
        if name == "keeps a matrix" and rounds is SPARSE:
            continue  # it needs dense rows
        play = partial(olx.rollout, loss=losses.hinge, rounds=DENSE, params=start_of(name))
        wanted = jax.vmap(lambda learner, play=play: play(learner).losses)(
            olx.batch(LEARNERS[name], eta=ETAS).learners
        )
        for game, drive in games(name, rounds):
            for one in IMPLEMENTATIONS:
                if why_not(one, game):
                    continue
                seen = drive(implementation=one.name).losses
                right = wanted if game.batched else wanted[1]
                np.testing.assert_allclose(seen, right, 1e-8, 1e-10, err_msg=f"{name}: {one.name}")
                played[one.name] += 1
    assert min(played.values()) > 0, played  # the table has no entry that nothing reaches


def test_one_that_is_asked_for_is_refused_only_if_it_cannot_play():
    learner = olx.linear(olx.ogd(0.1))
    with pytest.raises(
        ValueError, match=r"^run: the implementation 'blocks' cannot play this game"
    ):
        olx.run(learner, losses.hinge, DENSE, START, implementation="blocks")
    with pytest.raises(ValueError, match=r"no implementation 'dens'; did you mean 'dense'\?"):
        olx.run(learner, losses.hinge, DENSE, START, implementation="dens")
    batch = olx.batch(LEARNERS["adds a multiple"], eta=jnp.array([0.1, 0.2]))
    seen = olx.sweep(batch, losses.hinge, DENSE, START, implementation="blocks")
    wanted = olx.sweep(batch, losses.hinge, DENSE, START)  # two are too few for blocks
    np.testing.assert_allclose(seen.losses, wanted.losses, 1e-12)


def test_a_checkpoint_goes_on_with_the_implementation_it_began_with(tmp_path):
    batch = olx.batch(LEARNERS["adds a multiple"], eta=jnp.array([0.1, 0.2]))
    numbers = numbers_of(batch.learners, losses.hinge, check_batch, stacked=True)
    game = game_of("sweep", numbers, DENSE, START, Recorder())
    assert choose(game).name == "dense"
    assert choose(game, saved="blocks").name == "blocks"
    assert choose(game, saved="sparse_rows").name == "dense"  # its description is then refused
    saved = olx.checkpoint(tmp_path / "saved")
    olx.sweep(batch, losses.hinge, DENSE, START, checkpoint=saved, implementation="blocks")
    assert saved.implementation() == "blocks"
    again = olx.sweep(batch, losses.hinge, DENSE, START, checkpoint=saved)
    assert again.losses.shape == (2, 40)
