"""Optimizers of optax as learners: their numbers are leaves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import olx
from olx.interop.optax import from_optax

RATES = jnp.geomspace(1e-3, 1.0, 64)
ROWS = jax.random.normal(jax.random.key(0), (12, 3))
ROUNDS = olx.Rounds(ROWS, ROWS @ jnp.array([1.0, -2.0, 0.5]))
START = jnp.zeros(3)


def adam(learning_rate):
    return olx.linear(from_optax(optax.adam, learning_rate=learning_rate))


@pytest.fixture(scope="module")
def swept():
    learners = olx.batch(adam, learning_rate=RATES)
    return olx.sweep(learners, olx.losses.squared, ROUNDS, START)


def their_losses(optimizer):
    """The loop that the documentation of optax shows."""
    w, memory, losses = START, optimizer.init(START), []
    for x, y in zip(*ROUNDS[:2], strict=True):
        value, g = jax.value_and_grad(lambda w, x=x, y=y: olx.losses.squared(w @ x, y))(w)
        with jax.numpy_dtype_promotion("standard"):
            step, memory = optimizer.update(g, memory, w)
        w = optax.apply_updates(w, step)
        losses.append(value)
    return np.array(losses)


@pytest.mark.parametrize("i", [0, 40, 63])
def test_a_sweep_of_64_rates_is_one_program_and_the_loop_of_optax(i, swept):
    assert swept.losses.shape == (64, 12)
    wanted = their_losses(optax.adam(RATES[i]))
    np.testing.assert_allclose(swept.losses[i], wanted, rtol=1e-9)


def test_a_gradient_sees_the_numbers(swept):
    total = jax.jit(lambda rate: olx.rollout(adam(rate), olx.losses.squared, ROUNDS, START).total)
    slope, small = jax.grad(total)(0.1), 1e-6
    np.testing.assert_allclose(slope, (total(0.1 + small) - total(0.1 - small)) / 2 / small, 1e-4)


def test_counts_flags_and_schedules_are_structure():
    learner = from_optax(optax.lbfgs, learning_rate=0.1, memory_size=2, linesearch=None)
    assert jax.tree.leaves(learner) == [0.1]
    rate = optax.constant_schedule(0.1)
    assert jax.tree.leaves(from_optax(optax.adam, learning_rate=rate, nesterov=True)) == []


def test_it_keeps_the_dtype_of_the_decision():
    learner = from_optax(optax.adam, learning_rate=jnp.float64(0.1), b1=jnp.float64(0.8))
    state = learner.init(jnp.zeros(2, jnp.float32))
    none = jnp.zeros((), jnp.float32)
    after = learner.update(state, olx.Feedback(None, state.w, None, None, none, state.w, none))
    assert jax.tree.map(jnp.result_type, after) == jax.tree.map(jnp.result_type, state)


def test_it_reads_well_and_is_saved(tmp_path):
    learner = adam(0.1)
    assert repr(learner) == "linear(from_optax(adam, learning_rate=0.1))"
    olx.save(tmp_path / "model", learner, learner.init(START))
    again = olx.load(tmp_path / "model").learner
    assert jax.tree.flatten(again) == jax.tree.flatten(learner)


def looks(rate):
    return optax.sgd(rate if rate > 0.5 else 0.5)


def hidden(make):
    return lambda: olx.batch(lambda eta: from_optax(make(eta)), eta=RATES)


REFUSED = {
    "an optimizer": (hidden(optax.adagrad), "got an optimizer, whose numbers are hidden; give"),
    "a closure": (hidden(lambda eta: lambda: optax.adagrad(eta)), "`factory` holds a number of a"),
    "a partial": (
        hidden(lambda eta: functools.partial(optax.sgd, eta)),
        "`factory` holds a number",
    ),
    "no optimizer": (lambda: from_optax(list), "list returned a list; `factory` must return an"),
    "no arguments": (lambda: from_optax(dict), "the arguments of dict cannot be read"),
    "no function": (lambda: from_optax(3), "`factory` must be a function, got int"),
    "an argument": (
        lambda: from_optax(optax.sgd, lr=1.0),
        "sgd cannot be called with these arguments",
    ),
    "a look": (lambda: from_optax(looks, rate=1.0), "looks looks at one of the numbers rate"),
    "a mask": (
        lambda: from_optax(optax.adamw, learning_rate=0.1, mask={"w": True}),
        "`mask` must be a number, a word or a function, got a dict",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_hides_its_numbers_is_refused_with_the_remedy(case):
    call, words = REFUSED[case]
    with pytest.raises(TypeError, match="from_optax: ") as refusal:
        call()
    assert words in str(refusal.value)
