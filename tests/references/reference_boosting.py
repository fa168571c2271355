"""Batch boosting for classification in plain NumPy, written from the papers.

Sources: Shalev-Shwartz 2007, section 6.1 (exponential weights), and Luo 2016, section 2.2
(NormalHedge). Labels are -1 or +1, and sign(0) = +1. A weak learner is a function
(x, y, weights) -> (predictions, description). The edge of h is (1/2) sum_i weights_i y_i h(x_i).
The online boosters are in reference_online_boosting.py.
"""

import math
from types import SimpleNamespace

import numpy as np


def sign(a):
    return np.where(np.asarray(a) >= 0, 1.0, -1.0)


def weighted_error(weights, y, h):
    return weights[h != y].sum() / weights.sum()


def best(candidates, y, weights):
    """The candidate of the largest edge. The first one wins a tie, where rounding counts as tie."""
    top = None
    for h, description in candidates:
        edge = weights @ (y * h) / 2
        if top is None or edge > top[0] + 1e-12:
            top = edge, h, description
    return top[1], top[2]


def binary_stump(x, y, weights):
    """h(x) = s (2 x_j - 1) for features 0 and 1, described by (j, s): Luo 2016, section 2.2.1."""
    pairs = [(j, s) for j in range(x.shape[1]) for s in (1, -1)]
    return best(((s * (2.0 * x[:, j] - 1), (j, s)) for j, s in pairs), y, weights)


def real_stump(x, y, weights):
    """h(x) = s if x_j > threshold, else -s, described by (j, threshold, s). A threshold is the
    middle of two neighbour values of the feature, so no stump is constant."""
    triples = []
    for j in range(x.shape[1]):
        values = np.unique(x[:, j])
        triples += [(j, c, s) for c in (values[1:] + values[:-1]) / 2 for s in (1, -1)]
    return best(
        ((s * np.where(x[:, j] > c, 1.0, -1.0), (j, c, s)) for j, c, s in triples), y, weights
    )


def real_feature(x, y, weights):
    """h(x) = s x_j with |x_j| <= 1, described by (j, s): a hypothesis with real values."""
    pairs = [(j, s) for j in range(x.shape[1]) for s in (1, -1)]
    return best(((s * x[:, j], (j, s)) for j, s in pairs), y, weights)


def batch(x, y, rounds, weak, weigh, step):
    """The loop of every batch booster: weigh(t, state) gives the weights, step(state, weights, v)
    with v = y h gives alpha and the next state. errors[t] belongs to the vote after round t."""
    state, votes, log = np.zeros(len(y)), np.zeros(len(y)), []
    for t in range(1, rounds + 1):
        weights = weigh(t, state)
        h, description = weak(x, y, weights)
        alpha, state = step(state, weights, y * h)
        votes = votes + alpha * h
        log.append((weights, weights @ (y * h) / 2, alpha, h, votes, description))
    weights, edges, alphas, h, votes = (
        np.array(column) for column in list(zip(*log, strict=True))[:5]
    )
    errors = np.mean(sign(votes) != y, axis=1)
    margins = y * votes[-1] / max(np.abs(alphas).sum(), 1e-300)
    return SimpleNamespace(
        weights=weights,
        edges=edges,
        alphas=alphas,
        h=h,
        votes=votes,
        errors=errors,
        margins=margins,
        zeros=np.mean(weights == 0, axis=1),
        descriptions=[row[5] for row in log],
    )


def primal_dual(x, y, rounds, weak, rule):
    """Shalev-Shwartz 2007, section 6.1: weights softmax(theta), then theta -= alpha v. A hypothesis
    without a positive edge gets alpha = 0."""

    def weigh(t, theta):
        weights = np.exp(theta - theta.max())
        return weights / weights.sum()

    def step(theta, weights, v):
        alpha = rule(weights, v) if weights @ v > 0 else 0.0
        return alpha, theta - alpha * v

    return batch(x, y, rounds, weak, weigh, step)


def majority(x, y, rounds, gamma, weak=binary_stump):
    """Equation (3.11) with c = 1 / (2 gamma): alpha = 2 gamma in each round."""
    return primal_dual(x, y, rounds, weak, lambda weights, v: 2 * gamma)


def adaboost(x, y, rounds, cap=None, weak=binary_stump):
    """Equations (6.5) and (6.6). A hypothesis without an error needs a cap."""

    def rule(weights, v):
        right, wrong = weights[v > 0].sum(), weights[v < 0].sum()
        if wrong == 0 and cap is None:
            raise ValueError("no error: alpha is infinite without a cap")
        alpha = 0.5 * math.log(right / wrong) if wrong > 0 else math.inf
        return alpha if cap is None else min(cap, alpha)

    return primal_dual(x, y, rounds, weak, rule)


def gentleboost(x, y, rounds, weak=binary_stump):
    """alpha = <weights, v>, after (6.11). For h = -1, +1: the least squares fit of y by alpha h."""
    return primal_dual(x, y, rounds, weak, lambda weights, v: weights @ v)


def line_search(x, y, rounds, cap=None, weak=real_feature):
    """(3.12) for real values: alpha in [0, cap] of the least sum_i weights_i exp(-alpha v_i)."""

    def rule(weights, v):
        gain = lambda alpha: np.sum(weights * v * np.exp(-alpha * v))
        if cap is None and np.all(v[weights > 0] >= 0):
            raise ValueError("no error: alpha is infinite without a cap")
        low, high = 0.0, 1.0 if cap is None else cap
        while cap is None and gain(high) > 0:
            high *= 2
        return high if gain(high) >= 0 else bisect(gain, low, high)

    return primal_dual(x, y, rounds, weak, rule)


def bisect(decreasing, low, high):
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if decreasing(middle) > 0 else (low, middle)
    return (low + high) / 2


def nh_weights(t, s):
    """NormalHedge: c with mean_i exp([s_i]_-^2 / c) = e. Uniform if no s is below 0."""
    low = np.minimum(s, 0) * (s < -1e-12)  # a rounding error is not a debt
    if not low.any():
        return np.full(len(s), 1 / len(s))
    top, count = np.max(low**2), len(s)
    # log of the mean, less 1; at c = top / ln(count e) one term alone is as large as the sum wanted
    excess = lambda u: top / np.exp(u) + np.log(np.mean(np.exp((low**2 - top) / np.exp(u)))) - 1
    c = np.exp(bisect(excess, np.log(top / (1 + np.log(count))), np.log(top)))
    weights = -low * np.exp((low**2 - top) / c)
    return weights / weights.sum()


def nh_dt_weights(t, s):
    """NormalHedge.DT: exp([s - 1]_-^2 / (3 t)) - exp([s + 1]_-^2 / (3 t)), divided by its sum."""
    above, below = np.minimum(s - 1, 0) ** 2 / (3 * t), np.minimum(s + 1, 0) ** 2 / (3 * t)
    weights = np.exp(above - above.max()) - np.exp(below - above.max())
    return weights / weights.sum()


def nh_step(s, weights, v):
    return 1.0, s + v / 2 - weights @ v / 2


def nh_boost(x, y, rounds, weak=binary_stump):
    """Luo 2016, algorithm 5."""
    return batch(x, y, rounds, weak, nh_weights, nh_step)


def nh_boost_dt(x, y, rounds, weak=binary_stump):
    """Luo 2016, algorithm 4."""
    return batch(x, y, rounds, weak, nh_dt_weights, nh_step)


def exponential_loss(run, y):
    """After each round: mean exp(-y votes), its bound (6.9) for any alpha, and its bound (6.10) for
    AdaBoost without a cap, GentleBoost and the line search. All rules but NH-Boost, |h| <= 1."""
    left = np.mean(np.exp(-y * run.votes), axis=1)
    any_alpha = np.exp(np.cumsum(run.alphas**2 / 2 - 2 * run.alphas * run.edges))
    return left, any_alpha, np.exp(np.cumsum(-2 * run.edges**2))


def theorem3(run, theta=0.0):
    """Both sides for NH-Boost.DT: the share of margins <= theta < 2 mean edge, and its bound. The
    exponent is the one of the proof, T (2 gamma - theta)^2 / 12."""
    T, gap = len(run.edges), 2 * run.edges.mean() - theta
    left, top = np.mean(run.margins <= theta + 1e-12), (math.exp(4 / 3) - 1) * (math.log(T) + 1) / 2
    return left, top / math.expm1(T * gap**2 / 12) if gap > 0 else math.inf
