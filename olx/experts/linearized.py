r"""Any convex loss of a mixture, for an expert learner that is told of its slope.

The learner plays a distribution $p_t$ and pays $f_t(p_t)$, convex in it; expert $i$ is charged with

$$\ell_{t,i} = \langle \nabla f_t(p_t), e_i - p_t \rangle,$$

the learner itself thus with 0. By convexity $f_t(p_t) - f_t(u) \le -\langle u, \ell_t \rangle$, so
what an expert learner guarantees against $u$ it guarantees for $f$: it competes with the best
mixture of experts, where on their own losses it competes with the best of them. Forecasts $x_t$
are combined to $\langle p_t, x_t \rangle$ by `olx.linear(linearized(...))`.

Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, section 2.5.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Rounds, Trace
from olx.losses.points import linear_feedback
from olx.needs import within


def linearized(inner: Learner) -> Learner:
    r"""Let `inner` learn from the slope of the loss at what it plays.

    inner: any learner whose action is a distribution. The range of losses it is made for must
        hold the $\ell_{t,i}$: from $-B$ to $B$ for forecasts that lie within $B$ of each other and
        a loss of slope 1.

    Two forecasters whose errors cancel:

    >>> import jax.numpy as jnp, olx
    >>> learner = olx.linear(linearized(olx.experts.ada_normal_hedge(low=-4.0, high=4.0)))
    >>> rounds = olx.Rounds(jnp.array([[1.0, -3.0]] * 200), jnp.zeros(200))
    >>> run = olx.rollout(learner, olx.losses.absolute, rounds, jnp.ones(2) / 2)
    >>> bool(run.losses[100:].mean() < 0.2)  # the better one alone loses 1
    True
    """
    check.instance("linearized", "inner", inner, Learner)
    proof = None if inner.bound_fn is None else bound
    needs = within(inner, None, "params", "weight")
    return Learner(inner, init, predict, update, proof, needs=needs)


def init(inner: Learner, params: PyTree) -> PyTree:
    return inner.init(params)


def predict(inner: Learner, state: PyTree, context: PyTree) -> PyTree:
    return inner.predict(state)


def update(inner: Learner, state: PyTree, feedback: Feedback) -> PyTree:
    return inner.update(state, _told(feedback))


def bound(inner: Learner, trace: Trace, u: PyTree) -> Certificate:
    """The bound of the expert learner, on the losses that it is charged with."""
    told = jax.vmap(_told)(trace.feedback)
    proof, rounds = inner.bound(Trace(trace.state, told), u), Rounds(None, told.outcome)
    for need in inner.needs:
        if need.where == "outcome":
            legal = need.legal_fn(inner.hparams, None, rounds)
            proof = proof.given(need.demand, _per_round(legal))
    return proof


def _per_round(legal: PyTree) -> Array:
    """Whether all entries of each round are legal."""
    rows = [jnp.all(mask.reshape(len(mask), -1), axis=1) for mask in jax.tree.leaves(legal)]
    return jnp.all(jnp.stack(rows), axis=0)


def _told(feedback: Feedback) -> Feedback:
    p, slope = feedback.action, feedback.grad
    paid = tree.vdot(p, slope)
    losses = jax.tree.map(lambda leaf: leaf - paid, slope)
    return linear_feedback(p, losses, feedback.weight)
