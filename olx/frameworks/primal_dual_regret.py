r"""Closed-form regret bounds of `dual_ascent`, one per schedule.

They follow from the lemma of `olx.frameworks.primal_dual` and use its notation: the left side is
the regret on the learner's own loss, and $f$ stands for $f - \min f$. If a run violates a condition
of a theorem, for example by a row longer than the schedule assumes, the theorem does not apply.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 3 and section
5.2.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from olx import _numeric as safe
from olx.core import Feedback, Scalar
from olx.frameworks.primal_dual import (
    Account,
    DualAscentHparams,
    DualAscentState,
    add_round,
    finite,
    fixed,
    open_account,
)
from olx.schedules.fixed import SelfBoundedHparams, at_horizon
from olx.schedules.roots import own_loss_at, root_norms_at, root_rounds_at
from olx.theorem import Certificate, Theorem

ENERGY = "half the squared norm of a subgradient must be at most `energy`"
ALLOWED = "subgradients must be at most what the schedule allows for"


def regret_theorems(hp: DualAscentHparams) -> tuple[Theorem, ...]:
    """The theorems that apply to a learner with these hyperparameters."""
    if not hp.mirror.states_norm:
        return ()
    step, is_lipschitz = hp.eta.at_fn, hp.loss.lipschitz is not None
    is_bounded = hp.loss.self_bound is not None
    by_loss = is_bounded and step is own_loss_at
    chosen = (
        (lipschitz, fixed(hp)),
        (self_bounded, fixed(hp) and is_bounded),
        (horizon, step is at_horizon),
        (root_rounds, step is root_rounds_at),
        (root_norms, is_lipschitz and step is root_norms_at),
        (own_loss, by_loss),
        (bounded_loss, by_loss and hp.eta.hparams.complexity is not None),
    )
    return tuple(one for one, applies in chosen if applies)


def lipschitz_sides(hp: DualAscentHparams, account: Account, u: PyTree) -> Certificate:
    r"""Corollary 1 for a fixed $c$: $c f(u) + L t / c$ with $L$ the largest
    $\frac12\|\lambda'_s\|_*^2$ so far.

    For a Lipschitz loss it is at most $c f(u) + X^2 t / (2 c)$, with $X$ the largest $\|x_s\|_*$
    times the Lipschitz constant: (5.14) for the hinge.
    """
    whole = lambda energy: account.paid + energy * account.rounds / account.c
    constant = hp.loss.lipschitz
    published = None if constant is None else whole(constant**2 * account.heavy)
    return _certificate(account, whole(account.energy), published)


def horizon_sides(hp: DualAscentHparams, account: Account, u: PyTree) -> Certificate:
    r"""Corollary 1 with `lipschitz_horizon`: $(f(u) / \sqrt U + \sqrt U) \sqrt{L T}$, after each
    of the $T$ rounds."""
    tuned = hp.eta.hparams
    right = _roots(account.price, tuned.complexity, 1.0) * jnp.sqrt(tuned.energy * tuned.rounds)
    return _certificate(account, right).under(
        {
            "there must be at most `rounds` rounds": account.rounds <= tuned.rounds,
            ENERGY: _at_most(account.energy, tuned.energy),
        }
    )


def root_rounds_sides(hp: DualAscentHparams, account: Account, u: PyTree) -> Certificate:
    r"""Corollary 2 with `root_rounds`: $(f(u) / \sqrt U + 2 \sqrt U) \sqrt{L t}$, published with
    $2 f(u) / \sqrt U$."""
    tuned = hp.eta.hparams
    whole = lambda f: _roots(f, tuned.complexity, 2.0) * jnp.sqrt(tuned.energy * account.rounds)
    proof = _certificate(account, whole(account.price), whole(2 * account.price))
    return proof.given(ENERGY, _at_most(account.energy, tuned.energy))


def open_root_norms(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> Account:
    account = open_account(hp, state, u)
    return account._replace(met=account.met | {ALLOWED: jnp.ones((), bool)})


def add_root_norms(
    hp: DualAscentHparams, account: Account, state: DualAscentState, feedback: Feedback, u: PyTree
) -> Account:
    account = add_round(hp, account, state, feedback, u)
    constant, ratio = _root_norms(hp)
    most = (constant * account.c) ** 2 * ratio / (2 * account.rounds)
    allowed = account.met[ALLOWED] & _at_most(account.energy, most)
    return account._replace(met=account.met | {ALLOWED: allowed})


def root_norms_sides(hp: DualAscentHparams, account: Account, u: PyTree) -> Certificate:
    r"""Corollary 3 with `root_lipschitz`, (5.16) with `root_norms`, for an $L$-Lipschitz loss.

    $c_t (f(u) + 2 U)$ for the first schedule and $c_t (f(u) + L^2 U)$ for the second. Published for
    all $f(u) \le U$ at once: $3 \sqrt{\max_s L_s\, U t}$ and, if $L = 1$, $2 X_t \sqrt{U t}$.
    """
    constant, ratio = _root_norms(hp)
    whole = lambda f: account.c * (f + constant**2 * ratio)
    most = jnp.maximum(account.price, hp.eta.hparams.complexity)
    return _certificate(account, whole(account.price), whole(most))


def self_bounded_sides(hp: DualAscentHparams, account: Account, u: PyTree) -> Certificate:
    r"""Theorem 1 for a fixed $c > L$, where $L$ is the self-bounding constant of the losses so far:

    $$\frac{c f(u) + (L / c) \sum_s g_s(u)}{1 - L / c}.$$

    With `self_bounded` it is published as $2 \sqrt{L U_1 U_2} + 4 L U_1$, with the arguments
    $L, U_1, U_2$ of the schedule.
    """
    c, bound, tuned, published = account.c, _self_bound(hp, account), hp.eta.hparams, None
    room = c - bound
    right = (c**2 * account.price + bound * account.other) / safe.or_one(room)
    if isinstance(tuned, SelfBoundedHparams):
        known = _at_most(account.price, tuned.complexity) & _at_most(account.other, tuned.loss)
        known &= _at_most(bound, tuned.self_bound)
        size = tuned.self_bound * tuned.complexity
        published = jnp.where(known, 2 * jnp.sqrt(size * tuned.loss) + 4 * size, jnp.inf)
    proof = _certificate(account, right, published)
    return proof.given("the schedule must exceed the constant of the losses", room > 0)


def own_loss_sides(hp: DualAscentHparams, account: Account, u: PyTree) -> Certificate:
    r"""Theorem 2 with `own_loss`: $K \sqrt{\beta_1 + \sum_s g_s(u)} + K^2$, where
    $K = \beta_2 f(u) + (2 L / \beta_2) \sqrt{1 + \max_s g_s(w_s) / \beta_1}$."""
    tuned = hp.eta.hparams
    jump = 2 * jnp.sqrt(1 + account.largest / tuned.start)
    k = tuned.rate * account.price + _self_bound(hp, account) * jump / tuned.rate
    return _certificate(account, k * jnp.sqrt(tuned.start + account.other) + k**2)


def bounded_loss_sides(hp: DualAscentHparams, account: Account, u: PyTree) -> Certificate:
    r"""Corollary 4 with `bounded_loss`: $2 \cdot 8^{1/4} \sqrt{L U} \sqrt{\beta_1 + \sum_s g_s(u)}
    + 8 \sqrt 2\, L U$, published with $3.4$ and $11.4$."""
    tuned = hp.eta.hparams
    bound = tuned.rate**2 * tuned.complexity / 8**0.5
    root = jnp.sqrt(bound * tuned.complexity * (tuned.start + account.other))
    cost = lambda a, b: a * root + b * bound * tuned.complexity
    bounded = "losses must be self-bounded with the constant `self_bound`"
    return _certificate(account, cost(2 * 8**0.25, 8 * 2**0.5), cost(3.4, 11.4)).under(
        {
            "losses must be at most `largest`": _at_most(account.largest, tuned.start),
            "f(u) must be at most `complexity`": _at_most(account.price, tuned.complexity),
            bounded: _at_most(_self_bound(hp, account), bound),
        }
    )


def _root_norms(hp: DualAscentHparams) -> tuple[Scalar, Scalar]:
    """The Lipschitz constant of the loss, and the divisor in the square of the schedule."""
    assert hp.loss.lipschitz is not None  # `regret_theorems` has checked
    return hp.loss.lipschitz, hp.eta.hparams.complexity / hp.eta.hparams.energy


def _self_bound(hp: DualAscentHparams, account: Account) -> Array:
    assert hp.loss.self_bound is not None  # `regret_theorems` has checked
    return 2 * hp.loss.self_bound * account.row


def _roots(f: Array, complexity: Scalar, factor: Scalar) -> Array:
    return f / jnp.sqrt(complexity) + factor * jnp.sqrt(complexity)


def _at_most(seen: Array, most: Any) -> Array:
    """Whether `seen` is at most `most`, up to rounding."""
    return seen <= most * (1 + 64 * jnp.finfo(seen.dtype).eps)


def _certificate(account: Account, right: Array, published: Array | None = None) -> Certificate:
    scale = account.size + finite(right)
    return Certificate(account.regret, right, scale, published).under(account.met)


def _of(name: str, part: str, sides: Any, init: Any = open_account, add: Any = add_round):
    return Theorem(name, f"Shalev-Shwartz 2007, {part}", init, add, sides)


lipschitz = _of("lipschitz", "corollary 1", lipschitz_sides)
horizon = _of("horizon", "corollary 1", horizon_sides)
root_rounds = _of("root_rounds", "corollary 2", root_rounds_sides)
root_norms = _of("root_norms", "corollary 3", root_norms_sides, open_root_norms, add_root_norms)
self_bounded = _of("self_bounded", "theorem 1", self_bounded_sides)
own_loss = _of("own_loss", "theorem 2", own_loss_sides)
bounded_loss = _of("bounded_loss", "corollary 4", bounded_loss_sides)
