"""Optimizers of optax as learners."""

from olx.interop.optax.from_optax import from_optax as from_optax
