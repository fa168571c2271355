r"""Theorems about potentials: exponential weights, draws, points of a convex set, and chips.

Weights from a potential keep its mean from rising. For exponential weights with a fixed step,

$$\sum_i q_i e^{\eta R_{t,i}} \le \cosh(\eta)^t, \qquad \text{so} \quad R_t^\varepsilon \le
  \frac{\ln(1 / \varepsilon) + t \ln\cosh\eta}\eta \le \frac{\ln(1 / \varepsilon)}\eta + \frac{t
  \eta}2.$$

Where experts are drawn and the learner is charged with the draws this holds in expectation, and by
Markov's inequality at $\varepsilon = \delta / N$ with probability at least $1 - \delta$.

Luo, Optimal and Adaptive Online Learning, 2016, sections 2.1.2 to 2.1.5, appendix A.3.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from olx import _check as check
from olx.certificate import DOMAIN, Certificate
from olx.core import Learner, Run, Scalar, Trace
from olx.experts.ada_normal_hedge import weigh as by_ada_normal
from olx.experts.base import ExpertHparams
from olx.experts.conversions import update_experts, update_game
from olx.experts.hedge import learn as by_hedge
from olx.experts.history import LIGHT, History, certificate, history
from olx.experts.normal_hedge_dt import learn as by_normal_hedge_dt
from olx.experts.particles import ParticlesHparams, as_experts
from olx.experts.sampled import SampledHparams, update_committed
from olx.hindsight.about import fixed
from olx.hindsight.experts import quantile_bound, quantile_regret, rank_of
from olx.hindsight.game import About, judged, played

UNIFORM = "the prior must be uniform"


def _fixed_hedge(hp: PyTree) -> bool:
    return isinstance(hp, ExpertHparams) and hp.learn_fn is by_hedge and fixed(hp.own)


def _drawn(learner: Learner) -> bool:
    if learner.update_fn is not update_committed:
        return False
    hp = learner.hparams.inner.hparams
    other = isinstance(hp, ExpertHparams) and (
        hp.learn_fn is by_normal_hedge_dt or (hp.weigh_fn is by_ada_normal and hp.own is not None)
    )
    return _fixed_hedge(hp) or other


FIXED_HEDGE = About("an `anytime_hedge` with a fixed step", lambda one: _fixed_hedge(one.hparams))
DRAWN = About(
    "a `committed` learner of an `anytime_hedge` with a fixed step, of `normal_hedge_dt` or of "
    "`ada_normal_hedge` with the exponent 0",
    _drawn,
)
POINTS = About(
    "a `particles` learner of one of `olx.experts` that comes with a bound",
    lambda one: (
        isinstance(one.hparams, ParticlesHparams)
        and isinstance(one.hparams.inner.hparams, ExpertHparams)
        and one.bound_fn is not None
    ),
)
CONVERTED = About(
    "one of `game_from_experts` or `experts_from_game`",
    lambda one: one.update_fn in (update_experts, update_game),
)


def exponential_bound(learner: Learner, run: Run, epsilon: float) -> Certificate:
    r"""EXP: $\varepsilon$-regret of `anytime_hedge` with a fixed step, from a uniform prior.

    Printed with $t \eta / 2$.
    """
    game = played("exponential_bound", FIXED_HEDGE, learner, run)
    past = history(learner.hparams, game.trace)
    rank_of("exponential_bound", past.prior.size, epsilon)
    eta = _step(learner.hparams, game.trace, past)
    paid = jnp.log(1 / jnp.asarray(epsilon, eta.dtype)) / eta
    right, printed = paid + past.rounds * _log_cosh(eta) / eta, paid + past.rounds * eta / 2
    left, size = quantile_regret(past.total, epsilon), past.rounds + jnp.abs(right)
    sides = [past.unit * side for side in (left, right, size, printed)]
    proof = Certificate(*sides, theorem="Luo 2016, EXP").given(LIGHT, past.light)
    even = jnp.max(past.prior) <= jnp.min(past.prior) * (1 + 1e-6)
    return judged(game, proof.given(UNIFORM, even))


def committed_bound(learner: Learner, run: Run, u: PyTree, delta: Scalar) -> Certificate:
    r"""Regret of the draws of `committed` to a mixture, with probability at least $1 - \delta$.

    For all mixtures at once, on losses fixed before the draws; of `anytime_hedge` after all rounds
    at once, of `normal_hedge_dt` after each round. To expert $i$ it is at most

    $$\frac1\eta \Big( \ln\frac1{q_i \delta} + t \ln\cosh\eta \Big) \quad \text{or} \quad
      \sqrt{3 t \ln\Big( 1 + \frac1{2 q_i \delta} \sum_{s \le t} (e^{4 / (3 s)} - 1) \Big)}.$$
    """
    delta = check.above("committed_bound", "delta", delta, 0.0, 1.0)
    game = played("committed_bound", DRAWN, learner, run, u)
    hp: SampledHparams = learner.hparams
    inner, trace = hp.inner.hparams, Trace(game.trace.state.inner, game.trace.feedback)
    past, flat = history(inner, trace), ravel_pytree(game.u)[0]
    t, known = past.rounds[:, None], past.prior > 0
    rarity = 1 / jnp.where(known, past.prior, 1.0) / delta
    if _fixed_hedge(inner):
        eta = _step(inner, trace, past)[:, None]
        each, zero = (jnp.log(rarity) + t * _log_cosh(eta)) / eta, True
    else:
        paid = jnp.cumsum(jnp.expm1(4 / (3 * past.rounds)))[:, None] / 2
        each = jnp.sqrt(3 * t * jnp.log1p(paid * rarity))
        zero = inner.learn_fn is by_normal_hedge_dt or jnp.asarray(inner.own == 0)
    right = jnp.where(jnp.any((flat > 0) & ~known), jnp.inf, each @ flat)
    proof = certificate(past, flat, right, "Luo 2016, section 2.1.5")
    return judged(game, proof.given("the exponent must be 0", zero))


def points_bound(
    learner: Learner, run: Run, u: PyTree, epsilon: float, low: Scalar, high: Scalar
) -> Certificate:
    r"""Theorem 22 on points: regret of `particles` to any decision `u` of a box, on convex losses.

    At most the bound on $\varepsilon$-regret of the expert learner and $\rho$ for every round: the
    least $\rho$ for which $\lceil \varepsilon P\rceil$ points lie in the box shrunk to $u$ by
    $\rho$. Of points all over the box that is about $\varepsilon^{1/d}$, as in the theorem.

    low, high: the ends of the box, numbers or arrays like a point.
    """
    game = played("points_bound", POINTS, learner, run, u)
    hp, trace = learner.hparams, game.trace
    seen = jax.vmap(lambda *one: as_experts(hp, *one))(*trace)
    past = history(hp.inner.hparams, Trace(trace.state, seen))
    proof = quantile_bound(hp.inner, Run(None, None, Trace(trace.state, seen)), epsilon)
    points = jax.vmap(lambda point: ravel_pytree(point)[0])(hp.points)
    at = ravel_pytree(game.u)[0]
    ends = [jnp.broadcast_to(jnp.asarray(end, at.dtype), at.shape) for end in (low, high)]
    room = jnp.where(points > at, ends[1] - at, at - ends[0])
    shrunk = jnp.max(jnp.abs(points - at) / jnp.where(room > 0, room, jnp.inf), axis=1)
    rho = jnp.sort(shrunk)[rank_of("points_bound", shrunk.size, epsilon) - 1]
    value, weight = trace.feedback.value, trace.feedback.weight
    other = jax.vmap(lambda feedback: feedback.loss(game.u))(trace.feedback)
    left = jnp.cumsum(weight * (value - other))
    more = past.unit * rho * jnp.cumsum(jnp.broadcast_to(weight, value.shape))
    scale = proof.scale + jnp.cumsum(jnp.abs(weight * value) + jnp.abs(weight * other))
    result = Certificate(left, proof.right + more, scale, theorem="Luo 2016, theorem 22")
    inside = lambda part: jnp.all((part >= ends[0]) & (part <= ends[1]))
    result = result.under(proof.conditions).given(DOMAIN, inside(at))
    return judged(game, result.given("points must lie in the box", inside(points)))


def equivalence_bound(learner: Learner, run: Run, margin: Scalar) -> Certificate:
    r"""Theorem 1, after every round: the share of losers in one game, at most that in the other.

    Of `game_from_experts` the share of chips at or below $-R$, against the share of experts whose
    regret is at least $R$. Of `experts_from_game` the other way round, where both are equal: an
    $\varepsilon$-regret of $R$ or more takes a share of $\varepsilon$ of the chips.

    margin: $R$.
    """
    game = played("equivalence_bound", CONVERTED, learner, run)
    feedback = game.trace.feedback
    flat = jax.vmap(lambda leaf: ravel_pytree(leaf)[0])
    told, p = flat(feedback.outcome), flat(feedback.action)
    weight = jnp.broadcast_to(feedback.weight, told.shape[:1])[:, None]
    paid = jnp.sum(p * told, axis=1, keepdims=True)
    behind = jnp.cumsum(weight * (paid - told), axis=0)  # regrets as the learner inside sees them
    total = jnp.cumsum(weight * told, axis=0)
    experts = learner.update_fn is update_experts
    own = jnp.cumsum(weight * paid, axis=0) - total if experts else -total
    rounding = 64 * jnp.finfo(told.dtype).eps
    slack = rounding * (1 + jnp.cumsum(jnp.max(jnp.abs(told), axis=1, keepdims=True), axis=0))
    share = lambda size: jnp.mean((size >= margin).astype(told.dtype), axis=1)
    left, right = share(own), share(behind + slack)
    proof = Certificate(left, right, jnp.ones_like(left), theorem="Luo 2016, theorem 1")
    forward = jnp.asarray(experts) | (paid[:, 0] >= -rounding)
    proof = proof.given("moves must be at least 0 in the mean", forward)
    apart = weight[:, 0] * (jnp.max(told, axis=1) - jnp.min(told, axis=1))
    near = apart <= 1 + rounding
    return judged(game, proof.given("no two moves or losses may differ by more than 1", near))


def _step(hp: ExpertHparams, trace: Trace, past: History) -> Array:
    at = lambda stats, _: jnp.asarray(hp.own.at(stats.step), past.prior.dtype)
    return jax.vmap(at)(trace.state.stats, past.rounds)


def _log_cosh(eta: Array) -> Array:
    return jnp.logaddexp(eta, -eta) - jnp.log(jnp.asarray(2.0, eta.dtype))
