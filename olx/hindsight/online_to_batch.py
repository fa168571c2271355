r"""From regret to risk: bounds for independent, identically distributed rounds.

Each function is the right side of a theorem. $\mathrm{risk}(h)$ is the expected loss of $h$ on a
new round. $h^*$ is the best decision of the class, $\mathrm{risk}^*$ its risk, $h_t$ the decision
of round $t$, and $M_T = \frac1T \sum_t \ell(h_t, Z_t)$ the mean loss of the run. All bounds use
that $M_T$ and $\frac1T \sum_t \mathrm{risk}(h_t)$ have the same expectation (theorem 9). Constants
$\mu, \nu$ mean that losses lie in $[0, 1]$ and the regret is at most $\mu \sqrt B + \nu$ if the
total loss of the best decision is $B$: see `small_loss_constants`.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, appendix B; Zhang,
Mathematical Analysis of Machine Learning Algorithms, 2023, chapter 14.
"""

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from olx.convex import roots
from olx.core import Scalar


def small_loss_constants(
    lipschitz: Scalar, complexity: Scalar, largest: Scalar
) -> tuple[Array, Array]:
    r"""$\mu = 3.4\sqrt{LU}$ and $\nu = 3.4\sqrt{LU\beta_1} + 11.4\,LU$ of corollary 4.

    lipschitz: the losses are $L$-self-bounded.
    complexity: $U$, the largest $f(u)$.
    largest: $\beta_1$, the largest loss.
    """
    root = jnp.sqrt(lipschitz * complexity)
    mu = 2 * 8**0.25 * root
    return mu, mu * jnp.sqrt(largest) + 8 * 2**0.5 * lipschitz * complexity


def mean_risk_bound(best_risk: Scalar, regret: Scalar, rounds: Scalar) -> Scalar:
    r"""Theorem 10: $E[\frac1T \sum_t \mathrm{risk}(h_t)] \le \mathrm{risk}(h^*) + B(T)/T$.

    >>> mean_risk_bound(0.25, 10.0, 100)
    0.35
    """
    return best_risk + regret / rounds


def best_loss_bound(best_risk: Scalar, rounds: Scalar, delta: Scalar) -> Scalar:
    r"""Lemma 21, with probability $1 - \delta$, $l = \ln(1/\delta)$: the mean loss of the best
    decision is at most $\mathrm{risk}^* + \sqrt{2 l\, \mathrm{risk}^* / T} + 2 l/(3T)$."""
    log = jnp.log(1 / delta)
    return best_risk + jnp.sqrt(2 * log * best_risk / rounds) + 2 * log / (3 * rounds)


def mean_loss_bound(
    best_risk: Scalar, rounds: Scalar, delta: Scalar, mu: Scalar, nu: Scalar
) -> Scalar:
    r"""Lemma 22, with probability $1 - \delta$, $l = \ln(1/\delta)$: $M_T \le \mathrm{risk}^* +
    \sqrt2(\mu + \sqrt l) \sqrt{\mathrm{risk}^*/T} + (\nu + 3 l + \mu\sqrt{3 l})/T$."""
    log = jnp.log(1 / delta)
    root = 2**0.5 * (mu + jnp.sqrt(log))
    rest = nu + 3 * log + mu * jnp.sqrt(3 * log)
    return best_risk + root * jnp.sqrt(best_risk / rounds) + rest / rounds


def small_mean_risk_bound(best_risk: Scalar, rounds: Scalar, mu: Scalar, nu: Scalar) -> Scalar:
    r"""Theorem 11: $E[\frac1T \sum_t \mathrm{risk}(h_t)] \le \mathrm{risk}^* + (\mu + e)
    \sqrt{2\,\mathrm{risk}^*/T} + (\nu + e(\sqrt3\mu + 3))/T$."""
    rest = nu + jnp.e * (3**0.5 * mu + 3)
    return best_risk + (mu + jnp.e) * jnp.sqrt(2 * best_risk / rounds) + rest / rounds


def random_stop_bound(best_risk: Scalar, mean_risk: Scalar, delta: Scalar) -> Scalar:
    r"""Lemma 23, with probability $1 - \delta$: the decision of a random round has risk at most
    $\mathrm{risk}^* + (m - \mathrm{risk}^*)/\delta$; so has the mean decision of a convex class.

    mean_risk: $m \ge E[\frac1T \sum_t \mathrm{risk}(h_t)]$, from theorem 10 or 11; with these it is
        corollary 8.
    """
    return best_risk + (mean_risk - best_risk) / delta


def restart_bound(best_risk: Scalar, mean_risk: Scalar) -> Scalar:
    r"""Theorem 12, with probability $1 - e^{-s}$: one candidate of $s$ blocks has risk at most
    $\mathrm{risk}^* + e\,(m - \mathrm{risk}^*)$.

    mean_risk: $m$ of theorem 10 or 11 for the $T/s$ rounds of one block.
    """
    return random_stop_bound(best_risk, mean_risk, jnp.exp(-1.0))


def average_bound(mean_loss: Scalar, rounds: Scalar, delta: Scalar) -> Scalar:
    r"""Theorem 13, with probability $1 - \delta$, losses convex and in $[0, 1]$: the risk of the
    mean decision is at most $M_T + (3 l + 2\sqrt{T M_T l})/T$, $l = \ln((T+3)/\delta)$."""
    log = jnp.log((rounds + 3) / delta)
    return mean_loss + (3 * log + 2 * jnp.sqrt(rounds * mean_loss * log)) / rounds


def multiclass_perceptron_bound(
    hinge: Scalar, length: Scalar, radius: Scalar, margin: Scalar, rounds: Scalar
) -> Scalar:
    r"""Proposition 3: the expected error of the multiclass Perceptron of a random round is at most
    $2 h + \|w\|^2 R^2 / (\gamma^2 T)$ for every $w$ and $\gamma$.

    hinge: $h = E \max(0, 1 - \min_{l \ne Y} \langle w, \psi(X,Y) - \psi(X,l)\rangle / \gamma)$.
    length, radius: $\|w\|$, and the largest $\|\psi(X, Y) - \psi(X, Y')\|$.
    """
    return 2 * hinge + (length * radius / margin) ** 2 / rounds


def perceptron_bound(mistakes: Scalar, rounds: Scalar, delta: Scalar) -> Scalar:
    r"""Proposition 4, with probability $1 - \delta$: the mean error of the Perceptrons of all
    rounds is at most $\inf_\lambda \frac{\lambda k + \ln(1/\delta)}{(1 - e^{-\lambda}) T}$.

    mistakes: $k = \|w^*\|^2 \sup\|X\|^2 / \gamma^2$, the mistake bound; positive.

    The best $\lambda$ solves $e^\lambda = 1 + \lambda + \ln(1/\delta)/k$.
    """
    log = jnp.log(1 / delta)
    ratio = log / mistakes
    above = jnp.minimum(jnp.sqrt(2 * ratio), 2 * jnp.log1p(ratio) + 1)
    best = roots.root(Partial(_steepness, ratio), jnp.zeros_like(above), above, above)
    return (best * mistakes + log) / (-jnp.expm1(-best) * rounds)


def oracle_bound(
    risk: Scalar,
    distance: Scalar,
    eta: Scalar,
    lipschitz: Scalar,
    largest: Scalar,
    rounds: Scalar,
    delta: Scalar,
) -> Scalar:
    r"""Theorem 14.9, with probability $1 - \delta$, for the mean decision of `ogd`: at most
    $\mathrm{risk}(w) + \frac{\|w - w_1\|^2}{2\eta T} + \frac\eta2 G^2 + M\sqrt{2\ln(2/\delta)/T}$.

    risk, distance: the risk of any fixed $w$, and $\|w - w_1\|$.
    lipschitz, largest: $G$ in the decision; losses lie in $[0, M]$.
    """
    regret = distance**2 / (2 * eta * rounds) + eta * lipschitz**2 / 2
    return risk + regret + largest * jnp.sqrt(2 * jnp.log(2 / delta) / rounds)


def strongly_convex_risk_bound(
    objective: Scalar, sigma: Scalar, lipschitz: Scalar, radius: Scalar, rounds: Scalar
) -> Scalar:
    r"""Corollary 13, in expectation, for the mean decision of `strongly_convex_md` on
    $\phi + \frac\sigma2 \|\cdot\|^2$: at most the least objective plus
    $\frac{\ln(eT)}{2\sigma T}(G + \sigma r)^2$.

    objective: the least $E\phi(w, Z) + \frac\sigma2\|w\|^2$ for $\|w\| \le r$ = `radius`.
    lipschitz: $G$, of $\phi$ in the decision.
    """
    slope = lipschitz + sigma * radius
    return objective + (1 + jnp.log(rounds)) * slope**2 / (2 * sigma * rounds)


def weighted_risk_bound(
    objective: Scalar, sigma: Scalar, lipschitz: Scalar, radius: Scalar, rounds: Scalar
) -> Scalar:
    r"""Corollary 13 for the weighted mean that `strongly_convex_ogd` keeps: at most the least
    objective plus $\frac{2}{\sigma(T+3)}(G + \sigma r)^2$."""
    slope = lipschitz + sigma * radius
    return objective + 2 * slope**2 / (sigma * (rounds + 3))


def _steepness(ratio: Scalar, x: Array) -> Array:
    return jnp.expm1(x) - x - ratio
