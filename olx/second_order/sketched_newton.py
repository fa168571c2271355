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

Without a number $\alpha$ it is $\|x_1\|^2$, the squared length of the first row that is not 0. The
first steps then change scores by about the slope, in any unit of the features. The sketch is that
of $\hat g_t / \sqrt\alpha$, so that $A_t = \alpha (I + S_t^\top S_t)$.

A round of weight $c$ is the loss $c\, \ell$, whose slope is $c\, \ell'$ and whose curvature is
$\sigma / c$.

For every $u$ with $|\langle u, x_s\rangle| \le C$, any matrices $A_s$ and rounds of weight 1

$$\sum_{s \le t} \ell_s(w_s) - \ell_s(u) \le \frac\alpha2 \|u - w_1\|^2 +
  \frac12 \sum_{s \le t} g_s^\top A_s^{-1} g_s +
  \frac12 \sum_{s \le t} (w_s - u)^\top (A_s - A_{s-1} - \sigma g_s g_s^\top) (w_s - u).$$

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 11 and proposition 1; Luo, Agarwal,
Cesa-Bianchi, Langford, Efficient Second Order Online Learning by Sketching, 2016.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx import _numeric as safe
from olx._clock import Clock
from olx._pytree import pytree
from olx._refusal import own_name, public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.facts import Facts, Refresh, Refreshed, Rowwise
from olx.frameworks.lift import dot
from olx.second_order import _slab
from olx.second_order._slab import SlabHparams
from olx.second_order.sketch import (
    Sketch,
    combined_weights,
    dtype_of,
    grown_rows,
    mixed_rows,
    nothing,
    product,
    products,
)
from olx.theorem import Theorem, add_terms, first_sums


@pytree
class SketchedNewtonHparams:
    sketch: Sketch
    alpha: Scalar | None
    slab: SlabHparams


class SketchedNewtonState(NamedTuple):
    base: PyTree
    mix: Array  # one number per row of `rows`; the weights are base + mix @ rows
    rows: PyTree  # the matrix Z; None without a sketch
    small: PyTree  # the state of the sketch
    clock: Clock
    alpha: Array | None = None  # 0 until a row is seen; None if the number is given


class Step(NamedTuple):
    base: PyTree  # the weights played are base + mix @ rows, with the rows before the round
    mix: Array
    ghat: Array  # the sketched vector is ghat * x
    delta: Array  # the rows change by delta times the sketched vector
    eta: Array
    energy: Float[Array, ""]  # g'A_t^(-1) g
    after: SketchedNewtonState


@public
def sketched_newton(
    sketch: Sketch | None,
    alpha: Scalar | None = None,
    bound: Scalar | None = None,
    *,
    curvature: Scalar | None = None,
    lipschitz: Scalar | None = None,
) -> Learner:
    r"""Newton steps with a sketch of the squares of the gradients. The first weights are `params`.

    sketch: `random_projection`, `frequent_directions`, `oja` and others; None for no second-order
        information, which is gradient descent with the step 1 / `alpha`.
    alpha: positive. A small number trusts the sketch from the first rounds on. If None, the
        squared length of the first row; the learner then has no theorem of its sketch.
    bound: $C$, positive; None for no projection.
    curvature: $\sigma$, positive; 0 if None. For `losses.squared` and outcomes in $[-C, C]$ it is
        $1 / (4 C^2)$.
    lipschitz: $L$, positive; then $\eta_t = \sqrt{m / t} / (C L)$, else $\eta_t = 0$. It needs
        `bound`.

    A sketch needs `curvature` if the loss has it, else `lipschitz`.

    >>> import jax, jax.numpy as jnp, olx
    >>> from olx.second_order import oja
    >>> rounds, u = olx.streams.linear_regression(jax.random.key(0), rounds=300, features=5)
    >>> x = rounds.context * jnp.array([10.0, 1.0, 1.0, 1.0, 1.0])
    >>> rounds = rounds._replace(context=x)
    >>> def total(sketch):
    ...     learner = sketched_newton(sketch, 100.0, curvature=1.0)
    ...     return olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(5)).total
    >>> bool(total(oja(1, key=jax.random.key(1))) < 0.5 * total(None))
    True
    """
    alpha = alpha if alpha is None else check.positive("alpha", alpha)
    slab = _slab.numbers(bound, curvature, lipschitz, used=sketch is not None)
    sketch = nothing() if sketch is None else sketch
    check.instance("sketch", sketch, Sketch)
    changing = Facts(coordinates=Refreshed(), refresh=Refresh(is_due, refreshed_state, gram))
    facts = Facts(coordinates=Rowwise()) if sketch.due_fn is None else changing
    return Learner(
        SketchedNewtonHparams(sketch, alpha, slab),
        init,
        predict,
        update,
        facts=facts,
        theorems=(newton_regret, *(() if alpha is None else sketch.theorems)),
    )


def init(hp: SketchedNewtonHparams, params: PyTree) -> SketchedNewtonState:
    small, rows = hp.sketch.init(sketch_alpha(hp), params)
    mix = jnp.zeros((() if rows is None else jax.tree.leaves(rows)[0].shape[:1]), dtype_of(params))
    alpha = jnp.zeros((), mix.dtype) if hp.alpha is None else None
    return SketchedNewtonState(params, mix, rows, small, clock.start(hp, params), alpha)


def sketch_alpha(hp: SketchedNewtonHparams) -> Scalar:
    r"""$\alpha$ in the units of the sketch; the number itself if it is given."""
    return 1.0 if hp.alpha is None else hp.alpha


def predict(hp: SketchedNewtonHparams, state: SketchedNewtonState, context: PyTree) -> Array:
    return _slab.clipped_score(hp.slab, score(state, context, product(state.rows, context)))


def update(
    hp: SketchedNewtonHparams, state: SketchedNewtonState, feedback: Feedback
) -> SketchedNewtonState:
    return step(hp, state, feedback).after


@own_name("sketched_newton")
def score(state: SketchedNewtonState, x: PyTree, zx: Array) -> Array:
    """The score before the projection."""
    check.same_shape("the context", x, "`params`", state.base)
    return dot(state.base, x) + jnp.sum(state.mix * zx)


def step(hp: SketchedNewtonHparams, state: SketchedNewtonState, feedback: Feedback) -> Step:
    x, sketch, c = feedback.context, hp.sketch, feedback.weight
    zx, xx = product(state.rows, x), jnp.asarray(tree.vdot(x, x))
    own = alpha = sketch_alpha(hp)
    if state.alpha is not None:
        alpha = safe.or_one(jnp.where(state.alpha > 0, state.alpha, xx))
    pulled, spread = sketch.solve_fn(own, state.small, zx, xx)
    plain = score(state, x, zx)
    back = safe.divide(plain - _slab.clipped_score(hp.slab, plain), spread)
    base, mix = tree.add_scale(state.base, -back, x), state.mix + back * pulled
    eta = _slab.eta(hp.slab, sketch.size, state.clock.now)
    slope = c * feedback.grad
    ghat = feedback.grad * safe.sqrt(_slab.rate(hp.slab, sketch.size, state.clock.now, c))
    if state.alpha is not None:
        ghat = ghat / jnp.sqrt(alpha)
    small, delta = sketch.update(own, state.small, ghat * zx, ghat**2 * xx)
    pulled, spread = sketch.solve_fn(own, small, zx + delta * (ghat * xx), xx)
    push = slope / alpha
    after = SketchedNewtonState(
        tree.add_scale(base, -push - jnp.sum(delta * mix) * ghat, x),
        mix + push * pulled,
        grown_rows(state.rows, delta, tree.scale(ghat, x)),
        small,
        clock.tick(hp, state.clock, feedback),
        state.alpha if state.alpha is None else jnp.where(state.alpha > 0, state.alpha, xx),
    )
    return Step(base, mix, ghat, delta, eta, slope * push * spread, after)


def is_due(hp: SketchedNewtonHparams, state: SketchedNewtonState) -> Array:
    assert hp.sketch.due_fn is not None  # the factory states the fact only then
    return hp.sketch.due_fn(state.small)


def gram(hp: SketchedNewtonHparams, state: SketchedNewtonState) -> Array:
    r"""$Z Z^\top$."""
    return products(state.rows)


def refreshed_state(
    hp: SketchedNewtonHparams, state: SketchedNewtonState, gram: Array
) -> SketchedNewtonState:
    """The same weights and the same matrix in other coordinates."""
    sketch = hp.sketch
    assert sketch.basis_fn is not None
    assert sketch.rebased_fn is not None
    return SketchedNewtonState(
        combined_weights(state.rows, state.mix, state.base),
        jnp.zeros_like(state.mix),
        mixed_rows(sketch.basis_fn(state.small, gram), state.rows),
        sketch.rebased_fn(state.small),
        state.clock,
        state.alpha,
    )


class Account(NamedTuple):
    slab: _slab.Account
    start: Float[Array, ""]  # |u - w_1|^2
    alpha: Float[Array, ""]
    terms: Float[Array, ""]  # the sum of the terms whose differences are added


def open_account(hp: SketchedNewtonHparams, state: SketchedNewtonState, u: PyTree) -> Account:
    u = check.comparator(u, state.base)
    apart = tree.sub(u, state.base)
    start = jnp.asarray(tree.vdot(apart, apart))
    zero = jnp.zeros_like(start)
    alpha = zero if hp.alpha is None else jnp.broadcast_to(hp.alpha, zero.shape).astype(zero.dtype)
    return Account(first_sums(_slab.START, start), start, alpha, zero)


def add_round(
    hp: SketchedNewtonHparams,
    account: Account,
    state: SketchedNewtonState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    x, now, slope = feedback.context, step(hp, state, feedback), feedback.grad
    along, square = dot(u, x), jnp.asarray(tree.vdot(x, x))
    gap = tree.sub(combined_weights(state.rows, now.mix, now.base), u)
    before = product(state.rows, gap)
    after = before + now.delta * (now.ghat * (feedback.action - along))
    own, alpha = sketch_alpha(hp), account.alpha
    old = hp.sketch.energy_fn(own, state.small, before)
    new = hp.sketch.energy_fn(own, now.after.small, after)
    if now.after.alpha is not None:
        alpha = now.after.alpha
        old, new = alpha * old, alpha * new
    known = hp.slab.curvature * (slope * (feedback.action - along)) ** 2
    drift = new - old - known
    added = _slab.terms(hp.slab, feedback, along, now.eta, now.energy, square, drift)
    slab = add_terms(account.slab, added)
    return Account(slab, account.start, alpha, account.terms + new + old + known)


def both_sides(hp: SketchedNewtonHparams, account: Account, u: PyTree) -> Certificate:
    start = account.alpha * account.start
    right = (start + account.slab.energy + account.slab.drift) / 2
    proof = _slab.sides(account.slab, right)
    return dataclasses.replace(proof, scale=proof.scale + account.terms)


newton_regret = Theorem(
    "newton_regret", "Luo 2016, proposition 1", open_account, add_round, both_sides
)
