"""Sizes that do not fit into the memory of the machine are refused before they are computed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import _memory, alignment, boosting, classification, experts, meta, multiclass, structured
from olx.second_order import frequent_directions, oja, random_projection

HUGE = 10**9
KEY = jax.random.key(0)
START, PRIOR = jnp.zeros(3), jnp.full(3, 1 / 3)
LINE, POINT, WEAK = olx.linear(olx.ogd(0.1)), olx.ogd(0.1), classification.perceptron()
ROUNDS = olx.Rounds(np.ones((2, 3)), np.ones(2))
BOOSTED = boosting.boost(WEAK, 10**6, boosting.adaboost_ol())

SIZES = {
    "copies": lambda n: boosting.boost(WEAK, n, boosting.online_bbm(0.1)).init(START),
    "stages": lambda n: boosting.gradient_boost(LINE, n, 0.1, olx.losses.squared).init(START),
    "hull": lambda n: boosting.gradient_boost_hull(LINE, n, olx.losses.squared).init(START),
    "hidden": lambda n: boosting.sigmoid_network(POINT, n, key=KEY).init(START),
    "weights": lambda n: boosting.first_weights(3, 10 * n, KEY),
    "window": lambda n: experts.ada_normal_hedge_tv(n).init(PRIOR),
    "blocks": lambda n: meta.restarts(POINT, 4, n, KEY).init(START),
    "classes": lambda n: multiclass.one_vs_rest(WEAK, n),
    "pairs": lambda n: multiclass.one_vs_one(WEAK, n),
    "states": lambda n: structured.chain(n, 3),
    "words": lambda n: structured.indexed_chain(3, 10 * n),
    "features": lambda n: alignment.align(10 * n, 1, 1),
    "oja": lambda n: oja(10 * n, key=KEY),
    "directions": lambda n: frequent_directions(10 * n),
    "projection": lambda n: random_projection(10 * n, KEY),
}


@pytest.mark.parametrize("make", SIZES.values(), ids=SIZES)
def test_a_size_is_refused_with_its_bytes(make, monkeypatch):
    monkeypatch.setattr(_memory, "memory", lambda: 10**10)
    with pytest.raises(ValueError, match=r"^\w+: .* takes? .*GB.*this machine has"):
        make(HUGE)


DRIVERS = {
    "run": lambda: olx.run(BOOSTED, olx.losses.hinge, ROUNDS, START),
    "rollout": lambda: olx.rollout(BOOSTED, olx.losses.hinge, ROUNDS, START),
    "certify": lambda: olx.certify(BOOSTED, olx.losses.hinge, ROUNDS, START, START),
    "many configurations": lambda: olx.sweep(
        olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.full(1024, 0.1)),
        olx.losses.hinge,
        ROUNDS,
        START,
    ),
}


@pytest.mark.parametrize("play", DRIVERS.values(), ids=DRIVERS)
def test_a_driver_refuses_a_state_before_it_is_compiled(play, monkeypatch):
    monkeypatch.setattr(_memory, "memory", lambda: 20_000)
    with pytest.raises(ValueError, match=r"^\w+: the state takes .* GB, most of it `state.*shape"):
        play()


def test_an_array_of_a_round_is_refused(monkeypatch):
    loss = lambda action, outcome: jnp.sum(jnp.sin(action * jnp.arange(8000.0))) * outcome
    monkeypatch.setattr(_memory, "memory", lambda: 30_000)
    for play in (olx.run, olx.rollout):
        with pytest.raises(ValueError, match=r"an array of shape \(8000,\), which takes .* GB"):
            play(LINE, loss, ROUNDS, START)
