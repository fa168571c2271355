"""Second implementations of the multiclass learners, in plain NumPy, written from the papers.

Each takes rows and labels 0, ..., k - 1 and returns the scores of all classes, before each label is
seen. A mistake is a label whose score is not strictly the largest; of several best rivals the first
one counts.
"""

import numpy as np
from scipy.stats import norm


def rival(scores, label):
    others = scores.copy()
    others[label] = -np.inf
    return int(np.argmax(others))


def lead(scores, label):
    return scores[label] - scores[rival(scores, label)]


def additive(x, y, k, step):
    """W += outer(step(row, label, scores), row)."""
    w, played = np.zeros((k, x.shape[1])), []
    for row, label in zip(x, y, strict=True):
        scores = w @ row
        played.append(scores)
        w = w + np.outer(step(row, label, scores), row)
    return np.array(played)


def pair(k, label, other):
    direction = np.zeros(k)
    direction[label], direction[other] = 1.0, -1.0
    return direction


def perceptron(x, y, k):
    """Crammer, Singer 2003, the max update."""

    def step(row, label, scores):
        return pair(k, label, rival(scores, label)) * (lead(scores, label) <= 0)

    return additive(x, y, k, step)


def uniform_perceptron(x, y, k):
    """Crammer, Singer 2003, the uniform update."""

    def step(row, label, scores):
        above = [r for r in range(k) if r != label and scores[r] >= scores[label]]
        direction = np.zeros(k)
        if above:
            direction[label] = 1.0
            direction[above] = -1 / len(above)
        return direction

    return additive(x, y, k, step)


def by_links(x, y, k, link):
    """W = link(theta); theta moves as the weights of the Perceptron do."""
    theta, played = np.zeros((k, x.shape[1])), []
    for row, label in zip(x, y, strict=True):
        scores = link(theta) @ row
        played.append(scores)
        if lead(scores, label) <= 0:
            theta = theta + np.outer(pair(k, label, rival(scores, label)), row)
    return np.array(played)


def exponentiated_gradient(x, y, k, eta):
    """One simplex over all entries."""

    def link(theta):
        grown = np.exp(eta * (theta - theta.max()))
        return grown / grown.sum()

    return by_links(x, y, k, link)


def pnorm_perceptron(x, y, k, p):
    """The gradient of |theta|_p^2 / (2 (p - 1)) over all entries."""

    def link(theta):
        size = np.sum(np.abs(theta) ** p) ** (1 / p)
        if size == 0:
            return np.zeros_like(theta)
        return np.sign(theta) * np.abs(theta) ** (p - 1) / size ** (p - 2) / (p - 1)

    return by_links(x, y, k, link)


def passive_aggressive(x, y, k, most=np.inf, softness=0.0):
    """Crammer et al. 2006, the multiclass section: the most violated pair alone."""

    def step(row, label, scores):
        gap = max(0.0, 1 - lead(scores, label))
        tau = min(most, gap / (2 * row @ row + softness))
        return tau * pair(k, label, rival(scores, label))

    return additive(x, y, k, step)


def best_dual(x, y, k, c, gamma):
    """Shalev-Shwartz 2007, 1.17 of the notes with one relevant label: the exact dual step."""

    def simplex(mu, z):
        ordered = np.sort(mu)[::-1]
        sums = np.cumsum(ordered)
        count = np.arange(1, len(mu) + 1)
        rho = np.max(np.flatnonzero(ordered - (sums - z) / count > 0)) + 1
        return np.maximum(mu - (sums[rho - 1] - z) / rho, 0.0), (sums[rho - 1] - z) / rho

    acc, played = np.zeros((k, x.shape[1])), []
    for row, label in zip(x, y, strict=True):
        scores = acc @ row / c
        played.append(scores)
        if gamma - lead(scores, label) <= 0:
            continue
        others = np.array([r for r in range(k) if r != label])
        mu = c * (gamma / 2 - scores[label]) / (row @ row)
        nu = c * (gamma / 2 + scores[others]) / (row @ row)
        low, high = 0.0, 1.0  # z where the two levels sum to 0: mu - z + theta(z)
        rising = lambda z, mu, nu: mu - z + simplex(nu, z)[1] > 0
        if not rising(1.0, mu, nu):
            for _ in range(100):
                z = (low + high) / 2
                low, high = (z, high) if rising(z, mu, nu) else (low, z)
        z = high
        direction = np.zeros(k)
        direction[label], direction[others] = z, -simplex(nu, z)[0]
        acc = acc + np.outer(direction, row)
    return np.array(played)


def second_order(x, y, k, rule):
    """Weights with one matrix P for all classes: W += outer(a / 2 * pair, P x), P -= b P x x' P."""
    w, p, played = np.zeros((k, x.shape[1])), np.eye(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        means, along = w @ row, p @ row
        spread = row @ along
        scores, a, b = rule(means, spread, label)
        played.append(scores)
        w = w + a / 2 * np.outer(pair(k, label, rival(scores, label)), along)
        p = p - b * np.outer(along, along)
    return np.array(played)


def arow(x, y, k, r):
    """Orabona et al. 2015, figure 1 with f_t(W) = sum_r w_r' A_t w_r; A_t has the row."""
    theta, a, played = np.zeros((k, x.shape[1])), np.eye(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        ahead = a + np.outer(row, row) / r
        scores = theta @ np.linalg.solve(ahead, row) / 2
        played.append(scores)
        if lead(scores, label) < 1:
            theta = theta + np.outer(pair(k, label, rival(scores, label)), row)
            a = ahead
    return np.array(played)


def diagonal_arow(x, y, k, r):
    """Crammer, Kulesza, Dredze 2009 for the difference of two Gaussians with variances only."""
    means, variances, played = np.zeros((k, x.shape[1])), np.full((k, x.shape[1]), 0.5), []
    for row, label in zip(x, y, strict=True):
        scores = means @ row
        played.append(scores)
        other = rival(scores, label)
        loss = 1 - (scores[label] - scores[other])
        if loss > 0:
            confidence = (variances[label] + variances[other]) @ row**2
            for each, sign in ((label, 1.0), (other, -1.0)):
                means[each] += sign * loss / (confidence + r) * variances[each] * row
                variances[each] = 1 / (1 / variances[each] + 2 * row**2 / r)
    return np.array(played)


def binary_diagonal_arow(x, y, r):
    """The same paper, figure 1, with the diagonal of the matrix only."""
    mean, variance, played = np.zeros(x.shape[1]), np.ones(x.shape[1]), []
    for row, sign in zip(x, y, strict=True):
        played.append(mean @ row)
        loss = max(0.0, 1 - sign * played[-1])
        if loss > 0:
            mean = mean + sign * loss / (variance @ row**2 + r) * variance * row
            variance = 1 / (1 / variance + row**2 / r)
    return np.array(played)


def soft_confidence_weighted(x, y, k, confidence, c, squared):
    """Wang, Zhao, Hoi 2012, for the same difference."""
    phi = norm.ppf(confidence)
    psi, xi = 1 + phi**2 / 2, 1 + phi**2

    def rule(means, v, label):
        m = lead(means, label)
        if squared:
            n = v + 1 / (2 * c)
            root = phi * np.sqrt(phi**2 * m**2 * v**2 + 4 * n * v * (n + v * phi**2))
            alpha = max(0.0, (root - (2 * m * n + phi**2 * m * v)) / (2 * (n**2 + n * v * phi**2)))
        else:
            root = np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * xi)
            alpha = min(c, max(0.0, (root - m * psi) / (v * xi)))
        u = (np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v) - alpha * v * phi) / 2
        return means, alpha, alpha * phi / (u + v * alpha * phi)

    return second_order(x, y, k, rule)


def by_codes(x, y, code, decode, step):
    """One additive binary learner per column of the code, which learns if its entry is not 0.

    step: (row, sign, score) -> the multiple of the row that the binary learner adds.
    """
    w, played = np.zeros((code.shape[1], x.shape[1])), []
    for row, label in zip(x, y, strict=True):
        votes = w @ row
        played.append(decode @ votes)
        for column, sign in enumerate(code[label]):
            if sign != 0:
                w[column] += step(row, sign, votes[column]) * row
    return np.array(played)


def one_vs_rest(k):
    return 2 * np.eye(k) - 1, np.eye(k)


def one_vs_one(k):
    pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
    code = np.zeros((k, len(pairs)))
    for column, (a, b) in enumerate(pairs):
        code[a, column], code[b, column] = 1.0, -1.0
    return code, code


def banditron(x, y, k, gamma, draw):
    """Kakade, Shalev-Shwartz, Tewari 2008, figure 1.

    draw: (round, probabilities) -> the label that is played.
    """
    w, played = np.zeros((k, x.shape[1])), []
    for t, (row, label) in enumerate(zip(x, y, strict=True)):
        best = int(np.argmax(w @ row))
        p = np.full(k, gamma / k)
        p[best] += 1 - gamma
        said = draw(t, p)
        played.append(said)
        change = np.zeros(k)
        change[best] -= 1.0
        if said == label:
            change[said] += 1 / p[said]
        w = w + np.outer(change, row)
    return np.array(played), w
