r"""Classification into $k$ classes by linear scores, labels $0, \dots, k - 1$."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from olx import _check as check
from olx.core import Rounds, Scalar
from olx.streams.stream import Stream, coins, directions


def linear_classes(
    key: Array, rounds: int, features: int, classes: int, margin: Scalar = 0.0, noise: Scalar = 0.0
) -> Stream:
    r"""Normal rows; the label is the class with the largest score $\langle u_r, x \rangle$.

    The scores of other classes are lowered until the label leads by `margin`. Without noise the
    truth, whose rows $u_r$ are orthonormal, separates the labels with that margin.

    classes: at least 2, at most `features`.
    noise: the probability that a label is replaced by one drawn from all classes.

    >>> import olx
    >>> stream = linear_classes(jax.random.key(0), rounds=50, features=4, classes=3, margin=0.5)
    >>> scores = stream.rounds.context @ stream.truth.T
    >>> bool(jnp.all(olx.losses.margin.margin(scores, stream.rounds.outcome) > 0.499))
    True
    """
    check.key("linear_classes", key)
    for name, value in (("rounds", rounds), ("features", features), ("classes", classes)):
        check.count("linear_classes", name, value)
    if not 2 <= classes <= features:
        raise ValueError(
            f"linear_classes: `classes` must be at least 2 and at most `features`, got {classes} "
            f"classes and {features} features."
        )
    margin = check.non_negative("linear_classes", "margin", margin)
    noise = check.between("linear_classes", "noise", noise, 0.0, 1.0)
    for_rows, for_truth, for_labels, for_coins = jax.random.split(key, 4)
    truth = jnp.linalg.qr(directions(for_truth, (classes, features)).T)[0].T
    drawn = jax.random.normal(for_rows, (rounds, features))
    scores = drawn @ truth.T
    best = jnp.argmax(scores, axis=1)
    own = jnp.arange(classes) == best[:, None]
    most = jnp.max(scores, axis=1, keepdims=True) - margin
    context = drawn - jnp.where(own, 0.0, jnp.maximum(scores - most, 0.0)) @ truth
    other = jax.random.randint(for_labels, (rounds,), 0, classes, best.dtype)
    outcome = jnp.where(coins(for_coins, noise, (rounds,)) > 0, other, best)
    return Stream(Rounds(context, outcome), truth)
