r"""Online gradient boosting, against convex combinations of base functions.

With $\eta_i = 2 / (i + 1)$, $N$ copies of a base learner make the prediction in stages, from
$y^0 = 0$, as the method of Frank and Wolfe does:

$$y^i = (1 - \eta_i)\, y^{i-1} + \eta_i A^i(x_t), \qquad y_t = y^N.$$

With $g^i = \ell_t'(y^{i-1})$, copy $i$ pays the linear loss $a \mapsto g^i a / L_D$. There is no
projection, no shrinkage, and no number to tune but $N$. $L_D$ and $\beta_D$ are the constants of
the loss on $[-D, D]$, where base predictions are.

Let $f$ be a convex combination of base functions, $\Delta_i = \sum_s \ell_s(y^i_s) -
\ell_s(f(x_s))$, and $R_i = \sum_s g^i_s (A^i(x_s) - f(x_s))$, which is $L_D$ times the regret of
copy $i$. For rounds of weight 1

$$\Delta_i \le (1 - \eta_i) \Delta_{i-1} + \eta_i R_i + 2 \eta_i^2 \beta_D D^2 t, \qquad
  \Delta_N \le \max_i R_i + \frac{8 \beta_D D^2 t}N.$$

`right` has the sum of $\frac{\beta_D}2 (A^i - y^{i-1})^2$ in place of its bound.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 10 and theorem 14; Beygelzimer, Hazan,
Kale, Luo, Online Gradient Boosting, 2015.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from olx._pytree import pytree, static
from olx._refusal import own_name, public
from olx.boosting import _stages
from olx.boosting._stages import Account, Numbers, Stages
from olx.certificate import Certificate
from olx.core import Feedback, Learner, Scalar
from olx.frameworks import copies
from olx.frameworks.lift import dot
from olx.losses.score import ScoreLoss
from olx.theorem import About, Theorem


@pytree
class HullHparams:
    inner: Learner
    loss: ScoreLoss
    bound: Scalar  # D
    target: Scalar  # the largest size of an outcome
    n: int = static()


class HullState(NamedTuple):
    copies: PyTree  # stacked states


@public
def gradient_boost_hull(
    inner: Learner, n: int, loss: ScoreLoss, bound: Scalar = 1.0, target: Scalar = 1.0
) -> Learner:
    """Boost `n` copies of `inner` for regression, against convex combinations of base functions.

    inner: a predictor of real numbers that learns from its loss alone, such as `olx.linear(...)`.
    loss: the loss of the game, with constants `on_ball`; smooth.
    bound: the largest size of a prediction of `inner`.
    target: the largest size of an outcome; larger ones are refused.

    >>> import jax, jax.numpy as jnp, olx
    >>> rows = jax.random.uniform(jax.random.key(0), (200, 3), minval=-0.5, maxval=0.5)
    >>> rounds = olx.Rounds(rows, rows @ jnp.array([0.5, -0.5, 0.2]))
    >>> weak = olx.linear(olx.ogd(1.0, olx.convex.sets.ball(1.0)))
    >>> learner = olx.boosting.gradient_boost_hull(weak, 5, olx.losses.squared)
    >>> run = olx.rollout(learner, olx.losses.squared, rounds, jnp.zeros(3))
    >>> bool(run.losses[100:].mean() < 0.1 * run.losses[:10].mean())
    True
    """
    bound, target = _stages.check_arguments(inner, n, loss, bound, target)
    hparams = HullHparams(inner, loss, bound, target, n)
    functions, theorems = (init, predict, update), (hull_regret, hull_stages)
    return _stages.booster("gradient_boost_hull", hparams, functions, *theorems)


def init(hp: HullHparams, params: PyTree) -> HullState:
    return HullState(copies.start(hp.inner, hp.n, params))


def predict(hp: HullHparams, state: HullState, context: PyTree) -> Array:
    return stages_of(hp, state, context).after[-1]


@own_name("gradient_boost_hull")
def update(hp: HullHparams, state: HullState, feedback: Feedback) -> HullState:
    _stages.check_played(hp.loss, feedback)
    stages = stages_of(hp, state, feedback.context)
    slopes = _stages.slopes_of(feedback, stages)
    steep = _stages.lipschitz(hp.loss, hp.bound, hp.target)
    return HullState(_stages.teach(hp.inner, state.copies, feedback, stages, slopes, steep))


@own_name("gradient_boost_hull")
def stages_of(hp: HullHparams, state: HullState, context: PyTree) -> Stages:
    votes = _stages.votes_of(hp.inner, state.copies, context)
    steps = steps_of(hp, votes.dtype)
    return _stages.climb(votes, 1 - steps, steps)


@public
def hull_regret(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    """Theorem 14 against the function `apply(u, .)`.

    The regrets of the copies to it are measured, so the theorem holds for every function; they can
    be large for one that is no convex combination of base functions.
    """
    parts = open_account, add_round, both_sides
    return _stages.theorem("hull_regret", "Luo 2016, theorem 14", apply, parts, BOOSTED)


@public
def hull_stages(apply: Callable[[PyTree, PyTree], Array] = dot) -> Theorem:
    """The step of theorem 14 from a stage to the next; the sides are those of the tightest one."""
    parts = open_account, add_round, one_stage
    return _stages.theorem("hull_stages", "Luo 2016, proof of theorem 14", apply, parts, BOOSTED)


def open_account(hp: HullHparams, state: HullState, u: PyTree) -> Account:
    return _stages.open_account(hp.n, u)


def add_round(
    apply: Partial,
    hp: HullHparams,
    account: Account,
    state: HullState,
    feedback: Feedback,
    u: PyTree,
) -> Account:
    stages, f = stages_of(hp, state, feedback.context), apply(u, feedback.context)
    given = feedback, stages, jnp.ones_like(stages.votes), f, feedback.loss
    return _stages.add_round(numbers_of(hp, account), account, *given)


def both_sides(hp: HullHparams, account: Account, u: PyTree) -> Certificate:
    own = numbers_of(hp, account)
    drift = 8 * own.smooth * hp.bound**2 * account.rounds.past / hp.n
    published = _stages.worst(account) + drift
    return _stages.regret_sides(own, account, published)


def one_stage(hp: HullHparams, account: Account, u: PyTree) -> Certificate:
    return _stages.step_sides(numbers_of(hp, account), account)


def numbers_of(hp: HullHparams, account: Account) -> Numbers:
    at = hp.loss, hp.bound, hp.target
    constants = _stages.lipschitz(*at), _stages.smooth(*at), 0.0
    return Numbers(steps_of(hp, account.gaps.dtype), 1.0, hp.bound, *constants)


def steps_of(hp: HullHparams, dtype: DTypeLike) -> Float[Array, " n"]:
    r"""$\eta_1, \dots, \eta_N$."""
    return jnp.asarray(2 / (np.arange(hp.n) + 2), dtype)


def _boosts(learner: Learner) -> bool:
    return learner.update_fn is update


BOOSTED = About("a `gradient_boost_hull`", _boosts)
