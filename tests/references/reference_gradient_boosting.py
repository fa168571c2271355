"""Gradient boosting for regression in plain NumPy, online and batch, written from the papers.

Source: Luo 2016, section 3.2 and appendix B.2. A base learner has predict(x) and update(x, g), with
g the slope of its linear loss y -> g.y, of length at most 1. A prediction is a number or a vector,
and all norms are Euclidean. `d` is the largest length of a base prediction, D in the thesis.
"""

import math
from collections import namedtuple
from types import SimpleNamespace

import numpy as np

# For labels |target| <= 1 (for `modified_squares` and `logistic` only -1 and +1) and d = 1:
# lipschitz(b), smooth(b) and excess(b) are L_b, beta_b and epsilon_b of section 3.2.2.
Loss = namedtuple("Loss", "value slope lipschitz smooth excess")


def linear():
    return Loss(
        lambda target, y: -target * y,
        lambda target, y: -target,
        lambda b: 1,
        lambda b: 0,
        lambda b: 1,
    )


def p_norm(p):
    """|target - y|^p, p >= 2. The positive part is taken before the power, for odd p and b > 1."""
    return Loss(
        lambda target, y: np.abs(target - y) ** p,
        lambda target, y: p * np.sign(y - target) * np.abs(y - target) ** (p - 1),
        lambda b: p * (b + 1) ** (p - 1),
        lambda b: p * (p - 1) * (b + 1) ** (p - 2),
        lambda b: p * max(1 - b, 0) ** (p - 1),
    )


def modified_squares():
    return Loss(
        lambda target, y: np.maximum(1 - target * y, 0) ** 2 / 2,
        lambda target, y: -target * np.maximum(1 - target * y, 0),
        lambda b: b + 1,
        lambda b: 1,
        lambda b: max(1 - b, 0),
    )


def logistic():
    return Loss(
        lambda target, y: np.logaddexp(0, -target * y),
        lambda target, y: -target / (1 + np.exp(target * y)),
        lambda b: 1 / (1 + math.exp(-b)),
        lambda b: 0.25,
        lambda b: 1 / (1 + math.exp(b)),
    )


def half_square(beta=1.0):
    """(beta / 2) (y - target)^2, also for vectors: theorem 15. The constants are derived here."""
    return Loss(
        lambda target, y: beta / 2 * (y - target) ** 2,
        lambda target, y: beta * (y - target),
        lambda b: beta * (b + 1),
        lambda b: beta,
        lambda b: beta * max(1 - b, 0),
    )


def radius(loss, eta, N, d=1.0):
    """B = min(eta N d, inf{b >= d : eta beta_b b^2 >= epsilon_b d}), for a condition that stays
    true once it is true. For lambda-scaling (G7), d is lambda times the old d."""
    enough = lambda b: eta * loss.smooth(b) * b**2 >= loss.excess(b) * d
    low, high = d, eta * N * d
    if enough(low) or not enough(high):
        return low if enough(low) else high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def inside(y, b):
    return y * min(1.0, b / max(np.sqrt(np.sum(y**2)), 1e-300))


class BallDescent:
    """x -> W x with |W| <= d, |x| <= 1. Steps 2 d / sqrt(t), so its regret is <= 3 d sqrt(T)."""

    def __init__(self, shape, d=1.0):
        self.w, self.d, self.t = np.zeros(shape), d, 0

    def predict(self, x):
        return self.w @ x

    def update(self, x, g):
        self.t += 1
        move = 2 * self.d / math.sqrt(self.t) * np.multiply.outer(g, x)
        self.w = inside(self.w - move, self.d)


class GreedyDescent(BallDescent):
    """G6: descent on W -> loss(offset + alpha W x), a loss with Lipschitz constant alpha lipschitz.
    Its regret is <= alpha R' with R' = 3 d lipschitz sqrt(T)."""

    def __init__(self, shape, alpha, lipschitz, d=1.0):
        super().__init__(shape, d)
        self.alpha, self.lipschitz = alpha, lipschitz

    def update_greedy(self, x, slope, offset):
        super().update(x, slope(offset + self.alpha * self.predict(x)) / self.lipschitz)


class Scaled:
    """G7: lambda times the predictions; the linear loss goes on as it is."""

    def __init__(self, base, factor):
        self.base, self.factor = base, factor

    def predict(self, x):
        return self.factor * self.base.predict(x)

    def update(self, x, g):
        self.base.update(x, g)


class Symmetric:
    """G5: one copy gets the loss, one the negative loss; Hedge mixes A+(x) and -A-(x). The rate of
    Hedge is not in the thesis. Regret <= R(T) + ln 2 / rate + rate T d^2 / 2, to F and to -F."""

    def __init__(self, plus, minus, rate):
        self.plus, self.minus, self.rate, self.lead = plus, minus, rate, 0.0

    def predict(self, x):
        share = 1 / (1 + math.exp(-self.rate * self.lead))
        return share * self.plus.predict(x) - (1 - share) * self.minus.predict(x)

    def update(self, x, g):
        # loss of -A- less the loss of A+
        self.lead += np.sum(g * (-self.minus.predict(x) - self.plus.predict(x)))
        self.plus.update(x, g)
        self.minus.update(x, -g)


class HedgePick:
    """Hedge that plays one of M functions, for theorem 15: x holds the M values, and uniforms[t]
    draws the function. The mean of the M values would escape the lower bound."""

    def __init__(self, M, rate, uniforms):
        self.total, self.rate, self.uniforms, self.t = np.zeros(M), rate, uniforms, 0

    def predict(self, x):
        weights = np.exp(-self.rate * (self.total - self.total.min()))
        law = np.cumsum(weights) / weights.sum()
        return x[min(np.searchsorted(law, self.uniforms[self.t], "right"), len(x) - 1)]

    def update(self, x, g):
        self.total, self.t = self.total + g * x, self.t + 1


def boost(learners, x, targets, loss, scale, combine, learn, feedback):
    """The loop of algorithms 9 and 10: y^i = combine(i, y^(i-1), A^i(x)) from y^0 = 0, i from 1.

    feedback is "slope" (the slope at y^(i-1)), "linear" (corollary 3: for all i the slope at y^N)
    or "greedy" (G6: base learners get the loss and the offset y^(i-1)). learn(t, gradients, parts)
    is called at the end of a round."""
    log = []
    for t, (row, target) in enumerate(zip(x, targets, strict=True), 1):
        outputs = [learner.predict(row) for learner in learners]
        parts = [0.0 * outputs[0]]
        for i, output in enumerate(outputs, 1):
            parts.append(combine(i, parts[-1], output))
        slope = lambda y, target=target: loss.slope(target, y)
        gradients = [slope(parts[-1] if feedback == "linear" else part) for part in parts[:-1]]
        for learner, gradient, part in zip(learners, gradients, parts[:-1], strict=True):
            if feedback == "greedy":
                learner.update_greedy(row, slope, part)
            else:
                learner.update(row, gradient / scale)
        learn(t, gradients, parts)
        log.append((outputs, parts, gradients))
    outputs, parts, gradients = (np.array(column) for column in zip(*log, strict=True))
    return SimpleNamespace(outputs=outputs, parts=parts, gradients=gradients, y=parts[:, -1])


def span_boosting(learners, x, targets, loss, eta, b, feedback="slope"):
    """Algorithm 9. b is B: radius(...), or eta N d for linear feedback. sigmas has T + 1 rows."""
    sigmas, top = [np.zeros(len(learners))], loss.lipschitz(b)

    def combine(i, part, output):
        return inside((1 - sigmas[-1][i - 1] * eta) * part + eta * output, b)

    def learn(t, gradients, parts):
        pull = [np.sum(g * part) for g, part in zip(gradients, parts[:-1], strict=True)]
        sigmas.append(np.clip(sigmas[-1] + np.array(pull) / (top * b * math.sqrt(t)), 0, 1))

    run = boost(learners, x, targets, loss, top, combine, learn, feedback)
    run.sigmas = np.array(sigmas)
    return run


def hull_boosting(learners, x, targets, loss, d=1.0, feedback="slope"):
    """Algorithm 10: eta_i = 2 / (i + 1)."""
    combine = lambda i, part, output: part + 2 / (i + 1) * (output - part)
    return boost(learners, x, targets, loss, loss.lipschitz(d), combine, lambda *_: None, feedback)


def linear_regret(x, gradients, outputs, d=1.0):
    """Regret of one base learner to the ball |W| <= d: sum g.A(x) + d |sum g x'|, times L."""
    pull = sum(np.multiply.outer(g, row) for g, row in zip(gradients, x, strict=True))
    return np.sum(gradients * outputs) + d * np.sqrt(np.sum(pull**2))


def excess(run, targets, loss, f):
    """Delta_i for i = 0..N against the values f (T,) of a function."""
    total = lambda values: np.sum(list(map(loss.value, targets, values)))
    return np.array([total(run.parts[:, i]) - total(f) for i in range(run.parts.shape[1])])


def span_step(delta, loss, eta, b, norm, T, regret):
    """One step of theorem 13 for each i, both sides. norm is |f|_1 >= 1; regret is L_B R(T), one
    number or one for each i, as from linear_regret."""
    top = loss.lipschitz(b)
    rest = 3 * eta * loss.smooth(b) * b**2 * T + regret + 2 * top * b * math.sqrt(T)
    return delta[1:], (1 - eta / norm) * delta[:-1] + eta * rest


def hull_step(delta, loss, d, T, regret):
    """One step of theorem 14 for each i, both sides. regret is L_D R(T), as in span_step."""
    eta = 2 / (np.arange(1, len(delta)) + 1)
    return delta[1:], (1 - eta) * delta[:-1] + 2 * eta**2 * loss.smooth(d) * d**2 * T + eta * regret


def theorem13(start, loss, eta, b, norm, N, T, regret):
    """The right side; start is Delta_0, regret is R(T). With smooth = 0 it is corollary 3. With
    max(1, norm / lambda), lambda R(T) and the radius of lambda d it is corollary 4."""
    top = loss.lipschitz(b)
    rest = 3 * eta * loss.smooth(b) * b**2 * T + top * regret + 2 * top * b * math.sqrt(T)
    return (1 - eta / norm) ** N * start + norm * rest


def theorem14(loss, d, N, T, regret):
    return 8 * loss.smooth(d) * d**2 * T / N + loss.lipschitz(d) * regret


def greedy_regret(loss, b, d, T, alpha, regret):
    """Bound on sum slope(offset).(A - f) for the regret R(T) of greedy fitting, before (B.5)."""
    return loss.smooth(b + alpha * d) / 2 * alpha * d**2 * T + regret / alpha


def theorem15_stream(rounds, N, rng, M=None):
    """Targets 1/2 +- 1/(10 sqrt N), and values (T, M) of M functions, 1 with chance target. The
    proof takes M = 4000 N and T >= 12 M; the comparator is the mean of the M functions."""
    M = 4000 * N if M is None else M
    targets = 0.5 + np.where(rng.uniform(size=rounds) < 0.5, 1, -1) / (10 * math.sqrt(N))
    return targets, (rng.uniform(size=(rounds, M)) < targets[:, None]).astype(float)


def batch_boosting(columns, targets, loss, steps, shrink):
    """G8 on the mean loss of m rows. F = 0 and +-columns (m, K), entries in [-1, 1]. Zhang and Yu:
    f += eta g; with `shrink` the form of the thesis, f = (1 - sigma eta) f + eta g. In both the
    oracle looks at f + eta g. Returns f_0..f_N as values on the rows, and the sigmas."""
    total = lambda f: np.mean(loss.value(targets, f))
    choices = np.hstack([np.zeros((len(targets), 1)), columns, -columns]).T
    fs, sigmas = [np.zeros(len(targets))], []
    for eta in steps:
        f = fs[-1]
        g = min(choices, key=lambda g, f=f, eta=eta: total(f + eta * g))
        sigmas.append(float(shrink and np.mean(loss.slope(targets, f) * f) >= 0))
        fs.append((1 - sigmas[-1] * eta) * f + eta * g)
    return np.array(fs), np.array(sigmas)


def batch_bounds(fs, targets, loss, steps, f, norm, beta):
    """Delta_N, and the right sides of (B.7) and (B.8), against f with |f|_1 = norm >= 1. s_0 = 1,
    and beta is the smoothness in the norm sqrt(mean f^2). The proof takes Delta_0 >= 0."""
    total = lambda values: np.mean(loss.value(targets, values))
    start, s = total(fs[0]) - total(f), 1 + np.append(0, np.cumsum(steps))
    noise = beta / 2 * np.asarray(steps) ** 2
    b7 = (s[0] + norm) / (s[-1] + norm) * start + np.sum((s[1:] + norm) / (s[-1] + norm) * noise)
    decay = np.exp(-(s[-1] - s) / norm)
    b8 = decay[0] * start + np.sum(decay[1:] * noise * (s[1:] ** 2 + 1))
    return total(fs[-1]) - total(f), b7, b8
