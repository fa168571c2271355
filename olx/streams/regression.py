r"""Regression, $y_t = \langle u_t, x_t \rangle + \sigma \epsilon_t$, with $u_t$ fixed or not.

$\epsilon_t$ is standard normal. Each stream is a pure function of its key. Counts such as `rounds`
and `features` shape arrays, so they are static under `jit`.

A fixed comparator $u$ is a vector of length 1; these streams differ in their rows $x_t$. If the
comparator changes, rows are standard normal and the truth is the whole path $u_1, \dots, u_T$. Its
length is known exactly; bounds on dynamic regret depend on it.

Zinkevich, Online Convex Programming and Generalized Infinitesimal Gradient Ascent, 2003.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from olx import _check as check
from olx._refusal import public
from olx.core import Rounds, Scalar
from olx.streams.stream import Stream, check_sizes, coins, directions, segments, whole


@public
def linear_regression(key: Array, rounds: int, features: int, noise: Scalar = 0.1) -> Stream:
    r"""Standard normal rows: the easy case, where $\langle u, x \rangle$ has variance 1.

    >>> stream = linear_regression(jax.random.key(0), rounds=50, features=3)
    >>> stream.rounds.context.shape, stream.rounds.outcome.shape, stream.truth.shape
    ((50, 3), (50,), (3,))
    """
    check_sizes(key, rounds=rounds, features=features)
    noise = check.non_negative("noise", noise)
    for_rows, for_truth, for_noise = jax.random.split(key, 3)
    context = jax.random.normal(for_rows, (rounds, features))
    return _observe(for_noise, context, directions(for_truth, (features,)), noise)


@public
def heavy_tailed(
    key: Array, rounds: int, features: int, dof: Scalar = 3.0, noise: Scalar = 0.1
) -> Stream:
    """Student-t rows: sometimes a feature is very large. Tests step sizes that adapt to scale.

    dof: degrees of freedom, positive. The variance is infinite up to 2, no mean exists up to 1.
    """
    check_sizes(key, rounds=rounds, features=features)
    dof = check.positive("dof", dof)
    noise = check.non_negative("noise", noise)
    for_rows, for_truth, for_noise = jax.random.split(key, 3)
    context = jax.random.t(for_rows, dof, (rounds, features))
    return _observe(for_noise, context, directions(for_truth, (features,)), noise)


@public
def ill_conditioned(
    key: Array, rounds: int, features: int, condition: Scalar = 100.0, noise: Scalar = 0.1
) -> Stream:
    r"""Rows with an ill-conditioned second moment, not aligned with the coordinates.

    $\frac1T \sum_t x_t x_t^\top$ has eigenvalues in geometric progression from 1 down to
    1 / `condition`, exactly, in a random basis. Second-order learners are better than first-order
    ones here, and full matrices than diagonals. Needs at least as many rounds as features.
    """
    check_sizes(key, rounds=rounds, features=features)
    whole("features", features, 1, rounds)
    condition = check.between("condition", condition, 1.0, jnp.inf)
    noise = check.non_negative("noise", noise)
    for_rows, for_basis, for_truth, for_noise = jax.random.split(key, 4)
    white, _ = jnp.linalg.qr(jax.random.normal(for_rows, (rounds, features)))
    basis, _ = jnp.linalg.qr(jax.random.normal(for_basis, (features, features)))
    spectrum = condition ** -jnp.linspace(0.0, 1.0, features)
    context = (white * jnp.sqrt(rounds * spectrum)) @ basis.T
    return _observe(for_noise, context, directions(for_truth, (features,)), noise)


@public
def sparse(
    key: Array, rounds: int, features: int, nonzeros: int, relevant: int, noise: Scalar = 0.1
) -> Stream:
    """Sparse rows in a dense array, and a sparse comparator.

    Tests sparse decisions, and learners with one step size per coordinate.

    nonzeros: the number of non-zero features per row.
    relevant: the number of non-zero coordinates of the comparator; all have the same size.
    """
    check_sizes(key, rounds=rounds, features=features)
    whole("nonzeros", nonzeros, 1, features)
    whole("relevant", relevant, 1, features)
    noise = check.non_negative("noise", noise)
    for_places, for_rows, for_support, for_signs, for_noise = jax.random.split(key, 5)
    first = jnp.broadcast_to(jnp.arange(features) < nonzeros, (rounds, features))
    places = jax.random.permutation(for_places, first, axis=1, independent=True)
    context = jnp.where(places, jax.random.normal(for_rows, (rounds, features)), 0.0)
    support = jax.random.permutation(for_support, jnp.arange(features) < relevant)
    signs = jax.random.rademacher(for_signs, (features,), float)
    return _observe(for_noise, context, jnp.where(support, signs / relevant**0.5, 0.0), noise)


@public
def coin_functions(key: Array, rounds: int, calls: int, functions: int | None = None) -> Stream:
    r"""Targets $\frac12 \pm \frac1{10 \sqrt N}$ at random, seen through coins: a lower bound.

    The row holds the values of $M$ functions, each 1 with a chance of $y_t$, else 0. Their mean is
    close to $y_t$, but $N$ of them are not enough to tell the two targets apart. So every way to
    boost a learner that plays single functions has a regret of order $T / N$ to the mean, which is
    the truth, for half the squared error.

    calls: $N$, the number of functions that are played in a round.
    functions: $M$; $4000 N$ if None, as in the proof, which also takes $T \ge 12 M$.

    Luo, Optimal and Adaptive Online Learning, 2016, theorem 15.

    >>> stream = coin_functions(jax.random.key(0), rounds=50, calls=4, functions=30)
    >>> stream.rounds.context.shape, sorted(set(stream.rounds.outcome.round(3).tolist()))
    ((50, 30), [0.45, 0.55])
    """
    check_sizes(key, rounds=rounds, calls=calls)
    functions = 4000 * calls if functions is None else functions
    check.count("functions", functions)
    for_targets, for_values = jax.random.split(key)
    signs = jax.random.rademacher(for_targets, (rounds,), float)
    targets = 0.5 + signs / (10 * calls**0.5)
    values = coins(for_values, targets[:, None], (rounds, functions))
    return Stream(Rounds(values, targets), jnp.full(functions, 1 / functions))


def _observe(key: Array, context: Array, truth: Array, noise: Scalar) -> Stream:
    exact = context @ truth
    return Stream(Rounds(context, exact + noise * jax.random.normal(key, exact.shape)), truth)


@public
def drifting(
    key: Array, rounds: int, features: int, speed: Scalar = 0.01, noise: Scalar = 0.1
) -> Stream:
    r"""A comparator on a random walk: it starts at length 1 and moves by exactly `speed` per round.

    Tests tracking without a bound on the comparator: $\|u_t\|$ grows like the root of $t$.
    """
    check_sizes(key, rounds=rounds, features=features)
    speed = check.non_negative("speed", speed)
    noise = check.non_negative("noise", noise)
    for_walk, for_rounds = jax.random.split(key)
    steps = directions(for_walk, (rounds, features))
    return _observe_changing(for_rounds, jnp.cumsum(steps.at[1:].multiply(speed), axis=0), noise)


@public
def rotating(
    key: Array, rounds: int, features: int, speed: Scalar = 0.01, noise: Scalar = 0.1
) -> Stream:
    r"""A comparator of length 1 that turns by `speed` radians per round in a random plane.

    Tests tracking inside a ball: no fixed comparator is good over a full turn. Needs at least two
    features.
    """
    check_sizes(key, rounds=rounds)
    whole("features", features, 2, 2**31)
    speed = check.non_negative("speed", speed)
    noise = check.non_negative("noise", noise)
    for_plane, for_rounds = jax.random.split(key)
    plane, _ = jnp.linalg.qr(jax.random.normal(for_plane, (features, 2)))
    angle = speed * jnp.arange(rounds, dtype=plane.dtype)
    return _observe_changing(
        for_rounds, jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1) @ plane.T, noise
    )


@public
def switching(
    key: Array, rounds: int, features: int, switches: int = 4, noise: Scalar = 0.1
) -> Stream:
    r"""A comparator of length 1 that changes `switches` times, after pieces of equal length.

    Tests how fast a learner forgets: sleeping, restarting and interval learners.
    """
    check_sizes(key, rounds=rounds, features=features)
    noise = check.non_negative("noise", noise)
    for_pieces, for_rounds = jax.random.split(key)
    piece = segments(rounds, switches)
    truth = directions(for_pieces, (switches + 1, features))[piece]
    return _observe_changing(for_rounds, truth, noise)


def _observe_changing(key: Array, truth: Float[Array, "T d"], noise: Scalar) -> Stream:
    for_rows, for_noise = jax.random.split(key)
    context = jax.random.normal(for_rows, truth.shape)
    exact = jnp.sum(context * truth, axis=1)
    outcome = exact + noise * jax.random.normal(for_noise, exact.shape)
    return Stream(Rounds(context, outcome), truth)
