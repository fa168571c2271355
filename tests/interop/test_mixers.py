"""Modules of flax and of equinox around a layer."""

import functools

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import olx

NUMBERS = {"eta": jax.nn.sigmoid}


def played_by_flax(layer, **options):
    mixer = olx.interop.flax.Mixer(layer, 6, 2, **options, rngs=nnx.Rngs(0))
    slopes = nnx.jit(nnx.grad(lambda mixer, x: jnp.sum(mixer(x)[0] ** 2)))
    play = nnx.jit(lambda mixer, x, state: mixer(x, state))
    return functools.partial(play, mixer), functools.partial(slopes, mixer)


def played_by_equinox(layer, **options):
    mixer = olx.interop.equinox.Mixer(layer, 6, 2, **options, key=jax.random.key(0))
    slopes = equinox.filter_jit(equinox.filter_grad(lambda mixer, x: jnp.sum(mixer(x)[0] ** 2)))
    return equinox.filter_jit(mixer), lambda x: slopes(mixer, x).weights


@pytest.mark.parametrize("make", [played_by_flax, played_by_equinox])
def test_a_module_decodes_what_it_plays_at_once_and_all_weights_learn(make):
    play, slopes = make(olx.layers.fast_weights(olx.ogd(0.5)), numbers=NUMBERS, convolution=3)
    x = jax.random.normal(jax.random.key(1), (5, 6))
    whole, _ = play(x, None)
    head, state = play(x[:3], None)
    one, state = play(x[3:4], state)
    two, _ = play(x[4:], state)
    np.testing.assert_allclose(jnp.concatenate([head, one, two]), whole, rtol=0, atol=1e-10)
    found = jax.tree.leaves(slopes(x))
    assert len(found) == 5
    assert all(bool(jnp.any(each != 0) and jnp.all(jnp.isfinite(each))) for each in found)


def test_a_module_without_options_is_heads_of_the_layer():
    layer = olx.layers.fast_weights(olx.ogd(0.5))
    mixer = olx.interop.equinox.Mixer(layer, 6, 2, normalize=False, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (5, 6))
    queries, keys, values = jnp.split(x @ mixer.weights.inward, 3, 1)
    heads = [
        layer(*(each[:, 3 * i : 3 * i + 3] for each in (keys, values, queries)))[0] for i in (0, 1)
    ]
    expected = jnp.concatenate(heads, 1) @ mixer.weights.outward
    np.testing.assert_allclose(mixer(x)[0], expected, rtol=0, atol=1e-10)


def test_features_must_split_into_heads():
    with pytest.raises(ValueError, match="Mixer: `features` must be a multiple of `heads`"):
        olx.interop.equinox.Mixer(
            olx.layers.fast_weights(olx.ogd(0.5)), 5, 2, key=jax.random.key(0)
        )
