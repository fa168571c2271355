"""Expert algorithms in plain NumPy, written from the papers and not from the library.

Each is a function of the regrets so far: `weights(q, past)` where row s of `past` holds the
regrets of round s, scaled by confidence. It is recomputed from scratch in every round.
"""

import numpy as np


def play(weights, losses, confidence, prior):
    """The distributions played, with confidences: Luo 2016, (2.8)."""
    q = prior / prior.sum()
    past, played = np.zeros((0, len(q))), []
    for loss, awake in zip(losses, confidence, strict=True):
        w = np.asarray(weights(q, past))
        p = w * awake
        if p.sum() == 0:
            p = q * awake
        p = p / p.sum() if awake.any() else 0 * q
        played.append(p)
        if awake.any():
            loss = np.where(awake > 0, loss, 0.0)
            past = np.vstack([past, awake * (p @ loss - loss)])
    return np.array(played)


def hedge(eta_at):
    return lambda q, past: q * np.exp(eta_at(len(past) + 1) * past.sum(0))


def two_norm(q, past):
    s = -past.sum(0)
    return q * (np.minimum(s - 1, 0) ** 2 - np.minimum(s + 1, 0) ** 2)


def normal_hedge_dt(q, past):
    s, t = -past.sum(0), len(past) + 1
    square = lambda v: np.exp(np.minimum(v, 0) ** 2 / (3 * t))
    return q * (square(s - 1) - square(s + 1))


def phi(r, c):
    return np.exp(np.maximum(r, 0) ** 2 / (3 * np.where(c > 0, c, 1)))


def normal_weight(r, c):
    return (phi(r + 1, c + 1) - phi(r - 1, c + 1)) / 2


def ada_normal_hedge(exponent):
    def weights(q, past):
        size = np.where(past == 0, float(exponent == 0), np.abs(past) ** exponent)
        return q * normal_weight(past.sum(0), size.sum(0))

    return weights


def normal_hedge(q, past):
    """Bisection for the width: Luo 2016, notes on table 2.1."""
    x = np.maximum(past.sum(0), 0) ** 2
    top = x[q > 0].max()
    if top == 0:
        return q
    low, high = 1e-3 * top, 10 * top
    for _ in range(200):
        c = np.sqrt(low * high)
        with np.errstate(over="ignore"):
            low, high = (c, high) if q @ np.exp(x / c) > np.e else (low, c)
    return q * np.sqrt(x) * np.exp(x / c)


def adahedge(q, past):
    """De Rooij et al. 2014, with the mix loss of sleepers equal to the loss of the learner."""
    n, gap = len(q), 0.0
    for t in range(len(past) + 1):
        total = past[:t].sum(0)
        if gap == 0:
            p = q * (total >= total[q > 0].max() - 1e-13)
        else:
            p = q * np.exp(np.log(n) / gap * (total - total[q > 0].max()))
        p = p / p.sum()
        if t == len(past):
            return p
        r = past[t]
        if gap == 0:
            gap += max(r[p > 0].max(), 0.0)
        else:
            eta = np.log(n) / gap
            gap += np.log(p @ np.exp(eta * r)) / eta


def rates(q, squares):
    known = np.where(q > 0, np.minimum(q, 0.5), 0.5)
    return np.minimum(0.5, np.sqrt(np.log(1 / known) / (1 + squares)))


def adapt_ml_prod(q, past):
    logs, eta = np.zeros(len(q)), rates(q, 0.0)
    for t, r in enumerate(past):
        new = rates(q, (past[: t + 1] ** 2).sum(0))
        logs = new / eta * (logs + np.log(1 + eta * r))
        eta = new
    return q * eta * np.exp(logs)


def boa(q, past):
    total, eta = np.zeros(len(q)), rates(q, 0.0)
    for t, r in enumerate(past):
        total = total + r - eta * r**2
        eta = rates(q, (past[: t + 1] ** 2).sum(0))
    return q * eta * np.exp(eta * total)


def squint(count):
    def weights(q, past):
        r, v = past.sum(0), (past**2).sum(0)
        return q * sum(2.0**-k * np.exp(r / 2**k - v / 4**k) for k in range(1, count + 1))

    return weights


def ml_poly(q, past):
    """The rule of opera: 1 / rate is the sum of squares plus the largest square of all."""
    if not past.any():
        return q
    inverse = (past**2).sum(0) + (past**2).max()
    return q * np.maximum(past.sum(0), 0) / inverse


def any_range(weight, learn):
    """A unit for each expert; all sums are in the units of the losses."""

    def weights(q, past):
        unit, stats = np.zeros(len(q)), np.zeros((2, len(q)))
        known = lambda: np.where(unit > 0, unit, 1.0)
        now = lambda: np.where(unit > 0, q * weight(q, stats, known()) / known(), 0.0)
        for r in past:
            w = now()
            p = w / w.sum() if w.any() else q
            kept = np.minimum(np.maximum(r, -unit), unit)
            if np.any((kept > r) & (p > 0)) and p @ kept > 0:
                gains = kept > 0
                kept[gains] *= -(p[~gains] @ kept[~gains]) / (p[gains] @ kept[gains])
            stats = stats + learn(q, stats, known(), kept)
            for i in range(len(q)):
                if unit[i] == 0:
                    unit[i] = abs(r[i])
                while abs(r[i]) > unit[i] * (1 + 1e-13):
                    unit[i] *= 2
        return now()

    return weights


def rates_with_units(q, squares, unit):
    return rates(q, squares / unit**2) / unit


def weight_by_rates(q, stats, unit):
    eta = rates_with_units(q, stats[1], unit)
    return unit * eta * np.exp(eta * stats[0])


def boa_sums(q, stats, unit, r):
    return np.array([r - rates_with_units(q, stats[1], unit) * r**2, r**2])


def adapt_ml_prod_sums(q, stats, unit, r):
    eta = rates_with_units(q, stats[1], unit)
    return np.array([np.log(1 + eta * r) / eta, r**2])


def squint_weight(count):
    def weight(q, stats, unit):
        etas = [2.0**-k / unit for k in range(1, count + 1)]
        return unit * sum(eta * np.exp(eta * stats[0] - eta**2 * stats[1]) for eta in etas)

    return weight


def squint_sums(q, stats, unit, r):
    return np.array([r, r**2])


def normal_weight_in_units(q, stats, unit):
    return normal_weight(stats[0] / unit, stats[1] / unit)


def normal_sums(q, stats, unit, r):
    return np.array([r, np.abs(r)])


def play_prod(eta, losses, confidence, prior):
    """On losses, where a sleeper loses what the learner does."""
    w, played = prior / prior.sum(), []
    for loss, awake in zip(losses, confidence, strict=True):
        p = w * awake
        p = p / p.sum() if awake.any() else 0 * w
        played.append(p)
        if awake.any():
            loss = np.where(awake > 0, loss, 0.0)
            w = w * (1 - eta * (awake * loss + (1 - awake) * (p @ loss)))
    return np.array(played)


def fixed_share(eta, alpha):
    def weights(q, past):
        p = q
        for r in past:
            v = p * np.exp(eta * r)
            p = (1 - alpha) * v / v.sum() + alpha * q
        return p

    return weights


def tracking(alive):
    """AdaNormalHedge.TV with the copies for which `alive(start, now)`, rounds counted from 1."""

    def weights(q, past):
        now = len(past) + 1
        total = np.zeros(len(q))
        for start in range(1, now + 1):
            if alive(start, now):
                r = past[start - 1 :]
                total += normal_weight(r.sum(0), np.abs(r).sum(0)) / start**2
        return q * total

    return weights


def streaming_alive(start, now):
    """Hazan, Seshadhri 2009: a start r 2^k, r odd, lives for 2^(k+2) rounds more."""
    power = 1
    while start % (2 * power) == 0:
        power *= 2
    return start <= now <= start + 4 * power


def drifting_value(final, beta, t, rounds, s, moves=(-1, 1)):
    """The potential of the drifting game and its weight, as the least of a convex function of w.

    A maximum of lines has its minimum over w at 0 or where two of them cross.
    """
    if t == rounds:
        return final(s), None
    phi = [drifting_value(final, beta, t + 1, rounds, s + z, moves)[0] for z in moves]
    pairs = [(i, j) for i in range(len(moves)) for j in range(i)]
    w = [0.0] + [(phi[i] - phi[j]) / (moves[j] - moves[i]) for i, j in pairs]
    w = np.array([each for each in w if each >= 0])
    lines = [p + w * (z - beta) for p, z in zip(phi, moves, strict=True)]
    worst = np.max(lines, axis=0)
    return np.min(worst), w[np.isclose(worst, np.min(worst), rtol=0, atol=1e-12)]


def peeled(v):
    """The total weight of intervals by lemma 5: peel off the minimum and recurse."""
    if len(v) == 0 or np.max(v) <= 0:
        return 0.0
    low, at = v.min(), int(v.argmin())
    rest = v - low
    return low + peeled(rest[:at]) + peeled(rest[at + 1 :])
