r"""Closed-form regret bounds of follow the regularized leader, on the losses themselves.

The left side is $\sum_{s \le t} \ell_s(w_s) + F(w_s) - \ell_s(u) - F(u)$, for rounds of weight 1;
$F$ is the penalty in the regularizer, if there is one. The left side is at most

$$(5) \quad \frac{b_t(u)}{\eta} + \eta \sum_{s \le t} \frac{\|g_s\|_{s,*}^2}{2 \beta_s}
  \quad \text{for } f_t = b_t + \eta t F \text{ with } b_t \ge 0 \text{ that never shrinks,}$$
$$(6) \quad \sqrt t \, \Big( \frac{b(u)}{\eta} + \frac\eta\beta \max_{s \le t} \|g_s\|_*^2 \Big)
  \quad \text{for } f_t = \sqrt t\, b + \eta t F,$$
$$(7) \quad \max_{s \le t} \|g_s\|_*^2 \, \frac{1 + \ln t}{2\beta}
  \quad \text{for } f_t = t F \text{ with } F\ \beta\text{-strongly convex and } \eta = 1.$$

Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, corollary 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._pytree import as_tree
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Learner, Process
from olx.frameworks.ftrl import FTRLHparams, FTRLState
from olx.frameworks.regret import Regret, add_regret, open_regret, regret_sides
from olx.mirrors.base import MirrorMap
from olx.regularizers.constant import as_regularizer, constant
from olx.theorem import About, Theorem, theorem

Penalized = Callable[[PyTree], Array]


class Account(NamedTuple):
    regret: Regret
    paid: Float[Array, ""]  # b_t(u)
    energy: Float[Array, ""]  # the sum of |g|^2 / (2 beta)
    largest: Float[Array, ""]  # the largest term of `energy`
    inside: Bool[Array, ""]  # whether u was in the domain of every b_t


def composite_regret(base: MirrorMap | Process, penalty: Penalized | None = None) -> Theorem:
    """The bound (5), for an `ftrl`.

    base: the regularizer $b_t$. It must have the same statistics as the learner's regularizer:
        `growing(euclidean(), power)` for `composite`, `adagrad(delta)` for `adagrad`.
    penalty: $F$; no penalty if None.

    The step size of the learner and the `rate` of its penalty must be equal.
    """
    base = as_regularizer("composite_regret", "base", base)
    return _corollary("composite_regret", "(5)", base, penalty, _composite)


def root_regret(base: MirrorMap, penalty: Penalized | None = None) -> Theorem:
    """The bound (6), for an `ftrl`; `base` is $b$, `penalty` is $F$ (no penalty if None)."""
    base = _measured("root_regret", "base", base)
    return _corollary("root_regret", "(6)", constant(base), penalty, _root)


def leader_regret(penalty: MirrorMap) -> Theorem:
    """The bound (7), for an `ftrl` with step size 1; `penalty` is $F$."""
    penalty = _measured("leader_regret", "penalty", penalty)
    return _corollary("leader_regret", "(7)", constant(penalty), penalty.potential, _leader)


def _corollary(
    name: str,
    number: str,
    base: Process,
    penalty: Penalized | None,
    right: Callable[[FTRLHparams, Account], Array],
) -> Theorem:
    if penalty is not None:
        check.takes(name, "penalty", penalty, "w")
        penalty = as_tree(penalty)
    source = f"Orabona et al. 2015, corollary 1 {number}"
    parts = (open_account, add_round, both_sides)
    numbers = base, penalty, Partial(right)
    return theorem(name, source, *parts, *numbers, about=About("an `ftrl`", _is_ftrl))


def open_account(base, penalty, right, hp: FTRLHparams, state: FTRLState, u: PyTree) -> Account:
    regret = open_regret(state.theta.value, u)
    zero = jnp.zeros_like(regret.left)
    return Account(regret, zero, zero, zero, jnp.ones((), bool))


def add_round(
    base: Process,
    penalty: Partial | None,
    right: Partial,
    hp: FTRLHparams,
    account: Account,
    state: FTRLState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    b = base.at(state.stats, feedback.context)
    energy = b.energy(feedback.grad)
    if energy is None:
        raise TypeError("composite_regret: the map of `base` must state its norm and its modulus.")
    return Account(
        add_regret(account.regret, feedback, u, penalty=penalty),
        b.potential(u),
        account.energy + energy,
        jnp.maximum(account.largest, energy),
        account.inside & (b.outside(u) == 0),
    )


def both_sides(base, penalty, right: Partial, hp: FTRLHparams, account, u) -> Certificate:
    proof = regret_sides(account.regret, right(hp, account))
    return proof.given(DOMAIN, account.inside)


def _measured(owner: str, name: str, mirror: MirrorMap) -> MirrorMap:
    check.instance(owner, name, mirror, MirrorMap)
    if not mirror.states_norm:
        raise TypeError(f"{owner}: `{name}` must state its norm and its modulus.")
    return mirror


def _composite(hp: FTRLHparams, account: Account) -> Array:
    return account.paid / hp.eta + hp.eta * account.energy


def _root(hp: FTRLHparams, account: Account) -> Array:
    t = account.regret.rounds.past
    return jnp.sqrt(t) * (account.paid / hp.eta + 2 * hp.eta * account.largest)


def _leader(hp: FTRLHparams, account: Account) -> Array:
    return logarithmic(account.largest, account.regret)


def logarithmic(largest: Array, regret: Regret) -> Array:
    r"""$\max_{s \le t} \|g_s\|_*^2 \,(1 + \ln t) / (2\beta)$."""
    return largest * (1 + jnp.log(regret.rounds.past))


def _is_ftrl(learner: Learner) -> bool:
    return isinstance(learner.hparams, FTRLHparams)
