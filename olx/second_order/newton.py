r"""The online Newton step on slabs: the full matrix of gradients, and scores of bounded size.

In round $t$ the learner projects on the slab of its row, in the geometry of $A_{t-1}$, and plays
$\langle w_t, x_t\rangle$:

$$w_t = \arg\min_{|\langle w, x_t\rangle| \le C} (w - u_t)^\top A_{t-1} (w - u_t), \quad
  A_t = \alpha I + \sum_{s \le t} (\sigma + \eta_s)\, g_s g_s^\top, \quad
  u_{t+1} = w_t - A_t^{-1} g_t.$$

The projected score is the score of $u_t$, clipped to $[-C, C]$. The loss $\ell_t$ of a score has
slopes of at most $L$ there and curvature $\sigma \ge 0$:
$\ell(a) \ge \ell(b) + \ell'(b) (a - b) + \frac\sigma2 (\ell'(b) (a - b))^2$. The loss $(a - y)^2$
with $|y| \le C$ has $\sigma = 1 / (8 C^2)$ and $L = 4 C$. If $\sigma$ is 0, theory suggests
$\eta_t = \sqrt{d / t} / (C L)$.

For every $u$ with $|\langle u, x_s\rangle| \le C$ and rounds of weight 1

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac\alpha2 \|u\|^2 +
  \frac12 \sum_{s \le t} g_s^\top A_s^{-1} g_s +
  \frac12 \sum_{s \le t} \eta_s \langle g_s, w_s - u\rangle^2$$
$$\le \frac\alpha2 \|u\|^2 + \frac{d}{2 (\sigma + \eta_t)}
  \ln\Big( 1 + \frac{\sigma + \eta_t}{d\, \alpha} \sum_{s \le t} \|g_s\|^2 \Big) +
  2 (C L)^2 \sum_{s \le t} \eta_s.$$

No fixed matrix has a bound below $C L \sqrt{d t}$ for all such $u$ at once, and the best one is a
multiple of $\sum_s g_s g_s^\top$: see `olx.second_order.best_matrix`. So the matrix that is known
only in hindsight would save the logarithm.

Luo, Optimal and Adaptive Online Learning, 2016, (4.4), proposition 1 and theorem 16.
"""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.second_order import _slab
from olx.second_order._slab import Account, SlabHparams
from olx.second_order.rank_one import (
    RankOneHparams,
    RankOneState,
    Row,
    Rule,
    Step,
    comparator,
    look,
    rank_one,
    vector,
)
from olx.theorem import Certificate, summed


@public
def newton(
    alpha: Scalar,
    bound: Scalar,
    *,
    curvature: Scalar | None = None,
    lipschitz: Scalar | None = None,
) -> Learner:
    r"""The online Newton step with a full matrix, a predictor with scores in [-`bound`, `bound`].

    alpha: positive; the first matrix is `alpha` times the identity.
    bound: $C$, positive.
    curvature: $\sigma$, positive; 0 if None.
    lipschitz: $L$, positive; then $\eta_t = \sqrt{d / t} / (C L)$, else $\eta_t = 0$.

    Give `curvature` if the loss has it, else `lipschitz`. The context is shaped like `params`; only
    the shape of `params` is used.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_regression(jax.random.key(0), rounds=100, features=3)
    >>> bound = float(jnp.max(jnp.abs(rounds.outcome)))
    >>> learner = olx.second_order.newton(1.0, bound, curvature=1 / (8 * bound**2))
    >>> run = olx.rollout(
    ...     learner, olx.losses.squared, rounds, jnp.zeros(3), record=olx.record.trace
    ... )
    >>> bool(olx.certify(learner, run, 0 * u).holds)
    True
    """
    alpha = check.positive("alpha", alpha)
    rule = Rule(_slab.numbers(bound, curvature, lipschitz), score, step)
    return rank_one(rule, alpha, theorems=(slab_regret,))


def score(hp: SlabHparams, margin: Array, spread: Array) -> Array:
    return _slab.clipped(hp, margin)


def step(hp: SlabHparams, row: Row, feedback: Feedback) -> Step:
    slope = feedback.weight * feedback.grad
    growth = _slab.rate(hp, row.width, row.number, feedback.weight) * feedback.grad**2
    total = 1 + growth * row.spread
    back = safe.divide(row.margin - _slab.clipped(hp, row.margin), row.spread)
    return Step(-back - slope / total, growth / total, 1 / total)


def start(hp: RankOneHparams, state: RankOneState, u: PyTree) -> Account:
    comparator(state, u)
    return _slab.START


def terms(hp: RankOneHparams, state: RankOneState, feedback: Feedback, u: PyTree) -> Account:
    x, own = vector(feedback.context), hp.rule.hparams
    row, _ = look(state, x)
    eta, slope = _slab.eta(own, row.width, row.number), feedback.grad
    growth = (own.curvature + eta) * slope**2
    energy = slope**2 * row.spread / (1 + growth * row.spread)
    along = jnp.vdot(vector(u), x)
    drift = eta * (slope * (feedback.action - along)) ** 2
    return _slab.terms(own, feedback, along, eta, energy, drift, slope**2 * jnp.vdot(x, x))


def both_sides(hp: RankOneHparams, account: Account, u: PyTree) -> Certificate:
    own, w = hp.rule.hparams, vector(u)
    start, rate = hp.prior / 2 * jnp.sum(w**2), own.curvature + account.eta
    grown = jnp.log1p(rate * account.squares / (w.size * hp.prior))
    published = start + w.size / 2 * safe.divide(grown, rate, jnp.inf) + _slab.steps(own, account)
    return _slab.sides(account, start + (account.energy + account.drift) / 2, published)


slab_regret = summed(
    "slab_regret", "Luo 2016, proposition 1 and theorem 16", terms, both_sides, start
)
