"""The demands of expert learners on data: a prior, confidences, and losses in a known range."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from olx import _check as check
from olx.core import Rounds, Scalar
from olx.needs import Need, in_range

_ROUNDING = 16  # tolerance for rounding, in units of the machine epsilon


def expert_needs(owner: str, prior: PyTree) -> tuple[Need, ...]:
    """The needs of an `expert_learner`; `params` is the prior if `prior` is None."""
    return (
        *((prior_need(owner),) if prior is None else ()),
        Need("context", _are_confidences, "confidences must lie in [0, 1]", owner),
        Need(
            "outcome",
            _are_losses,
            "losses of experts who are awake must lie in their range",
            owner,
            "it is [0, 1] unless `low` and `high` are given; rescale the losses or give both",
        ),
    )


def prior_need(owner: str) -> Need:
    """The need for `params` to be the weights of a prior."""
    demand = "`params` is the prior: its weights must be non-negative with a positive sum"
    return Need("params", is_prior, demand, owner, "give jnp.ones(N)")


def light(owner: str, legal: Callable[..., Any], demand: str) -> Need:
    """A need for weights that are not too large; `legal` gets hparams and weights."""
    remedy = "divide all weights by the largest"
    return Need("weight", _Light(legal), demand, owner, remedy)


class _Light(NamedTuple):
    legal_fn: Callable[..., Any]

    def __call__(self, hparams: Any, params: PyTree, rounds: Rounds) -> Array | bool:
        return True if rounds.weight is None else self.legal_fn(hparams, rounds.weight)


def is_prior(hparams: Any, params: PyTree, rounds: None) -> Array:
    flat, _ = ravel_pytree(params)
    return jnp.all(flat >= 0) & (jnp.sum(flat) > 0) & jnp.isfinite(jnp.sum(flat))


def unit(name: str, values: Array, span: tuple[Scalar, Scalar] | None = None) -> Array:
    """Clip values to [0, 1] within rounding; refuse others, or make them NaN where traced.

    span: the range from which the values were scaled.
    """
    slack = _slack(values.dtype, 1.0 if span is None else _size(*span) / (span[1] - span[0]))
    values = check.between(name, values, 0.0, 1.0, slack, each=True)
    return jnp.where(values < 0, 0.0, jnp.where(values > 1, 1.0, values))  # slope 1 at both ends


def _slack(dtype: Any, size: Scalar) -> Scalar:
    return _ROUNDING * float(jnp.finfo(dtype).eps) * size


def _size(low: Scalar, high: Scalar) -> Scalar:
    return abs(low) + abs(high)


def _are_confidences(hparams: Any, params: PyTree, rounds: Rounds) -> PyTree:
    def legal(confidences: Any) -> Any:
        slack = _slack(_precision(confidences), 1.0)
        return in_range(confidences, -slack, 1 + slack)

    return jax.tree.map(legal, rounds.context)


def _are_losses(hparams: Any, params: PyTree, rounds: Rounds) -> PyTree:
    low, high = _range(hparams.span)

    def legal(losses: Any) -> Any:
        slack = _slack(_precision(losses), _size(low, high))
        return in_range(losses, low - slack, high + slack)

    fine = jax.tree.map(legal, rounds.outcome)
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


def _precision(leaf: Any) -> Any:
    kind = jnp.result_type(leaf)
    return kind if jnp.issubdtype(kind, jnp.floating) else jnp.float32
