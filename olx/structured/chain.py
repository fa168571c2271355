r"""Chains: a label per position, scored by the features there and by pairs of neighbours.

$$\langle w, \phi(x, y)\rangle = s_{y_1} + f_{y_m} + \sum_{i \le m} \langle w_{y_i}, x_i\rangle
  + \sum_{i < m} t_{y_i y_{i+1}}.$$

The weights are those of the features, one row per label; transitions from the row label to the
column label; and the first and the last label. The usual cost is the number of wrong labels
(Hamming).

The features of an `indexed_chain` are the indices of active features. Each of $n$ templates, such
as the word to the left, names one feature of $d$ per position, and the weights of the features are
a table $W \in R^{d \times k}$ with $p_{i l} = \sum_{j \le n} W_{x_{i j}, l}$. A round reads and
changes only the rows of $W$ that its features name: it costs $O(m n k)$ for any $d$. The squared
norm of an update adds the steps of equal indices first, after sorting them.

One forward recursion decodes and sums. With $\oplus$ = maximum or $\oplus$ = log-sum-exp, and $e_{i
l}$ the score of label $l$ at position $i$,

$$\alpha_1(l) = s_l + e_{1 l}, \qquad \alpha_i(l) = e_{i l} + \bigoplus_j \alpha_{i-1}(j) + t_{j l},
  \qquad Z = \bigoplus_l \alpha_m(l) + f_l.$$

It takes $O(m k^2)$. With the maximum, $Z$ is the highest score, and the labels are found from the
last to the first in $O(m k)$. With log-sum-exp, $Z$ is the log-partition, and its gradient holds
the marginals.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.3.3; Collins,
Discriminative Training Methods for Hidden Markov Models, 2002; Viterbi, Error Bounds for
Convolutional Codes and an Asymptotically Optimum Decoding Algorithm, 1967; Lafferty, McCallum,
Pereira, Conditional Random Fields, 2001.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, Int, PyTree

from olx import _check as check
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.core import Scalar
from olx.structured.sequences import PADDING, Sequences, chain_needs
from olx.structured.structure import Structure

ABSENT = -1  # the index of no feature


@pytree
class ChainHparams:
    costs: PyTree  # [classes, classes], a function, or None for the Hamming cost
    classes: int = static()
    features: int = static()


class ChainWeights(NamedTuple):
    emission: Float[Array, "k d"]  # of an `indexed_chain`: [d, k]
    transition: Float[Array, "k k"]
    start: Float[Array, " k"]
    end: Float[Array, " k"]


class Parts(NamedTuple):
    """The scores of the parts of a chain of up to m positions with k labels."""

    emission: Float[Array, "m k"]  # of a label at a position
    transition: Float[Array, "k k"]  # of a label, by row, and the next label
    start: Float[Array, " k"]  # of the first label
    end: Float[Array, " k"]  # of the last label
    real: Float[Array, " m"]  # 1 at a position of the sequence, 0 at padding


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
    hparams, functions = _checked(classes, features, costs)
    needs = chain_needs("chain", classes, None, None)
    return Structure(hparams, _zeros, _parts, *functions, needs=needs)


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
    hparams, functions = _checked(classes, features, costs)
    needs = chain_needs("indexed_chain", classes, ABSENT, features - 1)
    return Structure(
        hparams, _indexed_zeros, _indexed_parts, *functions, _indexed_add, _indexed_square, needs
    )


def _zeros(hp: ChainHparams, dtype: DTypeLike) -> ChainWeights:
    return _weights(hp, (hp.classes, hp.features), dtype)


def _indexed_zeros(hp: ChainHparams, dtype: DTypeLike) -> ChainWeights:
    return _weights(hp, (hp.features, hp.classes), dtype)


def _weights(hp: ChainHparams, shape: tuple[int, int], dtype: DTypeLike) -> ChainWeights:
    k = hp.classes
    return ChainWeights(*(jnp.zeros(each, dtype) for each in (shape, (k, k), (k,), (k,))))


@own_name("chain")
def _parts(hp: ChainHparams, w: ChainWeights, context: Sequences) -> Parts:
    _check_weights(w, _zeros, hp)
    if context.x.ndim != 2 or context.x.shape[1] != hp.features:
        raise RefusedType(
            f"the features of a sequence have shape {context.x.shape}, the chain has "
            f"{hp.features} features; give one row of {hp.features} per position."
        )
    return _masked(context.x.astype(w.emission.dtype) @ w.emission.T, w, context)


@own_name("indexed_chain")
def _indexed_parts(hp: ChainHparams, w: ChainWeights, context: Sequences) -> Parts:
    _check_weights(w, _indexed_zeros, hp)
    if context.x.ndim != 2 or not jnp.issubdtype(context.x.dtype, jnp.integer):
        raise RefusedType(
            f"the context has {context.x.dtype} of shape {context.x.shape}; give "
            "integers, one row of indices per position. `chain` takes real features."
        )
    rows = w.emission.at[_rows(hp, context)].get(mode="fill", fill_value=0.0)
    return _masked(jnp.sum(rows, axis=1), w, context)


def _check_weights(
    w: PyTree, zeros: Callable[[ChainHparams, DTypeLike], ChainWeights], hp: ChainHparams
) -> None:
    like = jax.eval_shape(lambda: zeros(hp, float))
    check.same_shape("`params`", w, "the chain", like)


def _masked(emission: Float[Array, "m k"], w: ChainWeights, context: Sequences) -> Parts:
    """The parts of a sequence; emissions at padding are 0."""
    at = jnp.arange(emission.shape[0], dtype=context.length.dtype)
    real = (at < context.length).astype(emission.dtype)
    return Parts(emission * real[:, None], w.transition, w.start, w.end, real)


def _indexed_add(
    hp: ChainHparams, w: ChainWeights, factor: Scalar, context: Sequences, slope: Parts
) -> ChainWeights:
    step = lambda leaf: jnp.asarray(factor, leaf.dtype) * leaf
    return ChainWeights(
        w.emission.at[_rows(hp, context)].add(step(slope.emission)[:, None], mode="drop"),
        w.transition + step(slope.transition),
        w.start + step(slope.start),
        w.end + step(slope.end),
    )


def _indexed_square(
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


def _score(hp: ChainHparams, parts: Parts, labels: Int[Array, " m"]) -> Array:
    own, real = _indicators(hp, parts, labels), lax.stop_gradient(parts.real)
    last = real - jnp.append(real[1:], jnp.zeros_like(real[:1]))
    return (
        jnp.sum(parts.emission * own)
        + jnp.sum(parts.transition * (own[:-1].T @ own[1:]))
        + jnp.dot(parts.start, own[0])
        + jnp.dot(parts.end, last @ own)
    )


def _decode(hp: ChainHparams, parts: Parts) -> Int[Array, " m"]:
    return viterbi(parts)


def _log_partition(hp: ChainHparams, parts: Parts) -> Array:
    return _forward(logsumexp, parts)[1]


def _forward(
    plus: Callable[..., Array], parts: Parts
) -> tuple[Float[Array, "m k"], Float[Array, ""]]:
    """All alphas, and Z, with the sum `plus` of a semiring over an axis.

    The alphas of padding are those of the last position before it.
    """
    first = parts.start + parts.emission[0]

    def step(alpha: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        emission, real = here
        new = plus(alpha[:, None] + parts.transition, axis=0) + emission
        alpha = jnp.where(real > 0, new, alpha)
        return alpha, alpha

    last, rest = lax.scan(step, first, (parts.emission[1:], parts.real[1:]))
    return jnp.concatenate([first[None], rest]), plus(last + parts.end, axis=0)


def viterbi(parts: Parts) -> Int[Array, " m"]:
    """The labels of the highest score, -1 at padding; of equal scores the smaller last label."""
    alphas, _ = _forward(jnp.max, parts)
    last = jnp.argmax(alphas[-1] + parts.end).astype(jnp.int32)

    def step(label: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        alpha, real = here
        before = jnp.argmax(alpha + parts.transition[:, label]).astype(jnp.int32)
        label = jnp.where(real > 0, before, label)
        return label, label

    _, rest = lax.scan(step, last, (alphas[:-1], parts.real[1:]), reverse=True)
    return jnp.where(parts.real > 0, jnp.append(rest, last), PADDING)


def _checked(
    classes: int, features: int, costs: ArrayLike | Callable | None
) -> tuple[ChainHparams, tuple[Callable, Callable, Callable, Callable | None, Callable]]:
    """The numbers of a chain, and its functions from `score_fn` to `log_partition_fn`."""
    costs, cost, augment = _checked_costs(classes, features, costs)
    hparams = ChainHparams(costs, classes, features)
    return hparams, (_score, _decode, cost, augment, _log_partition)


def _checked_costs(
    classes: int, features: int, costs: ArrayLike | Callable | None
) -> tuple[PyTree, Callable[..., Array], Callable[..., Parts] | None]:
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
    right = None if isinstance(costs, Tracer) else np.diagonal(np.asarray(costs))
    if right is not None and np.any(right):
        raise RefusedValue(f"`costs` of a right label must be 0, got {right.tolist()}.")
    return jnp.asarray(costs, float), _cost, _augmented


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


def _probe(costs: Callable, classes: int) -> None:
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
