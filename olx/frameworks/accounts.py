r"""Accounts that theorems share: the master inequality, the approach to $u$, and regret on losses.

The master inequality bounds lazy mirror descent and follow the regularized leader. Play $w_t =
\nabla f_t^*(\vartheta_t)$, observe any $z_t$, keep $\theta_{t+1} = \theta_t + z_t$. The played dual
$\vartheta_t$ is $\theta_t$, or $\theta_t$ plus a hint. For all $u$ in the domain, with $f_0^* = 0$,

$$\sum_{s \le t} \langle z_s, u - w_s \rangle \le f_t(u) - \langle\theta_1, u\rangle +
  \sum_{s \le t} \Big( B_{f_s^*}(\theta_{s+1}, \vartheta_s) + f_s^*(\theta_s) -
  f_{s-1}^*(\theta_s) \Big).$$

Proof: $f_s^*(\theta_{s+1}) = f_s^*(\vartheta_s) + \langle\theta_{s+1} - \vartheta_s, w_s\rangle +
B$ and $f_s^*(\vartheta_s) \le f_s^*(\theta_s) + \langle\vartheta_s - \theta_s, w_s\rangle$. Sum
over rounds and use $f_t^*(\theta_{t+1}) \ge \langle\theta_{t+1}, u\rangle - f_t(u)$.

If $f_s$ is $\beta_s$-strongly convex, $B \le \|\theta_{s+1} - \vartheta_s\|_{s,*}^2 / (2\beta_s)$.
The paper prints this form (`published`).

The account of eager mirror descent is how much closer to $u$ the decisions $w_1, \dots, w_t$ have
come, where $w_{t+1}$ is computed from the last update:

$$\sum_{s \le t} \frac{B_\psi(u, w_s) - B_\psi(u, w_{s+1})}{\eta_s}.$$

Regret on the losses themselves, with an optional penalty $F$, for rounds of weight 1, is

$$\sum_{s \le t} c_s \big(\ell_s(w_s) + F(w_s) - \ell_s(u) - F(u)\big).$$

The proofs pass from linearized losses to losses by $\ell_s(u) \ge \ell_s(w_s) + \langle g_s, u -
w_s\rangle + \text{bend}_s$, which is convexity, or strong convexity if the bend is not 0. The
account checks this inequality in every round. If a round violates it, the theorem does not apply.

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, lemma 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._numeric import Sum
from olx.certificate import DOMAIN, UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Scalar
from olx.mirrors.base import MirrorMap
from olx.theorem import Theorem


class Step(NamedTuple):
    """A round in the notation of the lemma."""

    f: MirrorMap  # f_t
    theta: PyTree
    played: PyTree  # vartheta
    z: PyTree
    w: PyTree
    after: PyTree  # the next theta; a centred one may differ from theta + z


class Master(NamedTuple):
    """Sums over the rounds so far, of the master inequality."""

    start: Float[Array, ""]  # <theta_1, u>
    paid: Float[Array, ""]  # f_t(u)
    left: Float[Array, ""]
    right: Float[Array, ""]  # the sum of divergences and changes
    published: Float[Array, ""]  # the same with norms; infinite if the map states no norm
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error
    theta: PyTree  # theta_t of the lemma; None if f never changes
    past: Float[Array, ""]  # f_{t-1}^*(theta_t), 0 before the first round
    first: Bool[Array, ""]  # whether no round has been added
    inside: Bool[Array, ""]  # whether u was in the domain of every f_t


def open_master(theta: PyTree, u: PyTree, fixed: bool = False) -> Master:
    r"""The account before the first round, from $\theta_1$.

    fixed: whether $f_t$ never changes.
    """
    u = check.comparator(u, theta)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(theta)))
    start = jnp.asarray(tree.vdot(theta, u))
    true, kept = jnp.ones((), bool), None if fixed else theta
    return Master(start, zero, zero, zero, zero, jnp.abs(start), kept, zero, true, true)


def add_master(account: Master, step: Step, u: PyTree) -> Master:
    """Add the terms of a round to both sides."""
    f, after = step.f, tree.add(step.theta, step.z)
    gap = tree.sub(after, step.played)
    here, there, along = f.conjugate(step.played), f.conjugate(after), tree.vdot(gap, step.w)
    if account.theta is None:
        change = jnp.where(account.first, f.conjugate(step.theta), 0.0)
        kept = None, account.past
    else:
        change = value_at(f.conjugate, account.theta, here, step.played) - account.past
        kept = step.after, value_at(f.conjugate, step.after, there, after)
    left = tree.vdot(step.z, tree.sub(u, step.w))
    size = jnp.abs(left) + 2 * (jnp.abs(here) + jnp.abs(there) + jnp.abs(along))
    size += 4 * constants(f, u)  # a round evaluates four conjugates
    norms = f.energy(gap)
    return Master(
        account.start,
        f.potential(u),
        account.left + left,
        account.right + (there - here - along + change),
        jnp.full_like(size, jnp.inf) if norms is None else account.published + (norms + change),
        account.size + size,
        *kept,
        jnp.zeros((), bool),
        account.inside & (f.outside(u) == 0),
    )


def master_sides(account: Master, eta: Scalar) -> Certificate:
    """Both sides of the lemma divided by `eta`."""
    right = lambda sums: (account.paid - account.start + sums) / eta
    paid = jnp.where(jnp.isfinite(account.paid), jnp.abs(account.paid), 0.0)
    return Certificate(
        account.left / eta,
        right(account.right),
        (paid + account.size) / eta,
        right(account.published),
    ).given(DOMAIN, account.inside)


def master_inequality(
    step: Callable[[PyTree, PyTree, Feedback], Step], fixed: bool = False
) -> Theorem:
    """The master inequality divided by the step size, for a learner whose hparams have an `eta`.

    step: `(hparams, state, feedback) -> Step`, the round in the notation of the lemma.
    fixed: whether $f_t$ never changes.
    """
    source = "Orabona, Crammer, Cesa-Bianchi 2015, lemma 1"
    parts = _open_fixed if fixed else _open, Partial(_add, Partial(step)), _sides
    return Theorem("master_inequality", source, *parts)


def _open(hp: PyTree, state: PyTree, u: PyTree) -> Master:
    return open_master(state.theta.value if isinstance(state.theta, Sum) else state.theta, u)


def _open_fixed(hp: PyTree, state: PyTree, u: PyTree) -> Master:
    return open_master(state.theta, u, fixed=True)


def _add(
    step: Partial, hp: PyTree, account: Master, state: PyTree, feedback: Feedback, u: PyTree
) -> Master:
    return add_master(account, step(hp, state, feedback), u)


def _sides(hp: PyTree, account: Master, u: PyTree) -> Certificate:
    return master_sides(account, hp.eta)


def value_at(function: Callable[[PyTree], Array], point: PyTree, known: Array, at: PyTree) -> Array:
    """`function(point)`, from its `known` value `at` a point if that is the same point.

    A conjugate may be costly, and many rounds change nothing. Alone, it is a branch of the program.
    """
    same = jax.tree.leaves(jax.tree.map(lambda a, b: jnp.all(a == b), point, at))
    return lax.cond(jnp.all(jnp.stack(same)), lambda _: known, function, point)


def constants(f: MirrorMap, u: PyTree) -> Array:
    """The size of the constants subtracted in the potential and its conjugate (for rounding)."""
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(u)))
    return zero if f.offset is None else f.offset(u)


class Approach(NamedTuple):
    """Sums over the rounds so far, of eager mirror descent."""

    left: Float[Array, ""]
    settled: Float[Array, ""]  # the sum above over all rounds but the last
    near: Float[Array, ""]  # B(u, w_t)
    eta: Float[Array, ""]
    last: Float[Array, ""]  # the term of the last round
    drift: Float[Array, ""]
    published: Float[Array, ""]  # the drift bounded by norms; infinite if the map states no norm
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error


def open_approach(hp: PyTree, state: PyTree, u: PyTree) -> Approach:
    """The account before the first round, for a learner with a `mirror` and a dual `theta`."""
    dual = hp.mirror.retract(state.theta)
    near, _ = divergence(hp.mirror, check.comparator(u, dual), dual)
    zero = jnp.zeros_like(near)
    return Approach(zero, zero, near, jnp.ones_like(near), zero, zero, zero, zero)


def add_approach(
    account: Approach,
    eta: Scalar,
    near: Array,
    far: Array,
    left: ArrayLike,
    drift: ArrayLike,
    energy: Array | None,
    size: ArrayLike,
) -> Approach:
    """Add a round.

    near, far: $B(u, w_t)$ of the decision played, and $B(u, w_{t+1})$ after the update.
    left, drift, energy, size: the terms of the round, times `eta`.
    """
    return Approach(
        account.left + left / eta,
        account.settled + (account.near - near) / account.eta,
        near,
        eta * jnp.ones_like(near),
        (near - far) / eta,
        account.drift + drift / eta,
        jnp.full_like(near, jnp.inf) if energy is None else account.published + energy / eta,
        account.size + size / eta,
    )


def approach_sides(hp: PyTree, account: Approach, u: PyTree) -> Certificate:
    moved = account.settled + account.last
    right, published = moved + account.drift, moved + account.published
    proof = Certificate(account.left, right, account.size, published)
    return proof.given(DOMAIN, hp.mirror.outside(u) == 0)


def divergence(f: MirrorMap, u: PyTree, dual: PyTree) -> tuple[Array, Array]:
    r"""$B_\psi(u, w)$ from the `dual` $\nabla\psi(w)$, and the size of its terms (for rounding).

    The dual is used because a weight in $w$ may underflow to 0 while its dual is still finite.
    """
    size = lambda tree: jax.tree.map(jnp.abs, tree)
    parts = f.potential(u), f.conjugate(dual), jnp.asarray(tree.vdot(dual, u))
    along = jnp.asarray(tree.vdot(size(dual), size(u)))
    size_of = jnp.abs(parts[0]) + jnp.abs(parts[1]) + along + 2 * constants(f, u)
    return parts[0] + parts[1] - parts[2], size_of


CONVEX = "losses must be convex: not below their linearizations at `u`"
STRONGLY_CONVEX = "losses must be `sigma`-strongly convex: not below their parabolas at `u`"


class Regret(NamedTuple):
    left: Float[Array, ""]
    size: Float[Array, ""]  # the sum of |loss|, for the rounding error of `left`
    rounds: Clock
    unit: Bool[Array, ""]  # whether all weights were 1
    convex: Bool[Array, ""]  # whether the inequality above held at u in all rounds


def open_regret(decision: PyTree, u: PyTree) -> Regret:
    """The account before the first round; `u` must be shaped like `decision`."""
    check.comparator(u, decision)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(decision)))
    yes = jnp.ones((), bool)
    return Regret(zero, zero, clock.start(None, decision), yes, yes)


def add_regret(
    account: Regret,
    feedback: Feedback,
    u: PyTree,
    *,
    other: Array | None = None,
    penalty: Callable[[PyTree], Array] | None = None,
    bend: tuple[Scalar, ...] = (0.0, 0.0),
    share: Scalar = 1.0,
) -> Regret:
    """Add a round.

    other: the loss charged to `u`; the loss of the round at `u` if None.
    penalty: $F$; no penalty if None.
    bend: how far above its linearization the loss must be at `u`, and the size of its terms.
    share: $c_s$.
    """
    own, w = feedback.value, feedback.action
    other = feedback.loss(u) if other is None else other
    along = jnp.asarray(tree.vdot(feedback.grad, tree.sub(u, w)))
    length = lambda g, u, w: jnp.abs(g) * (jnp.abs(u) + jnp.abs(w))
    around = tree.sum(jax.tree.map(length, feedback.grad, u, w))
    size = jnp.abs(own) + jnp.abs(other) + around + bend[1]
    rounding = 64 * jnp.finfo(along.dtype).eps * size
    below = other < own + along + bend[0] - rounding  # False for a NaN loss: NaN must show
    if penalty is not None:
        own, other = own + penalty(w), other + penalty(u)
    return Regret(
        account.left + share * (own - other),
        account.size + share * (jnp.abs(own) + jnp.abs(other)),
        clock.advance(account.rounds, True),
        account.unit & (jnp.asarray(feedback.weight) == 1),
        account.convex & ~below,
    )


def regret_sides(
    account: Regret,
    right: Array,
    published: Array | None = None,
    *,
    share: Scalar = 1.0,
    convex: str = CONVEX,
) -> Certificate:
    """Both sides.

    share: a factor of the left side.
    convex: the name of the condition on the losses.
    """
    size = share * account.size + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    proof = Certificate(share * account.left, right, size, published)
    return proof.under({UNIT_WEIGHTS: account.unit, convex: account.convex})


def logarithmic(largest: Array, regret: Regret) -> Array:
    r"""$\max_{s \le t} \|g_s\|_*^2 \,(1 + \ln t) / (2\beta)$."""
    return largest * (1 + jnp.log(regret.rounds.past))
