r"""Strongly adaptive online learning: small regret on every interval at once.

Slot $k = 0, 1, \dots$ holds a copy of the base learner that restarts at every multiple of $2^k$.
Its first weight is $w_k = \eta_k = \min(\frac12, 2^{-k/2})$, and with $r_{t,k} = \langle p_t,
\ell_t \rangle - \ell_{t,k}$ in $[-1, 1]$,

$$p_t \propto w, \qquad w_k \leftarrow w_k (1 + \eta_k r_{t,k}).$$

Since $\sum_k (w_k / \eta_k)\, \eta_k r_{t,k} = 0$, the sum of $w_k / \eta_k$ is at most the number
of copies started so far, and $\ln(1 + x) \ge x - x^2$ gives the bound. Losses are convex.

Daniely, Gonen, Shalev-Shwartz, Strongly Adaptive Online Learning, 2015.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softmax
from jax.scipy.special import logsumexp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.meta import adaptive
from olx.meta.adaptive import Account, AdaptiveHparams, AdaptiveState
from olx.theorem import Theorem
from olx.wrapper import INNER, lift_needs

NEAR = "losses of a round must differ by at most `span`"
LIGHT = "weights must be at most 1"


@public
def saol(inner: Learner, levels: int, span: Scalar = 1.0) -> Learner:
    """Mix copies of `inner` that restart every 1, 2, 4, ... rounds.

    inner: any learner with real actions.
    levels: the number of copies; the longest life is 2 to the power `levels` - 1 rounds.
    span: the largest difference between two losses of one round.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.concatenate([jnp.full(60, 0.0), jnp.full(60, 1.0)]))
    >>> average = olx.md(olx.schedules.decay(1.0, 1.0), olx.mirrors.euclidean())  # of all so far
    >>> play = lambda learner: olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(()))
    >>> bool(play(saol(average, 7)).total < 0.5 * play(average).total)
    True
    """
    adaptive.check_arguments(inner, levels)
    span = check.positive("span", span)
    period = tuple(2**k for k in range(levels))
    hparams = AdaptiveHparams(inner, span, period, (0,) * levels)
    needs = lift_needs(INNER, inner)
    theorems = (interval_regret,)
    return Learner(hparams, init, adaptive.predict, update, needs=needs, theorems=theorems)


def init(hp: AdaptiveHparams, params: PyTree) -> AdaptiveState:
    steps = _steps(hp, jnp.result_type(*jax.tree.leaves(params)))
    return adaptive.start(hp, params, jnp.log(steps))


def update(hp: AdaptiveHparams, state: AdaptiveState, feedback: Feedback) -> AdaptiveState:
    copies, losses = adaptive.learn(hp, state, feedback)
    steps = _steps(hp, losses.dtype)
    gains = jnp.log1p(steps * _regrets(hp, state.log_weights, losses))
    log_weights = state.log_weights + feedback.weight * gains
    log_weights = jnp.where(adaptive.begins(hp, state.now + 1), jnp.log(steps), log_weights)
    return adaptive.proceed(hp, state, copies, log_weights)


def open_account(hp: AdaptiveHparams, state: AdaptiveState, u: Float[Array, " K"]) -> Account:
    return adaptive.open_account(state, u, NEAR, LIGHT)


def add_round(
    hp: AdaptiveHparams, account: Account, state: AdaptiveState, feedback: Feedback, u: Array
) -> Account:
    r"""The regret to the copy in a slot since its start; $N$ copies have started so far.

    $$\sum_s f_s(a_s) - f_s(a_s^k) \le \frac{\ln \sum_j w_j / \eta_j}{\eta_k} + \sum_s r_{s,k} -
      \frac{\ln(1 + \eta_k r_{s,k})}{\eta_k} \le \frac{\ln N}{\eta_k} +
      \eta_k \sum_s r_{s,k}^2.$$

    u: a distribution over slots, most often a single slot; both sides are 0 while it is not used.
        Weights of rounds are at most 1.
    """
    losses, weight = adaptive.losses_of(hp, state, feedback), feedback.weight
    log_weights, steps = state.log_weights, _steps(hp, losses.dtype)
    regrets = _regrets(hp, log_weights, losses)
    gains = weight * jnp.log1p(steps * regrets)
    terms = weight * regrets - gains / steps, weight * regrets**2
    account = adaptive.add_round(hp, account, state, feedback, losses, *terms)
    crowd = logsumexp(log_weights + gains - jnp.log(steps))
    started = jnp.log(jnp.sum(state.now // jnp.asarray(hp.period)).astype(losses.dtype))
    apart = jnp.max(jnp.where(adaptive.used(state), jnp.abs(regrets), 0.0))
    return account._replace(
        right=hp.eta_or_span * (crowd / steps + account.sums[0]),
        published=hp.eta_or_span * (started / steps + steps * account.sums[1]),
        met={
            NEAR: account.met[NEAR] & (apart <= 1 + 64 * jnp.finfo(apart.dtype).eps),
            LIGHT: account.met[LIGHT] & (weight <= 1),
        },
    )


interval_regret = Theorem(
    "interval_regret", "Daniely et al. 2015", open_account, add_round, adaptive.both_sides
)


def _steps(hp: AdaptiveHparams, dtype: DTypeLike) -> Float[Array, " K"]:
    return jnp.asarray(np.minimum(0.5, np.sqrt(1 / np.array(hp.period))), dtype)


def _regrets(hp: AdaptiveHparams, log_weights: Array, losses: Array) -> Float[Array, " K"]:
    return (jnp.vdot(softmax(log_weights), losses) - losses) / hp.eta_or_span
