"""Online boosting for classification in plain NumPy, written from the papers.

Source: Luo 2016, section 3.1. Labels and votes are -1 or +1, and sign(0) = +1. A weak learner has
predict(x) and update(x, y, weight); its weight is an importance, so nothing is drawn at random.
"""

import math
from types import SimpleNamespace

import numpy as np
from reference_boosting import bisect, sign
from references import simplex


class Perceptron:
    def __init__(self, size):
        self.w = np.zeros(size)

    def predict(self, x):
        return float(sign(self.w @ x))

    def update(self, x, y, weight):
        if self.predict(x) != y:
            self.w = self.w + weight * y * x


class HingeDescent(Perceptron):
    """Gradient descent on weight * [1 - y w.x]_+ with a fixed rate."""

    def __init__(self, size, rate):
        self.w, self.rate = np.zeros(size), rate

    def update(self, x, y, weight):
        if y * (self.w @ x) < 1:
            self.w = self.w + self.rate * weight * y * x


class Table:
    """Votes that are known before the game; the weights it was given are kept in `seen`."""

    def __init__(self, votes):
        self.votes, self.seen = votes, []

    def predict(self, x):
        return float(self.votes[len(self.seen)])

    def update(self, x, y, weight):
        self.seen.append(weight)


def play(learners, x, y, weigh, norm, decide, learn):
    """One round: all learners vote, then s^i = s^(i-1) + alpha^i y h^i, then learner i gets
    the weight weigh(i, s^(i-1)) / norm(i), i from 1. decide(h) -> (alpha, prediction)."""
    log = []
    for t, (row, label) in enumerate(zip(x, y, strict=True), 1):
        h = np.array([learner.predict(row) for learner in learners])
        alpha, prediction = decide(h)
        s = np.append(0.0, np.cumsum(alpha * label * h))
        w = np.array([weigh(i, s[i - 1]) for i in range(1, len(h) + 1)])
        p = w / [norm(i) for i in range(1, len(h) + 1)]
        for learner, importance in zip(learners, p, strict=True):
            learner.update(row, label, importance)
        learn(t, label, h, s)
        log.append((h, s, w, p, alpha, prediction))
    names = ("h", "s", "w", "p", "alpha", "prediction")
    columns = zip(*log, strict=True)
    return SimpleNamespace(**{n: np.array(c) for n, c in zip(names, columns, strict=True)})


def plain_vote(learners, x, y, weigh, norm):
    decide = lambda h: (np.ones(len(h)), sign(h.sum()))
    return play(learners, x, y, weigh, norm, decide, lambda *_: None)


def coin(n, k, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k) if 0 <= k <= n else 0.0


def bbm_weight(N, gamma, i, s):
    """Equation (3.5), with the factor 1/2 that line 8 of algorithm 7 leaves out."""
    return coin(N - i, math.floor((N - i - s + 1) / 2), 0.5 + gamma / 2) / 2


def bbm_potential(N, gamma, i, s):
    last = min(math.floor((N - i - s) / 2), N - i)
    return sum(coin(N - i, k, 0.5 + gamma / 2) for k in range(last + 1))


def exponential_potential(N, gamma, eta, i, s):
    """Another solution of (3.4), with equality in the second line."""
    factor = (0.5 - gamma / 2) * math.exp(eta) + (0.5 + gamma / 2) * math.exp(-eta)
    return factor ** (N - i) * math.exp(-eta * s)


def online_bbm(learners, x, y, gamma):
    """Algorithm 7 with weights. norm(i) is the largest of all (1/2) P[k heads], reached or not."""
    N = len(learners)
    norm = lambda i: max(coin(N - i, k, 0.5 + gamma / 2) for k in range(N - i + 1)) / 2
    return plain_vote(learners, x, y, lambda i, s: bbm_weight(N, gamma, i, s), norm)


def potential_booster(learners, x, y, potential, norm=None):
    """Equation (3.4) for potential(i, s). norm(i) is the largest weight at any s^(i-1) that i - 1
    votes can reach: smaller than the one of online_bbm."""
    weigh = lambda i, s: (potential(i, s - 1) - potential(i, s + 1)) / 2
    reach = lambda i: max(weigh(i, s) for s in range(1 - i, i, 2))
    return plain_vote(learners, x, y, weigh, norm or reach)


def lemma8(run, y, gamma, potential):
    """Rounds with s^N <= 0, and T Phi_0(0) - sum w (z - gamma). Equal for BBM with any N; for an
    odd N the left side is the number of mistakes."""
    right = len(y) * potential(0, 0) - np.sum(run.w * (y[:, None] * run.h - gamma))
    return np.sum(run.s[:, -1] <= 0), right


def theorem9_start(N, gamma):
    return bbm_potential(N, gamma, 0, 0), math.exp(-N * gamma**2 / 2)


def adaboost_ol(learners, x, y, uniforms=None):
    """Algorithm 8 with weights. `chance` is the law of i_t; uniforms (T,) draw i_t from it, and
    without them `prediction` is the partial vote of the first most likely expert."""
    N, log = len(learners), []
    alphas, log_v = [np.zeros(N)], [np.zeros(N)]

    def decide(h):
        partial = sign(np.cumsum(alphas[-1] * h))
        chance = np.exp(log_v[-1] - log_v[-1].max())
        chance = chance / chance.sum()
        u = None if uniforms is None else uniforms[len(log)]
        i = (
            np.argmax(chance)
            if u is None
            else min(np.searchsorted(np.cumsum(chance), u, "right"), N - 1)
        )
        log.append((partial, chance))
        return alphas[-1], partial[i]

    def learn(t, label, h, s):
        moved = alphas[-1] + 4 / math.sqrt(t) * label * h / (1 + np.exp(s[1:]))
        alphas.append(np.clip(moved, -2, 2))
        log_v.append(log_v[-1] - (log[-1][0] != label))

    run = play(learners, x, y, lambda i, s: 1 / (1 + math.exp(s)), lambda i: 1.0, decide, learn)
    run.partial, run.chance = (np.array(column) for column in zip(*log, strict=True))
    run.alphas, run.log_v = np.array(alphas), np.array(log_v)  # T + 1 rows: the last one is next
    run.mistakes = np.sum(run.partial != y[:, None], axis=0)
    return run


def alpha_regret(before, z, alpha):
    """Regret of the sequence alpha against the best number of [-2, 2], for ln(1 + e^-(s + a z))."""
    total = lambda a: np.sum(np.logaddexp(0, -(before + a * z)))
    gain = lambda a: np.sum(z / (1 + np.exp(before + a * z)))
    return total(alpha) - min(total(-2.0), total(2.0), total(bisect(gain, -2.0, 2.0)))


def theorem11(run, y):
    """The deterministic core, both sides, and the measured regrets (theory: at most 6 sqrt(T))."""
    z = y[:, None] * run.h
    gammas = np.sum(run.w * z, axis=0) / (2 * np.sum(run.w, axis=0))
    before = np.append(len(y), run.mistakes[:-1])  # M_0 = T
    columns = range(z.shape[1])
    regrets = np.array([alpha_regret(run.s[:, i], z[:, i], run.alpha[:, i]) for i in columns])
    left = gammas**2 @ before + np.sum(np.logaddexp(0, -run.s[:, -1]))
    return left, len(y) * math.log(2) + regrets.sum(), regrets


def hedge_over_experts(run, y):
    """Expected mistakes of AdaBoost.OL, and (min_i M_i + ln N) / (1 - 1/e)."""
    left = np.sum(run.chance * (run.partial != y[:, None]))
    return left, (run.mistakes.min() + math.log(run.h.shape[1])) / (1 - math.exp(-1))


def lemma10(share):
    alpha = np.clip(0.5 * np.log(share / (1 - share)), -2, 2) if 0 < share < 1 else 4 * share - 2
    return share * np.exp(-alpha) + (1 - share) * np.exp(alpha), 1 - 0.5 * (2 * share - 1) ** 2


def smooth_weight(gamma, i, s):
    """min(1, (1 - gamma)^(z / 2)), z = s^(i-1) - (i - 1) theta, theta = gamma / (2 + gamma)."""
    return min(1.0, (1 - gamma) ** ((s - (i - 1) * gamma / (2 + gamma)) / 2))


def osboost(learners, x, y, gamma):
    """Chen, Lin, Lu 2012, equal votes. The paper was not at hand. The notes, an early Vowpal Wabbit
    and the Python package charliermarsh/online_boosting agree on this weight."""
    return plain_vote(learners, x, y, lambda i, s: smooth_weight(gamma, i, s), lambda i: 1.0)


def osboost_ocp(learners, x, y, gamma, rate=None):
    """OSBoost with votes alpha from gradient descent on [theta - y alpha.h]_+ over the simplex.

    NOT checked with the paper. Both programs have this loss, this set and the start 1/N; the rate
    is 1/sqrt(N t) in Vowpal Wabbit (used here) and 1/sqrt(t) in the package: rate(t) replaces it.
    """
    N, theta = len(learners), gamma / (2 + gamma)
    rate, alphas, ones = rate or (lambda t: 1 / math.sqrt(N * t)), [np.full(N, 1 / N)], np.ones(N)

    def learn(t, label, h, s):
        move = rate(t) * label * h if label * (alphas[-1] @ h) < theta else 0.0
        alphas.append(simplex(alphas[-1] + move))

    decide = lambda h: (ones, sign(alphas[-1] @ h))  # the weights come from the equal votes
    weigh = lambda i, s: smooth_weight(gamma, i, s)
    run = play(learners, x, y, weigh, lambda i: 1.0, decide, learn)
    run.alphas = np.array(alphas)
    return run


def theorem10_votes(rounds, N, gamma, rng, blind=0):
    """Labels and votes (T, N) of the lower bound: each vote is right with chance 1/2 in the first
    `blind` rounds (S / (4 gamma) in the proof), and 1/2 + 2 gamma later."""
    y = sign(rng.uniform(size=rounds) - 0.5)
    right = np.where(np.arange(rounds) < blind, 0.5, 0.5 + 2 * gamma)
    return y, np.where(rng.uniform(size=(rounds, N)) < right[:, None], 1, -1) * y[:, None]


def majority_error(N, gamma):
    """P[at most half of N votes are right] at chance 1/2 + 2 gamma; at most exp(-8 N gamma^2)."""
    return sum(coin(N, k, 0.5 + 2 * gamma) for k in range(N // 2 + 1))
