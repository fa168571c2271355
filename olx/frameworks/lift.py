r"""Predictors made of point learners: predict $h_w(x)$ with the decision $w$ of a point learner.

A point learner decides on $w_t$. With a model $(w, x) \mapsto h_w(x)$ it becomes a predictor with
the score $h_{w_t}(x_t)$. The inner learner sees the loss $w \mapsto \ell(h_w(x_t), y_t)$ and its
gradient by the chain rule. `linear` is the model $\langle w, x \rangle$.

Theorems of the inner learner are about $w_t$. A predictor is judged by the score $a_t$ that it
plays, so their left sides also have $\sum_s \ell'(a_s) (a_s - h_{w_s}(x_s))$, which is 0 for the
right learner.

`affine` has the score $\langle w, x \rangle + b$. It is `linear` on rows with a feature that is
always 1 after the others. The decision is one array, whose last entry is the intercept $b$. A loss
that is convex in the score is convex in $(w, b)$, so all theorems about the inner learner hold,
with $(u, b)$ as the comparator and $\|(x, 1)\|$ in place of $\|x\|$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 2.1.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import as_tree, pytree
from olx._refusal import RefusedType, own_name, public
from olx.core import Feedback, Learner, Scalar, without_refresh
from olx.facts import (
    AddsContext,
    AddsGradient,
    Aggregate,
    Facts,
    HasAggregate,
    Linear,
    Separable,
    of_wrapper,
)
from olx.theorem import Theorem, is_about
from olx.wrapper import WrapperView, lift_needs, lift_refresh, lift_theorem, lift_theorems


@pytree
class LiftHparams:
    apply: Partial
    inner: Learner


@public
def linear(inner: Learner) -> Learner:
    r"""Predict $\langle w, x \rangle$ with the decisions $w$ of `inner`.

    The context is shaped like `params`: an array or a dictionary of arrays.
    """
    return model(inner, dot)


@public
def model(inner: Learner, apply: Callable[[PyTree, PyTree], PyTree]) -> Learner:
    """Predict `apply(w, x)` with the decisions `w` of `inner`.

    apply: any differentiable function of parameters and context, a named function or a `Partial`.
        Bounds hold if the loss of its output is convex in the parameters.
    """
    check.instance("inner", inner, Learner)
    check.takes("apply", apply, "params", "context")
    return Learner(
        LiftHparams(as_tree(apply), inner),
        init,
        predict,
        update,
        facts=dataclasses.replace(_facts(inner, apply is dot), scale_free=inner.facts.scale_free),
        needs=lift_needs(VIEW, inner),
        theorems=lift_theorems(VIEW, inner),
    )


@own_name("linear")
def dot(w: PyTree, x: PyTree) -> Array:
    r"""The linear model $\langle w, x \rangle$ over a pytree.

    If $w$ is an array with more leading axes than $x$, such as a matrix with one row per class, the
    result has these axes: one score per row.
    """
    if np.ndim(x) and np.ndim(w) > np.ndim(x) and np.shape(w)[-np.ndim(x) :] == np.shape(x):
        return jnp.tensordot(w, x, np.ndim(x))
    check.same_shape("context", x, "decision", w)
    return jnp.asarray(tree.vdot(w, x))


def size_of_dot(w: PyTree, x: PyTree) -> Array:
    """The sum of the absolute values of the terms of `dot`: its rounding error is a part of it."""
    each = lambda w, x: jnp.sum(jnp.abs(w * x), tuple(range(-jnp.ndim(x), 0)))
    return jnp.asarray(sum(jax.tree.leaves(jax.tree.map(each, w, x))))


@own_name("affine")
def affine_dot(w: PyTree, x: PyTree) -> Array:
    r"""The affine model $\langle w, x \rangle + b$; the last entry of the array `w` is $b$."""
    if np.ndim(x) != 1 or not np.ndim(w) or np.shape(w)[-1] != np.shape(x)[0] + 1:
        seen, given = [jax.tree.map(np.shape, each) for each in (w, x)]
        raise RefusedType(
            f"the decision has shape {seen}, the context {given}; start from one number "
            "more than there are features, the last one is the intercept."
        )
    return dot(w[..., :-1], x) + w[..., -1]


def score_rows(w: Array, rows: Array) -> Array:
    r"""The scores $X w$ of the rows $X$ of a group."""
    if np.ndim(w) != 1 or np.ndim(rows) != 2 or np.shape(rows)[1] != np.shape(w)[0]:
        raise RefusedType(
            f"the rows have shape {np.shape(rows)}, the weights {np.shape(w)}; a group "
            "is an array of rows (m, d) for weights (d,)."
        )
    return rows @ w


def transposed(tau: Scalar, x: PyTree) -> PyTree:
    r"""The transpose of `dot`: $\tau x$ for a number, one row $\tau_r x$ per entry of a vector."""
    return jax.tree.map(lambda leaf: _along(tau, jnp.ndim(leaf)) * leaf, x)


def _along(tau: Scalar, axes: int) -> Array:
    return jnp.reshape(tau, jnp.shape(tau) + (1,) * axes)


def init(hp: LiftHparams, params: PyTree) -> PyTree:
    return hp.inner.init(params)


def predict(hp: LiftHparams, state: PyTree, context: PyTree) -> PyTree:
    return hp.apply(hp.inner.predict(state, context), context)


def update(hp: LiftHparams, state: PyTree, feedback: Feedback) -> PyTree:
    return without_refresh(hp.inner).update(state, _pull_back(hp, state, feedback))


def find_inner(learner: Learner, one: Theorem) -> Theorem | None:
    """Restate a theorem about the learner inside a model for the whole; None if there is none."""
    if not isinstance(learner.hparams, LiftHparams):
        return None
    inner = learner.hparams.inner
    found = one if is_about(one, inner) else find_inner(inner, one)
    return None if found is None else lift_theorem(VIEW, found)


def _pull_back(hp: LiftHparams, state: PyTree, feedback: Feedback) -> Feedback:
    w = hp.inner.predict(state, feedback.context)
    loss = Partial(_through, hp.apply, feedback.loss, feedback.context)
    _, transpose = jax.vjp(lambda w: hp.apply(w, feedback.context), w)
    (grad,) = transpose(feedback.grad)
    return feedback._replace(action=w, loss=loss, grad=grad)


def _beyond(hp: LiftHparams, feedback: Feedback, own: Feedback) -> Array:
    """What the action costs beyond the one of the decision, along the gradient."""
    along = jax.tree.map(jnp.subtract, feedback.action, hp.apply(own.action, feedback.context))
    return feedback.weight * jnp.asarray(tree.vdot(feedback.grad, along))


def _facts(inner: Learner, linear: bool) -> Facts:
    """The facts of a model; only a linear one leaves coordinates apart."""
    refresh = lift_refresh(VIEW, inner)
    if not linear:
        return Facts(refresh=refresh)
    adds = AddsContext(_coefficient) if isinstance(inner.facts.adds, AddsGradient) else None
    match inner.facts.coordinates:
        case Separable():
            return Facts(adds=adds, coordinates=Linear(_inner))
        case HasAggregate():
            return Facts(adds=adds, coordinates=HasAggregate(_aggregate))
        case Linear():  # a predictor, of which nothing is known inside another one
            return Facts(adds=adds)
    return dataclasses.replace(of_wrapper(inner, refresh), adds=adds)


def _aggregate(hp: LiftHparams) -> Aggregate:
    assert isinstance(hp.inner.facts.coordinates, HasAggregate)  # `_facts` has checked
    return hp.inner.facts.coordinates.aggregate_fn(hp.inner.hparams)


def _inner(hp: LiftHparams) -> Learner:
    return hp.inner


def _coefficient(hp: LiftHparams, feedback: Feedback) -> Array:
    assert isinstance(hp.inner.facts.adds, AddsGradient)  # `model` uses this function only then
    return hp.inner.facts.adds.coefficient_fn(hp.inner.hparams, feedback) * feedback.grad


def _through(apply: Partial, loss: Partial, context: PyTree, w: PyTree) -> Array:
    return loss(apply(w, context))


VIEW = WrapperView(state=None, feedback_fn=_pull_back, beyond_fn=_beyond)


@public
def affine(inner: Learner) -> Learner:
    r"""Predict $\langle w, x \rangle + b$ with the decisions of `inner`.

    Start from one number more than there are features; the last one is the intercept.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=2000, features=3)
    >>> rounds = rounds._replace(outcome=rounds.outcome + 5)
    >>> learner = olx.affine(olx.ogd(0.05))
    >>> run = olx.run(learner, olx.losses.squared, rounds, jnp.zeros(4))
    >>> olx.decision(learner, run.state, rounds.context[0]).round()[-1].item()
    5.0
    """
    return model(inner, affine_dot)


def is_affine(learner: Learner) -> bool:
    hparams = learner.hparams
    return isinstance(hparams, LiftHparams) and hparams.apply.func is affine_dot


def as_linear(learner: Learner) -> Learner:
    """The learner that plays the same on rows with a feature that is always 1."""
    return linear(learner.hparams.inner)
