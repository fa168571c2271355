"""Ranking in plain NumPy, written from the sources: solvers, six learners, pair losses.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, sections 5.3.4, 7.3,
7.4 and chapter 8, with the corrections that are stated in `olx.convex`.
"""

import itertools

import numpy as np


def threshold(mu, z):
    """The number that projects `mu` on the simplex of size z, figure 7.1."""
    ranked = np.sort(mu)[::-1]
    sums = np.cumsum(ranked)
    ranks = np.arange(1, len(mu) + 1)
    last = np.max(np.flatnonzero(ranked - (sums - z) / ranks > 0), initial=0)
    return (sums[last] - z) / (last + 1)


def simplex(mu, z):
    return np.maximum(mu - threshold(mu, z), 0.0)


def euclidean_optimal(scores, relevant, margin, c, square, total=1.0):
    """The update of section 7.3.1: both vectors sorted, and the size z by its knots."""
    alpha = np.zeros(len(scores))
    if relevant.all() or not relevant.any() or square == 0:
        return alpha
    mu = np.sort(c * (margin / 2 - scores[relevant]) / square)[::-1]
    nu = np.sort(c * (margin / 2 + scores[~relevant]) / square)[::-1]
    if mu[0] + nu[0] <= 0:
        return alpha
    knots = lambda v: np.cumsum(v) - np.arange(1, len(v) + 1) * v
    z_mu, z_nu = knots(mu), knots(nu)
    points = np.unique(np.r_[0.0, z_mu[z_mu < total], z_nu[z_nu < total], total])
    z = total
    for a, b in itertools.pairwise(points):
        r, s = np.sum(z_mu <= a), np.sum(z_nu <= a)
        at = (s * mu[:r].sum() + r * nu[:s].sum()) / (r + s)
        if a <= at <= b:
            z = at
            break
    alpha[relevant] = simplex(c * (margin / 2 - scores[relevant]) / square, z)
    alpha[~relevant] = simplex(c * (margin / 2 + scores[~relevant]) / square, z)
    return alpha


def interior_point(slopes, a, p, q, alpha, gap=1e-11):
    """Section 7.3.2: the point and the surrogate gap."""
    d = len(alpha)
    lam, nu = np.ones(d), np.zeros(2)
    for _ in range(100):
        s = q - p * alpha
        eta = np.sum(lam * s)
        if eta < gap:
            break
        first, second = slopes(alpha)
        u = -first - 0.1 * eta * p / (d * s) - a.T @ nu
        z = second + lam * p**2 / s
        turn = np.linalg.solve((a / z) @ a.T, a @ (u / z))
        along = (u - a.T @ turn) / z
        change = (lam * p * along + 0.1 * eta / d) / s - lam

        def residual(alpha, lam, nu, aim=0.1 * eta / d):
            dual = slopes(alpha)[0] + lam * p + a.T @ nu
            return np.hypot(np.linalg.norm(dual), np.linalg.norm(lam * (q - p * alpha) - aim))

        t, before = 1.0, residual(alpha, lam, nu)
        while t > 1e-12:
            new = alpha + t * along, lam + t * change, nu + t * turn
            legal = np.all(q - p * new[0] > 0) and np.all(new[1] > 0)
            if legal and residual(*new) <= (1 - 0.01 * t) * before:
                break
            t /= 2
        else:
            break
        alpha, lam, nu = new
    return alpha, eta


def ranking_problem(relevant, total=1.0):
    """The two equalities, the inequalities and the start for label ranking, with a slack."""
    k, sigma = len(relevant), np.where(relevant, 1.0, -1.0)
    a = np.stack([np.r_[sigma, 0.0], np.ones(k + 1)])
    half = total / 2
    inside = np.where(relevant, half / max(relevant.sum(), 1), half / max((~relevant).sum(), 1))
    return a, -np.ones(k + 1), np.zeros(k + 1), np.r_[inside, total]


def euclidean_slopes(scores, relevant, margin, c, square):
    sigma = np.where(relevant, 1.0, -1.0)

    def slopes(alpha):
        own = alpha[:-1]
        first = sigma * (scores + sigma * own * square / c) - margin / 2
        return np.r_[first, 0.0], np.r_[np.full(len(own), square / c), 0.0]

    return slopes


def entropic_slopes(scores, relevant, margin, c):
    sigma = np.where(relevant, 1.0, -1.0)

    def slopes(alpha):
        up = scores * np.exp(sigma * alpha[:-1] / c)
        share = up / (up + 1 - scores)
        return np.r_[sigma * share - margin / 2, 0.0], np.r_[share * (1 - share) / c, 0.0]

    return slopes


def entropic_optimal(scores, relevant, margin, c, total=1.0):
    a, p, q, start = ranking_problem(relevant, total)
    slopes = entropic_slopes(scores, relevant, margin, c)
    return interior_point(slopes, a, p, q, start, 1e-12)[0][:-1]


def entropic_pair(up, down, margin, c, total=1.0):
    """Update II for the entropy: the step of two labels with these shares of weight."""
    a_r, b_r, a_s, b_s = up, 1 - up, down, 1 - down
    mix, cross = a_r * a_s + b_r * b_s, a_r * b_s * a_s * b_r
    root = np.sqrt(margin**2 * mix**2 + 4 * (1 - margin**2) * cross)
    beta = (margin * mix + root) / (2 * (1 - margin) * a_r * b_s)
    return np.clip(c * np.log(beta), 0.0, total)


def label_ranking(rows, masks, margin, c, update, entropy, weights=None):
    """One pass of one of the six algorithms: scores, dual variables, and `acc` at the end.

    c: a number, or one per round.
    """
    k, d = masks.shape[1], rows.shape[1]
    acc = np.zeros((k, d))
    played, alphas = [], []
    weights = np.ones(len(rows)) if weights is None else weights
    rates = np.broadcast_to(c, len(rows))
    for x, relevant, h, c in zip(rows, masks.astype(bool), weights, rates, strict=True):
        if entropy:
            w = np.exp(acc / c - (acc / c).max(1, keepdims=True))
            w /= w.sum(1, keepdims=True)
        else:
            w = acc / c
        scores, sigma, alpha = w @ x, np.where(relevant, 1.0, -1.0), np.zeros(k)
        if relevant.any() and not relevant.all() and x.any():
            r = np.argmin(np.where(relevant, scores, np.inf))
            s = np.argmax(np.where(relevant, -np.inf, scores))
            loss = max(0.0, margin - scores[r] + scores[s])
            if update == "I" and scores[r] <= scores[s]:
                alpha[[r, s]] = h
            elif update == "II" and loss > 0:
                if entropy:
                    alpha[[r, s]] = entropic_pair(scores[r], scores[s], margin, c, h)
                else:
                    alpha[[r, s]] = min(h, c * loss / (2 * x @ x))
            elif update == "III" and loss > 0:
                if entropy:
                    alpha = entropic_optimal(scores, relevant, margin, c, h)
                else:
                    alpha = euclidean_optimal(scores, relevant, margin, c, x @ x, h)
        acc += np.outer(sigma * alpha, x)
        played.append(scores)
        alphas.append(alpha)
    return np.array(played), np.array(alphas), acc


def pairs(relevance):
    return [(i, j) for i, a in enumerate(relevance) for j, b in enumerate(relevance) if a > b >= 0]


def pair_losses(scores, relevance):
    gap = lambda i, j: max(0.0, (relevance[i] - relevance[j]) - (scores[i] - scores[j]))
    return np.array([gap(i, j) for i, j in pairs(relevance)])


def instance_ranking(groups, c, average):
    """The aggressive update on groups (rows, relevance): the losses, and the weights at the end."""
    w, losses = np.zeros(groups[0][0].shape[1]), []
    for rows, relevance in groups:
        each, those = pair_losses(rows @ w, relevance), pairs(relevance)
        if not those:
            losses.append(0.0)
            continue
        if average:
            loss = each.mean()
            active = [rows[i] - rows[j] for (i, j), own in zip(those, each, strict=True) if own > 0]
            v = np.sum(active, axis=0) / len(those) if active else np.zeros(len(w))
        else:
            i, j = those[np.argmax(each)]
            loss, v = each.max(), rows[i] - rows[j]
        losses.append(loss)
        if loss > 0 and v @ v > 0:
            w = w + min(1.0, c * loss / (v @ v)) * v / c
    return np.array(losses), w
