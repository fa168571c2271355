r"""What the Newton steps on slabs share: their numbers, and the account of their regret.

The account checks in every round what the theorems assume: $|\langle u, x_t\rangle| \le C$, slopes
of at most $L$, and the curvature $\ell(a) \ge \ell(b) + \ell'(b) (a - b) + \frac\sigma2 (\ell'(b)
(a - b))^2$ between the score $b$ of the learner and the score $a$ of $u$.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from olx import _check as check
from olx._pytree import pytree
from olx._refusal import RefusedType
from olx.certificate import UNIT_WEIGHTS, Certificate
from olx.core import Feedback, Scalar
from olx.theorem import MET, ZERO, latest

INSIDE = "scores of `u` must not exceed `bound`"
CURVED = "losses must have the curvature that was given"
STEEP = "slopes must not exceed `lipschitz`"


@pytree
class SlabHparams:
    bound: Scalar | None  # C; None if the slabs are the whole space
    curvature: Scalar  # sigma
    lipschitz: Scalar | None  # L; None if every eta_t is 0


def numbers(
    bound: Scalar | None,
    curvature: Scalar | None,
    lipschitz: Scalar | None,
    used: bool = True,
) -> SlabHparams:
    """The numbers of a Newton step on slabs; refuses illegal ones.

    used: whether the step uses the curvature, so that one of the last two numbers must be given.
    """
    if used and curvature is None and lipschitz is None:
        raise RefusedType(
            "give `curvature` if the loss has it, else `lipschitz`, the largest slope."
        )
    if bound is not None:
        bound = check.positive("bound", bound)
    elif lipschitz is not None:
        raise RefusedType("`lipschitz` needs `bound`: it bounds the slopes on the slabs.")
    sigma = 0.0 if curvature is None else check.positive("curvature", curvature)
    if lipschitz is not None:
        lipschitz = check.positive("lipschitz", lipschitz)
    return SlabHparams(bound, sigma, lipschitz)


def clipped_score(hp: SlabHparams, score: Array) -> Array:
    """The score of the projected weights."""
    return score if hp.bound is None else jnp.clip(score, -hp.bound, hp.bound)


def eta(hp: SlabHparams, size: int, number: Array) -> Array:
    r"""$\eta_t = \sqrt{\text{size} / t} / (C L)$."""
    if hp.lipschitz is None or hp.bound is None:
        return jnp.zeros_like(number)
    return jnp.sqrt(size / number) / (hp.bound * hp.lipschitz)


def rate(hp: SlabHparams, size: int, number: Array, weight: Scalar) -> Array:
    r"""$c \sigma + c^2 \eta_t$ for a round of weight $c$, whose loss $c\, \ell$ has the slope
    $c\, \ell'$ and the curvature $\sigma / c$."""
    return weight * hp.curvature + weight**2 * eta(hp, size, number)


class Account(NamedTuple):
    regret: Float[Array, ""]
    size: Float[Array, ""]  # the sum of absolute losses, for the rounding error
    energy: Float[Array, ""]  # the sum of g' A_t^-1 g
    drift: Float[Array, ""]  # the sum of what the matrix grows more than the curvature, at u
    squares: Float[Array, ""]  # the sum of |g|^2
    rates: Float[Array, ""]  # the sum of eta_t
    eta: Float[Array, ""]  # the last eta_t
    inside: Bool[Array, ""]
    curved: Bool[Array, ""]
    flat: Bool[Array, ""]
    unit: Bool[Array, ""]


START = Account(*[ZERO] * 7, *[MET] * 4)


def terms(
    hp: SlabHparams,
    feedback: Feedback,
    along: Array,
    eta: Array,
    energy: Array,
    square: Array,
    drift: Array | None = None,
) -> Account:
    r"""What a round adds.

    along: the score of `u`.
    square: the squared length of the row.
    drift: $\eta_t \langle g_t, w_t - u\rangle^2$ if None.
    """
    own, other, slope = feedback.value, feedback.loss(along), feedback.grad
    change = slope * (along - feedback.action)
    apart = eta * (slope * (feedback.action - along)) ** 2
    size = (
        jnp.abs(own) + jnp.abs(other) + jnp.abs(slope) * (jnp.abs(along) + jnp.abs(feedback.action))
    )
    rounding = 64 * jnp.finfo(size.dtype).eps
    below = other < own + change + hp.curvature / 2 * change**2 - rounding * size
    widest = jnp.inf if hp.bound is None else hp.bound * (1 + rounding)
    steepest = jnp.inf if hp.lipschitz is None else hp.lipschitz * (1 + rounding)
    return Account(
        own - other,
        size,
        energy,
        apart if drift is None else drift,
        slope**2 * square,
        eta,
        latest(eta),
        jnp.abs(along) <= widest,
        ~below,
        jnp.abs(slope) <= steepest,
        jnp.asarray(feedback.weight) == 1,
    )


def steps(hp: SlabHparams, account: Account) -> Array:
    r"""$2 (C L)^2 \sum_s \eta_s$."""
    if hp.lipschitz is None or hp.bound is None:
        return jnp.zeros_like(account.rates)
    return 2 * (hp.bound * hp.lipschitz) ** 2 * account.rates


def sides(account: Account, right: Array, published: Array | None = None) -> Certificate:
    proof = Certificate(account.regret, right, account.size + jnp.abs(right), published)
    met = {INSIDE: account.inside, CURVED: account.curved}
    return proof.under(met | {STEEP: account.flat, UNIT_WEIGHTS: account.unit})
