r"""Metrics of classes and of scores, each a function of a few sums.

*Counts.* A mistake on two classes is a prediction of the other one; `olx.losses.margin` says what a
mistake is, so a score of 0 is one. From the counts of true, predicted and correct rounds per class
come accuracy, precision, recall, $F_1$ and the balanced accuracy, as scikit-learn defines them.
Where there is nothing to divide by they are 0.

*Ranks.* The area under the ROC curve (AUC) and the average precision need the order of all scores.
Here scores are counted in 256 bins, of equal width in $\operatorname{asinh}(100 s)$: scores closer
than 0.0011 near 0, or than 12 percent far from 0, may share a bin, and those beyond 10,000 do. The
order inside a bin is unknown. Both metrics are the middle between the best and the worst order, so
they are wrong by no more than half of that difference. It is

$$\frac{1}{2} \sum_b \frac{p_b}{P} \frac{n_b}{N}$$

for the AUC, with $p_b$ positive and $n_b$ negative rounds in bin $b$, and 0 if no bin holds both.
Each round gives 512 Booleans, which a program keeps for a chunk of rounds.

*Probabilities.* The score of the logistic loss is the logarithm of the odds of +1. The Brier score
(Brier, 1950) is the squared error of this probability. The expected calibration error (Naeini,
Cooper and Hauskrecht, 2015) is $\sum_b |\sum_{t \in b} (p_t - y_t)| / T$ over 15 bins of equal
width.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.special import digamma

from olx.core import Feedback
from olx.losses.margin import hot, mistaken, rival

BINS, FINE, FAR = 256, 1e-2, 1e4  # of scores: bins are finest below FINE, and end at FAR
PARTS = 15  # bins of probabilities


def class_counts(feedback: Feedback) -> Bool[Array, "3 k"]:
    """Of which class the round is, which one is predicted, and which one is so correctly."""
    scores, label = feedback.action, feedback.outcome
    wrong = mistaken(scores, label)
    if jnp.ndim(scores):
        truth = hot(scores, label)
        other = rival(scores, truth)
    else:
        truth = jnp.stack([label < 0, label > 0])
        other = ~truth
    predicted = jnp.where(wrong, other, truth)
    return jnp.stack([truth, predicted, truth & ~wrong])


def mistakes_by_class(feedback: Feedback) -> Bool[Array, "2"]:
    """Whether the round is a mistake on the class -1, and whether it is one on the class +1."""
    label = feedback.outcome
    return jnp.stack([label < 0, label > 0]) & mistaken(feedback.action, label)


def confusion(mistakes: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """A table of truth and prediction, from the mistakes of two classes on these outcomes."""
    wrong, truth = np.asarray(mistakes), np.array([np.sum(outcome < 0), np.sum(outcome > 0)])
    return np.diag(truth - wrong) + np.fliplr(np.diag(wrong))


def accuracy(counts: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The share of correct predictions: 1 minus error."""
    return counts[..., 2, :].sum(-1) / len(outcome)


def balanced_accuracy(counts: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean over classes of the share of their rounds that are predicted correctly."""
    truth, _, hits = np.moveaxis(counts, -2, 0)
    return np.sum(_share(hits, truth), -1) / np.sum(truth > 0, -1)


def precision(counts: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The share of rounds of class +1 among those predicted as +1."""
    _, predicted, hits = np.moveaxis(counts, -2, 0)
    return _share(hits, predicted)[..., 1]


def recall(counts: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The share of rounds predicted as +1 among those of class +1."""
    truth, _, hits = np.moveaxis(counts, -2, 0)
    return _share(hits, truth)[..., 1]


def f1(counts: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The harmonic mean of precision and recall."""
    truth, predicted, hits = np.moveaxis(counts, -2, 0)
    return _share(2 * hits, truth + predicted)[..., 1]


def macro_precision(counts: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean over classes of the precision."""
    truth, predicted, hits = np.moveaxis(counts, -2, 0)
    return _macro(_share(hits, predicted), truth + predicted)


def macro_recall(counts: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean over classes of the recall; 0 for a class that is only predicted."""
    truth, predicted, hits = np.moveaxis(counts, -2, 0)
    return _macro(_share(hits, truth), truth + predicted)


def macro_f1(counts: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean over classes of the harmonic mean of precision and recall."""
    truth, predicted, hits = np.moveaxis(counts, -2, 0)
    return _macro(_share(2 * hits, truth + predicted), truth + predicted)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return part / np.maximum(whole, 1)


def _macro(shares: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The mean over the classes that occur."""
    return np.sum(shares, -1) / np.sum(seen > 0, -1)


def score_bins(feedback: Feedback) -> Bool[Array, "2 256"]:
    """The class and the bin of a score; none if it is NaN."""
    place = jnp.arcsinh(feedback.action / FINE) / math.asinh(FAR / FINE)
    bins = jnp.clip(jnp.floor((1 + place) * BINS / 2), 0, BINS - 1)
    chosen = bins == jnp.arange(BINS, dtype=bins.dtype)
    return jnp.stack([chosen & (feedback.outcome < 0), chosen & (feedback.outcome > 0)])


def auc(bins: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The area under the ROC curve; from 256 bins of scores."""
    negative, positive = np.moveaxis(_all_or_nan(bins, outcome), -2, 0)
    below = np.cumsum(negative, -1) - negative
    pairs = np.sum(positive * (below + negative / 2), -1)
    return _over(pairs, positive.sum(-1) * negative.sum(-1))


def average_precision(bins: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The mean over rounds of class +1 of the precision at their score; from 256 bins of scores."""
    negative, positive = np.moveaxis(_all_or_nan(bins, outcome)[..., ::-1], -2, 0)
    above, false = np.cumsum(positive, -1) - positive, np.cumsum(negative, -1) - negative
    ends = (_precisions(above, positive, false), _precisions(above, positive, false + negative))
    return _over(np.sum(ends, (0, -1)) / 2, positive.sum(-1))


def _precisions(above: np.ndarray, positive: np.ndarray, false: np.ndarray) -> np.ndarray:
    r"""$\sum_{i \le p} (a + i) / (a + i + f)$, with $\sum_i 1 / (x + i)$ as a digamma function."""
    start = above + false + 1.0
    return positive - false * (digamma(start + positive) - digamma(start))


def _all_or_nan(bins: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The counts; NaN if a score was in no bin."""
    complete = bins.sum((-1, -2), keepdims=True) == len(outcome)
    return np.where(complete, bins, np.nan)


def _over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """The quotient; NaN where one class alone occurs."""
    return part / np.where(whole > 0, whole, np.nan)


def brier(feedback: Feedback) -> Array:
    """The mean squared error of the probability of +1; for the logistic loss."""
    return _excess(jax.nn.sigmoid(feedback.action), feedback) ** 2


def probability_bins(feedback: Feedback) -> Float[Array, "15"]:
    """By how much the probability of +1 is too large, in the bin of this probability."""
    share = jax.nn.sigmoid(feedback.action)
    place = jnp.minimum(jnp.floor(share * PARTS), PARTS - 1)
    chosen = (place == jnp.arange(PARTS, dtype=place.dtype)).astype(share.dtype)
    return chosen * _excess(share, feedback)


def _excess(share: Array, feedback: Feedback) -> Array:
    return share - jnp.where(feedback.outcome > 0, 1.0, 0.0)


def calibration(excess: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """The expected calibration error of the probability of +1; for the logistic loss."""
    return np.sum(np.abs(excess), -1) / len(outcome)


def predicted_class(state: object, feedback: Feedback) -> Array:
    """The class that a round counts as: its label, or on a mistake the best of the others.

    It is -1 if the scores name no class, because one is NaN.
    """
    scores, label = feedback.action, feedback.outcome
    other = rival(scores, hot(scores, label))
    second = jnp.sum(jnp.where(other, jnp.arange(scores.shape[-1]), 0))
    second = jnp.where(jnp.any(other), second, -1)
    return jnp.where(mistaken(scores, label), second, label).astype(jnp.int32)
