"""Factories as a user of the lab writes them, good ones and bad ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

import olx
from olx.losses import ScoreLoss
from olx.streams import Stream

NUMBER = 3.0
HALF = ScoreLoss(value_fn=lambda hparams, score, y: 0.5 * (score - y) ** 2)


def descent(eta: float, mirror: olx.MirrorMap | None = None, times: int = 1, sign: str = "minus"):
    """Mirror descent with `times` the step, up the hill if the sign is "plus"."""
    eta = eta * times * (-1.0 if sign == "plus" else 1.0)
    return olx.omd(abs(eta), mirror or olx.mirrors.euclidean())


def ball(radius: float = 1.0) -> olx.MirrorMap:
    return olx.mirrors.euclidean(olx.convex.sets.ball(radius))


def quartic(score, outcome):
    return (score - outcome) ** 4


def scaled(scale: float) -> ScoreLoss:
    return ScoreLoss(scale, value_fn=_scaled)


def _scaled(scale, score, outcome):
    return scale * (score - outcome) ** 2


def noise(key, rounds: int, features: int, scale: float = 1.0):
    x = jax.random.normal(key, (rounds, features))
    return Stream(olx.Rounds(x, scale * jnp.sum(x, 1)), jnp.full(features, scale))


def nothing():
    return None


def a_map() -> olx.MirrorMap:
    return olx.mirrors.euclidean()


def unknown_type(eta: "Nowhere"):
    return olx.ogd(eta)


def broken(eta: float):
    return {}["eta"]


def looks(eta: float):
    return olx.ogd(eta if eta > 0.5 else 0.5)


def untold(eta, mirror):
    return olx.omd(eta, mirror)


def weighted(rounds: int):
    ones = jnp.ones(rounds)
    return Stream(olx.Rounds(jnp.ones((rounds, 2)), ones, ones), None)


def flat(rounds: int):
    return Stream(olx.Rounds(jnp.ones(rounds), jnp.ones(rounds)), None)


def only_rounds(rounds: int):
    return olx.Rounds(None, jnp.ones((rounds, 2)))


def pair(rows: int = 6, classes: int = 2):
    x = np.arange(3.0 * rows).reshape(rows, 3)
    return x, np.arange(rows) % classes


def frame():
    return pa.table({"a": [1.0, 2.0, 4.0], "b": [0, 1, 0], "label": ["no", "yes", "no"]})


def rounds(rows: int = 4):
    return olx.Rounds(jnp.ones((rows, 2)), jnp.linspace(0.0, 1.0, rows))


def uneven():
    return np.ones((3, 2)), np.ones(2)


def prices():
    return np.ones((3, 2)), None
