"""Where arrays are: in the memory of the host, or in that of an accelerator.

On the CPU both are one memory. On an accelerator a stream that fits is one chunk: it is put on
the device once, and its output comes back once, at the end. The compiler then knows the number of
rounds; else the host would ask the device after every round whether it was the last one. Arrays of
the device stay there.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx._refusal import RefusedValue
from olx.core import Rounds
from olx.engine import tuning


def accelerated() -> bool:
    """Whether the rounds are played on a device with a memory of its own."""
    return jax.default_backend() != "cpu"


def bytes_per_chunk() -> int:
    """Bytes for a chunk and its output: two chunks at a time are half of the memory."""
    told = jax.local_devices()[0].memory_stats() or {}
    return told.get("bytes_limit", tuning.DEVICE_BYTES) // 4


def put_rounds(rounds: Rounds, span: np.ndarray, capacity: int) -> tuple[Rounds, Any]:
    """The rounds and which to play, for a program; None in place of these if all are played."""
    known = accelerated() and span[1] - span[0] == capacity
    return put_on_device((rounds, None if known else span))


def put_on_device(tree: PyTree) -> PyTree:
    """Arrays and numbers on the accelerator, if there is one; all of them go there by this call."""
    return jax.device_put(tree) if accelerated() else tree


def padded_leaf(leaf: jax.Array, capacity: int, dtype: Any) -> jax.Array:
    """An array of the device, padded with zeros there."""
    short = capacity - leaf.shape[0]
    leaf = leaf if leaf.dtype == dtype else leaf.astype(dtype)
    return jnp.pad(leaf, [(0, short), *[(0, 0)] * (leaf.ndim - 1)]) if short else leaf


def stays_on_device(leaf: object) -> bool:
    """Whether an array is left where it is: on the device that plays it."""
    return isinstance(leaf, jax.Array) and accelerated()


def is_key(leaf: object) -> bool:
    if isinstance(leaf, np.ndarray) or not isinstance(leaf, jax.Array):
        return False
    plain = isinstance(leaf.dtype, np.dtype)  # a key has a dtype of JAX
    return not plain and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def data_of(leaf: Any) -> Any:
    """A leaf as numbers: the key of a random generator as its data."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


class Devices(NamedTuple):
    """On how many devices a sweep is played."""

    all: int
    here: int  # of this process


def devices_of(configurations: int) -> Devices:
    """The devices that play; 1 if the configurations are cut into shares instead."""
    here, every = jax.local_device_count(), jax.device_count()
    if jax.process_count() == 1:
        return Devices(*[min(here, configurations)] * 2)
    if jax.default_backend() == "cpu" and every == jax.process_count():
        return Devices(1, 1)
    if here * jax.process_count() != every:
        raise RefusedValue(
            f"process {jax.process_index()} has {here} of {every} devices; give each of "
            f"the {jax.process_count()} processes the same number."
        )
    return Devices(every, here)
