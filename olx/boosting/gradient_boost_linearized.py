r"""Online gradient boosting of linearized losses, for losses that need not be smooth.

After the prediction $y_t$ the loss is replaced by $y \mapsto g_t y$ with $g_t = \ell_t'(y_t)$, and
`gradient_boost` plays on this loss: all copies pay $a \mapsto g_t a / L_B$. A linear loss is smooth
with $\beta = 0$, so $B = \eta N D$ and nothing is projected. The losses depend on the prediction,
so base learners must be deterministic, as all learners are that take no key.

With $W$ and $R_i$ as in `gradient_boost`, for convex losses and rounds of weight 1,

$$\sum_{s \le t} \ell_s(y_s) - \ell_s(f(x_s)) \le \Big(1 - \frac\eta W\Big)^N \Delta_0 +
  W \max_i R_i + 2 W L_B B \sqrt t, \qquad \Delta_0 = \sum_{s \le t} \ell_s(0) - \ell_s(f(x_s)).$$

The theorem of `gradient_boost` has $-\sum_s g_s f(x_s)$ for the linear losses in place of
$\Delta_0$. With $c = 1 - (1 - \eta / W)^N$ it thus bounds $\sum_s g_s (y_s - c f(x_s))$ by the
other terms. This is at least $\sum_s \ell_s(y_s) - \ell_s(c f(x_s))$, and $\ell(c f) \le
c\, \ell(f) + (1 - c)\, \ell(0)$.

Luo, Optimal and Adaptive Online Learning, 2016, corollary 3.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, PyTree

from olx import _check as check
from olx._pytree import as_tree
from olx._refusal import own_name, public
from olx.boosting import _stages
from olx.boosting._stages import Account, Numbers
from olx.boosting.gradient_boost import (
    GradientBoostHparams,
    GradientBoostState,
    init,
    predict,
    stages_of,
)
from olx.boosting.gradient_boost import learn as learn_from
from olx.core import Feedback, Learner, Scalar
from olx.frameworks.accounts import CONVEX
from olx.frameworks.lift import dot
from olx.losses.score import ScoreLoss
from olx.theorem import About, Certificate, Theorem


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
    _stages.check_base(inner, n)
    _stages.check_loss(loss, curved=False)
    eta = _stages.check_eta(eta, n)
    bound = check.positive("bound", bound)
    target = check.positive("target", target)
    hparams = GradientBoostHparams(inner, eta, loss, bound, target, eta * n * bound, n)
    return _stages.booster(
        "gradient_boost_linearized", hparams, (init, predict, update), linearized_regret
    )


@own_name("gradient_boost_linearized")
def update(
    hp: GradientBoostHparams, state: GradientBoostState, feedback: Feedback
) -> GradientBoostState:
    _stages.check_played(hp.loss, feedback)
    return learn_from(hp, state, feedback._replace(loss=_line(feedback)))


class LinearizedAccount(NamedTuple):
    stages: Account  # on the linear losses
    regret: Float[Array, ""]  # on the losses themselves
    start: Float[Array, ""]  # Delta_0
    convex: Bool[Array, ""]


@public
def linearized_regret(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    """Corollary 3 against the function `apply(u, .)`; W is that of `span_regret`."""
    check.takes("apply", apply, "u", "x")
    add, source = Partial(add_round, as_tree(apply)), "Luo 2016, corollary 3"
    return Theorem("linearized_regret", source, open_account, add, both_sides, about=BOOSTED)


def open_account(
    hp: GradientBoostHparams, state: GradientBoostState, u: PyTree
) -> LinearizedAccount:
    stages = _stages.open_account(hp.n, state.shrinkage)
    zero = jnp.zeros_like(stages.size)
    return LinearizedAccount(stages, zero, zero, jnp.ones((), bool))


def add_round(
    apply: Partial,
    hp: GradientBoostHparams,
    account: LinearizedAccount,
    state: GradientBoostState,
    feedback: Feedback,
    u: PyTree,
) -> LinearizedAccount:
    stages, f = stages_of(hp, state, feedback.context), apply(u, feedback.context)
    given = feedback, stages, state.shrinkage, f, _line(feedback)
    own, y, g, value = numbers_of(hp, u), feedback.action, feedback.grad, feedback.value
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


def both_sides(hp: GradientBoostHparams, account: LinearizedAccount, u: PyTree) -> Certificate:
    own, stages = numbers_of(hp, u), account.stages
    first = (1 - hp.eta / own.norm) ** hp.n * account.start
    drift = 2 * own.steep * hp.eta * hp.n * hp.bound * jnp.sqrt(stages.rounds.past)
    published = first + own.norm * (_stages.worst(stages) + drift)
    ends = account.start, account.regret
    proof = _stages.regret_sides(own, stages, published, ends)
    return proof.given(CONVEX, account.convex)


def numbers_of(hp: GradientBoostHparams, u: PyTree) -> Numbers:
    norm = jnp.maximum(_stages.length(u) / hp.bound, 1.0)
    b = jnp.asarray(hp.radius, norm.dtype)
    steep = _stages.lipschitz(hp.loss, b, hp.target)
    return Numbers(jnp.full(hp.n, hp.eta, norm.dtype), norm, hp.bound, steep, 0.0, 0.0)


def _line(feedback: Feedback) -> Partial:
    return Partial(jnp.multiply, feedback.grad)


def _boosts(learner: Learner) -> bool:
    return learner.update_fn is update


BOOSTED = About("a `gradient_boost_linearized`", _boosts)
