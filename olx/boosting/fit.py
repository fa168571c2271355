r"""`boost_with`: play a booster against a weak learner, and keep the ensemble.

$$H(x) = \operatorname{sign} f(x), \qquad f(x) = \sum_t \alpha_t h_t(x), \qquad
  \text{margin } y f(x) / \sum_t |\alpha_t| .$$

The sign of 0 is $+1$. Errors count a vote of 0 for an example of label $-1$, as predictions do.

The rounds are those of `olx.play` with `olx.boosting.adversary`. In addition this driver keeps the
hypotheses, follows the error, and may stop early. It stops at a hypothesis whose edge is not
positive, which tells the booster nothing new; this hypothesis is not kept. An edge of at most
$8 \epsilon \sum_i p_i |v_i|$, with the resolution $\epsilon$ of the weights, is 0 up to rounding:
on constant features AdaBoost would else keep copies of one hypothesis for such edges.

Luo, Optimal and Adaptive Online Learning, 2016, section 2.2.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from olx import _check as check
from olx._compiled import compiled
from olx._pytree import pytree, static
from olx._refusal import RefusedType, RefusedValue, own_name, public, public_as
from olx.boosting.booster import as_booster
from olx.boosting.weak import Weak, WeakLearner, as_weak, check_labels
from olx.core import Learner, Rounds
from olx.losses.points import linear_feedback
from olx.streams.checks import check_params, judge, needs_of, remedy_of


@pytree
class Ensemble:
    """Hypotheses that vote with their coefficients; a pytree."""

    hypotheses: tuple  # as the weak learner made them
    coefficients: Float[np.ndarray, " T"]
    predict_fn: Callable[..., ArrayLike] = static()  # (hypothesis, prepared rows) -> values
    prepare_fn: Callable[[object], object] = static()  # rows -> what `predict_fn` takes

    def __len__(self) -> int:
        return len(self.hypotheses)

    def each(self, rows: object) -> Iterator[np.ndarray]:
        """The values of each hypothesis on the rows."""
        ready = self.prepare_fn(rows)
        return (np.asarray(self.predict_fn(one, ready), float) for one in self.hypotheses)

    @public_as("Ensemble")
    def votes(self, rows: object) -> Float[np.ndarray, " N"]:
        """f(x) of each row."""
        votes = np.zeros(())
        for a, values in zip(self.coefficients, self.each(rows), strict=True):
            votes = votes + a * values
        return votes

    def predict(self, rows: object) -> Float[np.ndarray, " N"]:
        """-1 or +1 for each row."""
        return sign(self.votes(rows))

    @public_as("Ensemble")
    def margins(self, rows: object, labels: ArrayLike) -> Float[np.ndarray, " N"]:
        """The margin of each row, in [-1, 1]."""
        votes = self.votes(rows)
        labels = check_labels(labels, len(votes))
        return labels * votes / np.sum(np.abs(self.coefficients))

    @public_as("Ensemble")
    def errors(self, rows: object, labels: ArrayLike) -> Float[np.ndarray, " T"]:
        """The share of rows that the first t hypotheses classify wrongly, for each t."""
        votes, seen = np.zeros(()), []
        for a, values in zip(self.coefficients, self.each(rows), strict=True):
            labels, votes = check_labels(labels, len(values)), votes + a * values
            seen.append(np.mean(sign(votes) != labels))
        return np.array(seen)

    @public
    def first(self, rounds: int) -> "Ensemble":
        """The ensemble after the first rounds."""
        check.count("rounds", rounds)
        if rounds > len(self):
            raise RefusedValue(f"there are {len(self)} rounds, got {rounds}.")
        part = self.hypotheses[:rounds], self.coefficients[:rounds]
        return Ensemble(*part, self.predict_fn, self.prepare_fn)

    @public_as("Ensemble")
    def rounds(self, rows: object, labels: ArrayLike) -> Rounds:
        """The rounds of the game on the training rows, to replay or certify it with a driver."""
        values = np.stack(list(self.each(rows)))
        return Rounds(None, check_labels(labels, values.shape[1]) * values)


def sign(votes: np.ndarray) -> np.ndarray:
    """-1 or +1; the sign of 0 is +1."""
    return np.where(votes >= 0, 1.0, -1.0)


@pytree
class Boosted:
    """The result of `boost_with`; arrays have one entry per round.

    Errors are shares of rows, whatever their first weights.
    """

    ensemble: Ensemble
    edges: Float[np.ndarray, " T"]  # half of <p, v>
    errors: Float[np.ndarray, " T"]  # the training error of the vote after the round
    zeros: Float[np.ndarray, " T"]  # the share of examples without weight in the round
    validation_errors: Float[np.ndarray, " T"] | None
    weights: Float[np.ndarray, " N"]  # of the examples after the last round
    stopped: str = static()  # why it stopped

    @property
    def best(self) -> int:
        """The number of rounds with the least validation error; without it, the training error."""
        seen = self.errors if self.validation_errors is None else self.validation_errors
        return int(np.argmin(seen)) + 1


class _Round(NamedTuple):
    state: PyTree
    weights: Array  # for the next round
    alpha: Array
    edge: Array


@public
def boost_with(
    inner: Learner,
    weak: Weak,
    labels: ArrayLike,
    rounds: int,
    *,
    weights: ArrayLike | None = None,
    validation: tuple[object, ArrayLike] | None = None,
    patience: int | None = None,
    until_fitted: bool = False,
) -> Boosted:
    """Boost a weak learner for at most `rounds` rounds.

    inner: a booster, such as `olx.boosting.adaboost()`, or any learner of experts.
    weak: `stumps(rows)`, a `weak_learner`, or a function from weights to predictions in [-1, 1].
    labels: -1 or +1, one per training row.
    weights: the first weights of the examples; equal if None.
    validation: rows and labels whose error is followed.
    patience: stop when the validation error has not improved for that many rounds.
    until_fitted: whether to stop when the training error is 0.

    >>> import numpy as np, olx
    >>> rows = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> labels = np.array([-1, -1, -1, 1])
    >>> boosted = boost_with(olx.boosting.adaboost(), olx.boosting.stumps(rows), labels, 3)
    >>> boosted.ensemble.predict(rows).tolist(), boosted.errors.tolist()
    ([-1.0, -1.0, -1.0, 1.0], [0.25, 0.25, 0.0])
    """
    learner, labels = as_booster(inner), check_labels(labels)
    weak = as_weak(weak)
    check.count("rounds", rounds)
    check.flag("until_fitted", until_fitted)
    watch = _Watch(weak, validation, patience)
    state, p = _start(learner, weights, len(labels))
    needs, votes, kept, stopped = needs_of(learner, None), np.zeros(len(labels)), [], "all rounds"
    for t in range(rounds):
        now = np.asarray(p, float)
        hypothesis, h = weak.answer(now, labels)
        v = labels * h
        judge(needs, p, Rounds(None, v[None]), t)
        seen = _settle(learner, state, p, jnp.asarray(v, p.dtype))
        edge, alpha = float(seen.edge), float(seen.alpha)
        rounding = 8 * float(jnp.finfo(p.dtype).eps) * (now @ np.abs(v))
        if not edge > rounding:
            zero = "0 up to rounding: " if abs(edge) <= rounding else ""
            stopped = f"the edge of round {t + 1} is {zero}{edge:.3g}"
            break
        state, p = seen.state, seen.weights
        votes += alpha * h
        error = float(np.mean(sign(votes) != labels))
        kept.append((hypothesis, alpha, edge, error, float(np.mean(now == 0))))
        if until_fitted and error == 0:
            stopped = "the training error is 0"
            break
        if watch.is_over(hypothesis, alpha):
            stopped = f"the validation error has not improved for {patience} rounds"
            break
    if not kept:
        raise RefusedValue(
            f"{stopped}, so no hypothesis is kept; a weak learner must do better than chance on "
            "the weighted examples. Its negative is a better hypothesis if the edge is negative."
        )
    hypotheses, *columns = zip(*kept, strict=True)
    alphas, edges, errors, zeros = map(np.array, columns)
    ensemble = Ensemble(hypotheses, alphas, weak.predict, weak.prepare)
    return Boosted(ensemble, edges, errors, zeros, watch.curve, np.asarray(p), stopped)


def _start(learner: Learner, weights: ArrayLike | None, count: int) -> tuple[PyTree, Array]:
    """The first state and the first weights of the examples."""
    params = jnp.full(count, 1 / count) if weights is None else jnp.asarray(weights, float)
    if params.shape != (count,):
        raise RefusedType(f"`weights` has shape {params.shape}; give one per label, {count}.")
    check.non_negative("weights", params, each=True)
    total = check.positive("the sum of `weights`", float(params.sum()))
    params = params / total
    check_params(params)
    for need in learner.needs:
        if need.where == "params" and not need.legal_fn(learner.hparams, params, None):
            raise RefusedValue(f"{need.owner}: {need.demand}{remedy_of(need)}.")
    return _begin(learner, params)


@compiled
def _begin(learner: Learner, params: Array) -> tuple[PyTree, Array]:
    state = jax.tree.map(jnp.asarray, learner.init(params))
    return state, learner.predict(state)


@compiled
def _settle(learner: Learner, state: PyTree, p: Array, v: Array) -> _Round:
    """The rest of a round, after the weak learner has answered."""
    feedback = linear_feedback(p, v, 1.0)
    state = learner.update(state, feedback)
    alpha = learner.hparams.coefficient.alpha(p, v)
    return _Round(state, learner.predict(state), alpha, jnp.vdot(p, v) / 2)


class _Watch:
    """The error on validation rows, and for how many rounds it has not improved."""

    def __init__(
        self,
        weak: WeakLearner,
        validation: tuple[object, ArrayLike] | None,
        patience: int | None,
    ) -> None:
        self.curve = None
        self.weak, self.patience = weak, patience
        if patience is not None:
            check.count("patience", patience)
            if validation is None:
                raise RefusedType("`patience` needs `validation`, a pair of rows and labels.")
        if validation is None:
            return
        if not isinstance(validation, tuple) or len(validation) != 2:
            raise RefusedType("`validation` must be a pair of rows and labels.")
        self.labels = check_labels(validation[1])
        self.rows = weak.prepare(validation[0])
        self.votes, self.curve = np.zeros(len(self.labels)), np.zeros(0)

    def is_over(self, hypothesis: object, alpha: float) -> bool:
        if self.curve is None:
            return False
        values = np.asarray(self.weak.predict(hypothesis, self.rows))
        with own_name("boost_with: `validation`"):
            check_labels(self.labels, len(values))
        self.votes = self.votes + alpha * values
        self.curve = np.append(self.curve, np.mean(sign(self.votes) != self.labels))
        since = len(self.curve) - 1 - int(np.argmin(self.curve))
        return self.patience is not None and since >= self.patience
