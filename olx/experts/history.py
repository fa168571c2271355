r"""What a run of experts amounts to: regrets after every round, and certificates made of them.

For a comparator $u$ in the simplex the left side of every theorem is

$$R_t(u) = \sum_{s \le t} \sum_i u_i I_{s,i} (\hat\ell_s - \ell_{s,i}),$$

which is ordinary regret to the mixture $u$ where everyone is awake. Rounds may have weights up to
1, which act as confidences; the right side is infinite once one was larger.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx.certificate import Certificate
from olx.convex import _domain
from olx.core import Trace
from olx.experts.base import ExpertHparams, seen


class History(NamedTuple):
    """A run in units of the range of losses."""

    prior: Float[Array, " N"]
    regret: Float[Array, "T N"]  # of each round
    loss: Float[Array, "T N"]
    log_share: Float[Array, "T N"]
    beyond: Float[Array, " T"]  # 0 as long as no round weighed more than 1, then infinite
    unit: Array  # the width of the range

    @property
    def total(self) -> Float[Array, "T N"]:
        """Regret to every expert after every round."""
        return jnp.cumsum(self.regret, axis=0)

    @property
    def rounds(self) -> Float[Array, " T"]:
        """The number of each round, from 1."""
        return jnp.arange(1, self.regret.shape[0] + 1, dtype=self.regret.dtype)


def history(hp: ExpertHparams, trace: Trace) -> History:
    """Regrets and losses of a run, recomputed from its trace."""
    rows = jax.vmap(lambda state, feedback: seen(hp, state, feedback))(*trace)
    prior, _ = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], trace.state.prior))
    heavy = jnp.cumsum(trace.feedback.weight > 1, dtype=prior.dtype)
    beyond = jnp.where(jnp.broadcast_to(heavy, rows.regret.shape[:1]) > 0, jnp.inf, 0.0)
    unit = 1.0 if hp.span is None else hp.span[1] - hp.span[0]
    unit = jnp.asarray(unit, prior.dtype)
    return History(prior, rows.regret, rows.loss, rows.log_share, beyond.astype(prior.dtype), unit)


def certificate(
    past: History, u: PyTree, right: Array, theorem: str, printed: Array | None = None
) -> Certificate:
    """Regret to the mixture `u` against `right`, back in the units of the losses."""
    flat, _ = ravel_pytree(u)
    inside = _domain.simplex(0.0, 1.0, flat)
    more = jnp.where(inside, past.beyond, jnp.inf)
    left = jnp.cumsum(past.regret @ flat)
    size = past.rounds + jnp.abs(left) + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    return Certificate(
        past.unit * left,
        past.unit * (right + more),
        past.unit * size,
        None if printed is None else past.unit * (printed + more),
        theorem=theorem,
    )


def relative_entropy(u: Float[Array, " N"], prior: Float[Array, " N"]) -> Array:
    r"""$\sum_i u_i \ln (u_i / q_i)$, infinite where `u` has weight and the prior has none."""
    used = u > 0
    known = prior > 0
    ratio = jnp.where(used, u, 1.0) / jnp.where(used & known, prior, 1.0)
    terms = jnp.where(used, jnp.where(known, u * jnp.log(ratio), jnp.inf), 0.0)
    return jnp.maximum(jnp.sum(terms), 0.0)
