r"""Follow the leading history: every round starts a new copy of the base learner.

The copy born in round $t = o\, 2^k$, $o$ odd, lives for $2^{k+2}$ rounds. So at most two copies per
$k$ are alive, and for all $s < t$ a copy born in $[s, (s + t)/2]$. A new copy gets the probability
$1/t$, the others keep their proportions, and every round

$$p_k \leftarrow p_k e^{-\eta \ell_{t,k}}, \quad \text{normalized}.$$

For losses that are $\eta$-exp-concave the regret to a copy on its life is at most $\ln(t) / \eta$:
the mixture pays at most $-\frac1\eta \ln E_{p_s} e^{-\eta\ell_s}$, its regret to the copy raises
the probability of the copy, and new copies lower its logarithm by $\ln\frac{s}{s-1}$ per round.

Hazan, Seshadhri, Efficient Learning Algorithms for Changing Environments, 2009.
"""

import jax
import jax.numpy as jnp
from jax.nn import log_softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import public
from olx.core import Feedback, Learner, Scalar
from olx.meta import adaptive
from olx.meta.adaptive import Account, AdaptiveHparams, AdaptiveState
from olx.theorem import Theorem
from olx.wrapper import INNER, lift_needs


@public
def flh(inner: Learner, eta: Scalar, levels: int) -> Learner:
    r"""Mix copies of `inner`, one born per round; copies with longer lives are rarer.

    inner: any learner with real actions.
    eta: positive; $\alpha$ for $\alpha$-exp-concave losses, else about $\sqrt{8 \ln T / T}$ for
        losses in $[0, 1]$ and the length $T$ of the intervals that matter.
    levels: half the number of copies; the longest life is 2 to the power `levels` rounds.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.concatenate([jnp.full(60, 0.0), jnp.full(60, 1.0)]))
    >>> average = olx.md(olx.schedules.decay(1.0, 1.0), olx.mirrors.euclidean())  # of all so far
    >>> play = lambda learner: olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(()))
    >>> bool(play(flh(average, 1.0, 7)).total < 0.3 * play(average).total)
    True
    """
    adaptive.check_arguments(inner, levels)
    eta = check.positive("eta", eta)
    period, phase = [], []
    for k in range(levels):
        top = k == levels - 1  # even multiples start copies of the top level too
        period += [2 ** (k + 1 if top else k + 2)] * 2
        phase += [0, 2**k] if top else [2**k, 3 * 2**k]
    hparams = AdaptiveHparams(inner, eta, tuple(period), tuple(phase))
    needs = lift_needs(INNER, inner)
    theorems = (interval_regret,)
    return Learner(hparams, init, adaptive.predict, update, needs=needs, theorems=theorems)


def init(hp: AdaptiveHparams, params: PyTree) -> AdaptiveState:
    dtype = jnp.result_type(*jax.tree.leaves(params))
    return adaptive.start(hp, params, jnp.zeros(len(hp.period), dtype))


def update(hp: AdaptiveHparams, state: AdaptiveState, feedback: Feedback) -> AdaptiveState:
    copies, losses = adaptive.learn(hp, state, feedback)
    born = adaptive.begins(hp, state.now + 1)
    share = 1 / (state.now + 1).astype(losses.dtype)
    older = jnp.where(
        born, adaptive.NEVER, state.log_weights - hp.eta_or_span * feedback.weight * losses
    )
    log_weights = jnp.where(born, jnp.log(share), log_softmax(older) + jnp.log1p(-share))
    return adaptive.proceed(hp, state, copies, log_weights)


def open_account(hp: AdaptiveHparams, state: AdaptiveState, u: Float[Array, " K"]) -> Account:
    return adaptive.open_account(state, u)


def add_round(
    hp: AdaptiveHparams, account: Account, state: AdaptiveState, feedback: Feedback, u: Array
) -> Account:
    r"""The regret to the copy in a slot since its birth; $\rho_s$ is the range of their losses.

    $$\sum_s f_s(a_s) - f_s(a_s^k) \le \frac{\ln t}\eta + \sum_s f_s(a_s) + \frac{\ln E_{p_s}
      e^{-\eta \ell_s}}\eta \le \frac{\ln t}\eta + \frac\eta8 \sum_s \rho_s^2.$$

    u: a distribution over slots, most often a single slot; both sides are 0 while it is not used.
    """
    losses, alive = adaptive.losses_of(hp, state, feedback), adaptive.used(state)
    scaled = feedback.weight * losses
    highest = jnp.max(jnp.where(alive, scaled, -jnp.inf))
    lowest = jnp.min(jnp.where(alive, scaled, jnp.inf))
    mixed = logsumexp(log_softmax(state.log_weights) - hp.eta_or_span * scaled) / hp.eta_or_span
    terms = feedback.weight * feedback.value + mixed, (highest - lowest) ** 2
    account = adaptive.add_round(hp, account, state, feedback, losses, *terms)
    age = jnp.log(state.now.astype(losses.dtype)) / hp.eta_or_span
    return account._replace(
        right=age + account.sums[0], published=age + hp.eta_or_span / 8 * account.sums[1]
    )


interval_regret = Theorem(
    "interval_regret", "Hazan, Seshadhri 2009", open_account, add_round, adaptive.both_sides
)
