r"""Delayed feedback: the gradient of a round reaches the learner some rounds later.

The gradient $g_s$ of round $s$ arrives at the end of round $s + d_s$. The learner inside gets the
sum $G_t$ of the gradients that arrive in round $t$, as one linear loss; a round without any does
not change it. It decides on $v_t$ and the game is played with $w_t = v_t$, but $g_s$ is charged at
$v_{s + d_s}$. So the regret over the gradients that have arrived until $T$ is

$$\sum_s \langle g_s, w_s - u\rangle = \sum_{t \le T} \langle G_t, v_t - u\rangle
  + \sum_s \langle g_s, v_s - v_{s + d_s}\rangle,$$

and every bound of the learner inside for the losses $G_t$ holds with one more term,

$$\sum_s \|g_s\|_2 \sum_{t = s}^{s + d_s - 1} \|v_{t+1} - v_t\|_2 \le D_T \max_s \|g_s\|_2 \max_t
  \|v_{t+1} - v_t\|_2.$$

$D_T$ is the sum of the delays, in rounds in which something arrives. With steps of size $\eta$ the
term is $\eta D_T$ times a constant, and the best $\eta$ gives a regret of the order of
$\sqrt{T + D_T}$.

Zinkevich, Langford, Smola, Slow Learners are Fast, 2009; Joulani, Gyoergy, Szepesvari, Online
Learning under Delayed Feedback, 2013, and Delay-Tolerant Online Convex Optimization, 2016.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree, UInt32
from optax import tree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedType, own_name, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Rounds, Scalar
from olx.facts import Facts
from olx.losses.points import linear_feedback
from olx.needs import Need, in_range
from olx.theorem import Theorem
from olx.wrapper import WrapperView, decide_alone, lift_needs


class Delayed(NamedTuple):
    """A context with the delay of the feedback of its round."""

    context: PyTree
    delay: Scalar  # a whole number, from 0 to the `most` of the learner


@pytree
class DelayedHparams:
    inner: Learner
    most: int = static()


class DelayedState(NamedTuple):
    inner: PyTree
    grads: PyTree  # a ring of most + 1 gradients: that of round t is at t modulo most + 1
    due: UInt32[Array, " M"]  # the round in which each arrives
    round: UInt32[Array, ""]


@public
def delayed(inner: Learner, most: int) -> Learner:
    """Play `inner`, whose feedback comes later.

    inner: a learner of points that uses the gradient; for a predictor, lift the result:
        `olx.linear(delayed(olx.ogd(0.1), 24))`.
    most: the largest delay; 0 means no delay. It is that of every round, unless the contexts are
        `Delayed(context, delay)`. A model of such contexts uses their first part:
        `olx.model(delayed(...), lambda w, both: w @ both.context)`.

    Rounds of weight 0 do not count.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.ones((5, 1)))
    >>> olx.rollout(
    ...     delayed(olx.ogd(1.0), 2), olx.losses.linear_loss, rounds, jnp.zeros(1)
    ... ).losses.tolist()
    [0.0, 0.0, 0.0, -1.0, -2.0]
    """
    check.instance("inner", inner, Learner)
    if most != 0:
        check.count("most", most)
    view = WrapperView(parts=("params", "outcome"))
    needs = (*lift_needs(view, inner), _DELAYS)
    if any(need.where == "context" for need in inner.needs):
        needs = (*needs, _NO_CONTEXT)
    theorems = tuple(_with_delays(one) for one in inner.theorems if not one.sequence)
    hparams, facts = DelayedHparams(inner, int(most)), Facts(scale_free=inner.facts.scale_free)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


@own_name("delayed")
def init(hp: DelayedHparams, params: PyTree) -> DelayedState:
    inner = hp.inner.init(params)
    ring = lambda leaf: jnp.zeros((hp.most + 1, *leaf.shape), leaf.dtype)
    decide = lambda state: decide_alone(hp.inner, state, "delayed(olx.ogd(0.1), 24)")
    grads = jax.tree.map(ring, jax.eval_shape(decide, inner))
    never = jnp.full(hp.most + 1, jnp.iinfo(jnp.uint32).max, jnp.uint32)
    return DelayedState(inner, grads, never, jnp.zeros((), jnp.uint32))


def predict(hp: DelayedHparams, state: DelayedState, context: PyTree) -> PyTree:
    return hp.inner.predict(state.inner)


def update(hp: DelayedHparams, state: DelayedState, feedback: Feedback) -> DelayedState:
    state, arrives = stored_state(hp, state, feedback)
    told = arrived_feedback(hp, state, arrives)
    return state._replace(inner=hp.inner.update(state.inner, told), round=state.round + 1)


@own_name("delayed")
def stored_state(
    hp: DelayedHparams, state: DelayedState, feedback: Feedback
) -> tuple[DelayedState, Bool[Array, " M"]]:
    """The state with the gradient of the round stored, and which gradients arrive now."""
    if feedback.grad is None:
        raise RefusedType("`inner` must play real vectors, since gradients are kept for later.")
    check.same_shape("the gradient", feedback.grad, "the decision of `inner`", feedback.action)
    context, slot = feedback.context, _slot(hp, state)
    delay = context.delay if isinstance(context, Delayed) else hp.most
    due = state.due.at[slot].set(state.round + jnp.asarray(delay, jnp.uint32))
    put = lambda ring, grad: ring.at[slot].set(feedback.weight * grad)
    grads = jax.tree.map(put, state.grads, feedback.grad)
    return state._replace(grads=grads, due=due), due == state.round


def arrived_feedback(hp: DelayedHparams, state: DelayedState, arrives: Array) -> Feedback:
    """The feedback of the learner inside: the sum of gradients; of weight 0 if there is none."""
    total = jax.tree.map(
        lambda ring: jnp.tensordot(arrives.astype(ring.dtype), ring, 1), state.grads
    )
    weight = jnp.any(arrives).astype(jnp.result_type(*jax.tree.leaves(total)))
    return linear_feedback(hp.inner.predict(state.inner), total, weight)


def _slot(hp: DelayedHparams, state: DelayedState) -> Array:
    return state.round % jnp.asarray(hp.most + 1, jnp.uint32)


class Waiting(NamedTuple):
    """Of every gradient in the ring, what the theorem needs when it arrives."""

    paid: Float[Array, " M"]  # <g_s, w_s>
    norm: Float[Array, " M"]
    path: Float[Array, " M"]  # the length of the path of decisions before its round
    steps: Float[Array, " M"]  # the number of steps before its round


class Account(NamedTuple):
    inner: PyTree
    waiting: Waiting
    path: Float[Array, ""]
    steps: Float[Array, ""]
    beyond: Float[Array, ""]  # the sum of <g_s, w_s - v_{s + d_s}>
    price: Float[Array, ""]  # the sum of the norms times paths
    delays: Float[Array, ""]  # D
    largest: Float[Array, " 2"]  # norm of a gradient, length of a step


def _with_delays(one: Theorem) -> Theorem:
    """A theorem of the learner inside, with the price of the delays."""
    parts = (Partial(part, one) for part in (_open, _add, _sides))
    return Theorem(one.name, f"{one.source}, with delays", *parts)


def _open(one: Theorem, hp: DelayedHparams, state: DelayedState, u: PyTree) -> Account:
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(state.grads)))
    ring = jnp.zeros(hp.most + 1, zero.dtype)
    inner = one.init_fn(hp.inner.hparams, state.inner, u)
    sums = zero, zero, zero, zero, zero
    return Account(inner, Waiting(ring, ring, ring, ring), *sums, jnp.zeros(2, zero.dtype))


def _add(
    one: Theorem,
    hp: DelayedHparams,
    account: Account,
    state: DelayedState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    slot, v = _slot(hp, state), hp.inner.predict(state.inner)
    state, arrives = stored_state(hp, state, feedback)
    grad = jax.tree.map(lambda ring: ring[slot], state.grads)
    now = tree.vdot(grad, feedback.action), tree.norm(grad), account.path, account.steps
    waiting = Waiting(*(ring.at[slot].set(x) for ring, x in zip(account.waiting, now, strict=True)))
    told = arrived_feedback(hp, state, arrives)
    inner = one.add_fn(hp.inner.hparams, account.inner, state.inner, told, u)
    inner = jax.tree.map(
        lambda new, old: jnp.where(told.weight > 0, new, old), inner, account.inner
    )
    after = hp.inner.predict(hp.inner.update(state.inner, told))
    step = tree.norm(jax.tree.map(jnp.subtract, after, v))
    here = lambda values: jnp.sum(jnp.where(arrives, values, 0.0))
    return Account(
        inner,
        waiting,
        account.path + step,
        account.steps + told.weight,
        account.beyond + here(waiting.paid) - told.value,
        account.price + here(waiting.norm * (account.path - waiting.path)),
        account.delays + here(account.steps - waiting.steps),
        jnp.maximum(account.largest, jnp.stack([now[1], step])),
    )


def _sides(one: Theorem, hp: DelayedHparams, account: Account, u: PyTree) -> Certificate:
    """Both sides are 0 before anything has arrived."""
    proof, begun = one.sides_fn(hp.inner.hparams, account.inner, u), account.steps > 0
    looser = proof.right if proof.published is None else proof.published
    most = account.delays * jnp.prod(account.largest)
    sides = (
        proof.left + account.beyond,
        proof.right + account.price,
        proof.scale + jnp.abs(account.beyond) + most,
        looser + most,
    )
    known = {name: met | ~begun for name, met in proof.conditions.items()}
    left, right, scale, published = (jnp.where(begun, side, 0.0) for side in sides)
    return Certificate(left, right, scale, published).under(known)


def _are_delays(hp: DelayedHparams, params: PyTree, rounds: Rounds) -> PyTree:
    context = rounds.context
    if not isinstance(context, Delayed):
        return jax.tree.map(_is_finite, context)
    whole = (context.delay >= 0) & (context.delay <= hp.most) & (context.delay % 1 == 0)
    return Delayed(jax.tree.map(_is_finite, context.context), whole)


def _is_finite(leaf: Array) -> Array | bool:
    """Drivers do not look at a part that a need is about."""
    kind = jnp.result_type(leaf)
    if not jnp.issubdtype(kind, jnp.floating):
        return True
    most = float(jnp.finfo(kind).max)
    return in_range(leaf, -most, most)


def _is_none(hp: DelayedHparams, params: PyTree, rounds: Rounds) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf), bool), rounds.context)


_DELAYS = Need(
    "context",
    _are_delays,
    "contexts must be finite, and delays whole numbers from 0 to `most`",
    "delayed",
)
_NO_CONTEXT = Need("context", _is_none, "confidences of experts cannot be delayed", "delayed")
