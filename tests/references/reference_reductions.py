"""Second implementations of reductions in plain NumPy: each takes gradients, gives decisions."""

import numpy as np


class FreeGrad:
    """Mhammedi, Koolen 2020, for each coordinate, with gradients clipped to the largest so far."""

    def __init__(self, size):
        self.total, self.variance, self.first, self.largest = np.zeros((4, size))

    def decide(self):
        w = np.zeros(len(self.total))
        for i in np.flatnonzero(self.largest):
            g, v, h = self.total[i], self.variance[i], self.largest[i]
            wide = v + h * abs(g)
            rise = np.exp(g**2 / (2 * wide)) * self.first[i] ** 2 / np.sqrt(v)
            w[i] = -g * (v + wide) / (2 * wide**2) * rise
        return w

    def learn(self, gradients):
        for i, g in enumerate(gradients):
            if self.largest[i] == 0:
                self.first[i], self.variance[i], told = abs(g), g**2, g
            else:
                told = min(max(g, -self.largest[i]), self.largest[i])
            self.total[i] += told
            self.variance[i] += told**2
            self.largest[i] = max(self.largest[i], abs(g))


def ball(v):
    return v / max(np.linalg.norm(v), 1.0)


def constrained(gradients, start):
    """Cutkosky 2020: a step that would lead farther out of the ball loses its outward part."""
    inner, played = FreeGrad(len(start)), []
    for g in gradients:
        z = start + inner.decide()
        x = ball(z)
        played.append(x)
        if not np.array_equal(x, z):
            n = (z - x) / np.linalg.norm(z - x)
            g = g - min(g @ n, 0) * n
        inner.learn(g)
    return np.array(played)


def direction_and_magnitude(gradients, start):
    """Cutkosky, Orabona 2018, algorithm 2; the direction is that of Orabona, Pal 2018."""
    size, total, squares, played = FreeGrad(1), np.zeros(len(start)), 0.0, []
    for g in gradients:
        y = ball(-total / np.sqrt(squares)) if squares else total
        played.append(start + size.decide()[0] * y)
        size.learn([g @ y])
        total, squares = total + g, squares + g @ g
    return np.array(played)


def add_learners(gradients, start):
    first, second = FreeGrad(len(start)), direction_and_magnitude(gradients, np.zeros(len(start)))
    played = []
    for g, other in zip(gradients, second, strict=True):
        played.append(start + first.decide() + other)
        first.learn(g)
    return np.array(played)


def anytime(slope_at, start, eta, weights):
    """Cutkosky 2019, algorithm 1, with gradient descent: x is the mean of all decisions so far."""
    decisions, played = [np.array(start)], []
    for t, a in enumerate(weights):
        x = np.average(decisions, axis=0, weights=weights[: t + 1])
        played.append(x)
        decisions.append(decisions[-1] - eta * a * slope_at(t, x))
    return np.array(played)


def schedule_free(slope_at, start, eta, beta, weights):
    """Defazio et al. 2024, algorithm 1, with gradient descent and weights of the new decisions."""
    z, later, played = np.array(start), [], []
    for t in range(len(weights)):
        x = np.average(later, axis=0, weights=weights[:t]) if t else z
        y = (1 - beta) * z + beta * x
        played.append(y)
        z = z - eta * slope_at(t, y)
        later.append(z)
    return np.array(played), np.average(later, axis=0, weights=weights)


def mechanic(slope_at, start, eta, rounds, first=1e-6, shrinks=False, decay=0.01, eps=1e-8, n=6):
    """Cutkosky, Defazio, Mehta 2023, algorithm 1, with gradient descent, one bettor at a time.

    With clipped bets, absolute values in the maximum, and a reward that may be negative.

    shrinks: whether offsets are divided by the scale plus `eps`, where they were multiplied by it.
    """
    delta, x, s, played = np.zeros(len(start)), np.array(start), np.full(n, first), []
    m, v, r = np.zeros((3, n))
    for t in range(rounds):
        played.append(x)
        g = slope_at(t, x)
        if shrinks:
            delta = delta * s.sum() / (s.sum() + eps)
        pulled = g + decay * s.sum() * np.linalg.norm(g) * x / (np.linalg.norm(x) + eps)
        h = pulled @ delta
        delta = delta - eta * g
        for i in range(n):
            beta = 1 - 0.1 ** (i + 1)
            r[i] = beta * r[i] - s[i] * min(max(h, -m[i]), m[i])
            m[i] = max(beta * m[i], abs(h) + eps)
            v[i] = beta**2 * v[i] + h**2
            s[i] = (first * m[i] / n + max(r[i], 0.0)) / (np.sqrt(v[i]) + eps)
        x = np.array(start) + s.sum() * delta
    return np.array(played)


def online_to_nonconvex(slope_at, start, eta, shares):
    """Cutkosky, Mehta, Orabona 2023, algorithm 1, with gradient descent in the unit ball."""
    x, step, played = np.array(start), np.zeros(len(start)), []
    for t, share in enumerate(shares):
        w = x + share * step
        played.append(w)
        x, step = x + step, ball(step - eta * slope_at(t, w))
    return np.array(played)


def ader(gradient, rounds, diameter):
    """Zhang, Lu, Zhou 2018, algorithms 3 and 4, in the unit ball."""
    n = int(np.ceil(np.log2(1 + 4 * rounds / 7) / 2)) + 1
    steps = [2**i * diameter * np.sqrt(7 / (2 * rounds)) for i in range(n)]
    weights = np.array([(1 + 1 / n) / (i * (i + 1)) for i in range(1, n + 1)])
    points, played = np.zeros((n, 2)), []
    for t in range(rounds):
        x = weights @ points
        g = gradient(x, t)
        played.append(x)
        weights = weights * np.exp(-np.sqrt(2 / rounds) / diameter * (points - x) @ g)
        weights = weights / weights.sum()
        points = np.array([x - eta * g for x, eta in zip(points, steps, strict=True)])
        points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1)
    return np.array(played)


def sword(gradient, rounds, diameter, smooth):
    """Zhao et al. 2024, Sword++, in the unit ball for gradients up to 1."""
    n = int(np.ceil(np.log2(8 * rounds) / 2)) + 1
    steps = [min(1 / (8 * smooth), 2**i * diameter / np.sqrt(8 * rounds)) for i in range(n)]
    centers, last, guess = np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(2)
    lost, variation, played = np.zeros(n), 0.0, []
    for t in range(rounds):
        points = np.array([ball(c - eta * guess) for c, eta in zip(centers, steps, strict=True)])
        paid = 2 * smooth * np.sum((points - last) ** 2, axis=1)
        rate = 1 / (8 * diameter**2 * smooth)
        if variation > 0:
            rate = min(rate, np.sqrt(np.log(n) / variation) / diameter)
        p = np.exp(-rate * (lost + points @ guess + paid))
        p = p / p.sum()
        x = p @ points
        g = gradient(x, t)
        played.append(x)
        lost = lost + points @ g + paid
        variation += np.sum((g - guess) ** 2)
        centers = np.array([ball(c - eta * g) for c, eta in zip(centers, steps, strict=True)])
        last, guess = points, g
    return np.array(played)


def cbce(targets, eta, span):
    """Jun et al. 2017 over descent on (w - y)^2 / 4: a bettor for every start and power of 2."""
    bettors, played = [], []
    for t, y in enumerate(targets, start=1):
        prior = 1 / (t**2 * t.bit_length())  # 1 + floor(log2 t) binary digits
        for k in range(t.bit_length()):
            if t % 2**k == 0:
                new = {"start": t, "end": t + 2**k, "prior": prior}
                bettors.append(new | {"point": 0.0, "coins": 0.0, "wealth": 1.0})
        bettors = [one for one in bettors if t < one["end"]]
        bets = [one["coins"] / (t - one["start"] + 1) * one["wealth"] for one in bettors]
        weights = np.array([one["prior"] * max(b, 0) for one, b in zip(bettors, bets, strict=True)])
        if not weights.any():
            weights = np.array([one["prior"] for one in bettors])
        p = weights / weights.sum()
        points = np.array([one["point"] for one in bettors])
        played.append(p @ points)
        losses = (points - y) ** 2 / 4
        regrets = [p @ (losses - loss) / span for loss in losses]
        for one, b, regret in zip(bettors, bets, regrets, strict=True):
            coin = regret if b > 0 else max(regret, 0)
            one["coins"] += coin
            one["wealth"] += coin * b
            one["point"] -= eta * (one["point"] - y) / 2
    return np.array(played)
