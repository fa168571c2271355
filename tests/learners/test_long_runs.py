"""Long runs in float32 stay with float64: sums that only grow are centred or compensated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import _numeric, mirrors
from olx.convex import sets
from olx.core import Learner

EXPERTS = 4
UNIFORM = np.full(EXPERTS, 1 / EXPERTS, np.float32)


def both(learner, losses, state=None):
    """The losses of a run in float32 and in float64, on the same numbers."""
    real = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    runs = []
    for dtype in (np.float32, np.float64):
        cast = lambda leaf, dtype=dtype: np.asarray(leaf, dtype) if real(leaf) else leaf
        own, params, rows, start = jax.tree.map(cast, (learner, UNIFORM, losses, state))
        rounds = olx.Rounds(None, rows)
        runs.append(olx.run(own, olx.losses.linear_loss, rounds, params, state=start))
    return runs


def drawn(rounds, level=0.0):
    rng = np.random.default_rng(0)
    return np.asarray(level + rng.random((rounds, EXPERTS)), np.float32)


ENTROPY = mirrors.negative_entropy()
CENTRED = {
    "hedge": olx.hedge(1.0),
    "omd simplex": olx.omd(0.5, mirrors.euclidean(sets.simplex())),
    "omd floored entropy": olx.omd(1.0, mirrors.floored_entropy(0.05)),
    "omd tsallis": olx.omd(0.5, mirrors.tsallis()),
    "ftrl": olx.ftrl(1.0, olx.regularizers.growing(ENTROPY)),
    "optimistic": olx.optimistic(1.0, ENTROPY),
    "self-confident": olx.first_order.self_confident(ENTROPY, 1.4),
}


@pytest.mark.parametrize("name", CENTRED)
def test_what_all_experts_lose_alike_takes_no_digits(name):
    """Each loses about 1000 in every round: the sums grow to 2e6, their differences do not."""
    single, double = both(CENTRED[name], drawn(2000, 1000.0))
    apart = np.abs(np.float64(single.losses) - double.losses)
    assert np.mean(apart) < 2e-4  # losses are known to 6e-5


def gibbs(w):
    return jnp.sum(w * jnp.log(w))


VECTOR, MATRIX = np.array([3.0, -1.0, 2.0, 2.5]), np.array([[3.0, -1.0], [2.0, 2.5]])
MAPS = {
    "entropy": (ENTROPY, VECTOR),
    "floored entropy": (mirrors.floored_entropy(0.05), VECTOR),
    "tsallis": (mirrors.tsallis(), VECTOR),
    "log barrier": (mirrors.log_barrier_simplex(), VECTOR),
    "euclidean simplex": (mirrors.euclidean(sets.simplex(2.0)), VECTOR),
    "scaled and moved": (mirrors.scale(mirrors.shift(ENTROPY, VECTOR), 3.0), VECTOR),
    "from a potential": (olx.mirror_map(gibbs, start=1.0, total=1.0, separable=True), VECTOR),
    "density matrices": (mirrors.von_neumann(), MATRIX),
    "a simplex a row": (mirrors.rowwise(ENTROPY), MATRIX),
    "parts": (
        mirrors.leafwise({"w": mirrors.euclidean(), "p": ENTROPY}),
        {"w": VECTOR, "p": VECTOR[1:]},
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_centering_changes_no_later_decision(name):
    mirror, theta = MAPS[name]
    normal = np.eye(2) if name == "density matrices" else 1.0
    far = jax.tree.map(lambda leaf: jnp.asarray(leaf + 100 * normal), theta)
    step = jax.tree.map(jnp.cos, far)

    @jax.jit
    def later(mirror, far):
        centred = mirror.center(far)
        decide = lambda theta: mirror.to_primal(jax.tree.map(jnp.add, theta, step))
        return decide(centred), decide(far), centred

    seen, wanted, centred = later(mirror, far)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), seen, wanted)
    assert np.max(np.abs(jax.tree.leaves(centred)[0])) < 10


def test_a_regularizer_that_grows_with_time_keeps_every_gradient():
    """After a million rounds the sum of gradients is 5e5, and float32 holds steps of 1/32."""
    learner = olx.ftrl(1.0, olx.regularizers.growing(mirrors.euclidean(), 1.0))
    single, double = both(learner, np.full((300_000, EXPERTS), 0.1, np.float32))
    np.testing.assert_allclose(single.losses[-1], double.losses[-1], rtol=1e-6)


def test_prod_from_weights_far_below_one():
    learner = olx.experts.prod(0.5)
    start = learner.init(jnp.asarray(UNIFORM))
    low = start._replace(stats=start.stats - 5e5)  # as after a million rounds
    single, double = both(learner, drawn(2000), low)
    np.testing.assert_allclose(single.losses, double.losses, atol=1e-3)


def test_the_gap_is_not_made_of_rounding():
    """Far out the decision hardly moves, so the gap is small; the conjugate is 4e5."""
    learner = olx.first_order.self_confident(mirrors.euclidean(sets.ball(0.8)), 1.0, 0.01)
    start = learner.init(jnp.asarray(UNIFORM))
    far = start._replace(theta=jnp.asarray(UNIFORM) * 1e6)
    single, double = both(learner, drawn(1000), far)
    paid = [float(run.state.paid.value) for run in (single, double)]
    assert abs(paid[0] - paid[1]) < 1e-2
    np.testing.assert_allclose(single.losses, double.losses, rtol=1e-3)


def add_init(step, params):
    return _numeric.start(params)


def add_predict(step, state, context):
    return state.value


def add_update(step, state, feedback):
    return _numeric.add(state, step * feedback.outcome)


def value(action, outcome):
    return action


@pytest.mark.parametrize("play", [olx.run, olx.rollout])
def test_a_sum_keeps_what_rounding_takes(play):
    learner = Learner(np.float32(0.1), add_init, add_predict, add_update)
    rounds = olx.Rounds(None, np.ones(200_000, np.float32))
    total = play(learner, value, rounds, np.zeros((), np.float32)).state
    exact = np.float64(np.float32(0.1)) * 200_000
    assert abs(float(total.value) + float(total.rest) - exact) < 1e-6 * exact
    assert abs(float(total.value) - exact) <= np.spacing(np.float32(exact)) / 2


def test_a_sum_has_the_derivative_of_its_terms():
    def final(step):
        learner = Learner(step, add_init, add_predict, add_update)
        rounds = olx.Rounds(None, jnp.arange(50.0))
        return olx.rollout(learner, value, rounds, jnp.zeros(())).state.value

    assert float(jax.grad(final)(0.1)) == 49 * 25


def test_a_sum_that_overflows_is_infinite():
    total = _numeric.start(jnp.asarray(3e38, jnp.float32))
    for _ in range(3):
        total = _numeric.add(total, jnp.asarray(2e38, jnp.float32))
    assert np.isposinf(total.value)
    assert float(total.rest) == 0
