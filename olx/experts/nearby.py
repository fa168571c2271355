r"""A theorem about `particles` in a box: the regret to any decision of the box.

Let $\rho$ be the smallest number for which $\lceil \varepsilon P\rceil$ points lie in the box
scaled by $\rho$ around $u$. On convex losses the regret of `particles` to $u$ is at most the bound
on the $\varepsilon$-regret of its expert learner, plus $\rho$ per round. For points spread evenly
over the box $\rho$ is about $\varepsilon^{1/d}$, as in the theorem.

Luo, Optimal and Adaptive Online Learning, 2016, appendix A.3, theorem 22.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import own_name, public
from olx.core import Feedback, Learner, Scalar
from olx.experts.account import for_mixtures, unit_of
from olx.experts.base import ExpertHparams
from olx.experts.particles import ParticlesHparams, as_experts
from olx.experts.quantiles import Share, at_quantile, rank_of
from olx.theorem import DOMAIN, About, Certificate, Theorem


class Account(NamedTuple):
    inner: Any  # the account of the expert learner
    regret: Float[Array, ""]
    weight: Float[Array, ""]
    size: Float[Array, ""]


@public
def nearby_points(epsilon: float, low: Scalar | PyTree, high: Scalar | PyTree) -> Theorem:
    """Theorem 22 for points: the regret of `particles` to any decision `u` of a box.

    It uses the first theorem of the expert learner about mixtures.

    low, high: the ends of the box: numbers, or arrays shaped like a point.
    """
    epsilon = check.above("epsilon", epsilon, 0.0, 1.0)
    low = check.finite("low", low, each=True)
    high = check.finite("high", high, each=True)
    sides = Partial(both_sides, Share(epsilon), jnp.asarray(low), jnp.asarray(high))
    parts = open_account, add_round, sides
    return Theorem("nearby_points", "Luo 2016, theorem 22", *parts, about=_POINTS)


def _over_points(learner: Learner) -> bool:
    hp = learner.hparams
    known = isinstance(hp, ParticlesHparams) and isinstance(hp.inner.hparams, ExpertHparams)
    return known and for_mixtures(hp.inner.theorems) is not None


def _mixtures(hp: ParticlesHparams) -> Theorem:
    found = for_mixtures(hp.inner.theorems)
    assert found is not None  # `_over_points` has looked
    return found


_POINTS = About(
    "a `particles` learner of one of `olx.experts` with a theorem about mixtures", _over_points
)


def open_account(hp: ParticlesHparams, state: PyTree, u: PyTree) -> Account:
    u = check.comparator(u, jax.tree.map(lambda leaf: leaf[0], hp.points))
    zero = jnp.zeros((), ravel_pytree(u)[0].dtype)
    inner = _mixtures(hp).init_fn(hp.inner.hparams, state, None)
    return Account(inner, zero, zero, zero)


def add_round(
    hp: ParticlesHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    told, one = as_experts(hp, state, feedback), _mixtures(hp)
    weight, value, other = feedback.weight, feedback.value, feedback.loss(u)
    return Account(
        one.add_fn(hp.inner.hparams, account.inner, state, told, None),
        account.regret + weight * (value - other),
        account.weight + weight,
        account.size + jnp.abs(weight * value) + jnp.abs(weight * other),
    )


@own_name("nearby_points")
def both_sides(
    share: Share, low, high, hp: ParticlesHparams, account: Account, u: PyTree
) -> Certificate:
    inner, one = hp.inner.hparams, _mixtures(hp)
    proof = at_quantile(share, one, inner, account.inner, None)
    points = jax.vmap(lambda point: ravel_pytree(point)[0])(hp.points)
    at = ravel_pytree(u)[0]
    ends = [jnp.broadcast_to(end.astype(at.dtype), at.shape) for end in (low, high)]
    room = jnp.where(points > at, ends[1] - at, at - ends[0])
    shrunk = jnp.max(jnp.abs(points - at) / jnp.where(room > 0, room, jnp.inf), axis=1)
    rho = jnp.sort(shrunk)[rank_of(shrunk.size, share.epsilon) - 1]
    more = unit_of(inner) * rho * account.weight
    proof = Certificate(account.regret, proof.right + more, proof.scale + account.size).under(
        proof.conditions
    )
    inside = lambda part: jnp.all((part >= ends[0]) & (part <= ends[1]))
    return proof.given(DOMAIN, inside(at)).given("points must lie in the box", inside(points))
