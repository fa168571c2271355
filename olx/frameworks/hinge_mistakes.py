r"""The mistake bound of every `dual_ascent` on a hinge, from its certified regret.

A mistake has a hinge loss of at least $\gamma$, so $\gamma |M| \le \sum_s g_s(u) + R(u)$ with $R$
the regret bound of `olx.frameworks.primal_dual`. It holds for the multiclass hinge too.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, (2.1).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from olx.core import Feedback
from olx.frameworks import primal_dual
from olx.frameworks.primal_dual import DualAscentHparams, DualAscentState, finite
from olx.losses.margin import mistaken
from olx.theorem import UNIT_WEIGHTS, Certificate, Theorem


class HingeAccount(NamedTuple):
    lemma: primal_dual.Account
    count: Float[Array, ""]
    unit: Bool[Array, ""]


def open_hinge(hp: DualAscentHparams, state: DualAscentState, u: PyTree) -> HingeAccount:
    lemma = primal_dual.open_account(hp, state, u)
    return HingeAccount(lemma, jnp.zeros_like(lemma.c), jnp.ones((), bool))


def add_hinge(
    hp: DualAscentHparams, account: HingeAccount, state: DualAscentState, feedback: Feedback, u
) -> HingeAccount:
    return HingeAccount(
        primal_dual.add_round(hp, account.lemma, state, feedback, u),
        account.count + jnp.where(mistaken(feedback.action, feedback.outcome), 1.0, 0.0),
        account.unit & (feedback.weight == 1),
    )


def hinge_sides(hp: DualAscentHparams, account: HingeAccount, u: PyTree) -> Certificate:
    r"""(2.1): a mistake has a hinge loss of at least $\gamma$, so $\gamma |M| \le \sum_s g_s(u) +
    R(u)$, with $R$ the certified regret bound of the learner. For a conservative learner only
    mistakes have a loss."""
    regret = primal_dual.both_sides(hp, account.lemma, u)
    total = lambda side: None if side is None else (account.lemma.other + side) / hp.loss.hparams
    right, published = total(regret.right), total(regret.published)
    assert right is not None
    proof = Certificate(account.count, right, account.count + finite(right), published)
    return proof.under(regret.conditions).given(UNIT_WEIGHTS, account.unit)


hinge_mistakes = Theorem(
    "hinge_mistakes", "Shalev-Shwartz 2007, (2.1)", open_hinge, add_hinge, hinge_sides
)
