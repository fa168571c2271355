"""Structured learners in plain NumPy, written from Shalev-Shwartz 2007, section 5.3.3.

The feature map is written out, and decoders try all outputs. Weights are one vector: emissions by
label, transitions by row, first label, last label.
"""

import itertools
from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    classes: int
    costs: np.ndarray  # [classes, classes]

    def outputs(self, length):
        return [np.array(y) for y in itertools.product(range(self.classes), repeat=length)]

    def phi(self, x, y):
        """The feature vector of an output; x is [length, features]."""
        k, d = self.classes, x.shape[1]
        emission, transition = np.zeros((k, d)), np.zeros((k, k))
        first, last = np.zeros(k), np.zeros(k)
        for row, label in zip(x, y, strict=True):
            emission[label] += row
        for left, right in itertools.pairwise(y):
            transition[left, right] += 1
        first[y[0]] += 1
        last[y[-1]] += 1
        return np.concatenate([emission.ravel(), transition.ravel(), first, last])

    def rho(self, y, other):
        return sum(self.costs[a, b] for a, b in zip(y, other, strict=True))

    def scores(self, w, x):
        return np.array([w @ self.phi(x, y) for y in self.outputs(len(x))])

    def predicted(self, w, x, truth=None):
        """The output of the highest score; of equal ones, that whose last label is smallest, then
        the label before it, and so on."""
        scores, outputs = self.scores(w, x), self.outputs(len(x))
        best = [y for s, y in zip(scores, outputs, strict=True) if s >= scores.max() - 1e-12]
        return min(best, key=lambda y: tuple(y[::-1]))

    def worst(self, w, x, truth):
        outputs = self.outputs(len(x))
        values = self.scores(w, x) + np.array([self.rho(truth, y) for y in outputs])
        best = [y for s, y in zip(values, outputs, strict=True) if s >= values.max() - 1e-12]
        return min(best, key=lambda y: tuple(y[::-1]))

    def max_loss(self, w, x, truth):
        outputs = self.outputs(len(x))
        values = self.scores(w, x) + np.array([self.rho(truth, y) for y in outputs])
        return max(0.0, values.max() - w @ self.phi(x, truth))

    def log_partition(self, w, x):
        scores = self.scores(w, x)
        return np.log(np.sum(np.exp(scores - scores.max()))) + scores.max()

    def marginals(self, w, x):
        """By position and label; by pair of neighbouring labels, summed over positions."""
        chances = np.exp(self.scores(w, x) - self.log_partition(w, x))
        single = np.zeros((len(x), self.classes))
        pair = np.zeros((self.classes, self.classes))
        for chance, y in zip(chances, self.outputs(len(x)), strict=True):
            for i, label in enumerate(y):
                single[i, label] += chance
            for left, right in itertools.pairwise(y):
                pair[left, right] += chance
        return single, pair


class Played(NamedTuple):
    w: np.ndarray
    mean: np.ndarray  # of the weights before each update
    costs: np.ndarray  # of the decoded outputs


def perceptron(problem, xs, ys, size):
    w, past, costs = np.zeros(size), [], []
    for x, y in zip(xs, ys, strict=True):
        past.append(w)
        seen = problem.predicted(w, x)
        costs.append(problem.rho(y, seen))
        if costs[-1] > 0:
            w = w + problem.phi(x, y) - problem.phi(x, seen)
    return Played(w, np.mean(past, axis=0), np.array(costs))


def passive_aggressive(problem, xs, ys, size, most, rival):
    """rival: `Problem.predicted` or `Problem.worst`."""
    w, past, costs = np.zeros(size), [], []
    for x, y in zip(xs, ys, strict=True):
        past.append(w)
        costs.append(problem.rho(y, problem.predicted(w, x)))
        other = rival(problem, w, x, y)
        a = problem.phi(x, y) - problem.phi(x, other)
        loss = max(0.0, problem.rho(y, other) - w @ a)
        if loss > 0:
            w = w + min(most, loss / (a @ a)) * a
    return Played(w, np.mean(past, axis=0), np.array(costs))


def aggressive(problem, xs, ys, size, most, steps):
    """Frank-Wolfe steps on the dual (7.34) of the max loss, with a variable for every output."""
    w, past, costs = np.zeros(size), [], []
    for x, y in zip(xs, ys, strict=True):
        past.append(w)
        costs.append(problem.rho(y, problem.predicted(w, x)))
        outputs = problem.outputs(len(x))
        a = np.array([problem.phi(x, y) - problem.phi(x, other) for other in outputs])
        rho = np.array([problem.rho(y, other) for other in outputs])
        alpha = np.zeros(len(outputs))
        for _ in range(steps):
            now = w + most * alpha @ a
            best = problem.worst(now, x, y)
            vertex = np.array([float(np.array_equal(best, other)) for other in outputs])
            way = vertex - alpha
            rise, bend = rho @ way - now @ (way @ a), most * np.sum((way @ a) ** 2)
            alpha = alpha + (np.clip(rise / bend, 0.0, 1.0) if bend > 0 else 0.0) * way
        w = w + most * alpha @ a
    return Played(w, np.mean(past, axis=0), np.array(costs))


def best_update(problem, w, x, y, most):
    """The solution of (7.34) by a solver of quadratic programs."""
    from scipy.optimize import minimize

    outputs = problem.outputs(len(x))
    a = np.array([problem.phi(x, y) - problem.phi(x, other) for other in outputs])
    rho = np.array([problem.rho(y, other) for other in outputs])
    lost = lambda alpha: np.sum((w + most * alpha @ a) ** 2) / (2 * most) - rho @ alpha
    slope = lambda alpha: a @ (w + most * alpha @ a) - rho
    found = minimize(
        lost,
        np.zeros(len(outputs)),
        jac=slope,
        bounds=[(0, 1)] * len(outputs),
        constraints={
            "type": "ineq",
            "fun": lambda alpha: 1 - alpha.sum(),
            "jac": lambda alpha: -np.ones(len(alpha)),
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return w + most * found.x @ a


def self_tuned(problem, xs, ys, size, complexity):
    """Figure 5.4."""
    acc, longest, mistakes, past, costs = np.zeros(size), 0.0, 0, [], []
    for x, y in zip(xs, ys, strict=True):
        past.append(acc)
        seen = problem.predicted(acc, x)
        costs.append(problem.rho(y, seen))
        if costs[-1] > 0:
            mistakes += 1
            a = problem.phi(x, y) - problem.phi(x, seen)
            longest = max(longest, np.linalg.norm(a))
            c = longest * np.sqrt(mistakes / (2 * complexity))
            alpha = min(1.0, max(0.0, c * costs[-1] - acc @ a) / (a @ a))
            acc = acc + alpha * a
    return Played(acc, np.mean(past, axis=0), np.array(costs))


def multiclass_perceptron(xs, ys, classes):
    """One weight vector per class; the first of equal scores is predicted."""
    w, wrong = np.zeros((classes, xs.shape[1])), []
    for x, y in zip(xs, ys, strict=True):
        seen = int(np.argmax(w @ x))
        wrong.append(float(seen != y))
        if seen != y:
            w[y] += x
            w[seen] -= x
    return w, np.array(wrong)


def multiclass_passive_aggressive(xs, ys, classes, most):
    """PA-I on the hinge of the best wrong class, with margin 1."""
    w, losses = np.zeros((classes, xs.shape[1])), []
    for x, y in zip(xs, ys, strict=True):
        scores = w @ x
        other = int(np.argmax(np.where(np.arange(classes) == y, -np.inf, scores)))
        losses.append(max(0.0, 1 - scores[y] + scores[other]))
        if losses[-1] > 0:
            tau = min(most, losses[-1] / (2 * x @ x))
            w[y] += tau * x
            w[other] -= tau * x
    return w, np.array(losses)


def viterbi(emission, transition, start, end):
    """The usual decoder with back-pointers, for one chain."""
    length = len(emission)
    alpha, back = start + emission[0], np.zeros((length, len(start)), int)
    for i in range(1, length):
        each = alpha[:, None] + transition
        back[i] = each.argmax(axis=0)
        alpha = each.max(axis=0) + emission[i]
    labels = [int(np.argmax(alpha + end))]
    for i in range(length - 1, 0, -1):
        labels.append(int(back[i, labels[-1]]))
    return np.array(labels[::-1])
