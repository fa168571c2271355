r"""The mistakes of ALMA, for a comparator of a given margin.

For $\|u\|_q \le 1$ and rounds of weight 1, with $m$ corrections so far, $D$ the sum of
$\max(0, \gamma - y_s \langle u, \hat x_s\rangle)$ over the corrections, and
$b = \sqrt{p - 1}\,(2 / C + C + 2 (1 - \alpha) B) / \gamma$,

$$|M| \le m \le \frac D\gamma + b \sqrt m \le \frac D\gamma + b^2 + b \sqrt{\frac D\gamma}.$$

Each row of zeros adds 1 to the bounds. Proof: the regret bound of `olx.classification.alma`,
$y_s \langle w_s, \hat x_s\rangle \le (1 - \alpha) \gamma_k$ and $\sum_k k^{-1/2} \le 2 \sqrt m$.

Gentile, A New Approximate Maximal Margin Classification Algorithm, 2001.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx import _safe as safe
from olx.certificate import DOMAIN, UNIT_WEIGHTS, Certificate
from olx.classification._alma import ALMAHparams, ALMAState, correction, in_ball, power_of
from olx.convex import norms
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.lift import dot
from olx.losses.margin import mistaken
from olx.theorem import About, Theorem, theorem


class Account(NamedTuple):
    wrong: Float[Array, ""]  # mistakes
    made: Float[Array, ""]  # corrections
    lost: Float[Array, ""]  # D
    zeros: Float[Array, ""]  # rows of zeros
    unit: Bool[Array, ""]  # whether all weights were 1


def alma_mistakes(margin: Scalar) -> Theorem:
    r"""The mistake bound of an `alma` for a comparator of margin $\gamma$ = `margin`."""
    margin = check.positive("alma_mistakes", "margin", margin)
    parts = open_account, Partial(add_round, margin), Partial(both_sides, margin)
    about = About("an `alma`", _is_alma)
    return theorem("alma_mistakes", "Gentile 2001, mistakes", *parts, about=about)


def open_account(hp: ALMAHparams, state: ALMAState, u: PyTree) -> Account:
    check.comparator("certify", u, state.theta)
    zero = jnp.zeros((), state.corrections.dtype)
    return Account(zero, zero, zero, zero, jnp.ones((), bool))


def add_round(
    margin: Scalar,
    hp: ALMAHparams,
    account: Account,
    state: ALMAState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    x, y = feedback.context, feedback.outcome
    corrects, _ = correction(hp, state, feedback)
    size = norms.power(power_of(hp), x)
    gap = jnp.maximum(margin - y * dot(u, x) / safe.or_one(size), 0.0)
    count = lambda met: jnp.where(met, jnp.ones_like(gap), 0.0)
    return Account(
        account.wrong + count(mistaken(feedback.action, y)),
        account.made + count(corrects),
        account.lost + jnp.where(corrects, gap, 0.0),
        account.zeros + count(size == 0),
        account.unit & (jnp.asarray(feedback.weight) == 1),
    )


def both_sides(margin: Scalar, hp: ALMAHparams, account: Account, u: PyTree) -> Certificate:
    lost, zeros = account.lost / margin, account.zeros
    reach = 2 / hp.step + hp.step + 2 * (1 - hp.alpha) * hp.margin
    b = jnp.sqrt(jnp.asarray(power_of(hp) - 1, lost.dtype)) * reach / margin
    right = lost + b * jnp.sqrt(account.made) + zeros
    published = lost + b**2 + b * jnp.sqrt(lost) + zeros
    proof = Certificate(account.wrong, right, account.wrong + account.made + right, published)
    return proof.under({DOMAIN: in_ball(hp, u), UNIT_WEIGHTS: account.unit})


def _is_alma(learner: Learner) -> bool:
    return isinstance(learner.hparams, ALMAHparams)
