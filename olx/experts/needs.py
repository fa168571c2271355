"""What expert learners need of their data: a prior, confidences, and losses in their range."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree

from olx import _check as check
from olx.core import Rounds, Scalar
from olx.needs import Need, in_range

_ROUNDING = 16  # tolerance for rounding, in units of the machine epsilon


def expert_needs(owner: str, prior: PyTree, any_range: bool = False) -> tuple[Need, ...]:
    """The needs of an `expert_learner`; `params` is the prior if `prior` is None."""
    ranged = Need(
        "outcome",
        _are_losses,
        "losses of experts who are awake must lie in their range",
        owner,
        "it is [0, 1] unless `low` and `high` are given; rescale the losses or give both",
    )
    free = Need("outcome", _are_finite, "losses of experts who are awake must be finite", owner)
    return (
        *((prior_need(owner),) if prior is None else ()),
        Need("context", _are_confidences, "confidences must lie in [0, 1]", owner),
        free if any_range else ranged,
    )


def prior_need(owner: str) -> Need:
    """The need for `params` to be the weights of a prior."""
    demand = "`params` is the prior: its weights must be non-negative with a positive sum"
    return Need("params", _is_prior, demand, owner, "give jnp.ones(N)")


def light(owner: str, legal: Callable[..., Array | bool], demand: str) -> Need:
    """A need for weights that are not too large; `legal` gets hparams and weights."""
    remedy = "divide all weights by the largest"
    return Need("weight", _Light(legal), demand, owner, remedy)


class _Light(NamedTuple):
    legal_fn: Callable[..., Array | bool]

    def __call__(self, hparams: PyTree, params: PyTree, rounds: Rounds) -> Array | bool:
        return True if rounds.weight is None else self.legal_fn(hparams, rounds.weight)


def _is_prior(hparams: PyTree, params: PyTree, rounds: None) -> Array:
    flat, _ = ravel_pytree(params)
    return jnp.all(flat >= 0) & (jnp.sum(flat) > 0) & jnp.isfinite(jnp.sum(flat))


def clip_to_unit(name: str, values: Array, span: tuple[Scalar, Scalar] | None = None) -> Array:
    """Clip values to [0, 1] within rounding; refuse others, or make them NaN where traced.

    span: the range from which the values were scaled.
    """
    slack = rounding(
        values.dtype, 1.0 if span is None else _range_size(*span) / (span[1] - span[0])
    )
    values = check.between(name, values, 0.0, 1.0, slack, each=True)
    return jnp.where(values < 0, 0.0, jnp.where(values > 1, 1.0, values))  # slope 1 at both ends


def rounding(dtype: DTypeLike, size: Scalar) -> Scalar:
    """The tolerance for the rounding of numbers of a given size."""
    return _ROUNDING * float(jnp.finfo(dtype).eps) * size


def _range_size(low: Scalar, high: Scalar) -> Scalar:
    return abs(low) + abs(high)


def _are_confidences(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    def legal(confidences: Array) -> Array:
        slack = rounding(_precision(confidences), 1.0)
        return in_range(confidences, -slack, 1 + slack)

    return jax.tree.map(legal, rounds.context)


def _are_losses(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    low, high = _range(hparams.span)

    def legal(losses: Array) -> Array:
        slack = rounding(_precision(losses), _range_size(low, high))
        return in_range(losses, low - slack, high + slack)

    return _or_asleep(jax.tree.map(legal, rounds.outcome), rounds)


def _are_finite(hparams: PyTree, params: PyTree, rounds: Rounds) -> PyTree:
    def legal(losses: Array) -> Array:
        most = float(jnp.finfo(_precision(losses)).max)
        return in_range(losses, -most, most)

    return _or_asleep(jax.tree.map(legal, rounds.outcome), rounds)


def _or_asleep(fine: PyTree, rounds: Rounds) -> PyTree:
    """Which losses are `fine`, or those of experts who sleep."""
    if rounds.context is None or all(mask is True for mask in jax.tree.leaves(fine)):
        return fine
    return jax.tree.map(lambda mask, confidence: mask | (confidence == 0), fine, rounds.context)


def _range(span: tuple[Scalar, Scalar] | None) -> tuple[Scalar, Scalar]:
    """The range of losses; for a batch, the smallest range that holds those of all learners."""
    if span is None:
        return 0.0, 1.0
    if any(isinstance(end, Tracer) for end in span):
        return span
    return float(np.min(span[0])), float(np.max(span[1]))


def _precision(leaf: Array) -> DTypeLike:
    kind = jnp.result_type(leaf)
    return kind if jnp.issubdtype(kind, jnp.floating) else jnp.float32
