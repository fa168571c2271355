"""Second implementations of first-order learners in plain NumPy, written from the papers.

Each takes rows x, outcomes y and a slope(score, outcome), and returns the scores <w_t, x_t>; those
that play without rows take a matrix of gradients and return the decisions.
"""

import numpy as np
from scipy.special import erfi


def logistic_slope(score, label):
    return -label / (1 + np.exp(label * score))


def play(x, y, slope, decide, learn):
    scores = np.zeros(len(y))
    for t in range(len(y)):
        w = decide(t)
        scores[t] = w @ x[t]
        learn(t, w, slope(scores[t], y[t]) * x[t])
    return scores


def strongly_convex_md(x, y, slope, sigma, radius):
    """Shalev-Shwartz 2007, figure 4.1, example 1: w <- Proj(w - g / (sigma t)) on a ball."""
    w = np.zeros(x.shape[1])

    def learn(t, _, g):
        nonlocal w
        w = w - g / (sigma * (t + 1))
        w = w * min(1.0, radius / max(np.linalg.norm(w), 1e-300))

    return play(x, y, slope, lambda t: w, learn)


def strongly_convex(x, y, slope, sigma):
    """Zhang, theorem 14.12: eta = 2/(lambda (t+1)), output weights 2(t+1)/(T(T+3))."""
    w, kept = np.zeros(x.shape[1]), []

    def learn(t, now, g):
        nonlocal w
        kept.append(now)
        w = w - 2 / (sigma * (t + 2)) * g

    scores = play(x, y, slope, lambda t: w, learn)
    T = len(y)
    weights = 2 * (np.arange(1, T + 1) + 1) / (T * (T + 3))
    return scores, weights @ np.array(kept)


def rda_l1(x, y, slope, eta, strength):
    """Corollary 1 (6): f_t = sqrt(t)/2 |w|^2 + eta t strength |w|_1, z = -eta g."""
    theta = np.zeros(x.shape[1])

    def decide(t):
        shrunk = np.maximum(np.abs(theta) - eta * (t + 1) * strength, 0)
        return np.sign(theta) * shrunk / np.sqrt(t + 1)

    def learn(t, _, g):
        nonlocal theta
        theta = theta - eta * g

    return play(x, y, slope, decide, learn)


def adagrad_l1(x, y, slope, eta, delta, strength):
    """Duchi, Hazan, Singer 2011: the sum of gradients over the root of the sum of squares."""
    theta, squares = np.zeros(x.shape[1]), np.zeros(x.shape[1])

    def decide(t):
        shrunk = np.maximum(np.abs(theta) - eta * (t + 1) * strength, 0)
        return np.sign(theta) * shrunk / np.sqrt(delta + squares)

    def learn(t, _, g):
        nonlocal theta, squares
        theta, squares = theta - eta * g, squares + g**2

    return play(x, y, slope, decide, learn)


def ftrl_proximal(x, y, slope, alpha, beta, l1, l2):
    """McMahan et al. 2013, algorithm 1, coordinate by coordinate."""
    z, n = np.zeros(x.shape[1]), np.zeros(x.shape[1])

    def decide(t):
        w = -(z - np.sign(z) * l1) / ((beta + np.sqrt(n)) / alpha + l2)
        return np.where(np.abs(z) <= l1, 0.0, w)

    def learn(t, w, g):
        nonlocal z, n
        sigma = (np.sqrt(n + g**2) - np.sqrt(n)) / alpha
        z, n = z + g - sigma * w, n + g**2

    return play(x, y, slope, decide, learn)


def scale_invariant_pnorm(x, y, slope, eta, lipschitz):
    """Orabona et al. 2015, (12) and its mirror map."""
    d = x.shape[1]
    theta, b, most, paid = np.zeros(d), np.zeros(d), 0, 0.0
    p = 2.0

    def decide(t):
        nonlocal b, most, p
        b, most = np.maximum(b, np.abs(x[t])), max(most, np.count_nonzero(x[t]))
        p = max(2.0, 2 * np.log(max(most, 1)))
        beta = np.sqrt(np.e * lipschitz**2 * (p - 1) + paid)
        seen, w = b > 0, np.zeros(d)
        ratio = np.abs(theta[seen]) / b[seen]
        total = np.sum(ratio**p)
        if total > 0:
            scale = total ** (2 / p - 1) / beta
            w[seen] = scale * np.abs(theta[seen]) ** (p - 1) * b[seen] ** -p * np.sign(theta[seen])
        return w

    def learn(t, _, g):
        nonlocal theta, paid
        seen = b > 0
        paid = paid + (p - 1) * np.sum((np.abs(g[seen]) / b[seen]) ** p) ** (2 / p)
        theta = theta - eta * g

    return play(x, y, slope, decide, learn)


def scale_invariant_adagrad(x, y, slope, eta, lipschitz):
    """Orabona et al. 2015, (13): w = theta / (b^2 sqrt(d) a)."""
    d = x.shape[1]
    theta, b, squares = np.zeros(d), np.zeros(d), np.zeros(d)

    def decide(t):
        nonlocal b
        b = np.maximum(b, np.abs(x[t]))
        safe = np.where(b > 0, b, 1.0)
        a = np.sqrt(lipschitz**2 + squares)
        return np.where(b > 0, theta / (safe**2 * np.sqrt(d) * a), 0.0)

    def learn(t, _, g):
        nonlocal theta, squares
        safe = np.where(b > 0, b, 1.0)
        theta, squares = theta - eta * g, squares + np.where(b > 0, g / safe, 0.0) ** 2

    return play(x, y, slope, decide, learn)


def pnorm_lms(x, y, q):
    """f_t = X_t^2 |w|_q^2 / (2 (q - 1)), z = (y - w.x) x."""
    p = q / (q - 1)
    theta, largest = np.zeros(x.shape[1]), 0.0

    def decide(t):
        nonlocal largest
        largest = max(largest, np.sum(np.abs(x[t]) ** p) ** (1 / p))
        v = theta / largest**2
        norm = np.sum(np.abs(v) ** p) ** (1 / p)
        if norm == 0:
            return np.zeros_like(v)
        return np.sign(v) * np.abs(v) ** (p - 1) / norm ** (p - 2) / (p - 1)

    def learn(t, w, _):
        nonlocal theta
        theta = theta + (y[t] - w @ x[t]) * x[t]

    return play(x, y, lambda score, outcome: 0.0, decide, learn)


def implicit_hinge(x, y, eta):
    """The step of length min(eta, hinge / |x|^2) along y x, which is PA-I."""
    w = np.zeros(x.shape[1])

    def learn(t, now, _):
        nonlocal w
        hinge = max(0.0, 1 - y[t] * (now @ x[t]))
        w = now + min(eta, hinge / (x[t] @ x[t])) * y[t] * x[t]

    return play(x, y, lambda score, label: 0.0, lambda t: w, learn)


def implicit_squared(x, y, eta):
    """tau = (w.x - y) / (1 + |x|^2 / c), w <- w - tau x / c, with c = 1 / eta."""
    w = np.zeros(x.shape[1])

    def learn(t, now, _):
        nonlocal w
        tau = (now @ x[t] - y[t]) / (1 + eta * (x[t] @ x[t]))
        w = now - eta * tau * x[t]

    return play(x, y, lambda score, outcome: 0.0, lambda t: w, learn)


def implicit_logistic(x, y, eta):
    """w <- w + eta p y x, p the chance that the new w gives to the wrong label, by bisection."""
    w = np.zeros(x.shape[1])

    def learn(t, now, _):
        nonlocal w
        margin, size = y[t] * (now @ x[t]), x[t] @ x[t]
        low, high = 0.0, 1.0
        for _ in range(60):
            p = (low + high) / 2
            too_small = p < 1 / (1 + np.exp(margin + eta * size * p))
            low, high = (p, high) if too_small else (low, p)
        w = now + eta * p * y[t] * x[t]

    return play(x, y, lambda score, label: 0.0, lambda t: w, learn)


def coin_betting(x, y, slope, lipschitz, wealth):
    """Krichevsky-Trofimov: w_t = (sum of coins / t) (wealth + reward)."""
    coins, reward = np.zeros(x.shape[1]), 0.0

    def learn(t, w, g):
        nonlocal coins, reward
        reward = reward - (g @ w) / lipschitz
        coins = coins - g / lipschitz

    decide = lambda t: coins / (t + 1) * (wealth + reward)
    return play(x, y, slope, decide, learn)


def coordinate_betting(x, y, slope, lipschitz, wealth):
    coins, reward = np.zeros(x.shape[1]), np.zeros(x.shape[1])

    def learn(t, w, g):
        nonlocal coins, reward
        reward, coins = reward - g * w / lipschitz, coins - g / lipschitz

    decide = lambda t: coins / (t + 1) * (wealth + reward)
    return play(x, y, slope, decide, learn)


def cocob(x, y, slope, alpha):
    """Orabona, Tommasi 2017, algorithm 2, from w_1 = 0."""
    d = x.shape[1]
    coins, largest, total, reward = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)

    def decide(t):
        w = np.zeros(d)
        s = largest > 0
        width = largest[s] * np.maximum(total[s] + largest[s], alpha * largest[s])
        w[s] = coins[s] / width * (largest[s] + reward[s])
        return w

    def learn(t, w, g):
        nonlocal coins, largest, total, reward
        largest, total = np.maximum(largest, np.abs(g)), total + np.abs(g)
        reward, coins = np.maximum(reward - g * w, 0), coins - g

    return play(x, y, slope, decide, learn)


def adahedge(losses, start):
    """De Rooij et al. 2014: eta = ln K / Delta, Delta the sum of mixability gaps."""
    rounds, k = losses.shape
    total, paid, decisions = np.zeros(k), 0.0, []
    for t in range(rounds):
        eta = 1 / (start + paid / np.log(k))
        weights = np.exp(-eta * (total - total.min()))
        w = weights / weights.sum()
        best = losses[t].min()
        mixed = best - np.log(w @ np.exp(-eta * (losses[t] - best))) / eta
        paid += max(w @ losses[t] - mixed, 0.0)
        total = total + losses[t]
        decisions.append(w)
    return np.array(decisions), paid


def clipped(largest, g):
    """Cutkosky 2019: clip to the largest gradient so far; the first one is not clipped."""
    return np.where(largest > 0, np.clip(g, -largest, largest), g)


def freegrad(x, y, slope, wealth):
    """Mhammedi, Koolen 2020, (9), for each coordinate: G is the sum of gradients."""
    d = x.shape[1]
    total, variance, first, largest = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)

    def decide(t):
        s, w = largest > 0, np.zeros(d)
        g, size, v, h = total[s], np.abs(total[s]), variance[s], largest[s]
        factor = (2 * v + h * size) * first[s] ** 2 / (2 * (v + h * size) ** 2 * np.sqrt(v))
        w[s] = -wealth * g * factor * np.exp(size**2 / (2 * v + 2 * h * size))
        return w

    def learn(t, w, g):
        nonlocal total, variance, first, largest
        new = (largest == 0) & (g != 0)
        first, variance = np.where(new, np.abs(g), first), np.where(new, g**2, variance)
        told = clipped(largest, g)
        total, variance = total + told, variance + told**2
        largest = np.maximum(largest, np.abs(g))

    return play(x, y, slope, decide, learn)


def pistol(x, y, slope, b, a):
    """Orabona 2014 with the factor of Vowpal Wabbit, for each coordinate."""
    d = x.shape[1]
    total, sizes, largest = np.zeros(d), np.zeros(d), np.zeros(d)

    def decide(t):
        s, w = largest > 0, np.zeros(d)
        alpha = a * largest[s] * (largest[s] + sizes[s])
        rise = np.exp(total[s] ** 2 / (2 * alpha))
        w[s] = -b * np.sqrt(sizes[s] * largest[s]) * total[s] / alpha * rise
        return w

    def learn(t, w, g):
        nonlocal total, sizes, largest
        told = clipped(largest, g)
        total, sizes = total + told, sizes + np.abs(told)
        largest = np.maximum(largest, np.abs(g))

    return play(x, y, slope, decide, learn)


def erfi_betting(x, y, slope, wealth):
    """Zhang, Cutkosky, Paschalidis 2022, with squares in place of rounds and the time above."""
    d = x.shape[1]
    total, squares, largest = np.zeros(d), np.zeros(d), np.zeros(d)

    def decide(t):
        s, w = largest > 0, np.zeros(d)
        theta, h = -total[s], largest[s]
        wide = np.sqrt(theta**2 + h**2)
        time = squares[s] + h * wide
        z = theta / np.sqrt(2 * time)
        heat = np.sqrt(np.pi / 2) * erfi(z)  # the derivative in theta for a fixed time
        cools = np.exp(z**2) / (2 * np.sqrt(time))  # minus the derivative in time
        w[s] = wealth * (heat - cools * h * theta / wide)
        return w

    def learn(t, w, g):
        nonlocal total, squares, largest
        told = clipped(largest, g)
        total, squares = total + told, squares + told**2
        largest = np.maximum(largest, np.abs(g))

    return play(x, y, slope, decide, learn)


def ons_betting(x, y, slope, wealth):
    """Cutkosky, Orabona 2018, algorithm 1, one bettor at a time."""
    d = x.shape[1]
    money, bet, norm, largest = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)

    def learn(t, w, g):
        for i in np.flatnonzero(g):
            if largest[i] == 0:
                money[i], norm[i] = wealth * abs(g[i]), 4 * g[i] ** 2
            told = clipped(largest[i], g[i])
            money[i] -= told * w[i]
            z = told / (1 - told * bet[i])
            norm[i] += z**2
            largest[i] = max(largest[i], abs(g[i]))
            step = 2 / (2 - np.log(3)) * z / norm[i]
            bet[i] = min(max(bet[i] - step, -0.5 / largest[i]), 0.5 / largest[i])

    return play(x, y, slope, lambda t: bet * money, learn)


def normalized_betting(x, y, slope, alpha):
    """Vowpal Wabbit --coin, with alpha times the largest slope, which all coordinates share."""
    d = x.shape[1]
    coins, sizes, reward, high, scores = *np.zeros((4, d)), np.zeros(len(y))
    steepest, norms = 0.0, 0.0

    def weights(used):
        most = steepest * high[used]
        w = np.zeros(d)
        if steepest > 0:
            w[used] = coins[used] * (alpha * steepest + reward[used]) / most / (most + sizes[used])
        return w

    for t in range(len(y)):
        used = x[t] != 0
        high = np.maximum(high, np.abs(x[t]))
        norms += np.sum((x[t, used] / high[used]) ** 2)
        scores[t] = weights(used) @ x[t] / (norms / (t + 1)) if norms else 0.0
        now = slope(scores[t], y[t])
        steepest = max(steepest, abs(now))
        reward = reward - now * x[t] * weights(used)
        coins, sizes = coins - now * x[t], sizes + np.abs(now * x[t])
    return scores


def scale_free(x, y, slope, radius):
    """Orabona, Pal 2018: minus the sum of gradients over the root of their squares, on a ball."""
    total, squares = np.zeros(x.shape[1]), 0.0

    def decide(t):
        w = -total / np.sqrt(squares) if squares else total
        return w * min(1.0, radius / max(np.linalg.norm(w), 1e-300))

    def learn(t, w, g):
        nonlocal total, squares
        total, squares = total + g, squares + g @ g

    return play(x, y, slope, decide, learn)


def scale_free_md(x, y, slope, radius):
    """Orabona, Pal 2018: a step of the gradient over the root of all squares, then into a ball."""
    point, squares = np.zeros(x.shape[1]), 0.0

    def learn(t, w, g):
        nonlocal point, squares
        squares = squares + g @ g
        moved = w - g / np.sqrt(squares) if squares else w
        point = moved * min(1.0, radius / max(np.linalg.norm(moved), 1e-300))

    return play(x, y, slope, lambda t: point, learn)
