"""Where the rounds of a chunk are: in the memory of the host, or in that of an accelerator.

On the CPU both are one memory. On an accelerator a stream that fits is one chunk: it is placed on
the device once, and its output comes back once, at the end. The compiler then knows the number of
rounds; else the host would ask the device after every round whether it was the last one. Arrays of
the device stay there.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Rounds

_USUAL = 1 << 32  # bytes; the memory of a device that does not say how much it has


def accelerated() -> bool:
    """Whether the rounds are played on a device with a memory of its own."""
    return jax.default_backend() != "cpu"


def room() -> int:
    """Bytes for a chunk and its output: two chunks at a time are half of the memory."""
    told = jax.local_devices()[0].memory_stats() or {}
    return told.get("bytes_limit", _USUAL) // 4


def placed(rounds: Rounds, span: np.ndarray, capacity: int) -> tuple[Rounds, Any]:
    """The rounds and which to play, for a program; None in place of these if all are played."""
    known = accelerated() and span[1] - span[0] == capacity
    return there((rounds, None if known else span))


def there(tree: PyTree) -> PyTree:
    """Arrays and numbers on the accelerator, if there is one; all of them go there by this call."""
    return jax.device_put(tree) if accelerated() else tree


def filled(leaf: jax.Array, capacity: int, dtype: Any) -> jax.Array:
    """An array of the device, padded with zeros there."""
    short = capacity - leaf.shape[0]
    leaf = leaf if leaf.dtype == dtype else leaf.astype(dtype)
    return jnp.pad(leaf, [(0, short), *[(0, 0)] * (leaf.ndim - 1)]) if short else leaf


def kept(leaf: Any) -> bool:
    """Whether an array is left where it is: on the device that plays it."""
    return isinstance(leaf, jax.Array) and accelerated()
