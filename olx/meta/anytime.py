r"""Play the weighted mean of the decisions of another learner, so that the last action is good.

The inner learner decides on $w_t$. Play the mean and learn from the gradient there:

$$x_t = \frac{\sum_{i \le t} a_i w_i}{A_t}, \qquad A_t = \sum_{i \le t} a_i, \qquad
  g_t \in \partial \ell_t(x_t),$$

where the inner learner sees the linear loss $\langle a_t g_t, \cdot \rangle$. As $a_t (x_t - w_t) =
A_{t-1} (x_{t-1} - x_t)$, convexity of $\ell_t$ at $u$ and at $x_{t-1}$ gives for any convex losses

$$\sum_s \big( A_s \ell_s(x_s) - A_{s-1} \ell_s(x_{s-1}) - a_s \ell_s(u) \big) \le
  \sum_s \langle a_s g_s, w_s - u \rangle,$$

and the right side is the regret of the inner learner. If all losses are one $\ell$, the left side
is $A_T (\ell(x_T) - \ell(u))$; if they are independent draws of one distribution, it is that for
the risk, in expectation. So every $x_t$ is as good as the mean of `olx.meta.average` would be.

The weight of a round multiplies its loss, not the share of its decision: $x_t$ is played before
that weight is known.

Cutkosky, Anytime Online-to-Batch, Optimism and Acceleration, 2019.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric
from olx import _numeric as safe
from olx._numeric import Sum
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import WEIGHT, Feedback, Learner, Process, Scalar
from olx.facts import Facts
from olx.losses.points import linear_feedback
from olx.schedules.fixed import as_schedule
from olx.theorem import Theorem
from olx.wrapper import WrapperView, lift_needs


@pytree
class AnytimeHparams:
    inner: Learner
    weights: Process


class AnytimeState(NamedTuple):
    inner: PyTree
    mean: PyTree  # the last action
    total: Sum  # the sum of its weights
    stats: PyTree  # of the weights


@public
def anytime(inner: Learner, weights: Scalar | Process = 1.0) -> Learner:
    r"""Play the mean of the decisions of `inner`, which learns from the gradients at the mean.

    inner: a learner of points; for a predictor, lift the result: `olx.linear(anytime(inner))`.
    weights: $a_t$: a number for equal weights, `olx.meta.rising()`, or another process that gives
        weights.

    For convex losses; on a fixed loss the action converges, and not only a mean of actions.

    >>> import jax.numpy as jnp, olx
    >>> learner = anytime(olx.ogd(1.0))
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1)).losses.tolist()
    [0.0, -0.5, -1.0, -1.5]
    """
    check.instance("inner", inner, Learner)
    facts = Facts(scale_free=inner.facts.scale_free and not isinstance(weights, Process))
    hparams = AnytimeHparams(inner, as_schedule("weights", weights, WEIGHT))
    needs = lift_needs(WrapperView(parts=("params", "context", "weight")), inner)
    theorems = (_regret(inner.theorems[0]),) if inner.theorems else ()
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def init(hp: AnytimeHparams, params: PyTree) -> AnytimeState:
    total = _numeric.start(jnp.zeros((), jnp.result_type(*jax.tree.leaves(params))))
    return AnytimeState(hp.inner.init(params), params, total, hp.weights.init(params))


def predict(hp: AnytimeHparams, state: AnytimeState, context: PyTree) -> PyTree:
    own = hp.weights.at(state.stats, context)
    w = hp.inner.predict(state.inner, context)
    return moved_mean(state.mean, w, own, _numeric.add(state.total, own))


def update(hp: AnytimeHparams, state: AnytimeState, feedback: Feedback) -> AnytimeState:
    own = hp.weights.at(state.stats, feedback.context)
    return AnytimeState(
        hp.inner.update(state.inner, _told(hp, state, feedback)),
        feedback.action,
        _numeric.add(state.total, own),
        hp.weights.update(state.stats, feedback),
    )


def moved_mean(mean: PyTree, w: PyTree, own: Scalar, total: Sum) -> PyTree:
    """The mean with one more decision `w`, whose weight is `own` of `total`."""
    share = own / safe.or_one(total.value)
    return jax.tree.map(lambda mean, w: mean + share * (w - mean), mean, w)


class Account(NamedTuple):
    inner: PyTree  # the account of the inner learner
    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute values of the terms of `left`


def open_account(hp: AnytimeHparams, state: AnytimeState, u: PyTree) -> Account:
    zero = jnp.zeros_like(state.total.value)
    return Account(_main(hp).init_fn(hp.inner.hparams, state.inner, u), zero, zero)


def add_round(
    hp: AnytimeHparams, account: Account, state: AnytimeState, feedback: Feedback, u: PyTree
) -> Account:
    told, past = _told(hp, state, feedback), state.total.value
    inner = _main(hp).add_fn(hp.inner.hparams, account.inner, state.inner, told, u)
    own = hp.weights.at(state.stats, feedback.context)
    terms = progress(feedback, (own, past), feedback.action, state.mean, u)
    return Account(inner, account.left + jnp.sum(terms), account.size + jnp.sum(jnp.abs(terms)))


def both_sides(hp: AnytimeHparams, account: Account, u: PyTree) -> Certificate:
    proof = _main(hp).sides_fn(hp.inner.hparams, account.inner, u)
    size = proof.scale + account.size
    whole = Certificate(account.left, proof.right, size, proof.published)
    return whole.under(proof.conditions)


def progress(
    feedback: Feedback, weights: tuple[Scalar, Scalar], now: PyTree, before: PyTree, u: PyTree
) -> Float[Array, " 3"]:
    """The terms of a round in the left side, for two means, and weights (own, past)."""
    own, past = weights
    at = lambda share, w: jnp.where(share > 0, share * feedback.loss(w), 0.0)
    return feedback.weight * jnp.stack([at(own + past, now), -at(past, before), -at(own, u)])


def _regret(one: Theorem) -> Theorem:
    source = f"Cutkosky 2019; {one.source}"
    return Theorem("anytime_regret", source, open_account, add_round, both_sides)


def _main(hp: AnytimeHparams) -> Theorem:
    """The first theorem of the inner learner, which is about its regret."""
    return hp.inner.theorems[0]


def _told(hp: AnytimeHparams, state: AnytimeState, feedback: Feedback) -> Feedback:
    """The feedback of the inner learner: a weighted linear loss at its own decision."""
    w = hp.inner.predict(state.inner, feedback.context)
    g = tree.scale(hp.weights.at(state.stats, feedback.context), feedback.grad)
    return linear_feedback(w, g, feedback.weight, feedback.context)
