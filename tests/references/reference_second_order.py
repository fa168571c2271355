"""Second implementations of the second-order learners in plain NumPy, written from the papers.

Each takes rows x and outcomes y (labels of +1 and -1 for a classifier), or a slope(score, t) that
is the derivative of the loss of round t (counted from 0), and returns the scores <w_t, x_t>. Every
matrix is built from its definition and solved directly; no inverse is updated.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit


def vaw(x, y, a):
    """Vovk-Azoury-Warmuth: A_t = a I + sum_{s<=t} x_s x_s', the row of this round included."""
    d, scores = x.shape[1], []
    for t in range(len(y)):
        A = a * np.eye(d) + x[: t + 1].T @ x[: t + 1]
        scores.append(x[t] @ np.linalg.solve(A, x[:t].T @ y[:t]))
    return np.array(scores)


def ridge(x, y, a, forget=1.0):
    """Recursive least squares: w_t minimizes sum_{s<t} forget^(t-1-s) (y_s - w.x_s)^2
    + forget^(t-1) a |w|^2, with t and s counted from 1."""
    d, scores = x.shape[1], []
    for t in range(len(y)):
        weight = forget ** np.arange(t - 1, -1, -1.0)
        A = forget**t * a * np.eye(d) + (x[:t].T * weight) @ x[:t]
        scores.append(x[t] @ np.linalg.solve(A, x[:t].T @ (weight * y[:t])))
    return np.array(scores)


SQUARED = lambda s, y: s - y, lambda s, y: 1.0
LOGISTIC = lambda s, y: -y * expit(-y * s), lambda s, y: expit(s) * expit(-s)


def implicit_newton(x, y, a, loss):
    """Kulis, Bartlett 2010 in the norm of A: w' minimizes l(w.x) + |w - w_t|_A^2 / 2, so that
    A (w' - w_t) = -l'(s) x at its own score s. A grows by l''(s) x x'. It starts as the diagonal
    of a f^2, with f the first value of each feature that is not 0. loss: l' and l''."""
    d, scores = x.shape[1], []
    A, w = np.diag(a * x[np.argmax(x != 0, axis=0), np.arange(d)] ** 2), np.zeros(d)
    for row, label in zip(x, y, strict=True):
        scores.append(w @ row)
        along = np.linalg.solve(A, row)
        off = lambda s, w=w, row=row, along=along, label=label: (
            s - w @ row + (row @ along) * loss[0](s, label)
        )
        end = w @ row - (row @ along) * loss[0](w @ row, label)
        s = brentq(off, *sorted([w @ row, end]), xtol=1e-14) if end != w @ row else end
        w = w - loss[0](s, label) * along
        A = A + loss[1](s, label) * np.outer(row, row)
    return np.array(scores)


def classify(x, y, A, r, diagonal, errs):
    """Orabona, Crammer, Cesa-Bianchi 2015, section 6: f_t = w'A_t w / 2, A_t = A_{t-1} + x x'/r,
    z_t = y x. The played weights know this row; the matrix and theta keep it on an error only."""
    theta, scores = np.zeros(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        with_row = A + np.outer(row, row) / r
        if diagonal:
            with_row = np.diag(np.diag(with_row))
        score = row @ np.linalg.solve(with_row, theta)
        scores.append(score)
        if errs(label * score):
            A, theta = with_row, theta + label * row
    return np.array(scores)


def second_order_perceptron(x, y, a=1.0):
    """Cesa-Bianchi, Conconi, Gentile 2005: A_0 = a I, r = 1, an update on a mistake."""
    start = a * np.eye(x.shape[1])
    return classify(x, y, start, 1.0, False, lambda margin: margin <= 0)


def arow(x, y, r):
    """The mirror descent form of AROW: A_0 = I, an update on a margin error."""
    return classify(x, y, np.eye(x.shape[1]), r, False, lambda margin: margin < 1)


def diagonal_arow(x, y, r):
    """The same with the diagonal of A_t in place of A_t."""
    return classify(x, y, np.eye(x.shape[1]), r, True, lambda margin: margin < 1)


def gaussian(x, y, steps):
    """A mean and a covariance that starts at I: mu += alpha y S x, S -= beta S x x' S, where
    steps(y mu.x, x'S x) gives alpha and beta. A row of variance 0 can move nothing."""
    mu, S, scores = np.zeros(x.shape[1]), np.eye(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        score, v = mu @ row, row @ S @ row
        scores.append(score)
        if v > 0:
            alpha, beta = steps(label * score, v)
            mu, S = mu + alpha * label * S @ row, S - beta * np.outer(S @ row, S @ row)
    return np.array(scores)


def arow_original(x, y, r):
    """Crammer, Kulesza, Dredze 2009, figure 1."""

    def steps(m, v):
        if m >= 1:
            return 0.0, 0.0
        return (1 - m) / (v + r), 1 / (v + r)

    return gaussian(x, y, steps)


def diagonal_arow_original(x, y, r):
    """The same with variances only, whose inverses grow by the squares of the row over r."""
    mean, inverse, scores = np.zeros(x.shape[1]), np.ones(x.shape[1]), []
    for row, label in zip(x, y, strict=True):
        scores.append(mean @ row)
        loss = 1 - label * scores[-1]
        if loss > 0:
            mean = mean + label * loss / (r + np.sum(row**2 / inverse)) * row / inverse
            inverse = inverse + row**2 / r
    return np.array(scores)


def shrink(alpha, v, phi):
    """beta for a given alpha: u is the variance of the row after the update."""
    u = (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) ** 2 / 4
    return alpha * phi / (np.sqrt(u) + v * alpha * phi)


def exact_alpha(m, v, phi):
    psi, xi = 1 + phi**2 / 2, 1 + phi**2
    return max(0.0, (-m * psi + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * xi)) / (v * xi))


def confidence_weighted(x, y, phi):
    """Crammer, Dredze, Pereira 2008, the exact form with the standard deviation."""

    def steps(m, v):
        alpha = exact_alpha(m, v, phi)
        return alpha, shrink(alpha, v, phi)

    return gaussian(x, y, steps)


def soft_confidence_weighted(x, y, phi, c, kind):
    """Wang, Zhao, Hoi 2012: SCW-I (kind 1) and SCW-II (kind 2). The loss is
    max(0, phi sqrt(v) - m)."""

    def steps(m, v):
        if phi * np.sqrt(v) - m <= 0:
            return 0.0, 0.0
        if kind == 1:
            alpha = min(c, exact_alpha(m, v, phi))
        else:
            n = v + 1 / (2 * c)
            gamma = phi * np.sqrt(phi**2 * m**2 * v**2 + 4 * n * v * (n + v * phi**2))
            top = -(2 * m * n + phi**2 * m * v) + gamma
            alpha = max(0.0, top / (2 * (n**2 + n * v * phi**2)))
        return alpha, shrink(alpha, v, phi)

    return gaussian(x, y, steps)


def root(G):
    """The square root of a matrix that is symmetric with eigenvalues >= 0."""
    values, vectors = np.linalg.eigh(G)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def adagrad_full(x, slope, eta, delta):
    """Duchi, Hazan, Singer 2011, figure 1, dual averaging with the full matrix:
    w_{t+1} = -eta (delta I + G_t^(1/2))^(-1) sum_{s<=t} g_s."""
    d = x.shape[1]
    w, G, total, scores = np.zeros(d), np.zeros((d, d)), np.zeros(d), []
    for t, row in enumerate(x):
        scores.append(w @ row)
        g = slope(scores[-1], t) * row
        G, total = G + np.outer(g, g), total + g
        w = -eta * np.linalg.solve(delta * np.eye(d) + root(G), total)
    return np.array(scores)


def adagrad_full_descent(x, slope, eta, delta):
    """The same figure, mirror descent: w_{t+1} = w_t - eta (delta I + G_t^(1/2))^(-1) g_t."""
    d = x.shape[1]
    w, G, scores = np.zeros(d), np.zeros((d, d)), []
    for t, row in enumerate(x):
        scores.append(w @ row)
        g = slope(scores[-1], t) * row
        G = G + np.outer(g, g)
        w = w - eta * np.linalg.solve(delta * np.eye(d) + root(G), g)
    return np.array(scores)


class Run(NamedTuple):
    scores: np.ndarray  # (T,)
    w: np.ndarray  # (T, d), the weights played
    g: np.ndarray  # (T, d), their gradients
    matrices: list  # A_0 .. A_T, empty for a learner that does not form them


def play(x, slope, learner, eta_of_t, sigma, adapt=False):
    """Luo 2016, 4.2: score a row, then learn the gradient g and ghat = sqrt(sigma + eta_t) g.

    eta_of_t counts from 1. With adapt, 4.6.2: the learner sees D_t^(-1/2) x_t, where D_t is 0.1
    plus the sum of the squares of the earlier gradients in the raw rows."""
    squares, scores, w, g = np.full(x.shape[1], 0.1), [], [], []
    matrices = [learner.A] if hasattr(learner, "A") else []
    for t, raw in enumerate(x):
        row = raw / np.sqrt(squares) if adapt else raw
        scores.append(learner.score(row))
        pull = slope(scores[-1], t)
        g.append(pull * row)
        w.append(learner.weights())
        learner.learn(g[-1], np.sqrt(sigma + eta_of_t(t + 1)) * g[-1])
        if matrices:
            matrices.append(learner.A)
        squares = squares + (pull * raw) ** 2
    return Run(np.array(scores), np.array(w), np.array(g), matrices)


def beyond(score, C):
    """tau_C of Luo 2016, lemma 11: how far a score is outside [-C, C]."""
    return np.sign(score) * max(abs(score) - C, 0.0)


class Newton:
    """Luo 2016, (4.2): u = w - A^(-1) g, and w is u projected, in the norm of A, on the slab
    |w.x| <= C when the next row x is known. grow(ghat) gives the next A."""

    def __init__(self, start, grow, C):
        self.A, self.grow, self.C = start, grow, C
        self.u = self.w = np.zeros(len(start))

    def score(self, row):
        self.w = self.u
        if row.any():
            along = np.linalg.solve(self.A, row)
            self.w = self.u - beyond(self.u @ row, self.C) / (row @ along) * along
        return self.w @ row

    def learn(self, g, ghat):
        self.A = self.grow(ghat)
        self.u = self.w - np.linalg.solve(self.A, g)

    def weights(self):
        return self.w


def newton_learner(d, alpha, C):
    """Luo 2016, (4.4): A_t = alpha I + sum_{s<=t} ghat_s ghat_s'."""
    A = alpha * np.eye(d)

    def grow(ghat):
        nonlocal A
        A = A + np.outer(ghat, ghat)
        return A

    return Newton(A, grow, C)


def newton_run(x, slope, alpha, C, eta_of_t, sigma, adapt=False):
    return play(x, slope, newton_learner(x.shape[1], alpha, C), eta_of_t, sigma, adapt)


def newton(x, slope, alpha, C, eta_of_t, sigma, adapt=False):
    return newton_run(x, slope, alpha, C, eta_of_t, sigma, adapt).scores


class InvariantNewton:
    """Luo 2016, appendix C.2: A_t = B'B with the rows ghat_s in B and no alpha; pinv for the
    inverse. The pseudoinverse of B is taken, whose singular values are the roots of those of A, so
    that the rank is decided with twice the digits.

    A row outside the range of A leaves the printed problem many solutions. The printed one
    (lemma 15) moves u along P x, P = I - A^+ A, by no more than the slab asks; the score u.x then
    depends on the coordinates. With fresh_zero, the solution whose score is 0: the only rule here
    whose scores do not change when all rows become M x."""

    def __init__(self, d, C, fresh_zero, tolerance):
        self.A, self.B, self.C = np.zeros((d, d)), np.zeros((0, d)), C
        self.fresh_zero, self.tolerance = fresh_zero, tolerance
        self.plus, self.P = np.zeros((d, d)), np.eye(d)
        self.u = self.w = np.zeros(d)

    def score(self, row):
        self.w = self.u
        outside = self.P @ row
        if not row.any():
            return 0.0
        if np.linalg.norm(outside) > self.tolerance * np.linalg.norm(row):
            move = self.u @ row if self.fresh_zero else beyond(self.u @ row, self.C)
            self.w = self.u - move / (row @ outside) * outside
        else:
            along = self.plus @ row
            self.w = self.u - beyond(self.u @ row, self.C) / (row @ along) * along
        return self.w @ row

    def learn(self, g, ghat):
        self.B = np.vstack([self.B, ghat])
        self.A = self.A + np.outer(ghat, ghat)
        inverse = np.linalg.pinv(self.B, rcond=self.tolerance)
        self.plus, self.P = inverse @ inverse.T, np.eye(len(g)) - inverse @ self.B
        self.u = self.w - self.plus @ g

    def weights(self):
        return self.w


def invariant_newton_run(x, slope, C, eta_of_t, sigma, fresh_zero=False, tolerance=1e-9):
    learner = InvariantNewton(x.shape[1], C, fresh_zero, tolerance)
    return play(x, slope, learner, eta_of_t, sigma)


def invariant_newton(x, slope, C, eta_of_t, sigma, fresh_zero=False, tolerance=1e-9):
    return invariant_newton_run(x, slope, C, eta_of_t, sigma, fresh_zero, tolerance).scores


def proposition_1(u, matrices, g, w, sigma):
    """Luo 2016, proposition 1, both sides, for a comparator u in every slab; sigma is one number
    or one per round. matrices is A_0 .. A_T; one without inverse is taken with its pseudoinverse.

    The left side is sum 2 g.(w_t - u) - sigma_t (g.(w_t - u))^2, which is at least twice the regret
    where the losses have the curvature sigma_t. The right side is |u|^2 in A_0, plus
    R_G = sum g'A_t^(-1) g, plus R_D = sum (w_t - u)'(A_t - A_{t-1} - sigma_t g g')(w_t - u)."""
    sigma = np.broadcast_to(sigma, len(g))
    left, right = 0.0, u @ matrices[0] @ u
    for t in range(len(g)):
        gap, slope = w[t] - u, g[t] @ (w[t] - u)
        left += 2 * slope - sigma[t] * slope**2
        right += g[t] @ np.linalg.pinv(matrices[t + 1], rcond=1e-13, hermitian=True) @ g[t]
        right += gap @ (matrices[t + 1] - matrices[t]) @ gap - sigma[t] * slope**2
    return left, right
