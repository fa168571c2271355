r"""EXP3: exponential weights on importance-weighted estimates, without extra exploration.

$$p_{t,i} \propto q_i \exp\Big(-\eta \sum_{s < t} \hat\ell_{s,i}\Big), \qquad
  \hat\ell_{t,i} = \mathbb 1\{i = i_t\}\, \ell_{t,i_t} / p_{t,i_t}.$$

For losses in $[0, 1]$, a uniform prior and $\eta \le 1$, the regret to the
$\lceil N \epsilon \rceil$-th best arm is in expectation at most
$\ln(1/\epsilon)/\eta + T \eta (1 + N \sqrt e) / 2$.

Auer, Cesa-Bianchi, Freund, Schapire, The Nonstochastic Multiarmed Bandit Problem, 2002; Luo,
Optimal and Adaptive Online Learning, 2016, theorem 21.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _check as check
from olx._refusal import public
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.experts.bandit import BanditHparams, BanditState, bandit, estimate
from olx.experts.gibbs import Account, exponential_sides, open_exponential
from olx.experts.needs import prior_need
from olx.theorem import Theorem


class WeightsState(NamedTuple):
    log_weights: Float[Array, " N"]  # normalized


@public
def exp3(eta: Scalar, key: Array) -> Learner:
    """Pull arms by exponential weights; `params` is the prior $q$ over them.

    eta: in (0, 1]; `exp3_step` tunes it to a number of rounds.
    key: a key of `jax.random`; a batch over keys repeats the game with new draws.

    Play it with `expected_loss`, which reads only the loss of the arm pulled.

    >>> import jax, jax.numpy as jnp, olx
    >>> from olx.experts.base import expected_loss
    >>> rounds = olx.Rounds(None, jnp.array([[1.0, 0.0, 1.0]] * 40))
    >>> learner = exp3(0.5, jax.random.key(0))
    >>> run = olx.rollout(learner, expected_loss, rounds, jnp.ones(3) / 3, record=olx.record.trace)
    >>> bool(run.losses[20:].mean() < 0.5), bool(olx.certify(learner, run, jnp.eye(3)[1]).holds)
    (True, True)
    """
    check.key(key)
    eta = check.above("eta", eta, 0.0, 1.0)
    learner = bandit(exponential_weights(eta), key)
    return dataclasses.replace(learner, theorems=(estimated_regret,))


@public
def exponential_weights(eta: Scalar) -> Learner:
    """Exponential weights with the prior `params`; the state holds their logarithms."""
    return Learner(eta, init, predict, update, needs=(prior_need("exponential_weights"),))


def init(eta: Scalar, params: Float[Array, " N"]) -> WeightsState:
    return WeightsState(jax.nn.log_softmax(jnp.log(params)))


def predict(eta: Scalar, state: WeightsState, context: None) -> Float[Array, " N"]:
    return jnp.exp(state.log_weights)


def update(eta: Scalar, state: WeightsState, feedback: Feedback) -> WeightsState:
    moved = state.log_weights - eta * feedback.weight * feedback.outcome
    return WeightsState(jax.nn.log_softmax(moved))


def open_account(hp: BanditHparams, state: BanditState, u: Float[Array, " N"]) -> Account:
    return open_exponential(hp.inner.hparams, state.inner.log_weights, u)


def add_round(
    hp: BanditHparams, account: Account, state: BanditState, feedback: Feedback, u: Array
) -> Account:
    eta, p = hp.inner.hparams, jnp.exp(state.inner.log_weights)
    chance, seen = jnp.sum(p * feedback.action), estimate(p, feedback)
    paid, size = feedback.weight * feedback.value, feedback.weight * jnp.sum(seen)
    return Account(
        account.away,
        account.left + paid - feedback.weight * (seen @ u),
        account.mixed + paid + jnp.log1p(chance * jnp.expm1(-eta * size)) / eta,
        account.squares + chance * size**2,
        account.size + 2 * jnp.abs(paid) + size,
        account.positive & (feedback.value >= 0),
    )


def both_sides(hp: BanditHparams, account: Account, u: Float[Array, " N"]) -> Certificate:
    r"""The regret on estimated losses, for every sequence of draws.

    $$\sum_{s \le t} \ell_{s,i_s} - \langle u, \hat\ell_s \rangle \le \frac{RE(u \| q)}\eta +
      \sum_{s \le t} \ell_{s,i_s} + \frac{\ln E_{p_s} e^{-\eta\hat\ell_s}}\eta \le
      \frac{RE(u \| q)}\eta + \frac\eta2 \sum_{s \le t} \frac{\ell_{s,i_s}^2}{p_{s,i_s}}.$$
    """
    proof = exponential_sides(account, hp.inner.hparams / 2, u)
    return proof.given("losses must not be negative", account.positive)


estimated_regret = Theorem(
    "estimated_regret",
    "exponential weights on estimated losses",
    open_account,
    add_round,
    both_sides,
)


@public
def exp3_bound(eta: Scalar, rounds: Scalar, arms: int, epsilon: Scalar | None = None) -> Scalar:
    r"""Theorem 21, in expectation: $\ln(1/\epsilon)/\eta + T \eta (1 + N \sqrt e)/2$.

    epsilon: $1/N$ if None, which is the regret to the best arm.
    """
    eta = check.above("eta", eta, 0.0, 1.0)
    rounds, epsilon = _game(rounds, arms, epsilon)
    return jnp.log(1 / epsilon) / eta + rounds * eta * (1 + arms * jnp.exp(0.5)) / 2


@public
def exp3_step(rounds: Scalar, arms: int, epsilon: Scalar | None = None) -> Scalar:
    r"""The step that minimizes `exp3_bound`, $\sqrt{2 \ln(1/\epsilon) / (T (1 + N \sqrt e))}$."""
    rounds, epsilon = _game(rounds, arms, epsilon)
    return jnp.minimum(jnp.sqrt(2 * jnp.log(1 / epsilon) / (rounds * (1 + arms * jnp.exp(0.5)))), 1)


def _game(rounds: Scalar, arms: int, epsilon: Scalar | None) -> tuple[Scalar, Scalar]:
    check.count("arms", arms)
    rounds = check.positive("rounds", rounds, each=True)
    return rounds, 1 / arms if epsilon is None else check.above("epsilon", epsilon, 0.0, 1.0)
