r"""The mistake bounds of Passive-Aggressive, in the notation of its page.

The lemma behind all bounds: for any $u$,

$$\sum_{s \le t} \tau_s \big(2 \ell_s - \tau_s \|x_s\|^2\big) \le \|u - w_1\|^2 +
  2 \sum_{s \le t} \tau_s \ell_s(u).$$

Proof: $\|w_s - u\|^2 - \|w_{s+1} - u\|^2 = -2 \tau_s y_s \langle w_s - u, x_s\rangle - \tau_s^2
\|x_s\|^2$, where $-y_s \langle w_s, x_s\rangle = \ell_s - 1$ whenever $\tau_s > 0$ and $y_s
\langle u, x_s\rangle \ge 1 - \ell_s(u)$; sum over rounds. With $X$ the largest $\|x_s\|$,

$$|M| \le \max\Big(X^2 + \sigma, \frac1C\Big) \Big( \|u - w_1\|^2 + 2 \sum_{s \le t} \tau_s
  \ell_s(u) \Big)$$

where $\sigma = 1 / (2C)$ for PA-II and 0 else, and $1/C$ appears for PA-I only. Each row of zeros
adds 1 to the bound. For PA-I, `published` replaces $\tau_s$ by its bound $C$. If $u$ has no loss,
PA makes at most $X^2 \|u - w_1\|^2$ mistakes. Weights must be 1, except for PA.

For classes $a_s$ replaces $y_s x_s$ in all of it, $\ell_s(u)$ is the multiclass hinge, and $X$ is
the largest $\sqrt2 \|x_s\|$. The proof uses that the margin of $u$ over the rival of the learner is
at least its margin over its own best rival.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, Online Passive-Aggressive Algorithms, 2006.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree
from optax import tree

from olx import _check as check
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.classification._passive import PassiveAggressiveHparams, PassiveAggressiveState, rate
from olx.core import Feedback
from olx.frameworks.lift import dot
from olx.losses.margin import mistaken
from olx.theorem import theorem


class Account(NamedTuple):
    start: Float[Array, ""]  # |u - w_1|^2
    gain: Float[Array, ""]
    paid: Float[Array, ""]  # the sum of tau l(u)
    lost: Float[Array, ""]  # the sum of l(u)
    size: Float[Array, ""]
    largest: Float[Array, ""]  # X^2
    zeros: Float[Array, ""]  # rows of zeros
    wrong: Float[Array, ""]  # mistakes
    unit: Bool[Array, ""]  # whether all weights were 1


def open_account(hp: PassiveAggressiveHparams, state: PassiveAggressiveState, u: PyTree) -> Account:
    apart = tree.sub(check.comparator("certify", u, state.w), state.w)
    start = jnp.asarray(tree.vdot(apart, apart))
    zero = jnp.zeros_like(start)
    return Account(start, zero, zero, zero, zero, zero, zero, zero, jnp.ones((), bool))


def add_round(
    hp: PassiveAggressiveHparams,
    account: Account,
    state: PassiveAggressiveState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    x, y = feedback.context, feedback.outcome
    tau, gap, squares, _ = rate(hp, feedback)
    own, spent = tau * 2 * gap, tau**2 * squares
    lost = hp.loss(dot(u, x), y)
    count = lambda met: jnp.where(met, jnp.ones_like(tau), 0.0)
    return Account(
        account.start,
        account.gain + (own - spent),
        account.paid + tau * lost,
        account.lost + lost,
        account.size + (jnp.abs(own) + spent),
        jnp.maximum(account.largest, squares),
        account.zeros + count(squares == 0),
        account.wrong + count(mistaken(feedback.action, y)),
        account.unit & (jnp.asarray(feedback.weight) == 1),
    )


def distances(hp: PassiveAggressiveHparams, account: Account, u: PyTree) -> Certificate:
    right = account.start + 2 * account.paid
    return Certificate(account.gain, right, account.size + right)


def mistakes_made(hp: PassiveAggressiveHparams, account: Account, u: PyTree) -> Certificate:
    factor = account.largest + hp.softness
    factor = factor if hp.most is None else jnp.maximum(factor, 1 / hp.most)
    whole = lambda sums: factor * (account.start + 2 * sums) + account.zeros
    right = whole(account.paid)
    published = None if hp.most is None else whole(hp.most * account.lost)
    scale = account.wrong + account.zeros + right
    hard = (jnp.asarray(hp.softness) == 0) & (hp.most is None)
    proof = Certificate(account.wrong, right, scale, published)
    return proof.given(UNIT_WEIGHTS, hard | account.unit)


SOURCE = "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer 2006"
distance = theorem(
    "distance", f"{SOURCE}, the lemma behind all bounds", open_account, add_round, distances
)
mistakes = theorem("mistakes", SOURCE, open_account, add_round, mistakes_made)
