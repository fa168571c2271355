r"""The regret of `invariant_newton` in terms of the rank of the gradients.

With $r$ the rank of $\sum_{s \le t} g_s g_s^\top$ and $\lambda$ the smallest positive eigenvalue of
any $\sum_{i \le s} g_i g_i^\top$, $s \le t$, for every $u$ with $|\langle u, x_s\rangle| \le C$ and
rounds of weight 1

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac1{2 (\sigma + \eta_t)} \Big( r + \frac{r (1 + r)}2
  \ln\Big( 1 + \frac{2 \sum_s \|g_s\|^2}{r (1 + r) \lambda} \Big) \Big) +
  2 (C L)^2 \sum_{s \le t} \eta_s.$$

The account keeps a matrix and needs its eigenvalues in every round, so no learner carries the
theorem: give it to `olx.certify` as `theorems=(olx.theorems.rank_regret,)`.

Luo, Optimal and Adaptive Online Learning, 2016, theorem 23 and corollary 1 of appendix C.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _numeric as safe
from olx.core import Feedback, Learner
from olx.second_order import _slab
from olx.second_order._slab import SlabHparams
from olx.second_order.invariant_newton import InvariantState, start, terms, update
from olx.second_order.rank_one import vector
from olx.theorem import About, Certificate, Theorem, add_terms, first_sums


class Account(NamedTuple):
    slab: _slab.Account
    gram: Float[Array, "d d"]  # the sum of g g'
    least: Float[Array, ""]  # lambda
    rank: Float[Array, ""]


def open_account(hp: SlabHparams, state: InvariantState, u: PyTree) -> Account:
    base = first_sums(start(hp, state, u), u)
    zero = jnp.zeros_like(base.size)
    return Account(base, jnp.zeros_like(state.free), jnp.full_like(zero, jnp.inf), zero)


def add_round(
    hp: SlabHparams, account: Account, state: InvariantState, feedback: Feedback, u: PyTree
) -> Account:
    g = feedback.grad * vector(feedback.context)
    gram = account.gram + jnp.outer(g, g)
    rank = update(hp, state, feedback).rank
    values = jnp.linalg.eigvalsh(gram)
    least = jnp.where(rank > 0, values[jnp.clip(g.size - rank, 0, g.size - 1)], jnp.inf)
    base = add_terms(account.slab, terms(hp, state, feedback, u))
    return Account(base, gram, jnp.minimum(account.least, least), rank.astype(g.dtype))


def both_sides(hp: SlabHparams, account: Account, u: PyTree) -> Certificate:
    r, slab = account.rank, account.slab
    pairs = r * (1 + r) / 2
    grown = r + pairs * jnp.log1p(safe.divide(slab.squares, pairs * account.least))
    right = safe.divide(grown, 2 * (hp.curvature + slab.eta)) + _slab.steps(hp, slab)
    return _slab.sides(slab, right)


def _is_invariant(learner: Learner) -> bool:
    return learner.update_fn is update


rank_regret = Theorem(
    "rank_regret",
    "Luo 2016, appendix C, corollary 1",
    open_account,
    add_round,
    both_sides,
    about=About("`invariant_newton`", _is_invariant),
)
