r"""Closed-form regret bounds for runs of `dual_ascent`, from what the run saw.

The left side is true regret on the losses that the learner goes by, $g_t(w) = h_t\,\ell(\langle w,
x_t\rangle, y_t)$, those that count. $f$ stands for $f - \min f$. Where a condition of a theorem
breaks on the run, as when a row is longer than a schedule was told, it says nothing.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 3 and section
5.2.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import Certificate
from olx.core import Learner, Run, Scalar
from olx.frameworks.dual_ascent import Account, DualAscentHparams, account
from olx.hindsight import about
from olx.hindsight.game import About, Game, judged, played
from olx.schedules.fixed import SelfBoundedHparams

ENERGY = "subgradients must be at most what the schedule was told"


class Facts(NamedTuple):
    """What the theorems are about, an entry a round."""

    game: Game
    hp: DualAscentHparams
    entries: Account
    f: Float[Array, ""]  # f(u), infinite outside the domain
    t: Float[Array, " T"]
    energy: Float[Array, " T"]  # half the largest squared norm of a subgradient so far
    row: Float[Array, " T"]  # half the largest squared norm of a row so far, times its weight
    heavy: Float[Array, " T"]  # the same times the square of its weight


def lipschitz_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 1 for a fixed $c$: $c f(u) + L t / c$ with $L$ the largest
    $\frac12\|\lambda'_s\|_*^2$ so far.

    For a Lipschitz loss at most $c f(u) + X^2 t / (2 c)$ with $X$ the largest $\|x_s\|_*$, times
    the constant of the loss: (5.14) for the hinge.
    """
    facts = _facts("lipschitz_bound", about.FIXED, learner, run, u)
    c, lipschitz = facts.entries.c, facts.hp.loss.lipschitz
    right = c * facts.f + facts.energy * facts.t / c
    printed = None
    if lipschitz is not None:
        printed = c * facts.f + lipschitz**2 * facts.heavy * facts.t / c
    return _certificate(facts, right, printed, "corollary 1")


def horizon_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 1 with `lipschitz_horizon`: $(f(u) / \sqrt U + \sqrt U) \sqrt{L T}$, in each of
    the $T$ rounds."""
    facts = _facts("horizon_bound", about.HORIZON, learner, run, u)
    tuned = facts.hp.schedule.hparams
    right = _roots(facts.f, tuned.complexity, 1.0) * jnp.sqrt(tuned.energy * tuned.rounds)
    met = {
        "there must be at most `rounds` rounds": facts.t <= tuned.rounds,
        ENERGY: _at_most(facts.energy, tuned.energy),
    }
    return _certificate(facts, right, None, "corollary 1", met)


def root_rounds_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 2 with `root_rounds`: $(f(u) / \sqrt U + 2 \sqrt U) \sqrt{L t}$, printed with
    $2 f(u) / \sqrt U$."""
    facts = _facts("root_rounds_bound", about.ROOT_ROUNDS, learner, run, u)
    tuned = facts.hp.schedule.hparams
    root = jnp.sqrt(tuned.energy * facts.t)
    right = _roots(facts.f, tuned.complexity, 2.0) * root
    printed = _roots(2 * facts.f, tuned.complexity, 2.0) * root
    met = {ENERGY: _at_most(facts.energy, tuned.energy)}
    return _certificate(facts, right, printed, "corollary 2", met)


def root_norms_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 3 with `root_lipschitz`, (5.16) with `root_norms`, for a loss of constant $L$.

    $c_t (f(u) + 2 U)$ for the first schedule and $c_t (f(u) + L^2 U)$ for the second; printed for
    all $f(u) \le U$ at once, $3 \sqrt{\max_s L_s\, U t}$ and, if $L = 1$, $2 X_t \sqrt{U t}$.
    """
    facts = _facts("root_norms_bound", about.ROOT_NORMS, learner, run, u)
    tuned, lipschitz = facts.hp.schedule.hparams, facts.hp.loss.lipschitz
    assert lipschitz is not None  # `about.ROOT_NORMS` has looked
    c, ratio = facts.entries.c, tuned.complexity / tuned.energy
    known = _at_most(facts.energy, (lipschitz * c) ** 2 * ratio / (2 * facts.t))
    cost = lambda f: c * (f + lipschitz**2 * ratio)
    printed = cost(jnp.maximum(facts.f, tuned.complexity))
    met = {"subgradients must be at most what the schedule allows for": known}
    return _certificate(facts, cost(facts.f), printed, "corollary 3", met)


def self_bounded_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 1 for a fixed $c > L$, the self-bounding constant of the losses so far:

    $$\frac{c f(u) + (L / c) \sum_s g_s(u)}{1 - L / c},$$

    and with `self_bounded` printed as $2 \sqrt{L U_1 U_2} + 4 L U_1$ for its own $L, U_1, U_2$.
    """
    facts = _facts("self_bounded_bound", about.SELF_BOUNDED, learner, run, u)
    c, bound, other = facts.entries.c, _self_bound(facts), jnp.cumsum(facts.entries.other)
    room = c - bound
    right = (c**2 * facts.f + bound * other) / jnp.where(room > 0, room, 1.0)
    tuned, printed = facts.hp.schedule.hparams, None
    if isinstance(tuned, SelfBoundedHparams):
        known = _at_most(facts.f, tuned.complexity) & _at_most(other, tuned.loss)
        known &= _at_most(bound, tuned.self_bound)
        size = tuned.self_bound * tuned.complexity
        printed = jnp.where(known, 2 * jnp.sqrt(size * tuned.loss) + 4 * size, jnp.inf)
    met = {"the schedule must exceed the constant of the losses": room > 0}
    return _certificate(facts, right, printed, "theorem 1", met)


def own_loss_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 2 with `own_loss`: $K \sqrt{\beta_1 + \sum_s g_s(u)} + K^2$, where
    $K = \beta_2 f(u) + (2 L / \beta_2) \sqrt{1 + \max_s g_s(w_s) / \beta_1}$."""
    facts = _facts("own_loss_bound", about.OWN_LOSS, learner, run, u)
    tuned = facts.hp.schedule.hparams
    jump = 2 * jnp.sqrt(1 + lax.cummax(facts.entries.loss) / tuned.start)
    k = tuned.rate * facts.f + _self_bound(facts) * jump / tuned.rate
    other = jnp.cumsum(facts.entries.other)
    return _certificate(facts, k * jnp.sqrt(tuned.start + other) + k**2, None, "theorem 2")


def bounded_loss_bound(learner: Learner, run: Run, u: PyTree, complexity: Scalar) -> Certificate:
    r"""Corollary 4 with `bounded_loss`: $2 \cdot 8^{1/4} \sqrt{L U} \sqrt{\beta_1 + \sum_s g_s(u)}
    + 8 \sqrt 2\, L U$, printed with $3.4$ and $11.4$.

    complexity: $U$, as given to the schedule.
    """
    complexity = check.positive("bounded_loss_bound", "complexity", complexity)
    facts = _facts("bounded_loss_bound", about.OWN_LOSS, learner, run, u)
    tuned = facts.hp.schedule.hparams
    bound = tuned.rate**2 * complexity / 8**0.5
    root = jnp.sqrt(bound * complexity * (tuned.start + jnp.cumsum(facts.entries.other)))
    cost = lambda a, b: a * root + b * bound * complexity
    met = {
        "losses must be at most `largest`": _at_most(facts.entries.loss, tuned.start),
        "f(u) must be at most `complexity`": _at_most(facts.f, complexity),
        "losses must be self-bounded as the schedule was told": _at_most(_self_bound(facts), bound),
    }
    exact, rounded = cost(2 * 8**0.25, 8 * 2**0.5), cost(3.4, 11.4)
    return _certificate(facts, exact, rounded, "corollary 4", met)


def _facts(owner: str, kind: About, learner: Learner, run: Run, u: PyTree) -> Facts:
    game, hp = played(owner, kind, learner, run, u), learner.hparams
    acc = jax.tree.map(lambda leaf: leaf[0], game.trace.state.acc)
    u, f, feedback = check.comparator(owner, game.u, acc), hp.mirror, game.trace.feedback
    entries = account(hp, game.trace, u)
    assert entries.energy is not None  # the theorem is about maps that state their norm
    rows, weight = (
        jax.vmap(f.energy)(feedback.context),
        jnp.asarray(feedback.weight, entries.c.dtype),
    )
    return Facts(
        game,
        hp,
        entries,
        f.potential(u) + f.conjugate(tree.zeros_like(u)),
        jnp.arange(1, rows.size + 1, dtype=rows.dtype),
        lax.cummax(entries.energy * entries.c),
        lax.cummax(rows * weight),
        lax.cummax(rows * weight**2),
    )


def _self_bound(facts: Facts) -> Array:
    assert facts.hp.loss.self_bound is not None  # the theorem is about losses that have one
    return 2 * facts.hp.loss.self_bound * facts.row


def _roots(f: Array, complexity: Scalar, factor: Scalar) -> Array:
    return f / jnp.sqrt(complexity) + factor * jnp.sqrt(complexity)


def _at_most(seen: Array, told: Any) -> Array:
    """Whether an assumption holds, up to rounding."""
    return seen <= told * (1 + 64 * jnp.finfo(seen.dtype).eps)


def _certificate(
    facts: Facts, right: Array, printed: Array | None, name: str, met: dict | None = None
) -> Certificate:
    left = jnp.cumsum(facts.entries.loss - facts.entries.other)
    right = right * jnp.ones_like(left)
    size = jnp.cumsum(facts.entries.size) + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    proof = Certificate(left, right, size, printed, f"Shalev-Shwartz 2007, {name}")
    return judged(facts.game, proof.under(facts.entries.conditions | (met or {})))
