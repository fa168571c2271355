"""Refuse losses that are not convex: the solvers could not verify their best comparator.

Convexity is tested on samples, not proven: along lines, no value may lie above the mean of its two
neighbours.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, PyTree

from olx._cache import compiled
from olx.core import Rounds
from olx.losses.score import above_line

_ROWS = 64  # the number of rows whose losses are tested
_STEPS = np.linspace(-4.0, 4.0, 17)


def check_convex_in_score(loss: Any, rounds: Rounds, dtype: Any) -> None:
    """Refuse a loss of the score that is not convex on some of the rounds tested."""
    some = jax.tree.map(lambda leaf: leaf[:_ROWS], rounds.outcome)
    refuse_above(_above_scores(loss, some, jnp.asarray(_STEPS, dtype)))


def refuse_above(above: Array) -> None:
    """Refuse a loss if it lies above a line between two of its values, by `above` > 0."""
    if not isinstance(above, Tracer) and bool(above > 0):
        raise ValueError(
            "best_in_hindsight: `loss` is not convex: between two points it rises above the line "
            "that joins them. Nothing could be verified; give a convex loss, such as "
            "`olx.losses.hinge` in place of `zero_one`."
        )


@compiled
def _above_scores(loss: Any, outcome: PyTree, steps: Array) -> Array:
    def one(outcome: PyTree) -> Array:
        leaves = [leaf for leaf in jax.tree.leaves(outcome) if jnp.ndim(leaf) == 0]
        lines = jnp.stack([steps] + [steps + jnp.asarray(leaf, steps.dtype) for leaf in leaves])
        return jax.vmap(lambda line: above_line(jax.vmap(lambda s: loss(s, outcome))(line)))(lines)

    return jnp.max(jax.vmap(one)(outcome))


def above_lines(total: Callable, params: Array, project: Callable) -> Array:
    """By how much a total loss lies above lines between points of a domain, beyond rounding."""
    key = jax.random.key(0)
    ends = params + jax.random.normal(key, (2, 8, params.size), params.dtype)
    starts, stops = jax.vmap(jax.vmap(project))(ends)
    shares = jnp.linspace(0.0, 1.0, 9).astype(params.dtype)

    def one(start: Array, stop: Array) -> Array:
        line = start + shares[:, None] * (stop - start)
        return above_line(jax.vmap(total)(line))

    return jnp.max(jax.vmap(one)(starts, stops))
