r"""What is known about the six algorithms of label ranking, against any weights $u$.

The losses count in all rounds, for `conservative` in rounds with a mistake only. $M$ are the
mistakes, $h_s$ the weights of rounds, $f - \min f$ is written as $f$. The subgradient of a loss is
$-x_s$ for one label and $x_s$ for another, so its squared dual norm is $2 \|x_s\|_*^2$.

- `label_duality`, lemma 1: the dual $D_t = -c f^*(acc / c) + \gamma \sum_s \sum_{r \in Y_s}
  \alpha_{s,r}$ lies between both sides,
  $$\sum_{s \le t} h_s g_s(w_s) - \sum_{s \le t} c B_s \le D_t \le c f(u) +
    \sum_{s \le t} h_s g_s(u),$$
  with $B_s$ the divergence $B_{f^*}$ of a subgradient step.
- `label_regret`, (3.17) and lemma 18:
  $$\sum_{s \le t} h_s (g_s(w_s) - g_s(u)) \le c f(u) + \sum_{s \le t} c B_s \le
    c f(u) + \frac1c \sum_{s \le t} h_s^2 \|x_s\|_*^2.$$
- `label_rate`, corollary 1: the right side with the largest norm in place of each, for every fixed
  $c$.
- `label_mistakes`: $\gamma \sum_{s \in M} h_s \le c f(u) + \sum_s c B_s + \sum_s h_s g_s(u)$,
  since a mistake has a loss of at least $\gamma$.

With a schedule the first factor is the $c_t$ of the last round and $B_s$ belongs to $c_s$. The sum
of $c_s B_s$ then also has the changes $c_s f^*(acc_s / c_s) - c_{s-1} f^*(acc_s / c_{s-1})$, which
are never positive if $c$ does not decrease: lemma 2.

The norm is $\|\cdot\|_2$ in Euclidean space and $\|\cdot\|_\infty$ for the entropy, where $f(u) \le
k \log d$.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, sections 3.3 and 8.2.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx.certificate import DOMAIN, Certificate
from olx.core import Feedback
from olx.losses.ranks import parted
from olx.ranking._round import Ranked
from olx.ranking._rule import (
    LabelRankingHparams,
    dual_variables,
    geometry_of,
    is_fixed,
    keeps_dual,
    learn,
    rate,
    round_of,
    weights_of,
)
from olx.theorem import theorem


class Account(NamedTuple):
    complexity: Float[Array, ""]  # f(u)
    c: Float[Array, ""]  # of the last round
    inside: Bool[Array, ""]  # whether u lies in the domain
    own: Float[Array, ""]  # the sum of the learner's losses
    other: Float[Array, ""]  # the sum of the losses of u
    drift: Float[Array, ""]  # the sum of c B, and of the changes of c
    norms: Float[Array, ""]  # the sum of squared norms, over c, and of the changes above 0
    rounds: Float[Array, ""]  # rounds that count and have a loss
    largest: Float[Array, ""]  # the largest squared norm, over c
    wrong: Float[Array, ""]  # the weight of the mistakes
    size: Float[Array, ""]  # the sum of absolute values, for the rounding error

    @property
    def price(self) -> Array:
        return self.c * self.complexity


def open_account(hp: LabelRankingHparams, state: PyTree, u: PyTree) -> Account:
    u = check.comparator("certify", u, weights_of(state))
    geometry, zero = geometry_of(hp), jnp.zeros((), weights_of(state).dtype)
    c = zero + (rate(hp, state, None) if is_fixed(hp) else 0.0)
    complexity, size = zero + geometry.price(u), c * geometry.offset(u)
    return Account(complexity, c, geometry.inside(u), *(zero,) * 7, size=size)


def add_round(
    hp: LabelRankingHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    geometry, now = geometry_of(hp), round_of(hp, state, feedback)
    counts = hp.update.counts_fn(now)
    only = lambda value: jnp.where(counts & (now.gap > 0), value, 0.0)
    own = only(now.weight * now.gap)
    _, low, high = parted("certify", u @ now.x, feedback.outcome)
    other = jnp.where(counts, now.weight * jnp.maximum(now.margin - low + high, 0.0), 0.0)
    drift, square = only(geometry.drift(now)), only(now.weight**2 * geometry.square(now.x) / now.c)
    change, constants = _change(hp, account, state, now)
    return Account(
        account.complexity,
        now.c * jnp.ones_like(account.c),
        account.inside,
        account.own + own,
        account.other + other,
        account.drift + (drift + change),
        account.norms + (square + jnp.maximum(change, 0.0)),
        account.rounds + only(jnp.ones_like(own)),
        jnp.maximum(account.largest, square),
        account.wrong + jnp.where(now.mistaken, now.weight, 0.0),
        account.size + own + other + drift + square + jnp.abs(change) + constants,
    )


def _change(hp: LabelRankingHparams, account: Account, state: PyTree, now: Ranked):
    """How c f*(acc / c) changes because c does, and the size of the constants in it."""
    if is_fixed(hp):
        return jnp.zeros_like(account.own), jnp.zeros_like(account.own)
    geometry, past = geometry_of(hp), jnp.where(account.c > 0, account.c, now.c)
    here, before = (c * geometry.conjugate(geometry.at(c, state.acc)) for c in (now.c, past))
    return here - before, jnp.abs(here) + now.c * geometry.offset(state.acc)


class DualAccount(NamedTuple):
    regret: Account
    gain: Float[Array, ""]  # minus the conjugates of the losses
    dual: Float[Array, ""]  # D
    size: Float[Array, ""]


def open_dual(hp: LabelRankingHparams, state: PyTree, u: PyTree) -> DualAccount:
    regret = open_account(hp, state, u)
    return DualAccount(regret, *(jnp.zeros_like(regret.own),) * 3)


def add_dual(
    hp: LabelRankingHparams, account: DualAccount, state: PyTree, feedback: Feedback, u: PyTree
) -> DualAccount:
    geometry, now = geometry_of(hp), round_of(hp, state, feedback)
    alpha, after = dual_variables(hp, now), learn(hp, state, feedback)
    after = geometry.at(now.c, after.acc) if keeps_dual(hp) else after
    gained = now.margin * jnp.sum(jnp.where(now.relevant, alpha, 0.0))
    gain, spent = account.gain + gained, now.c * geometry.conjugate(after)
    return DualAccount(
        add_round(hp, account.regret, state, feedback, u),
        gain,
        gain - spent,
        account.size + gained + jnp.abs(spent),
    )


def duality_sides(hp: LabelRankingHparams, account: DualAccount, u: PyTree) -> Certificate:
    seen = account.regret
    left, primal = seen.own - seen.drift, seen.price + seen.other
    size = _size(seen) + account.size
    return _given(seen, Certificate(left, account.dual, size, primal))


def regret_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, price = account.own - account.other, account.price
    return _given(
        account,
        Certificate(left, price + account.drift, _size(account), price + account.norms),
    )


def rate_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, price = account.own - account.other, account.price
    most = price + account.rounds * account.largest
    return _given(account, Certificate(left, price + account.norms, _size(account) + most, most))


def mistakes_sides(hp: LabelRankingHparams, account: Account, u: PyTree) -> Certificate:
    left, fixed = hp.margin * account.wrong, account.price + account.other
    return _given(
        account,
        Certificate(left, fixed + account.drift, _size(account), fixed + account.norms),
    )


def _given(account: Account, proof: Certificate) -> Certificate:
    return proof.given(DOMAIN, account.inside)


def _size(account: Account) -> Array:
    return account.size + account.price


SOURCE = "Shalev-Shwartz 2007"
_fold = lambda name, source, sides: theorem(name, source, open_account, add_round, sides)
label_duality = theorem("label_duality", f"{SOURCE}, lemma 1", open_dual, add_dual, duality_sides)
label_regret = _fold("label_regret", f"{SOURCE}, (3.17) and lemma 18", regret_sides)
label_rate = _fold("label_rate", f"{SOURCE}, corollary 1 and lemma 18", rate_sides)
label_mistakes = _fold("label_mistakes", f"{SOURCE}, section 8.2", mistakes_sides)
