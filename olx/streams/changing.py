r"""Regression with a comparator that changes: $y_t = \langle u_t, x_t \rangle + \sigma \epsilon_t$.

Rows and $\epsilon_t$ are standard normal. The truth is the whole path $u_1, \dots, u_T$. Its length
is known exactly; bounds on dynamic regret depend on it.

Zinkevich, Online Convex Programming and Generalized Infinitesimal Gradient Ascent, 2003.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _check as check
from olx.core import Rounds, Scalar
from olx.streams.stream import Stream, directions, segments, whole


def drifting(
    key: Array, rounds: int, features: int, speed: Scalar = 0.01, noise: Scalar = 0.1
) -> Stream:
    r"""A comparator on a random walk: it starts at length 1 and moves by exactly `speed` per round.

    Tests tracking without a bound on the comparator: $\|u_t\|$ grows like the root of $t$.
    """
    check.key("drifting", key)
    check.count("drifting", "rounds", rounds)
    check.count("drifting", "features", features)
    speed = check.non_negative("drifting", "speed", speed)
    noise = check.non_negative("drifting", "noise", noise)
    for_walk, for_rounds = jax.random.split(key)
    steps = directions(for_walk, (rounds, features))
    return _observe(for_rounds, jnp.cumsum(steps.at[1:].multiply(speed), axis=0), noise)


def rotating(
    key: Array, rounds: int, features: int, speed: Scalar = 0.01, noise: Scalar = 0.1
) -> Stream:
    r"""A comparator of length 1 that turns by `speed` radians per round in a random plane.

    Tests tracking inside a ball: no fixed comparator is good over a full turn. Needs at least two
    features.
    """
    check.key("rotating", key)
    check.count("rotating", "rounds", rounds)
    whole("rotating", "features", features, 2, 2**31)
    speed = check.non_negative("rotating", "speed", speed)
    noise = check.non_negative("rotating", "noise", noise)
    for_plane, for_rounds = jax.random.split(key)
    plane, _ = jnp.linalg.qr(jax.random.normal(for_plane, (features, 2)))
    angle = speed * jnp.arange(rounds, dtype=plane.dtype)
    return _observe(for_rounds, jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1) @ plane.T, noise)


def switching(
    key: Array, rounds: int, features: int, switches: int = 4, noise: Scalar = 0.1
) -> Stream:
    r"""A comparator of length 1 that changes `switches` times, after pieces of equal length.

    Tests how fast a learner forgets: sleeping, restarting and interval learners.
    """
    check.key("switching", key)
    check.count("switching", "rounds", rounds)
    check.count("switching", "features", features)
    noise = check.non_negative("switching", "noise", noise)
    for_pieces, for_rounds = jax.random.split(key)
    piece = segments("switching", rounds, switches)
    truth = directions(for_pieces, (switches + 1, features))[piece]
    return _observe(for_rounds, truth, noise)


def _observe(key: Array, truth: Float[Array, "T d"], noise: Scalar) -> Stream:
    for_rows, for_noise = jax.random.split(key)
    context = jax.random.normal(for_rows, truth.shape)
    exact = jnp.sum(context * truth, axis=1)
    outcome = exact + noise * jax.random.normal(for_noise, exact.shape)
    return Stream(Rounds(context, outcome), truth)
