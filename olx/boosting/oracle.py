r"""The oracle of batch gradient boosting, and `fit_stagewise`, which plays a learner against it.

The oracle answers with the hypothesis that lowers the loss most. For hypotheses $\pm 1$ the loss of
$f + \eta g$ is linear in $g$: with the gains $a_k = \ell(f_k - \eta, y_k) - \ell(f_k + \eta, y_k)$
it falls with $\sum_k a_k g(x_k)$. So $\arg\min_g \ell(f + \eta g)$ is the weighted classification
of the labels $\operatorname{sign} a_k$ with the weights $|a_k|$. A weak learner that searches
exhaustively, such as `stumps`, is an exact oracle for any loss. If its hypothesis does not lower
the loss, the answer is $g = 0$. Other oracles are functions of $f$ and $\eta$.

`fit_stagewise` keeps the ensemble. The predictions after $N$ rounds are $\sum_i c_i g_i$. Shrinkage
multiplies the coefficients of all earlier hypotheses by $1 - \eta_i$.

Luo, Optimal and Adaptive Online Learning, 2016, appendix B.2.3.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from olx import _check as check
from olx._compiled import compiled
from olx._pytree import pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.boosting.fit import Ensemble
from olx.boosting.stagewise import StagewiseHparams, StagewiseState, factors
from olx.boosting.weak import WeakLearner, legal, no_rows, on_training_rows, shaped
from olx.core import Adversary, Feedback, Learner, Rounds
from olx.losses.score import ScoreLoss
from olx.streams.checks import judge, needs_of

Hypotheses = WeakLearner | Callable[[np.ndarray, float], ArrayLike]  # of f and eta


@dataclasses.dataclass(frozen=True, eq=False)
class Oracle:
    """How the question of a round is answered, and how to predict with the answers."""

    answer: Callable[
        ..., tuple[object, np.ndarray]
    ]  # (question) -> (hypothesis, values on the rows)
    predict: Callable[..., ArrayLike]  # (hypothesis, prepared rows) -> values
    prepare: Callable[[object], object]  # rows -> what `predict` takes


@pytree
class Nature:
    inner: Learner
    loss: ScoreLoss
    targets: Float[Array, " m"]
    oracle: Oracle = static()


class Question(NamedTuple):
    f: Float[Array, " m"]
    eta: Float[Array, ""]
    gains: Float[Array, " m"]  # the loss at f - eta minus that at f + eta, per row
    rise: Float[Array, ""]  # their mean minus the loss at f, summed up over rows; never negative


@pytree
class Fitted:
    """The result of `fit_stagewise`."""

    ensemble: Ensemble  # its `votes` are the predictions
    losses: Float[np.ndarray, " T+1"]  # the mean loss before the first round and after each


@public
def fit_stagewise(
    inner: Learner, weak: Hypotheses, targets: ArrayLike, loss: ScoreLoss, rounds: int
) -> Fitted:
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
        hypothesis, answer = game.oracle.answer(question)
        values = jnp.asarray(legal(answer, len(answer)), question.f.dtype)
        state, (keep, step), question, value = _next(game, state, values)
        kept.append(hypothesis)
        added = float(step) if np.any(answer) else 0.0  # the oracle may answer 0
        coefficients = np.append(coefficients * float(keep), added)
        losses.append(float(value))
    ensemble = Ensemble(tuple(kept), coefficients, game.oracle.predict, game.oracle.prepare)
    return Fitted(ensemble, np.array(losses))


@public
def oracle(inner: Learner, weak: Hypotheses, targets: ArrayLike, loss: ScoreLoss) -> Adversary:
    """The oracle as the adversary of a stagewise learner, for `olx.play`.

    inner: the learner that it answers; the oracle uses its steps.
    weak, targets, loss: as in `olx.boosting.fit_stagewise`.

    >>> import jax.numpy as jnp, numpy as np, olx
    >>> rows, targets = np.arange(6.0)[:, None], np.array([0.1, 0.2, 0.9, 0.8, 0.4, 0.5])
    >>> learner = olx.boosting.shrunken_stagewise(0.05)
    >>> nature = oracle(learner, olx.boosting.stumps(rows), targets, olx.losses.squared)
    >>> run = olx.play(learner, nature, jnp.zeros(6), 60)
    >>> bool(run.losses[-1] < run.losses[0] / 10)
    True
    """
    hparams = nature(inner, weak, targets, loss)
    game = Partial(mean_loss, loss, hparams.targets)
    return Adversary(hparams, game, _start, _no_context, _answer)


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


def nature(inner: Learner, weak: Hypotheses, targets: ArrayLike, loss: ScoreLoss) -> Nature:
    """The checked parts of the game of a stagewise learner."""
    check.instance("inner", inner, Learner)
    if not isinstance(inner.hparams, StagewiseHparams):
        raise RefusedType("`inner` must be `stagewise` or `shrunken_stagewise`.")
    check.instance("loss", loss, ScoreLoss)
    seen = np.asarray(targets)
    if seen.ndim != 1 or seen.size == 0 or seen.dtype.kind not in "iuf":
        raise RefusedType(
            f"`targets` must be a vector of numbers, got an array of shape {seen.shape} "
            f"and dtype {seen.dtype}."
        )
    judge(needs_of(None, loss), None, Rounds(None, seen))
    if isinstance(weak, WeakLearner):
        how = Oracle(_BySigns(weak), weak.predict, weak.prepare)
    else:
        check.takes("weak", weak, "f", "eta")
        how = Oracle(_ByFunction(weak), on_training_rows, no_rows)
    return Nature(inner, loss, jnp.asarray(seen, float), how)


def mean_loss(loss: ScoreLoss, targets: Array, f: Array, outcome: PyTree = None) -> Array:
    """The mean loss of the predictions; the hypothesis of the round is not used."""
    return jnp.mean(loss(f, targets))


def ask(hp: Nature, f: Array, stats: PyTree) -> Question:
    """What the oracle is asked after the predictions f."""
    eta = jnp.asarray(hp.inner.hparams.eta.at(stats, None), f.dtype)
    below, here, above = (hp.loss(f + move, hp.targets) for move in (-eta, 0.0, eta))
    return Question(f, eta, below - above, jnp.sum((below + above) / 2 - here))


def feedback_of(hp: Nature, f: Array, values: Array) -> Feedback:
    """What the learner is told after the answer."""
    loss = Partial(mean_loss, hp.loss, hp.targets)
    value, grad = jax.value_and_grad(loss)(f)
    return Feedback(None, f, values, loss, value, grad)


@dataclasses.dataclass(frozen=True, eq=False)
class _BySigns:
    """Weighted classification of the signs of the gains."""

    weak: WeakLearner

    @own_name("oracle")
    def __call__(self, question: Question) -> tuple[object, np.ndarray]:
        gains = np.asarray(question.gains, float)
        total = np.abs(gains).sum()
        weights = np.abs(gains) / total if total > 0 else np.full(gains.size, 1 / gains.size)
        hypothesis, values = self.weak.answer(weights, np.where(gains >= 0, 1.0, -1.0))
        between = np.flatnonzero(np.abs(values) != 1)
        if between.size:
            raise RefusedValue(
                f"hypotheses of a weak learner must be -1 or +1, got {values[between[0]]} in row "
                f"{between[0]}; give an oracle for real hypotheses as a function of f and eta."
            )
        lowers = gains @ values / 2 > float(question.rise)
        return hypothesis, values if lowers else np.zeros_like(values)


@dataclasses.dataclass(frozen=True, eq=False)
class _ByFunction:
    function: Callable[[np.ndarray, float], ArrayLike]

    def __call__(self, question: Question) -> tuple[np.ndarray, np.ndarray]:
        f = np.asarray(question.f)
        values = shaped(self.function(f, float(question.eta)), len(f))
        return values, values


def _start(hp: Nature) -> PyTree:
    return hp.inner.init(jnp.zeros_like(hp.targets)).stats


def _no_context(hp: Nature, stats: PyTree) -> None:
    return None


def _answer(hp: Nature, stats: PyTree, f: Array) -> tuple[Array, PyTree]:
    like, question = jax.ShapeDtypeStruct(f.shape, f.dtype), ask(hp, f, stats)
    values = jax.pure_callback(partial(_call, hp.oracle), like, question, vmap_method="sequential")
    return values, hp.inner.hparams.eta.update(stats, feedback_of(hp, f, values))


def _call(oracle: Oracle, question: Question) -> np.ndarray:
    if not np.all(np.isfinite(question.f)):  # a learner that went wrong before, as one of a batch
        return np.full(question.f.shape, np.nan, question.f.dtype)
    return oracle.answer(question)[1].astype(question.f.dtype)
