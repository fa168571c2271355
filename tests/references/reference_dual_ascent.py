"""The primal-dual framework a second time, in plain NumPy, from the thesis.

Potentials, losses, dual ascent rules and schedules as functions; `play` puts them together. Dual
vectors are tau x, `acc` is minus their sum, unscaled.
"""

from typing import NamedTuple

import numpy as np


class Potential(NamedTuple):
    value: object  # w -> f(w) - min f
    conjugate: object  # theta -> f*(theta), of f - min f
    link: object  # theta -> grad f*(theta)
    dual_norm: object


def euclidean():
    return Potential(lambda w: w @ w / 2, lambda v: v @ v / 2, lambda v: v, np.linalg.norm)


def pnorm(q):
    p = q / (q - 1)
    norm = lambda v: np.sum(np.abs(v) ** p) ** (1 / p)

    def link(v):
        size = norm(v)
        if size == 0:
            return np.zeros_like(v)
        return np.sign(v) * np.abs(v) ** (p - 1) / ((p - 1) * size ** (p - 2))

    value = lambda w: np.sum(np.abs(w) ** q) ** (2 / q) / (2 * (q - 1))
    return Potential(value, lambda v: norm(v) ** 2 / (2 * (p - 1)), link, norm)


def entropy():
    def conjugate(v):
        return v.max() + np.log(np.mean(np.exp(v - v.max())))

    def link(v):
        weights = np.exp(v - v.max())
        return weights / weights.sum()

    value = lambda w: np.log(len(w)) + np.sum(w[w > 0] * np.log(w[w > 0]))
    return Potential(value, conjugate, link, lambda v: np.max(np.abs(v)))


class Loss(NamedTuple):
    value: object  # (s, y)
    slope: object  # (s, y)
    conjugate: object  # (tau, y)
    conjugate_slope: object  # (tau, y), inside its domain


def hinge(margin=1.0):
    return Loss(
        lambda s, y: max(0.0, margin - y * s),
        lambda s, y: -y if margin - y * s > 0 else 0.0,
        lambda tau, y: margin * tau * y,
        lambda tau, y: margin * y,
    )


def squared():
    return Loss(
        lambda s, y: (s - y) ** 2 / 2,
        lambda s, y: s - y,
        lambda tau, y: tau**2 / 2 + tau * y,
        lambda tau, y: tau + y,
    )


def tube(epsilon):
    return Loss(
        lambda s, y: max(0.0, abs(s - y) - epsilon),
        lambda s, y: np.sign(s - y) if abs(s - y) > epsilon else 0.0,
        lambda tau, y: tau * y + epsilon * abs(tau),
        lambda tau, y: y + epsilon * np.sign(tau),
    )


def logistic():
    both = lambda a: a * np.log(a) + (1 - a) * np.log(1 - a)
    return Loss(
        lambda s, y: np.log1p(np.exp(-y * s)),
        lambda s, y: -y / (1 + np.exp(y * s)),
        lambda tau, y: both(-tau * y),
        lambda tau, y: -y * np.log(-tau * y / (1 + tau * y)),
    )


class Round(NamedTuple):
    f: Potential
    loss: Loss
    c: float
    acc: np.ndarray
    x: np.ndarray
    y: float
    score: float


def subgradient(r):
    """(3.11)."""
    return r.loss.slope(r.score, r.y)


def conservative(r):
    """(5.13): a mistake is y s <= 0."""
    return subgradient(r) if r.y * r.score <= 0 else 0.0


def aggressive(r):
    """(3.12), by bisection: the derivative of the dual in tau is non-increasing."""
    far = r.loss.slope(r.score, r.y)
    if far == 0:
        return 0.0

    def gain(tau):
        w = r.f.link((r.acc - tau * r.x) / r.c)
        return (w @ r.x - r.loss.conjugate_slope(tau, r.y)) * np.sign(far)

    if gain(far) >= 0:
        return far
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if gain(middle * far) >= 0 else (low, middle)
    return low * far


def passive_aggressive(r):
    """(7.11), Euclidean hinge."""
    return -r.y * min(1.0, r.c * max(0.0, 1 - r.y * r.score) / (r.x @ r.x))


def implicit(r):
    """The closed form of notes 1.9, Euclidean half squared loss."""
    return (r.score - r.y) / (1 + r.x @ r.x / r.c)


def clipped_tube(r):
    """The closed form of notes 1.9, Euclidean epsilon-insensitive loss."""
    return np.sign(r.score - r.y) * min(1.0, r.c * r.loss.value(r.score, r.y) / (r.x @ r.x))


def play(x, y, f, loss, rule, schedule):
    """Scores, and for every round (c, acc before, acc after, tau)."""
    acc, scores, history = np.zeros(x.shape[1]), [], []
    for row, label in zip(x, y, strict=True):
        c = schedule.before(row)
        score = f.link(acc / c) @ row
        tau = rule(Round(f, loss, c, acc, row, label, score))
        history.append((c, acc, acc - tau * row, tau))
        acc = acc - tau * row
        schedule.after(row, label, score, loss.value(score, label))
        scores.append(score)
    return np.array(scores), history


def box_pair(acc, z, c, margin):
    """max over alpha in [0,1]^2 of margin (a + b) - |acc + a z_1 + b z_2|^2 / (2 c): notes 1.8."""
    gram = z @ z.T
    target = c * margin - z @ acc
    value = lambda a: margin * a.sum() - (acc + a @ z) @ (acc + a @ z) / (2 * c)
    candidates = []
    if abs(np.linalg.det(gram)) > 1e-12:
        free = np.linalg.solve(gram, target)
        if np.all((free >= 0) & (free <= 1)):
            return free
    for i in (0, 1):
        for edge in (0.0, 1.0):
            alpha = np.empty(2)
            alpha[1 - i] = edge
            alpha[i] = np.clip((target[i] - gram[i, 1 - i] * edge) / gram[i, i], 0, 1)
            candidates.append(alpha)
    return max(candidates, key=value)


def window_pair(x, y, c, margin=1.0):
    """Block updates over the last two rounds, Euclidean hinge, exactly."""
    z, acc, alpha, scores = y[:, None] * x, np.zeros(x.shape[1]), np.zeros(len(x)), []
    for t in range(len(x)):
        scores.append(acc @ x[t] / c)
        if t == 0:
            alpha[0] = np.clip(c * margin / (z[0] @ z[0]), 0, 1)
        else:
            rest = acc - alpha[t - 1] * z[t - 1]
            alpha[t - 1 : t + 1] = box_pair(rest, z[t - 1 : t + 1], c, margin)
        acc = alpha @ z
    return np.array(scores)


def row_actions(x, y, c, steps, capacity, margin=1.0):
    """Mini-updates, Euclidean hinge: the newest, then in turn round the slots of a ring."""
    z, acc, alpha, scores = y[:, None] * x, np.zeros(x.shape[1]), np.zeros(len(x)), []
    slots, turn = [], 0

    def maximize(i, acc):
        without = acc - alpha[i] * z[i]
        alpha[i] = np.clip(c * (margin - without @ z[i] / c) / (z[i] @ z[i]), 0, 1)
        return without + alpha[i] * z[i]

    for t in range(len(x)):
        scores.append(acc @ x[t] / c)
        acc = maximize(t, acc)
        if len(slots) < capacity:
            slots.append(t)
        else:
            slots[t % capacity] = t
        for i in range(steps - 1):
            acc = maximize(slots[(turn + i) % len(slots)], acc)
        turn = (turn + steps - 1) % len(slots)
    return np.array(scores)


class Schedule:
    """S1 to S10 of the notes: `rule(t, X, X over mistakes, M, own loss)` with t from 1, X over all
    rows up to this one, M and own loss before it."""

    def __init__(self, rule, norm=np.linalg.norm):
        self.rule, self.norm = rule, norm
        self.t, self.largest, self.on_mistakes, self.mistakes, self.total = 0, 0.0, 0.0, 0, 0.0

    def before(self, x):
        self.t += 1
        self.largest = max(self.largest, self.norm(x))
        here = max(self.on_mistakes, self.norm(x))
        return self.rule(self.t, self.largest, here, self.mistakes, self.total)

    def after(self, x, y, score, loss):
        self.total += loss
        if y * score <= 0:
            self.mistakes += 1
            self.on_mistakes = max(self.on_mistakes, self.norm(x))


def constant(c):
    return Schedule(lambda *_: c)
