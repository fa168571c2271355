r"""The state of `dual_ascent`, and the lemma that bounds its regret.

The losses are $g_t(w) = h_t\,\ell(\langle w, x_t\rangle, y_t)$, with the learner's own loss $\ell$
and $h_t = 0$ in rounds that the ascent does not count. $acc_t$ is minus the sum of the dual vectors
before round $t$, $\lambda'_t \in \partial g_t(w_t)$, and $f$ stands for $f - \min f$. If the ascent
raises the dual at least as much as $\lambda'_t$ would,

$$\sum_{s \le t} g_s(w_s) - g_s(u) \le c_t f(u) + \sum_{s \le t} c_s B_{f^*}\Big(
  \frac{acc_s - \lambda'_s}{c_s}, \frac{acc_s}{c_s}\Big) + \Big[ c f^*\Big(\frac{acc_s}c\Big)
  \Big]_{c_{s-1}}^{c_s}.$$

The published form uses that the divergence is at most $\|\lambda'_s\|_*^2 / (2 c_s)$ if $f$ is
1-strongly convex, and that the last term is never positive if $c$ does not decrease.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, lemma 2, and for a
fixed $c$ lemma 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree
from olx.core import Feedback, Process
from olx.frameworks.ascents.base import Ascent, Problem, move, slope
from olx.frameworks.lift import dot
from olx.frameworks.master import constants
from olx.losses.score import ScoreLoss
from olx.mirrors.base import MirrorMap
from olx.schedules.fixed import no_stats
from olx.theorem import DOMAIN, Certificate, Theorem


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
        met={DOMAIN: f.outside(u) == 0} | dict.fromkeys(demands, jnp.ones((), bool)),
    )


def add_round(
    hp: DualAscentHparams, account: Account, state: DualAscentState, feedback: Feedback, u: PyTree
) -> Account:
    f, now = hp.mirror, problem(hp, state, feedback)
    weight = jnp.asarray(feedback.weight, account.c.dtype)
    c, tau = now.c * jnp.ones_like(account.c), slope(now)
    after, _ = move(now, tau)
    raised = lambda c, acc: c * (f.conjugate(jax.tree.map(lambda x: x / c, acc)) - account.least)
    there, here, along = raised(c, after), raised(c, now.acc), now.weight * jnp.vdot(tau, now.score)
    past = raised(jnp.where(account.c > 0, account.c, c), now.acc)
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
        {name: met & legal.get(name, True) for name, met in account.met.items()},
    )


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
