r"""Follow one expert at a time, drawn from the distribution of an expert learner.

In round $t$ the learner draws $i_t \sim p_t$ and pays $\ell_{t, i_t}$. The action is the vertex
$e_{i_t}$, so `olx.losses.linear_loss` gives the loss of the expert drawn, and regret is defined as
for distributions.

`sampled` updates the expert learner as if it had played $p_t$. Its bounds for $p_t$ then hold for
the draws up to a random deviation. `committed` updates the expert learner with the draw itself: the
regrets are $\ell_{t,i_t} - \ell_{t,i}$.

Two theorems hold with probability at least $1 - \delta$. `sampled_draws`: with $\rho_t = \max_i
\ell_{t,i} - \min_i \ell_{t,i}$ and $\sum_{s \le T} \rho_s^2 \le V$, on losses fixed before the
draws, for all $t \le T$ at once,

$$\sum_{s \le t} \ell_{s, i_s} - \langle u, \ell_s \rangle \le R_t(u) +
  \sqrt{\tfrac12 V \ln\tfrac1\delta}.$$

`committed_draws`: the learner pays for the draws, so the bound on its mean potential holds in
expectation. By Markov's inequality at $\varepsilon = \delta / N$, with probability at least $1 -
\delta$ the regret of the draws to expert $i$ is at most

$$\frac1\eta \Big( \ln\frac1{q_i \delta} + t \ln\cosh\eta \Big) \quad \text{or} \quad
  \sqrt{3 t \ln\Big( 1 + \frac1{2 q_i \delta} \sum_{s \le t} (e^{4 / (3 s)} - 1) \Big)}.$$

Luo, Optimal and Adaptive Online Learning, 2016, section 2.1.5; Azuma, Weighted Sums of Certain
Dependent Random Variables, 1967.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.experts.account import Account, add_round, certificate, mixture, open_account
from olx.experts.ada_normal_hedge import weigh as by_ada_normal
from olx.experts.base import ExpertHparams, seen
from olx.experts.hedge import has_fixed_step, step_of
from olx.experts.normal_hedge import learn_dt as by_normal_hedge_dt
from olx.experts.quantiles import log_cosh
from olx.losses.points import linear_feedback
from olx.theorem import About, Theorem
from olx.wrapper import INNER, lift_needs


@pytree
class SampledHparams:
    inner: Learner
    key: Array


class SampledState(NamedTuple):
    inner: PyTree
    key: Array  # for the draw of this round; predicting twice draws the same


@public
def sampled(inner: Learner, key: Array) -> Learner:
    """Play a vertex drawn from the distribution of `inner`; update `inner` on the distribution.

    inner: any learner whose action is a distribution.
    key: a key of `jax.random`; a batch over keys repeats the game with new draws.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 8))
    >>> learner = sampled(olx.hedge(2.0), jax.random.key(0))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2) / 2).losses.tolist()[-4:]
    [0.0, 0.0, 0.0, 0.0]
    """
    return _following_draws(inner, key, update)


@public
def committed(inner: Learner, key: Array) -> Learner:
    """Like `sampled`, but `inner` is updated as if it had played the vertex drawn."""
    return _following_draws(inner, key, update_committed)


def _following_draws(inner: Learner, key: Array, update: Callable[..., SampledState]) -> Learner:
    check.key(key)
    check.instance("inner", inner, Learner)
    needs = lift_needs(INNER, inner)
    return Learner(SampledHparams(inner, key), init, predict, update, needs=needs)


def init(hp: SampledHparams, params: PyTree) -> SampledState:
    return SampledState(hp.inner.init(params), hp.key)


def predict(hp: SampledHparams, state: SampledState, context: PyTree) -> Float[Array, " N"]:
    return draw(state.key, hp.inner.predict(state.inner, context))


def update(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return _next(hp, state, on_average(hp, state, feedback))


def update_committed(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return _next(hp, state, feedback)


def draw(key: Array, p: Float[Array, " N"]) -> Float[Array, " N"]:
    """A vertex drawn with probabilities `p`; 0 if all are 0, NaN if one is NaN."""
    vertex = jax.nn.one_hot(jax.random.categorical(key, jnp.log(p)), p.shape[0], dtype=p.dtype)
    total = jnp.sum(p)
    return jnp.where(jnp.isnan(total), jnp.nan, jnp.where(total == 0, 0.0, vertex))


def on_average(hp: SampledHparams, state: SampledState, feedback: Feedback) -> Feedback:
    p = hp.inner.predict(state.inner, feedback.context)
    return linear_feedback(p, feedback.outcome, feedback.weight, feedback.context)


def _next(hp: SampledHparams, state: SampledState, feedback: Feedback) -> SampledState:
    return SampledState(hp.inner.update(state.inner, feedback), jax.random.split(state.key, 1)[0])


class Luck(NamedTuple):
    inner: PyTree  # the account of the first theorem of the expert learner
    regret: Float[Array, ""]
    paid: Float[Array, ""]
    squares: Float[Array, ""]  # the sum of squared ranges of losses


@public
def sampled_draws(delta: Scalar, squares: Scalar) -> Theorem:
    r"""The regret of the draws of `sampled`, for all rounds at once, with probability $1 - \delta$.

    It uses the first theorem of the expert learner. Losses must be fixed before the draws, and all
    experts awake.

    squares: $V$, at least the sum of $\rho_t^2$ over all rounds; for losses in [0, 1] the number
        of rounds is enough.
    """
    delta = check.above("delta", delta, 0.0, 1.0)
    squares = check.non_negative("squares", squares)
    parts = _open_luck, _add_luck, Partial(_luck_sides, delta, squares)
    return Theorem("sampled_draws", "Azuma 1967", *parts, about=_SAMPLED)


def _is_sampled(learner: Learner) -> bool:
    return learner.update_fn is update and len(learner.hparams.inner.theorems) > 0


_SAMPLED = About("a `sampled` learner of experts that carry a theorem", _is_sampled)


def _open_luck(hp: SampledHparams, state: SampledState, u: PyTree) -> Luck:
    inner = hp.inner
    zero = jnp.zeros((), check.comparator(u, inner.predict(state.inner)).dtype)
    return Luck(inner.theorems[0].init_fn(inner.hparams, state.inner, u), zero, zero, zero)


def _add_luck(
    hp: SampledHparams, account: Luck, state: SampledState, feedback: Feedback, u: PyTree
) -> Luck:
    inner, mean = hp.inner, on_average(hp, state, feedback)
    one, weight, losses = inner.theorems[0], feedback.weight, feedback.outcome
    spread = weight * (jnp.max(losses) - jnp.min(losses))
    return Luck(
        one.add_fn(inner.hparams, account.inner, state.inner, mean, u),
        account.regret + weight * (feedback.value - losses @ u),
        account.paid + jnp.abs(weight * feedback.value),
        account.squares + spread**2,
    )


def _luck_sides(
    delta: Scalar, squares: Scalar, hp: SampledHparams, account: Luck, u: PyTree
) -> Certificate:
    proof = hp.inner.theorems[0].sides_fn(hp.inner.hparams, account.inner, u)
    luck = jnp.sqrt(jnp.log(1 / delta) / 2 * squares * jnp.ones_like(account.squares))
    scale = proof.scale + luck + account.paid
    few = account.squares <= squares * (1 + 64 * jnp.finfo(luck.dtype).eps)
    proof = Certificate(account.regret, proof.right + luck, scale).under(proof.conditions)
    return proof.given("squared ranges must add up to at most `squares`", few)


@public
def committed_draws(delta: Scalar) -> Theorem:
    r"""The regret of the draws of `committed` to a mixture, with probability at least $1 - \delta$.

    It holds for all mixtures at once, on losses fixed before the draws: for `anytime_hedge` after
    all rounds at once, for `normal_hedge_dt` after each single round.
    """
    delta = check.above("delta", delta, 0.0, 1.0)
    parts = _open_draws, _add_draw, Partial(_draw_sides, delta)
    return Theorem("committed_draws", "Luo 2016, section 2.1.5", *parts, about=_COMMITTED)


def _is_committed(learner: Learner) -> bool:
    if learner.update_fn is not update_committed:
        return False
    experts = learner.hparams.inner
    hp = experts.hparams
    if not isinstance(hp, ExpertHparams):
        return False
    zeroth = hp.weigh_fn is by_ada_normal and hp.own is not None
    return has_fixed_step(experts) or hp.learn_fn is by_normal_hedge_dt or zeroth


_COMMITTED = About(
    "a `committed` learner of an `anytime_hedge` with a fixed step, of `normal_hedge_dt` or of "
    "`ada_normal_hedge` with the exponent 0",
    _is_committed,
)


class Step(NamedTuple):
    eta: Float[Array, ""]
    excess: Float[Array, ""]  # D
    zeroth: Bool[Array, ""]  # whether the exponent is 0


def _open_draws(hp: SampledHparams, state: SampledState, u: PyTree) -> Account:
    inner = hp.inner.hparams
    account = open_account(state.inner)
    mixture(account, u)
    eta = zero = jnp.zeros((), account.regret.dtype)
    other = inner.weigh_fn is by_ada_normal
    if has_fixed_step(hp.inner):
        eta = step_of(inner, state.inner)
    zeroth = jnp.asarray(inner.own == 0) if other else jnp.ones((), bool)
    return account._replace(own=Step(eta, zero, zeroth))


def _add_draw(
    hp: SampledHparams, account: Account, state: SampledState, feedback: Feedback, u: PyTree
) -> Account:
    excess = account.own.excess + jnp.expm1(4 / (3 * account.clock.now)) / 2
    what = seen(hp.inner.hparams, state.inner, feedback)
    return add_round(account, what, account.own._replace(excess=excess))


def _draw_sides(delta: Scalar, hp: SampledHparams, account: Account, u: PyTree) -> Certificate:
    flat, prior, own, t = mixture(account, u), account.flat_prior, account.own, account.rounds
    known = prior > 0
    rarity = 1 / safe.or_one(prior, known) / delta
    if has_fixed_step(hp.inner):
        each = (jnp.log(rarity) + t * log_cosh(own.eta)) / own.eta
    else:
        each = jnp.sqrt(3 * t * jnp.log1p(own.excess * rarity))
    right = jnp.where(jnp.any((flat > 0) & ~known), jnp.inf, each @ flat)
    proof = certificate(hp.inner.hparams, account, u, right)
    return proof.given("the exponent must be 0", own.zeroth)
