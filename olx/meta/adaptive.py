r"""Small regret on every interval at once: copies of a learner that restart at dyadic times.

A copy that started at the last change of the data has not learned from older data. $O(\log t)$
copies are alive at a time, each in its slot; slot $k$ restarts when the number of the round is
`phase[k]` modulo `period[k]`. The mixture plays the weighted mean of the copies. It has small
regret to every copy over the life of the copy, and every interval is a union of few lives. So the
bound of the base learner on a whole run holds on every interval, up to logarithms.

`saol`, strongly adaptive online learning: slot $k = 0, 1, \dots$ restarts at every multiple of
$2^k$. Its first weight is $w_k = \eta_k = \min(\frac12, 2^{-k/2})$, and with $r_{t,k} = \langle
p_t, \ell_t \rangle - \ell_{t,k}$ in $[-1, 1]$,

$$p_t \propto w, \qquad w_k \leftarrow w_k (1 + \eta_k r_{t,k}).$$

Since $\sum_k (w_k / \eta_k)\, \eta_k r_{t,k} = 0$, the sum of $w_k / \eta_k$ is at most the number
of copies started so far, and $\ln(1 + x) \ge x - x^2$ gives the bound. Losses are convex.

`flh`, follow the leading history: every round starts a new copy. The copy born in round $t = o\,
2^k$, $o$ odd, lives for $2^{k+2}$ rounds. So at most two copies per $k$ are alive, and for all
$s < t$ a copy born in $[s, (s + t)/2]$. A new copy gets the probability $1/t$, the others keep
their proportions, and every round

$$p_k \leftarrow p_k e^{-\eta \ell_{t,k}}, \quad \text{normalized}.$$

For losses that are $\eta$-exp-concave the regret to a copy on its life is at most $\ln(t) / \eta$:
the mixture pays at most $-\frac1\eta \ln E_{p_s} e^{-\eta\ell_s}$, its regret to the copy raises
the probability of the copy, and new copies lower its logarithm by $\ln\frac{s}{s-1}$ per round.

Daniely, Gonen, Shalev-Shwartz, Strongly Adaptive Online Learning, 2015; Hazan, Seshadhri, Efficient
Learning Algorithms for Changing Environments, 2009.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax, softmax
from jax.scipy.special import logsumexp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedValue, own_name, public
from olx.certificate import DOMAIN, Certificate
from olx.convex import _domain
from olx.core import Feedback, Learner, Scalar
from olx.meta.mix import its_own, mean
from olx.theorem import Theorem
from olx.wrapper import INNER, lift_needs

NEVER = -1e30  # the logarithm of weight 0; finite, so that differences and gradients are finite
NEAR = "losses of a round must differ by at most `span`"
LIGHT = "weights must be at most 1"


@pytree
class AdaptiveHparams:
    inner: Learner
    eta_or_span: Scalar  # `eta` of `flh`, `span` of `saol`
    period: tuple[int, ...] = static()
    phase: tuple[int, ...] = static()
    warm: bool = static(default=False)


class AdaptiveState(NamedTuple):
    copies: PyTree  # states with a leading axis of slots
    log_weights: Float[Array, " K"]  # NEVER before the first use of a slot
    fresh: PyTree  # the state of a new copy
    now: Int[Array, ""]  # the number of the next round, from 1


@public
def saol(inner: Learner, levels: int, span: Scalar = 1.0, warm: bool = False) -> Learner:
    """Mix copies of `inner` that restart every 1, 2, 4, ... rounds.

    inner: any learner with real actions.
    levels: the number of copies; the longest life is 2 to the power `levels` - 1 rounds.
    span: the largest difference between two losses of one round.
    warm: whether copies restart from the action of the mixture, and not from `params`. This tracks
        a target that moves slowly. `inner` is then a learner of points, and the predictor is
        `olx.linear` of this learner. The theorem is the same.

    >>> import jax.numpy as jnp, olx
    >>> rounds = olx.Rounds(None, jnp.concatenate([jnp.full(60, 0.0), jnp.full(60, 1.0)]))
    >>> average = olx.md(olx.schedules.decay(1.0, 1.0), olx.mirrors.euclidean())  # of all so far
    >>> play = lambda learner: olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(()))
    >>> bool(play(saol(average, 7)).total < 0.5 * play(average).total)
    True
    """
    check_arguments(inner, levels)
    span = check.positive("span", span)
    period = tuple(2**k for k in range(levels))
    check.flag("warm", warm)
    hparams = AdaptiveHparams(inner, span, period, (0,) * levels, bool(warm))
    needs = lift_needs(INNER, inner)
    theorems = (saol_interval_regret,)
    return Learner(hparams, saol_init, predict, saol_update, needs=needs, theorems=theorems)


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
    check_arguments(inner, levels)
    eta = check.positive("eta", eta)
    period, phase = [], []
    for k in range(levels):
        top = k == levels - 1  # even multiples start copies of the top level too
        period += [2 ** (k + 1 if top else k + 2)] * 2
        phase += [0, 2**k] if top else [2**k, 3 * 2**k]
    hparams = AdaptiveHparams(inner, eta, tuple(period), tuple(phase))
    needs = lift_needs(INNER, inner)
    theorems = (flh_interval_regret,)
    return Learner(hparams, flh_init, predict, flh_update, needs=needs, theorems=theorems)


def predict(hp: AdaptiveHparams, state: AdaptiveState, context: PyTree) -> PyTree:
    actions = jax.vmap(lambda own: hp.inner.predict(own, context))(state.copies)
    return mean(softmax(state.log_weights), actions)


def saol_init(hp: AdaptiveHparams, params: PyTree) -> AdaptiveState:
    steps = _saol_steps(hp, jnp.result_type(*jax.tree.leaves(params)))
    return first_state(hp, params, jnp.log(steps))


def saol_update(hp: AdaptiveHparams, state: AdaptiveState, feedback: Feedback) -> AdaptiveState:
    copies, losses = learn(hp, state, feedback)
    steps = _saol_steps(hp, losses.dtype)
    gains = jnp.log1p(steps * regrets_of(hp, state.log_weights, losses))
    log_weights = state.log_weights + feedback.weight * gains
    log_weights = jnp.where(begins(hp, state.now + 1), jnp.log(steps), log_weights)
    if hp.warm:
        state = state._replace(fresh=_warm_copy(hp, state, feedback.action))
    return next_state(hp, state, copies, log_weights)


def flh_init(hp: AdaptiveHparams, params: PyTree) -> AdaptiveState:
    dtype = jnp.result_type(*jax.tree.leaves(params))
    return first_state(hp, params, jnp.zeros(len(hp.period), dtype))


def flh_update(hp: AdaptiveHparams, state: AdaptiveState, feedback: Feedback) -> AdaptiveState:
    copies, losses = learn(hp, state, feedback)
    born = begins(hp, state.now + 1)
    share = 1 / (state.now + 1).astype(losses.dtype)
    older = jnp.where(born, NEVER, state.log_weights - hp.eta_or_span * feedback.weight * losses)
    log_weights = jnp.where(born, jnp.log(share), log_softmax(older) + jnp.log1p(-share))
    return next_state(hp, state, copies, log_weights)


def check_arguments(inner: Learner, levels: int) -> None:
    check.instance("inner", inner, Learner)
    check.count("levels", levels)
    if levels > 29:
        raise RefusedValue(f"`levels` must be at most 29, got {levels}.")


def first_state(
    hp: AdaptiveHparams, params: PyTree, log_weights: Float[Array, " K"]
) -> AdaptiveState:
    """The state before round 1; `log_weights` are the first weights of the copies."""
    fresh = jax.tree.map(jnp.asarray, hp.inner.init(params))
    copies = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(hp.period)), fresh)
    now = jnp.ones((), int)
    return AdaptiveState(copies, jnp.where(begins(hp, now), log_weights, NEVER), fresh, now)


def learn(
    hp: AdaptiveHparams, state: AdaptiveState, feedback: Feedback
) -> tuple[PyTree, Float[Array, " K"]]:
    """Update every copy on its own action; the new copies and their losses."""

    def one(own: PyTree) -> tuple[PyTree, Array]:
        seen = its_own(hp.inner, own, feedback)
        return hp.inner.update(own, seen), seen.value

    return jax.vmap(one)(state.copies)


def next_state(
    hp: AdaptiveHparams, state: AdaptiveState, copies: PyTree, log_weights: Float[Array, " K"]
) -> AdaptiveState:
    """The state before the next round, with the copies restarted that begin in it."""
    now = begins(hp, state.now + 1)
    replace = lambda own, new: jnp.where(now.reshape(-1, *(1,) * new.ndim), new, own)
    copies = jax.tree.map(replace, copies, state.fresh)
    return AdaptiveState(copies, log_weights, state.fresh, state.now + 1)


@own_name("saol")
def _warm_copy(hp: AdaptiveHparams, state: AdaptiveState, action: PyTree) -> PyTree:
    """The state of a copy that starts from an action."""
    new = hp.inner.init_fn(hp.inner.hparams, action)
    remedy = "`warm` needs a learner of points: make it a predictor by `olx.linear(saol(...))`"
    check.same_shape("a copy from the action", new, "one from `params`", state.fresh, remedy)
    return jax.tree.map(jnp.asarray, new)


def begins(hp: AdaptiveHparams, now: Int[Array, "..."]) -> Bool[Array, "... K"]:
    """Which slots start a new copy in round `now`."""
    return now[..., None] % jnp.asarray(hp.period) == jnp.asarray(hp.phase)


def _used(state: AdaptiveState) -> Bool[Array, "... K"]:
    """Which slots hold a copy."""
    return state.log_weights > NEVER / 2


def _saol_steps(hp: AdaptiveHparams, dtype: DTypeLike) -> Float[Array, " K"]:
    return jnp.asarray(np.minimum(0.5, np.sqrt(1 / np.array(hp.period))), dtype)


def regrets_of(hp: AdaptiveHparams, log_weights: Array, losses: Array) -> Float[Array, " K"]:
    """In units of the span; exactly 0 for a copy whose loss all copies of positive weight have."""
    apart = losses - losses[jnp.argmax(log_weights)]
    return (jnp.vdot(softmax(log_weights), apart) - apart) / hp.eta_or_span


class Account(NamedTuple):
    """Per copy: sums over its life so far, and both right sides after the last round."""

    regret: Float[Array, " K"]
    size: Float[Array, " K"]
    sums: tuple[Float[Array, " K"], ...]  # sums in the right sides
    right: Float[Array, " K"]
    published: Float[Array, " K"]
    alive: Bool[Array, " K"]
    met: dict[str, Bool[Array, ""]]  # the conditions of the theorem


def saol_open_account(hp: AdaptiveHparams, state: AdaptiveState, u: Float[Array, " K"]) -> Account:
    return open_lives(state, u, NEAR, LIGHT)


def saol_add_round(
    hp: AdaptiveHparams, account: Account, state: AdaptiveState, feedback: Feedback, u: Array
) -> Account:
    r"""The regret to the copy in a slot since its start; $N$ copies have started so far.

    $$\sum_s f_s(a_s) - f_s(a_s^k) \le \frac{\ln \sum_j w_j / \eta_j}{\eta_k} + \sum_s r_{s,k} -
      \frac{\ln(1 + \eta_k r_{s,k})}{\eta_k} \le \frac{\ln N}{\eta_k} +
      \eta_k \sum_s r_{s,k}^2.$$

    u: a distribution over slots, most often a single slot; both sides are 0 while it is not used.
        Weights of rounds are at most 1.
    """
    losses, weight = losses_of(hp, state, feedback), feedback.weight
    log_weights, steps = state.log_weights, _saol_steps(hp, losses.dtype)
    regrets = regrets_of(hp, log_weights, losses)
    gains = weight * jnp.log1p(steps * regrets)
    terms = weight * regrets - gains / steps, weight * regrets**2
    account = add_to_lives(hp, account, state, feedback, losses, *terms)
    crowd = logsumexp(log_weights + gains - jnp.log(steps))
    started = jnp.log(jnp.sum(state.now // jnp.asarray(hp.period)).astype(losses.dtype))
    return account._replace(
        right=hp.eta_or_span * (crowd / steps + account.sums[0]),
        published=hp.eta_or_span * (started / steps + steps * account.sums[1]),
        met=near_and_light(account, jnp.where(_used(state), regrets, 0.0), weight),
    )


def flh_open_account(hp: AdaptiveHparams, state: AdaptiveState, u: Float[Array, " K"]) -> Account:
    return open_lives(state, u)


def flh_add_round(
    hp: AdaptiveHparams, account: Account, state: AdaptiveState, feedback: Feedback, u: Array
) -> Account:
    r"""The regret to the copy in a slot since its birth; $\rho_s$ is the range of their losses.

    $$\sum_s f_s(a_s) - f_s(a_s^k) \le \frac{\ln t}\eta + \sum_s f_s(a_s) + \frac{\ln E_{p_s}
      e^{-\eta \ell_s}}\eta \le \frac{\ln t}\eta + \frac\eta8 \sum_s \rho_s^2.$$

    u: a distribution over slots, most often a single slot; both sides are 0 while it is not used.
    """
    losses, alive = losses_of(hp, state, feedback), _used(state)
    scaled = feedback.weight * losses
    highest = jnp.max(jnp.where(alive, scaled, -jnp.inf))
    lowest = jnp.min(jnp.where(alive, scaled, jnp.inf))
    mixed = logsumexp(log_softmax(state.log_weights) - hp.eta_or_span * scaled) / hp.eta_or_span
    terms = feedback.weight * feedback.value + mixed, (highest - lowest) ** 2
    account = add_to_lives(hp, account, state, feedback, losses, *terms)
    age = jnp.log(state.now.astype(losses.dtype)) / hp.eta_or_span
    return account._replace(
        right=age + account.sums[0], published=age + hp.eta_or_span / 8 * account.sums[1]
    )


def open_lives(
    state: AdaptiveState, u: Float[Array, " K"], *conditions: str, sums: int = 2
) -> Account:
    """The account before the first round; `sums` is the number of terms of `add_to_lives`."""
    check.comparator(u, state.log_weights)
    zeros, met = jnp.zeros_like(state.log_weights), dict.fromkeys(conditions, jnp.ones((), bool))
    return Account(zeros, zeros, (zeros,) * sums, zeros, zeros, _used(state), met)


def near_and_light(
    account: Account, regrets: Float[Array, " K"], weight: Scalar
) -> dict[str, Bool[Array, ""]]:
    """Whether the rounds so far met both conditions; copies that are not alive have regret 0."""
    near = jnp.max(jnp.abs(regrets)) <= 1 + 64 * jnp.finfo(regrets.dtype).eps
    return {NEAR: account.met[NEAR] & near, LIGHT: account.met[LIGHT] & (weight <= 1)}


def losses_of(hp: AdaptiveHparams, state: AdaptiveState, feedback: Feedback) -> Float[Array, " K"]:
    """The loss of every copy in a round."""
    lost = lambda own: feedback.loss(hp.inner.predict(own, feedback.context))
    return jax.vmap(lost)(state.copies)


def add_to_lives(
    hp: AdaptiveHparams,
    account: Account,
    state: AdaptiveState,
    feedback: Feedback,
    losses: Float[Array, " K"],
    *terms: Array,
) -> Account:
    """Add a round to the sums over the lives of copies; the caller sets the right sides."""
    fresh, weight, value = begins(hp, state.now), feedback.weight, feedback.value
    since = lambda total, term: jnp.where(fresh, 0.0, total) + term
    return account._replace(
        regret=since(account.regret, weight * (value - losses)),
        size=since(account.size, weight * (jnp.abs(value) + jnp.abs(losses))),
        sums=tuple(since(*pair) for pair in zip(account.sums, terms, strict=True)),
        alive=_used(state),
    )


def both_sides(hp: AdaptiveHparams, account: Account, u: Float[Array, " K"]) -> Certificate:
    """The regret to the copies in the slots `u`, each since its start; 0 before the start."""
    at = lambda copies: jnp.where(account.alive, copies, 0.0) @ u
    scale = at(account.size + jnp.abs(account.right))
    proof = Certificate(at(account.regret), at(account.right), scale, at(account.published))
    return proof.given(DOMAIN, _domain.simplex(0.0, 1.0, u)).under(account.met)


saol_interval_regret = Theorem(
    "interval_regret", "Daniely et al. 2015", saol_open_account, saol_add_round, both_sides
)
flh_interval_regret = Theorem(
    "interval_regret", "Hazan, Seshadhri 2009", flh_open_account, flh_add_round, both_sides
)
