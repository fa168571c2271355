r"""Closed-form regret bounds for runs of `dual_ascent`, from what the run saw.

The left side is true regret on the losses that the learner goes by, $g_t(w) = h_t\,\ell(\langle w,
x_t\rangle, y_t)$, those that count. $f$ stands for $f - \min f$. Where the assumptions of a theorem
fail on the run, as when a row is longer than a schedule was told, the right side is infinite.

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
from olx.hindsight.certify import trace_of
from olx.hindsight.duality import dual_ascent_hparams
from olx.learners.dual_ascent import Account, DualAscentHparams, account
from olx.schedules.fixed import LipschitzHorizonHparams, SelfBoundedHparams
from olx.schedules.own_loss import OwnLossHparams
from olx.schedules.root_norms import RootNormsHparams
from olx.schedules.root_rounds import RootRoundsHparams


class Facts(NamedTuple):
    """What the theorems are about, an entry a round."""

    hp: DualAscentHparams
    entries: Account
    f: Float[Array, ""]  # f(u), infinite outside the domain
    t: Float[Array, " T"]
    energy: Float[Array, " T"]  # half the largest squared norm of a subgradient so far
    row: Float[Array, " T"]  # half the largest squared norm of a row so far, times its weight


def lipschitz_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 1 for a fixed $c$: $c f(u) + L t / c$ with $L$ the largest
    $\frac12\|\lambda'_s\|_*^2$ so far.

    For a Lipschitz loss at most $c f(u) + X^2 t / (2 c)$ with $X$ the largest $\|x_s\|_*$, times
    the constant of the loss: (5.14) for the hinge.
    """
    facts = _facts("lipschitz_bound", learner, run, u)
    c, lipschitz = facts.entries.c, facts.hp.loss.lipschitz
    right = c * facts.f + facts.energy * facts.t / c
    printed = None
    if lipschitz is not None:
        printed = c * facts.f + lipschitz**2 * facts.row * facts.t / c
    return _certificate(facts, right, printed, "corollary 1")


def horizon_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 1 with `lipschitz_horizon`: $(f(u) / \sqrt U + \sqrt U) \sqrt{L T}$, in each of
    the $T$ rounds."""
    facts = _facts("horizon_bound", learner, run, u)
    tuned = _tuned("horizon_bound", facts, LipschitzHorizonHparams)
    right = _roots(facts.f, tuned.complexity, 1.0) * jnp.sqrt(tuned.energy * tuned.rounds)
    known = _at_most(facts.energy, tuned.energy) & (facts.t <= tuned.rounds)
    return _certificate(facts, jnp.where(known, right, jnp.inf), None, "corollary 1")


def root_rounds_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 2 with `root_rounds`: $(f(u) / \sqrt U + 2 \sqrt U) \sqrt{L t}$, printed with
    $2 f(u) / \sqrt U$."""
    facts = _facts("root_rounds_bound", learner, run, u)
    tuned = _tuned("root_rounds_bound", facts, RootRoundsHparams)
    known = _at_most(facts.energy, tuned.energy)
    root = jnp.where(known, jnp.sqrt(tuned.energy * facts.t), jnp.inf)
    right = _roots(facts.f, tuned.complexity, 2.0) * root
    printed = _roots(2 * facts.f, tuned.complexity, 2.0) * root
    return _certificate(facts, right, printed, "corollary 2")


def root_norms_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Corollary 3 with `root_lipschitz`, (5.16) with `root_norms`, for a loss of constant $L$.

    $c_t (f(u) + 2 U)$ for the first schedule and $c_t (f(u) + L^2 U)$ for the second; printed for
    all $f(u) \le U$ at once, $3 \sqrt{\max_s L_s\, U t}$ and, if $L = 1$, $2 X_t \sqrt{U t}$.
    """
    facts = _facts("root_norms_bound", learner, run, u)
    tuned, lipschitz = _tuned("root_norms_bound", facts, RootNormsHparams), facts.hp.loss.lipschitz
    if lipschitz is None:
        raise TypeError("root_norms_bound: the loss has no Lipschitz constant; see own_loss_bound.")
    c, ratio = facts.entries.c, tuned.complexity / tuned.energy
    known = _at_most(facts.energy, (lipschitz * c) ** 2 * ratio / (2 * facts.t))
    cost = lambda f: jnp.where(known, c * (f + lipschitz**2 * ratio), jnp.inf)
    printed = cost(jnp.maximum(facts.f, tuned.complexity))
    return _certificate(facts, cost(facts.f), printed, "corollary 3")


def self_bounded_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 1 for a fixed $c > L$, the self-bounding constant of the losses so far:

    $$\frac{c f(u) + (L / c) \sum_s g_s(u)}{1 - L / c},$$

    and with `self_bounded` printed as $2 \sqrt{L U_1 U_2} + 4 L U_1$ for its own $L, U_1, U_2$.
    """
    facts = _facts("self_bounded_bound", learner, run, u)
    c, bound, other = facts.entries.c, _self_bound(facts), jnp.cumsum(facts.entries.other)
    room = c - bound
    right = (c**2 * facts.f + bound * other) / jnp.where(room > 0, room, 1.0)
    right = jnp.where(room > 0, right, jnp.inf)
    tuned, printed = facts.hp.schedule.hparams, None
    if isinstance(tuned, SelfBoundedHparams):
        known = _at_most(facts.f, tuned.complexity) & _at_most(other, tuned.loss)
        known &= _at_most(bound, tuned.self_bound)
        size = tuned.self_bound * tuned.complexity
        printed = jnp.where(known, 2 * jnp.sqrt(size * tuned.loss) + 4 * size, jnp.inf)
    return _certificate(facts, right, printed, "theorem 1")


def own_loss_bound(learner: Learner, run: Run, u: PyTree) -> Certificate:
    r"""Theorem 2 with `own_loss`: $K \sqrt{\beta_1 + \sum_s g_s(u)} + K^2$, where
    $K = \beta_2 f(u) + (2 L / \beta_2) \sqrt{1 + \max_s g_s(w_s) / \beta_1}$."""
    facts = _facts("own_loss_bound", learner, run, u)
    tuned = _tuned("own_loss_bound", facts, OwnLossHparams)
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
    facts = _facts("bounded_loss_bound", learner, run, u)
    tuned = _tuned("bounded_loss_bound", facts, OwnLossHparams)
    bound = tuned.rate**2 * complexity / 8**0.5
    known = _at_most(_self_bound(facts), bound) & _at_most(facts.f, complexity)
    known &= _at_most(lax.cummax(facts.entries.loss), tuned.start)
    root = jnp.sqrt(bound * complexity * (tuned.start + jnp.cumsum(facts.entries.other)))
    cost = lambda a, b: jnp.where(known, a * root + b * bound * complexity, jnp.inf)
    return _certificate(facts, cost(2 * 8**0.25, 8 * 2**0.5), cost(3.4, 11.4), "corollary 4")


def _tuned(owner: str, facts: Facts, kind: type):
    check.instance(owner, "learner.hparams.schedule.hparams", facts.hp.schedule.hparams, kind)
    return facts.hp.schedule.hparams


def _facts(owner: str, learner: Learner, run: Run, u: PyTree) -> Facts:
    hp, trace = dual_ascent_hparams(owner, learner), trace_of(owner, learner, run)
    entries, f = account(hp, trace, u), hp.mirror
    energy, rows = entries.energy, jax.vmap(f.energy)(trace.feedback.context)
    if energy is None or rows is None:
        raise TypeError(f"{owner}: the mirror map states no norm and modulus; see `olx.certify`.")
    least = -f.conjugate(tree.zeros_like(u))
    row = rows * jnp.asarray(trace.feedback.weight, rows.dtype)
    return Facts(
        hp,
        entries,
        f.potential(u) - least + f.outside(u),
        jnp.arange(1, row.size + 1, dtype=row.dtype),
        lax.cummax(energy * entries.c),
        lax.cummax(row),
    )


def _self_bound(facts: Facts) -> Array:
    if facts.hp.loss.self_bound is None:
        raise TypeError("the loss is not self-bounded; see lipschitz_bound and root_norms_bound.")
    return 2 * facts.hp.loss.self_bound * facts.row


def _roots(f: Array, complexity: Scalar, factor: Scalar) -> Array:
    return f / jnp.sqrt(complexity) + factor * jnp.sqrt(complexity)


def _at_most(seen: Array, told: Any) -> Array:
    """Whether an assumption holds, up to rounding."""
    return seen <= told * (1 + 64 * jnp.finfo(seen.dtype).eps)


def _certificate(facts: Facts, right: Array, printed: Array | None, name: str) -> Certificate:
    left = jnp.cumsum(facts.entries.loss - facts.entries.other)
    right = right * jnp.ones_like(left)
    size = jnp.cumsum(facts.entries.size) + jnp.where(jnp.isfinite(right), jnp.abs(right), 0.0)
    return Certificate(left, right, size, printed, f"Shalev-Shwartz 2007, {name}")
