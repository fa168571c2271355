r"""Negative entropy on the probability simplex, whose coordinates may have a lower bound.

$$\psi(w) = s \sum_i w_i \log \frac{w_i}{p_i}, \qquad
  \psi^*(\theta) = s \log \sum_i p_i e^{\theta_i / s}.$$

The gradient of $\psi^*$ is the softmax, so mirror descent with it is Hedge. $\psi$ is the relative
entropy to the prior $p$ (uniform unless given), is never negative, and is $s$-strongly convex in
$\|\cdot\|_1$.

With a floor, $S = \{ w : w_i \ge \varepsilon, \sum_i w_i = 1 \}$, the gradient of $\psi^*$ is the
entropic projection of $e^{\theta/s}$: the smallest coordinates are set to $\varepsilon$, the $m$
others share $1 - (n - m)\varepsilon$ by softmax, where $m$ is the largest number for which all of
them are at least $\varepsilon$. As in fixed share, small weights can recover quickly.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, example 4, lemma 16 and
figure 7.3, with the denominator $1 - l\varepsilon$ in place of the printed $1 - \varepsilon$.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.special import entr, logsumexp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._refusal import public
from olx.convex import _domain, norms
from olx.convex.projections import entropic_floor
from olx.core import Scalar
from olx.facts import Aggregate
from olx.mirrors.base import MirrorMap, with_argmax


@public
def negative_entropy(scale: Scalar = 1.0, prior: PyTree | None = None) -> MirrorMap:
    """The relative entropy to `prior` over all coordinates of a decision, times `scale`.

    prior: positive weights shaped like a decision that sum to 1; uniform if None.

    >>> import jax.numpy as jnp
    >>> mirror = negative_entropy()
    >>> mirror.to_primal(jnp.log(jnp.array([1.0, 3.0]))).round(6).tolist()
    [0.25, 0.75]
    """
    scale = check.positive("scale", scale)
    if prior is not None:
        prior = check.positive("prior", prior, each=True)
    return MirrorMap(
        Partial(_potential, scale, prior),
        Partial(_conjugate, scale, prior),
        norm=norms.l1(),
        modulus=scale,
        contains=Partial(_domain.unit_simplex),
        retraction=Partial(_retract, scale, prior),
        centering=Partial(_domain.below_top),
        aggregate=_exponentials(scale) if prior is None else None,
        offset=Partial(_constants, scale, prior),
    )


@public
def floored_entropy(floor: Scalar, scale: Scalar = 1.0) -> MirrorMap:
    """The relative entropy to the uniform point, times `scale`, with all coordinates >= `floor`.

    floor: between 0 and 1 / n for decisions of n coordinates. For a larger floor the set is empty
        and every decision is NaN.

    >>> import jax.numpy as jnp
    >>> floored_entropy(0.25).to_primal(jnp.array([0.0, 100.0])).tolist()
    [0.25, 0.75]
    """
    floor = check.between("floor", floor, 0, 1)
    scale = check.positive("scale", scale)
    return with_argmax(
        Partial(_floored_potential, scale),
        Partial(_floored_argmax, floor, scale),
        norm=norms.l1(),
        modulus=scale,
        contains=Partial(_domain.simplex, floor, 1.0),
        centering=Partial(_domain.below_top),
    )


def _potential(scale: Scalar, prior: PyTree, w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    return scale * (-jnp.sum(entr(flat)) - flat @ _log_prior(prior, flat))  # entr(0) = 0


def _conjugate(scale: Scalar, prior: PyTree, theta: PyTree) -> Array:
    """The largest entry is that of `below_top`, found once for both; products, not quotients."""
    flat, _ = ravel_pytree(theta)
    if prior is not None:
        return scale * logsumexp(flat / scale + _log_prior(prior, flat))
    top = _domain.top(flat)
    level = jnp.where(jnp.isfinite(top), top, 0.0)
    total = jnp.sum(jnp.exp((flat - level) * (1 / scale)))
    return scale * (jnp.log(total) - jnp.log(flat.size)) + level


def _constants(scale: Scalar, prior: PyTree, w: PyTree) -> Array:
    return scale * jnp.max(-_log_prior(prior, ravel_pytree(w)[0]))


def _exponentials(scale: Scalar) -> Aggregate:
    r"""The terms $e^{\theta_i / s}$."""
    parts = (Partial(part, scale) for part in (_term, _log_term, _entry))
    return Aggregate(*parts, zero_adds_nothing=False, additive=True)


def _term(scale: Scalar, theta: Array, level: Array) -> Array:
    return jnp.exp(theta / scale - level)


def _log_term(scale: Scalar, theta: Array) -> Array:
    return theta / scale


def _entry(scale: Scalar, log: Array) -> Array:
    return scale * log


def _retract(scale: Scalar, prior: PyTree, theta: PyTree) -> PyTree:
    level = _conjugate(scale, prior, theta) - scale
    return jax.tree.map(lambda leaf: leaf - level, theta)


def _log_prior(prior: PyTree, flat: Array) -> Array:
    if prior is None:
        return jnp.full_like(flat, -jnp.log(flat.size))
    return jnp.log(ravel_pytree(prior)[0])


def _floored_potential(scale: Scalar, w: PyTree) -> Array:
    flat, _ = ravel_pytree(w)
    return scale * (jnp.sum(flat) * jnp.log(flat.size) - jnp.sum(entr(flat)))


def _floored_argmax(floor: Scalar, scale: Scalar, theta: PyTree) -> PyTree:
    return entropic_floor(jax.tree.map(lambda leaf: leaf / scale, theta), floor)
