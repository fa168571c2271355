"""Reductions over longer vectors give the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import olx
from olx import losses
from olx._memory import equations
from olx.engine.reductions import with_long_reductions

LENGTHS = (1, 15, 16, 31, 32, 50, 64, 99, 100, 128, 639, 640)
REDUCTIONS = {
    "inner product": jnp.vdot,
    "sum": lambda x, y: jnp.sum(x * x + y),
    "largest": lambda x, y: jnp.max(x - 5),
    "smallest": lambda x, y: jnp.min(y + 5),
    "derivative": lambda x, y: jax.grad(lambda x: jnp.vdot(jax.nn.relu(x), y) ** 2)(x),
    "integers": lambda x, y: jnp.sum(jnp.where(x > 0, 1, 0)),
    "matrix": lambda x, y: jnp.outer(x, y) @ x,
    "no axis": lambda x, y: jax.vmap(jnp.sum)(x) * y,
    "loop": lambda x, y: lax.fori_loop(0, 3, lambda _, s: s + jnp.vdot(x, y), 0.0),
}


def vectors(length):
    return np.random.default_rng(length).normal(size=(2, length))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_longer_vector_gives_the_same(name, length):
    function, given = REDUCTIONS[name], vectors(length)
    seen = with_long_reductions(function, *given)(*given)
    np.testing.assert_allclose(seen, function(*given), 1e-12, 1e-12)


def test_only_lengths_that_are_slow_become_longer():
    def sizes(length):
        given = vectors(length)
        traced = jax.make_jaxpr(with_long_reductions(jnp.vdot, *given))(*given)
        added_up = [one for one in equations(traced.jaxpr) if one.primitive.name == "reduce_sum"]
        return [one.invars[0].aval.size for one in added_up]

    assert [sizes(length) for length in (15, 16, 50, 64, 200, 640)] == [
        [15], [64], [64], [96], [224], [640]
    ]  # fmt: skip


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_stay_so(bad):
    x = np.full(50, bad)
    for function in (jnp.max, jnp.min, jnp.sum):
        np.testing.assert_equal(np.asarray(with_long_reductions(function, x)(x)), function(x))


@pytest.mark.parametrize("length", [16, 50, 64, 99, 200])
def test_a_run_of_any_width_is_rollout(length):
    rng = np.random.default_rng(0)
    rounds = olx.Rounds(None, rng.random((40, length)))
    given = olx.hedge(0.5), losses.linear_loss, rounds, jnp.full(length, 1 / length)
    seen, wanted = olx.run(*given), olx.rollout(*given)
    np.testing.assert_allclose(seen.losses, wanted.losses, 1e-12)
