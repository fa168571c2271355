"""Functions that are no longer used are forgotten, and the programs that were compiled for them."""

import gc
import weakref

import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import _cache

ROUNDS = olx.Rounds(jnp.eye(2), jnp.ones(2))
START = jnp.zeros(2)
LINE = olx.linear(olx.ogd(0.1))
STATE = LINE.init(START)
PAIR = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=jnp.array([0.1, 0.2]))

PLAYS = {
    "run": lambda loss: olx.run(LINE, loss, ROUNDS, START),
    "sweep": lambda loss: olx.sweep(PAIR, loss, ROUNDS, START),
    "rollout": lambda loss: olx.rollout(LINE, loss, ROUNDS, START),
    "step": lambda loss: olx.step(LINE, loss, STATE, np.ones(2), 1.0),
    "a record": lambda f: olx.run(
        LINE, olx.losses.squared, ROUNDS, START, record=lambda _, feedback: f(1.0, feedback.value)
    ),
    "a potential": lambda f: olx.run(
        olx.linear(olx.omd(0.1, olx.mirror_map(lambda w: f(0.0, 1.0) * jnp.vdot(w, w)))),
        olx.losses.squared,
        ROUNDS,
        START,
    ),
    "a state": lambda f: olx.predict(
        olx.linear(olx.omd(0.1, olx.mirror_map(lambda w: f(0.0, 1.0) * jnp.vdot(w, w)))),
        olx.omd(0.1, olx.mirrors.euclidean()).init(START),
        np.ones((2, 2)),
    ),
    "hindsight": lambda loss: olx.best_in_hindsight(loss, ROUNDS, START, apply=jnp.dot),
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_all_but_the_last_functions_are_forgotten(play, monkeypatch):
    monkeypatch.setattr(_cache, "MOST", 1)
    seen = []
    for scale in (1.0, 2.0, 3.0, 4.0):
        loss = lambda a, y, scale=scale: scale * (a - y) ** 2
        play(loss)
        seen.append(weakref.ref(loss))
        del loss
    gc.collect()
    assert [one() for one in seen[:2]] == [None, None]


def test_a_cache_keeps_what_was_asked_for_last(monkeypatch):
    monkeypatch.setattr(_cache, "MOST", 2)
    calls = []
    double = _cache.cached(lambda x: calls.append(x) or 2 * x)
    assert [double(x) for x in (1, 2, 1, 3, 1, 2)] == [2, 4, 2, 6, 2, 4]
    assert calls == [1, 2, 3, 2]
