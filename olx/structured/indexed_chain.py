r"""Chains whose features are the indices of active features, a fixed number per position.

$$p_{i l} = \sum_{j \le n} W_{x_{i j}, l}, \qquad W \in R^{d \times k}.$$

Each of $n$ templates, such as the word to the left, names one feature of $d$ per position. A round
reads and changes only the rows of $W$ that its features name: it costs $O(m n k)$ for any $d$. The
squared norm of an update adds the steps of equal indices first, after sorting them.

Collins, Discriminative Training Methods for Hidden Markov Models, 2002.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from olx._refusal import RefusedType, own_name, public
from olx.core import Scalar
from olx.structured.chain import (
    ChainHparams,
    ChainWeights,
    check_weights,
    checked,
    masked,
    zeros,
)
from olx.structured.recursion import Parts
from olx.structured.sequences import Sequences, chain_needs
from olx.structured.structure import Structure

ABSENT = -1


@public
def indexed_chain(
    classes: int, features: int, costs: ArrayLike | Callable | None = None
) -> Structure:
    """Sequences of labels 0..`classes` - 1, with indices of active features per position.

    features: the number of features; an index lies in 0..`features` - 1, or is -1 for none, as for
        a word that was never seen.
    costs: as for `chain`.

    Leave the weights of rounds None: a round with a weight copies the whole table.

    >>> import jax.numpy as jnp
    >>> words = indexed_chain(classes=2, features=5)
    >>> w = words.zeros()._replace(emission=jnp.ones((5, 2)).at[3, 1].set(4.0))
    >>> words.parts(w, Sequences(jnp.array([[0, 3], [2, -1]]), jnp.asarray(2))).emission.tolist()
    [[2.0, 5.0], [1.0, 1.0]]
    """
    hparams, functions = checked(classes, features, costs)
    needs = chain_needs("indexed_chain", classes, ABSENT, features - 1)
    return Structure(hparams, _zeros, _parts, *functions, _add, _square, needs)


def _zeros(hp: ChainHparams, dtype: Any) -> ChainWeights:
    return zeros(hp, (hp.features, hp.classes), dtype)


@own_name("indexed_chain")
def _parts(hp: ChainHparams, w: ChainWeights, context: Sequences) -> Parts:
    check_weights(w, hp, (hp.features, hp.classes))
    if context.x.ndim != 2 or not jnp.issubdtype(context.x.dtype, jnp.integer):
        raise RefusedType(
            f"the context has {context.x.dtype} of shape {context.x.shape}; give "
            "integers, one row of indices per position. `chain` takes real features."
        )
    rows = w.emission.at[_rows(hp, context)].get(mode="fill", fill_value=0.0)
    return masked(jnp.sum(rows, axis=1), w, context)


def _add(
    hp: ChainHparams, w: ChainWeights, factor: Scalar, context: Sequences, slope: Parts
) -> ChainWeights:
    step = lambda leaf: jnp.asarray(factor, leaf.dtype) * leaf
    return ChainWeights(
        w.emission.at[_rows(hp, context)].add(step(slope.emission)[:, None], mode="drop"),
        w.transition + step(slope.transition),
        w.start + step(slope.start),
        w.end + step(slope.end),
    )


def _square(
    hp: ChainHparams, w: ChainWeights, context: Sequences, slope: Parts
) -> Float[Array, ""]:
    index = _rows(hp, context)
    steps = jnp.repeat(slope.emission, index.shape[1], axis=0)
    order = jnp.argsort(index.reshape(-1))
    index = index.reshape(-1)[order]
    new = jnp.append(jnp.zeros_like(index[:1]), (index[1:] != index[:-1]).astype(index.dtype))
    real = (index < hp.features).astype(steps.dtype)[:, None]
    sums = jax.ops.segment_sum(steps[order] * real, jnp.cumsum(new), index.shape[0])
    others = slope.transition, slope.start, slope.end
    return jnp.sum(sums**2) + sum(jnp.sum(leaf**2) for leaf in others)


def _rows(hp: ChainHparams, context: Sequences) -> Array:
    """The rows of the table; absent features and padding are outside, so they are left out."""
    at = jnp.arange(context.x.shape[0], dtype=context.length.dtype)
    real = (context.x >= 0) & (at < context.length)[:, None]
    return jnp.where(real, context.x, jnp.asarray(hp.features, context.x.dtype))
