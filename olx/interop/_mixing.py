r"""What the modules of flax and of equinox share: heads of fast weights between linear maps.

A sequence of rows $x_t$ becomes queries, keys, values and numbers of each head by linear maps. If
asked for, each coordinate of the first three passes a causal filter over the last tokens, and keys
and queries have length 1. The outputs of the heads are joined by one more linear map.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import pytree, static
from olx._refusal import RefusedValue
from olx.layers.fast_weights import FastWeights

Squash = Callable[[Array], Array]


class MixingWeights(NamedTuple):
    """What is trained."""

    inward: Float[Array, "d m"]  # to queries, keys and values, m = 3 d
    outward: Float[Array, "d d"]
    numbers: dict[str, Float[Array, "d h"]]  # to the numbers of each head, by name
    offsets: dict[str, Float[Array, " h"]]
    filters: Float[Array, "w m"] | None  # the last row is for the token itself


class MixingState(NamedTuple):
    """What is kept between calls, for decoding."""

    fast: PyTree  # of the layer, with an axis of heads
    recent: Float[Array, "w-1 m"] | None  # the last rows before the filters


@pytree
class Mixing:
    """How a sequence is mixed."""

    layer: FastWeights
    heads: int = static()
    numbers: tuple[tuple[str, Squash], ...] = static()
    convolution: int = static()
    normalize: bool = static()

    def weights(self, key: PyTree, features: int) -> MixingWeights:
        """Random first weights; filters begin as the token itself."""
        keys = jax.random.split(key, 2 + len(self.numbers))
        draw = lambda key, out: jax.random.normal(key, (features, out)) / features**0.5
        names = [name for name, _ in self.numbers]
        numbers = {name: draw(one, self.heads) for name, one in zip(names, keys[2:], strict=True)}
        filters = None
        if self.convolution:
            filters = jnp.zeros((self.convolution, 3 * features)).at[-1].set(1.0)
        offsets = {name: jnp.zeros(self.heads) for name in names}
        inward, outward = draw(keys[0], 3 * features), draw(keys[1], features)
        return MixingWeights(inward, outward, numbers, offsets, filters)

    def __call__(
        self, weights: MixingWeights, x: ArrayLike, state: MixingState | None
    ) -> tuple[Float[Array, "T d"], MixingState]:
        """The mixed rows, and the state after them."""
        check.array("x", x, 2)
        x = jnp.asarray(x)
        rows = x @ weights.inward
        rows, recent = _filtered(weights.filters, rows, None if state is None else state.recent)
        queries, keys, values = (
            part.reshape(len(x), self.heads, -1).swapaxes(0, 1) for part in jnp.split(rows, 3, 1)
        )
        if self.normalize:
            queries, keys = _unit(queries), _unit(keys)
        numbers = {
            name: squash(x @ weights.numbers[name] + weights.offsets[name]).T
            for name, squash in self.numbers
        }
        play = lambda fast, numbers, *rows: self.layer(*rows, state=fast, numbers=numbers)
        given = None if state is None else state.fast
        outputs, fast = jax.vmap(play, in_axes=(None if given is None else 0, 0, 0, 0, 0))(
            given, numbers, keys, values, queries
        )
        joined = outputs.swapaxes(0, 1).reshape(len(x), -1)
        return joined @ weights.outward, MixingState(fast, recent)


def mixing(
    layer: Any,
    features: int,
    heads: int,
    numbers: dict[str, Squash] | None,
    convolution: int,
    normalize: bool,
) -> Mixing:
    """The mixing for these arguments of a module; refuses others."""
    check.instance("layer", layer, FastWeights)
    check.count("features", features)
    check.count("heads", heads)
    if features % heads:
        raise RefusedValue(f"`features` must be a multiple of `heads`, got {features} and {heads}.")
    if convolution:
        check.count("convolution", convolution)
    check.flag("normalize", normalize)
    numbers = {} if numbers is None else numbers
    for name, squash in numbers.items():
        check.takes(f"numbers[{name!r}]", squash, "x")
    return Mixing(layer, heads, tuple(numbers.items()), convolution, normalize)


def _filtered(
    filters: Array | None, rows: Array, recent: Array | None
) -> tuple[Array, Array | None]:
    """The rows after a causal filter per coordinate, and the last of them before it."""
    if filters is None:
        return rows, None
    width = len(filters)
    if recent is None:
        recent = jnp.zeros((width - 1, rows.shape[1]), rows.dtype)
    seen = jnp.concatenate([recent, rows])
    filtered = sum(filters[i] * seen[i : i + len(rows)] for i in range(width))
    return jnp.asarray(filtered), seen[len(seen) - (width - 1) :]


def _unit(rows: Array) -> Array:
    """Rows of length 1; rows of zeros stay."""
    return safe.divide(rows, safe.sqrt(jnp.sum(rows**2, -1, keepdims=True)))
