r"""Prediction with expert advice: makes a learner from a rule that turns regrets into weights.

An action is a distribution $p$ over $N$ experts. An outcome is the vector of their losses. The
context is None or the confidences $I \in [0, 1]^N$, where 0 means asleep. With weights $w$ that
include the prior,

$$p_i \propto I_i w_i, \qquad \hat\ell = \langle p, \ell\rangle, \qquad
  r_i = I_i (\hat\ell - \ell_i).$$

An algorithm only defines how regrets become weights. Its theorem needs no more than
$\sum_i w_i r_i = 0$, so it holds with confidences too. Losses lie in $[0, 1]$, or in the range that
the factory gets. Other losses are refused; where they are traced, all later losses become NaN. A
rule with `any_range` takes all finite losses and finds their range itself.
Losses of sleeping experts are never read. If no awake expert has weight, the action is the prior
over the awake. If all experts sleep, the action is 0: the round costs nothing and changes nothing.

Blum, Mansour, From External to Internal Regret, 2007; Gaillard, Stoltz, van Erven, A Second-order
Bound with Excess Losses, 2014.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree, static
from olx._refusal import RefusedType, own_name, public
from olx._words import as_given
from olx.core import Feedback, Learner, Scalar
from olx.experts.needs import clip_to_unit, expert_needs
from olx.facts import Facts
from olx.needs import Need
from olx.theorem import Theorem


class Weights(NamedTuple):
    r"""The weight of an expert is `factor` $e^{\mathrm{log}}$; it includes the prior."""

    log: Float[Array, " N"]
    factor: Float[Array, " N"]  # never negative


class Seen(NamedTuple):
    """Losses and regrets of a round, in units of the range of losses, times the round's weight."""

    regret: Float[Array, " N"]
    loss: Float[Array, " N"]  # that of the learner where an expert sleeps
    log_share: Float[Array, " N"]  # before confidences; the lowest finite number if no share
    feedback: Feedback


class Units(NamedTuple):
    r"""What `any_range` must know of a rule whose regrets get other units, one per expert.

    The rule has a mean potential $\sum_i q_i \Phi_i \le 1 + D$ of statistics per expert. Its
    regrets are at most 1, and $\sum_i w_i r_i \le 0$.

    rescale_fn: `(own, stats, ratio)`; the statistics in new units, with old / new unit per expert.
    added_fn: `(own, prior, stats, regret, ratio)`; what a round and then new units add to $D$ at
        most, and the part of each regret that the potential does not bound.
    bound_fn: `(own, prior, stats, u, excess)`; the bound on the regret to a mixture, given $D$,
        without that part.
    """

    rescale_fn: Callable[..., PyTree]
    added_fn: Callable[..., tuple[Array, Array]]
    bound_fn: Callable[..., Array]


@pytree
class ExpertHparams:
    own: PyTree
    prior: PyTree
    span: tuple[Scalar, Scalar] | None
    owner: str = static()
    start_fn: Callable[..., PyTree] = static()  # (own, prior) -> stats
    weigh_fn: Callable[..., Weights] = static()  # (own, prior, stats) -> weights
    learn_fn: Callable[..., PyTree] = static()  # (own, prior, stats, seen) -> stats
    unbounded: bool = static(default=False)  # whether losses may exceed the range
    estimated: bool = static(default=False)  # whether outcomes are estimates of losses, of any size
    any_range: bool = static(default=False)  # whether losses have no range
    units: Units | None = static(default=None)  # None if the rule has one unit for ever


class ExpertState(NamedTuple):
    prior: PyTree  # adds up to 1, shaped like a decision
    stats: PyTree


@public
def expert_learner(
    owner: str,
    own: PyTree,
    start: Callable[..., PyTree],
    weigh: Callable[..., Weights],
    learn: Callable[..., PyTree],
    *theorems: Theorem,
    prior: PyTree = None,
    low: Scalar | None = None,
    high: Scalar | None = None,
    needs: tuple[Need, ...] = (),
    unbounded: bool = False,
    any_range: bool = False,
    units: Units | None = None,
) -> Learner:
    """A learner from a rule that turns regrets into weights; its functions are at module level.

    own: the numbers of the algorithm. `start(own, prior)` gives its first statistics,
        `weigh(own, prior, stats)` the `Weights`, `learn(own, prior, stats, seen)` the next ones;
        decisions are flattened for them.
    theorems: its theorems; see `olx.experts.account`.
    prior, low, high: see `olx.experts`; they are checked here for every factory.
    needs: further demands on data, beside losses in their range and confidences in [0, 1].
    unbounded: whether `learn` accepts losses above the range, such as estimates of bandits.
    any_range: whether losses have no range, and `low` and `high` do not exist. The weights must not
        depend on the unit of the losses: the learner is `scale_free`.
    units: for `olx.experts.any_range`; None if the rule has one unit for all experts and rounds.

    >>> import jax.numpy as jnp, olx
    >>> from olx.experts.base import Weights, expert_learner
    >>> start = lambda own, prior: jnp.zeros_like(prior)
    >>> weigh = lambda own, prior, total: Weights(own * total, prior)
    >>> learn = lambda own, prior, total, seen: total + seen.regret
    >>> learner = expert_learner("mine", 0.5, start, weigh, learn)
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 3))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2)).losses.round(3).tolist()
    [0.5, 0.378, 0.269]
    """
    span = None
    with own_name(owner):
        if prior is not None:
            prior = check.non_negative("prior", prior, each=True)
        if low is not None or high is not None:
            low, high = 0.0 if low is None else low, 1.0 if high is None else high
            check.finite("low", low)
            check.finite("high", high)
            width = check.positive("high - low", high - low)
            span = (low, as_given(low + width, high))
    rule = owner, start, weigh, learn, unbounded
    hparams = ExpertHparams(own, prior, span, *rule, any_range=any_range, units=units)
    needs = (*expert_needs(owner, prior, any_range), *needs)
    facts = Facts(scale_free=any_range)
    return Learner(hparams, init, predict, update, facts=facts, needs=needs, theorems=theorems)


def expected_loss(action: PyTree, outcome: PyTree) -> Array:
    """The expected loss of a distribution; losses of experts without weight are not read.

    Use it where losses of sleeping experts are unknown (NaN). If all losses are known, it equals
    `olx.losses.linear_loss`.
    """
    part = lambda p, z: jnp.sum(jnp.where(p == 0, 0.0, p * jnp.where(p == 0, 0.0, z)))
    return jnp.asarray(sum(jax.tree.leaves(jax.tree.map(part, action, outcome))))


def for_estimates(learner: Learner) -> Learner:
    """The same learner for unbiased estimates of losses, which may be of any size."""
    hp = learner.hparams
    if not isinstance(hp, ExpertHparams):
        return learner
    if not hp.unbounded:
        raise RefusedType(
            f"`inner` must take losses of any size, as estimates are, got `{hp.owner}`, "
            "which is not made for estimates; take `olx.hedge`, `olx.experts.anytime_hedge` or "
            "`olx.experts.potential_experts`."
        )
    return dataclasses.replace(learner, hparams=dataclasses.replace(hp, estimated=True))


def init(hp: ExpertHparams, params: PyTree) -> ExpertState:
    prior = params if hp.prior is None else hp.prior
    with own_name(hp.owner):
        check.same_shape("prior", prior, "params", params)
    prior = jax.tree.map(lambda q, w: jnp.asarray(q, jnp.result_type(w)), prior, params)
    flat, unravel = ravel_pytree(prior)
    flat = flat / jnp.sum(flat)
    return ExpertState(unravel(flat), hp.start_fn(hp.own, flat))


def predict(hp: ExpertHparams, state: ExpertState, context: PyTree) -> PyTree:
    prior, unravel = ravel_pytree(state.prior)
    weights = hp.weigh_fn(hp.own, prior, state.stats)
    return unravel(normalized(prior, *weights, _confidence(hp, context)))


def update(hp: ExpertHparams, state: ExpertState, feedback: Feedback) -> ExpertState:
    prior, _ = ravel_pytree(state.prior)
    stats = hp.learn_fn(hp.own, prior, state.stats, seen(hp, state, feedback))
    if feedback.context is not None:
        awake = jnp.any(_confidence(hp, feedback.context) != 0)
        stats = jax.tree.map(lambda new, old: jnp.where(awake, new, old), stats, state.stats)
    return ExpertState(state.prior, stats)


def seen(hp: ExpertHparams, state: ExpertState, feedback: Feedback) -> Seen:
    """The losses and regrets of a round, with the losses of sleeping experts masked."""
    prior, _ = ravel_pytree(state.prior)
    log_share = log_normalized(prior, *hp.weigh_fn(hp.own, prior, state.stats))
    confidence = _confidence(hp, feedback.context)
    losses, played = ravel_pytree(feedback.outcome)[0], ravel_pytree(feedback.action)[0]
    if confidence is not None:
        awake = confidence != 0
        losses = jnp.where(awake, losses, 0.0 if hp.span is None else hp.span[0])
    if not hp.any_range:
        losses = _in_unit(hp, losses)
    # Minus the loss of the heaviest expert: equal losses then give regrets of exactly 0.
    center = lax.stop_gradient(of_heaviest(played, losses))
    over = losses - center
    mean = jnp.vdot(played, over)
    regret = mean - over
    if confidence is not None:
        regret = confidence * regret
        losses = confidence * losses + (1 - confidence) * (center + mean)
    weight = feedback.weight
    return Seen(weight * regret, weight * losses, log_share, feedback)


def _in_unit(hp: ExpertHparams, losses: Array) -> Array:
    """The losses in units of their range, from its lower end."""
    if hp.span is not None:
        losses = (losses - hp.span[0]) / (hp.span[1] - hp.span[0])
    name = "outcome" if hp.span is None else "(outcome - low) / (high - low)"
    with own_name(hp.owner):
        if hp.estimated:
            return check.non_negative(name, losses, each=True)
        return clip_to_unit(name, losses, hp.span)


def _confidence(hp: ExpertHparams, context: PyTree) -> Array | None:
    with own_name(hp.owner):
        return None if context is None else clip_to_unit("context", ravel_pytree(context)[0])


def normalized(prior: Array, log: Array, factor: Array, confidence: Array | None) -> Array:
    """Weights times confidences, divided by their sum; the prior if that sum is 0."""
    live = factor if confidence is None else factor * confidence
    top = lax.stop_gradient(highest(log, live > 0))
    over = log - jnp.where(top == lowest(top), 0.0, top)
    mass = live * jnp.exp(jnp.where(live > 0, over, 0.0))
    total = jnp.sum(mass)
    empty = total == 0  # False where it is NaN
    instead = prior if confidence is None else _prior_of_awake(prior, confidence)
    return jnp.where(empty, instead, mass / jnp.where(empty, 1.0, total))


def log_normalized(prior: Array, log: Array, factor: Array) -> Array:
    """The logarithm of `normalized` with all experts awake, without underflow.

    Experts without weight get the lowest finite number.
    """
    factor = jnp.where(jnp.any(factor > 0), factor, prior)
    live = factor > 0
    over = log - lax.stop_gradient(highest(log, live))
    logs = jnp.where(live, over, 0.0) + jnp.log(safe.or_one(factor, live))
    top = lax.stop_gradient(highest(logs, live))
    total = jnp.sum(jnp.where(live, jnp.exp(jnp.where(live, logs - top, 0.0)), 0.0))
    return jnp.where(live, logs - top - jnp.log(total), lowest(logs))


def of_heaviest(p: Array, losses: Array) -> Array:
    """The loss of the expert of largest weight; of several such experts, the smallest loss."""
    return -highest(-losses, p == jnp.max(p))


def _prior_of_awake(prior: Array, confidence: Array) -> Array:
    """The prior over the awake experts; uniform if it gives them no weight; 0 if all sleep."""
    awake = (confidence != 0).astype(prior.dtype)
    known = prior * confidence
    mass = jnp.where(jnp.any(known != 0), known, awake)
    total = jnp.sum(mass)
    return mass / safe.or_one(total, total != 0)


def highest(values: Array, among: Array) -> Array:
    """The largest of the values where `among` is true; the lowest finite number if none is."""
    return jnp.max(jnp.where(among, values, lowest(values)))  # -inf would prevent SIMD


def lowest(values: Array) -> Array:
    """The lowest finite number in the dtype of `values`."""
    return jnp.asarray(jnp.finfo(values.dtype).min, values.dtype)


def expm1(x: Array) -> Array:
    """$e^x - 1$ for small or negative $x$, to full precision near 0 too."""
    half = jnp.tanh(x / 2)
    return 2 * half / (1 - half)


def below_top(logs: Array, used: Array) -> Array:
    """Logarithms minus the largest used one: `exp` cannot overflow, and shares stay the same."""
    top = lax.stop_gradient(highest(logs, used))
    return logs - jnp.where(top == lowest(top), 0.0, top)
