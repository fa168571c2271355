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

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 9 and theorem 13; Beygelzimer, Hazan,
Kale, Luo, Online Gradient Boosting, 2015.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _clock as clock
from olx._clock import Clock
from olx._pytree import as_tree, pytree, static
from olx._refusal import own_name, public
from olx.boosting import _stages
from olx.boosting._stages import Account, Numbers, Stages
from olx.core import Feedback, Learner, Scalar
from olx.frameworks import copies
from olx.frameworks.lift import dot
from olx.losses.score import ScoreLoss
from olx.theorem import About, Certificate, Theorem


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
    _stages.check_base(inner, n)
    _stages.check_loss(loss)
    eta = _stages.check_eta(eta, n)
    bound = check.positive("bound", bound)
    target = check.positive("target", target)
    radius = _stages.ball_radius(eta, n, loss, bound, target)
    hparams = GradientBoostHparams(inner, eta, loss, bound, target, radius, n)
    return _stages.booster(
        "gradient_boost", hparams, (init, predict, update), span_regret, span_stages
    )


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


@public
def span_regret(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    r"""Theorem 13 against the function $f = $ `apply(u, .)`, with $W = \max(1, \|u\| / D)$.

    This $W$ is $\|f\|_1$ if the base functions are $\langle w, x\rangle$ with $\|w\| \le D$ on rows
    of length at most 1. The theorem holds for every $W \ge 1$: the regrets of the copies to $f / W$
    are measured.
    """
    check.takes("apply", apply, "u", "x")
    add, source = Partial(add_round, as_tree(apply)), "Luo 2016, theorem 13"
    return Theorem("span_regret", source, open_account, add, both_sides, about=BOOSTED)


@public
def span_stages(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    """The step of theorem 13 from a stage to the next; the sides are those of the tightest one."""
    check.takes("apply", apply, "u", "x")
    add, source = Partial(add_round, as_tree(apply)), "Luo 2016, proof of theorem 13"
    return Theorem("span_stages", source, open_account, add, one_stage, about=BOOSTED)


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
    return _stages.add_round(numbers_of(hp, u), account, *given)


def both_sides(hp: GradientBoostHparams, account: Account, u: PyTree) -> Certificate:
    own, t, b = numbers_of(hp, u), account.rounds.past, jnp.asarray(hp.radius, account.size.dtype)
    first = (1 - hp.eta / own.norm) ** hp.n * account.gaps[0]
    drift = 2 * own.steep * b * jnp.sqrt(t) + 3 * hp.eta * own.smooth * b**2 * t
    published = first + own.norm * (_stages.worst(account) + drift)
    return _stages.regret_sides(own, account, published)


def one_stage(hp: GradientBoostHparams, account: Account, u: PyTree) -> Certificate:
    return _stages.step_sides(numbers_of(hp, u), account)


def numbers_of(hp: GradientBoostHparams, u: PyTree) -> Numbers:
    norm = jnp.maximum(_stages.length(u) / hp.bound, 1.0)
    at = hp.loss, jnp.asarray(hp.radius, norm.dtype), hp.target
    constants = _stages.lipschitz(*at), _stages.smooth(*at), _stages.excess(*at)
    return Numbers(jnp.full(hp.n, hp.eta, norm.dtype), norm, hp.bound, *constants)


def _boosts(learner: Learner) -> bool:
    return learner.update_fn is update


BOOSTED = About("a `gradient_boost`", _boosts)
