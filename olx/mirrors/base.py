r"""The type of a mirror map: a potential, its conjugate, and the functions derived from them.

For a convex $\psi$ on a domain $S$ and $\psi^*(\theta) = \sup_{w \in S} \langle \theta, w \rangle -
\psi(w)$, the gradient of $\psi$ maps decisions to the dual space. The gradient of $\psi^*$ maps
them back, projected on $S$. The constraint is part of the conjugate: softmax, projection and soft
threshold are all gradients of conjugates. `start_inside` is the need of a learner with a mirror map
for a start in its domain.

`mirror_map` checks the curvature of a function at a few points. A function that does not accept a
vector of three numbers is checked on matrices of shape (3, 3), if its conjugate is to be found. A
function of symmetric matrices fails there: minus the log-determinant is not convex on all matrices,
and a function of the symmetric part has directions without curvature. A function that accepts
neither is checked where a learner starts, if it has at most 100 coordinates. One that is traced is
not checked.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, appendix A.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree
from optax import tree

from olx import _check as check
from olx._cache import cached
from olx._call import Call
from olx._compiled import compiled
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, RefusedValue, public
from olx.convex import _domain, constrained, legendre
from olx.convex.norms import Norm
from olx.convex.sets import ConvexSet
from olx.core import Scalar
from olx.facts import Aggregate
from olx.needs import Need

Function = Callable[[PyTree], Array]
_BESIDE = 2e-6
_OFFSETS = (  # their sum is 0, so that the total does not change
    np.array([-1.0, 0.3, 0.7]),
    np.array([[0.7, -1.0, 0.3], [0.2, -0.6, 0.5], [-0.9, 0.4, 0.4]]),
)
_SYMMETRIC = (
    "; for a function of symmetric matrices use `olx.mirrors.log_det` or "
    "`olx.mirrors.von_neumann`, or give both functions"
)
_SPREADS = (0.3, 0.05, 0.003)  # relative to the point; points outside the domain are skipped
_LARGEST = 100  # coordinates of a start around which a function is checked
_FLAT = 1e-6  # times the largest curvature, is none
_ROUNDING = 1e-3  # relative to the largest curvature; enough for single precision


@pytree
class MirrorMap:
    r"""A potential and its conjugate.

    norm, modulus: $\psi$ is `modulus`-strongly convex in `norm.primal`; None if not known.
    contains: whether a point lies in the domain, up to rounding; None if the domain is everything.
    retraction: a stable closed form of `retract`; derived if None.
    centering: replaces a dual by a smaller one with the same decisions, now and after later sums.
        If decisions have a fixed sum, it subtracts one number from all coordinates.
    aggregate: of a conjugate that is a function of one sum of terms (`olx.facts.Aggregate`).
    separable, identity: whether $\psi$ is a sum over coordinates; whether $\nabla\psi(w) = w$.
    """

    potential: Partial
    conjugate: Partial
    _: dataclasses.KW_ONLY
    norm: Norm | None = None
    modulus: Scalar | None = None
    contains: Partial | None = None
    retraction: Partial | None = None
    centering: Partial | None = None
    separable: bool = static(default=False)
    identity: bool = static(default=False)
    aggregate: Aggregate | None = None
    offset: Partial | None = None  # w -> the size of the constants in both functions
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    @property
    def states_norm(self) -> bool:
        """Whether the norm and the modulus are known."""
        return self.norm is not None and self.modulus is not None

    def to_dual(self, w: PyTree) -> PyTree:
        return jax.grad(self.potential)(w)

    def to_primal(self, theta: PyTree) -> PyTree:
        return theta if self.identity else jax.grad(self.conjugate)(theta)  # no sum of two halves

    def project(self, w: PyTree) -> PyTree:
        r"""The Bregman projection $\arg\min_{v \in S} B_\psi(v, w)$ of a point outside $S$."""
        return self.to_primal(self.to_dual(w))

    def retract(self, theta: PyTree) -> PyTree:
        r"""The dual $\nabla\psi(\nabla\psi^*(\theta))$ of the decision of $\theta$."""
        if self.retraction is not None:
            return self.retraction(theta)
        return self.to_dual(self.to_primal(theta))

    def center(self, theta: PyTree) -> PyTree:
        """A smaller dual with the same decision: a growing sum of gradients loses digits."""
        return theta if self.centering is None else self.centering(theta)

    def outside(self, u: PyTree) -> Array:
        r"""The indicator of the domain: 0 inside, infinite outside."""
        return jnp.where(True if self.contains is None else self.contains(u), 0.0, jnp.inf)

    def starts(self, w: PyTree) -> Array:
        """Whether a learner can start at `w`: it lies in the domain and its dual is finite.

        A point outside by about a millionth, as by rounding, is accepted; its projection is used.
        """
        theta = self.to_dual(w)
        finite = jnp.isfinite(ravel_pytree(theta)[0])
        if self.contains is None:
            return jnp.all(finite)
        flat, moved = ravel_pytree(w)[0], ravel_pytree(self.to_primal(theta))[0]
        near = jnp.abs(moved - flat) <= _BESIDE * (1 + jnp.abs(flat))
        return jnp.all(finite) & (self.contains(w) | jnp.all(near))

    def gap(self, w: PyTree, theta: PyTree) -> Array:
        r"""Fenchel-Young: $\psi(w) + \psi^*(\theta) - \langle \theta, w \rangle \ge 0$."""
        return self.potential(w) + self.conjugate(theta) - tree.vdot(theta, w)

    def bregman(self, u: PyTree, w: PyTree) -> Array:
        r"""$B_\psi(u, w) = \psi(u) - \psi(w) - \langle \nabla\psi(w), u - w \rangle$."""
        return _bregman(self.potential, u, w)

    def energy(self, step: PyTree) -> Array | None:
        r"""$\|z\|_*^2 / (2\beta) \ge B_{\psi^*}(\theta + z, \theta)$; None if not known."""
        if self.norm is None or self.modulus is None:
            return None
        return self.norm.dual(step) ** 2 / (2 * self.modulus)

    def dual_bregman(self, theta: PyTree, start: PyTree) -> Array:
        r"""$B_{\psi^*}(\theta, \theta_0)$, from `start` $= \theta_0$."""
        return _bregman(self.conjugate, theta, start)


@public
def mirror_map(
    potential: Function | None = None,
    conjugate: Function | None = None,
    *,
    norm: Norm | None = None,
    modulus: Scalar | None = None,
    contains: Function | None = None,
    separable: bool = False,
    start: Scalar = 0.0,
    total: Scalar | None = None,
    domain: ConvexSet | None = None,
) -> MirrorMap:
    r"""Make a mirror map from a potential, a conjugate, or both.

    If one of the two is missing, it is computed numerically by a safeguarded Newton method, with
    implicit derivatives that are correct to every order. Each function takes a pytree and returns a
    scalar. Use a module-level function or a `Partial`: a new lambda compiles a new program. A
    function of symmetric matrices needs both: the search is over all matrices, where it is not
    strictly convex.

    separable: promise that the function is a sum over coordinates. The numeric transform then
        costs O(d) instead of O(d^3) and cannot fail; `olx.testing.check_mirror` checks the promise.
        Without it, a function that rises steeply at the border of its domain is solved to rounding
        error only for decisions away from that border.
    start: a number $c$ such that the point whose coordinates are all $c$ lies inside the domain of
        the given function; 1 for functions of positive numbers.
    total: restrict the domain of `potential` to points whose coordinates sum to this number;
        1 for a potential on the simplex. The search then starts at the uniform point.
    domain: restrict the domain of `potential` to this set. The conjugate is then the maximum over
        the set, found by its projection (`olx.convex.constrained`) in O(d^3); `to_primal` is the
        Bregman projection on it. The projection of the point of `start` must lie where the
        potential has a finite gradient.

    >>> import jax.numpy as jnp
    >>> cosh = mirror_map(lambda w: jnp.sum(jnp.cosh(w)), separable=True)
    >>> bool(jnp.allclose(cosh.to_primal(jnp.sinh(jnp.array([0.5, -2.0]))), jnp.array([0.5, -2.0])))
    True
    >>> from olx.convex import sets
    >>> inside = mirror_map(lambda w: jnp.sum(jnp.cosh(w)), domain=sets.ball(1.0))
    >>> [round(float(x), 3) for x in inside.to_primal(jnp.array([3.0, 4.0]))]
    [0.604, 0.797]
    """
    for name, function in (("potential", potential), ("conjugate", conjugate)):
        if function is not None:
            check.takes(name, function, "w")
    check.between("start", start, -float("inf"), float("inf"))
    if total is not None:
        check.between("total", total, -float("inf"), float("inf"))
    if modulus is not None:
        check.positive("modulus", modulus)
    if norm is not None:
        check.instance("norm", norm, Norm)
    if contains is not None:
        check.takes("contains", contains, "w")
    if total is not None and potential is None:
        raise RefusedType("`total` restricts a potential; a conjugate has it built in.")
    if domain is not None:
        check.instance("domain", domain, ConvexSet)
        if potential is None or conjugate is not None:
            raise RefusedType("`domain` restricts a potential; a conjugate has it built in.")
        if total is not None or contains is not None:
            raise RefusedType("give `domain` alone, without `total` or `contains`.")
    if potential is not None:
        alone = conjugate is None
        _check_curvature("potential", potential, start, total, separable, alone, alone)
    elif conjugate is not None:
        _check_curvature("conjugate", conjugate, start, None, separable, False, True)
    if potential is not None and conjugate is not None:
        primal, dual = as_tree(potential), as_tree(conjugate)
    elif potential is not None and domain is not None:
        primal = as_tree(potential)
        found = Partial(constrained.argmax, constrained.Problem(primal, domain.project, start))
        dual = legendre.from_argmax(primal, found)
    elif potential is not None:
        primal = as_tree(potential)
        dual = legendre.transform(primal, start, total, separable)
    elif conjugate is not None:
        dual = as_tree(conjugate)
        primal = legendre.transform(dual, start, None, separable)
    else:
        raise RefusedType("give a potential, a conjugate or both.")
    if domain is not None:
        contains = Partial(_domain.stays, domain.project)
    sum_is_fixed = total is not None or (domain is not None and domain.fixed_sum)
    return MirrorMap(
        primal,
        dual,
        norm=norm,
        modulus=modulus,
        contains=None if contains is None else as_tree(contains),
        centering=Partial(_domain.below_top) if sum_is_fixed else None,
        separable=separable and total is None and (domain is None or domain.separable),
    )


@public
def with_argmax(potential: Partial, argmax: Partial, **facts: PyTree) -> MirrorMap:
    r"""A mirror map from $\psi$ and a formula for $\arg\max_w \langle\theta, w\rangle - \psi(w)$.

    argmax: a function of theta; its hyperparameters must be leaves of the Partial.
    """
    return MirrorMap(potential, legendre.from_argmax(potential, argmax), **facts)


def _bregman(f: Partial, u: PyTree, w: PyTree) -> Array:
    at_w, slope = jax.value_and_grad(f)(w)
    return f(u) - at_w - tree.vdot(slope, tree.sub(u, w))


def start_inside(
    owner: str, remedy: str = "start inside it, for example at `mirror.to_primal` of zeros"
) -> Need:
    """The need of a learner whose hparams hold a `mirror` and that starts from `params`."""
    demand = "`params` must lie in the domain of the mirror map and have a finite dual"
    return Need("params", _starts, demand, owner, remedy)


def curved_start(owner: str) -> Need:
    """The need of such a learner for a potential that curves around `params`; some potentials can
    be checked only there."""
    demand = "the potential of the mirror map must be strictly convex around `params`"
    return Need("params", _curves, demand, owner, _SYMMETRIC.removeprefix("; "))


def _starts(hparams: PyTree, params: PyTree, rounds: None) -> Array:
    return hparams.mirror.starts(params)


def _check_curvature(
    name: str,
    function: Callable,
    start: Scalar,
    total: Scalar | None,
    separable: bool,
    strict: bool,
    alone: bool,
) -> None:
    """Refuse a function that is not convex, is flat, or is not separable as promised.

    strict: whether it must curve in every direction, as a potential without a given conjugate.
    alone: whether the other function is not given.
    """
    numbers = (start, total, *jax.tree.leaves(function))
    if any(isinstance(number, Tracer) for number in numbers):
        return
    for offsets in _OFFSETS[: 1 + alone]:
        center = float(start) if total is None else float(total) / offsets.size
        seen = _curvatures(name, function, center, offsets)
        if seen is not None:
            remedy = _SYMMETRIC if offsets.ndim == 2 else ""
            _check_hessians(name, seen, center, total, separable, strict, remedy)
            return


def _curves(hparams: PyTree, params: PyTree, rounds: None) -> Array:
    """Whether a potential that no other check has seen is strictly convex around `params`.

    Such a potential takes neither a vector nor a matrix of three rows, and its conjugate is
    searched for.
    """
    mirror, (flat, unravel) = hparams.mirror, ravel_pytree(params)
    problem = legendre.searched(mirror.conjugate)
    if problem is None or mirror.separable or getattr(problem, "total", None) is not None:
        return jnp.ones((), bool)
    if flat.size > _LARGEST or any(_value_at(problem.f, offsets) for offsets in _OFFSETS):
        return jnp.ones((), bool)  # it was checked when the map was made
    offsets = np.cos(np.arange(1.0, 1 + flat.size))  # no two singular values are equal there
    spreads = np.multiply.outer(_SPREADS, offsets - offsets.mean()).astype(flat.dtype)
    points = flat + spreads * jnp.maximum(1.0, jnp.max(jnp.abs(flat)))
    on_flat = Partial(_on_flat, problem.f, Partial(unravel))
    least, largest = jax.vmap(partial(_extremes, on_flat))(points)
    seen = jnp.isfinite(least) & jnp.isfinite(largest)
    convex = ~seen | (least >= -_ROUNDING * largest)
    return jnp.all(convex) & (~jnp.any(seen) | jnp.any(seen & (least > _FLAT * largest)))


def _extremes(function: Partial, w: Array) -> tuple[Array, Array]:
    """The least and the largest curvature."""
    hessian = jax.hessian(function)(w) + 0 * function(w)
    curvatures = jnp.linalg.eigvalsh(hessian)
    return curvatures[0], jnp.max(jnp.abs(curvatures))


def _on_flat(function: Partial, unravel: Partial, w: Array) -> Array:
    return function(unravel(w))


def _check_hessians(
    name: str,
    seen: np.ndarray,
    center: float,
    total: Scalar | None,
    separable: bool,
    strict: bool,
    remedy: str,
) -> None:
    size = seen.shape[-1]
    finite = [curvature for curvature in seen if np.all(np.isfinite(curvature))]
    if not finite:
        raise RefusedValue(
            f"`{name}` has no finite curvature around points whose coordinates are "
            f"all {center:g}; give a `start` inside its domain{remedy}."
        )
    whole = np.eye(size)
    plane = whole if total is None else np.linalg.svd(whole - 1 / size)[0][:, : size - 1]
    flat = True
    for curvature in finite:
        largest = np.max(np.abs(curvature))
        least = np.min(np.linalg.eigvalsh(plane.T @ curvature @ plane))
        if least < -_ROUNDING * largest:
            raise RefusedValue(
                f"`{name}` must be convex; it has the curvature {least:.3g} near "
                f"points whose coordinates are all {center:g}{remedy}."
            )
        apart = np.max(np.abs(curvature - np.diag(np.diag(curvature))))
        if separable and apart > _ROUNDING * largest:
            raise RefusedValue(
                f"`{name}` is not a sum over coordinates, which `separable=True` "
                "promises; leave out `separable`."
            )
        flat &= bool(largest == 0 or (strict and least <= _FLAT * largest))
    if flat:
        raise RefusedValue(
            f"`{name}` must be strictly convex and differentiable; it has a direction "
            f"without curvature near points whose coordinates are all {center:g}{remedy}."
        )


def _curvatures(
    name: str, function: Callable, center: float, offsets: np.ndarray
) -> np.ndarray | None:
    """The Hessians near a point; None if they cannot be computed."""
    spreads = max(abs(center), 1.0) * np.array(_SPREADS)
    points = jnp.asarray(center + np.multiply.outer(spreads, offsets), float)
    found = _value_at(function, points[0])
    if not found:
        return None
    (value,) = found
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", type(value).__name__)
    if shape != () or not jnp.issubdtype(dtype, jnp.floating):
        raise RefusedType(f"`{name}` must give one real number, got {dtype} of shape {shape}.")
    seen = _second_derivatives(as_tree(function), points)
    return None if isinstance(seen, Tracer) else np.asarray(seen, float)


def _value_at(function: Callable, point: ArrayLike) -> tuple[Any, ...]:
    """The shape of the value of a function; nothing if it needs decisions of another shape."""
    leaves, structure = jax.tree.flatten((as_tree(function), jnp.asarray(point, float)))
    try:
        return (_shape_of_value(structure, tuple(map(_kind_of, leaves))),)
    except Exception:
        return ()


def _kind_of(leaf: ArrayLike) -> tuple:
    return jnp.shape(leaf), jnp.result_type(leaf), isinstance(leaf, int | float)


@cached
def _shape_of_value(structure: PyTree, kinds: tuple) -> PyTree:
    """The shape of a value of the function; cached, since it traces."""
    leaves = [jax.ShapeDtypeStruct(*kind, weak_type=weak) for *kind, weak in kinds]

    def play(leaves: list) -> PyTree:
        function, w = jax.tree.unflatten(structure, leaves)
        return function(w)

    return jax.eval_shape(play, leaves)


@compiled
def _second_derivatives(function: Callable, points: Array) -> Array:
    """The Hessians at `points`; not finite where the value is not finite."""
    flat = lambda w: function(w.reshape(points.shape[1:]))
    return jax.vmap(lambda w: jax.hessian(flat)(w) + 0 * flat(w))(points.reshape(len(points), -1))
