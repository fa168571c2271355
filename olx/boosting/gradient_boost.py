r"""Online gradient boosting, against linear combinations of base functions.

$N$ copies $A^1, \dots, A^N$ of a base learner make the prediction in stages, from $y^0 = 0$:

$$y^i = \Pi_B\big( (1 - \sigma^i \eta)\, y^{i-1} + \eta A^i(x_t) \big), \qquad y_t = y^N.$$

With $g^i = \ell_t'(y^{i-1})$, copy $i$ pays the linear loss $a \mapsto g^i a / L_B$, and its
shrinkage descends: from $\sigma^i = 0$ it goes to the nearest point of $[0, 1]$ to $\sigma^i +
g^i y^{i-1} / (L_B B \sqrt t)$. Base predictions are at most $D$ in size. $L_b$, $\beta_b$ and
$\epsilon_b$ are the constants of the loss on $[-b, b]$, and $B = \min\{ \eta N D, \inf\{ b \ge D :
\eta \beta_b b^2 \ge \epsilon_b D \} \}$.

Let $f$ be a linear combination of base functions, with coefficients whose sizes sum to at most
$W \ge 1$; $\Delta_i = \sum_s \ell_s(y^i_s) - \ell_s(f(x_s))$; and $R_i = \sum_s g^i_s (A^i(x_s) -
f(x_s) / W)$, which is $L_B$ times the regret of copy $i$. For rounds of weight 1

$$\Delta_i \le \Big(1 - \frac\eta W\Big) \Delta_{i-1} + \eta R_i + 2 \eta L_B B \sqrt t +
  3 \eta^2 \beta_B B^2 t,$$
$$\Delta_N \le \Big(1 - \frac\eta W\Big)^N \Delta_0 + W \max_i R_i + 2 W L_B B \sqrt t +
  3 W \eta \beta_B B^2 t.$$

`right` has the sums behind the last two terms of a stage: of $(\frac1W - \sigma^i) g^i y^{i-1}$,
of $\frac{\beta_B}2 (A^i - \sigma^i y^{i-1})^2$ and of what the projections cut off.

`gradient_boost_linearized` is for losses that need not be smooth. After the prediction $y_t$ the
loss is replaced by $y \mapsto g_t y$ with $g_t = \ell_t'(y_t)$, and `gradient_boost` plays on this
loss: all copies pay $a \mapsto g_t a / L_B$. A linear loss is smooth with $\beta = 0$, so $B = \eta
N D$ and nothing is projected. The losses depend on the prediction, so base learners must be
deterministic, as all learners are that take no key. For convex losses and rounds of weight 1,

$$\sum_{s \le t} \ell_s(y_s) - \ell_s(f(x_s)) \le \Big(1 - \frac\eta W\Big)^N \Delta_0 +
  W \max_i R_i + 2 W L_B B \sqrt t, \qquad \Delta_0 = \sum_{s \le t} \ell_s(0) - \ell_s(f(x_s)).$$

The theorem of `gradient_boost` has $-\sum_s g_s f(x_s)$ for the linear losses in place of
$\Delta_0$. With $c = 1 - (1 - \eta / W)^N$ it thus bounds $\sum_s g_s (y_s - c f(x_s))$ by the
other terms. This is at least $\sum_s \ell_s(y_s) - \ell_s(c f(x_s))$, and $\ell(c f) \le
c\, \ell(f) + (1 - c)\, \ell(0)$.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 9, theorem 13 and corollary 3;
Beygelzimer, Hazan, Kale, Luo, Online Gradient Boosting, 2015.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import pytree, static
from olx._refusal import own_name, public
from olx.boosting import _stages
from olx.boosting._stages import Account, Numbers, Stages
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks import copies
from olx.frameworks.accounts import CONVEX
from olx.frameworks.lift import dot
from olx.losses.score import ScoreLoss
from olx.theorem import About, Theorem


@pytree
class GradientBoostHparams:
    inner: Learner
    eta: Scalar
    loss: ScoreLoss
    bound: Scalar  # D
    target: Scalar  # the largest size of an outcome
    radius: Scalar  # B
    n: int = static()


class GradientBoostState(NamedTuple):
    copies: PyTree  # stacked states
    shrinkage: Float[Array, " n"]  # sigma
    clock: Clock


@public
def gradient_boost(
    inner: Learner, n: int, eta: Scalar, loss: ScoreLoss, bound: Scalar = 1.0, target: Scalar = 1.0
) -> Learner:
    r"""Boost `n` copies of `inner` for regression, against linear combinations of base functions.

    inner: a predictor of real numbers that learns from its loss alone, such as `olx.linear(...)`.
    eta: the weight of a copy, from 1 / `n` to 1; theory suggests $\ln N / N$.
    loss: the loss of the game, with constants `on_ball`; smooth.
    bound: the largest size of a prediction of `inner`.
    target: the largest size of an outcome; larger ones are refused.

    >>> import jax, jax.numpy as jnp, olx
    >>> rows = jax.random.uniform(jax.random.key(0), (400, 3), minval=-0.5, maxval=0.5)
    >>> rounds = olx.Rounds(rows, rows @ jnp.array([1.0, -0.6, 0.3]))
    >>> weak = olx.linear(olx.ogd(0.5, olx.convex.sets.ball(0.5)))
    >>> strong = olx.boosting.gradient_boost(weak, 10, 0.4, olx.losses.squared, bound=0.5)
    >>> play = lambda learner: olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(3)).total
    >>> bool(play(strong) < 0.5 * play(weak))
    True
    """
    bound, target = _stages.check_arguments(inner, n, loss, bound, target)
    eta = _stages.check_eta(eta, n)
    radius = _stages.ball_radius(eta, n, loss, bound, target)
    hparams = GradientBoostHparams(inner, eta, loss, bound, target, radius, n)
    functions, theorems = (init, predict, update), (span_regret, span_stages)
    return _stages.booster("gradient_boost", hparams, functions, *theorems)


@public
def gradient_boost_linearized(
    inner: Learner, n: int, eta: Scalar, loss: ScoreLoss, bound: Scalar = 1.0, target: Scalar = 1.0
) -> Learner:
    r"""Boost `n` copies of `inner` on linearized losses, against linear combinations.

    inner: a predictor of real numbers that learns from its loss alone, such as `olx.linear(...)`.
    eta: the weight of a copy, from 1 / `n` to 1. Predictions are at most `eta` `n` `bound` in size.
    loss: the loss of the game, with constants `on_ball`; it need not be smooth.
    bound: the largest size of a prediction of `inner`.
    target: the largest size of an outcome; larger ones are refused.

    >>> import jax, jax.numpy as jnp, olx
    >>> rows = jax.random.uniform(jax.random.key(0), (900, 3), minval=-0.5, maxval=0.5)
    >>> rounds = olx.Rounds(rows, rows @ jnp.array([1.0, -0.6, 0.3]))
    >>> weak = olx.linear(olx.ogd(0.1, olx.convex.sets.ball(0.5)))
    >>> make = olx.boosting.gradient_boost_linearized
    >>> strong = make(weak, 4, 0.9, olx.losses.absolute, bound=0.5)
    >>> play = lambda learner: olx.rollout(learner, olx.losses.absolute, rounds, jnp.zeros(3)).total
    >>> bool(play(strong) < 0.6 * play(weak))
    True
    """
    bound, target = _stages.check_arguments(inner, n, loss, bound, target, curved=False)
    eta = _stages.check_eta(eta, n)
    hparams = GradientBoostHparams(inner, eta, loss, bound, target, eta * n * bound, n)
    functions = init, predict, linearized_update
    return _stages.booster("gradient_boost_linearized", hparams, functions, linearized_regret)


def init(hp: GradientBoostHparams, params: PyTree) -> GradientBoostState:
    count, states = clock.start(None, params), copies.start(hp.inner, hp.n, params)
    return GradientBoostState(states, jnp.zeros(hp.n, count.dtype), count)


def predict(hp: GradientBoostHparams, state: GradientBoostState, context: PyTree) -> Array:
    return stages_of(hp, state, context).after[-1]


@own_name("gradient_boost")
def update(
    hp: GradientBoostHparams, state: GradientBoostState, feedback: Feedback
) -> GradientBoostState:
    _stages.check_played(hp.loss, feedback)
    return learn(hp, state, feedback)


@own_name("gradient_boost_linearized")
def linearized_update(
    hp: GradientBoostHparams, state: GradientBoostState, feedback: Feedback
) -> GradientBoostState:
    _stages.check_played(hp.loss, feedback)
    return learn(hp, state, feedback._replace(loss=_line(feedback)))


def learn(
    hp: GradientBoostHparams, state: GradientBoostState, feedback: Feedback
) -> GradientBoostState:
    stages = stages_of(hp, state, feedback.context)
    slopes = _stages.slopes_of(feedback, stages)
    b = jnp.asarray(hp.radius, slopes.dtype)
    steep = _stages.lipschitz(hp.loss, b, hp.target)
    step = feedback.weight / (steep * b * jnp.sqrt(state.clock.now))
    shrinkage = jnp.clip(state.shrinkage + step * slopes * stages.before, 0.0, 1.0)
    taught = _stages.teach(hp.inner, state.copies, feedback, stages, slopes, steep)
    return GradientBoostState(taught, shrinkage, clock.advance(state.clock, True))


@own_name("gradient_boost")
def stages_of(hp: GradientBoostHparams, state: GradientBoostState, context: PyTree) -> Stages:
    votes = _stages.votes_of(hp.inner, state.copies, context)
    steps, b = jnp.full_like(votes, hp.eta), jnp.asarray(hp.radius, votes.dtype)
    return _stages.climb(votes, 1 - hp.eta * state.shrinkage, steps, b)


def _line(feedback: Feedback) -> Partial:
    return Partial(jnp.multiply, feedback.grad)


@public
def span_regret(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    r"""Theorem 13 against the function $f = $ `apply(u, .)`, with $W = \max(1, \|u\| / D)$.

    This $W$ is $\|f\|_1$ if the base functions are $\langle w, x\rangle$ with $\|w\| \le D$ on rows
    of length at most 1. The theorem holds for every $W \ge 1$: the regrets of the copies to $f / W$
    are measured.
    """
    parts = open_account, add_round, both_sides
    return _stages.theorem("span_regret", "Luo 2016, theorem 13", apply, parts, BOOSTED)


@public
def span_stages(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    """The step of theorem 13 from a stage to the next; the sides are those of the tightest one."""
    parts = open_account, add_round, one_stage
    return _stages.theorem("span_stages", "Luo 2016, proof of theorem 13", apply, parts, BOOSTED)


def open_account(hp: GradientBoostHparams, state: GradientBoostState, u: PyTree) -> Account:
    return _stages.open_account(hp.n, state.shrinkage)


def add_round(
    apply: Partial,
    hp: GradientBoostHparams,
    account: Account,
    state: GradientBoostState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    stages, f = stages_of(hp, state, feedback.context), apply(u, feedback.context)
    given = feedback, stages, state.shrinkage, f, feedback.loss
    return _stages.add_round(_numbers(hp, u), account, *given)


def both_sides(hp: GradientBoostHparams, account: Account, u: PyTree) -> Certificate:
    own, t, b = _numbers(hp, u), account.rounds.past, jnp.asarray(hp.radius, account.size.dtype)
    first = (1 - hp.eta / own.norm) ** hp.n * account.gaps[0]
    drift = 2 * own.steep * b * jnp.sqrt(t) + 3 * hp.eta * own.smooth * b**2 * t
    published = first + own.norm * (_stages.worst(account) + drift)
    return _stages.regret_sides(own, account, published)


def one_stage(hp: GradientBoostHparams, account: Account, u: PyTree) -> Certificate:
    return _stages.step_sides(_numbers(hp, u), account)


def _numbers(hp: GradientBoostHparams, u: PyTree, curved: bool = True) -> Numbers:
    norm = jnp.maximum(_stages.length(u) / hp.bound, 1.0)
    at = hp.loss, jnp.asarray(hp.radius, norm.dtype), hp.target
    bends = (_stages.smooth(*at), _stages.excess(*at)) if curved else (0.0, 0.0)
    steps = jnp.full(hp.n, hp.eta, norm.dtype)
    return Numbers(steps, norm, hp.bound, _stages.lipschitz(*at), *bends)


def _is_boosted(learner: Learner) -> bool:
    return learner.update_fn is update


BOOSTED = About("a `gradient_boost`", _is_boosted)


@public
def linearized_regret(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    """Corollary 3 against the function `apply(u, .)`; W is that of `span_regret`."""
    parts = linearized_open_account, linearized_add_round, linearized_sides
    return _stages.theorem("linearized_regret", "Luo 2016, corollary 3", apply, parts, LINEARIZED)


class LinearizedAccount(NamedTuple):
    stages: Account  # on the linear losses
    regret: Float[Array, ""]  # on the losses themselves
    start: Float[Array, ""]  # Delta_0
    convex: Bool[Array, ""]


def linearized_open_account(
    hp: GradientBoostHparams, state: GradientBoostState, u: PyTree
) -> LinearizedAccount:
    stages = _stages.open_account(hp.n, state.shrinkage)
    zero = jnp.zeros_like(stages.size)
    return LinearizedAccount(stages, zero, zero, jnp.ones((), bool))


def linearized_add_round(
    apply: Partial,
    hp: GradientBoostHparams,
    account: LinearizedAccount,
    state: GradientBoostState,
    feedback: Feedback,
    u: PyTree,
) -> LinearizedAccount:
    stages, f = stages_of(hp, state, feedback.context), apply(u, feedback.context)
    given = feedback, stages, state.shrinkage, f, _line(feedback)
    own, y, g, value = _numbers(hp, u, curved=False), feedback.action, feedback.grad, feedback.value
    c = 1 - (1 - hp.eta / own.norm) ** hp.n
    other, part, zero = feedback.loss(f), feedback.loss(c * f), feedback.loss(jnp.zeros_like(f))
    size = jnp.sum(jnp.abs(jnp.stack([other, part, zero, value, g * f, g * y])))
    slack = 64 * jnp.finfo(size.dtype).eps * size
    bent = (part < value + g * (c * f - y) - slack) | (part > c * other + (1 - c) * zero + slack)
    return LinearizedAccount(
        _stages.add_round(own, account.stages, *given),
        account.regret + value - other,
        account.start + zero - other,
        account.convex & ~bent,
    )


def linearized_sides(
    hp: GradientBoostHparams, account: LinearizedAccount, u: PyTree
) -> Certificate:
    own, stages = _numbers(hp, u, curved=False), account.stages
    first = (1 - hp.eta / own.norm) ** hp.n * account.start
    drift = 2 * own.steep * hp.eta * hp.n * hp.bound * jnp.sqrt(stages.rounds.past)
    published = first + own.norm * (_stages.worst(stages) + drift)
    ends = account.start, account.regret
    proof = _stages.regret_sides(own, stages, published, ends)
    return proof.given(CONVEX, account.convex)


def _is_linearized(learner: Learner) -> bool:
    return learner.update_fn is linearized_update


LINEARIZED = About("a `gradient_boost_linearized`", _is_linearized)
