r"""Expert learners without a range of losses: each expert has a unit that is learned.

The learner inside wants regrets of at most 1. Expert $i$ has a unit $B_i$: its first regret that is
not 0, doubled as often as a later one exceeds it. With $w$ the weights of the learner inside, and
regrets clipped to the units known before the round,

$$p_i \propto \frac{w_i}{B_i}, \qquad \rho_i = \max(-B_i, \min(B_i, r_i)), \qquad
  \bar r_i = \begin{cases} \kappa \rho_i & \rho_i > 0 \\ \rho_i & \text{else,} \end{cases}$$

with the largest $\kappa \le 1$ for which $\sum_i p_i \bar r_i \le 0$. It is 1 unless an expert that
has weight loses more than its unit. The learner inside gets the regrets $\bar r_i / B_i$, for which
$\sum_i w_i \bar r_i / B_i \le 0$: its proof needs no more. After the round the units grow, and its
statistics are expressed in the new ones. An expert without a regret so far has no weight, unless
this holds for all who are awake.

Let $D_T$ be what rounds and new units add to the mean potential of the learner inside, and $\langle
v, \bar R\rangle \le b(v, D_T)$ its bound on regrets in units of the experts. With $\beta = \sum_i
u_i B_i$ and $v_i = u_i B_i / \beta$, for every mixture $u$

$$R_T(u) \le \beta \, b(v, D_T) + \sum_{t \le T} \sum_i u_i (r_{t,i} - \bar r_{t,i}).$$

The last sum is the price of clipping. Regrets of an expert above its own unit add at most its last
unit to it, as units only grow. The factor $\kappa$ adds at most the positive regret of a round, in
rounds that increase the unit of an expert that has weight.

Cutkosky, Artificial Constraints and Hints for Unbounded Online Learning, 2019, and Mhammedi,
Koolen, van Erven, Lipschitz Adaptivity with Multiple Learning Rates, 2019, clip to the range known
before the round. A unit per expert is in Wintenberger, Optimal Learning with Bernstein Online
Aggregation, 2017.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, public
from olx.certificate import Certificate
from olx.core import Learner
from olx.experts.account import Account, certificate_of_any_range, expert_theorem, mixture
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner
from olx.experts.needs import rounding
from olx.theorem import ZERO, latest


class AnyRangeStats(NamedTuple):
    inner: PyTree  # of the learner inside, in units of the experts
    unit: Float[Array, " N"]  # B; 0 for an expert without a regret so far


@public
def any_range(inner: Learner) -> Learner:
    """Let `inner` learn from losses of any range, which need not be known.

    inner: `ada_normal_hedge`, `adapt_ml_prod`, `boa` or `squint`, without `low` and `high`; its
        prior is kept.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, 1e6 * jnp.array([[1.0, 0.0]] * 4))
    >>> learner = any_range(olx.experts.squint())
    >>> run = olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> (run.losses / 1e4).astype(int).tolist()
    [50, 50, 34, 19]
    """
    check.instance("inner", inner, Learner)
    hp = inner.hparams
    if not isinstance(hp, ExpertHparams) or hp.units is None:
        raise RefusedType(
            "`inner` must be `ada_normal_hedge`, `adapt_ml_prod`, `boa` or `squint`, got "
            f"{inner!r}; give it the range by `low` and `high`, or take `ml_poly`."
        )
    if hp.span is not None:
        raise RefusedType(f"`inner` must have no range of its own, got {inner!r}; leave it out.")
    parts = inner, start, weigh, learn, any_range_regret
    return expert_learner("any_range", *parts, prior=hp.prior, any_range=True)


def start(inner: Learner, prior: Array) -> AnyRangeStats:
    hp = inner.hparams
    return AnyRangeStats(hp.start_fn(hp.own, prior), jnp.zeros_like(prior))


def weigh(inner: Learner, prior: Array, stats: AnyRangeStats) -> Weights:
    hp = inner.hparams
    log, factor = hp.weigh_fn(hp.own, prior, stats.inner)
    return Weights(log, safe.divide(factor, stats.unit))


def learn(inner: Learner, prior: Array, stats: AnyRangeStats, seen: Seen) -> AnyRangeStats:
    hp, unit = inner.hparams, _grown_unit(stats.unit, seen.regret)
    told = seen._replace(regret=safe.divide(clipped_regret(stats.unit, seen), stats.unit))
    own = hp.learn_fn(hp.own, prior, stats.inner, told)
    return AnyRangeStats(hp.units.rescale_fn(hp.own, own, _ratio(stats.unit, unit)), unit)


def clipped_regret(unit: Float[Array, " N"], seen: Seen) -> Float[Array, " N"]:
    r"""The regrets $\bar r$ of a round."""
    share, regret = jnp.exp(seen.log_share), jnp.clip(seen.regret, -unit, unit)
    above, below = share @ jnp.maximum(regret, 0.0), share @ jnp.maximum(-regret, 0.0)
    lost = jnp.any((seen.regret < -unit) & (share > 0))
    factor = safe.divide(below, above, 1.0, lost & (above > below))
    return jnp.where(regret > 0, factor * regret, regret)


def _grown_unit(unit: Array, regret: Array) -> Array:
    """The units after a round; what exceeds a unit by rounding only does not count."""
    size = jnp.abs(regret)
    least = safe.divide(size, unit) / (1 + rounding(unit.dtype, 1.0))
    _, doublings = jnp.frexp(lax.stop_gradient(least))
    power = jnp.ldexp(jnp.ones_like(unit), jnp.maximum(doublings, 0))
    return jnp.where(unit > 0, unit * power, size)


def _ratio(old: Array, new: Array) -> Array:
    """Old units in terms of new ones; 1 for an expert that had no unit."""
    return jnp.where(old > 0, safe.divide(old, new), 1.0)


class Sums(NamedTuple):
    excess: Float[Array, ""]  # D
    paid: Float[Array, " N"]  # the price of clipping, and what the potential does not bound
    stats: PyTree  # after the last round


def open_sums(hp: ExpertHparams, prior: Array) -> Sums:
    return Sums(ZERO, jnp.zeros_like(prior), start(hp.own, prior))


def terms(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Sums:
    inner, prior, before = hp.own.hparams, account.flat_prior, state.stats
    after, clipped = learn(hp.own, prior, before, seen), clipped_regret(before.unit, seen)
    told, ratio = safe.divide(clipped, before.unit), _ratio(before.unit, after.unit)
    added, cost = inner.units.added_fn(inner.own, prior, before.inner, told, ratio)
    paid = before.unit * cost + seen.regret - clipped
    return Sums(added, paid, jax.tree.map(latest, after))


def both_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """The inequality above."""
    inner, (excess, paid, stats) = hp.own.hparams, account.own
    flat, prior = mixture(account, u), account.flat_prior
    total = stats.unit @ flat
    relative = safe.divide(stats.unit * flat, total, prior)
    bound = inner.units.bound_fn(inner.own, prior, stats.inner, relative, excess)
    bound = jnp.where(jnp.any((relative > 0) & (prior == 0)), jnp.inf, bound)
    right = jnp.where(total > 0, total * bound, 0.0) + paid @ flat
    return certificate_of_any_range(account, u, jnp.max(stats.unit), right)


any_range_regret = expert_theorem(
    "any_range", "clipped to the range so far", both_sides, terms, open_sums
)
