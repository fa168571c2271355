r"""Chains: a label per position, scored by the features there and by pairs of neighbours.

$$\langle w, \phi(x, y)\rangle = s_{y_1} + f_{y_m} + \sum_{i \le m} \langle w_{y_i}, x_i\rangle
  + \sum_{i < m} t_{y_i y_{i+1}}.$$

The weights are those of the features, one row per label; transitions from the row label to the
column label; and the first and the last label. The usual cost is the number of wrong labels
(Hamming). The decoder is that of Viterbi in $O(m k^2)$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.3;
Collins, Discriminative Training Methods for Hidden Markov Models, 2002.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.scipy.special import logsumexp
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PyTree

from olx import _check as check
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.structured.recursion import Parts, forward, viterbi
from olx.structured.sequences import Sequences, chain_needs
from olx.structured.structure import Structure


@pytree
class ChainHparams:
    costs: Any  # [classes, classes], a function, or None for the Hamming cost
    classes: int = static()
    features: int = static()


class ChainWeights(NamedTuple):
    emission: Float[Array, "k d"]  # of an `indexed_chain`: [d, k]
    transition: Float[Array, "k k"]
    start: Float[Array, " k"]
    end: Float[Array, " k"]


@public
def chain(classes: int, features: int, costs: ArrayLike | Callable | None = None) -> Structure:
    r"""Sequences of labels 0..`classes` - 1 with `features` real features per position.

    costs: entry (l, l') of an array of shape (classes, classes) is the cost of the label l' where l
        is true; the cost of a sequence is the sum over its positions. None for 1 per wrong label.
        Or a function `(outcome, output, real)` -> cost, where `real` is 0 at padding; the losses
        that need a cost for each position, such as `max_loss`, then refuse it.

    The contexts are `Sequences`; `padded_rounds` makes rounds of sequences of unequal length.

    >>> import jax.numpy as jnp
    >>> words = chain(classes=2, features=1)
    >>> w = words.zeros()._replace(transition=jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> parts = words.parts(w, Sequences(jnp.zeros((4, 1)), jnp.asarray(3)))
    >>> words.decode(parts).tolist()
    [0, 1, 0, -1]
    """
    hparams, functions = checked(classes, features, costs)
    return Structure(
        hparams, _zeros, _parts, *functions, needs=chain_needs("chain", classes, None, None)
    )


def _zeros(hp: ChainHparams, dtype: Any) -> ChainWeights:
    return zeros(hp, (hp.classes, hp.features), dtype)


@own_name("chain")
def _parts(hp: ChainHparams, w: ChainWeights, context: Sequences) -> Parts:
    wanted = (hp.classes, hp.features)
    check_weights(w, hp, wanted)
    if context.x.ndim != 2 or context.x.shape[1] != hp.features:
        raise RefusedType(
            f"the features of a sequence have shape {context.x.shape}, the chain has "
            f"{hp.features} features; give one row of {hp.features} per position."
        )
    return masked(context.x.astype(w.emission.dtype) @ w.emission.T, w, context)


def masked(emission: Float[Array, "m k"], w: ChainWeights, context: Sequences) -> Parts:
    """The parts of a sequence; emissions at padding are 0."""
    at = jnp.arange(emission.shape[0], dtype=context.length.dtype)
    real = (at < context.length).astype(emission.dtype)
    return Parts(emission * real[:, None], w.transition, w.start, w.end, real)


def score(hp: ChainHparams, parts: Parts, labels: Int[Array, " m"]) -> Array:
    own, real = _indicators(hp, parts, labels), lax.stop_gradient(parts.real)
    last = real - jnp.append(real[1:], jnp.zeros_like(real[:1]))
    return (
        jnp.sum(parts.emission * own)
        + jnp.sum(parts.transition * (own[:-1].T @ own[1:]))
        + jnp.dot(parts.start, own[0])
        + jnp.dot(parts.end, last @ own)
    )


def decode(hp: ChainHparams, parts: Parts) -> Int[Array, " m"]:
    return viterbi(parts)


def log_partition(hp: ChainHparams, parts: Parts) -> Array:
    return forward(logsumexp, parts)[1]


def checked(
    classes: int, features: int, costs: Any
) -> tuple[ChainHparams, tuple[Callable, Callable, Callable, Callable | None, Callable]]:
    """The numbers of a chain, and its functions from `score_fn` to `log_partition_fn`."""
    costs, cost, augment = _checked_costs(classes, features, costs)
    hparams = ChainHparams(costs, classes, features)
    return hparams, (score, decode, cost, augment, log_partition)


def _checked_costs(classes: int, features: int, costs: Any) -> tuple[Any, Any, Any]:
    check.size("classes", classes, classes)
    check.size("features", features, classes)
    if callable(costs):
        check.takes("costs", costs, "outcome", "output", "real")
        _probe(costs, classes)
        return as_tree(costs), _given_cost, None
    if costs is None:
        return None, _cost, _augmented
    if np.shape(costs) != (classes, classes):
        raise RefusedValue(
            f"`costs` has shape {np.shape(costs)}, there are {classes} classes; give a "
            f"table of shape {(classes, classes)}."
        )
    costs = check.non_negative("costs", costs, each=True)
    if not isinstance(costs, Tracer) and np.any(np.diagonal(costs)):
        raise RefusedValue(
            f"`costs` of a right label must be 0, got {np.diagonal(costs).tolist()}."
        )
    return jnp.asarray(costs, float), _cost, _augmented


def zeros(hp: ChainHparams, shape: tuple[int, int], dtype: Any) -> ChainWeights:
    k = hp.classes
    return ChainWeights(*(jnp.zeros(each, dtype) for each in (shape, (k, k), (k,), (k,))))


def check_weights(w: Any, hp: ChainHparams, shape: tuple[int, int]) -> None:
    like = jax.eval_shape(lambda: zeros(hp, shape, float))
    check.same_shape("`params`", w, "the chain", like)


@own_name("chain")
def _indicators(hp: ChainHparams, parts: Parts, labels: Array) -> Float[Array, "m k"]:
    """1 where a position has a label, in rows of 0 at padding."""
    if parts.emission.shape[-1] != hp.classes:
        raise RefusedType(
            f"the scores are of {parts.emission.shape[-1]} labels, this chain has "
            f"{hp.classes}; give the learner and its loss the same chain."
        )
    own = jnp.arange(hp.classes, dtype=labels.dtype)[None, :] == labels[:, None]
    return own.astype(parts.real.dtype) * lax.stop_gradient(parts.real)[:, None]


def _costs(hp: ChainHparams, parts: Parts, outcome: Array) -> Float[Array, "m k"]:
    """The cost of each label at each position."""
    own = _indicators(hp, parts, outcome)
    if hp.costs is None:
        return parts.real[:, None] - own
    return own @ hp.costs.astype(parts.real.dtype)


def _cost(hp: ChainHparams, parts: Parts, outcome: Array, output: Array) -> Array:
    return jnp.sum(_costs(hp, parts, outcome) * _indicators(hp, parts, output))


def _augmented(hp: ChainHparams, parts: Parts, outcome: Array) -> Parts:
    return parts._replace(emission=parts.emission + _costs(hp, parts, outcome))


def _given_cost(hp: ChainHparams, parts: Parts, outcome: Array, output: Array) -> Array:
    return jnp.asarray(hp.costs(outcome, output, parts.real), parts.real.dtype)


def _probe(costs: Callable | Partial, classes: int) -> None:
    """Refuse a cost that is negative, or not 0 for the truth, on some random labels."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(costs)):
        return
    draw, real = np.random.default_rng(0), jnp.ones(4)
    with jax.ensure_compile_time_eval():
        for truth, other in draw.integers(0, classes, (16, 2, 4)).astype(np.int32):
            seen: PyTree = float(costs(jnp.asarray(truth), jnp.asarray(other), real))
            own = float(costs(jnp.asarray(truth), jnp.asarray(truth), real))
            if not seen >= 0 or own != 0:
                raise RefusedValue(
                    f"`costs` must be non-negative, and 0 for the truth, got {seen} for "
                    f"{other.tolist()} and {own} for the truth {truth.tolist()}; subtract the cost "
                    "of the truth."
                )
