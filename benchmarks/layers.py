"""The delta rule as a layer: chunks by matrix products against a plain `lax.scan` by hand.

Both give the gradients with respect to keys, values, queries and step sizes of 4 heads of width 64.
The memory is that of temporaries of the compiled program, which is not a measurement.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import olx
from benchmarks import targets
from benchmarks.harness import Contestant, Group

HEADS, WIDTH, LENGTHS = 4, 64, (512, 2048)


def measure(group: Group) -> None:
    for length in LENGTHS if not group.quick else (64,):
        rows = _sequence(length)
        chunks, plain = (_gradients(play).lower(*rows).compile() for play in (_chunks, _plain))
        case = f"T={length}, {HEADS} heads of {WIDTH}"
        seen = group.race(
            case,
            [
                Contestant(name, functools.partial(_call, program, rows), length)
                for name, program in (("olx.layers", chunks), ("lax.scan", plain))
            ],
        )
        group.compare(case, seen["olx.layers"], seen["lax.scan"], least=targets.LAYER)
        less = _memory(plain) / _memory(chunks)
        group.note(f"{case}, memory", "lax.scan", less, least=targets.LAYER_MEMORY)


def _sequence(length: int) -> tuple[jax.Array, ...]:
    *keys, last = jax.random.split(jax.random.key(0), 4)
    k, v, q = (jax.random.normal(key, (HEADS, length, WIDTH)) for key in keys)
    k = k / jnp.linalg.norm(k, axis=-1, keepdims=True)
    return k, v, q, jax.random.uniform(last, (HEADS, length))


def _chunks(k: jax.Array, v: jax.Array, q: jax.Array, eta: jax.Array) -> jax.Array:
    return olx.layers.fast_weights(olx.ogd(0.5))(k, v, q, numbers={"eta": eta})[0]


def _plain(k: jax.Array, v: jax.Array, q: jax.Array, eta: jax.Array) -> jax.Array:
    def step(w: jax.Array, token: tuple) -> tuple[jax.Array, jax.Array]:
        k, v, q, eta = token
        w = w - eta * jnp.outer(w @ k - v, k)
        return w, w @ q

    return lax.scan(step, jnp.zeros((v.shape[1], k.shape[1])), (k, v, q, eta))[1]


def _gradients(play: Callable[..., jax.Array]) -> Any:
    score = lambda *rows: jnp.sum(jax.vmap(play)(*rows) ** 2)
    return jax.jit(jax.grad(score, argnums=(0, 1, 2, 3)))


def _call(program: Any, rows: tuple) -> Callable[[], Any]:
    return lambda: jax.block_until_ready(program(*rows))


def _memory(program: Any) -> int:
    return program.memory_analysis().temp_size_in_bytes
