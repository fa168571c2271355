r"""Penalties and their proximal operators.

For a convex penalty $F$,

$$\operatorname{prox}(v, \gamma) = \arg\min_w \; \gamma F(w) + \tfrac12 \|w - v\|^2 .$$

A quadratic potential plus a penalty gives composite mirror descent and dual averaging. The decision
is the prox of the scaled sum of gradients, so an $\ell_1$ penalty gives exact zeros.

`soft_shares` gives the proximal map of the logarithm of a sum of exponentials,

$$s = \arg\min_s\; c \log \sum_r e^{s_r} + \tfrac12 \|s - b\|^2, \qquad p_r = e^{s_r - L}, \quad
  L = \log \sum_r e^{s_r}.$$

At the minimum $s = b - c\,p$, so each share solves an equation of its own, $\log p_r + c\,p_r = b_r
- L$, and $L$ is the one number for which the shares sum to 1. Their sum falls in $L$, and is convex
in it, so Newton's method finds $L$ between $\log \sum_r e^{b_r} - c$ and $\log \sum_r e^{b_r}$.

The equation of a share is that of the Wright $\omega$ function, $c\,p = \omega(b_r - L + \log c)$.
A step of the iteration below multiplies the number of correct digits by four. It works with $p$ and
not with $c\,p$, so that $c = 0$ is legal.

Parikh, Boyd, Proximal Algorithms, 2014; Fritsch, Shafer, Crowley, Algorithm 443: Solution of the
Transcendental Equation $w e^w = x$, 1973; Corless, Jeffrey, The Wright $\omega$ Function, 2002.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._call import Call
from olx._pytree import like, pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.convex import _domain
from olx.convex import _spectral as spectral
from olx.convex.projections import weighted_l1_ball
from olx.convex.roots import root
from olx.convex.sets import ConvexSet
from olx.core import Scalar

_SHARE_STEPS = 3  # the first error is below 1/2, so the last one is below its 64th power


@pytree
class Penalty:
    r"""A convex function of a decision, with its proximal operator.

    value: $w \mapsto F(w)$.
    prox: $(v, \gamma) \mapsto \operatorname{prox}(v, \gamma)$. For a separable penalty $\gamma$ may
        be a tree shaped like $v$, with one step per coordinate.
    separable: whether $F$ is a sum over coordinates.
    """

    value: Partial
    prox: Partial
    separable: bool = static(default=False)
    name: Call = static(kw_only=True, default=Call())  # the call that makes it


@public
def l1(strength: PyTree = 1.0) -> Penalty:
    r"""$\lambda \|w\|_1$; the prox is a soft threshold.

    strength: one number, or a tree shaped like a decision, with one strength per coordinate; so in
        `squared_l2` and `elastic_net`.

    >>> import jax.numpy as jnp
    >>> l1(0.5).prox(jnp.array([2.0, -0.25, -1.0]), 1.0).tolist()
    [1.5, 0.0, -0.5]
    """
    strength = check.non_negative("strength", strength, each=True)
    return Penalty(Partial(_elastic, strength, 0.0), Partial(_shrink, strength, 0.0), True)


@public
def squared_l2(strength: PyTree = 1.0) -> Penalty:
    r"""$\frac\lambda2 \|w\|_2^2$; the prox scales the vector down."""
    strength = check.non_negative("strength", strength, each=True)
    return Penalty(Partial(_elastic, 0.0, strength), Partial(_shrink, 0.0, strength), True)


@public
def elastic_net(l1: PyTree, l2: PyTree) -> Penalty:
    r"""$\lambda_1 \|w\|_1 + \frac{\lambda_2}2 \|w\|_2^2$."""
    l1 = check.non_negative("l1", l1, each=True)
    l2 = check.non_negative("l2", l2, each=True)
    return Penalty(Partial(_elastic, l1, l2), Partial(_shrink, l1, l2), True)


@public
def group_l2(strength: Scalar = 1.0) -> Penalty:
    r"""$\lambda \sum_g \|w_g\|_2$; the prox sets whole groups to zero.

    Each row (leading axis) of an array with two or more axes is a group. Each vector or number is
    one group.

    >>> import jax.numpy as jnp
    >>> group_l2(1.0).prox(jnp.array([[3.0, 4.0], [0.5, 0.5]]), 1.0).round(4).tolist()
    [[2.4, 3.2], [0.0, 0.0]]
    """
    strength = check.non_negative("strength", strength)
    return Penalty(Partial(_groups_value, strength), Partial(_groups_prox, strength))


@public
def nuclear(strength: Scalar = 1.0) -> Penalty:
    r"""$\lambda \sum_i \sigma_i(W)$, summed over matrices; the prox shrinks singular values."""
    strength = check.non_negative("strength", strength)
    return Penalty(Partial(_nuclear_value, strength), Partial(_nuclear_prox, strength))


@public
def linf(strength: Scalar = 1.0) -> Penalty:
    r"""$\lambda \|w\|_\infty$; the prox clips the largest entries to one level."""
    strength = check.non_negative("strength", strength)
    return Penalty(Partial(_linf_value, strength), Partial(_linf_prox, strength))


@public
def indicator(domain: ConvexSet) -> Penalty:
    """0 in the set and infinite outside; the prox is the projection, for any step.

    domain: a set of `olx.convex.sets`.

    >>> import jax.numpy as jnp
    >>> from olx.convex import sets
    >>> indicator(sets.box(0.0, jnp.inf)).prox(jnp.array([2.0, -1.0]), 0.5).tolist()
    [2.0, 0.0]
    """
    check.instance("domain", domain, ConvexSet)
    value = Partial(_indicator_value, domain.project)
    return Penalty(value, Partial(_indicator_prox, domain.project), domain.separable)


@public
def restrict(penalty: Penalty, domain: ConvexSet) -> Penalty:
    """A separable penalty inside a box, infinite outside; the prox is projected.

    In one coordinate the constrained minimum is the unconstrained one, moved to the nearest end.

    >>> import jax.numpy as jnp
    >>> from olx.convex import sets
    >>> lasso = restrict(l1(0.5), sets.box(0.0, jnp.inf))
    >>> lasso.prox(jnp.array([2.0, 0.25, -1.0]), 1.0).tolist()
    [1.5, 0.0, 0.0]
    """
    check.instance("penalty", penalty, Penalty)
    check.instance("domain", domain, ConvexSet)
    if not (penalty.separable and domain.separable):
        raise RefusedValue(
            "`penalty` must be a sum over coordinates and `domain` a box: otherwise the projected "
            "prox is not the prox of the sum."
        )
    value = Partial(_restricted_value, penalty.value, domain.project)
    return Penalty(value, Partial(_restricted_prox, penalty.prox, domain.project), True)


def soft_shares(step: Scalar, b: Float[Array, "... k"]) -> Float[Array, "... k"]:
    r"""The shares $p$ of the proximal map at $b$, which is $b - c\,p$ for $c$ = `step`, at least 0.

    step: a number, or one per vector of `b`.

    >>> import jax.numpy as jnp
    >>> b = jnp.array([1.0, 0.0, -1.0])
    >>> p = soft_shares(2.0, b)
    >>> bool(jnp.allclose(p, jax.nn.softmax(b - 2.0 * p)))
    True
    """
    step = jnp.broadcast_to(jnp.asarray(step, b.dtype), b.shape[:-1])
    top = logsumexp(b, -1)
    level = root(Partial(_unspent, step, b), top - step, top, top - step)
    return _share(b - level[..., None], step[..., None])


def _elastic(l1: PyTree, l2: PyTree, w: PyTree) -> Array:
    cost = lambda w, l1, l2: jnp.sum(l1 * jnp.abs(w) + l2 * w * w / 2)
    return jnp.asarray(tree.sum(jax.tree.map(cost, w, like(l1, w), like(l2, w))))


def _shrink(l1: PyTree, l2: PyTree, v: PyTree, step: PyTree) -> PyTree:
    shrink = lambda v, step, l1, l2: soft(v, step * l1) / (1 + step * l2)
    return jax.tree.map(shrink, v, like(step, v), like(l1, v), like(l2, v))


def soft(v: Array, threshold: Array) -> Array:
    # `<`, not `<=`: with a threshold of 0 this is the identity, also in its derivative.
    inside = jnp.abs(v) < threshold
    return jnp.where(inside, 0.0, v - threshold * jnp.sign(v))


def _lengths(leaf: Array) -> Array:
    """The length of every group, in a shape that broadcasts to the leaf, with gradient 0 at 0."""
    axes = tuple(range(min(1, leaf.ndim - 1), leaf.ndim)) if leaf.ndim else ()
    return safe.sqrt(jnp.sum(leaf * leaf, axis=axes, keepdims=True))


def _groups_value(strength: Scalar, w: PyTree):
    return strength * tree.sum(jax.tree.map(_lengths, w))


def _groups_prox(strength: Scalar, v: PyTree, step: Array) -> PyTree:
    threshold = step * strength

    def shrink(leaf: Array) -> Array:
        lengths = _lengths(leaf)
        kept = 1 - threshold / safe.or_one(lengths)
        return jnp.where(lengths < threshold, 0.0, leaf * kept)

    return jax.tree.map(shrink, v)


def _nuclear_value(strength: Scalar, w: PyTree):
    curve = spectral.Curve(Partial(jnp.abs), Partial(jnp.abs))
    total = lambda leaf: spectral.trace(curve, spectral.dilate(_matrix(leaf))) / 2
    return strength * tree.sum(jax.tree.map(total, w))


def _nuclear_prox(strength: Scalar, v: PyTree, step: Array) -> PyTree:
    threshold = step * strength
    curve = spectral.Curve(Partial(_soft_at, threshold), Partial(_distance, threshold))
    return jax.tree.map(lambda leaf: spectral.apply_odd(curve, _matrix(leaf)), v)


def _soft_at(threshold: Array, x: Array) -> Array:
    return soft(x, threshold)


def _distance(threshold: Scalar, x: Array) -> Array:
    return jnp.abs(jnp.abs(x) - threshold)


@own_name("nuclear")
def _matrix(leaf: Array) -> Array:
    if jnp.ndim(leaf) != 2:
        raise RefusedType(f"every array must be a matrix, got shape {jnp.shape(leaf)}.")
    return leaf


def _linf_value(strength: Scalar, w: PyTree) -> Array:
    return strength * tree.norm(w, ord=jnp.inf)


def _linf_prox(strength: Scalar, v: PyTree, step: Array) -> PyTree:
    return tree.sub(v, weighted_l1_ball(v, 1.0, step * strength))


def _indicator_value(project: Callable, w: PyTree) -> Array:
    return jnp.where(_domain.stays(project, w), 0.0, jnp.inf)


def _indicator_prox(project: Callable, v: PyTree, step: PyTree) -> PyTree:
    return project(v)


def _restricted_value(value: Callable, project: Callable, w: PyTree) -> Array:
    return value(w) + _indicator_value(project, w)


def _restricted_prox(prox: Callable, project: Callable, v: PyTree, step: PyTree) -> PyTree:
    return project(prox(v, step))


def _unspent(step: Array, b: Array, level: Array) -> Array:
    return 1 - jnp.sum(_share(b - level[..., None], step[..., None]), -1)


@jax.custom_jvp
def _share(a: Array, c: Array) -> Array:
    r"""The $p$ with $\log p + c\,p = a$, element by element, for $c \ge 0$."""
    least = math.log(float(jnp.finfo(a.dtype).tiny))
    tame = jnp.maximum(a, least)
    p = _below_share(tame, c)
    for _ in range(_SHARE_STEPS):
        more = 1 + c * p
        miss = tame - c * p - jnp.log(p)
        curve = more * (more + 2 * miss / 3)
        p = p * (1 + miss / more * (curve - miss / 2) / (curve - miss))
    return jnp.where(a < least, jnp.exp(a), p)


@_share.defjvp
def _share_jvp(primals: tuple, moves: tuple) -> tuple[Array, Array]:
    (a, c), (da, dc) = primals, moves
    p = _share(a, c)
    return p, p * (da - p * dc) / (1 + c * p)


def _below_share(a: Array, c: Array) -> Array:
    r"""A start below $p$: $e^a / (1 + c\,e^a)$, or $(z - \log z) / c$ if $z = a + \log c > 1$."""
    z = a + jnp.log(safe.or_one(c))
    far = (z > 1) & (c > 0)
    small = jnp.exp(jnp.where(far, 0.0, a))
    large = safe.or_one(z, far)
    return jnp.where(far, (large - jnp.log(large)) / safe.or_one(c), small / (1 + c * small))
