r"""Online learning over a set of points: play their weighted mean, for convex losses.

The points $w^1, \dots, w^P$ of the decision set are fixed (a grid, a quasi-random set, draws from a
prior). Each is an expert with loss $f_t(w^i)$. `particles` plays the mean $\sum_i p_{t,i} w^i$. For
convex $f_t$ it pays at most $\langle p_t, \ell_t \rangle$, so the regret bounds of the expert
learner to distributions over the points hold for the mean. See `gibbs` for losses that are not
convex.

The theorem `nearby_points` is about `particles` in a box. Let $\rho$ be the smallest number for
which $\lceil \varepsilon P\rceil$ points lie in the box scaled by $\rho$ around $u$. On convex
losses the regret to $u$ is at most the bound on the $\varepsilon$-regret of the expert learner,
plus $\rho$ per round. For points spread evenly over the box $\rho$ is about $\varepsilon^{1/d}$.

Luo, Optimal and Adaptive Online Learning, 2016, appendix A.3, algorithm 25 and theorem 22.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.experts.account import for_mixtures, unit_of
from olx.experts.base import ExpertHparams
from olx.experts.quantiles import Share, at_quantile, rank_of
from olx.losses.points import linear_feedback
from olx.theorem import About, Theorem
from olx.wrapper import WrapperView, lift_needs


@pytree
class ParticlesHparams:
    inner: Learner
    points: PyTree


@public
def particles(inner: Learner, points: PyTree) -> Learner:
    """Play the mean of `points` weighted by `inner`; `params` is the prior over the points.

    inner: any learner whose action is a distribution; losses must lie in its range.
    points: decisions; every leaf has a leading axis of length P.

    >>> import jax.numpy as jnp, olx
    >>> points, prior = jnp.linspace(-1.0, 1.0, 41), jnp.full(41, 1 / 41)
    >>> rounds = olx.Rounds(None, jnp.full(60, 0.3))
    >>> learner = particles(olx.hedge(4.0), points)
    >>> bool(olx.rollout(learner, olx.losses.squared, rounds, prior).losses[-1] < 1e-2)
    True
    """
    check.instance("inner", inner, Learner)
    points = check.finite("points", points, each=True)
    hparams = ParticlesHparams(inner, points)
    needs = lift_needs(WrapperView(parts=("params", "weight")), inner)
    theorems = tuple(_of_the_mean(one) for one in inner.theorems)
    return Learner(hparams, init, predict, update, needs=needs, theorems=theorems)


def init(hp: ParticlesHparams, params: Float[Array, " P"]) -> PyTree:
    return hp.inner.init(params)


def predict(hp: ParticlesHparams, state: PyTree, context: PyTree) -> PyTree:
    return mean_of(hp.points, hp.inner.predict(state))


def update(hp: ParticlesHparams, state: PyTree, feedback: Feedback) -> PyTree:
    return hp.inner.update(state, as_experts(hp, state, feedback))


class Convex(NamedTuple):
    """The account of the expert learner, and sums of the losses of the mean."""

    inner: PyTree
    regret: Float[Array, ""]
    paid: Float[Array, ""]


def _of_the_mean(one: Theorem) -> Theorem:
    """A theorem of the expert learner for a distribution over points, on convex losses."""
    return Theorem(one.name, one.source, *(Partial(part, one) for part in (_open, _add, _sides)))


def _open(one: Theorem, hp: ParticlesHparams, state: PyTree, u: Float[Array, " P"]) -> Convex:
    zero = jnp.zeros((), check.comparator(u, hp.inner.predict(state)).dtype)
    return Convex(one.init_fn(hp.inner.hparams, state, u), zero, zero)


def _add(
    one: Theorem,
    hp: ParticlesHparams,
    account: Convex,
    state: PyTree,
    feedback: Feedback,
    u: PyTree,
) -> Convex:
    linear = as_experts(hp, state, feedback)
    value, weight = feedback.value, feedback.weight
    return Convex(
        one.add_fn(hp.inner.hparams, account.inner, state, linear, u),
        account.regret + weight * (value - linear.outcome @ u),
        account.paid + jnp.abs(weight * value),
    )


def _sides(one: Theorem, hp: ParticlesHparams, account: Convex, u: PyTree) -> Certificate:
    proof = one.sides_fn(hp.inner.hparams, account.inner, u)
    return dataclasses.replace(proof, left=account.regret, scale=proof.scale + account.paid)


def mean_of(points: PyTree, p: Float[Array, " P"]) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.tensordot(p, leaf, axes=1), points)


def as_experts(hp: ParticlesHparams, state: PyTree, feedback: Feedback) -> Feedback:
    losses = jax.vmap(feedback.loss)(hp.points)
    return linear_feedback(hp.inner.predict(state), losses, feedback.weight)


class BoxAccount(NamedTuple):
    inner: PyTree  # the account of the expert learner
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
    sides = Partial(box_sides, Share(epsilon), jnp.asarray(low), jnp.asarray(high))
    parts = open_box, add_box, sides
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


def open_box(hp: ParticlesHparams, state: PyTree, u: PyTree) -> BoxAccount:
    u = check.comparator(u, jax.tree.map(lambda leaf: leaf[0], hp.points))
    zero = jnp.zeros((), ravel_pytree(u)[0].dtype)
    inner = _mixtures(hp).init_fn(hp.inner.hparams, state, None)
    return BoxAccount(inner, zero, zero, zero)


def add_box(
    hp: ParticlesHparams, account: BoxAccount, state: PyTree, feedback: Feedback, u: PyTree
) -> BoxAccount:
    linear, one = as_experts(hp, state, feedback), _mixtures(hp)
    weight, value, other = feedback.weight, feedback.value, feedback.loss(u)
    return BoxAccount(
        one.add_fn(hp.inner.hparams, account.inner, state, linear, None),
        account.regret + weight * (value - other),
        account.weight + weight,
        account.size + jnp.abs(weight * value) + jnp.abs(weight * other),
    )


@own_name("nearby_points")
def box_sides(
    share: Share, low: Array, high: Array, hp: ParticlesHparams, account: BoxAccount, u: PyTree
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
