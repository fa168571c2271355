r"""Potentials of the regrets that need no step size: NormalHedge, NormalHedge.DT, the 2-norm.

`normal_hedge` has a Gaussian potential whose width fits the regrets,

$$p_{t,i} \propto q_i [R_i]_+ e^{[R_i]_+^2 / c}, \qquad \sum_i q_i e^{[R_i]_+^2 / c} = e,$$

with the regrets before round $t$; $p_t$ is the prior while no regret is positive. The root $v = 1 /
c$ of the convex, rising $v \mapsto \ln \sum_i q_i e^{v [R_i]_+^2} = 1$ is found by Newton's method
from above, where it never overshoots. With the root $c$ after round $T$, by Jensen,

$$R_T(u) \le \sqrt{c_{T+1} (1 + \mathrm{RE}(u \| q))}.$$

`normal_hedge_dt` is for discrete time, without root finding,

$$p_{t,i} \propto q_i \big( e^{[R_{t-1,i} + 1]_+^2 / (3 t)} - e^{[R_{t-1,i} - 1]_+^2 / (3 t)}
  \big).$$

It needs no horizon, and gives no weight to an expert with regret at most $-1$. Its bound holds for
all mixtures at once: with $S$ the support of $u$,

$$R_T(u) \le \sqrt{3 T \big( \mathrm{RE}(u \| q) + \ln(D_T + q(S)) \big)}, \qquad
  D_T = \frac12 \sum_{t \le T} (e^{4 / (3 t)} - 1).$$

Its weights, and those of `ada_normal_hedge`, are the differences $\frac12 (\Phi(R + 1, C + 1) -
\Phi(R - 1, C + 1))$ of the potential $\Phi(R, C) = e^{[R]_+^2 / (3 C)}$. With $b = [R - 1]_+^2 / (3
(C + 1))$ and $g$ the difference of the two squares, such a weight is $\frac12 e^b (e^{g / (3 (C +
1))} - 1)$. This form has no cancellation. Its second factor does not overflow: $|R| \le C$, so its
exponent is at most $\frac43$.

`two_norm` has a quadratic potential,

$$p_{t,i} \propto q_i \big( [R_{t-1,i} + 1]_+^2 - [R_{t-1,i} - 1]_+^2 \big), \qquad
  \sum_i q_i [R_{t,i}]_+^2 \le t,$$

and by Cauchy and Schwarz, for every mixture $u$ and after every round,

$$R_T(u) \le \sqrt{T \sum_i u_i^2 / q_i},$$

which is $\sqrt{T / \varepsilon}$ for the uniform mixture of the best $\varepsilon N$ experts and a
uniform prior.

Chaudhuri, Freund, Hsu, A Parameter-free Hedging Algorithm, 2009; Luo, Optimal and Adaptive Online
Learning, 2016, lemmas 1 and 2, corollaries 1 and 2, section 2.3.1.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._refusal import public
from olx.certificate import Certificate
from olx.convex.roots import root
from olx.core import Learner, Scalar
from olx.experts.account import Account, certificate, expert_theorem, mixture, relative_entropy
from olx.experts.base import ExpertHparams, ExpertState, Seen, Weights, expert_learner, expm1
from olx.theorem import ZERO


@public
def normal_hedge(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """NormalHedge with a prior over the experts.

    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[0.0, 0.5, 1.0]] * 4))
    >>> run = olx.rollout(normal_hedge(), olx.losses.linear_loss, rounds, jnp.ones(3))
    >>> run.losses.tolist()
    [0.5, 0.0, 0.0, 0.0]
    """
    parts = None, start, weigh, learn, by_width
    return expert_learner("normal_hedge", *parts, prior=prior, low=low, high=high)


def start(_: PyTree, prior: Array) -> Float[Array, " N"]:
    return jnp.zeros_like(prior)


def weigh(_: PyTree, prior: Array, regret: Array) -> Weights:
    ahead = jnp.maximum(regret, 0.0)
    return Weights(inverse_width(prior, ahead**2) * ahead**2, prior * ahead)


def learn(_: PyTree, prior: Array, regret: Array, seen: Seen) -> Array:
    return regret + seen.regret


def width_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """The inequality above: the regret in terms of the current width of the potential."""
    prior, squares = account.flat_prior, jnp.maximum(account.regret, 0.0) ** 2
    width = jnp.where(jnp.any(squares > 0), 1 / inverse_width(prior, squares), 0.0)
    entropy = relative_entropy(mixture(account, u), prior)
    return certificate(hp, account, u, jnp.sqrt(width * (1 + entropy)))


by_width = expert_theorem("by_width", "NormalHedge, by its width", width_sides)


def inverse_width(prior: Float[Array, " N"], squares: Float[Array, " N"]) -> Array:
    r"""The $v$ with $\ln \sum_i q_i e^{v x_i} = 1$ for `squares` $x \ge 0$; 1 if all are 0."""
    used = prior > 0
    top = lax.stop_gradient(jnp.max(jnp.where(used, squares, 0.0)))  # only scales the problem
    unit = safe.or_one(top, top != 0)
    x = jnp.where(top == 0, 1.0, jnp.where(used, squares / unit, 0.0))

    fixed = lax.stop_gradient((prior, x))
    above = 1 / jnp.max(fixed[1] / (1 - jnp.log(safe.or_one(fixed[0], used))))
    return root(Partial(_excess, prior, x), jnp.zeros_like(above), 2 * above, above) / unit


def _excess(prior: Array, x: Array, v: Array) -> Array:
    return v + jnp.log(jnp.sum(prior * jnp.exp(v * (x - 1)))) - 1


class NormalHedgeDTStats(NamedTuple):
    regret: Float[Array, " N"]
    clock: Clock
    beyond: Float[Array, ""]  # the sum of [weight - 1]_+ over rounds


@public
def normal_hedge_dt(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """NormalHedge.DT with a prior over the experts.

    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> run = olx.rollout(normal_hedge_dt(), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(2).tolist()
    [0.5, 0.09, 0.0, 0.0]
    """
    parts = start_dt, weigh_dt, learn_dt, normal_hedge_dt_regret
    return expert_learner("normal_hedge_dt", None, *parts, prior=prior, low=low, high=high)


def start_dt(_: PyTree, prior: Array) -> NormalHedgeDTStats:
    zero = jnp.zeros((), prior.dtype)
    return NormalHedgeDTStats(jnp.zeros_like(prior), clock.start(None, prior), zero)


def weigh_dt(_: PyTree, prior: Array, stats: NormalHedgeDTStats) -> Weights:
    return normal_weights(prior, stats.regret, stats.clock.past + stats.beyond)


def learn_dt(_: PyTree, prior: Array, stats: NormalHedgeDTStats, seen: Seen) -> NormalHedgeDTStats:
    beyond = jnp.maximum(seen.feedback.weight - 1, 0.0)  # so that |R| <= C
    return NormalHedgeDTStats(
        stats.regret + seen.regret,
        clock.tick(None, stats.clock, seen.feedback),
        stats.beyond + beyond,
    )


def open_excess(hp: ExpertHparams, prior: Array) -> Array:
    return ZERO


def excess_term(hp: ExpertHparams, account: Account, state: ExpertState, seen: Seen) -> Array:
    """What a round adds to $D_T$."""
    return jnp.expm1(4 / (3 * account.clock.now)) / 2


def dt_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    r"""Corollary 2 for mixtures; `published` uses $D_T \le \frac12 (e^{4/3} - 1)(1 + \ln T)$."""
    t = account.rounds
    most = float(np.expm1(4 / 3)) / 2 * (1 + jnp.log(t))
    right = lambda excess: regret_bound(
        mixture(account, u), account.flat_prior, t * jnp.ones_like(account.regret), excess
    )
    return certificate(hp, account, u, right(account.own), right(most))


normal_hedge_dt_regret = expert_theorem(
    "normal_hedge_dt_regret", "Luo 2016, corollary 2", dt_sides, excess_term, open_excess
)


def difference(regret: Array) -> Array:
    r"""$[R + 1]_+^2 - [R - 1]_+^2$."""
    return jnp.where(regret >= 1, 4 * regret, jnp.maximum(regret + 1, 0.0) ** 2)


def normal_weights(prior: Array, regret: Array, size: Array) -> Weights:
    scale = 1 / (3 * (size + 1))
    log = jnp.maximum(regret - 1, 0.0) ** 2 * scale
    return Weights(log, prior * expm1(difference(regret) * scale))


def regret_bound(
    u: Float[Array, " N"], prior: Float[Array, " N"], size: Array, excess: Array
) -> Array:
    r"""The bound on the regret to a mixture that follows from $\sum_i q_i (\Phi_i - 1) \le D$.

    With $S$ the support of $u$, $\sum_{i \in S} q_i \Phi_i \le D + q(S)$; by Jensen $\sum_i u_i
    [R_i]_+^2 / (3 C_i) \le \mathrm{RE}(u \| q) + \ln(D + q(S))$; by Cauchy and Schwarz

    $$\langle u, R\rangle \le \sqrt{3 \langle u, C\rangle (\mathrm{RE}(u \| q) + \ln(D + q(S)))}.$$

    size, excess: $C$ and $D$.
    """
    return jnp.sqrt(3 * (size @ u) * price(u, prior, excess))


def price(u: Float[Array, " N"], prior: Float[Array, " N"], excess: Array) -> Array:
    r"""$\mathrm{RE}(u \| q) + \ln(D + q(S))$."""
    support = jnp.sum(jnp.where(u > 0, prior, 0.0))
    return jnp.maximum(relative_entropy(u, prior) + jnp.log(excess + support), 0.0)  # rounding


@public
def two_norm(
    prior: PyTree = None, *, low: Scalar | None = None, high: Scalar | None = None
) -> Learner:
    """The 2-norm algorithm with a prior over the experts.

    prior: non-negative weights of the experts; `params` if None.
    low: the least loss; 0 if None.
    high: the largest loss; 1 if None.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0]] * 4))
    >>> run = olx.rollout(two_norm(), olx.losses.linear_loss, rounds, jnp.ones(2))
    >>> run.losses.round(3).tolist()
    [0.5, 0.1, 0.0, 0.0]
    """
    parts = None, start, weigh_by_squares, learn, two_norm_regret
    return expert_learner("two_norm", *parts, prior=prior, low=low, high=high)


def weigh_by_squares(_: PyTree, prior: Array, regret: Array) -> Weights:
    return Weights(jnp.zeros_like(regret), prior * difference(regret))


def two_norm_sides(hp: ExpertHparams, account: Account, u: PyTree) -> Certificate:
    """Corollary 1 for mixtures."""
    flat, prior = mixture(account, u), account.flat_prior
    known = prior > 0
    ratio = flat**2 / safe.or_one(prior, known)
    spread = jnp.sum(jnp.where(known, ratio, jnp.where(flat > 0, jnp.inf, 0.0)))
    return certificate(hp, account, u, jnp.sqrt(account.rounds * spread))


two_norm_regret = expert_theorem("two_norm_regret", "Luo 2016, corollary 1", two_norm_sides)
