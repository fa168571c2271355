r"""What a run of experts amounts to: regrets after every round, and certificates made of them.

For a comparator $u$ in the simplex the left side of every theorem is

$$R_t(u) = \sum_{s \le t} \sum_i u_i I_{s,i} (\hat\ell_s - \ell_{s,i}),$$

which is ordinary regret to the mixture $u$ where everyone is awake. Rounds may have weights up to
1, which act as confidences; beyond that the theorems say nothing.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.3.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _safe as safe
from olx.certificate import DOMAIN, Certificate
from olx.convex import _domain
from olx.core import Trace
from olx.experts.base import ExpertHparams, seen

LIGHT = "weights must be at most 1"


class History(NamedTuple):
    """A run in units of the range of losses."""

    prior: Float[Array, " N"]
    regret: Float[Array, "T N"]  # of each round
    loss: Float[Array, "T N"]
    log_share: Float[Array, "T N"]
    light: Bool[Array, " T"]  # whether the round weighed at most 1
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
    light = jnp.broadcast_to(trace.feedback.weight <= 1, rows.regret.shape[:1])
    unit = 1.0 if hp.span is None else hp.span[1] - hp.span[0]
    unit = jnp.asarray(unit, prior.dtype)
    return History(prior, rows.regret, rows.loss, rows.log_share, light, unit)


def mixture(trace: Trace, u: PyTree) -> Float[Array, " N"]:
    """A comparator as one vector, or a refusal where it is not shaped like the prior."""
    prior = jax.tree.map(lambda leaf: leaf[0], trace.state.prior)
    return ravel_pytree(check.comparator("certify", u, prior))[0]


def certificate(
    past: History,
    u: Float[Array, " N"],
    right: Array,
    theorem: str,
    printed: Array | None = None,
) -> Certificate:
    """Regret to the mixture `u` against `right`, back in the units of the losses."""
    left = jnp.cumsum(past.regret @ u)
    size = past.rounds + jnp.abs(left) + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    proof = Certificate(
        past.unit * left,
        past.unit * right,
        past.unit * size,
        None if printed is None else past.unit * printed,
        theorem=theorem,
    )
    return proof.given(LIGHT, past.light).given(DOMAIN, _domain.simplex(0.0, 1.0, u))


def relative_entropy(u: Float[Array, " N"], prior: Float[Array, " N"]) -> Array:
    r"""$\sum_i u_i \ln (u_i / q_i)$, infinite where `u` has weight and the prior has none."""
    used = u > 0
    known = prior > 0
    ratio = safe.or_one(u, used) / safe.or_one(prior, used & known)
    terms = jnp.where(used, jnp.where(known, u * jnp.log(ratio), jnp.inf), 0.0)
    return jnp.maximum(jnp.sum(terms), 0.0)
