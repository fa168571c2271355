r"""A learner that shrinks its weights before each step, as a gated layer does.

$$\tilde W = \kappa_t W_{t-1}, \qquad W_t = \tilde W + a_t k_t^\top,$$

where $a_t$ is the multiple of the key that the learner adds at $\tilde W$. With gradient descent on
the squared loss this is the gated delta rule $W_t = \kappa_t W_{t-1} (I - \eta_t k_t k_t^\top) +
\eta_t v_t k_t^\top$. The loss is still that of the prediction $W_{t-1} k_t$, so theorems of the
learner, which does not shrink, do not hold, and none is carried.

Yang, Kautz, Hatamizadeh, Gated Delta Networks, arXiv:2412.06464, 2024.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import RefusedType, public
from olx.core import Feedback, Learner, Scalar
from olx.facts import AddsContext, AddsGradient, Facts, ShrinksAndAddsContext
from olx.frameworks.lift import linear
from olx.wrapper import INNER, lift_needs


@pytree
class ForgettingHparams:
    keep: Scalar
    inner: Learner


@public
def with_forgetting(inner: Learner, keep: Scalar) -> Learner:
    r"""Multiply the weights of `inner` by `keep` before each step.

    inner: a point learner that adds a multiple of the gradient, such as `olx.ogd`, or a predictor
        that adds a multiple of the context, such as `olx.implicit`.
    keep: $\kappa$ in [0, 1]; 1 forgets nothing. In a layer a network may give one per token.

    >>> import jax.numpy as jnp, olx
    >>> learner = with_forgetting(olx.ogd(1.0), keep=0.5)
    >>> rounds = olx.Rounds(jnp.eye(2), jnp.ones(2))
    >>> olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(2)).state.theta.tolist()
    [0.5, 1.0]
    """
    check.instance("inner", inner, Learner)
    keep = check.between("keep", keep, 0.0, 1.0)
    predictor = linear(inner) if isinstance(inner.facts.adds, AddsGradient) else inner
    adds = predictor.facts.adds
    if not isinstance(adds, AddsContext) or adds.score_fn is not None:
        raise RefusedType(
            f"`inner` must add a multiple of the gradient or of the context; {inner!r} does not "
            "say so. Take `olx.ogd` with a constant step, or `olx.implicit`."
        )
    facts = Facts(adds=ShrinksAndAddsContext(_keep, _coefficient))
    needs = lift_needs(INNER, predictor)
    return Learner(ForgettingHparams(keep, predictor), init, predict, update, facts, needs)


def init(hp: ForgettingHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: ForgettingHparams, state: PyTree, context: PyTree) -> Array:
    return hp.inner.predict(state, context)


def update(hp: ForgettingHparams, state: PyTree, feedback: Feedback) -> PyTree:
    small = jax.tree.map(lambda leaf: hp.keep * leaf, state)
    action = hp.inner.predict(small, feedback.context)
    value, grad = jax.value_and_grad(feedback.loss)(action)
    return hp.inner.update(small, feedback._replace(action=action, value=value, grad=grad))


def _keep(hp: ForgettingHparams, context: PyTree) -> Array:
    return jnp.asarray(hp.keep)


def _coefficient(hp: ForgettingHparams, feedback: Feedback) -> Array:
    assert isinstance(hp.inner.facts.adds, AddsContext)  # `with_forgetting` has checked
    return hp.inner.facts.adds.coefficient_fn(hp.inner.hparams, feedback)
