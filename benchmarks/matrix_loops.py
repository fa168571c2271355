"""Hand-written loops of second-order learners, compiled by numba, on one core.

Each keeps the inverse of its matrix itself and updates it by the formula of Sherman and Morrison,
which is the fastest form; olx keeps a root of it, which costs half as much again and stays positive
definite in single precision. `number` is the hyperparameter of the learner.
"""

import numpy as np
from numba import njit

_compiled = njit(fastmath=True, nogil=True)
_ONE = np.float32(1)


@_compiled
def _look(inverse, w, x, along):
    """Write P x into `along`; return the margin and the spread."""
    margin, spread = np.float32(0), np.float32(0)
    for i in range(x.size):
        total = np.float32(0)
        for j in range(x.size):
            total += inverse[i, j] * x[j]
        along[i] = total
    for j in range(x.size):
        margin += w[j] * x[j]
        spread += along[j] * x[j]
    return margin, spread


@_compiled
def _step(inverse, w, along, move, shrink):
    for i in range(w.size):
        w[i] += move * along[i]
        factor = shrink * along[i]
        for j in range(w.size):
            inverse[i, j] -= factor * along[j]


@_compiled
def _start(width, prior):
    inverse = np.zeros((width, width), np.float32)
    for i in range(width):
        inverse[i, i] = _ONE / prior
    return inverse, np.zeros(width, np.float32), np.empty(width, np.float32)


@_compiled
def arow(rows, labels, number, scores):
    inverse, w, along = _start(rows.shape[1], _ONE)
    for t in range(rows.shape[0]):
        margin, spread = _look(inverse, w, rows[t], along)
        total = number + spread
        scores[t] = margin * number / total
        if labels[t] * scores[t] < _ONE:
            _step(inverse, w, along, (number * labels[t] - margin) / total, _ONE / total)


@_compiled
def arow_original(rows, labels, number, scores):
    inverse, w, along = _start(rows.shape[1], _ONE)
    for t in range(rows.shape[0]):
        margin, spread = _look(inverse, w, rows[t], along)
        scores[t] = margin
        if labels[t] * margin < _ONE:
            total = number + spread
            _step(inverse, w, along, (labels[t] - margin) / total, _ONE / total)


@_compiled
def second_order_perceptron(rows, labels, number, scores):
    inverse, w, along = _start(rows.shape[1], number)
    for t in range(rows.shape[0]):
        margin, spread = _look(inverse, w, rows[t], along)
        total = _ONE + spread
        scores[t] = margin / total
        if labels[t] * scores[t] <= 0:
            _step(inverse, w, along, (labels[t] - margin) / total, _ONE / total)


@_compiled
def vaw(rows, labels, number, scores):
    inverse, w, along = _start(rows.shape[1], number)
    for t in range(rows.shape[0]):
        margin, spread = _look(inverse, w, rows[t], along)
        total = _ONE + spread
        scores[t] = margin / total
        _step(inverse, w, along, (labels[t] - margin) / total, _ONE / total)


@_compiled
def ridge(rows, labels, number, scores):
    inverse, w, along = _start(rows.shape[1], number)
    for t in range(rows.shape[0]):
        margin, spread = _look(inverse, w, rows[t], along)
        scores[t] = margin
        _step(inverse, w, along, (labels[t] - margin) / (_ONE + spread), _ONE / (_ONE + spread))


@_compiled
def newton(rows, labels, number, scores):
    """The loss is the squared one, scores are clipped to [-1, 1], the curvature is 1 / 4."""
    inverse, w, along = _start(rows.shape[1], number)
    for t in range(rows.shape[0]):
        margin, spread = _look(inverse, w, rows[t], along)
        scores[t] = min(max(margin, -_ONE), _ONE)
        slope = scores[t] - labels[t]
        growth = np.float32(0.25) * slope * slope
        back = (margin - scores[t]) / spread
        total = _ONE + growth * spread
        _step(inverse, w, along, -back - slope / total, growth / total)


@_compiled
def diagonal_arow(rows, labels, number, scores):
    theta, d = np.zeros(rows.shape[1], np.float32), np.ones(rows.shape[1], np.float32)
    for t in range(rows.shape[0]):
        x, score = rows[t], np.float32(0)
        for j in range(x.size):
            score += theta[j] * x[j] / (d[j] + x[j] * x[j] / number)
        scores[t] = score
        if labels[t] * score < _ONE:
            for j in range(x.size):
                theta[j] += labels[t] * x[j]
                d[j] += x[j] * x[j] / number
