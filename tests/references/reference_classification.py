"""Second implementations of the binary classifiers, in plain NumPy, written from the papers.

Each takes rows and labels of +1 and -1 and returns the scores, before each label is seen. A mistake
is y * score <= 0.
"""

import math

import numpy as np


def additive(x, y, step):
    """w += step(row, label, score) * row."""
    w, scores = np.zeros(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        score = w @ row
        scores.append(score)
        w = w + step(row, label, score) * row
    return np.array(scores)


def perceptron(x, y):
    """Shalev-Shwartz 2007, 5.1.1."""
    return additive(x, y, lambda row, label, score: label * (label * score <= 0))


def passive_aggressive(x, y):
    """Crammer et al. 2006, figure 1."""
    gap = lambda label, score: max(0.0, 1 - label * score)
    return additive(x, y, lambda row, label, score: label * gap(label, score) / (row @ row))


def passive_aggressive_1(x, y, c):
    gap = lambda label, score: max(0.0, 1 - label * score)
    tau = lambda row, label, score: min(c, gap(label, score) / (row @ row))
    return additive(x, y, lambda row, label, score: label * tau(row, label, score))


def passive_aggressive_2(x, y, c):
    gap = lambda label, score: max(0.0, 1 - label * score)
    tau = lambda row, label, score: gap(label, score) / (row @ row + 1 / (2 * c))
    return additive(x, y, lambda row, label, score: label * tau(row, label, score))


def softmax(theta):
    grown = np.exp(theta - theta.max())
    return grown / grown.sum()


def winnow(x, y, eta):
    """Shalev-Shwartz 2007, 5.1.2, on the simplex."""
    acc, scores = np.zeros(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        score = softmax(eta * acc) @ row
        scores.append(score)
        if label * score <= 0:
            acc = acc + label * row
    return np.array(scores)


def littlestone(x, y, beta):
    """The multiplicative form: each weight times beta^(y x_i), never normalized."""
    w, scores = np.ones(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        score = w @ row
        scores.append(score)
        if label * score <= 0:
            w = w * beta ** (label * row)
    return np.array(scores)


def balanced_winnow(x, y, eta, total):
    """Winnow on the doubled features (x, -x), times the total: the weights of a pair subtracted in
    closed form, so that a feature that was never seen has the weight 0, not its rounding. The sum
    of the score is exact, so that weights that cancel leave 0."""
    acc, scores = np.zeros(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        theta = eta * total * acc
        score = total * math.fsum(np.sinh(theta) * row) / np.cosh(theta).sum()
        scores.append(score)
        if label * score <= 0:
            acc = acc + label * row
    return np.array(scores)


def self_tuned_winnow(x, y):
    """Shalev-Shwartz 2007, figure 5.2."""
    acc, largest, mistakes, scores = np.zeros(x.shape[1]), 0.0, 0, []
    for row, label in zip(x, y, strict=True):
        largest = max(largest, np.abs(row).max())
        c = largest * np.sqrt((mistakes + 1) / np.log(x.shape[1]))
        score = softmax(acc / c) @ row
        scores.append(score)
        if label * score <= 0:
            acc, mistakes = acc + label * row, mistakes + 1
    return np.array(scores)


def link(theta, p):
    """The gradient of |theta|_p^2 / 2, and 0 at 0."""
    largest = np.abs(theta).max()
    if largest == 0:
        return np.zeros_like(theta)
    scaled = theta / largest
    norm = np.sum(np.abs(scaled) ** p) ** (1 / p)
    return largest * np.sign(scaled) * np.abs(scaled) ** (p - 1) * norm ** (2 - p)


def pnorm_perceptron(x, y, p):
    """Shalev-Shwartz 2007, 5.1.4; the scores of the potential with modulus 1."""
    theta, scores = np.zeros(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        score = link(theta, p) @ row / (p - 1)
        scores.append(score)
        if label * score <= 0:
            theta = theta + label * row
    return np.array(scores)


def aggressive_perceptron(x, y, p):
    """Orabona et al. 2015, section 6: f = |w|_q^2 / (2 (q - 1)), whose modulus is 1."""
    theta, largest, scores = np.zeros(x.shape[1]), 0.0, []
    for row, label in zip(x, y, strict=True):
        size = np.sum(np.abs(row) ** p) ** (1 / p)
        largest = max(largest, size)
        score = link(theta, p) @ row / (p - 1)
        scores.append(score)
        margin = label * score
        if margin <= 0:
            theta = theta + label * row
        elif margin < 1:
            eta = min(1.0, max(0.0, (largest**2 - margin) / size**2))
            theta = theta + eta * label * row
    return np.array(scores)


def self_tuned_aggressive(x, y, complexity, margin):
    """Shalev-Shwartz 2007, figure 5.3 corrected, with the Euclidean closed form (7.11)."""
    acc, largest, mistakes, scores = np.zeros(x.shape[1]), 0.0, 0, []
    for row, label in zip(x, y, strict=True):
        largest = max(largest, np.linalg.norm(row))
        c = largest * np.sqrt((mistakes + 1) / complexity)
        score = acc @ row / c
        scores.append(score)
        alpha = min(1.0, c * max(0.0, margin - label * score) / (row @ row))
        acc = acc + alpha * label * row
        mistakes += label * score <= 0
    return np.array(scores)


def self_tuned_entropy(x, y, complexity, margin):
    """The same with the entropy; the best step by bisection of its monotone derivative."""
    acc, largest, mistakes, scores = np.zeros(x.shape[1]), 0.0, 0, []
    for row, label in zip(x, y, strict=True):
        largest = max(largest, np.abs(row).max())
        c = largest * np.sqrt((mistakes + 1) / complexity)
        signed = label * row
        rising = lambda alpha, acc, c, z: margin > softmax((acc + alpha * z) / c) @ z
        score = softmax(acc / c) @ row
        scores.append(score)
        if not rising(0.0, acc, c, signed):
            alpha = 0.0
        elif rising(1.0, acc, c, signed):
            alpha = 1.0
        else:
            low, high = 0.0, 1.0
            for _ in range(60):
                alpha = (low + high) / 2
                low, high = (alpha, high) if rising(alpha, acc, c, signed) else (low, alpha)
        acc = acc + alpha * signed
        mistakes += label * score <= 0
    return np.array(scores)


def romma(x, y, threshold):
    """Li, Long 2002: the shortest w with y w.x >= 1 and w.w_t >= |w_t|^2."""
    w, scores = np.zeros(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        score = w @ row
        scores.append(score)
        if label * score > threshold:
            continue
        own, size = w @ w, row @ row
        if label * score >= own * size:
            w = label * row / size
        else:
            below = own * size - score**2
            w = (own * size - label * score) / below * w + own * (label - score) / below * row
    return np.array(scores)


def alma(x, y, alpha, p, b, c):
    """Gentile 2001, with rows scaled to p-norm 1 and w in the unit ball of the q-norm."""
    q = p / (p - 1)
    theta, k, scores = np.zeros(x.shape[1]), 1, []
    for row, label in zip(x, y, strict=True):
        unit = row / np.sum(np.abs(row) ** p) ** (1 / p)
        w = link(theta, p)
        scores.append(w @ row)
        if label * (w @ unit) <= (1 - alpha) * b * np.sqrt((p - 1) / k):
            theta = theta + c / np.sqrt((p - 1) * k) * label * unit
            length = np.sum(np.abs(link(theta, p)) ** q) ** (1 / q)
            theta = theta / max(1.0, length)
            k += 1
    return np.array(scores)


def exponentiated_gradient(x, y, eta, total):
    """Kivinen, Warmuth 1997: EG on rows times the total, for the halved squared loss."""
    w, scores = np.full(x.shape[1], 1 / x.shape[1]), []
    for row, target in zip(total * x, y, strict=True):
        score = w @ row
        scores.append(score)
        w = w * np.exp(-eta * (score - target) * row)
        w = w / w.sum()
    return np.array(scores)


def signed_exponentiated_gradient(x, y, eta, total):
    """EG+-: EG on the doubled rows (x, -x)."""
    return exponentiated_gradient(np.hstack([x, -x]), y, eta, total)
