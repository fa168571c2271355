r"""Logarithmic regret on strongly convex losses: mirror descent with steps $\eta_t = 1/(\sigma t)$.

$$w_{t+1} = \nabla\psi^*\Big(\nabla\psi(w_t) - \frac{g_t}{\sigma t}\Big).$$

If every loss is $\sigma$-strongly convex with respect to $\psi$, that is
$\ell(u) \ge \ell(w) + \langle g, u - w\rangle + \sigma B_\psi(u, w)$, then the regret is at most
$\max_t \|g_t\|_*^2 \,(1 + \ln T) / (2\sigma\beta)$. An example is $\sigma \psi$ plus any convex
function. The Euclidean map gives projected gradient descent, the entropy a multiplicative update.
`floored_entropy`, with a lower bound for every weight, keeps the gradients of $\sigma\psi$ bounded.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, figure 4.1, theorem 5.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx._words import computed
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.accounts import divergence
from olx.frameworks.md import MDHparams, MDState, md
from olx.frameworks.regret import (
    STRONGLY_CONVEX,
    Regret,
    add_regret,
    logarithmic,
    open_regret,
    regret_sides,
)
from olx.mirrors.base import MirrorMap
from olx.mirrors.euclidean import euclidean
from olx.schedules.fixed import DecayHparams, decay
from olx.theorem import DOMAIN, About, Certificate, Theorem


@public
def strongly_convex_md(sigma: Scalar, mirror: MirrorMap | None = None) -> Learner:
    r"""Mirror descent from `params` with steps $1/(\sigma t)$, for strongly convex losses.

    sigma: how strongly convex every loss is with respect to the potential; positive.
    mirror: `euclidean()` if None; also `euclidean(domain)`, `negative_entropy()`,
        `floored_entropy(floor)`.

    >>> import jax.numpy as jnp, olx
    >>> ball = olx.mirrors.euclidean(olx.convex.sets.ball(1.0))
    >>> learner = olx.first_order.strongly_convex_md(0.5, ball)
    >>> rounds = olx.Rounds(None, jnp.ones((3, 1)))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1)).losses.tolist()
    [0.0, -1.0, -1.0]
    """
    sigma = check.positive("sigma", sigma)
    learner = md(decay(1 / sigma, power=1.0), euclidean() if mirror is None else mirror)
    learner = computed(learner, sigma=_sigma)
    if not learner.hparams.mirror.states_norm:
        return learner
    return learner.carrying(strongly_convex_regret(sigma))


def _sigma(learner: Learner) -> Scalar:
    return 1 / learner.hparams.eta.hparams.eta


class Account(NamedTuple):
    regret: Regret
    largest: Float[Array, ""]  # the largest |g|^2 / (2 beta)
    steps: Bool[Array, ""]  # whether all steps were 1 / (sigma t)


@public
def strongly_convex_regret(sigma: Scalar) -> Theorem:
    """Theorem 5, for any `md` with steps `decay(1 / sigma, power=1.0)`."""
    sigma = check.positive("sigma", sigma)
    parts = open_account, Partial(add_round, sigma), Partial(both_sides, sigma)
    source = "Shalev-Shwartz 2007, theorem 5"
    return Theorem("strongly_convex_regret", source, *parts, about=DECAYING)


def open_account(hp: MDHparams, state: MDState, u: PyTree) -> Account:
    regret = open_regret(state.theta, u)
    return Account(regret, jnp.zeros_like(regret.left), jnp.ones((), bool))


def add_round(
    sigma: Scalar, hp: MDHparams, account: Account, state: MDState, feedback: Feedback, u: PyTree
) -> Account:
    bend = divergence(hp.mirror, u, hp.mirror.retract(state.theta))
    regret = add_regret(account.regret, feedback, u, bend=tuple(sigma * part for part in bend))
    step = hp.eta.at(state.stats, feedback.context) * sigma * regret.rounds.past
    steps = account.steps & (jnp.abs(step - 1) <= 64 * jnp.finfo(step.dtype).eps)
    energy = hp.mirror.energy(feedback.grad)
    assert energy is not None  # the theorem is about maps that state their norm
    return Account(regret, jnp.maximum(account.largest, energy), steps)


def both_sides(sigma: Scalar, hp: MDHparams, account: Account, u: PyTree) -> Certificate:
    right = logarithmic(account.largest, account.regret) / sigma
    proof = regret_sides(account.regret, right, convex=STRONGLY_CONVEX)
    inside = hp.mirror.outside(u) == 0
    return proof.under({DOMAIN: inside, "steps must be 1 / (sigma t)": account.steps})


def _decays(learner: Learner) -> bool:
    hp = learner.hparams
    md_by_decay = isinstance(hp, MDHparams) and isinstance(hp.eta.hparams, DecayHparams)
    return md_by_decay and hp.mirror.states_norm


DECAYING = About("an `md` or `ogd` with steps by `decay` and a map that states its norm", _decays)
