"""Guarded quotients and roots: their values, and derivatives of both orders where they end."""

import jax
import jax.numpy as jnp
import numpy as np

from olx import _numeric as safe

X = jnp.array([-1.0, 0.0, 4.0])


def test_a_guarded_operation_has_its_value_and_the_other_one_elsewhere():
    assert safe.or_one(X).tolist() == [1.0, 1.0, 4.0]
    assert safe.or_one(X, X != 0).tolist() == [-1.0, 1.0, 4.0]
    assert safe.divide(2.0, X).tolist() == [0.0, 0.0, 0.5]
    assert safe.divide(2.0, X, jnp.inf, X != 0).tolist() == [-2.0, np.inf, 0.5]
    assert safe.sqrt(X).tolist() == [0.0, 0.0, 2.0]


def test_derivatives_are_finite_on_the_branch_not_taken():
    for function in (safe.sqrt, lambda x: safe.divide(1.0, x), lambda x: jnp.log(safe.or_one(x))):
        slope = jax.vmap(jax.grad(function))(X)
        bend = jax.vmap(jax.grad(jax.grad(function)))(X)
        assert slope[:2].tolist() == bend[:2].tolist() == [0.0, 0.0]
        assert np.all(np.isfinite([slope, bend]))
        assert float(slope[2]) != 0
