r"""A Newton step whose scores do not change if all rows are multiplied by an invertible matrix.

It is `newton` with $\alpha = 0$ and the pseudo-inverse $A_t^+$ of $A_t = \sum_{s \le t} (\sigma +
\eta_s) g_s g_s^\top$. A row is fresh if it is not in the range of $A_{t-1}$; there moves cost
nothing, and the learner chooses the weights with score 0. In other rounds the score is clipped:

$$\hat y_t = \begin{cases} 0 & x_t \text{ fresh} \\ \text{clip}(\langle u_t, x_t\rangle, -C, C) &
  \text{otherwise} \end{cases}, \qquad u_{t+1} = w_t - A_t^+ g_t.$$

With $n$ the part of $x_t$ outside the range, $\nu = \|n\|^2$, $\varphi = S^\top x_t$ and $A^+ = S
S^\top$, a fresh row changes $S$ to $S - n \varphi^\top / \nu$ and fills a column that was zero with
$n / (\sqrt s\, \nu)$, $s = (\sigma + \eta_t) \ell_t'^2$. Other rows change it as in `rank_one`.

The thesis takes the nearest weights in fresh rounds, $\hat y_t = \langle u_t, x_t\rangle$ clipped.
That depends on the coordinates: scores then change by up to $2 C$ under $x \to M x$. The weights
with score 0 are another solution of the same projection, so the theorems hold for them too.

For every $u$ with $|\langle u, x_s\rangle| \le C$ and rounds of weight 1,

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac12 \sum_{s \le t} g_s^\top A_s^+ g_s +
  \frac12 \sum_{s \le t} \eta_s \langle g_s, w_s - u\rangle^2 \le
  \frac12 \sum_{s \le t} g_s^\top A_s^+ g_s + 2 (C L)^2 \sum_{s \le t} \eta_s.$$

`rank_regret` bounds the sum by the rank of the gradients. With $r$ the rank of $\sum_{s \le t} g_s
g_s^\top$ and $\lambda$ the smallest positive eigenvalue of any $\sum_{i \le s} g_i g_i^\top$, $s
\le t$, for the same $u$ and rounds

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac1{2 (\sigma + \eta_t)} \Big( r + \frac{r (1 + r)}2
  \ln\Big( 1 + \frac{2 \sum_s \|g_s\|^2}{r (1 + r) \lambda} \Big) \Big) +
  2 (C L)^2 \sum_{s \le t} \eta_s.$$

The account keeps a matrix and needs its eigenvalues in every round, so no learner carries the
theorem: give it to `olx.certify` as `theorems=(olx.theorems.rank_regret,)`.

Luo, Optimal and Adaptive Online Learning, 2016, appendix C.2, theorem 23 and corollary 1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.second_order import _slab
from olx.second_order._slab import SlabHparams
from olx.second_order.rank_one import vector
from olx.theorem import About, Theorem, add_terms, first_sums, summed


class InvariantState(NamedTuple):
    w: Float[Array, " d"]
    root: Float[Array, "d d"]  # S, with A^+ = S S'; its last d - rank columns are 0
    free: Float[Array, "d d"]  # the projector on the null space of A
    rank: Int[Array, ""]
    clock: Clock


class Look(NamedTuple):
    """What a round is, before its loss is known."""

    score: Array
    fresh: Bool[Array, ""]
    n: Float[Array, " d"]  # the part of the row outside the range
    phi: Float[Array, " d"]
    margin: Array
    spread: Array


@public
def invariant_newton(
    bound: Scalar, *, curvature: Scalar | None = None, lipschitz: Scalar | None = None
) -> Learner:
    r"""The invariant Newton step, a predictor with scores in [-`bound`, `bound`].

    bound, curvature, lipschitz: as in `newton`.

    A row counts as fresh if its part outside the range is longer than $\epsilon^{0.6}$ times the
    row, with $\epsilon$ the spacing of floats. Rounds of slope 0 change nothing else.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, u = olx.streams.linear_regression(jax.random.key(0), rounds=50, features=3)
    >>> learner = olx.second_order.invariant_newton(5.0, curvature=1 / 200)
    >>> one, other = (
    ...     olx.rollout(learner, olx.losses.squared, rounds._replace(context=x), jnp.zeros(3))
    ...     for x in (rounds.context, rounds.context * jnp.array([1.0, 10.0, 100.0]))
    ... )
    >>> bool(jnp.allclose(one.losses, other.losses, rtol=1e-2))
    True
    """
    hparams = _slab.numbers(bound, curvature, lipschitz)
    return Learner(hparams, init, predict, update, theorems=(slab_regret,))


def init(hp: SlabHparams, params: PyTree) -> InvariantState:
    w = jnp.zeros_like(vector(params))
    eye = jnp.eye(w.size, dtype=w.dtype)
    return InvariantState(w, jnp.zeros_like(eye), eye, jnp.zeros((), jnp.int32), clock.start(hp, w))


def predict(hp: SlabHparams, state: InvariantState, context: PyTree) -> Array:
    return look(hp, state, vector(context)).score


def update(hp: SlabHparams, state: InvariantState, feedback: Feedback) -> InvariantState:
    x = vector(feedback.context)
    now = look(hp, state, x)
    slope = feedback.weight * feedback.grad
    growth = _slab.rate(hp, x.size, state.clock.now, feedback.weight) * feedback.grad**2
    fresh, size = now.fresh & (growth > 0), jnp.vdot(now.n, now.n)
    along, total = state.root @ now.phi, 1 + growth * now.spread
    back = safe.divide(now.margin - now.score, jnp.where(now.fresh, size, now.spread))
    moved = state.w - back * jnp.where(now.fresh, now.n, along)
    unit = safe.divide(now.n, size, 0.0, fresh)
    step = jnp.where(fresh, safe.divide(slope, growth) * unit, slope / total * along)
    step = jnp.where(now.fresh & ~fresh, 0.0, step)
    k = growth / (total + jnp.sqrt(total))
    column = jnp.arange(x.size, dtype=jnp.int32) == state.rank
    new = jnp.outer(safe.divide(unit, safe.sqrt(growth)), column.astype(x.dtype))
    root = state.root - jnp.outer(jnp.where(fresh, unit, k * along), now.phi)
    free = state.free - jnp.outer(unit, now.n)
    rank = state.rank + fresh.astype(jnp.int32)
    return InvariantState(
        moved - step, root + new, free, rank, clock.tick(hp, state.clock, feedback)
    )


def look(hp: SlabHparams, state: InvariantState, x: Float[Array, " d"]) -> Look:
    n = state.free @ (state.free @ x)  # twice, against rounding
    part = float(jnp.finfo(x.dtype).eps) ** 1.2 * jnp.vdot(x, x)
    fresh = (jnp.vdot(n, n) > part) & (state.rank < x.size)
    phi, margin = x @ state.root, jnp.vdot(state.w, x)
    score = jnp.where(fresh, 0.0, _slab.clipped_score(hp, margin))
    return Look(score, fresh, n, phi, margin, jnp.vdot(phi, phi))


def start(hp: SlabHparams, state: InvariantState, u: PyTree) -> _slab.Account:
    check.comparator(vector(u), state.w)
    return _slab.START


def terms(hp: SlabHparams, state: InvariantState, feedback: Feedback, u: PyTree) -> _slab.Account:
    x, slope = vector(feedback.context), feedback.grad
    now, eta = look(hp, state, x), _slab.eta(hp, x.size, state.clock.now)
    growth = (hp.curvature + eta) * slope**2
    shared = slope**2 * now.spread / (1 + growth * now.spread)
    energy = jnp.where(now.fresh, safe.divide(slope**2, growth), shared)
    return _slab.terms(hp, feedback, jnp.vdot(vector(u), x), eta, energy, jnp.vdot(x, x))


def slab_sides(hp: SlabHparams, account: _slab.Account, u: PyTree) -> Certificate:
    right = (account.energy + account.drift) / 2
    return _slab.sides(account, right, account.energy / 2 + _slab.steps(hp, account))


slab_regret = summed("slab_regret", "Luo 2016, appendix C, (C.2)", terms, slab_sides, start)


class RankAccount(NamedTuple):
    slab: _slab.Account
    gram: Float[Array, "d d"]  # the sum of g g'
    least: Float[Array, ""]  # lambda
    rank: Float[Array, ""]


def open_rank(hp: SlabHparams, state: InvariantState, u: PyTree) -> RankAccount:
    base = first_sums(start(hp, state, u), u)
    zero = jnp.zeros_like(base.size)
    return RankAccount(base, jnp.zeros_like(state.free), jnp.full_like(zero, jnp.inf), zero)


def add_rank(
    hp: SlabHparams, account: RankAccount, state: InvariantState, feedback: Feedback, u: PyTree
) -> RankAccount:
    g = feedback.grad * vector(feedback.context)
    gram = account.gram + jnp.outer(g, g)
    rank = update(hp, state, feedback).rank
    values = jnp.linalg.eigvalsh(gram)
    least = jnp.where(rank > 0, values[jnp.clip(g.size - rank, 0, g.size - 1)], jnp.inf)
    base = add_terms(account.slab, terms(hp, state, feedback, u))
    return RankAccount(base, gram, jnp.minimum(account.least, least), rank.astype(g.dtype))


def rank_sides(hp: SlabHparams, account: RankAccount, u: PyTree) -> Certificate:
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
    open_rank,
    add_rank,
    rank_sides,
    about=About("`invariant_newton`", _is_invariant),
)
