r"""Sketched online Newton steps: second-order learning at the cost of a few gradients.

With $g_t = \ell_t'(\langle w_t, x_t\rangle)\, x_t$, $\hat g_t = \sqrt{\sigma + \eta_t}\, g_t$ and a
sketch $S_t^\top S_t \approx \sum_{s \le t} \hat g_s \hat g_s^\top$ of few rows,

$$A_t = \alpha I + S_t^\top S_t, \qquad u_{t+1} = w_t - A_t^{-1} g_t, \qquad
  w_{t+1} = \arg\min_{|\langle w, x_{t+1}\rangle| \le C} \|w - u_{t+1}\|_{A_t}.$$

The projection is known when the row is: its score is $\langle u_{t+1}, x_{t+1}\rangle$ clipped to
$[-C, C]$, and $w = u - c A^{-1} x$ with $c = \tau_C(\langle u, x\rangle) / x^\top A^{-1} x$, where
$\tau_C$ is the part of a score outside $[-C, C]$.

$\sigma$ is the curvature of the losses: $\ell(a) \ge \ell(b) + \ell'(b)(a - b) + \frac\sigma2
(\ell'(b)(a - b))^2$. Without curvature, $\eta_t = \sqrt{m / t} / (C L)$ for losses of slope at most
$L$ on $[-C, C]$.

The state is $w = \bar u + Z^\top b$, with the rows $Z$ of the sketch. An update adds multiples of
$x_t$ to $\bar u$ and to the rows of $Z$, so sparse rows cost their non-zeros (Algorithms 15, 18 and
22 in one). From time to time a sketch changes coordinates: $\bar u + Z^\top b$ becomes $\bar u$.

A round of weight $c$ is the loss $c\, \ell$, whose slope is $c\, \ell'$ and whose curvature is
$\sigma / c$.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 11; its theorems are in
`olx.second_order.sketched_regret`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _safe as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Refresh
from olx.frameworks.lift import dot
from olx.second_order.sketch import Sketch, combined, dtype_of, grown, mixed, nothing, product


@pytree
class SketchedNewtonHparams:
    sketch: Sketch
    alpha: Scalar
    bound: Scalar | None
    curvature: Scalar | None
    lipschitz: Scalar | None


class SketchedNewtonState(NamedTuple):
    base: PyTree
    mix: Array  # one number per row of `rows`; the weights are base + mix @ rows
    rows: PyTree  # the matrix Z
    small: PyTree  # the state of the sketch
    clock: Clock


class Step(NamedTuple):
    """What a round computes."""

    base: PyTree  # the weights played are base + mix @ rows, with the rows before the round
    mix: Array
    ghat: Array  # the sketched vector is ghat * x
    delta: Array  # the rows change by delta times the sketched vector
    spread: Float[Array, ""]  # alpha x'A^(-1)x, with the matrix after the round
    after: SketchedNewtonState


def sketched_newton(
    sketch: Sketch | None,
    alpha: Scalar,
    bound: Scalar | None = None,
    curvature: Scalar | None = None,
    lipschitz: Scalar | None = None,
) -> Learner:
    r"""Newton steps with a sketch of the squares of the gradients. The first weights are `params`.

    sketch: `random_projection`, `frequent_directions`, `oja` and others; None for no second-order
        information, which is gradient descent with the step 1 / `alpha`.
    alpha: positive. Small numbers trust the sketch from the first rounds on.
    bound: $C$; scores are projected to $[-C, C]$. None for no projection.
    curvature: $\sigma$; for `losses.squared` and outcomes in $[-C, C]$ it is $1 / (4 C^2)$.
    lipschitz: $L$; if given, $\eta_t = \sqrt{m/t} / (C L)$ is added to the curvature. It needs
        `bound`.

    >>> import jax, jax.numpy as jnp, olx
    >>> from olx.second_order import oja
    >>> rounds, u = olx.streams.linear_regression(jax.random.key(0), rounds=300, features=5)
    >>> x = rounds.context * jnp.array([10.0, 1.0, 1.0, 1.0, 1.0])
    >>> rounds = rounds._replace(context=x)
    >>> def total(sketch):
    ...     learner = sketched_newton(sketch, 100.0, curvature=1.0)
    ...     return olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(5)).total
    >>> bool(total(oja(1, key=jax.random.key(0))) < 0.5 * total(None))
    True
    """
    name = "sketched_newton"
    if sketch is not None:
        check.instance(name, "sketch", sketch, Sketch)
        if curvature is None and lipschitz is None:
            raise ValueError(
                f"{name}: give `curvature` or `lipschitz`; without both the sketch would stay 0."
            )
    if lipschitz is not None and bound is None:
        raise ValueError(f"{name}: `lipschitz` needs `bound`: the slopes are bounded on it.")
    sketch = nothing() if sketch is None else sketch
    alpha = check.positive(name, "alpha", alpha)
    given = {"bound": bound, "curvature": curvature, "lipschitz": lipschitz}
    numbers = [
        None if number is None else check.positive(name, field, number)
        for field, number in given.items()
    ]
    hparams = SketchedNewtonHparams(sketch, alpha, *numbers)
    refresh = None if sketch.due_fn is None else Refresh(is_due, refreshed)
    facts = Facts(separable=True, refresh=refresh)
    return Learner(hparams, init, predict, update, facts=facts, theorems=sketch.theorems)


def init(hp: SketchedNewtonHparams, params: PyTree) -> SketchedNewtonState:
    small, rows = hp.sketch.init(hp.alpha, params)
    mix = jnp.zeros((() if rows is None else jax.tree.leaves(rows)[0].shape[:1]), dtype_of(params))
    return SketchedNewtonState(params, mix, rows, small, clock.start(hp, params))


def predict(hp: SketchedNewtonHparams, state: SketchedNewtonState, context: PyTree) -> Array:
    score = _score(state, context, product(state.rows, context))
    return score if hp.bound is None else jnp.clip(score, -hp.bound, hp.bound)


def update(
    hp: SketchedNewtonHparams, state: SketchedNewtonState, feedback: Feedback
) -> SketchedNewtonState:
    return step(hp, state, feedback).after


def step(hp: SketchedNewtonHparams, state: SketchedNewtonState, feedback: Feedback) -> Step:
    """The projection of this round, the change of the sketch, and the step."""
    x, sketch, slope = feedback.context, hp.sketch, feedback.grad
    zx, xx = product(state.rows, x), jnp.asarray(tree.vdot(x, x))
    pulled, spread = sketch.solve_fn(hp.alpha, state.small, zx, xx)
    score = _score(state, x, zx)
    c = safe.divide(score - predict(hp, state, x), spread)
    base, mix = tree.add_scale(state.base, -c, x), state.mix + c * pulled
    ghat = slope * _root(hp, state, feedback.weight)
    small, delta = sketch.update(hp.alpha, state.small, ghat * zx, ghat**2 * xx)
    pulled, spread = sketch.solve_fn(hp.alpha, small, zx + delta * (ghat * xx), xx)
    push = feedback.weight * slope / hp.alpha
    after = SketchedNewtonState(
        tree.add_scale(base, -push - jnp.sum(delta * mix) * ghat, x),
        mix + push * pulled,
        grown(state.rows, delta, tree.scale(ghat, x)),
        small,
        clock.tick(hp, state.clock, feedback),
    )
    return Step(base, mix, ghat, delta, spread, after)


def is_due(hp: SketchedNewtonHparams, state: SketchedNewtonState) -> Array:
    assert hp.sketch.due_fn is not None  # the factory states the fact only then
    return hp.sketch.due_fn(state.small)


def refreshed(hp: SketchedNewtonHparams, state: SketchedNewtonState) -> SketchedNewtonState:
    """The same weights and the same matrix in other coordinates."""
    sketch = hp.sketch
    assert sketch.basis_fn is not None
    assert sketch.rebased_fn is not None
    return SketchedNewtonState(
        combined(state.rows, state.mix, state.base),
        jnp.zeros_like(state.mix),
        mixed(sketch.basis_fn(state.small), state.rows),
        sketch.rebased_fn(state.small),
        state.clock,
    )


def _score(state: SketchedNewtonState, x: PyTree, zx: Array) -> Array:
    check.same_shape("sketched_newton", "the context", x, "`params`", state.base)
    return dot(state.base, x) + jnp.sum(state.mix * zx)


def _root(hp: SketchedNewtonHparams, state: SketchedNewtonState, weight: Scalar) -> Array:
    r"""$\sqrt{c \sigma + c^2 \eta_t}$ for a round of weight $c$."""
    sigma = 0.0 if hp.curvature is None else hp.curvature
    return safe.sqrt(weight * sigma + weight**2 * eta(hp, state.clock))


def eta(hp: SketchedNewtonHparams, now: Clock) -> Array:
    r"""$\eta_t$ of the next round."""
    if hp.lipschitz is None or hp.bound is None:
        return jnp.zeros_like(now.now)
    return jnp.sqrt(hp.sketch.size / now.now) / (hp.bound * hp.lipschitz)
