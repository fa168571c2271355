"""Hand-written loops compiled by numba, like C code, on one core.

Each loop writes the score of every round before it learns from the round. Constants are float32
throughout, and sums may be reordered, so that the compiler can use wide registers. The loops share
no functions: a call for the score and one for the step would cost 5 to 10 % of the time.
"""

import numpy as np
from numba import njit

_compiled = njit(fastmath=True, nogil=True)
_ONE = np.float32(1)


@_compiled
def perceptron(rows, labels, eta, scores):
    w = np.zeros(rows.shape[1], np.float32)
    for t in range(rows.shape[0]):
        x, score = rows[t], np.float32(0)
        for j in range(x.size):
            score += w[j] * x[j]
        scores[t] = score
        if labels[t] * score <= 0:
            for j in range(x.size):
                w[j] += labels[t] * x[j]


@_compiled
def passive_aggressive(rows, labels, eta, scores):
    """PA-I: steps are at most `eta`."""
    w = np.zeros(rows.shape[1], np.float32)
    for t in range(rows.shape[0]):
        x, score, square = rows[t], np.float32(0), np.float32(0)
        for j in range(x.size):
            score += w[j] * x[j]
            square += x[j] * x[j]
        scores[t] = score
        loss = _ONE - labels[t] * score
        if loss > 0:
            step = min(eta, loss / square) * labels[t]
            for j in range(x.size):
                w[j] += step * x[j]


@_compiled
def ogd_hinge(rows, labels, eta, scores):
    w = np.zeros(rows.shape[1], np.float32)
    for t in range(rows.shape[0]):
        x, score = rows[t], np.float32(0)
        for j in range(x.size):
            score += w[j] * x[j]
        scores[t] = score
        if labels[t] * score < _ONE:
            step = eta * labels[t]
            for j in range(x.size):
                w[j] += step * x[j]


@_compiled
def ogd_logistic(rows, labels, eta, scores):
    w = np.zeros(rows.shape[1], np.float32)
    for t in range(rows.shape[0]):
        x, score = rows[t], np.float32(0)
        for j in range(x.size):
            score += w[j] * x[j]
        scores[t] = score
        step = eta * labels[t] / (_ONE + np.exp(labels[t] * score))
        for j in range(x.size):
            w[j] += step * x[j]


@_compiled
def adagrad_hinge(rows, labels, eta, scores):
    """Dual averaging with the curvature sqrt(1 + sum of squared gradients)."""
    theta = np.zeros(rows.shape[1], np.float32)
    squares = np.ones(rows.shape[1], np.float32)
    for t in range(rows.shape[0]):
        x, score = rows[t], np.float32(0)
        for j in range(x.size):
            score += theta[j] / np.sqrt(squares[j]) * x[j]
        scores[t] = score
        if labels[t] * score < _ONE:
            step = eta * labels[t]
            for j in range(x.size):
                theta[j] += step * x[j]
                squares[j] += x[j] * x[j]


@_compiled
def sparse_ogd_hinge(start, columns, values, width, labels, eta, scores):
    w = np.zeros(width, np.float32)
    for t in range(labels.size):
        score = np.float32(0)
        for k in range(start[t], start[t + 1]):
            score += w[columns[k]] * values[k]
        scores[t] = score
        if labels[t] * score < _ONE:
            step = eta * labels[t]
            for k in range(start[t], start[t + 1]):
                w[columns[k]] += step * values[k]


@_compiled
def sparse_adagrad_hinge(start, columns, values, width, labels, eta, scores):
    theta, squares = np.zeros(width, np.float32), np.ones(width, np.float32)
    for t in range(labels.size):
        score = np.float32(0)
        for k in range(start[t], start[t + 1]):
            j = columns[k]
            score += theta[j] / np.sqrt(squares[j]) * values[k]
        scores[t] = score
        if labels[t] * score < _ONE:
            step = eta * labels[t]
            for k in range(start[t], start[t + 1]):
                j = columns[k]
                theta[j] += step * values[k]
                squares[j] += values[k] * values[k]


@_compiled
def hedge(losses, eta, paid):
    """Exponential weights on cumulative losses, minus the smallest one for stability."""
    total = np.zeros(losses.shape[1], np.float32)
    for t in range(losses.shape[0]):
        least, mass, lost = total.min(), np.float32(0), np.float32(0)
        for i in range(total.size):
            weight = np.exp(eta * (least - total[i]))
            mass += weight
            lost += weight * losses[t, i]
        paid[t] = lost / mass
        for i in range(total.size):
            total[i] += losses[t, i]
