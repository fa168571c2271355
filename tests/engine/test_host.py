"""Functions of NumPy in place of compiled programs: the same numbers, nothing compiled."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import olx
from olx import losses
from olx.engine import host_step
from olx.engine.numpy_functions import LEFT, kind_of, numpy_functions, plain_number
from olx.engine.numpy_operations import Unknown
from olx.needs import no_breach

X = np.random.default_rng(0).normal(size=(12, 4))
Y = np.sign(X[:, 0])
ROUNDS = olx.Rounds(X, Y)
LEARNERS = {
    "adds": lambda: olx.linear(olx.ogd(0.1)),
    "counts": lambda: olx.linear(olx.first_order.adagrad(1.0)),
    "matrix": lambda: olx.second_order.arow(1.0),
    "condition": lambda: olx.classification.winnow(0.5),
}
OPERATIONS = {
    "ends": lambda a, b, s: jnp.clip(a, -0.5, s) + jnp.maximum(b, s) - jnp.minimum(a, b),
    "choices": lambda a, b, s: jnp.where(a > b, 1.0, 0.0) + jnp.where(s > 0, a, b),
    "a choice of numbers": lambda a, b, s: (
        jnp.where(s > 0, s, -s) + lax.cond(s > 1, lambda: jnp.sum(a), lambda: jnp.max(b))
    ),
    "products": lambda a, b, s: jnp.outer(a, b) @ a + jnp.tensordot(a, jnp.outer(b, a), 1) * s,
    "constants everywhere": lambda a, b, s: (
        jnp.vdot(jnp.full(4, s), jnp.full(4, s)) + jnp.sum(jnp.full(3, s))
    ),
    "parts": lambda a, b, s: jnp.concatenate(jnp.split(a, 2)[::-1]) + jnp.stack([s, s, s, s]),
    "order": lambda a, b, s: (
        jnp.sort(a) + jnp.cumsum(b) + (jnp.arange(4) == jnp.argmax(a)).astype(a.dtype)
    ),
    "curves": lambda a, b, s: jnp.tanh(a) + jax.nn.sigmoid(s) * jnp.exp(-abs(b)) + jnp.sign(s),
    "gradients": lambda a, b, s: jax.grad(lambda w: losses.logistic(w @ b, 1.0))(a) * s,
    "masks": lambda a, b, s: jnp.stack(
        [jnp.where(mask, *both) for mask in (a == a, a != a, a > 0) for both in ((a, 2.0), (s, b))]
    ),
    "guards": lambda a, b, s: (1.0 + a) / jnp.where(a > 0, a, 1.0) + (a >= -0.2).astype(a.dtype),
    "whole numbers": lambda a, b, s: (
        a * (jnp.sum((a > 0).astype(int)) + s.astype(int)).astype(a.dtype)
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_the_same_in_numpy(name, dtype):
    function, (a, b) = OPERATIONS[name], X[:2].astype(dtype)
    for number in (1.5, -0.7):
        given = a, b, jnp.asarray(number, dtype)
        written = numpy_functions([lambda *x: [function(*x)]], list(map(kind_of, given)), 1)
        first, *rest = map(plain_number, given)
        seen = written.calls[0](first, *rest, *written.prepare(first))[0]
        wanted = jax.jit(function)(*given)
        np.testing.assert_allclose(seen, wanted, 1e-6 if dtype == np.float32 else 1e-13)
        assert np.ndim(seen) == 0 or seen.dtype == wanted.dtype


@pytest.mark.parametrize("number", [0, 1, -1, 2**31 - 1, -(2**31), 1_000_000_000])
@pytest.mark.parametrize("kind", [np.int32, np.uint32])
def test_whole_numbers_begin_anew_as_those_of_jax(kind, number):
    functions = [
        lambda n: n + 1,
        lambda n: n + n,
        lambda n: n * n > n,
        lambda n: (n * 3).astype(np.float32),
        lambda n: n.astype(np.int32) * 3 - 7,
        lambda n: jnp.sum(jnp.full(3, n)) > 0,
    ]
    given = jnp.asarray(number & 0x7FFFFFFF if kind == np.uint32 else number, kind)
    for function in functions:
        try:
            written = numpy_functions([lambda n: [function(n)]], [kind_of(given)], 0)  # noqa: B023
        except Unknown:
            continue  # it is left to the compiler
        assert written.calls[0](plain_number(given))[0] == function(given)


@pytest.mark.parametrize("number", [2.7, -2.7, 2147483520.0, 2147483648.0, -3e9, np.nan, np.inf])
def test_floats_become_integers_as_in_jax_or_are_left_to_it(number):
    function = lambda x: [x.astype(np.int32)]
    for given in (jnp.float32(number), jnp.full(2, number, np.float32)):
        written = numpy_functions([function], [kind_of(given)], 0)
        try:
            found = written.calls[0](plain_number(given))[0]
        except LEFT:
            assert not abs(number) < 2.0**31
        else:
            np.testing.assert_array_equal(found, function(given)[0])
            assert abs(number) < 2.0**31


def test_numbers_that_leave_the_floats_before_a_step_are_left_to_the_compiler():
    update = lambda hp, w, told: w - jnp.where(hp > 0, 1 / hp, 0.1) * told.grad
    learner = olx.Learner(0.0, lambda hp, params: params, lambda hp, w, x: w, update)
    state = olx.step(learner, losses.linear_loss, np.zeros(2), None, np.ones(2)).state
    np.testing.assert_allclose(state, -0.1)


def test_a_step_that_breaks_a_demand_is_refused_at_once():
    met = no_breach(np.zeros(1), "bettor", "gradients must be at most 1", "take another")

    def update(hp, state, told):
        w, breach, now = state
        size = jnp.max(abs(told.grad))
        return w - told.grad, breach.after(size > 1, size, now + 1), now + 1

    learner = olx.Learner((), lambda *_: None, lambda hp, state, x: state[0], update)
    state = jax.tree.map(np.asarray, (np.zeros(2), met, np.uint32(0)))
    state = olx.step(learner, losses.linear_loss, state, None, np.ones(2)).state
    assert isinstance(state[0], np.ndarray)  # it was played by NumPy
    with pytest.raises(ValueError, match=r"bettor: .* at most 1, got 2 in its round 2; take"):
        olx.step(learner, losses.linear_loss, state, None, np.full(2, 2.0))


def test_a_mapped_number_fills_the_axes_of_a_constant_vector():
    numbers = np.arange(3.0)
    for function in (
        lambda s: jnp.zeros(6) + s,
        lambda s: jnp.ones(6) * s,
        lambda s: jnp.maximum(jnp.full(6, 0.5), s),
    ):
        mapped = lambda s, function=function: [jax.vmap(function)(s)]
        written = numpy_functions([mapped], [kind_of(numbers)], 0)
        np.testing.assert_array_equal(written.calls[0](numbers)[0], mapped(numbers)[0])


def test_a_result_shares_no_memory_with_an_argument():
    row = X[0].copy()
    written = numpy_functions([lambda x, s: [x, jnp.where(s > 0, x, -x)]], [
        kind_of(row), kind_of(1.0)
    ], 0)  # fmt: skip
    for seen in written.calls[0](row, 1.0):
        assert not np.shares_memory(seen, row)


def test_any_byte_of_a_mask_but_zero_is_true():
    given = np.array([2, 0, 255], np.uint8).view(bool), X[0, :3]
    choose = lambda m, x: [jnp.where(m, 7.0, x), jnp.where(m, x, 7.0)]
    seen = numpy_functions([choose], list(map(kind_of, given)), 0).calls[0](*given)
    np.testing.assert_array_equal(seen, [[7.0, X[0, 1], 7.0], [X[0, 0], 7.0, X[0, 2]]])


def test_a_print_is_not_lost():
    def noisy(x):
        jax.debug.print("{}", x)
        return [x]

    with pytest.raises(Unknown, match="an effect, such as a print"):
        numpy_functions([noisy], [kind_of(1.0)], 0)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_short_game_compiles_nothing(name, caplog):
    learner, start = LEARNERS[name](), jnp.zeros(4)
    wanted = olx.rollout(learner, losses.hinge, ROUNDS, start)
    olx._cache.clear()
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        seen = olx.run(learner, losses.hinge, ROUNDS, start, record=olx.record.actions)
        state = seen.state
        for x, y in zip(X[:3], Y[:3], strict=True):
            state, _, _ = olx.step(learner, losses.hinge, state, x, float(y))
    assert not [line for line in caplog.messages if "Compiling" in line]
    same = lambda a, b: np.testing.assert_allclose(a, b, 1e-9, 1e-12)
    jax.tree.map(same, (seen.losses, seen.state), (wanted.losses, wanted.state))
    kinds = lambda tree: [leaf.dtype for leaf in jax.tree.leaves(tree)]
    assert kinds(state) == kinds(seen.state) == kinds(wanted.state)
    same(learner.predict(state, X[0]), learner.predict(jax.tree.map(jnp.asarray, state), X[0]))


def test_curves_measures_and_checkpoints_are_those_of_dense(tmp_path):
    learner, start = LEARNERS["counts"](), jnp.zeros(4)
    play = lambda name, **more: olx.run(
        learner,
        losses.hinge,
        ROUNDS,
        start,
        keep=olx.keep.every(5),
        measure=lambda feedback: {"twice": 2 * feedback.value},
        record=olx.record.actions,
        implementation=name,
        **more,
    )
    seen, wanted = play("host"), play("dense")
    np.testing.assert_array_equal(seen.curve.at, wanted.curve.at)
    same = lambda a, b: np.testing.assert_allclose(a, b, 1e-12)
    jax.tree.map(same, (seen.curve, seen.trace), (wanted.curve, wanted.trace))
    saved = olx.checkpoint(tmp_path / "saved")
    for _ in range(2):
        again = play("host", checkpoint=saved)
        jax.tree.map(np.testing.assert_array_equal, again.curve, seen.curve)
    assert saved.implementation() == "host"


def test_a_game_that_leaves_the_floats_is_played_by_dense():
    learner, start = olx.linear(olx.ogd(1e200)), jnp.zeros(4)
    seen, wanted = (
        olx.run(learner, losses.squared, ROUNDS, start, implementation=name)
        for name in ("host", "dense")
    )
    assert not np.isfinite(wanted.losses).all()
    np.testing.assert_array_equal(seen.losses, wanted.losses)
    state = learner.init(start)
    for x, y in zip(X, Y, strict=True):
        state, _, paid = olx.step(learner, losses.squared, state, x, float(y))
    assert not np.isfinite(paid)


def test_a_round_without_a_form_is_refused_in_words():
    learner = olx.omd(0.1, olx.mirrors.schatten(1.5))
    rounds = olx.Rounds(None, np.stack([np.eye(3)] * 5))
    with pytest.raises(ValueError, match=r"NumPy has no form here for `[a-z]+`"):
        olx.run(learner, losses.linear_loss, rounds, jnp.eye(3) / 3, implementation="host")


def test_a_start_that_may_change_is_not_remembered():
    learner, start = LEARNERS["adds"](), np.zeros(4)
    first = olx.run(learner, losses.squared, ROUNDS, start)
    start[:] = 1.0
    second = olx.run(learner, losses.squared, ROUNDS, start)
    fresh = olx.run(learner, losses.squared, ROUNDS, jnp.ones(4))
    assert first.losses[0] != second.losses[0]
    np.testing.assert_array_equal(second.losses, fresh.losses)


@pytest.mark.parametrize(
    ("x", "y", "weight"), [(np.nan, 1.0, 1.0), (1.0, 0.5, 1.0), (1.0, 1.0, -1.0)]
)
def test_a_bad_round_is_refused_after_good_ones(x, y, weight):
    learner = LEARNERS["adds"]()
    state = learner.init(jnp.zeros(4))
    state, *_ = olx.step(learner, losses.hinge, state, X[0], 1.0)
    assert isinstance(state.theta, np.ndarray)  # it was played by NumPy
    with pytest.raises(ValueError, match=r"^step: "):
        olx.step(learner, losses.hinge, state, np.full(4, x), y, weight)


def test_a_step_of_a_new_number_is_not_traced_again(monkeypatch):
    monkeypatch.setattr(host_step, "numpy_functions", _counted(calls := []))
    olx._cache.clear()
    for eta in (0.1, 0.2, 0.3):
        learner = olx.linear(olx.ogd(eta))
        state = learner.init(jnp.zeros(4))
        after, _, _ = olx.step(learner, losses.hinge, state, X[0], 1.0)
        np.testing.assert_allclose(after.theta, eta * X[0])
    assert len(calls) == 1


def _counted(calls):
    return lambda *given, **named: calls.append(1) or numpy_functions(*given, **named)
