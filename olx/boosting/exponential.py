r"""The theorem of boosters that weigh examples by the exponential loss.

With votes $f(x) = \sum_t \alpha_t h_t(x)$ and first weights $q$, the weights are $p_{t,i} \propto
q_i e^{-y_i f_{t-1}(x_i)}$. The weighted training error is at most the exponential loss, which every
round multiplies by $\sum_i p_i e^{-\alpha v_i}$,

$$\sum_{i : y_i f(x_i) \le 0} q_i \le \sum_i q_i e^{-y_i f(x_i)}, \qquad
  \ln \sum_i p_i e^{-\alpha v_i} \le \frac{a^2}2 - a \langle p, v\rangle .$$

For a given coefficient $\alpha \ge 0$ the second inequality holds with $a = \alpha$ (Hoeffding's
lemma). A rule that is at least as good as each $\alpha \le c$ has it with $a = \min(c, \langle p,
v\rangle)$. If every edge $\frac12 \langle p_t, v_t\rangle$ is at least $\gamma$, and $a = 2 \gamma$
or $a = \langle p, v\rangle$, then after $T$ rounds the loss is at most $e^{-2 \gamma^2 T}$.

A round of weight $h \le 1$ has the coefficient $h \alpha$, and $h$ times the right side.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 6.1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, PyTree

from olx.boosting.booster import BoosterHparams
from olx.core import Feedback
from olx.theorem import Certificate, Theorem

EDGE = "every edge must be at least the promised `gamma`"
LIGHT = "weights of rounds must be at most 1"


class Account(NamedTuple):
    first: Float[Array, " N"]  # q
    votes: Float[Array, " N"]  # y f(x)
    size: Float[Array, ""]  # the sum of coefficients
    bound: Float[Array, ""]  # the sum of a^2 / 2 - a <p, v>
    least: Float[Array, ""]  # the smallest edge so far
    rounds: Float[Array, ""]  # the sum of weights
    last: tuple[Array, Array]  # both sides of the inequality of the last round
    light: Bool[Array, ""]


def open_account(hp: BoosterHparams, state: PyTree, u: PyTree) -> Account:
    q, _ = ravel_pytree(hp.inner.predict(state))
    zero = jnp.zeros((), q.dtype)
    most = jnp.asarray(jnp.inf, q.dtype)
    return Account(q, jnp.zeros_like(q), zero, zero, most, zero, (zero, zero), jnp.ones((), bool))


def add_round(
    hp: BoosterHparams, account: Account, state: PyTree, feedback: Feedback, u: PyTree
) -> Account:
    (p, _), (v, _) = ravel_pytree(feedback.action), ravel_pytree(feedback.outcome)
    rule, edge = hp.coefficient, jnp.vdot(p, v)
    assert rule.pace_fn is not None  # only boosters with a pace carry these theorems
    alpha = feedback.weight * rule.alpha(p, v)
    a = rule.pace_fn(rule.hparams, edge)
    votes = account.votes + alpha * v
    change = log_loss(account._replace(votes=votes)) - log_loss(account)
    bound = feedback.weight * (a**2 / 2 - a * edge)
    return Account(
        account.first,
        votes,
        account.size + alpha,
        account.bound + bound,
        jnp.minimum(account.least, edge / 2),
        account.rounds + feedback.weight,
        (change, bound),
        account.light & (feedback.weight <= 1),
    )


def log_loss(account: Account) -> Array:
    """The logarithm of the exponential loss."""
    return logsumexp(-account.votes, b=account.first)


def published(hp: BoosterHparams, account: Account) -> Array:
    r"""$-2 \gamma^2 T$, with the promised edge, or else the smallest one."""
    promise = hp.coefficient.promised_fn
    gamma = account.least if promise is None else promise(hp.coefficient.hparams)
    return -2 * jnp.maximum(gamma, 0.0) ** 2 * account.rounds


def _given(hp: BoosterHparams, account: Account, proof: Certificate) -> Certificate:
    proof = proof.given(LIGHT, account.light)
    promise = hp.coefficient.promised_fn
    if promise is None:
        return proof
    rounding = 64 * float(jnp.finfo(account.least.dtype).eps)
    return proof.given(EDGE, account.least >= promise(hp.coefficient.hparams) - rounding)


def loss_sides(hp: BoosterHparams, account: Account, u: PyTree) -> Certificate:
    r"""The logarithm of the exponential loss; `published` is $-2 \gamma^2 T$."""
    scale = 1 + account.size + account.rounds
    sides = log_loss(account), account.bound, scale, published(hp, account)
    return _given(hp, account, Certificate(*sides))


def error_sides(hp: BoosterHparams, account: Account, u: PyTree) -> Certificate:
    r"""The training error, the exponential loss, and $e^{-2 \gamma^2 T}$."""
    wrong = jnp.sum(jnp.where(account.votes <= 0, account.first, 0.0))
    loss, scale = jnp.exp(log_loss(account)), 1 + account.size + account.rounds
    return _given(hp, account, Certificate(wrong, loss, scale, jnp.exp(published(hp, account))))


def round_sides(hp: BoosterHparams, account: Account, u: PyTree) -> Certificate:
    r"""The change of the logarithm of the loss in the last round, and $a^2 / 2 - a \langle p,
    v\rangle$. The change is that of the votes; it is $\ln \sum_i p_i e^{-\alpha v_i}$ if the
    weights $p$ that were played are those of the loss."""
    change, bound = account.last
    return Certificate(change, bound, 1 + account.size).given(LIGHT, account.light)


_SOURCE = "Shalev-Shwartz 2007, section 6.1"
training_error = Theorem("training_error", _SOURCE, open_account, add_round, error_sides)
exponential_loss = Theorem("exponential_loss", _SOURCE, open_account, add_round, loss_sides)
each_round = Theorem("each_round", _SOURCE, open_account, add_round, round_sides)
EXPONENTIAL = (each_round, exponential_loss, training_error)
