r"""The account of the mistake bounds of second-order classifiers.

The rounds that count are those with an update: mistakes $M$, and margin errors $U$ if the rule is
aggressive. $H$ is the sum of the hinge losses of $u$ over them. The bounds have the form
$H + \sqrt{\text{price} \cdot \text{growth}}$, where the price is a squared norm of $u$.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback
from olx.losses.margin import mistaken


class Tally(NamedTuple):
    mistakes: Float[Array, ""]  # |M|
    close: Float[Array, ""]  # |U|
    gaps: Float[Array, ""]  # H
    price: Float[Array, ""]
    growth: Float[Array, ""]  # as the proof has it
    published: Float[Array, ""]  # as the source prints it
    unit: Bool[Array, ""]  # whether all weights were 1


class Terms(NamedTuple):
    """What a round adds to the fields of these names if it counts."""

    price: Array
    growth: Array
    published: Array


def open_tally(price: Array) -> Tally:
    zero = jnp.zeros_like(price)
    return Tally(zero, zero, zero, price, zero, zero, jnp.ones((), bool))


def add(tally: Tally, feedback: Feedback, along: Array, counts: Array, terms: Terms) -> Tally:
    """Add a round.

    along: the score of `u`.
    counts: whether the round had an update.
    """
    y = feedback.outcome
    wrong = mistaken(feedback.action, y)
    one, if_counts = jnp.ones_like(along), lambda value: jnp.where(counts, value, 0.0)
    return Tally(
        tally.mistakes + jnp.where(wrong, one, 0.0),
        tally.close + if_counts(jnp.where(wrong, 0.0, one)),
        tally.gaps + if_counts(jnp.maximum(1 - y * along, 0.0)),
        tally.price + if_counts(terms.price),
        tally.growth + if_counts(terms.growth),
        tally.published + if_counts(terms.published),
        tally.unit & (jnp.asarray(feedback.weight) == 1),
    )


def sides(tally: Tally) -> Certificate:
    r"""$|M| + |U| \le H + \sqrt{\text{price} \cdot \text{growth}}$."""
    left = tally.mistakes + tally.close
    most = lambda growth: tally.gaps + jnp.sqrt(tally.price * jnp.maximum(growth, 0.0))
    right = most(tally.growth)
    proof = Certificate(left, right, left + right, most(tally.published))
    return proof.given(UNIT_WEIGHTS, tally.unit)
