r"""The best comparator in hindsight, with a verified bound on its distance from the optimum.

$$\min_{u \in S} \sum_t c_t\, \ell(h_u(x_t), y_t)$$

A linear model with a loss of the score has a solver of its own; any other model is solved if its
loss is convex in the parameters: see `olx.hindsight.solvers`. A loss that is not convex is refused,
since no solver could verify its best comparator. Convexity is tested on samples, not proven: along
lines, no value may lie above the mean of its two neighbours.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 2.2.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._compiled import compiled
from olx._pytree import as_tree, pytree
from olx._refusal import RefusedType, RefusedValue, public
from olx.convex.sets import ConvexSet, everywhere
from olx.core import Loss, Rounds, Scalar
from olx.frameworks.lift import dot
from olx.hindsight import solvers
from olx.hindsight.regret import comparator_losses, itself, weights
from olx.losses.score import above_line
from olx.streams.checks import check_params, check_rounds, judge, needs_of, on_host
from olx.streams.sparse_rows import SparseRows


@pytree
class Hindsight:
    """A comparator of the domain, its total loss, and a bound on its distance from the optimum.

    value: the total loss of `u`, each round times its weight.
    gap: at least `value` minus the smallest total loss in the domain, up to rounding; infinite if
        no bound could be verified.
    """

    u: PyTree
    value: Array
    gap: Array


class _Problem(NamedTuple):
    loss: Loss
    apply: Callable[[PyTree, PyTree], PyTree]
    rounds: Rounds
    params: PyTree
    domain: ConvexSet
    tolerance: Scalar
    steps: Scalar


@public
def best_in_hindsight(
    loss: Loss,
    rounds: Rounds,
    params: PyTree,
    *,
    apply: Callable[[PyTree, PyTree], PyTree] = itself,
    domain: ConvexSet | None = None,
    tolerance: Scalar = 1e-6,
    steps: Scalar = 20_000,
) -> Hindsight:
    r"""Minimize the total loss over a convex set of `olx.convex.sets`, or everywhere if None.

    loss: the loss of `apply` must be convex in the parameters. It may have kinks for
        `apply=olx.dot`; for other models the gap tends to 0 only if the total loss is smooth.
    params: where the search starts. Of several least-squares solutions it finds the nearest, so
        zeros give the one of least norm.
    tolerance: stop at a gap of `tolerance * (1 + |value|)`; not below the rounding of the dtype.
    steps: the largest number of steps; if it is reached, the gap is larger but still valid.

    Without a domain, the gap can be verified for `apply=olx.dot` only and is infinite for other
    models, and for a matrix of weights with a row per class, unless the gradient is exactly 0:
    bound the domain with `sets.ball(radius)` then. Where
    the infimum is not attained, as for the logistic loss of separable data, `u` is large and
    `value` close to the infimum.

    >>> import jax.numpy as jnp
    >>> from olx.core import Rounds
    >>> from olx.frameworks.lift import dot
    >>> absolute = lambda score, y: jnp.abs(score - y)
    >>> rounds = Rounds(jnp.ones((3, 1)), jnp.array([0.0, 1.0, 5.0]))
    >>> best = best_in_hindsight(absolute, rounds, jnp.zeros(1), apply=dot)
    >>> float(best.u[0]), float(best.value), bool(best.gap < 1e-5)
    (1.0, 5.0, True)
    """
    check.takes("loss", loss, "action", "outcome")
    check.takes("apply", apply, "u", "context")
    _check_data(loss, rounds, params)
    domain = everywhere() if domain is None else domain
    check.instance("domain", domain, ConvexSet)
    if domain.farthest is None:
        raise RefusedType(
            "`domain` is given by its projection alone, so no gap can be "
            "verified; give its farthest point too: `sets.projected(project, farthest)`."
        )
    tolerance = check.non_negative("tolerance", tolerance)
    steps = check.non_negative("steps", steps)
    params = jax.tree.map(jnp.asarray, params)
    linear = (apply.func if isinstance(apply, Partial) else apply) is dot
    one = jax.tree.map(lambda leaf: leaf[0], rounds.context)
    if linear and np.ndim(params) and np.shape(params)[1:] == np.shape(one) != ():
        linear = False  # a row of weights per class
    elif linear:
        check.same_shape("context", one, "params", params)
    elif apply is itself and np.shape(params) == ():
        linear, rounds = True, rounds._replace(context=jnp.ones_like(weights(rounds, params.dtype)))
    given = _Problem(as_tree(loss), as_tree(apply), rounds, params, domain, tolerance, steps)
    if linear:
        check_convex_in_score(given.loss, rounds, jnp.result_type(*jax.tree.leaves(params)))
    else:
        refuse_above(_above(given))
    return _linear(given) if linear else _general(given)


def _check_data(loss: Loss, rounds: Rounds, params: PyTree) -> None:
    """Refuse rounds on which the loss is not defined; traced values are not checked."""
    check_rounds(rounds)
    if isinstance(rounds.context, SparseRows):
        raise RefusedType("sparse rows are not supported; pass `rows.toarray()`.")
    check_params(params)
    judge(needs_of(None, loss), params, jax.tree.map(on_host, rounds))


@compiled
def _above(given: _Problem) -> Array:
    flat, unravel = ravel_pytree(given.params)
    return above_lines(_total(given, unravel), flat, _flat(given.domain, unravel).project)


@compiled
def _linear(given: _Problem) -> Hindsight:
    loss, _, rounds, params, domain, tolerance, steps = given
    flat, unravel = ravel_pytree(params)
    x = jax.vmap(lambda context: ravel_pytree(context)[0])(rounds.context)
    weight = weights(rounds, flat.dtype)

    def look(s: Array) -> tuple[Array, Array]:
        value, slope = jax.vmap(jax.value_and_grad(loss))(s, rounds.outcome)
        return weight * value, weight * slope

    inside = _flat(domain, unravel)
    if not domain.bounded:
        best = solvers.solve_linear_model(look, x, flat, inside, tolerance, steps)
        return _hindsight(best, unravel)
    # Accelerated gradients are fast if the loss is smooth; else the multipliers continue.
    total = lambda w: jnp.sum(look(x @ w)[0])
    first = solvers.solve_projected(total, flat, inside, tolerance, steps / 20)
    left = jnp.where(first.value - first.lower <= tolerance * (1 + jnp.abs(first.value)), -1, steps)
    then = solvers.solve_linear_model(look, x, first.w, inside, tolerance, left)
    w = jnp.where(then.value < first.value, then.w, first.w)
    value, lower = jnp.fmin(first.value, then.value), jnp.fmax(first.lower, then.lower)
    return _hindsight(solvers.Best(w, value, lower), unravel)


@compiled
def _general(given: _Problem) -> Hindsight:
    flat, unravel = ravel_pytree(given.params)
    total, inside = _total(given, unravel), _flat(given.domain, unravel)
    best = solvers.solve_projected(total, flat, inside, given.tolerance, given.steps)
    return _hindsight(best, unravel)


def _total(given: _Problem, unravel: Callable) -> Callable[[Array], Array]:
    def total(w: Array) -> Array:
        losses = comparator_losses(given.loss, given.rounds, unravel(w), given.apply)
        return jnp.vdot(weights(given.rounds, losses.dtype), losses)

    return total


def _hindsight(best: solvers.Best, unravel: Callable) -> Hindsight:
    return Hindsight(unravel(best.w), best.value, jnp.maximum(best.value - best.lower, 0.0))


def _flat(domain: ConvexSet, unravel: Callable) -> ConvexSet:
    through = lambda function: lambda w: ravel_pytree(function(unravel(w)))[0]
    project, farthest = Partial(through(domain.project)), Partial(through(domain.farthest))
    return ConvexSet(project, farthest, domain.bounded)


_ROWS = 64  # the number of rows whose losses are tested
_STEPS = np.linspace(-4.0, 4.0, 17)


def check_convex_in_score(loss: Loss, rounds: Rounds, dtype: DTypeLike) -> None:
    """Refuse a loss of the score that is not convex on some of the rounds tested."""
    some = jax.tree.map(lambda leaf: leaf[:_ROWS], rounds.outcome)
    refuse_above(_above_scores(loss, some, jnp.asarray(_STEPS, dtype)))


def refuse_above(above: Array) -> None:
    """Refuse a loss if it lies above a line between two of its values, by `above` > 0."""
    if not isinstance(above, Tracer) and bool(above > 0):
        raise RefusedValue(
            "`loss` is not convex: between two points it rises above the line "
            "that joins them. Nothing could be verified; give a convex loss, such as "
            "`olx.losses.hinge` in place of `zero_one`."
        )


@compiled
def _above_scores(loss: Loss, outcome: PyTree, steps: Array) -> Array:
    def one(outcome: PyTree) -> Array:
        leaves = [leaf for leaf in jax.tree.leaves(outcome) if jnp.ndim(leaf) == 0]
        lines = jnp.stack([steps] + [steps + jnp.asarray(leaf, steps.dtype) for leaf in leaves])
        return jax.vmap(lambda line: above_line(jax.vmap(lambda s: loss(s, outcome))(line)))(lines)

    return jnp.max(jax.vmap(one)(outcome))


def above_lines(total: Callable, params: Array, project: Callable) -> Array:
    """By how much a total loss lies above lines between points of a domain, beyond rounding."""
    key = jax.random.key(0)
    ends = params + jax.random.normal(key, (2, 8, params.size), params.dtype)
    starts, stops = jax.vmap(jax.vmap(project))(ends)
    shares = jnp.linspace(0.0, 1.0, 9).astype(params.dtype)

    def one(start: Array, stop: Array) -> Array:
        line = start + shares[:, None] * (stop - start)
        return above_line(jax.vmap(total)(line))

    return jnp.max(jax.vmap(one)(starts, stops))
