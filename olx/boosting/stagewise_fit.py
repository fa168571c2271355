r"""`fit_stagewise`: play a stagewise learner against its oracle, and keep the ensemble.

The predictions after $N$ rounds are $\sum_i c_i g_i$. Shrinkage multiplies the coefficients of all
earlier hypotheses by $1 - \eta_i$.

Luo, Optimal and Adaptive Online Learning, 2016, appendix B.2.3.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from olx import _check as check
from olx._cache import compiled
from olx._pytree import pytree
from olx._refusal import public
from olx.boosting.fit import Ensemble
from olx.boosting.oracle import Nature, Question, ask, feedback_of, mean_loss, nature
from olx.boosting.stagewise import StagewiseState, factors
from olx.boosting.weak import legal
from olx.core import Learner
from olx.losses.score import ScoreLoss


@pytree
class Fitted:
    """The result of `fit_stagewise`."""

    ensemble: Ensemble  # its `votes` are the predictions
    losses: Float[np.ndarray, " T+1"]  # the mean loss before the first round and after each


@public
def fit_stagewise(inner: Learner, weak: Any, targets: Any, loss: ScoreLoss, rounds: int) -> Fitted:
    """Fit targets by a sum of hypotheses.

    inner: `stagewise` or `shrunken_stagewise`.
    weak: a weak learner with hypotheses of -1 and +1, such as `stumps(rows)`, or a function of the
        predictions f and the step eta that gives the values of a hypothesis in [-1, 1].
    targets: the outcomes of the loss, one per row.

    >>> import numpy as np, olx
    >>> rows, targets = np.arange(6.0)[:, None], np.array([0.1, 0.2, 0.9, 0.8, 0.4, 0.5])
    >>> weak = olx.boosting.stumps(rows)
    >>> learner = olx.boosting.stagewise(0.05)
    >>> fitted = fit_stagewise(learner, weak, targets, olx.losses.squared, 60)
    >>> bool(fitted.losses[-1] < fitted.losses[0] / 10), fitted.ensemble.votes(rows).shape
    (True, (6,))
    """
    check.count("rounds", rounds)
    game = nature(inner, weak, targets, loss)
    (state, question, value), kept = _first(game), []
    coefficients, losses = np.zeros(0), [float(value)]
    for _ in range(rounds):
        hypothesis, told = game.oracle.answer(question)
        values = jnp.asarray(legal(told, len(told)), question.f.dtype)
        state, (keep, step), question, value = _next(game, state, values)
        kept.append(hypothesis)
        added = float(step) if np.any(told) else 0.0  # the oracle may answer 0
        coefficients = np.append(coefficients * float(keep), added)
        losses.append(float(value))
    ensemble = Ensemble(tuple(kept), coefficients, game.oracle.predict, game.oracle.prepare)
    return Fitted(ensemble, np.array(losses))


@compiled
def _first(hp: Nature) -> tuple[StagewiseState, Question, Array]:
    state = jax.tree.map(jnp.asarray, hp.inner.init(jnp.zeros_like(hp.targets)))
    return state, ask(hp, state.f, state.stats), mean_loss(hp.loss, hp.targets, state.f)


@compiled
def _next(
    hp: Nature, state: StagewiseState, values: Array
) -> tuple[StagewiseState, tuple, Question, Array]:
    feedback = feedback_of(hp, state.f, values)
    scales = factors(hp.inner.hparams, state, feedback)
    state = hp.inner.update(state, feedback)
    value = mean_loss(hp.loss, hp.targets, state.f)
    return state, scales, ask(hp, state.f, state.stats), value
