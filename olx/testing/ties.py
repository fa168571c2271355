"""Streams with ties and unseen features, on which all ways to play a learner must agree.

A learner that learns from mistakes decides by the sign of a score or by the best of several scores.
If these are equal in exact arithmetic, a program that rounds one of them differently makes other
mistakes from there on. Ties come from features that were never seen, from equal rows and from rows
of zeros; random rows have none.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds
from olx.streams.checks import judge, needs_of

_WIDE = 20  # features; more than fill the lanes of a sparse row


def tied_rounds(learner: Learner, loss: Loss, rounds: Rounds, params: PyTree) -> Rounds:
    """The rounds, changed so that scores tie; shapes and dtypes stay, so programs are used again.

    - Rows of features: few are active, most appear for the first time late, every sixth row is 0.
      In the middle, two rows hold one feature each that was never seen.
    - Vectors of losses without a context: every third one holds equal losses.
    - Some rounds repeat the row of the round before, some repeat that whole round.

    What the learner or the loss refuses stays as it is.
    """
    rounds, needs = jax.tree.map(np.asarray, rounds), needs_of(learner, loss)
    shape = np.shape(params) if hasattr(params, "shape") else ()
    for change in (_equal_rounds, _equal_rows, _equal_losses, _few_features):
        other = change(rounds, shape)
        try:
            judge(needs, params, other)
        except (TypeError, ValueError):
            continue
        rounds = other
    return rounds


def with_more_features(
    learner: Learner, rounds: Rounds, params: jax.Array
) -> tuple[Rounds, jax.Array]:
    """The rows among more features, which appear one block after the other, and a longer start."""
    length, width = rounds.context.shape
    blocks = -(-_WIDE // width)
    rows = np.zeros((length, blocks, width), rounds.context.dtype)
    at = np.arange(length)
    rows[at, np.where(at % 3 == 2, 0, at * blocks // length)] = rounds.context
    wide = rounds._replace(context=rows.reshape(length, -1))
    start = np.concatenate([params, *[np.zeros_like(params)] * (blocks - 1)], axis=-1)
    legal = all(
        bool(need.legal_fn(learner.hparams, start, None))
        for need in learner.needs
        if need.where == "params"
    )
    even = np.concatenate([params] * blocks, axis=-1) / blocks  # inside a simplex, without zeros
    return wide, jnp.asarray(start if legal else even)


def _few_features(rounds: Rounds, shape: tuple[int, ...]) -> Rounds:
    rows = rounds.context
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind != "f":
        return rounds
    length, width = rows.shape
    if (width,) != shape[-1:] or width < 3:
        return rounds
    t, feature, middle = np.arange(length)[:, None], np.arange(width), length // 2
    active = ((t + feature) % max(3, width // 4) == 0) & (t % 6 != 5)
    active &= t >= feature * length // (2 * width)
    for at, late in ((middle, width - 2), (middle + 1, width - 1)):
        active[:at, late] = False
        active[at] = feature == late
    return rounds._replace(context=np.where(active, rows, 0.0).astype(rows.dtype))


def _equal_losses(rounds: Rounds, shape: tuple[int, ...]) -> Rounds:
    each = rounds.outcome
    if rounds.context is not None or not isinstance(each, np.ndarray) or each.ndim != 2:
        return rounds
    equal = np.arange(len(each))[:, None] % 3 == 1
    return rounds._replace(outcome=np.where(equal, each[:, :1], each))


def _equal_rows(rounds: Rounds, shape: tuple[int, ...]) -> Rounds:
    return rounds._replace(context=_repeated(rounds.context, 3))


def _equal_rounds(rounds: Rounds, shape: tuple[int, ...]) -> Rounds:
    return _repeated(rounds, 1)


def _repeated(tree: PyTree, phase: int) -> PyTree:
    """Every fourth row replaced by the row before it."""

    def repeat(rows: np.ndarray) -> np.ndarray:
        at = np.arange(len(rows))
        return rows[np.where(at % 4 == phase, at - 1, at)]

    return jax.tree.map(repeat, tree)
