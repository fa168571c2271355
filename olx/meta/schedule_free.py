r"""Schedule-free learning: gradients between the decision of a learner and the mean of them.

The inner learner decides on $z_t$. With the mean $x_t$ of its decisions, play

$$y_t = (1 - \beta) z_t + \beta x_t, \qquad
  x_{t+1} = (1 - c_{t+1}) x_t + c_{t+1} z_{t+1}, \qquad
  c_{t+1} = \frac{a_t}{\sum_{i \le t} a_i},$$

where the inner learner sees the linear loss of $g_t \in \partial \ell_t(y_t)$. So the steps need
not shrink, and $x_t$ is the point to use: `olx.meta.averaged` reads it. The first decision counts
only until there is a second one, $c_2 = 1$. $\beta = 0$ plays the inner learner and keeps a mean;
$\beta = 1$ with equal weights is `olx.meta.anytime` up to the weight of the first decision.

Let $b_t = a_{t-1}$ be the weight of $z_t$ in $x_t$, and $B_t$ the sum of these. On the line through
$x_{t-1}$, $x_t$, $y_t$ and $z_t$, which lie in this order, the slopes of a convex loss rise. So

$$B_t \ell_t(x_t) - B_{t-1} \ell_t(x_{t-1}) - b_t \ell_t(u) \le b_t \langle g_t, z_t - u \rangle,$$

and, with $\ell_1(x_1) - \ell_1(u)$ for the first round, the sum of the left sides is at most the
regret of the inner learner plus $\sum_{s > 1} (b_s - 1) \langle g_s, z_s - u \rangle$, which is 0
for weights of 1. If all losses are one $\ell$, the left sides sum to $B_T (\ell(x_T) - \ell(u))$
and the term of the first round.

The weight of a round multiplies its loss, and not the share of a decision in the mean.

Defazio, Yang, Mehta, Mishchenko, Khaled, Cutkosky, The Road Less Scheduled, 2024. With
`olx.interop.optax.from_optax` inside, actions and means are those of
`optax.contrib.schedule_free`, whose weights are the largest step size so far to a power; only
there the inner optimizer also sees $y_t$, for its own weight decay.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.certificate import Certificate
from olx.core import WEIGHT, Feedback, Learner, Process, Scalar
from olx.facts import Facts
from olx.losses.points import linear_feedback
from olx.meta.anytime import AnytimeState, moved_mean, progress
from olx.schedules.fixed import as_schedule
from olx.theorem import Theorem
from olx.wrapper import WrapperView, decide_alone, lift_needs


@pytree
class ScheduleFreeHparams:
    inner: Learner
    beta: Scalar
    weights: Process


@public
def schedule_free(inner: Learner, beta: Scalar = 0.9, weights: Scalar | Process = 1.0) -> Learner:
    r"""Play between the decision of `inner` and the mean of its decisions.

    inner: a learner of points, without momentum; for a predictor, lift the result:
        `olx.linear(schedule_free(inner))`.
    beta: $\beta$, from 0 to 1: how near to the mean; 0.9 in the paper.
    weights: $a_t$: a number for equal weights, `olx.meta.rising()`, or another process that gives
        weights.

    For convex losses. `olx.meta.averaged` gives the mean, to be used after the run.

    >>> import jax.numpy as jnp, olx
    >>> learner = schedule_free(olx.ogd(1.0), beta=0.5)
    >>> rounds = olx.Rounds(None, jnp.ones((4, 1)))
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1))
    >>> run.losses.tolist(), olx.meta.averaged(run.state).tolist()
    ([0.0, -1.0, -1.75, -2.5], [-2.5])
    """
    check.instance("inner", inner, Learner)
    beta = check.between("beta", beta, 0.0, 1.0)
    facts = Facts(scale_free=inner.facts.scale_free and not isinstance(weights, Process))
    hparams = ScheduleFreeHparams(inner, beta, as_schedule("weights", weights, WEIGHT))
    needs = lift_needs(WrapperView(parts=("params", "weight")), inner)
    theorems = (_regret(inner.theorems[0]),) if inner.theorems else ()
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


@own_name("schedule_free")
def init(hp: ScheduleFreeHparams, params: PyTree) -> AnytimeState:
    total = _numeric.start(jnp.zeros((), jnp.result_type(*jax.tree.leaves(params))))
    inner = hp.inner.init(params)
    first = decide_alone(hp.inner, inner, "schedule_free(olx.ogd(0.1))")
    return AnytimeState(inner, first, total, hp.weights.init(params))


def predict(hp: ScheduleFreeHparams, state: AnytimeState, context: PyTree) -> PyTree:
    z = hp.inner.predict(state.inner)
    return jax.tree.map(lambda x, z: hp.beta * x + (1 - hp.beta) * z, state.mean, z)


def update(hp: ScheduleFreeHparams, state: AnytimeState, feedback: Feedback) -> AnytimeState:
    inner = hp.inner.update(state.inner, _told(hp, state, feedback))
    own = hp.weights.at(state.stats, feedback.context)
    total = _numeric.add(state.total, own)
    mean = moved_mean(state.mean, hp.inner.predict(inner), own, total)
    return AnytimeState(inner, mean, total, hp.weights.update(state.stats, feedback))


class Account(NamedTuple):
    inner: PyTree  # the account of the inner learner
    mean: PyTree  # x of the round before
    past: Float[Array, ""]  # the sum of its weights
    own: Float[Array, ""]  # the weight of the decision after it
    begun: Bool[Array, ""]
    left: Float[Array, ""]
    beyond: Float[Array, ""]  # the sum of (b_s - 1) <g_s, z_s - u>
    size: Float[Array, ""]  # the sum of absolute values of the terms


def open_account(hp: ScheduleFreeHparams, state: AnytimeState, u: PyTree) -> Account:
    zero = jnp.zeros_like(state.total.value)
    inner = _main(hp).init_fn(hp.inner.hparams, state.inner, u)
    return Account(inner, state.mean, zero, zero + 1, jnp.zeros((), bool), zero, zero, zero)


def add_round(
    hp: ScheduleFreeHparams, account: Account, state: AnytimeState, feedback: Feedback, u: PyTree
) -> Account:
    """In the first round the decision has the weight 1, and the mean before it the weight 0."""
    told, own = _told(hp, state, feedback), account.own
    terms = progress(feedback, (own, account.past), state.mean, account.mean, u)
    more = feedback.weight * (own - 1) * tree.vdot(feedback.grad, tree.sub(told.action, u))
    return Account(
        _main(hp).add_fn(hp.inner.hparams, account.inner, state.inner, told, u),
        state.mean,
        jnp.where(account.begun, account.past + own, account.past),
        jnp.zeros_like(own) + hp.weights.at(state.stats, feedback.context),
        jnp.ones_like(account.begun),
        account.left + jnp.sum(terms),
        account.beyond + more,
        account.size + jnp.sum(jnp.abs(terms)) + jnp.abs(more),
    )


def both_sides(hp: ScheduleFreeHparams, account: Account, u: PyTree) -> Certificate:
    proof = _main(hp).sides_fn(hp.inner.hparams, account.inner, u)
    size = proof.scale + account.size
    return Certificate(account.left, proof.right + account.beyond, size).under(proof.conditions)


def _regret(one: Theorem) -> Theorem:
    source = f"Defazio et al. 2024; {one.source}"
    return Theorem("schedule_free_regret", source, open_account, add_round, both_sides)


def _main(hp: ScheduleFreeHparams) -> Theorem:
    """The first theorem of the inner learner, which is about its regret."""
    return hp.inner.theorems[0]


def _told(hp: ScheduleFreeHparams, state: AnytimeState, feedback: Feedback) -> Feedback:
    """The feedback of the inner learner: a linear loss at its own decision."""
    return linear_feedback(hp.inner.predict(state.inner), feedback.grad, feedback.weight)
