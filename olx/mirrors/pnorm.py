r"""Half the squared q-norm, for q between 1 and 2, plain or weighted.

$$\psi(w) = \frac{1}{2 (q - 1)} \Big( \sum_i a_i |w_i|^q \Big)^{2/q}, \qquad
  \psi^*(\theta) = \frac{1}{2 (p - 1)} \Big( \sum_i a_i^{1 - p} |\theta_i|^p \Big)^{2/p}, \qquad
  \frac1p + \frac1q = 1.$$

$\psi$ is 1-strongly convex in $(\sum_i a_i |w_i|^q)^{1/q}$. With $q = 2$ it is the squared
Euclidean norm; with $p = 2 \ln d$ it behaves like the entropy, but on the whole space.

Grove, Littlestone, Schuurmans, General Convergence Results for Linear Discriminant Updates, 2001.
Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, lemma 2.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._refusal import public
from olx.convex import _domain, norms
from olx.core import Scalar
from olx.mirrors.base import MirrorMap


@public
def pnorm(q: Scalar) -> MirrorMap:
    r"""Half the squared `q`-norm divided by q - 1.

    q: in (1, 2]; $2 \ln d / (2 \ln d - 1)$ for many irrelevant coordinates.

    >>> import jax.numpy as jnp
    >>> pnorm(1.5).to_primal(jnp.array([3.0, 0.0])).round(6).tolist()
    [1.5, 0.0]
    """
    q = check.above("q", q, 1, 2)
    return MirrorMap(
        Partial(_squared, q),
        Partial(_squared, q / (q - 1)),
        norm=norms.lp(q),
        modulus=1.0,
        retraction=Partial(_domain.same),
        aggregate=norms.powers(q / (q - 1)),
    )


@public
def weighted_pnorm(q: Scalar, weights: PyTree) -> MirrorMap:
    """Half the squared weighted `q`-norm divided by q - 1.

    weights: $a$, non-negative, shaped like a decision. A coordinate of weight 0 is always 0.
    """
    q = check.above("q", q, 1, 2)
    weights = check.non_negative("weights", weights, each=True)
    return MirrorMap(
        Partial(_stretched, q, weights),
        Partial(_shrunk, q, weights),
        norm=norms.weighted_lp(q, weights),
        modulus=1.0,
        contains=Partial(_absent, weights),
        retraction=Partial(_present, weights),
    )


def _squared(p: Scalar, x: PyTree) -> Array:
    return norms.power_squared(p, x) / (2 * (p - 1))


def _stretched(q: Scalar, weights: PyTree, w: PyTree) -> Array:
    return _squared(q, tree.mul(norms.stretch(1 / q, weights), w))


def _shrunk(q: Scalar, weights: PyTree, theta: PyTree) -> Array:
    return _squared(q / (q - 1), tree.mul(norms.stretch(-1 / q, weights), theta))


def _present(weights: PyTree, theta: PyTree) -> PyTree:
    return jax.tree.map(lambda a, theta: jnp.where(a > 0, theta, 0.0), weights, theta)


def _absent(weights: PyTree, w: PyTree) -> Array:
    flat, _ = ravel_pytree(jax.tree.map(lambda a, w: jnp.where(a > 0, 0.0, w), weights, w))
    return jnp.all(flat == 0)
