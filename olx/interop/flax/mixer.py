"""A layer of `olx.layers` between linear maps, as a module of flax (nnx)."""

import jax
from flax import nnx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from olx._refusal import public_as
from olx.interop._mixing import MixingState, MixingWeights, Squash, mixing
from olx.layers.fast_weights import FastWeights


class Mixer(nnx.Module):
    """Mix the rows of a sequence: `outputs, state = mixer(x)`, from (T, features) to the same.

    layer: what each head plays.
    features: the length of a row, a multiple of `heads`.
    numbers: by the name of a number of the learner, how a real number becomes a legal one; a linear
        map of the row gives that number per token and head.
    convolution: how many tokens the causal filter of each coordinate sees; 0 for no filter.
    normalize: whether keys and queries have length 1.

    Give `state` to go on, for example token by token; batches by `jax.vmap`.

    >>> import jax, jax.numpy as jnp, olx
    >>> from flax import nnx
    >>> layer = olx.layers.fast_weights(olx.ogd(eta=0.5))
    >>> mixer = Mixer(layer, 8, 2, numbers={"eta": nnx.sigmoid}, convolution=2, rngs=nnx.Rngs(0))
    >>> outputs, state = mixer(jnp.ones((5, 8)))
    >>> outputs.shape
    (5, 8)

    A module of linen is made by the bridge of flax:

    >>> linen = nnx.bridge.to_linen(Mixer, layer, 8, 2)
    >>> weights = linen.init(jax.random.key(0), jnp.ones((5, 8)))
    >>> linen.apply(weights, jnp.ones((5, 8)))[0].shape
    (5, 8)
    """

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
        rngs: nnx.Rngs,
    ):
        self.mixing = nnx.data(mixing(layer, features, heads, numbers, convolution, normalize))
        drawn = self.mixing.weights(rngs.params(), features)
        self.weights = nnx.data(jax.tree.map(nnx.Param, drawn))

    @public_as("Mixer")
    def __call__(
        self, x: ArrayLike, state: MixingState | None = None
    ) -> tuple[Float[Array, "T d"], MixingState]:
        is_parameter = lambda leaf: isinstance(leaf, nnx.Param)
        read = lambda leaf: leaf[...]
        weights: MixingWeights = jax.tree.map(read, self.weights, is_leaf=is_parameter)
        return self.mixing(weights, x, state)
