r"""The regret of label ranking with a step size that shrinks with the root of time.

The squared dual norm of a subgradient is $2 \|x_s\|_*^2$, so $L_s = h_s^2 \|x_s\|_*^2$ is half of
it. With the schedule `root_rounds`, $c_t = \sqrt{t L / U}$ for a known $L \ge L_s$, and with
`root_norms`, $c_t = \sqrt{t / U} \max_{s \le t} \|x_s\|_*$, for every $u$

$$\sum_{s \le t} h_s (g_s(w_s) - g_s(u)) \le c_t f(u) + \sum_{s \le t} \frac{L_s}{c_s}
  \le c_t (f(u) + 2 U).$$

`published` has $2 f(u)$ in place of $f(u)$: for $f(u) \le U$ it is $4 \sqrt{\max_s L_s\, U t}$. The
schedule `root_lipschitz` with the constant $l$ of a loss has $2 U / l^2$ in place of $U$; $\sqrt2$
gives `root_norms`.

Proof: $L_s \le c_s^2 U / s$, and $c_s / \sqrt s$ never decreases. So the last sum is at most $U
\sum_s c_s / s \le U (c_t / \sqrt t) \sum_s s^{-1/2} \le 2 U c_t$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, corollaries 2 and 3,
and lemma 18.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback, Scalar
from olx.ranking import label_ranking_regret as regret
from olx.ranking._rule import LabelRankingHparams, geometry_of, rate
from olx.schedules.root_norms import at as at_root_norms
from olx.schedules.root_rounds import at as at_root_rounds
from olx.theorem import theorem

ALLOWED = "weighted rows must be as short as the schedule allows, in the norm of the mirror map"


class Account(NamedTuple):
    regret: regret.Account
    rounds: Float[Array, ""]
    allowed: Bool[Array, ""]  # whether no subgradient was longer than the schedule assumes


def is_root(hp: LabelRankingHparams) -> bool:
    """Whether the schedule is one of those that the theorem is about."""
    return hp.eta.at_fn in (at_root_norms, at_root_rounds)


def open_account(hp: LabelRankingHparams, state: PyTree, u: PyTree) -> Account:
    own = regret.open_account(hp, state, u)
    return Account(own, jnp.zeros_like(own.c), jnp.ones((), bool))


def add_round(
    hp: LabelRankingHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    own, rounds = regret.add_round(hp, account.regret, state, feedback, u), account.rounds + 1
    c, x = rate(hp, state, feedback.context), feedback.context
    energy = feedback.weight**2 * geometry_of(hp).square(x)
    rounding = 1 + 64 * jnp.finfo(own.c.dtype).eps
    within = energy <= c**2 * _complexity(hp) / rounds * rounding
    return Account(own, rounds, account.allowed & within)


def both_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    own = account.regret
    whole = lambda f: own.c * (f + 2 * _complexity(hp))
    right = whole(own.complexity)
    size = own.size + own.price + right
    proof = Certificate(own.own - own.other, right, size, whole(2 * own.complexity))
    return proof.under({DOMAIN: own.inside, ALLOWED: account.allowed})


def _complexity(hp: LabelRankingHparams) -> Scalar:
    r"""The $U$ for which $c_t^2 = t \max_s L_s / U$."""
    assert hp.mirror.modulus is not None  # both potentials state it
    tuned = hp.eta.hparams
    energy = tuned.energy if hp.eta.at_fn is at_root_norms else 1.0
    return tuned.complexity / (energy * hp.mirror.modulus**2)


SOURCE = "Shalev-Shwartz 2007, corollaries 2 and 3 and lemma 18"
label_schedule = theorem("label_schedule", SOURCE, open_account, add_round, both_sides)
