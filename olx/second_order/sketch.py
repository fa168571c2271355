r"""A sketch of a sum of squares: few numbers that stand for $\sum_s \hat g_s \hat g_s^\top$.

A sketch keeps a matrix $S$ with few rows, as $S = R Z$: $Z$ has one column per coordinate, $R$ is
small. With $A = \alpha I + S^\top S$,

$$A^{-1} = \frac1\alpha \big( I - Z^\top B Z \big), \qquad
  B = R^\top (\alpha I + S S^\top)^{-1} R.$$

A sketch never sees a vector with one entry per coordinate: it gets products $Z \hat g$ and squared
lengths, and it answers with the vector $\delta$ of the change $Z \leftarrow Z + \delta \hat
g^\top$. So a round touches only the coordinates of its row.

A sketch may count less than $S^\top S$ in $A$, for the sake of rounding. Its `solve_fn` and its
`energy_fn` speak of one matrix $A$. For $S = e^{1/2} V$ with orthonormal rows $V$ it is

$$A = \alpha I + V^\top \text{diag}(\bar e) V, \qquad
  \bar e = \min\big( e,\; \alpha\, (\epsilon^{-1/2} - 1) \big),$$

with $\epsilon$ the spacing of floats: an energy counts as at most about 2,900 alpha in float32 and
67 million alpha in float64. With a larger one, small errors of $V$ would make $A$ indefinite. The
sketch keeps the energies $e$ themselves; it needs them to tell its directions apart.

Luo, Optimal and Adaptive Online Learning, 2016, chapter 4; Luo, Agarwal, Cesa-Bianchi, Langford,
Efficient Second Order Online Learning by Sketching, 2016.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _numeric as safe
from olx._call import Call
from olx._pytree import pytree, static
from olx.core import Scalar
from olx.theorem import Theorem


@pytree
class Sketch:
    """A rule that keeps $S$. All functions live at module level; `small` is its own state.

    The last three functions change coordinates: if `due_fn` says so, $Z$ becomes `basis_fn` times
    $Z$ and `small` becomes `rebased_fn`, for the same $S$. They are None for a sketch that never
    needs it.
    """

    hparams: PyTree
    size: int = static()  # the number m of the theory
    # (hparams, alpha, params) -> (small, Z)
    init_fn: Callable[..., tuple[PyTree, PyTree]] = static()
    # (hparams, alpha, small, Z g, g.g) -> (small, delta)
    update_fn: Callable[..., tuple[PyTree, Array]] = static()
    # (alpha, small, Z x, x.x) -> (B Z x, alpha x'A^-1 x)
    solve_fn: Callable[..., tuple[Array, Array]] = static()
    energy_fn: Callable[..., Array] = static()  # (alpha, small, Z v) -> v'(A - alpha I) v
    due_fn: Callable[..., Array] | None = static(default=None)  # (small) -> bool
    basis_fn: Callable[..., Array] | None = static(default=None)  # (small, Z Z') -> matrix
    rebased_fn: Callable[..., PyTree] | None = static(default=None)  # (small) -> small
    theorems: tuple[Theorem, ...] = ()  # about the learner with this sketch
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def init(self, alpha: Scalar, params: PyTree) -> tuple[PyTree, PyTree]:
        return self.init_fn(self.hparams, alpha, params)

    def update(self, alpha: Scalar, small: PyTree, zg: Array, gg: Array) -> tuple[PyTree, Array]:
        return self.update_fn(self.hparams, alpha, small, zg, gg)


def product(rows: PyTree, x: PyTree) -> Float[Array, " m"] | Float[Array, ""]:
    """$Z x$; 0 if there are no rows."""
    if rows is None:
        return jnp.zeros((), jnp.result_type(*jax.tree.leaves(x)))
    parts = jax.tree.map(lambda z, x: jnp.tensordot(z, x, np.ndim(x)), rows, x)
    return jnp.asarray(sum(jax.tree.leaves(parts)))


def combined_weights(rows: PyTree, b: Float[Array, " m"], base: PyTree) -> PyTree:
    r"""`base` plus $Z^\top b$."""
    if rows is None:
        return base
    return jax.tree.map(lambda z, base: base + jnp.tensordot(b, z, 1), rows, base)


def grown_rows(rows: PyTree, delta: Float[Array, " m"], x: PyTree) -> PyTree:
    r"""$Z + \delta x^\top$."""
    if rows is None:
        return None
    return jax.tree.map(lambda z, x: z + jnp.multiply.outer(delta, x), rows, x)


def mixed_rows(basis: Float[Array, "m m"], rows: PyTree) -> PyTree:
    """The matrix `basis` times $Z$."""
    return jax.tree.map(lambda z: jnp.tensordot(basis, z, 1), rows)


PERIOD = 1 << 14  # rounds; after so many, rounding errors in Z call for other coordinates


def products(rows: PyTree) -> Float[Array, "m m"]:
    r"""$Z Z^\top$."""
    flat = [z.reshape(len(z), -1) for z in jax.tree.leaves(rows)]
    return jnp.asarray(sum(z @ z.T for z in flat))


def orthonormal(frame: Float[Array, "k m"], gram: Float[Array, "m m"]) -> Float[Array, "k m"]:
    r"""`frame` with the rows of `frame` $Z$ made orthonormal, if they are nearly so.

    It is one step of Newton and Schulz, with the true products `gram` $= Z Z^\top$. The products
    that a sketch keeps itself know nothing of the rounding errors in $Z$.
    """
    return 1.5 * frame - 0.5 * (frame @ gram @ frame.T) @ frame


def empty_rows(count: int, params: PyTree) -> PyTree:
    """$Z = 0$ with `count` rows."""
    return jax.tree.map(lambda leaf: jnp.zeros((count, *np.shape(leaf)), leaf.dtype), params)


def nothing() -> Sketch:
    """The sketch $S = 0$: gradient descent with the step $1 / \\alpha$."""
    return Sketch(None, 0, _init, _update, _solve, _energy)


def _init(hp: None, alpha: Scalar, params: PyTree) -> tuple[None, None]:
    return None, None


def _update(hp: None, alpha: Scalar, small: None, zg: Array, gg: Array) -> tuple[None, Array]:
    return None, zg


def _solve(alpha: Scalar, small: None, zx: Array, xx: Array) -> tuple[Array, Array]:
    return zx, xx


def _energy(alpha: Scalar, small: None, zv: Array) -> Array:
    return jnp.zeros_like(zv)


def dtype_of(params: PyTree) -> jnp.dtype:
    return jnp.result_type(*jax.tree.leaves(params))


def columns(params: PyTree) -> int:
    """The number of coordinates."""
    return int(tree.size(params))


WHOLE = "energies of the sketch must not exceed `alpha` / eps^(1/2), where the step counts less"


def solve(alpha: Scalar, frame: Array, energy: Array, zx: Array, xx: Array) -> tuple[Array, Array]:
    """The solution for directions V = frame Z; nothing cancels."""
    v = frame @ zx
    rest = jnp.maximum(xx - jnp.vdot(v, v), 0.0)
    left = alpha / (alpha + counted_energies(alpha, energy))
    return ((1 - left) * v) @ frame, rest + jnp.sum(left * v**2)


def square(alpha: Scalar, frame: Array, energy: Array, zv: Array) -> Float[Array, ""]:
    r"""$v^\top (A - \alpha I) v$."""
    return jnp.sum(counted_energies(alpha, energy) * (frame @ zv) ** 2)


def is_whole(alpha: Scalar, energy: Array) -> Bool[Array, ""]:
    """Whether all energies count in full."""
    return jnp.all(energy <= most(alpha, energy))


def counted_energies(alpha: Scalar, energy: Array) -> Array:
    r"""$\bar e$."""
    return jnp.minimum(energy, most(alpha, energy))


def share(square: Array, most: Array) -> Array:
    """The share of a squared length that counts, if it counts as at most `most`."""
    return safe.divide(jnp.minimum(square, most), square, 1.0)


def most(alpha: Scalar, energy: Array, power: float = 0.5) -> Array:
    r"""$\alpha\, (\epsilon^{-p} - 1)$."""
    return alpha * jnp.asarray(float(jnp.finfo(energy.dtype).eps) ** -power - 1, energy.dtype)
