r"""The sketch of random projections: $S_t = \sum_{s \le t} r_s \hat g_s^\top$ with random $r_s$.

The entries of $r_s$ are independent normal numbers of variance $1/m$, so the mean of $S^\top S$ is
the sketched sum. The matrix $(\alpha I + S S^\top)^{-1}$ is kept by its root: with $q = S \hat g +
\frac{|\hat g|^2}2 r$ a round adds $q r^\top + r q^\top$ to $S S^\top$, which is one update and one
downdate of rank one. A round costs $O(m^2)$ beside the products with the row. The square of a
vector $\hat g$ counts as at most about 5e11 alpha, in float32 150,000 alpha: $r$ is shorter for a
longer vector, else the downdate would lose all digits.

Two theorems say what the projection costs in the terms of `newton_regret`. Let $\hat G_t$ have the
rows $\hat g_1, \dots, \hat g_t$. `projection_terms`: if in every round $(1 - \epsilon)\, \hat
G_t^\top \hat G_t \preceq S_t^\top S_t$, then

$$\sum_{s \le t} g_s^\top A_s^{-1} g_s \le \frac{1}{1 - \epsilon} \sum_{s \le t} g_s^\top
  (\alpha I + \hat G_s^\top \hat G_s)^{-1} g_s.$$

The left side is the second term of `newton_regret`. The condition holds with probability at least
$1 - \delta$ for $m$ of the order of $(\text{rank} + \ln(T / \delta)) / \epsilon^2$; the account
checks it by eigenvalues. It keeps a matrix with one row and one column per coordinate, so this
theorem is for few coordinates.

The third term of `newton_regret` sums up $(w_s - u)^\top \Delta_s (w_s - u)$ for $\Delta_s = A_s -
A_{s-1} - \sigma g_s g_s^\top$. In expectation over the draws,

$$\mathbb E \sum_{s \le t} (w_s - u)^\top \Delta_s (w_s - u) = \mathbb E \sum_{s \le t} \eta_s
  \langle g_s, w_s - u\rangle^2 \le 4 (C L)^2 \sum_{s \le t} \eta_s,$$

because $w_s$ and $g_s$ are known before $r_s$ is drawn. With $a_s = \langle\hat g_s, w_s -
u\rangle$ and $z_s = S_{s-1} (w_s - u)$ the draw enters by $X_s = 2 a_s \langle r_s, z_s\rangle +
a_s^2 |r_s|^2$. So `projection_drift` says of a single run: for any rate $\lambda > 0$, with
probability at least $1 - \delta$ for all $t$ at once,

$$\sum_{s \le t} (w_s - u)^\top \Delta_s (w_s - u) \le
  \sum_{s \le t} \eta_s \langle g_s, w_s - u\rangle^2 +
  \frac1\lambda \Big( \ln\frac1\delta + \sum_{s \le t} K_s \Big), \qquad
  K_s = \frac m2 \big( -\ln(1 - q_s) - q_s \big) + \frac{\lambda q_s |z_s|^2}{1 - q_s},$$

with $q_s = 2 \lambda a_s^2 / m < 1$. Proof: $e^{K_s}$ is the mean of $e^{\lambda (X_s - a_s^2)}$,
where $X_s$ is a quadratic function of $m$ normal numbers of variance $1 / m$. The product of all
$e^{\lambda (X_s - a_s^2) - K_s}$ is a martingale, and it ever exceeds $1 / \delta$ with probability
at most $\delta$.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 12 and theorem 17.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree, static
from olx._refusal import public
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.lift import dot
from olx.second_order import _slab, sketch, sketched_newton
from olx.second_order.rank_one import changed_root
from olx.second_order.sketch import Sketch, combined_weights, dtype_of, empty_rows, product
from olx.second_order.sketched_newton import SketchedNewtonHparams, SketchedNewtonState, step
from olx.theorem import About, Theorem


@pytree
class ProjectionHparams:
    size: int = static()
    key: Array


class Projection(NamedTuple):
    root: Float[Array, "m m"]  # Q Q' is the inverse of alpha I + S S'
    total: Float[Array, ""]  # the trace of S S'
    key: Array  # for the next vector


@public
def random_projection(size: int, key: Array) -> Sketch:
    r"""A random sketch of `size` rows.

    size: $m$, at least 1.
    key: a key of `jax.random`; a batch over keys repeats the game with new draws.

    >>> import jax, jax.numpy as jnp
    >>> sketch = random_projection(3, jax.random.key(0))
    >>> small, rows = sketch.init(2.0, jnp.zeros(5))
    >>> small, r = sketch.update(2.0, small, jnp.zeros(3), jnp.ones(()))
    >>> inverse = jnp.linalg.inv(2.0 * jnp.eye(3) + jnp.outer(r, r))
    >>> bool(jnp.allclose(small.root @ small.root.T, inverse, atol=1e-6))
    True
    """
    check.key(key)
    check.size("size", size)
    return Sketch(ProjectionHparams(size, key), size, init, update, solve, energy)


def init(hp: ProjectionHparams, alpha: Scalar, params: PyTree) -> tuple[Projection, PyTree]:
    dtype = dtype_of(params)
    root = jnp.eye(hp.size, dtype=dtype) / jnp.sqrt(jnp.asarray(alpha, dtype))
    return Projection(root, jnp.zeros((), dtype), hp.key), empty_rows(hp.size, params)


def update(
    hp: ProjectionHparams, alpha: Scalar, small: Projection, zg: Array, gg: Array
) -> tuple[Projection, Array]:
    later, now = jax.random.split(small.key)
    r = jax.random.normal(now, zg.shape, zg.dtype) / jnp.sqrt(jnp.asarray(hp.size, zg.dtype))
    r = safe.sqrt(sketch.share(gg, sketch.most(alpha, gg, 0.75))) * r
    q = zg + gg / 2 * r
    total = jnp.maximum(small.total + 2 * jnp.vdot(q, r), 0.0)
    return Projection(changed_root(small.root, q, r), total, later), r


def solve(alpha: Scalar, small: Projection, zx: Array, xx: Array) -> tuple[Array, Array]:
    along = zx @ small.root
    least = alpha / (alpha + small.total)  # no eigenvalue of S'S is larger than the trace
    return small.root @ along, jnp.maximum(xx - jnp.vdot(along, along), least * xx)


def energy(alpha: Scalar, small: Projection, zv: Array) -> Array:
    return jnp.vdot(zv, zv)


CLOSE = "the sketch must be at least 1 - `epsilon` times what it stands for"


class Account(NamedTuple):
    gram: Float[Array, "d d"]  # the sum of ghat ghat'
    sketched: Float[Array, ""]  # the sum of g'A^(-1) g
    full: Float[Array, ""]  # the same with the full matrix
    close: Bool[Array, ""]
    unit: Bool[Array, ""]


@public
def projection_terms(epsilon: Scalar) -> Theorem:
    """The gradients in the norm of a random projection, against those in the full norm.

    epsilon: in [0, 1).
    """
    epsilon = check.between("epsilon", epsilon, 0.0, 0.999999)
    parts = open_account, Partial(add_round, epsilon), Partial(both_sides, epsilon)
    return Theorem("projection_terms", "Luo 2016, theorem 17", *parts, about=_PROJECTION)


def open_account(hp: SketchedNewtonHparams, state: SketchedNewtonState, u: PyTree) -> Account:
    flat, _ = ravel_pytree(state.base)
    zero, yes = jnp.zeros((), flat.dtype), jnp.ones((), bool)
    return Account(jnp.zeros((flat.size, flat.size), flat.dtype), zero, zero, yes, yes)


def add_round(
    epsilon: Scalar,
    hp: SketchedNewtonHparams,
    account: Account,
    state: SketchedNewtonState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    now, (x, _) = step(hp, state, feedback), ravel_pytree(feedback.context)
    g, ghat = feedback.grad * x, now.ghat * x
    gram = account.gram + jnp.outer(ghat, ghat)
    rows = jax.vmap(lambda row: ravel_pytree(row)[0])(now.after.rows)
    rest = jnp.linalg.eigvalsh(rows.T @ rows - (1 - epsilon) * gram)[0]
    rounding = 64 * len(x) * jnp.finfo(x.dtype).eps * jnp.trace(gram)
    ridge = sketched_newton.sketch_alpha(hp) * jnp.eye(len(x), dtype=x.dtype)
    full = jnp.vdot(g, jnp.linalg.solve(gram + ridge, g))
    return Account(
        gram,
        account.sketched + now.energy,
        account.full + full,
        account.close & (rest >= -rounding),
        account.unit & (jnp.asarray(feedback.weight) == 1),
    )


def both_sides(
    epsilon: Scalar, hp: SketchedNewtonHparams, account: Account, u: PyTree
) -> Certificate:
    right = account.full / (1 - epsilon)
    proof = Certificate(account.sketched, right, 10 * (account.sketched + right))
    return proof.under({CLOSE: account.close, UNIT_WEIGHTS: account.unit})


NARROW = "`rate` must be below m / (2 a^2) for the size m of the sketch and a = <ghat, w - u>"


class Drift(NamedTuple):
    newton: sketched_newton.Account
    mean: Float[Array, ""]  # the sum of eta <g, w - u>^2
    luck: Float[Array, ""]  # the sum of K
    narrow: Bool[Array, ""]


@public
def projection_drift(delta: Scalar, rate: Scalar) -> Theorem:
    r"""The third term of `newton_regret` for a random projection, with probability $1 - \delta$.

    `published` replaces the sum of $\eta_s \langle g_s, w_s - u\rangle^2$ by its bound.

    delta: in (0, 1].
    rate: $\lambda$, positive, fixed before the draws. The best one is about
        $\sqrt{m \ln(1 / \delta) / (2 \sum_s a_s^2 |z_s|^2)}$.
    """
    delta = check.above("delta", delta, 0.0, 1.0)
    rate = check.positive("rate", rate)
    parts = open_drift, Partial(add_drift, rate), Partial(drift_sides, delta, rate)
    return Theorem("projection_drift", "Luo 2016, theorem 17 (1)", *parts, about=_PROJECTION)


def open_drift(hp: SketchedNewtonHparams, state: SketchedNewtonState, u: PyTree) -> Drift:
    newton = sketched_newton.open_account(hp, state, u)
    zero = jnp.zeros_like(newton.terms)
    return Drift(newton, zero, zero, jnp.ones((), bool))


def add_drift(
    rate: Scalar,
    hp: SketchedNewtonHparams,
    account: Drift,
    state: SketchedNewtonState,
    feedback: Feedback,
    u: PyTree,
) -> Drift:
    now, apart = step(hp, state, feedback), feedback.action - dot(u, feedback.context)
    gap = tree.sub(combined_weights(state.rows, now.mix, now.base), u)
    z = product(state.rows, gap)
    q = 2 * rate * (now.ghat * apart) ** 2 / hp.sketch.size
    legal = q < 1
    q = jnp.where(legal, q, 0.0)
    luck = hp.sketch.size / 2 * (-jnp.log1p(-q) - q) + rate * q * jnp.vdot(z, z) / (1 - q)
    return Drift(
        sketched_newton.add_round(hp, account.newton, state, feedback, u),
        account.mean + now.eta * (feedback.grad * apart) ** 2,
        account.luck + luck,
        account.narrow & legal,
    )


def drift_sides(
    delta: Scalar, rate: Scalar, hp: SketchedNewtonHparams, account: Drift, u: PyTree
) -> Certificate:
    slab = account.newton.slab
    spread = (account.luck + jnp.log(1 / jnp.asarray(delta, slab.drift.dtype))) / rate
    right, published = (side + spread for side in (account.mean, 2 * _slab.steps(hp.slab, slab)))
    proof = Certificate(slab.drift, right, account.newton.terms + right, published)
    met = {_slab.INSIDE: slab.inside, _slab.STEEP: slab.flat}
    return proof.under(met | {UNIT_WEIGHTS: slab.unit, NARROW: account.narrow})


def _is_projection(learner: Learner) -> bool:
    hp = learner.hparams
    own = isinstance(hp, SketchedNewtonHparams)
    return own and hp.sketch.init_fn is init and hp.alpha is not None


_PROJECTION = About("`sketched_newton` with a random projection and `alpha`", _is_projection)
