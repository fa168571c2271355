r"""The regret of label ranking with a step size that shrinks with the root of time.

The squared dual norm of a subgradient is at most $2 L_s$ for $L_s = h_s^2 \|x_s\|_*^2$. The
schedules are `root_rounds`, $c_t = \sqrt{t L / U}$ for a known $L \ge L_s$, and `root_norms`, which
has $c_t = \sqrt{t / U} \max_{s \le t} \|x_s\|_*$. For every $u$, with $V_t = \max_{s \le t} s L_s /
c_s^2$,

$$\sum_{s \le t} h_s (g_s(w_s) - g_s(u)) \le c_t f(u) + \sum_{s \le t} \frac{L_s}{c_s}
  \le c_t (f(u) + 2 V_t).$$

If the schedule suits the rows, $V_t \le U$. `published` is then $2 c_t (f(u) + U)$, which is $4
\sqrt{\max_s L_s\, U t}$ for $f(u) \le U$; else it is infinite. The schedule `root_lipschitz` with
the constant $\sqrt2$ is `root_norms`; with $l$ it suits weights of at most $l / \sqrt2$.

Proof: $L_s \le c_s^2 V_t / s$, and $c_s / \sqrt s$ never decreases. So the last sum is at most $V_t
\sum_s c_s / s \le V_t (c_t / \sqrt t) \sum_s s^{-1/2} \le 2 V_t c_t$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, corollaries 2 and 3,
and lemma 18.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback
from olx.ranking import label_ranking_regret as regret
from olx.ranking._rule import LabelRankingHparams, geometry_of, rate
from olx.schedules.root_norms import at as at_root_norms
from olx.schedules.root_rounds import at as at_root_rounds
from olx.theorem import theorem


class Account(NamedTuple):
    regret: regret.Account
    rounds: Float[Array, ""]
    most: Float[Array, ""]  # V


def is_root(hp: LabelRankingHparams) -> bool:
    """Whether the schedule is one of those that the theorem is about."""
    return hp.eta.at_fn in (at_root_norms, at_root_rounds)


def open_account(hp: LabelRankingHparams, state: PyTree, u: PyTree) -> Account:
    own = regret.open_account(hp, state, u)
    return Account(own, jnp.zeros_like(own.c), jnp.zeros_like(own.c))


def add_round(
    hp: LabelRankingHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    own, rounds = regret.add_round(hp, account.regret, state, feedback, u), account.rounds + 1
    c, x = rate(hp, state, feedback.context), feedback.context
    energy = feedback.weight**2 * geometry_of(hp).square(x)
    return Account(own, rounds, jnp.maximum(account.most, rounds * energy / c**2))


def both_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    assert hp.mirror.modulus is not None  # both potentials state it
    own, known = account.regret, hp.eta.hparams.complexity / hp.mirror.modulus**2
    right = own.c * (own.complexity + 2 * account.most)
    suits = account.most <= known * (1 + 64 * jnp.finfo(own.c.dtype).eps)
    published = jnp.where(suits, 2 * own.c * (own.complexity + known), jnp.inf)
    proof = Certificate(own.own - own.other, right, own.size + own.price + right, published)
    return proof.given(DOMAIN, own.inside)


SOURCE = "Shalev-Shwartz 2007, corollaries 2 and 3 and lemma 18"
label_schedule = theorem("label_schedule", SOURCE, open_account, add_round, both_sides)
