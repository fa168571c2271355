"""Second implementations in plain NumPy, written from the papers and not from the library.

Each takes the rows of a stream and returns the sequence of decisions, for losses whose gradient in
the decision is given by `slope(w, t)`.
"""

import numpy as np


def play(rounds, decide, learn, slope):
    decisions = []
    for t in range(rounds):
        w = decide(t)
        decisions.append(w)
        learn(t, slope(w, t))
    return np.array(decisions)


def squared_slope(x, y):
    return lambda w, t: (w @ x[t] - y[t]) * x[t]


def linear_slope(losses):
    return lambda w, t: losses[t]


def simplex(v):
    """Shalev-Shwartz 2007, figure 7.1."""
    mu = np.sort(v)[::-1]
    excess = np.cumsum(mu) - 1
    j = np.arange(1, len(v) + 1)
    rho = j[mu - excess / j > 0][-1]
    return np.maximum(v - excess[rho - 1] / rho, 0)


def ball(v, radius):
    return v * min(1.0, radius / max(np.linalg.norm(v), 1e-300))


def hedge(losses, eta):
    """Weights proportional to exp(-eta L): Zhang, chapter 14."""
    total = np.zeros(losses.shape[1])

    def decide(t):
        weights = np.exp(-eta * (total - total.min()))
        return weights / weights.sum()

    def learn(t, g):
        nonlocal total
        total = total + g

    return play(len(losses), decide, learn, linear_slope(losses))


def lazy_gradient(start, eta, project, rounds, slope):
    total = np.array(start, float)

    def learn(t, g):
        nonlocal total
        total = total - eta * g

    return play(rounds, lambda t: project(total), learn, slope)


def projected_gradient(start, eta_at, project, rounds, slope):
    """Shalev-Shwartz 2007, example 1: w <- Proj(w - eta_t g)."""
    w = np.array(start, float)

    def learn(t, g):
        nonlocal w
        w = project(w - eta_at(t + 1) * g)

    return play(rounds, lambda t: w, learn, slope)


def multiplicative(start, eta_at, rounds, slope):
    """Shalev-Shwartz 2007, example 2: w <- w exp(-eta_t g) / Z."""
    w = np.array(start, float)

    def learn(t, g):
        nonlocal w
        w = w * np.exp(-eta_at(t + 1) * g)
        w = w / w.sum()

    return play(rounds, lambda t: w, learn, slope)


def dual_averaging_l1(size, eta, strength, power, rounds, slope):
    """Xiao 2010: minimize <eta G, w> + (t^p / 2) |w|^2 + eta t strength |w|_1."""
    total = np.zeros(size)

    def decide(t):
        threshold = eta * (t + 1) * strength
        return -np.sign(total) * np.maximum(np.abs(total) - threshold, 0) / (t + 1) ** power

    def learn(t, g):
        nonlocal total
        total = total + eta * g

    return play(rounds, decide, learn, slope)


def adagrad_l1(size, eta, delta, strength, rounds, slope):
    """Duchi, Hazan, Singer 2011, the dual averaging form with a diagonal matrix."""
    total, squares = np.zeros(size), np.zeros(size)

    def decide(t):
        threshold = eta * (t + 1) * strength
        shrunk = np.sign(total) * np.maximum(np.abs(total) - threshold, 0)
        return -shrunk / np.sqrt(delta + squares)

    def learn(t, g):
        nonlocal total, squares
        total, squares = total + eta * g, squares + g**2

    return play(rounds, decide, learn, slope)


def pnorm_descent(size, eta, q, rounds, slope):
    """The p-norm algorithm: w = grad of |theta|_p^2 / (2 (p - 1))."""
    p = q / (q - 1)
    theta = np.zeros(size)

    def decide(t):
        norm = np.sum(np.abs(theta) ** p) ** (1 / p)
        if norm == 0:
            return np.zeros(size)
        return np.sign(theta) * np.abs(theta) ** (p - 1) / norm ** (p - 2) / (p - 1)

    def learn(t, g):
        nonlocal theta
        theta = theta - eta * g

    return play(rounds, decide, learn, slope)


def optimistic_gradient(size, eta, rounds, slope):
    """w = -eta (G + last gradient), unconstrained."""
    total, last = np.zeros(size), np.zeros(size)

    def learn(t, g):
        nonlocal total, last
        total, last = total + g, g

    return play(rounds, lambda t: -eta * (total + last), learn, slope)


def optimistic_projected(start, eta, project, rounds, slope):
    """Rakhlin, Sridharan 2013: play from y along the guess, move y along the gradient."""
    y, last = np.array(start, float), np.zeros(len(start))

    def learn(t, g):
        nonlocal y, last
        y, last = project(y - eta * g), g

    return play(rounds, lambda t: project(y - eta * last), learn, slope)


def vovk_azoury_warmuth(x, y, a):
    """Predict with (aI + sum_{s <= t} x x')^{-1} sum_{s < t} y x: the matrix holds x_t already."""
    size = x.shape[1]
    matrix, total, scores = a * np.eye(size), np.zeros(size), []
    for row, label in zip(x, y, strict=True):
        matrix = matrix + np.outer(row, row)
        scores.append(row @ np.linalg.solve(matrix, total))
        total = total + label * row
    return np.array(scores)
