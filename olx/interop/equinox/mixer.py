"""A layer of `olx.layers` between linear maps, as a module of equinox."""

import equinox
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PyTree

from olx._refusal import public_as
from olx.interop._mixing import Mixing, MixingState, MixingWeights, Squash, mixing
from olx.layers.fast_weights import FastWeights


class Mixer(equinox.Module):
    """Mix the rows of a sequence: `outputs, state = mixer(x)`, from (T, features) to the same.

    The arguments are those of `olx.interop.flax.Mixer`, with a random `key` in place of `rngs`.

    >>> import jax, jax.numpy as jnp, olx
    >>> layer = olx.layers.fast_weights(olx.second_order.ridge(1.0, forget=0.9))
    >>> keep = lambda x: 0.5 + 0.5 * jax.nn.sigmoid(x)
    >>> mixer = Mixer(layer, 8, 2, numbers={"forget": keep}, key=jax.random.key(0))
    >>> outputs, state = mixer(jnp.ones((5, 8)))
    >>> outputs.shape
    (5, 8)
    """

    mixing: Mixing
    weights: MixingWeights

    @public_as("Mixer")
    def __init__(
        self,
        layer: FastWeights,
        features: int,
        heads: int = 1,
        *,
        numbers: dict[str, Squash] | None = None,
        convolution: int = 0,
        normalize: bool = True,
        key: PyTree,
    ):
        self.mixing = mixing(layer, features, heads, numbers, convolution, normalize)
        self.weights = self.mixing.weights(key, features)

    @public_as("Mixer")
    def __call__(
        self, x: ArrayLike, state: MixingState | None = None
    ) -> tuple[Float[Array, "T d"], MixingState]:
        return self.mixing(self.weights, x, state)
