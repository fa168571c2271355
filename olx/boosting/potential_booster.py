r"""Online boosting by any potential.

Let $\Phi_0, \dots, \Phi_n$ be non-increasing with $\Phi_n(s) \ge 1[s \le 0]$ and

$$\Phi_{i-1}(s) \ge \big(\tfrac12 - \tfrac\gamma2\big) \Phi_i(s - 1) +
  \big(\tfrac12 + \tfrac\gamma2\big) \Phi_i(s + 1).$$

All votes count the same. The weight of copy $i$ is $w^i = \frac12 (\Phi_i(s^{i-1} - 1) -
\Phi_i(s^{i-1} + 1))$ with $s^{i-1} = \sum_{j < i} y h^j$; its importance $p^i$ is $w^i$ divided by
the largest weight that copy $i$ can get. For all copies, whatever they do, with
$z_s^i = y_s h_s^i$ the vote makes at most

$$t\, \Phi_0(0) + \sum_i \sum_{s \le t} w_s^i (\gamma - z_s^i)$$

mistakes, where a tie counts as one. For the smallest such potential, `majority_potential`, the
bound is an equality. The weights $w^i$ are then those of Online BBM, but the importances differ:
`online_bbm` divides by the largest weight over all numbers of right votes, also those that the
copies before $i$ cannot reach. So here the first copy learns in full from every round; there it
learns less if $\gamma$ is large.

Luo, Optimal and Adaptive Online Learning, 2016, (3.4) and lemma 8.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _numeric
from olx import _numeric as safe
from olx._numeric import Sum
from olx._pytree import as_tree, pytree
from olx._refusal import public
from olx.boosting.boost import (
    BoostHparams,
    BoostingRule,
    BoostState,
    Table,
    before,
    label,
    table_rule,
    votes,
)
from olx.boosting.online_bbm import at_most, sums
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.losses.margin import mistaken
from olx.theorem import About, Theorem


@pytree
class PotentialHparams:
    potential: Partial


@public
def potential_booster(potential: Callable[[Array, Array], Array]) -> BoostingRule:
    r"""The booster of a potential $\Phi_i(s)$.

    potential: a function of $i$ and $s$, arrays of the same shape, $i$ from 0 to the number of
        copies; a named function or a `Partial`. Where it increases, importances are NaN.

    >>> import jax, jax.numpy as jnp, olx
    >>> rounds, _ = olx.streams.linear_classification(jax.random.key(0), 200, 5, margin=0.1)
    >>> rule = potential_booster(exponential_potential(11, 0.1, 0.2))
    >>> learner = olx.boosting.boost(olx.classification.passive_aggressive_1(0.1), 11, rule)
    >>> game = olx.losses.zero_one, rounds, jnp.zeros(5), jnp.zeros(5)
    >>> bool(olx.certify(learner, *game, theorems=(potential_mistakes(0.1),)).holds)
    True
    """
    check.takes("potential", potential, "i", "s")
    return table_rule(PotentialHparams(as_tree(potential)), init)


@public
def majority_potential(n: int, gamma: Scalar) -> Partial:
    """The potential of Online BBM with `n` copies."""
    check.count("n", n)
    return Partial(majority_at, n, check.inside("gamma", gamma, 0.0, 0.5))


def majority_at(n: int, gamma: Scalar, i: Array, s: Array) -> Array:
    m = jnp.asarray(n, s.dtype) - i
    return at_most(gamma, m, jnp.floor((m - s) / 2))


@public
def exponential_potential(n: int, gamma: Scalar, rate: Scalar) -> Partial:
    r"""$\Phi_i(s) = a^{n-i} e^{-\rho s}$ with $\rho$ = `rate` and $a$ such that (3.4) is tight."""
    check.count("n", n)
    gamma = check.inside("gamma", gamma, 0.0, 0.5)
    return Partial(exponential_at, n, gamma, check.positive("rate", rate))


def exponential_at(n: int, gamma: Scalar, rate: Scalar, i: Array, s: Array) -> Array:
    a = (0.5 - gamma / 2) * jnp.exp(rate) + (0.5 + gamma / 2) * jnp.exp(-rate)
    return jnp.exp((jnp.asarray(n, s.dtype) - i) * jnp.log(a) - rate * s)


def init(hp: PotentialHparams, n: int, dtype: DTypeLike) -> Table:
    i, s = jnp.arange(1, n + 1, dtype=dtype)[:, None], sums(n, dtype)
    can = s < i  # so many votes come before
    weights = weight(hp, jnp.broadcast_to(i, s.shape), jnp.where(can, s, 1 - i))
    top = jnp.max(jnp.where(can, weights, 0.0), axis=1, keepdims=True)
    legal = weights >= -1e3 * jnp.finfo(dtype).eps * top
    p = safe.divide(jnp.maximum(weights, 0.0), jnp.broadcast_to(top, weights.shape))
    return Table(jnp.where(legal, p, jnp.nan))


def weight(hp: PotentialHparams, i: Array, s: Array) -> Array:
    """The weight of copy `i`, if the sum over those before it is `s`."""
    return (hp.potential(i, s - 1) - hp.potential(i, s + 1)) / 2


class Account(NamedTuple):
    bound: Sum
    mistakes: Sum
    paid: Float[Array, ""]
    covers: Bool[Array, ""]  # whether Phi_n was at least 1 for mistakes and 0 otherwise
    falls: Bool[Array, ""]  # whether the second line of (3.4) held where it was used


@public
def potential_mistakes(gamma: Scalar) -> Theorem:
    r"""Lemma 8, for copies compared with the edge $\gamma$. It checks (3.4) where it uses it."""
    gamma = check.inside("gamma", gamma, 0.0, 0.5)
    parts = open_account, Partial(add_round, gamma), both_sides
    return Theorem("potential_mistakes", "Luo 2016, lemma 8", *parts, about=BY_POTENTIAL)


def open_account(hp: BoostHparams, state: BoostState, u: PyTree) -> Account:
    zero, yes = jnp.zeros((), state.rule.p.dtype), jnp.ones((), bool)
    return Account(_numeric.start(zero), _numeric.start(zero), zero, yes, yes)


def add_round(
    gamma: Scalar,
    hp: BoostHparams,
    account: Account,
    state: BoostState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    h = votes(hp, state, feedback.context)
    own, kind, weighed = hp.rule.hparams, h.dtype, jnp.asarray(feedback.weight, h.dtype)
    z, i = label(feedback, h) * h, jnp.arange(1, hp.n + 1, dtype=kind)
    after = jnp.cumsum(z)
    s = before(after)
    w, start = weight(own, i, s), own.potential(jnp.zeros((), kind), jnp.zeros((), kind))
    mean = (own.potential(i, s - 1) + own.potential(i, s + 1)) / 2 - gamma * w
    prior, end = own.potential(i - 1, s), own.potential(i[-1], after[-1])
    count = lambda wrong: jnp.where(wrong, 1.0, 0.0).astype(kind)
    mistake, slack = count(after[-1] <= 0), 1e3 * jnp.finfo(kind).eps
    played = count(mistaken(feedback.action, label(feedback, h)))
    return Account(
        _numeric.add(account.bound, weighed * (start + jnp.sum(w * (gamma - z)))),
        _numeric.add(account.mistakes, weighed * played),
        account.paid + weighed * (start + 2 * jnp.sum(jnp.abs(w))),
        account.covers & (end >= mistake * (1 - slack)),
        account.falls & jnp.all(mean <= prior + slack * (jnp.abs(mean) + jnp.abs(prior))),
    )


def both_sides(hp: BoostHparams, account: Account, u: PyTree) -> Certificate:
    bound, mistakes = account.bound.value, account.mistakes.value
    proof = Certificate(mistakes, bound, mistakes + account.paid)
    proof = proof.given("the last potential must be at least 1 for mistakes", account.covers)
    return proof.given("the potentials must meet (3.4)", account.falls)


def _by_potential(learner: Learner) -> bool:
    hp = learner.hparams
    return isinstance(hp, BoostHparams) and isinstance(hp.rule.hparams, PotentialHparams)


BY_POTENTIAL = About("`boost` by `potential_booster`", _by_potential)
