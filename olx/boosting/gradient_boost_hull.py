r"""Online gradient boosting, against convex combinations of base functions.

With $\eta_i = 2 / (i + 1)$, $N$ copies of a base learner make the prediction in stages, from
$y^0 = 0$, as the method of Frank and Wolfe does:

$$y^i = (1 - \eta_i)\, y^{i-1} + \eta_i A^i(x_t), \qquad y_t = y^N.$$

With $g^i = \ell_t'(y^{i-1})$, copy $i$ pays the linear loss $a \mapsto g^i a / L_D$. There is no
projection, no shrinkage, and no number to tune but $N$. $L_D$ and $\beta_D$ are the constants of the
loss on $[-D, D]$ (`olx.losses.BallConstants`), where base predictions are.

Let $f$ be a convex combination of base functions, $\Delta_i = \sum_s \ell_s(y^i_s) -
\ell_s(f(x_s))$, and $R_i = \sum_s g^i_s (A^i(x_s) - f(x_s))$, which is $L_D$ times the regret of
copy $i$. For rounds of weight 1

$$\Delta_i \le (1 - \eta_i) \Delta_{i-1} + \eta_i R_i + 2 \eta_i^2 \beta_D D^2 t, \qquad
  \Delta_N \le \max_i R_i + \frac{8 \beta_D D^2 t}N.$$

`right` has the sum of $\frac{\beta_D}2 (A^i - y^{i-1})^2$ in place of its bound.

Luo, Optimal and Adaptive Online Learning, 2016, algorithm 10 and theorem 14; Beygelzimer, Hazan,
Kale, Luo, Online Gradient Boosting, 2015.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from olx import _check as check
from olx._pytree import pytree, static
from olx.boosting import _copies as copies
from olx.boosting import _radius, _stages
from olx.boosting._stages import Stages
from olx.core import Feedback, Learner, Scalar
from olx.losses.score import ScoreLoss
from olx.needs import PARTS, within


@pytree
class HullHparams:
    inner: Learner
    loss: ScoreLoss
    bound: Scalar  # D
    target: Scalar  # the largest size of an outcome
    n: int = static()


class HullState(NamedTuple):
    copies: PyTree  # stacked states


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
    _stages.check_base("gradient_boost_hull", inner, n)
    _radius.check_loss("gradient_boost_hull", loss)
    bound = check.positive("gradient_boost_hull", "bound", bound)
    target = check.positive("gradient_boost_hull", "target", target)
    return Learner(
        HullHparams(inner, loss, bound, target, n),
        init,
        predict,
        update,
        facts=_stages.facts_of(inner),
        needs=(
            *within(inner, "inner", *PARTS),
            *within(loss, "loss", "outcome"),
            _radius.target_need("gradient_boost_hull"),
        ),
    )


def init(hp: HullHparams, params: PyTree) -> HullState:
    return HullState(copies.start(hp.inner, hp.n, params))


def predict(hp: HullHparams, state: HullState, context: PyTree) -> Array:
    return stages_of(hp, state, context).after[-1]


def update(hp: HullHparams, state: HullState, feedback: Feedback) -> HullState:
    _stages.check_played("gradient_boost_hull", hp.loss, feedback)
    stages = stages_of(hp, state, feedback.context)
    slopes = _stages.slopes_of(feedback, stages)
    steep = _radius.lipschitz(hp.loss, hp.bound, hp.target)
    return HullState(_stages.teach(hp.inner, state.copies, feedback, stages, slopes, steep))


def stages_of(hp: HullHparams, state: HullState, context: PyTree) -> Stages:
    votes = _stages.votes_of("gradient_boost_hull", hp.inner, state.copies, context)
    steps = jnp.asarray(2 / (np.arange(hp.n) + 2), votes.dtype)
    return _stages.climb(votes, 1 - steps, steps)
