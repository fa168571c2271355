r"""Classification by a half-space, into classes by linear scores, and by votes of weak learners.

Each stream is a pure function of its key. Counts shape arrays, so they are static under `jit`. Two
classes have the labels $y = \pm 1$, $k$ classes the labels $0, \dots, k - 1$.

The votes are those of the lower bound for online boosting. Labels are $\pm 1$ with equal chance.
Each of $n$ votes is right with chance $\frac12$ in the first rounds and with chance $\frac12 + 2
\gamma$ later, independently of all others. No booster of these votes beats their majority, whose
error is about $e^{-8 n \gamma^2}$; so an error of $\varepsilon$ needs $\Omega(\ln(1 / \varepsilon)
/ \gamma^2)$ votes.

Shalev-Shwartz, Online Learning: Theory, Algorithms, and Applications, 2007, section 5.1; Luo,
Optimal and Adaptive Online Learning, 2016, section 4.6 and theorem 10.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from olx import _check as check
from olx._refusal import RefusedValue, public
from olx.core import Rounds, Scalar
from olx.streams.stream import Stream, check_sizes, coins, directions, whole


@public
def linear_classification(
    key: Array, rounds: int, features: int, margin: Scalar = 0.0, noise: Scalar = 0.0
) -> Stream:
    r"""Normal rows, moved away from the boundary until $|\langle u, x \rangle| \ge$ `margin`.

    Without noise the truth $u$, of length 1, separates the labels with that margin: mistake bounds
    must hold with zero loss of the comparator.

    noise: the probability that a label is flipped.

    >>> stream = linear_classification(jax.random.key(0), rounds=50, features=3, margin=0.5)
    >>> bool(jnp.all(stream.rounds.outcome * (stream.rounds.context @ stream.truth) > 0.499))
    True
    """
    check_sizes(key, rounds=rounds, features=features)
    margin = check.non_negative("margin", margin)
    noise = check.between("noise", noise, 0.0, 1.0)
    for_rows, for_truth, for_flips = jax.random.split(key, 3)
    truth = directions(for_truth, (features,))
    drawn = jax.random.normal(for_rows, (rounds, features))
    score = drawn @ truth
    label = jnp.where(score >= 0, jnp.ones_like(score), -1.0)
    missing = margin - jnp.abs(score)
    push = label * jnp.where(missing <= 0, 0.0, missing)
    context = drawn + push[:, None] * truth
    outcome = label * (1 - 2 * coins(for_flips, noise, (rounds,)))
    return Stream(Rounds(context, outcome), truth)


@public
def logistic_labels(key: Array, rounds: int, features: int, scale: Scalar = 4.0) -> Stream:
    r"""Labels drawn with $P(y = 1 \mid x) = \sigma(\langle u, x \rangle)$, $\|u\|$ = `scale`.

    The truth minimizes the expected logistic loss. Tests log-loss learners, and classification with
    noise that grows towards the boundary.
    """
    check_sizes(key, rounds=rounds, features=features)
    scale = check.non_negative("scale", scale)
    for_rows, for_truth, for_labels = jax.random.split(key, 3)
    truth = scale * directions(for_truth, (features,))
    context = jax.random.normal(for_rows, (rounds, features))
    outcome = 2 * coins(for_labels, jax.nn.sigmoid(context @ truth), (rounds,)) - 1
    return Stream(Rounds(context, outcome), truth)


@public
def stretched_classification(
    key: Array, rounds: int, features: int, stretched: int, condition: Scalar
) -> Stream:
    r"""Normal rows, stretched along some directions of a random basis.

    The covariance of the rows has the eigenvalue 1, and `stretched` eigenvalues that rise linearly
    to `condition`. The labels and the normal numbers behind the rows do not depend on `condition`,
    so a learner that is invariant to linear maps makes the same mistakes at each. The truth, for
    which $\|A^{1/2} u\| = 1$ with the covariance $A$, separates the labels.

    condition: at least 1.

    >>> rounds, u = stretched_classification(jax.random.key(0), 50, 4, 2, condition=100.0)
    >>> bool(jnp.all(rounds.outcome * (rounds.context @ u) > 0))
    True
    """
    check_sizes(key, rounds=rounds, features=features)
    whole("stretched", stretched, 0, features)
    condition = check.between("condition", condition, 1.0, jnp.inf)
    for_rows, for_basis, for_truth = jax.random.split(key, 3)
    white = jax.random.normal(for_rows, (rounds, features))
    basis, _ = jnp.linalg.qr(jax.random.normal(for_basis, (features, features)))
    plain = directions(for_truth, (features,))
    places = jnp.maximum(jnp.arange(1.0 - features + stretched, 1.0 + stretched), 0.0)
    spread = jnp.sqrt(1 + (condition - 1) * places / max(stretched, 1))
    outcome = jnp.where(white @ plain >= 0, jnp.ones(rounds), -1.0)
    return Stream(Rounds((white * spread) @ basis.T, outcome), basis @ (plain / spread))


@public
def r_of_k(key: Array, rounds: int, features: int, r: int, k: int) -> Stream:
    r"""Rows of bits, labelled by whether at least `r` of the `k` relevant bits are 1 (Winnow).

    The last coordinate of a row is -1. The truth lies in the simplex: $1 / (r + k - \frac12)$ on
    the relevant bits, $(r - \frac12) / (r + k - \frac12)$ on the last; it separates with margin
    $\frac12 / (r + k - \frac12)$. A bit is 1 with probability $(r - \frac12) / k$, so both labels
    are common. Mistakes of multiplicative learners grow with `k`, of additive ones with `features`.

    features: the length of a row, with the last coordinate.
    """
    check_sizes(key, rounds=rounds, features=features)
    whole("k", k, 1, features - 1)
    whole("r", r, 1, k)
    for_support, for_bits = jax.random.split(key)
    relevant = jax.random.permutation(for_support, jnp.arange(features - 1) < k)
    bits = coins(for_bits, (r - 0.5) / k, (rounds, features - 1))
    context = jnp.concatenate([bits, -jnp.ones((rounds, 1))], axis=1)
    on = bits @ relevant.astype(float)
    truth = jnp.append(relevant.astype(float), r - 0.5) / (r + k - 0.5)
    return Stream(Rounds(context, jnp.where(on >= r, jnp.ones(rounds), -1.0)), truth)


@public
def linear_classes(
    key: Array, rounds: int, features: int, classes: int, margin: Scalar = 0.0, noise: Scalar = 0.0
) -> Stream:
    r"""Normal rows; the label is the class with the largest score $\langle u_r, x \rangle$.

    The scores of other classes are lowered until the label leads by `margin`. Without noise the
    truth, whose rows $u_r$ are orthonormal, separates the labels with that margin.

    classes: at least 2, at most `features`.
    noise: the probability that a label is replaced by one drawn from all classes.

    >>> import olx
    >>> stream = linear_classes(jax.random.key(0), rounds=50, features=4, classes=3, margin=0.5)
    >>> scores = stream.rounds.context @ stream.truth.T
    >>> bool(jnp.all(olx.losses.margin.margin(scores, stream.rounds.outcome) > 0.499))
    True
    """
    check_sizes(key, rounds=rounds, features=features, classes=classes)
    if not 2 <= classes <= features:
        raise RefusedValue(
            f"`classes` must be at least 2 and at most `features`, got {classes} "
            f"classes and {features} features."
        )
    margin = check.non_negative("margin", margin)
    noise = check.between("noise", noise, 0.0, 1.0)
    for_rows, for_truth, for_labels, for_coins = jax.random.split(key, 4)
    truth = jnp.linalg.qr(directions(for_truth, (classes, features)).T)[0].T
    drawn = jax.random.normal(for_rows, (rounds, features))
    scores = drawn @ truth.T
    best = jnp.argmax(scores, axis=1)
    own = jnp.arange(classes) == best[:, None]
    most = jnp.max(scores, axis=1, keepdims=True) - margin
    context = drawn - jnp.where(own, 0.0, jnp.maximum(scores - most, 0.0)) @ truth
    other = jax.random.randint(for_labels, (rounds,), 0, classes, best.dtype)
    outcome = jnp.where(coins(for_coins, noise, (rounds,)) > 0, other, best)
    return Stream(Rounds(context, outcome), truth)


@public
def weak_votes(key: Array, rounds: int, n: int, gamma: Scalar, blind: int = 0) -> Stream:
    r"""Rounds whose context is the votes of `n` weak learners with the edge $\gamma$.

    gamma: between 0 and 1/4.
    blind: the number of first rounds in which votes are coins. With $S / (4 \gamma)$ of them the
        learners keep an excess loss of $S$.

    The truth gives all votes the same factor: its score is the majority vote.

    >>> rounds, u = weak_votes(jax.random.key(0), rounds=1000, n=99, gamma=0.1)
    >>> bool(jnp.mean(rounds.outcome * (rounds.context @ u) <= 0) < 0.01)
    True
    """
    check_sizes(key, rounds=rounds, n=n)
    gamma = check.inside("gamma", gamma, 0.0, 0.25)
    whole("blind", blind, 0, rounds)
    for_labels, for_votes = jax.random.split(key)
    y = 2 * coins(for_labels, 0.5, (rounds,)) - 1
    chance = jnp.where(jnp.arange(rounds) < blind, 0.5, 0.5 + 2 * gamma)
    right = coins(for_votes, chance[:, None], (rounds, n))
    return Stream(Rounds((2 * right - 1) * y[:, None], y), jnp.full(n, 1 / n))
