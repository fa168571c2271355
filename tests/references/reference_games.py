"""Repeated games on hinges in plain NumPy, written from the sources.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007: the dual variables of
figure 7.5, of (7.11) for one hinge in Euclidean space and of (6.5) for a booster.
"""

import numpy as np


def averaged(gamma, a, c, steps):
    """Figure 7.5: the mean of z_1, ..., z_T, and the alpha with c z = sum_i alpha_i a_i."""
    z, alpha = np.zeros(a.shape[1]), np.zeros(len(a))
    sums, radius = [0 * z, 0 * alpha], np.sqrt(2 / c * max(gamma.max(), 0))
    for t in range(1, steps + 1):
        sums = [sums[0] + z, sums[1] + alpha]
        i = np.argmax(gamma - a @ z)
        pull = np.eye(len(a))[i] * (gamma[i] > a[i] @ z)
        z, alpha = z - (c * z - pull @ a) / (c * t), (1 - 1 / t) * alpha + pull / t
        shrink = min(1.0, radius / max(np.linalg.norm(z), 1e-300))
        z, alpha = shrink * z, shrink * alpha
    return sums[0] / steps, sums[1] / steps


def pair_rows(relevance):
    """The directions in the space of scores of all pairs with the first more relevant."""
    unit = np.eye(len(relevance))
    above = [(i, j) for i, a in enumerate(relevance) for j, b in enumerate(relevance) if a > b >= 0]
    return np.array([unit[i] - unit[j] for i, j in above]), [
        relevance[i] - relevance[j] for i, j in above
    ]


def rank_rows(groups, c, steps):
    """Row ranking by figure 7.5, or by the best step on the worst pair where that is better."""
    w, played = np.zeros(groups[0][0].shape[1]), []
    for rows, relevance in groups:
        played.append(rows @ w)
        m, b = pair_rows(relevance)
        if not len(m):
            continue
        a, gamma = m @ rows, np.array(b) - m @ rows @ w
        i = np.argmax(gamma)
        if gamma[i] <= 0:
            continue
        dual = lambda z, alpha, gamma=gamma: gamma @ alpha - c / 2 * z @ z
        size = min(1.0, c * gamma[i] / (a[i] @ a[i]))
        ways = averaged(gamma, a, c, steps), (size * a[i] / c, size * np.eye(len(a))[i])
        w = w + max(ways, key=lambda way: dual(*way))[0]
    return played, w


def classify(x, y, c, margin):
    """(7.11): the best step on one hinge in Euclidean space."""
    w, scores = np.zeros(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        scores.append(w @ row)
        loss = max(0.0, margin - label * scores[-1])
        w = w + min(1.0, c * loss / (row @ row)) / c * label * row
    return np.array(scores)


def boost(v, c):
    """(6.5): the weights of the examples before each round, and the coefficients."""
    total, weights, alphas = np.zeros(v.shape[1]), [], []
    for row in v:
        w = np.exp(-total)
        weights.append(w / w.sum())
        right, wrong = weights[-1][row > 0].sum(), weights[-1][row < 0].sum()
        alphas.append(np.clip(np.log(right / wrong) / 2, 0.0, 1 / c))
        total = total + alphas[-1] * row
    return np.array(weights), np.array(alphas)
