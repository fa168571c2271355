r"""The regret of Newton steps with frequent directions, by the trace that the sketch lost.

$S_t$ has at most $n$ rows: $n = m - 1$, or $2 m - 1$ in epochs. Let $\Delta_t$ be the trace of
$\sum_{s \le t} \hat g_s \hat g_s^\top - S_t^\top S_t$, which is $m \sum_s \rho_s$ without epochs.
For every $u$ with $|\langle u, x_s\rangle| \le C$

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac\alpha2 \|u - w_1\|^2 +
  \frac{1}{2 (\sigma + \eta_t)} \Big( n \ln\Big( 1 + \frac{\text{tr}(S_t^\top S_t)}{n\, \alpha}
  \Big) + \frac{\Delta_t}\alpha \Big) +
  \frac12 \sum_{s \le t} \eta_s \langle g_s, w_s - u\rangle^2,$$

and the last sum is at most $2 (C L)^2 \sum_s \eta_s$. The source has $n + 1$ for $n$.

Proof: in `newton_regret` the matrices grow by at most $\hat g_s \hat g_s^\top$, which leaves the
last sum. The trace of $A_s^{-1} (A_s - A_{s-1})$ is at most the growth of the log-determinant, and
the trace of $A_s^{-1}$ times the rest of $\hat g_s \hat g_s^\top$ is at most the trace lost over
$\alpha$.

The proof needs all of $S_s$ in $A_s$. Where the step counts less, the certificate says so.

`olx.second_order.best_rank_regret` bounds $\Delta_t$ by the spectrum of the gradients.

Luo, Optimal and Adaptive Online Learning, 2016, theorems 18 and 19.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Feedback
from olx.frameworks.lift import dot
from olx.second_order import _slab
from olx.second_order._sketched_step import SketchedNewtonHparams, SketchedNewtonState, step
from olx.second_order._spectral import WHOLE
from olx.theorem import theorem


class Account(NamedTuple):
    slab: _slab.Account
    start: Float[Array, ""]  # alpha |u - w_1|^2
    total: Float[Array, ""]  # the trace of S'S
    lost: Float[Array, ""]
    rows: Float[Array, ""]  # n
    whole: Bool[Array, ""]  # whether all steps used all of S


def open_account(hp: SketchedNewtonHparams, state: SketchedNewtonState, u: PyTree) -> Account:
    u = check.comparator("certify", u, state.base)
    apart = tree.sub(u, state.base)
    start = hp.alpha * jnp.asarray(tree.vdot(apart, apart))
    zero = jnp.zeros_like(start)
    rows, whole = zero + len(state.small.frame), jnp.ones((), bool)
    return Account(_slab.open_account(start), start, zero, zero, rows, whole)


def add_round(
    hp: SketchedNewtonHparams,
    account: Account,
    state: SketchedNewtonState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    x, now, slope = feedback.context, step(hp, state, feedback), feedback.grad
    along, square = dot(u, x), slope**2 * jnp.asarray(tree.vdot(x, x))
    drift = now.eta * (slope * (feedback.action - along)) ** 2
    slab = _slab.add(hp.slab, account.slab, feedback, along, now.eta, now.energy, drift, square)
    small = now.after.small
    whole = account.whole & small.is_whole(hp.alpha)
    return Account(slab, account.start, small.total, small.lost, account.rows, whole)


def both_sides(hp: SketchedNewtonHparams, account: Account, u: PyTree) -> Certificate:
    right = bound(hp, account, account.lost, account.rows, account.slab.drift / 2)
    steps = _slab.steps(hp.slab, account.slab)
    published = bound(hp, account, account.lost, account.rows + 1, steps)
    return _slab.sides(account.slab, right, published).given(WHOLE, account.whole)


def bound(
    hp: SketchedNewtonHparams, account: Account, lost: Array, rows: Array, drift: Array
) -> Array:
    """The right side for a given trace lost, number of rows and last sum."""
    grown = rows * jnp.log1p(account.total / (rows * hp.alpha))
    rate = 2 * (hp.slab.curvature + account.slab.eta)
    return account.start / 2 + (grown + lost / hp.alpha) / rate + drift


directions_regret = theorem(
    "directions_regret", "Luo 2016, theorems 18 and 19", open_account, add_round, both_sides
)
THEOREMS = (directions_regret,)
