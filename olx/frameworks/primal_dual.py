r"""The primal-dual game, its account, and the lemma about it.

The losses are $g_t(w) = h_t\,\ell(\langle w, x_t\rangle, y_t)$, those that the learner goes by and
that count. $acc_t$ is minus the sum of the dual vectors before round $t$, $\lambda'_t \in \partial
g_t(w_t)$, and $f$ stands for $f - \min f$. Where the ascent raises the dual at least as much as
$\lambda'_t$ would,

$$\sum_{s \le t} g_s(w_s) - g_s(u) \le c_t f(u) + \sum_{s \le t} c_s B_{f^*}\Big(
  \frac{acc_s - \lambda'_s}{c_s}, \frac{acc_s}{c_s}\Big) + \Big[ c f^*\Big(\frac{acc_s}c\Big)
  \Big]_{c_{s-1}}^{c_s}.$$

The divergence is at most $\|\lambda'_s\|_*^2 / (2 c_s)$ where $f$ is 1-strongly convex, and the
last term is never positive where $c$ does not decrease, which is how it is published.

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
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Process
from olx.frameworks.ascents.base import Ascent, Problem, move, slope
from olx.frameworks.lift import dot
from olx.frameworks.master import constants
from olx.losses.score import ScoreLoss
from olx.mirrors.base import MirrorMap
from olx.schedules import _scalar
from olx.theorem import theorem


@pytree
class DualAscentHparams:
    mirror: MirrorMap
    loss: ScoreLoss
    ascent: Ascent
    eta: Process


class DualAscentState(NamedTuple):
    acc: PyTree  # minus the sum of all dual vectors, whatever c is, centred
    conjugates: Float[Array, ""]  # the sum of the conjugates of the losses at them, and what
    # centring took from c f*(acc / c), so that the dual is what it was
    stats: PyTree
    memory: PyTree


def rate(hp: DualAscentHparams, state: DualAscentState, context: PyTree) -> Array:
    r"""$c_t = 1 / \eta_t$."""
    return 1 / hp.eta.at(state.stats, context)


def problem(hp: DualAscentHparams, state: DualAscentState, feedback: Feedback) -> Problem:
    """What the ascent sees of a round."""
    x, score, y = feedback.context, feedback.action, feedback.outcome
    weight = jnp.where(hp.ascent.counts(score, y), jnp.asarray(feedback.weight, score.dtype), 0.0)
    c = rate(hp, state, x)
    return Problem(hp.mirror, hp.loss, c, state.acc, x, y, weight, score)


class Account(NamedTuple):
    """What the rounds so far have added, in the words of the lemma."""

    least: Float[Array, ""]  # f*(0), which is minus the least value of the potential
    price: Float[Array, ""]  # f(u)
    constants: Float[Array, ""]  # the size of what is subtracted in a round, over c
    c: Float[Array, ""]  # c_t, 0 before the first round
    rounds: Float[Array, ""]
    regret: Float[Array, ""]  # the sum of g_s(w_s) - g_s(u)
    other: Float[Array, ""]  # the sum of g_s(u)
    moved: Float[Array, ""]  # the sum of divergences and changes of c
    norms: Float[Array, ""]  # the same with norms; infinite where they are not known
    size: Float[Array, ""]  # of the numbers that these are differences of
    largest: Float[Array, ""]  # g_s(w_s)
    energy: Float[Array, ""]  # half the largest squared norm of a subgradient
    row: Float[Array, ""]  # half the largest squared norm of a row, times its weight
    heavy: Float[Array, ""]  # half the largest squared norm of a weighted row
    met: dict[str, Bool[Array, ""]]  # whether all rounds met what the lemma asks for

    @property
    def paid(self) -> Array:
        r"""$c_t f(u)$."""
        return self.c * self.price


def open_account(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> Account:
    f, u = hp.mirror, check.comparator("certify", u, state.acc)
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
    there, here, along = raised(c, after), raised(c, now.acc), now.weight * tau * now.score
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


primal_dual_inequality = theorem(
    "primal_dual_inequality", "Shalev-Shwartz 2007, lemma 2", open_account, add_round, both_sides
)


def fixed(hp: DualAscentHparams) -> bool:
    """Whether the schedule gives the same number in every round."""
    return hp.eta.init_fn is _scalar.no_stats


def finite(side: Array) -> Array:
    """The size of a side, 0 where it is not finite."""
    return jnp.where(jnp.isfinite(side), jnp.abs(side), 0.0)
