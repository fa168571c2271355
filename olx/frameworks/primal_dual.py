r"""The state of `dual_ascent`, the lemma that bounds its regret, and one closed form per schedule.

The losses are $g_t(w) = h_t\,\ell(\langle w, x_t\rangle, y_t)$, with the learner's own loss $\ell$
and $h_t = 0$ in rounds that the ascent does not count. $acc_t$ is minus the sum of the dual vectors
before round $t$, $\lambda'_t \in \partial g_t(w_t)$, and $f$ stands for $f - \min f$. If the ascent
raises the dual at least as much as $\lambda'_t$ would,

$$\sum_{s \le t} g_s(w_s) - g_s(u) \le c_t f(u) + \sum_{s \le t} c_s B_{f^*}\Big(
  \frac{acc_s - \lambda'_s}{c_s}, \frac{acc_s}{c_s}\Big) + \Big[ c f^*\Big(\frac{acc_s}c\Big)
  \Big]_{c_{s-1}}^{c_s}.$$

The published form uses that the divergence is at most $\|\lambda'_s\|_*^2 / (2 c_s)$ if $f$ is
1-strongly convex, and that the last term is never positive if $c$ does not decrease.

The closed forms have the same left side. If a run violates a condition of one, for example by a row
longer than its schedule assumes, the theorem does not apply.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, chapter 3 (lemma 2, and
for a fixed $c$ lemma 1) and section 5.2.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Process, Scalar
from olx.frameworks.accounts import constants, value_at
from olx.frameworks.ascents.base import Ascent, Problem, move, slope
from olx.frameworks.lift import dot
from olx.losses.score import ScoreLoss
from olx.mirrors.base import MirrorMap
from olx.schedules.fixed import SelfBoundedHparams, at_horizon, no_stats
from olx.schedules.roots import own_loss_at, root_norms_at, root_rounds_at
from olx.theorem import Theorem


@pytree
class DualAscentHparams:
    mirror: MirrorMap
    loss: ScoreLoss
    ascent: Ascent
    eta: Process


class DualAscentState(NamedTuple):
    acc: PyTree  # minus the sum of all dual vectors, not divided by c, centred by the mirror map
    conjugates: Float[Array, ""]  # the sum of the conjugates of the losses at the dual vectors,
    # plus the change of c f*(acc / c) by centring, so that centring does not change the dual
    stats: PyTree
    memory: PyTree


def rate(hp: DualAscentHparams, state: DualAscentState, context: PyTree) -> Array:
    r"""$c_t = 1 / \eta_t$."""
    return 1 / hp.eta.at(state.stats, context)


def problem(hp: DualAscentHparams, state: DualAscentState, feedback: Feedback) -> Problem:
    """The round as the input of the ascent rule."""
    x, score, y = feedback.context, feedback.action, feedback.outcome
    weight = jnp.where(hp.ascent.counts(score, y), jnp.asarray(feedback.weight, score.dtype), 0.0)
    c = rate(hp, state, x)
    return Problem(hp.mirror, hp.loss, c, state.acc, x, y, weight, score)


class Account(NamedTuple):
    """Sums and maxima over the rounds so far, in the notation of the lemma."""

    least: Float[Array, ""]  # f*(0), which is minus the minimum of the potential
    price: Float[Array, ""]  # f(u)
    constants: Float[Array, ""]  # the size of the constants subtracted per round, divided by c
    c: Float[Array, ""]  # c_t, 0 before the first round
    rounds: Float[Array, ""]
    regret: Float[Array, ""]  # the sum of g_s(w_s) - g_s(u)
    other: Float[Array, ""]  # the sum of g_s(u)
    moved: Float[Array, ""]  # the sum of divergences and changes of c
    norms: Float[Array, ""]  # the same with norms; infinite if the map states no norm
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error
    largest: Float[Array, ""]  # the largest g_s(w_s)
    energy: Float[Array, ""]  # half the largest squared norm of a subgradient
    row: Float[Array, ""]  # half the largest squared norm of a row, times its weight
    heavy: Float[Array, ""]  # half the largest squared norm of a weighted row
    acc: PyTree  # after the last round
    risen: Float[Array, ""]  # c f^*(acc / c) there
    met: dict[str, Bool[Array, ""]]  # per condition of the lemma, whether all rounds met it

    @property
    def paid(self) -> Array:
        r"""$c_t f(u)$."""
        return self.c * self.price


def open_account(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> Account:
    f, u = hp.mirror, check.comparator(u, state.acc)
    least = f.conjugate(tree.zeros_like(state.acc))
    demands = [] if hp.ascent.legal_fn is None else [hp.ascent.demand]
    zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(state.acc)))
    return Account(
        least,
        f.potential(u) + least,
        jnp.abs(least) + 4 * constants(f, u),
        *(zero,) * 11,
        acc=state.acc,
        risen=zero,
        met={DOMAIN: f.outside(u) == 0} | dict.fromkeys(demands, jnp.ones((), bool)),
    )


def add_round(
    hp: DualAscentHparams, account: Account, state: DualAscentState, feedback: Feedback, u: PyTree
) -> Account:
    f, now = hp.mirror, problem(hp, state, feedback)
    weight = jnp.asarray(feedback.weight, account.c.dtype)
    c, tau = now.c * jnp.ones_like(account.c), slope(now)
    after, _ = move(now, tau)
    raised, before = partial(dual_of, hp, account.least), jnp.where(account.c > 0, account.c, c)
    past = value_at(raised, (before, now.acc), account.risen, (account.c, account.acc))
    here = value_at(raised, (c, now.acc), past, (before, now.acc))
    there = value_at(raised, (c, after), here, (c, now.acc))
    along = now.weight * jnp.vdot(tau, now.score)
    loss = now.weight * hp.loss(now.score, now.y)
    other = now.weight * hp.loss(dot(u, now.x), now.y)
    sizes = tree.sum(jax.tree.map(jnp.abs, (there, here, along, past, loss, other)))
    energy, row = f.energy(tree.sub(after, now.acc)), f.energy(now.x)
    if energy is None or row is None:
        energy, row = jnp.full_like(loss, jnp.inf), jnp.full_like(loss, jnp.inf)
    legal = hp.ascent.conditions(now)
    return Account(
        account.least,
        account.price,
        account.constants,
        c,
        account.rounds + 1,
        account.regret + (loss - other),
        account.other + other,
        account.moved + (there - here + along + (here - past)),
        account.norms + (energy / c + jnp.maximum(here - past, 0.0)),
        account.size + (sizes + c * account.constants),
        jnp.maximum(account.largest, loss),
        jnp.maximum(account.energy, energy),
        jnp.maximum(account.row, row * weight),
        jnp.maximum(account.heavy, row * weight**2),
        after,
        there,
        {name: met & legal.get(name, True) for name, met in account.met.items()},
    )


def dual_of(hp: DualAscentHparams, least: Array, point: tuple[Array, PyTree]) -> Array:
    r"""$c f^*(acc / c)$ at a point $(c, acc)$."""
    c, acc = point
    return c * (hp.mirror.conjugate(jax.tree.map(lambda leaf: leaf / c, acc)) - least)


def both_sides(hp: DualAscentHparams, account: Account, u: PyTree) -> Certificate:
    return Certificate(
        account.regret,
        account.paid + account.moved,
        account.size + finite(account.paid),
        account.paid + account.norms if hp.mirror.states_norm else None,
    ).under(account.met)


primal_dual_inequality = Theorem(
    "primal_dual_inequality", "Shalev-Shwartz 2007, lemma 2", open_account, add_round, both_sides
)


def fixed(hp: DualAscentHparams) -> bool:
    """Whether the schedule is constant."""
    return hp.eta.init_fn is no_stats


def finite(side: Array) -> Array:
    """The absolute value of a side, 0 if it is not finite."""
    return jnp.where(jnp.isfinite(side), jnp.abs(side), 0.0)


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


def _at_most(seen: Array, most: Scalar) -> Array:
    """Whether `seen` is at most `most`, up to rounding."""
    return seen <= most * (1 + 64 * jnp.finfo(seen.dtype).eps)


def _certificate(account: Account, right: Array, published: Array | None = None) -> Certificate:
    scale = account.size + finite(right)
    return Certificate(account.regret, right, scale, published).under(account.met)


SOURCE = "Shalev-Shwartz 2007"
FOLD = open_account, add_round
lipschitz = Theorem("lipschitz", f"{SOURCE}, corollary 1", *FOLD, lipschitz_sides)
horizon = Theorem("horizon", f"{SOURCE}, corollary 1", *FOLD, horizon_sides)
root_rounds = Theorem("root_rounds", f"{SOURCE}, corollary 2", *FOLD, root_rounds_sides)
root_norms = Theorem(
    "root_norms", f"{SOURCE}, corollary 3", open_root_norms, add_root_norms, root_norms_sides
)
self_bounded = Theorem("self_bounded", f"{SOURCE}, theorem 1", *FOLD, self_bounded_sides)
own_loss = Theorem("own_loss", f"{SOURCE}, theorem 2", *FOLD, own_loss_sides)
bounded_loss = Theorem("bounded_loss", f"{SOURCE}, corollary 4", *FOLD, bounded_loss_sides)
