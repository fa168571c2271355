"""The conformance kit for losses of a score: its value and its slope."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from olx import _check as check
from olx._cache import compiled
from olx.losses.score import ScoreLoss
from olx.testing.report import close


def check_loss(loss: ScoreLoss, scores: Any, outcomes: Any) -> None:
    """Check that a loss and its slope agree; an AssertionError names what differs.

    `value_and_slope_fn`, if given, must give the values of `value_fn` and their derivative. The
    values must be those of the batch if they are computed one by one.

    scores, outcomes: arrays with one score and one outcome per entry of the first axis; scores that
        avoid the kinks of the loss. Use float64.

    >>> import jax.numpy as jnp, olx
    >>> scores = jnp.linspace(-3.0, 3.0, 7)
    >>> olx.testing.check_loss(olx.losses.logistic, scores, jnp.ones(7))
    """
    check.instance("check_loss", "loss", loss, ScoreLoss)
    check.numbers("check_loss", "scores", scores)
    check.numbers("check_loss", "outcomes", outcomes)
    scores, outcomes = jnp.asarray(scores), jnp.asarray(outcomes)
    if scores.ndim < 1 or scores.shape[:1] != outcomes.shape[:1]:
        raise TypeError(
            f"check_loss: `scores` has shape {scores.shape}, `outcomes` {outcomes.shape}; give one "
            "outcome per score."
        )
    (values, slopes), (wanted, derivatives), whole = _look(loss, scores, outcomes)
    rtol = 1e-12 if scores.dtype == np.float64 else 1e-5
    close("a batch of scores changes the values", whole, wanted, rtol)
    close("`value_and_slope_fn` gives other values than `value_fn`", values, wanted, rtol)
    close("`value_and_slope_fn` gives another slope than `jax.grad`", slopes, derivatives, rtol)


@compiled
def _look(loss: ScoreLoss, scores: jax.Array, outcomes: jax.Array) -> tuple:
    given = jax.vmap(loss.value_and_slope)(scores, outcomes)
    derived = jax.vmap(jax.value_and_grad(loss))(scores, outcomes)
    return given, derived, loss(scores, outcomes)
