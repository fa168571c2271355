r"""The master inequality: one bound for lazy mirror descent and follow the regularized leader.

Play $w_t = \nabla f_t^*(\vartheta_t)$, observe any $z_t$, keep $\theta_{t+1} = \theta_t + z_t$. The
played dual $\vartheta_t$ is $\theta_t$, or $\theta_t$ plus a hint. For all $u$ in the domain, with
$f_0^* = 0$,

$$\sum_{s \le t} \langle z_s, u - w_s \rangle \le f_t(u) - \langle\theta_1, u\rangle +
  \sum_{s \le t} \Big( B_{f_s^*}(\theta_{s+1}, \vartheta_s) + f_s^*(\theta_s) -
  f_{s-1}^*(\theta_s) \Big).$$

Proof: $f_s^*(\theta_{s+1}) = f_s^*(\vartheta_s) + \langle\theta_{s+1} - \vartheta_s, w_s\rangle +
B$ and $f_s^*(\vartheta_s) \le f_s^*(\theta_s) + \langle\vartheta_s - \theta_s, w_s\rangle$. Sum
over rounds and use $f_t^*(\theta_{t+1}) \ge \langle\theta_{t+1}, u\rangle - f_t(u)$.

If $f_s$ is $\beta_s$-strongly convex, $B \le \|\theta_{s+1} - \vartheta_s\|_{s,*}^2 / (2\beta_s)$.
The paper prints this form (`published`).

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, lemma 1.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._numeric import Sum
from olx.core import Feedback, Scalar
from olx.mirrors.base import MirrorMap
from olx.theorem import DOMAIN, Certificate, Theorem


class Step(NamedTuple):
    """A round in the notation of the lemma."""

    f: MirrorMap  # f_t
    theta: PyTree
    played: PyTree  # vartheta
    z: PyTree
    w: PyTree
    after: PyTree  # the next theta; a centred one may differ from theta + z


class Account(NamedTuple):
    """Sums over the rounds so far."""

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


def open_account(theta: PyTree, u: PyTree, fixed: bool = False) -> Account:
    r"""The account before the first round, from $\theta_1$.

    fixed: whether $f_t$ never changes.
    """
    u = check.comparator(u, theta)
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(theta)))
    start = jnp.asarray(tree.vdot(theta, u))
    true, kept = jnp.ones((), bool), None if fixed else theta
    return Account(start, zero, zero, zero, zero, jnp.abs(start), kept, zero, true, true)


def add_round(account: Account, step: Step, u: PyTree) -> Account:
    """Add the terms of a round to both sides."""
    f, after = step.f, tree.add(step.theta, step.z)
    gap = tree.sub(after, step.played)
    here, there, along = f.conjugate(step.played), f.conjugate(after), tree.vdot(gap, step.w)
    if account.theta is None:
        change = jnp.where(account.first, f.conjugate(step.theta), 0.0)
        kept = None, account.past
    else:
        change = f.conjugate(account.theta) - account.past
        kept = step.after, f.conjugate(step.after)
    left = tree.vdot(step.z, tree.sub(u, step.w))
    size = jnp.abs(left) + 2 * (jnp.abs(here) + jnp.abs(there) + jnp.abs(along))
    size += 4 * constants(f, u)  # a round evaluates four conjugates
    norms = f.energy(gap)
    return Account(
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


def both_sides(account: Account, eta: Scalar) -> Certificate:
    """Both sides of the lemma divided by `eta`."""
    right = lambda sums: (account.paid - account.start + sums) / eta
    paid = jnp.where(jnp.isfinite(account.paid), jnp.abs(account.paid), 0.0)
    return Certificate(
        account.left / eta,
        right(account.right),
        (paid + account.size) / eta,
        right(account.published),
    ).given(DOMAIN, account.inside)


def inequality(step: Callable[..., Step], fixed: bool = False) -> Theorem:
    """The lemma divided by the step size, for a learner whose hyperparameters have an `eta`.

    step: `(hparams, state, feedback) -> Step`, the round in the notation of the lemma.
    fixed: whether $f_t$ never changes.
    """
    source = "Orabona, Crammer, Cesa-Bianchi 2015, lemma 1"
    parts = _open_fixed if fixed else _open, Partial(_add, Partial(step)), _sides
    return Theorem("master_inequality", source, *parts)


def _open(hp: Any, state: Any, u: PyTree) -> Account:
    return open_account(state.theta.value if isinstance(state.theta, Sum) else state.theta, u)


def _open_fixed(hp: Any, state: Any, u: PyTree) -> Account:
    return open_account(state.theta, u, fixed=True)


def _add(step: Partial, hp: Any, account: Account, state: Any, feedback: Feedback, u: PyTree):
    return add_round(account, step(hp, state, feedback), u)


def _sides(hp: Any, account: Account, u: PyTree) -> Certificate:
    return both_sides(account, hp.eta)


def constants(f: MirrorMap, u: PyTree) -> Array:
    """The size of the constants subtracted in the potential and its conjugate (for rounding)."""
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(u)))
    return zero if f.offset is None else f.offset(u)
