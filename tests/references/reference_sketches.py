"""Sketched online Newton (Luo 2016, chapter 4) in plain NumPy: each sketch dense, and each sparse.

A dense sketch has update(ghat) -> S, where S'S stands for the sum of ghat ghat'. The learner forms
A = alpha I + S'S and solves with it. A sparse learner keeps the weights in two parts, so that a row
with few entries changes few numbers; it must give the scores of its dense twin.
"""

import numpy as np
from reference_second_order import Newton, beyond, play


class RandomProjection:
    """Algorithm 12: S += r ghat'. r (T, m) holds the random vectors, of variance 1/m each."""

    def __init__(self, r, d):
        self.r, self.t, self.S = r, 0, np.zeros((r.shape[1], d))

    def update(self, ghat):
        self.S = self.S + np.outer(self.r[self.t], ghat)
        self.t += 1
        return self.S


def shrunk(S, m):
    """The top m eigenvalues of S'S less the m-th, their eigenvectors as rows, and the m-th. A
    matrix of fewer than m singular values is filled up with zeros."""
    _, values, rows = np.linalg.svd(S, full_matrices=False)
    energy, V = np.zeros(m), np.zeros((m, S.shape[1]))
    k = min(m, len(values))
    energy[:k], V[:k] = values[:k] ** 2, rows[:k]
    return np.maximum(energy - energy[-1], 0), V, energy[-1]


class FrequentDirections:
    """Algorithm 13: the new vector goes to the last row, which is 0 again after the shrinking."""

    def __init__(self, m, d):
        self.S, self.lost = np.zeros((m, d)), []

    def update(self, ghat):
        self.S[-1] = ghat
        energy, V, rho = shrunk(self.S, len(self.S))
        self.lost.append(rho)  # rho_t of theorem 18
        self.S = np.sqrt(energy)[:, None] * V
        return self.S.copy()


class EpochFrequentDirections:
    """Algorithm 16: 2 m rows [D V; G], shrunk after every m vectors."""

    def __init__(self, m, d):
        self.m, self.top, self.G, self.lost = m, np.zeros((m, d)), np.zeros((0, d)), []

    def update(self, ghat):
        self.G = np.vstack([self.G, ghat])
        if len(self.G) == self.m:
            energy, V, rho = shrunk(np.vstack([self.top, self.G]), self.m)
            self.lost.append(rho)
            self.top, self.G = np.sqrt(energy)[:, None] * V, self.G[:0]
        return np.vstack([self.top, self.G])


class Oja:
    """Algorithm 14. V (m, d) starts as given, with orthonormal rows; gamma_of_t counts from 1 and
    gives a number or one per row. Gram-Schmidt keeps the order and the direction of the rows."""

    def __init__(self, V, gamma_of_t):
        self.V, self.gamma_of_t, self.t, self.energy = V, gamma_of_t, 0, np.zeros(len(V))

    def update(self, ghat):
        self.t += 1
        gamma, v = self.gamma_of_t(self.t), self.V @ ghat
        self.energy = (1 - gamma) * self.energy + gamma * v**2
        Q, R = np.linalg.qr((self.V + np.outer(gamma * v, ghat)).T)
        self.V = (Q * np.where(np.diag(R) < 0, -1, 1)).T
        return np.sqrt(self.t * self.energy)[:, None] * self.V


class Counted:
    """A sketch whose rows count, in the matrix of the step, as squares of at most `most`."""

    def __init__(self, sketch, most):
        self.sketch, self.most = sketch, most

    def update(self, ghat):
        S = self.sketch.update(ghat)
        squares = np.maximum(np.sum(S**2, axis=1), self.most)
        return S * np.sqrt(self.most / squares)[:, None]


def sketched_newton_run(x, slope, sketch, alpha, C, eta_of_t, sigma, adapt=False):
    """Algorithm 11 with A = alpha I + S'S formed and solved."""
    start = alpha * np.eye(x.shape[1])

    def grow(ghat):
        S = sketch.update(ghat)
        return start + S.T @ S

    return play(x, slope, Newton(start, grow, C), eta_of_t, sigma, adapt)


def sketched_newton(x, slope, sketch, alpha, C, eta_of_t, sigma, adapt=False):
    return sketched_newton_run(x, slope, sketch, alpha, C, eta_of_t, sigma, adapt).scores


class SparseRandomProjection:
    """Algorithm 15: w = bar + S'b."""

    def __init__(self, r, d, alpha, C):
        m = r.shape[1]
        self.r, self.t, self.alpha, self.C = r, 0, alpha, C
        self.bar, self.b = np.zeros(d), np.zeros(m)
        self.S, self.H = np.zeros((m, d)), np.eye(m) / alpha

    def score(self, row):
        xh = self.S @ row
        if row.any():
            now = self.bar @ row + self.b @ xh
            c = beyond(now, self.C) / (row @ row - xh @ self.H @ xh)
            self.bar, self.b = self.bar - c * row, self.b + c * self.H @ xh
        return self.bar @ row + self.b @ xh

    def weights(self):
        return self.bar + self.S.T @ self.b

    def learn(self, g, ghat):
        r = self.r[self.t]
        self.t += 1
        self.S = self.S + np.outer(r, ghat)
        self.H = np.linalg.inv(self.alpha * np.eye(len(r)) + self.S @ self.S.T)
        self.bar = self.bar - (r @ self.b) * ghat - g / self.alpha
        self.b = self.b + self.H @ self.S @ g / self.alpha


def decompose(P, K, least=0.0, tolerance=1e-7):
    """Algorithm 21: for K = R R', Gram-Schmidt on the rows of P R without forming them. Gives L
    and Q with L Q R = P R, the rows of Q R orthonormal; a dependent row adds no row to Q, nor does
    one whose rest is not longer than least."""
    Q = np.zeros((0, P.shape[1]))
    for p in P:
        rest = p
        for _ in range(2):  # the second pass removes what rounding left
            rest = rest - Q.T @ (Q @ K @ rest)
        length = np.sqrt(max(rest @ K @ rest, 0.0))
        if length > max(least, tolerance * np.abs(p) @ np.sqrt(np.diag(K))):
            Q = np.vstack([Q, rest / length])
    return P @ K @ Q.T, Q


class SparseOja:
    """Algorithms 22 and 23 with F^(-1) for the misprinted A^(-1): V = F Z, K = Z Z',
    w = bar + Z'b."""

    def __init__(self, V, gamma_of_t, alpha, C):
        m, d = V.shape
        self.Z, self.gamma_of_t, self.alpha, self.C = V, gamma_of_t, alpha, C
        self.F, self.K, self.t, self.energy = np.eye(m), np.eye(m), 0, np.zeros(m)
        self.bar, self.b = np.zeros(d), np.zeros(m)

    def inner(self):
        """t Lambda H of the text: A^(-1) = (I - V' inner V) / alpha."""
        return self.t * self.energy / (self.alpha + self.t * self.energy)

    def score(self, row):
        zx = self.Z @ row
        if row.any():
            xh = self.F @ zx
            now = self.bar @ row + self.b @ zx
            c = beyond(now, self.C) / (row @ row - xh @ (self.inner() * xh))
            self.bar, self.b = self.bar - c * row, self.b + c * self.F.T @ (self.inner() * xh)
        return self.bar @ row + self.b @ zx

    def weights(self):
        return self.bar + self.Z.T @ self.b

    def learn(self, g, ghat):
        self.t += 1
        gamma, zg = self.gamma_of_t(self.t), self.Z @ ghat
        v = self.F @ zg
        self.energy = (1 - gamma) * self.energy + gamma * v**2
        delta = np.linalg.solve(self.F, gamma * v)
        grown = np.outer(delta, zg)
        self.K = self.K + grown + grown.T + (ghat @ ghat) * np.outer(delta, delta)
        self.Z = self.Z + np.outer(delta, ghat)
        _, self.F = decompose(self.F, self.K)
        self.bar = self.bar - g / self.alpha - (delta @ self.b) * ghat
        pulled = self.inner() * (self.F @ self.Z @ g)
        self.b = self.b + self.F.T @ pulled / self.alpha


class SparseFrequentDirections:
    """Algorithms 18 to 20, repaired: S = [D F Z; G], K = Z Z', w = bar + Z'b.

    As printed, N1 has no inverse and G is used after it is emptied. The repairs, at the end of an
    epoch: (1) while D = 0 take the rows of G as the new Z; (2) the last row of the eigenvectors
    carries no energy, so put the old last direction there; (3) when F is too badly conditioned,
    form V = F Z and start again from F = I; (4) use G before it is emptied."""

    def __init__(self, V, alpha, C, threshold=1e4):
        m, d = V.shape
        self.m, self.alpha, self.C, self.threshold = m, alpha, C, threshold
        self.D, self.F, self.Z, self.K = np.zeros(m), np.eye(m), V, np.eye(m)
        self.G, self.bar, self.b = np.zeros((0, d)), np.zeros(d), np.zeros(m)
        self.epochs, self.densified = 0, 0

    def image(self, v):
        """S v."""
        return np.concatenate([self.D * (self.F @ self.Z @ v), self.G @ v])

    def inverse(self):
        """H = (alpha I + S S')^(-1); the rows F Z are orthonormal."""
        cross = self.D[:, None] * (self.F @ self.Z @ self.G.T)
        gram = np.block([[np.diag(self.D**2), cross], [cross.T, self.G @ self.G.T]])
        return np.linalg.inv(self.alpha * np.eye(len(gram)) + gram)

    def add(self, v, scale):
        """w += scale (S'H S v - v), each half of S' into its own part of w."""
        out = self.inverse() @ self.image(v)
        self.bar = self.bar + scale * (self.G.T @ out[self.m :] - v)
        self.b = self.b + scale * self.F.T @ (self.D * out[: self.m])

    def score(self, row):
        zx = self.Z @ row
        if row.any():
            xh = self.image(row)
            outside = beyond(self.bar @ row + self.b @ zx, self.C)
            self.add(row, outside / (row @ row - xh @ self.inverse() @ xh))
        return self.bar @ row + self.b @ zx

    def weights(self):
        return self.bar + self.Z.T @ self.b

    def learn(self, g, ghat):
        self.G = np.vstack([self.G, ghat])
        if len(self.G) == self.m:
            self.end_epoch()
        self.add(g, 1 / self.alpha)

    def eigensystem(self):
        """Algorithm 20: the eigenvectors are the rows of N1 Z + N2 G. The last value says whether
        the m rows of G are independent of each other and of the old directions. A score on the
        edge of the slab can leave a gradient of 1e-16: such a row counts as 0."""
        m, F, cross = self.m, self.F, self.Z @ self.G.T
        M = cross.T @ F.T
        gram = np.block([[self.K, cross], [cross.T, self.G @ self.G.T]])
        least = 1e-7 * max(self.D.max(), np.linalg.norm(self.G, axis=1).max())
        L, Q = decompose(np.hstack([-M @ F, np.eye(m)]), gram, least)
        ML = np.hstack([M, L])
        small = ML.T @ ML
        small[:m, :m] += np.diag(self.D**2)
        values, vectors = np.linalg.eigh(small)
        energy, U = values[::-1][:m], vectors[:, ::-1][:, :m].T
        if self.D.any():  # repair 2
            free = np.eye(m + len(Q))[m - 1]
            free = free - U[:-1].T @ (U[:-1] @ free)
            if np.linalg.norm(free) > 1e-8:
                U[-1] = free / np.linalg.norm(free)
        N1, N2 = U[:, :m] @ F + U[:, m:] @ Q[:, :m], U[:, m:] @ Q[:, m:]
        return N1, N2, np.maximum(energy, 0), len(Q) == m

    def end_epoch(self):
        N1, N2, energy, full = self.eigensystem()
        first = full and not self.D.any()
        F = N2 if first else N1
        if np.linalg.cond(F) > self.threshold:  # repair 3
            V = np.linalg.qr((N1 @ self.Z + N2 @ self.G).T)[0].T
            self.rebase(V, np.eye(self.m), np.eye(self.m))
            self.densified += 1
        elif first:  # repair 1
            self.rebase(self.G, N2, self.G @ self.G.T)
        else:
            delta = np.linalg.solve(N1, N2)
            grown = delta @ self.G @ self.Z.T
            self.K = self.K + grown + grown.T + delta @ (self.G @ self.G.T) @ delta.T
            self.F, self.Z = N1, self.Z + delta @ self.G
            self.bar = self.bar - self.G.T @ (delta.T @ self.b)  # repair 4
        self.D, self.G = np.sqrt(np.maximum(energy - energy[-1], 0)), self.G[:0]
        self.epochs += 1

    def rebase(self, Z, F, K):
        """A new Z: the part Z'b of the weights moves to bar."""
        self.bar, self.b = self.weights(), np.zeros(self.m)
        self.Z, self.F, self.K = Z, F, K


def sparse_random_projection(x, slope, r, alpha, C, eta_of_t, sigma, adapt=False):
    learner = SparseRandomProjection(r, x.shape[1], alpha, C)
    return play(x, slope, learner, eta_of_t, sigma, adapt).scores


def sparse_frequent_directions(x, slope, V, alpha, C, eta_of_t, sigma, adapt=False, threshold=1e4):
    learner = SparseFrequentDirections(V, alpha, C, threshold)
    return play(x, slope, learner, eta_of_t, sigma, adapt).scores


def sparse_oja(x, slope, V, gamma_of_t, alpha, C, eta_of_t, sigma, adapt=False):
    learner = SparseOja(V, gamma_of_t, alpha, C)
    return play(x, slope, learner, eta_of_t, sigma, adapt).scores
