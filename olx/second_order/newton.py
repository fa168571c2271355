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

`best_matrix` is the best fixed matrix in hindsight. Mirror descent with $\psi(w) = \frac12 w^\top A
w$ takes the steps $w_{s+1} = w_s - A^{-1} g_s$ from $w_1 = 0$. For every $u$

$$\sum_{s \le t} \langle g_s, w_s - u\rangle \le \frac12 \Big( u^\top A u +
  \sum_{s \le t} g_s^\top A^{-1} g_s \Big).$$

If $|\langle u, x_s\rangle| \le C$ and the losses have slopes of at most $L$ in the score, $u$ lies
in $K' = \{u : u^\top G u \le t\, (C L)^2\}$, with $G = \sum_{s \le t} g_s g_s^\top$. If $G$ is
invertible, the right side for the worst $u \in K'$ is

$$\frac12 \Big( t\, (C L)^2\, \lambda_{\max}(G^{-1/2} A G^{-1/2}) + \mathrm{tr}(A^{-1} G) \Big) \ge
  C L \sqrt{d t},$$

with equality for the matrix $A = \frac1{C L} \sqrt{d / t}\, G$. It is no method, because it must be
known before the gradients are, but it says which matrix to aim at. `newton`, whose matrix follows
$G$, loses a logarithm to it.

Luo, Optimal and Adaptive Online Learning, 2016, (4.4), propositions 1 and 2, and theorem 16.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._refusal import RefusedType, RefusedValue, public
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.mistakes import alike
from olx.frameworks.omd import OMDHparams, OMDState
from olx.mirrors.euclidean import euclidean
from olx.mirrors.quadratic import full_quadratic
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
from olx.theorem import MET, ZERO, About, Theorem, summed


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
    return _slab.clipped_score(hp, margin)


def step(hp: SlabHparams, row: Row, feedback: Feedback) -> Step:
    slope = feedback.weight * feedback.grad
    growth = _slab.rate(hp, row.width, row.number, feedback.weight) * feedback.grad**2
    total = 1 + growth * row.spread
    back = safe.divide(row.margin - _slab.clipped_score(hp, row.margin), row.spread)
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
    return _slab.terms(own, feedback, jnp.vdot(vector(u), x), eta, energy, jnp.vdot(x, x))


def both_sides(hp: RankOneHparams, account: Account, u: PyTree) -> Certificate:
    own, w = hp.rule.hparams, vector(u)
    start, rate = hp.prior / 2 * jnp.sum(w**2), own.curvature + account.eta
    grown = jnp.log1p(rate * account.squares / (w.size * hp.prior))
    published = start + w.size / 2 * safe.divide(grown, rate, jnp.inf) + _slab.steps(own, account)
    return _slab.sides(account, start + (account.energy + account.drift) / 2, published)


slab_regret = summed(
    "slab_regret", "Luo 2016, proposition 1 and theorem 16", terms, both_sides, start
)


@public
def best_matrix(gradients: Float[Array, "t d"], size: Scalar) -> Float[Array, "d d"]:
    r"""The matrix $\frac1{C L} \sqrt{d / t}\, G$ with the least cost over $K'$.

    gradients: one per row; their squares must add up to an invertible matrix.
    size: $C L$, positive.

    >>> import jax.numpy as jnp
    >>> best_matrix(jnp.eye(2), 0.5).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    size = check.positive("size", size)
    if np.ndim(gradients) != 2:
        raise RefusedType(
            f"`gradients` has shape {np.shape(gradients)}; give one gradient per row."
        )
    gram = np.asarray(gradients, float).T @ np.asarray(gradients, float)
    least = np.linalg.eigvalsh(gram)[0] if np.all(np.isfinite(gram)) else np.nan
    if not least > np.finfo(float).eps * len(gram) * np.trace(gram):
        raise RefusedValue(
            "the gradients must span all coordinates, got a smallest eigenvalue of "
            f"{least:.3g}; leave out coordinates that are always 0, or turn the others."
        )
    rounds, width = np.shape(gradients)
    return jnp.asarray(np.sqrt(width / rounds) * gram) / size


@public
def fixed_matrix_regret(size: Scalar) -> Theorem:
    r"""Propositions 1 and 2, for `olx.omd` with the Euclidean or a full quadratic potential.

    `published` is the cost over $K'$, never below $C L \sqrt{d t}$; it is infinite while $G$ is not
    invertible, or if $u$ is not in $K'$. The matrix is that of the potential, over `eta`.

    size: $C L$, positive.
    """
    size = check.positive("size", size)
    parts = matrix_terms, Partial(matrix_sides, size), matrix_start
    source = "Luo 2016, propositions 1 and 2"
    return summed("fixed_matrix_regret", source, *parts, about=_FIXED)


_AT_ZERO = "the first weights must be 0"


class FixedMatrix(NamedTuple):
    first: Bool[Array, ""]  # whether the first weights are 0
    gram: Float[Array, "d d"]  # G
    rounds: Float[Array, ""]
    regret: Float[Array, ""]  # the sum of <g, w - u>
    terms: Float[Array, ""]  # the sum of absolute values, for the rounding error
    unit: Bool[Array, ""]


def matrix_start(hp: OMDHparams, state: OMDState, u: PyTree) -> FixedMatrix:
    u = check.comparator(u, state.theta)
    first = jnp.all(hp.mirror.to_primal(state.theta) == 0)
    return FixedMatrix(first, jnp.zeros((u.size, u.size), u.dtype), ZERO, ZERO, ZERO, MET)


def matrix_terms(hp: OMDHparams, state: OMDState, feedback: Feedback, u: PyTree) -> FixedMatrix:
    g, w = feedback.grad, feedback.action
    return FixedMatrix(
        MET,
        jnp.outer(g, g),
        jnp.ones((), g.dtype),
        jnp.vdot(g, w - u),
        jnp.vdot(jnp.abs(g), jnp.abs(w) + jnp.abs(u)),
        jnp.asarray(feedback.weight) == 1,
    )


def matrix_sides(size: Scalar, hp: OMDHparams, account: FixedMatrix, u: PyTree) -> Certificate:
    matrix = jax.hessian(hp.mirror.potential)(jnp.zeros_like(u)) / hp.eta
    root = jnp.linalg.cholesky(matrix)
    half = solve_triangular(root, account.gram, lower=True)
    values = jnp.linalg.eigvalsh(solve_triangular(root, half.T, lower=True))
    energy, most = jnp.sum(values), account.rounds * size**2
    right = (u @ matrix @ u + energy) / 2
    rounding = 64 * u.size * jnp.finfo(u.dtype).eps
    worst = safe.divide(most, values[0], jnp.inf, values[0] > rounding * energy)
    inside = u @ account.gram @ u <= most * (1 + rounding)
    published = jnp.where(inside, (worst + energy) / 2, jnp.inf)
    proof = Certificate(account.regret, right, account.terms + right, published)
    return proof.given(_AT_ZERO, account.first).given(UNIT_WEIGHTS, account.unit)


def _is_fixed(learner: Learner) -> bool:
    hp = learner.hparams
    known = euclidean(), full_quadratic(jnp.eye(2))
    return isinstance(hp, OMDHparams) and alike(hp.mirror, *known)


_FIXED = About("`olx.omd` with `euclidean()` or `full_quadratic(matrix)`", _is_fixed)
