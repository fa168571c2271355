r"""Online learning over a set of points: play their weighted mean, for convex losses.

The points $w^1, \dots, w^P$ of the decision set are fixed (a grid, a quasi-random set, draws from a
prior). Each is an expert with loss $f_t(w^i)$. `particles` plays the mean $\sum_i p_{t,i} w^i$. For
convex $f_t$ it pays at most $\langle p_t, \ell_t \rangle$, so the regret bounds of the expert
learner to distributions over the points hold for the mean. See `gibbs` for losses that are not
convex.

Luo, Optimal and Adaptive Online Learning, 2016, appendix A.3, algorithm 25.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import public
from olx.core import Feedback, Learner
from olx.losses.points import linear_feedback
from olx.theorem import Certificate, Theorem
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


def _add(one: Theorem, hp: ParticlesHparams, account: Convex, state, feedback, u) -> Convex:
    told = as_experts(hp, state, feedback)
    value, weight = feedback.value, feedback.weight
    return Convex(
        one.add_fn(hp.inner.hparams, account.inner, state, told, u),
        account.regret + weight * (value - told.outcome @ u),
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
