"""Optimizers of optax as learners, and learners as optimizers of optax."""

from olx.interop.optax.from_optax import from_optax as from_optax
from olx.interop.optax.to_optax import to_optax as to_optax
