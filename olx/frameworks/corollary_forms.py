"""The three forms of a regularizer in `olx.frameworks.corollaries`, each with its right side.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent, 2015, corollary 1 (5) to (7).
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from olx._pytree import pytree, static
from olx.frameworks.regret import logarithmic


@pytree
class Form:
    """What a statement demands of the regularizer, and its right side."""

    demand: str = static()
    regularizer_fn: Callable[..., Array] = static()  # (eta, t, b_t(w), F(w)) -> f_t(w)
    right_fn: Callable[..., Array] = static()  # (hparams, account) -> the right side


def _composite(eta, t, b, penalty):
    return b + eta * t * penalty


def _composite_bound(hp: Any, account: Any) -> Array:
    return account.paid / hp.eta + hp.eta * account.energy


def _root(eta, t, b, penalty):
    return jnp.sqrt(t) * b + eta * t * penalty


def _root_bound(hp: Any, account: Any) -> Array:
    each = account.paid / hp.eta + 2 * hp.eta * account.largest
    return jnp.sqrt(account.regret.rounds.past) * each


def _leader(eta, t, b, penalty):
    return jnp.where(eta == 1, t * penalty, jnp.inf)


def _leader_bound(hp: Any, account: Any) -> Array:
    return logarithmic(account.largest, account.regret)


COMPOSITE = Form(
    "the regularizer must be `base` plus eta t times `penalty`", _composite, _composite_bound
)
ROOT = Form(
    "the regularizer must be sqrt(t) times `base` plus eta t times `penalty`", _root, _root_bound
)
LEADER = Form(
    "the regularizer must be t times `penalty`, and the step size 1", _leader, _leader_bound
)
