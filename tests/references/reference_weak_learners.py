"""Weak learners in plain NumPy, row by row, written from the rules as stated in words.

Stumps: keep all rounds seen, and compute every sum anew. Regression stumps: one descent per
feature. Network: gradients of the two layers by hand. NormalizedDescent: algorithm 2 of Ross,
Mineiro and Langford 2013, weight by weight. A weight of a round is its importance.
"""

import math

import numpy as np


class Stumps:
    """Thresholds are weighted means of the past; sides vote by their weighted mean label."""

    def __init__(self, size):
        self.size, self.past, self.wrong = size, [], np.zeros(size)

    def votes(self, x):
        theta, votes = self.thresholds(), np.zeros(self.size)
        for i in range(self.size):
            same = [(p, y) for p, y, _, sides in self.past if sides[i] == bool(x[i] > theta[i])]
            total = sum(p for p, _ in same)
            votes[i] = sum(p * y for p, y in same) / total if total > 0 else 0.0
        return votes

    def thresholds(self):
        total = sum(p for p, *_ in self.past)
        if total == 0:
            return np.zeros(self.size)
        return sum(p * row for p, _, row, _ in self.past) / total

    def predict(self, x):
        return self.votes(x)[int(np.argmin(self.wrong))]

    def update(self, x, y, weight=1.0):
        self.wrong = self.wrong + weight * (y * self.votes(x) <= 0)
        self.past.append((weight, y, np.array(x), [bool(side) for side in x > self.thresholds()]))


class FeatureDescent:
    """w_i <- w_i - rate * weight * loss'(w_i x_i) x_i, alone for each feature that is not zero."""

    def __init__(self, size, rate, value, slope):
        self.w, self.rate, self.value, self.slope = np.zeros(size), rate, value, slope
        self.losses = [[] for _ in range(size)]  # (weight, loss)

    def predict(self, x):
        best, found = np.inf, 0.0
        for i in np.flatnonzero(x):
            if self.losses[i]:
                weights, paid = np.array(self.losses[i]).T
                if weights @ paid / weights.sum() < best:
                    best, found = weights @ paid / weights.sum(), self.w[i] * x[i]
        return found

    def update(self, x, y, weight=1.0):
        for i in np.flatnonzero(x):
            score = self.w[i] * x[i]
            self.losses[i].append((weight, self.value(score, y)))
            self.w[i] = self.w[i] - self.rate * weight * self.slope(score, y) * x[i]


class Network:
    """Descent with a fixed rate on c + v . sigmoid(U x + b), by back-propagation."""

    def __init__(self, into, offsets, out, constant, rate, slope):
        self.u, self.b, self.v, self.c = into, offsets, out, constant
        self.rate, self.slope = rate, slope

    def predict(self, x):
        return self.c + self.v @ (1 / (1 + np.exp(-(self.u @ x + self.b))))

    def update(self, x, y, weight=1.0):
        units = 1 / (1 + np.exp(-(self.u @ x + self.b)))
        push = self.rate * weight * self.slope(self.c + self.v @ units, y)
        back = push * self.v * units * (1 - units)
        self.u = self.u - np.outer(back, x)
        self.b, self.v, self.c = self.b - back, self.v - push * units, self.c - push


class NormalizedDescent:
    """NAG with the closed form of Karampatziakis and Langford 2011 for a curvature."""

    def __init__(self, size, rate, slope, curvature=1.0):
        self.w, self.s, self.g = np.zeros(size), np.zeros(size), np.zeros(size)
        self.total, self.n = 0.0, 0.0
        self.rate, self.slope, self.curvature = rate, slope, curvature

    def rescaled(self, x):
        w, s = self.w.copy(), self.s.copy()
        for i in np.flatnonzero(np.abs(x) > s):
            w[i], s[i] = w[i] * s[i] / abs(x[i]), abs(x[i])
        return w, s

    def predict(self, x):
        return self.rescaled(x)[0] @ x

    def update(self, x, y, weight=1.0):
        self.w, self.s = self.rescaled(x)
        seen, slope = np.flatnonzero(x), self.slope(self.w @ x, y)
        self.total += weight
        self.n += weight * sum((x[i] / self.s[i]) ** 2 for i in seen)
        self.g = self.g + weight * (slope * x) ** 2
        if slope == 0 or len(seen) == 0:
            return
        rates = {i: math.sqrt(self.total / self.n / self.g[i]) / self.s[i] for i in seen}
        moved = self.curvature * sum(rates[i] * x[i] ** 2 for i in seen)
        size = (1 - math.exp(-self.rate * weight * moved)) / moved
        for i in seen:
            self.w[i] -= size * slope * rates[i] * x[i]
