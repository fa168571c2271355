"""The solvers of the label-ranking update, against interior points in NumPy and cvxpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_ranking as reference
from jax.tree_util import Partial

from olx import convex

LABELS, PROBLEMS = 7, 500


def problems(count=PROBLEMS, seed=0):
    """Scores, relevant labels and numbers: with ties, without relevant labels, with all of them."""
    draw = np.random.default_rng(seed)
    scores = draw.normal(size=(count, LABELS)) * draw.choice([0.1, 1.0, 5.0], (count, 1))
    scores[::4] = np.round(scores[::4])
    relevant = draw.random((count, LABELS)) < draw.choice([0.2, 0.5, 0.9], (count, 1))
    relevant[::50], relevant[1::50] = True, False
    c, square, total = (draw.choice([0.3, 1.0, 4.0], count) for _ in range(3))
    return scores, relevant, draw.choice([0.1, 0.9, 1.5], count), c, square, total


def shifted(scores, relevant, margin, c, square):
    sign = np.where(relevant, -1.0, 1.0)
    return c[:, None] * (margin[:, None] / 2 + sign * scores) / square[:, None]


def test_the_exact_update_is_that_of_the_source():
    scores, relevant, margin, c, square, total = problems()
    v = shifted(scores, relevant, margin, c, square)
    wanted = np.stack(
        [
            reference.euclidean_optimal(*one)
            for one in zip(scores, relevant, margin, c, square, total, strict=True)
        ]
    )
    for solve in (convex.balanced, convex.balanced_search):
        seen = jax.jit(jax.vmap(solve))(v, relevant, total)
        np.testing.assert_allclose(seen, wanted, atol=1e-12)
    some = np.flatnonzero(relevant.any(1) & ~relevant.all(1))[:40]
    for i in some:
        start = reference.ranking_problem(relevant[i], total[i])
        slopes = reference.euclidean_slopes(scores[i], relevant[i], margin[i], c[i], square[i])
        point, _ = reference.interior_point(slopes, *start, 1e-13)
        np.testing.assert_allclose(point[:-1], wanted[i], atol=1e-6)
    assert np.count_nonzero(wanted.sum(1) == 0) > 20  # some without loss, or without labels
    assert np.count_nonzero(np.isclose(wanted.sum(1), 2 * total)) > 50  # some at the bound


def test_the_exact_update_is_that_of_cvxpy():
    cvxpy = pytest.importorskip("cvxpy")
    scores, relevant, margin, c, square, total = problems(40, seed=1)
    v = shifted(scores, relevant, margin, c, square)
    seen = jax.jit(jax.vmap(convex.balanced))(v, relevant, total)
    a, target, sign = cvxpy.Variable(LABELS), cvxpy.Parameter(LABELS), cvxpy.Parameter(LABELS)
    size = cvxpy.Parameter(nonneg=True)
    program = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(a - target)),
        [a >= 0, sign @ a == 0, cvxpy.sum(a) <= size],
    )
    for row, inside, most, alpha in zip(v, relevant, total, seen, strict=True):
        target.value, sign.value, size.value = row, np.where(inside, 1.0, -1.0), 2 * most
        program.solve(solver="CLARABEL", tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
        np.testing.assert_allclose(alpha, a.value, atol=1e-7)


def entropic(count=200, seed=2):
    draw = np.random.default_rng(seed)
    scores = draw.random((count, LABELS)) ** draw.choice([1, 4, 9], (count, 1))
    scores[::5, 1] = scores[::5, 0]
    relevant = np.arange(LABELS) < draw.integers(1, LABELS, (count, 1))
    c, margin = draw.choice([0.2, 1.0, 5.0], count), draw.choice([0.05, 0.3, 0.9], count)
    return np.clip(scores, 1e-9, 1 - 1e-9), relevant, margin, c


def test_the_entropic_update_is_that_of_interior_points():
    given = entropic()
    seen = jax.jit(jax.vmap(convex.balanced_logits))(*given)
    wanted = np.stack([reference.entropic_optimal(*one) for one in zip(*given, strict=True)])
    scores, relevant, margin, c = given
    value = lambda a: (
        margin / 2 * a.sum(1)
        - c * np.log(1 - scores + scores * np.exp(np.where(relevant, a, -a) / c[:, None])).sum(1)
    )
    assert np.all(value(np.asarray(seen)) >= value(wanted) - 1e-12)
    np.testing.assert_allclose(np.where(relevant, seen, -seen).sum(1), 0, atol=1e-10)
    curved = np.min(scores * (1 - scores), axis=1) > 1e-3  # else the dual is flat near its maximum
    np.testing.assert_allclose(seen[curved], wanted[curved], atol=1e-7)
    assert np.count_nonzero(curved) > 40


def test_the_updates_are_differentiable():
    scores, relevant = (part[:12] for part in entropic()[:2])

    @jax.jit
    def total(solve, scores):
        alpha = jax.vmap(solve)(scores, jnp.asarray(relevant))
        return jnp.sum(jnp.sin(3 * alpha))

    exact = Partial(lambda v, inside: convex.balanced(v, inside, 1.0))
    search = Partial(lambda v, inside: convex.balanced_search(v, inside, 1.0))
    logits = Partial(lambda v, inside: convex.balanced_logits(v, inside, 0.4, 2.0))
    for solve, at in ((exact, 2 * scores - 0.8), (search, 2 * scores - 0.8), (logits, scores)):
        along = np.random.default_rng(5).normal(size=at.shape) * at * (1 - np.abs(at))
        slope = jnp.vdot(jax.jit(jax.grad(total, argnums=1))(solve, at), along)
        step = 1e-6
        ahead, behind = total(solve, at + step * along), total(solve, at - step * along)
        np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-4)


def hinges(seed, k=6, d=4):
    draw = np.random.default_rng(seed)
    return draw.normal(size=(k, d)), draw.normal(size=k) + 0.5, draw.normal(size=d)


@pytest.mark.parametrize("seed", range(3))
def test_the_hinges_are_solved_by_both_methods(seed):
    rows, bounds, acc = hinges(seed)
    c, steps = 1.7, 3000
    gaps = bounds - rows @ acc / c
    dual = lambda alpha: alpha @ bounds - np.sum((acc + alpha @ rows) ** 2) / (2 * c)
    phi = lambda v: c / 2 * v @ v + max(0.0, np.max(gaps - rows @ v))
    best = np.asarray(convex.ascend_hinges(lambda theta: theta, c, acc, rows, bounds, steps=steps))
    mean = np.asarray(convex.average_hinges(c, gaps, rows, steps=steps))
    for alpha in (best, mean):
        assert np.all(alpha >= 0)
        assert alpha.sum() <= 1 + 1e-12
    primal = phi(best @ rows / c) - acc @ acc / (2 * c)
    np.testing.assert_allclose(dual(best), primal, atol=1e-9)  # no duality gap
    reach = np.sqrt(2 * c * max(gaps.max(), 0)) + np.sqrt(np.max(np.sum(rows**2, axis=1)))
    slack = reach**2 * (1 + np.log(steps)) / (2 * c * steps)
    assert phi(mean @ rows / c) <= phi(best @ rows / c) + slack
    alone = np.zeros(len(gaps))
    alone[np.argmax(gaps)] = 1.0
    assert dual(mean) >= dual(alone) - 1e-12


def test_hinges_with_nothing_to_gain_stay():
    rows = np.eye(3)
    np.testing.assert_array_equal(convex.average_hinges(1.0, -np.ones(3), rows), np.zeros(3))
    flat = lambda theta: theta
    seen = convex.ascend_hinges(flat, 1.0, np.zeros(3), rows, -np.ones(3))
    np.testing.assert_array_equal(seen, np.zeros(3))


def test_the_hinges_are_solved_for_the_entropy():
    rows, bounds, acc = hinges(4)
    rows, c = np.sign(rows), 2.0
    link = lambda theta: jax.nn.softmax(theta)
    alpha = convex.ascend_hinges(link, c, acc, rows, bounds, steps=2000)
    w = np.asarray(link((acc + alpha @ rows) / c))
    left = bounds - rows @ w
    worst = max(0.0, left.max())
    np.testing.assert_allclose(alpha @ left, worst * max(float(alpha.sum()), worst > 0), atol=1e-7)


def test_bad_shapes_are_refused_by_name():
    with pytest.raises(TypeError, match=r"average_hinges: `rows` has shape \(3, 3\) for \(2,\)"):
        convex.average_hinges(1.0, np.ones(2), np.eye(3))
