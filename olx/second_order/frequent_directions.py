r"""Frequent directions: the leading directions of the sketched vectors, with what is lost known.

The sketch keeps $k = m - 1$ orthonormal rows $V$ with energies $e$. A round adds $\hat g \hat
g^\top$, takes the eigenvalues $\lambda_1 \ge \dots \ge \lambda_m$ of the sum, and keeps the first
$k$ directions with the energies $\lambda_i - \rho$, $\rho = \lambda_m$. So

$$0 \preceq \sum_{s \le t} \hat g_s \hat g_s^\top - S_t^\top S_t \preceq \sum_{s \le t} \rho_s\, I,
  \qquad \sum_{s \le t} \rho_s \le \min_{j < m} \frac{\Omega_j}{m - j},$$

where $\Omega_j$ is the sum of all but the $j$ largest eigenvalues of $\sum_s \hat g_s \hat
g_s^\top$. If its rank is below $m$, nothing is lost: the learner is the full Newton step.

The eigenvectors come from inner products alone. For new rows $G$ with $M = G V^\top$, let $G - M V
= L Q$ with orthonormal rows $Q$; $L$ is a root of $G G^\top - M M^\top$. Then

$$V^\top \text{diag}(e) V + G^\top G = [V; Q]^\top C\, [V; Q], \qquad
  C = \text{diag}(e, 0) + [M\; L]^\top [M\; L],$$

and the eigenvectors of the left side are those of the small matrix $C$ times $[V; Q]$.

The new directions are $V' = T V + n \hat g^\top$ with a small matrix $T$. With $V = F Z$ this is
$Z \leftarrow Z + \delta \hat g^\top$, $F \leftarrow T F$ for $\delta = F^{-1} T^{-1} n$. If the
eigenvector that is dropped is $(a, b)$ in the basis of the old directions and the residual of
$\hat g$, of length $r$, then $T^{-1} n = -a / p$ with $p = \langle a, V \hat g\rangle + b r$, and
$\det T = \pm p / r$. If $p / r$ is small, an old direction leaves almost whole: the new row then
goes to a spare row of $Z$, and the coordinates change: $Z \leftarrow V'$. They also change if a
direction loses all its energy, if $F$ is badly conditioned, or if $Z$ is large: $|\det T| \le 1$,
so $F$ shrinks and $Z$ grows, while the weights $\bar u + Z^\top b$ keep the $b$ of earlier rounds,
and their two parts would cancel. One direction alone is never badly conditioned. (Algorithm 19 of
the thesis inverts $T$ also where it has no inverse.) An energy counts as at most about 2,900 alpha
in float32; see `olx.second_order.sketch`.

`directions_regret`, by the trace that the sketch lost: $S_t$ has at most $n$ rows: $n = m - 1$, or
$2 m - 1$ in epochs. Let $\Delta_t$ be the trace of $\sum_{s \le t} \hat g_s \hat g_s^\top -
S_t^\top S_t$, which is $m \sum_s \rho_s$ without epochs. For every $u$ with $|\langle u,
x_s\rangle| \le C$

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac\alpha2 \|u - w_1\|^2 +
  \frac{1}{2 (\sigma + \eta_t)} \Big( n \ln\Big( 1 + \frac{\text{tr}(S_t^\top S_t)}{n\, \alpha}
  \Big) + \frac{\Delta_t}\alpha \Big) +
  \frac12 \sum_{s \le t} \eta_s \langle g_s, w_s - u\rangle^2,$$

and the last sum is at most $2 (C L)^2 \sum_s \eta_s$. The source has $n + 1$ for $n$.

Proof: in `newton_regret` the matrices grow by at most $\hat g_s \hat g_s^\top$, which leaves the
last sum. The trace of $A_s^{-1} (A_s - A_{s-1})$ is at most the growth of the log-determinant, and
the trace of $A_s^{-1}$ times the rest of $\hat g_s \hat g_s^\top$ is at most the trace lost over
$\alpha$. The proof needs all of $S_s$ in $A_s$. Where the step counts less, the certificate says
so.

`best_rank_regret` and `lost_trace`, against the best approximations of the gradients of low rank:
the trace that the sketch loses is at most $\min_{j < m} m\, \Omega_j / (m - j)$, and
`best_rank_regret` is `directions_regret` with this in place of $\Delta_t$: the regret is small
if the gradients are close to a space of fewer than $m$ dimensions. Without epochs $\Delta_t / m$ is
the sum of all $\rho_s$.

The accounts keep a matrix with one row and one column per coordinate, so these theorems are for few
coordinates. Ask for them by `olx.certify(learner, run, u, theorems=...)`.

Luo, Optimal and Adaptive Online Learning, 2016, algorithms 13 and 17 to 20, theorems 18 and 19;
Ghashami, Liberty, Phillips, Woodruff, Frequent Directions: Simple and Deterministic Matrix
Sketching, 2016.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree, static
from olx._refusal import RefusedValue, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.lift import dot
from olx.second_order import _slab, sketch
from olx.second_order.sketch import PERIOD, WHOLE, Sketch, dtype_of, empty_rows, orthonormal
from olx.second_order.sketched_newton import (
    SketchedNewtonHparams,
    SketchedNewtonState,
    sketch_alpha,
    step,
)
from olx.theorem import MET, ZERO, About, Theorem, latest, summed

_LEAST = 1 / 32  # of |det T|; below, the new row goes to the spare row


@pytree
class DirectionsHparams:
    size: int = static()


class Directions(NamedTuple):
    energy: Float[Array, " k"]
    frame: Float[Array, "k m"]  # F; the last row of Z is the spare one
    gram: Float[Array, "m m"]  # of the rows of Z
    lost: Float[Array, ""]  # m times the sum of rho
    age: Int[Array, ""]  # rounds since the coordinates changed
    due: Bool[Array, ""]  # whether they must change now

    @property
    def total(self) -> Float[Array, ""]:
        """The trace of S S'."""
        return jnp.sum(self.energy)

    def is_whole(self, alpha: Scalar) -> Bool[Array, ""]:
        """Whether the step uses all of S."""
        return sketch.is_whole(alpha, self.energy)


@public
def frequent_directions(size: int) -> Sketch:
    """The sketch of frequent directions that keeps `size` - 1 of them.

    size: $m$, at least 2. Each round computes the eigenvectors of a matrix of this size; see
        `epoch_frequent_directions` for one matrix in `size` rounds.

    >>> import jax, jax.numpy as jnp, olx
    >>> from olx.second_order import sketched_newton
    >>> rounds, u = olx.streams.linear_regression(jax.random.key(0), rounds=100, features=3)
    >>> learner = sketched_newton(frequent_directions(4), 10.0, curvature=0.1)
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(3))
    >>> bool(run.state.small.lost < 1e-3)  # three directions are enough
    True
    """
    check_size(size)
    hparams = DirectionsHparams(size)
    parts = init, update, solve, energy, is_due, basis, rebased_state
    return Sketch(hparams, size, *parts, THEOREMS)


def init(hp: DirectionsHparams, alpha: Scalar, params: PyTree) -> tuple[Directions, PyTree]:
    m, dtype = hp.size, dtype_of(params)
    zeros = lambda *shape: jnp.zeros(shape, dtype)
    frame = jnp.eye(m - 1, m, dtype=dtype)
    small = Directions(
        zeros(m - 1), frame, zeros(m, m), zeros(), jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    )
    return small, empty_rows(m, params)


def update(
    hp: DirectionsHparams, alpha: Scalar, small: Directions, zg: Array, gg: Array
) -> tuple[Directions, Array]:
    k = hp.size - 1
    new = shrunk_directions(small.energy, (small.frame @ zg)[None], gg.reshape(1, 1))
    length, along = new.spread[0, k], jnp.vdot(new.spread[0], new.dropped)
    turns = jnp.abs(along) >= _LEAST * length  # true if the row is inside the old directions
    inside = safe.divide(-new.dropped[:k], along, 0.0, turns & (length > 0))
    spare = jnp.zeros_like(zg).at[k].set(1.0)
    delta = jnp.where(turns, small.gram @ (inside @ small.frame), spare)  # F^(-1) is K F'
    frame = new.turn @ small.frame + jnp.where(turns, 0.0, 1.0) * new.take * spare
    gram = gram_after(small.gram, delta, zg, gg)
    frame = orthonormal(frame, gram)  # removes errors of F K F' = I
    died = jnp.sum(new.energy > 0) < jnp.sum(small.energy > 0)
    condition = jnp.maximum(jnp.sum(frame**2), 1.0) * jnp.trace(gram)
    limit = hp.size**2 * float(jnp.finfo(gg.dtype).eps) ** -0.25
    due = ~turns | died | (condition > limit) | (small.age + 1 >= PERIOD)
    return Directions(new.energy, frame, gram, small.lost + new.lost, small.age + 1, due), delta


def solve(alpha: Scalar, small: Directions, zx: Array, xx: Array) -> tuple[Array, Array]:
    return sketch.solve(alpha, small.frame, small.energy, zx, xx)


def energy(alpha: Scalar, small: Directions, zv: Array) -> Array:
    return sketch.square(alpha, small.frame, small.energy, zv)


def is_due(small: Directions) -> Array:
    return small.due


def basis(small: Directions, gram: Array) -> Array:
    return jnp.pad(orthonormal(small.frame, gram), ((0, 1), (0, 0)))


def rebased_state(small: Directions) -> Directions:
    frame = jnp.eye(*small.frame.shape, dtype=small.energy.dtype)
    alive = (small.energy > 0).astype(small.energy.dtype)
    return Directions(
        small.energy,
        frame,
        jnp.diag(jnp.pad(alive, (0, 1))),
        small.lost,
        jnp.zeros_like(small.age),
        jnp.zeros((), bool),
    )


def check_size(size: int) -> None:
    check.size("size", size)
    if size < 2:
        raise RefusedValue(f"`size` must be at least 2, got {size}: one row is not kept.")


class Shrunk(NamedTuple):
    """The first k directions, which are turn V + take G, less eigenvalue number k + 1."""

    energy: Float[Array, " k"]
    turn: Float[Array, "k k"]  # rows of 0 for directions without energy
    take: Float[Array, "k n"]
    lost: Float[Array, ""]  # the trace of what was subtracted
    dropped: Float[Array, " k+n"]  # the eigenvector number k + 1 in the basis [V; Q]
    spread: Float[Array, "n k+n"]  # [M L]


def shrunk_directions(
    energy: Float[Array, " k"], cross: Float[Array, "n k"], gram: Float[Array, "n n"]
) -> Shrunk:
    r"""energy: of the old directions. cross: $G V^\top$. gram: $G G^\top$.

    A part of $G$ outside $V$ whose square is below eps$^{0.6}$ of the largest row counts as 0: its
    direction would be known to fewer than half of the digits.
    """
    k, eps = len(energy), float(jnp.finfo(energy.dtype).eps)
    squares, axes = _residual(gram - cross @ cross.T)
    legal = squares > eps**0.6 * jnp.max(jnp.diagonal(gram))
    lengths = jnp.where(legal, safe.sqrt(squares), 0.0)
    spread = jnp.concatenate([cross, axes * lengths], axis=1)
    old = jnp.concatenate([energy, jnp.zeros_like(lengths)])
    values, vectors = eigh(jnp.diag(old) + spread.T @ spread)
    values, vectors = jnp.maximum(values[::-1], 0.0), vectors[:, ::-1]
    left = values[:k] - values[k]
    alive = left > 8 * len(values) * eps * values[0]
    kept = jnp.where(alive[:, None], vectors[:, :k].T, 0.0)
    take = kept[:, k:] @ (safe.divide(1.0, lengths)[:, None] * axes.T)
    return Shrunk(
        jnp.where(alive, left, 0.0),
        kept[:, :k] - take @ cross,
        take,
        k * values[k] + jnp.sum(values[k:]),
        vectors[:, k],
        spread,
    )


def gram_after(
    gram: Float[Array, "m m"], delta: Float[Array, " m"], zg: Float[Array, " m"], gg: Array
) -> Float[Array, "m m"]:
    r"""The Gram matrix $Z Z^\top$ after $Z \leftarrow Z + \delta g^\top$."""
    change = jnp.multiply.outer(delta, zg + gg / 2 * delta)
    return gram + change + change.T


def _residual(gram: Array) -> tuple[Array, Array]:
    return (gram[0], jnp.ones_like(gram)) if len(gram) == 1 else eigh(gram)


@jax.custom_jvp
def eigh(a: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """Eigenvalues, the smallest first, and eigenvectors as columns, with finite derivatives.

    Eigenvectors of equal eigenvalues do not turn into each other in the derivative. Nothing that
    depends only on the sum of squares sees this.
    """
    values, vectors = jnp.linalg.eigh(a)
    return values, vectors


@eigh.defjvp
def _eigh_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    values, vectors = eigh(*primals)
    change = vectors.T @ tangents[0] @ vectors
    gap = values[None, :] - values[:, None]
    least = len(values) * float(jnp.finfo(values.dtype).eps) * jnp.max(jnp.abs(values))
    turn = safe.divide(change, gap, 0.0, jnp.abs(gap) > least)
    return (values, vectors), (jnp.diagonal(change), vectors @ turn)


class Account(NamedTuple):
    slab: _slab.Account
    start: Float[Array, ""]  # alpha |u - w_1|^2
    total: Float[Array, ""]  # the trace of S'S
    lost: Float[Array, ""]
    rows: Float[Array, ""]  # n
    whole: Bool[Array, ""]  # whether all steps used all of S


def start(hp: SketchedNewtonHparams, state: SketchedNewtonState, u: PyTree) -> Account:
    u = check.comparator(u, state.base)
    apart = tree.sub(u, state.base)
    first = sketch_alpha(hp) * jnp.asarray(tree.vdot(apart, apart))
    rows = jnp.zeros_like(first) + len(state.small.frame)
    return Account(_slab.START, first, ZERO, ZERO, rows, MET)


def terms(
    hp: SketchedNewtonHparams, state: SketchedNewtonState, feedback: Feedback, u: PyTree
) -> Account:
    x, now = feedback.context, step(hp, state, feedback)
    square = jnp.asarray(tree.vdot(x, x))
    slab = _slab.terms(hp.slab, feedback, dot(u, x), now.eta, now.energy, square)
    small = now.after.small
    whole = small.is_whole(sketch_alpha(hp))
    return Account(slab, ZERO, latest(small.total), latest(small.lost), ZERO, whole)


def both_sides(hp: SketchedNewtonHparams, account: Account, u: PyTree) -> Certificate:
    right = bound(hp, account, account.lost, account.rows, account.slab.drift / 2)
    steps = _slab.steps(hp.slab, account.slab)
    published = bound(hp, account, account.lost, account.rows + 1, steps)
    return _slab.sides(account.slab, right, published).given(WHOLE, account.whole)


def bound(
    hp: SketchedNewtonHparams, account: Account, lost: Array, rows: Array, drift: Array
) -> Array:
    """The right side for a given trace lost, number of rows and last sum."""
    alpha = sketch_alpha(hp)
    grown = rows * jnp.log1p(account.total / (rows * alpha))
    rate = 2 * (hp.slab.curvature + account.slab.eta)
    return account.start / 2 + (grown + lost / alpha) / rate + drift


directions_regret = summed(
    "directions_regret", "Luo 2016, theorems 18 and 19", terms, both_sides, start
)
THEOREMS = (directions_regret,)


class RankAccount(NamedTuple):
    inner: Account
    gram: Float[Array, "d d"]  # the sum of ghat ghat'


@public
def best_rank_regret() -> Theorem:
    """The regret by the spectrum of the gradients."""
    parts = rank_terms, rank_sides, rank_start
    return summed("best_rank_regret", "Luo 2016, theorem 18", *parts, about=_DIRECTIONS)


@public
def lost_trace() -> Theorem:
    """The trace lost by the sketch, over m, by the spectrum of the gradients."""
    parts = rank_terms, trace_sides, rank_start
    return summed("lost_trace", "Ghashami et al. 2016", *parts, about=_DIRECTIONS)


def rank_start(hp: SketchedNewtonHparams, state: SketchedNewtonState, u: PyTree) -> RankAccount:
    flat, _ = ravel_pytree(state.base)
    return RankAccount(start(hp, state, u), jnp.zeros((flat.size, flat.size), flat.dtype))


def rank_terms(
    hp: SketchedNewtonHparams, state: SketchedNewtonState, feedback: Feedback, u: PyTree
) -> RankAccount:
    x, _ = ravel_pytree(feedback.context)
    g = step(hp, state, feedback).ghat * x
    return RankAccount(terms(hp, state, feedback, u), jnp.outer(g, g))


def rank_sides(hp: SketchedNewtonHparams, account: RankAccount, u: PyTree) -> Certificate:
    inner, steps = account.inner, _slab.steps(hp.slab, account.inner.slab)
    lost, rows = hp.sketch.size * _least_tail(hp, account), account.inner.rows + 1
    right = bound(hp, inner, lost, rows, steps)
    return _slab.sides(inner.slab, right).given(WHOLE, inner.whole)


def trace_sides(hp: SketchedNewtonHparams, account: RankAccount, u: PyTree) -> Certificate:
    size = 10 * hp.sketch.size * jnp.trace(account.gram)
    return Certificate(account.inner.lost / hp.sketch.size, _least_tail(hp, account), size)


def _least_tail(hp: SketchedNewtonHparams, account: RankAccount) -> Array:
    """The least Omega_j / (m - j)."""
    m, values = hp.sketch.size, jnp.linalg.eigvalsh(account.gram)
    tails = jnp.maximum(jnp.cumsum(values)[::-1], 0.0)  # Omega_0, Omega_1, ...
    tails = jnp.concatenate([tails, jnp.zeros_like(tails[:1])])[:m]
    return jnp.min(tails / (m - jnp.arange(len(tails), dtype=tails.dtype)))


def _is_directions(learner: Learner) -> bool:
    own = [one.name for one in learner.theorems]
    return isinstance(learner.hparams, SketchedNewtonHparams) and "directions_regret" in own


_DIRECTIONS = About("`sketched_newton` with frequent directions", _is_directions)
