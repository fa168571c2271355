"""Layers of fast weights: equal to the papers, to `rollout`, and to the same token by token."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_layers as reference
from jax import lax

import olx
from olx.layers import fast_weights, with_forgetting

T, DK, DV = 70, 5, 3  # more than one chunk of either form
SQUARED, ALIGNED = olx.losses.squared, olx.losses.aligned


def sequence(length=T, dtype=np.float64):
    """Keys of length 1, one of zeros and two alike; values, queries and numbers in (0.3, 1)."""
    draw = np.random.default_rng(0)
    keys, queries = draw.normal(size=(2, length, DK))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    if length > 6:
        keys[3], keys[5] = 0, keys[4]
    values, numbers = draw.normal(size=(length, DV)), draw.uniform(0.3, 1, length)
    return [each.astype(dtype) for each in (keys, values, queries, numbers)]


def token_by_token(layer, keys, values, queries, *, state, numbers=None, weights=None):
    """The plain scan of `step`."""

    def step(state, token):
        outputs, state = layer.step(*token[0], state=state, numbers=token[1], weight=token[2])
        return state, outputs

    state, outputs = lax.scan(step, state, ((keys, values, queries), numbers, weights))
    return outputs, state


NETS = {
    "linear attention": (olx.ogd(1.0), ALIGNED, "eta", reference.linear_attention),
    "DeltaNet": (olx.ogd(1.0), SQUARED, "eta", reference.delta_net),
    "Longhorn": (olx.implicit(1.0, SQUARED), SQUARED, "eta", reference.longhorn),
}


@pytest.mark.parametrize("name", NETS)
def test_a_layer_is_the_recurrence_of_its_paper(name):
    learner, loss, number, recurrence = NETS[name]
    *rows, numbers = sequence()
    layer = fast_weights(learner, loss)
    assert layer.form(np.zeros((DV, DK))) == "delta"
    outputs, _ = jax.jit(layer)(*rows, numbers={number: numbers})
    np.testing.assert_allclose(outputs, recurrence(*rows, numbers), rtol=0, atol=1e-11)


def test_shrinking_before_a_gradient_step_is_gated_delta_net():
    *rows, numbers = sequence()
    keep = numbers[::-1].copy()
    keep[7] = 0.0
    layer = fast_weights(with_forgetting(olx.ogd(1.0), 1.0))
    outputs, _ = jax.jit(layer)(*rows, numbers={"eta": numbers, "keep": keep})
    expected = reference.gated_delta_net(*rows, numbers, keep)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-11)


def test_ridge_regression_is_the_mesa_layer():
    *rows, _ = sequence()
    layer = fast_weights(olx.second_order.ridge(0.5))
    assert layer.form(np.zeros((DV, DK))) == "least squares"
    outputs, _ = jax.jit(layer)(*rows)
    np.testing.assert_allclose(outputs, reference.mesa(*rows, 2.0), rtol=0, atol=1e-11)


def test_a_step_of_normalized_lms_is_a_number_of_each_token():
    *rows, _ = sequence()
    rows[0] = 3 * rows[0]
    etas = 0.7 / (0.1 + np.sum(rows[0] ** 2, 1))
    outputs, _ = jax.jit(fast_weights(olx.ogd(1.0)))(*rows, numbers={"eta": etas})
    expected = reference.normalized_lms(*rows, 0.7, 0.1)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-11)
    whole, _ = jax.jit(fast_weights(olx.implicit(10.0, SQUARED)))(*rows)
    expected = reference.normalized_lms(*rows, 1.0, 0.1)
    np.testing.assert_allclose(whole, expected, rtol=0, atol=1e-11)


def test_ridge_regression_is_arow_for_regression():
    *rows, _ = sequence()
    outputs, _ = jax.jit(fast_weights(olx.second_order.ridge(0.7)))(*rows)
    expected = reference.arow_of_regression(*rows, 0.7)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-11)


def test_passive_aggressive_regression_is_an_implicit_step():
    loss = olx.losses.epsilon_insensitive(0.1)
    layer = fast_weights(olx.implicit(0.3, loss), loss)
    assert layer.form(np.zeros((DV, DK))) == "scan"
    *rows, _ = sequence()
    expected = reference.passive_aggressive_1_of_regression(*rows, 0.3, 0.1)
    np.testing.assert_allclose(jax.jit(layer)(*rows)[0], expected, rtol=0, atol=1e-11)


CASES = {
    "delta": (fast_weights(olx.ogd(0.5)), ("eta",)),
    "implicit": (fast_weights(olx.implicit(2.0, SQUARED)), ("eta",)),
    "gated": (fast_weights(with_forgetting(olx.implicit(2.0, SQUARED), 0.9)), ("eta", "keep")),
    "ridge": (fast_weights(olx.second_order.ridge(1.0, 0.95)), ("forget",)),
    "vaw": (fast_weights(olx.second_order.vaw(1.0)), ()),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_chunks_are_the_plain_scan_with_its_gradients(name, dtype):
    """With numbers and weights per token, a given state, and a last chunk that is not full."""
    layer, names = CASES[name]
    *rows, numbers = sequence(dtype=dtype)
    numbers = dict.fromkeys(names, numbers if name != "ridge" else 0.9 + numbers / 10)
    weights = np.where(np.arange(T) % 5 == 2, 0, 0.8).astype(dtype)
    weights[:8] = 1
    start = layer(*(each[:8] for each in rows), state=None)[1]

    def score(play, state, rows, numbers):
        outputs, last = play(layer, *rows, state=state, numbers=numbers, weights=weights)
        return jnp.sum(jnp.sin(outputs)) + jnp.sum(jnp.cos(_weights(last))), outputs

    def both(play):
        function = functools.partial(score, play)
        slopes = jax.value_and_grad(function, (0, 1, 2), has_aux=True, allow_int=True)
        return jax.jit(slopes)(start, rows, numbers)

    (value, outputs), grads = both(type(layer).__call__)
    (plain_value, plain_outputs), plain_grads = both(token_by_token)
    close = functools.partial(
        np.testing.assert_allclose, rtol=0, atol=1e-11 if dtype is np.float64 else 1e-5
    )
    close(outputs, plain_outputs)
    close(value / T, plain_value / T)
    for one, other in zip(*map(_floats, (grads, plain_grads)), strict=True):
        close(one / max(1, np.abs(other).max()), other / max(1, np.abs(other).max()))


def _weights(state):
    return state.w if hasattr(state, "w") else jax.tree.leaves(state)[0]


def _floats(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if leaf.dtype != jax.dtypes.float0]


PLAYED = {
    "delta": (olx.ogd(0.5), "delta"),
    "point learner": (olx.first_order.adagrad(0.5), "scan"),
    "predictor": (olx.implicit(0.5, olx.losses.log_cosh), "scan"),
}


@pytest.mark.parametrize("name", PLAYED)
def test_a_layer_plays_the_rounds_of_rollout(name):
    learner, form = PLAYED[name]
    keys, values, queries, _ = sequence()
    layer, start = fast_weights(learner), jnp.zeros((DV, DK))
    assert layer.form(start) == form
    outputs, last = jax.jit(layer)(keys, values, queries)
    player = layer.predictor(start)
    rounds = olx.Rounds(keys, values)
    record = lambda state, feedback: state
    run = olx.rollout(player, layer.loss, rounds, start, record=record)
    after = jax.tree.map(lambda all, last: jnp.concatenate([all[1:], last[None]]), run.trace, last)
    expected = jax.jit(jax.vmap(player.predict))(after, jnp.asarray(queries))
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-11)
    same = zip(jax.tree.leaves(last), jax.tree.leaves(run.state), strict=True)
    assert all(np.allclose(one, other, rtol=0, atol=1e-11) for one, other in same)


def half_square(score, value):
    return jnp.sum((score - value) ** 2) / 2


def test_a_loss_that_is_a_function_is_played_and_decoded_in_chunks():
    *rows, numbers = sequence()
    layer, given = fast_weights(olx.ogd(0.5), half_square), {"eta": numbers}
    assert layer.form(np.zeros((DV, DK))) == "delta"
    expected, _ = jax.jit(fast_weights(olx.ogd(0.5)))(*rows, numbers=given)
    first, state = layer(*(each[:-1] for each in rows), numbers={"eta": numbers[:-1]})
    last, _ = layer.step(*(each[-1] for each in rows), state=state, numbers={"eta": numbers[-1]})
    outputs = jnp.concatenate([first, last[None]])
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-11)


CERTIFIED = {
    "delta": olx.ogd(0.5),
    "implicit": olx.implicit(2.0, SQUARED),
    "adagrad": olx.first_order.adagrad(0.5),
    "hyperbolic entropy": olx.omd(0.5, olx.mirrors.hypentropy(0.5)),
}


@pytest.mark.parametrize("name", CERTIFIED)
def test_a_layer_has_certificates_on_its_own_sequence(name):
    keys, values, *_ = sequence()
    layer, start = fast_weights(CERTIFIED[name]), jnp.zeros((DV, DK))
    best = np.linalg.lstsq(keys, values, rcond=None)[0].T
    proofs = olx.certify(
        layer.predictor(start), layer.loss, olx.Rounds(keys, values), start, jnp.asarray(best)
    )
    assert proofs
    assert all(proof.holds for proof in proofs)


def test_theorems_about_one_row_are_not_those_of_a_matrix():
    keys, values, *_ = sequence()
    learner, start = olx.second_order.vaw(1.0), jnp.zeros((DV, DK))
    player, rounds = fast_weights(learner).predictor(start), olx.Rounds(keys, values)
    with pytest.raises(TypeError, match="has no theorem"):
        olx.certify(player, SQUARED, rounds, start, start)
    rounds = olx.Rounds(keys, values[:, 0])
    assert all(proof.holds for proof in olx.certify(learner, SQUARED, rounds, start[0], start[0]))


def test_a_learner_of_vectors_is_played_for_each_row():
    learner = olx.second_order.newton(1.0, 2.0, curvature=1.0)
    keys, values, queries, _ = sequence(9)
    layer = fast_weights(learner)
    assert layer.form(np.zeros((DV, DK))) == "scan"
    outputs, _ = jax.jit(layer)(keys, values, queries)
    for row in range(DV):
        rounds = olx.Rounds(keys, values[:, row])
        last = olx.rollout(learner, SQUARED, rounds, jnp.zeros(DK)).state
        expected = learner.predict(last, jnp.asarray(queries[-1]))
        np.testing.assert_allclose(outputs[-1, row], expected, rtol=0, atol=1e-11)


def test_one_token_is_a_sequence():
    *rows, numbers = sequence(1)
    for layer, names in (CASES["gated"], CASES["ridge"]):
        given = dict.fromkeys(names, numbers)
        state = layer.init(jnp.ones((DV, DK)))
        outputs, _ = layer(*rows, state=state, numbers=given)
        expected, _ = token_by_token(layer, *rows, state=state, numbers=given)
        np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["gated", "vaw"])
def test_decoding_continues_a_sequence(name):
    layer, names = CASES[name]
    *rows, numbers = sequence()
    given = dict.fromkeys(names, numbers)
    whole, _ = jax.jit(layer)(*rows, numbers=given)
    part = lambda tree, a, b: jax.tree.map(lambda leaf: leaf[a:b], tree)
    head, state = jax.jit(layer)(*part(rows, 0, T - 2), numbers=part(given, 0, T - 2))
    one, state = layer(*part(rows, T - 2, T - 1), state=state, numbers=part(given, T - 2, T - 1))
    token = jax.tree.map(lambda leaf: leaf[-1], (rows, given))
    last, _ = layer.step(*token[0], state=state, numbers=token[1])
    joined = jnp.concatenate([head, one, last[None]])
    np.testing.assert_allclose(joined, whole, rtol=0, atol=1e-11)


def test_the_backward_pass_keeps_one_state_per_chunk():
    """A plain scan keeps T matrices of 16 x 16."""
    draw = np.random.default_rng(0).normal(size=(3, 256, 16))
    keys, values, queries = 0.1 * draw
    for learner, chunk in ((olx.ogd(0.5), 64), (olx.second_order.ridge(1.0), 8)):
        kept = jax.tree.leaves(jax.vjp(fast_weights(learner), keys, values, queries)[1])
        states = [leaf.shape for leaf in kept if leaf.shape[-2:] == (16, 16) and leaf.ndim == 3]
        assert {count for count, *_ in states} == {256 // chunk}
        assert max(leaf.size for leaf in kept) <= max(256 * 16, 256 // chunk * 16 * 16)


EXTREMES = {
    "no step": (1.0, 0.0),
    "tiny steps": (1.0, 1e-30),
    "reflections": (1.0, 2.0),
    "zero keys": (0.0, 1.0),
    "keys that differ little": (1e-4, 1.0),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_chunks_at_extremes_are_the_plain_scan(name):
    size, eta = EXTREMES[name]
    keys, values, queries, keep = sequence()
    keys = keys[0] + size * (keys - keys[0]) if name.startswith("keys") else size * keys
    keep[::7] = 0
    numbers = {"eta": np.full(T, eta), "keep": keep}
    layer = fast_weights(with_forgetting(olx.ogd(1.0), 1.0))

    def slopes(play):
        score = lambda rows, numbers: jnp.sum(jnp.sin(play(layer, *rows, numbers=numbers)[0]))
        return jax.jit(jax.grad(score, (0, 1)))((keys, values, queries), numbers)

    plain = functools.partial(token_by_token, state=layer.init(jnp.zeros((DV, DK))))
    pairs = zip(*map(_floats, (slopes(type(layer).__call__), slopes(plain))), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)


def test_keys_that_repeat_cost_no_digits():
    """The inverse has entries of 0 and 1; the terms of its power series are as large as 1e17."""
    keys = np.tile(np.eye(1, DK, dtype=np.float32), (64, 1))
    values = np.random.default_rng(1).normal(size=(64, DV)).astype(np.float32)
    outputs, _ = jax.jit(fast_weights(olx.ogd(1.0)))(keys, values, keys)
    np.testing.assert_allclose(outputs, values, rtol=0, atol=1e-5)


LOWERED = {
    **{name: layer for name, (layer, _) in CASES.items()},
    "adagrad": fast_weights(olx.first_order.adagrad(0.5)),
}


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", LOWERED)
def test_gradients_of_heads_are_lowered_for_other_devices(name, platform):
    rows = [each[None] for each in sequence()[:3]]
    score = lambda *rows: jnp.sum(jax.vmap(LOWERED[name])(*rows)[0])
    lowered = jax.jit(jax.grad(score)).trace(*rows).lower(lowering_platforms=(platform,))
    assert "callback" not in lowered.as_text()


REFUSED = {
    "has no number `rate`": lambda rows: fast_weights(olx.ogd(1.0))(*rows, numbers={"rate": 0}),
    "one number per token": lambda rows: fast_weights(olx.ogd(1.0))(
        *rows, numbers={"eta": np.ones(2)}
    ),
    "has no effect on a round": lambda rows: fast_weights(olx.second_order.ridge(1.0))(
        *rows, numbers={"a": np.ones(T)}
    ),
    "values of a layer": lambda rows: fast_weights(olx.second_order.arow(1.0)),
    "one row per token": lambda rows: fast_weights(olx.ogd(1.0))(rows[0][None], *rows[1:]),
    "its weights must be positive": lambda rows: fast_weights(olx.hedge(1.0))(*rows),
    "`state` must be": lambda rows: fast_weights(olx.ogd(1.0))(*rows, state=rows[0]),
    "does not say so": lambda rows: with_forgetting(olx.first_order.adagrad(1.0), 0.5),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_a_layer_cannot_play_is_refused(words):
    with pytest.raises((TypeError, ValueError), match=words):
        REFUSED[words](sequence()[:3])
