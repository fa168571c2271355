"""`olx.run` gives what `rollout` gives, and keeps what it is asked to keep."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import noisy
import numpy as np
import pytest
from table import KINDS, TABLE

import olx
from olx import losses, mirrors, regularizers, schedules, streams
from olx.engine.device import data_of

LONG = jax.tree.map(
    np.asarray, streams.linear_regression(jax.random.key(1), rounds=70_001, features=3)[0]
)  # two chunks in memory
LEARNER = olx.linear(olx.ogd(0.01))
START = jnp.zeros(3)


def close(seen, wanted, tolerance=1e-12):
    assert jax.tree.structure(seen) == jax.tree.structure(wanted)
    compare = lambda a, b: np.testing.assert_allclose(
        data_of(a), data_of(b), rtol=tolerance, atol=tolerance
    )
    jax.tree.map(compare, seen, wanted)


def results(run):
    return run.state, run.losses, run.trace


def rollout(learner, loss, rounds, params, **options):
    return jax.jit(lambda rounds: olx.rollout(learner, loss, rounds, params, **options))(rounds)


def head(rounds, stop, start=0):
    return jax.tree.map(lambda leaf: leaf[start:stop], rounds)


@pytest.mark.parametrize("name", KINDS)
def test_it_is_rollout_on_numpy_and_jax_arrays(name):
    """Of every kind of learner; `test_learners` plays the whole table."""
    case = TABLE[name]
    wanted = rollout(*case[:4], record=olx.record.trace)
    for rounds in (case.rounds, jax.tree.map(np.asarray, case.rounds)):
        seen = olx.run(case.learner, case.loss, rounds, case.params, record=olx.record.trace)
        close(results(seen), results(wanted))


def test_no_kind_of_learner_ends_the_process_in_single_precision():
    """The compiler aborts where it should refuse, so this is played in a process of its own, which
    compiles as users do."""
    script = Path(__file__).parents[1] / "learners" / "single_precision.py"
    usual = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=usual)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    assert done.stdout.splitlines() == KINDS


@pytest.mark.parametrize("width", [64, 70, 5000])
def test_wide_rows_give_the_same_numbers(width):
    x = np.random.default_rng(0).normal(size=(30, width))
    rounds = olx.Rounds(x, x[:, 0] - x[:, 1])
    learner, params = olx.linear(olx.ogd(0.1 / width)), jnp.zeros(width)
    wanted = rollout(learner, losses.squared, rounds, params)
    close(results(olx.run(learner, losses.squared, rounds, params)), results(wanted))


def test_contexts_and_decisions_may_be_dictionaries():
    x = np.random.default_rng(0).normal(size=(40, 5))
    rounds = olx.Rounds({"a": x[:, :2], "b": {"c": x[:, 2:]}}, x @ np.arange(5.0))
    params = {"a": jnp.zeros(2), "b": {"c": jnp.zeros(3)}}
    learner = olx.linear(olx.ftrl(0.3, regularizers.adagrad()))
    wanted = rollout(learner, losses.squared, rounds, params, record=olx.record.trace)
    seen = olx.run(learner, losses.squared, rounds, params, record=olx.record.trace)
    close(results(seen), results(wanted))
    assert set(seen.state.theta.value) == {"a", "b"}


def test_rounds_are_weighed():
    weight = np.random.default_rng(0).integers(0, 3, 400).astype(float)
    rounds = head(LONG, 400)._replace(weight=weight)
    learner = olx.linear(olx.md(schedules.decay(0.1), mirrors.euclidean()))
    wanted = rollout(learner, losses.squared, rounds, START, record=olx.record.trace)
    seen = olx.run(learner, losses.squared, rounds, START, record=olx.record.trace)
    close(results(seen), results(wanted))


@pytest.mark.parametrize("name", ["md ball, decaying", "ftrl adagrad l1", "optimistic"])
def test_it_goes_on_from_a_state(name):
    learner, loss, rounds, params, *_ = TABLE[name]
    wanted = rollout(learner, loss, rounds, params)
    first = olx.run(learner, loss, head(rounds, 10), params)
    second = olx.run(learner, loss, head(rounds, 24, 10), params, state=first.state)
    close(np.r_[first.losses, second.losses], wanted.losses)
    close(second.state, wanted.state)


def test_it_leaves_the_state_it_goes_on_from_alone():
    first = olx.run(LEARNER, losses.squared, head(LONG, 100), START)
    before = np.array(first.state.theta)
    olx.run(LEARNER, losses.squared, head(LONG, 100), START, state=first.state)
    np.testing.assert_array_equal(first.state.theta, before)


KEPT = {
    "every": (olx.keep.every(9_973), [*np.arange(9_973, 70_001, 9_973), 70_001]),
    "every round": (olx.keep.every(1), np.arange(1, 70_002)),
    "log spaced": (olx.keep.log_spaced(1), [1, 10, 100, 1_000, 10_000, 70_001]),
    "totals": (olx.keep.totals, [70_001]),
    "more than there are": (olx.keep.every(10**6), [70_001]),
}


@pytest.mark.parametrize("name", KEPT)
def test_thinned_curves_are_sums_of_the_losses(name):
    keep, at = KEPT[name]
    every = olx.run(LEARNER, losses.squared, LONG, START, record=olx.record.actions)
    seen = olx.run(LEARNER, losses.squared, LONG, START, keep=keep, record=olx.record.actions)
    assert repr(seen.losses) == "not kept"
    np.testing.assert_array_equal(seen.curve.at, at)
    np.testing.assert_allclose(seen.curve.total, np.cumsum(every.losses)[seen.curve.at - 1], 1e-13)
    np.testing.assert_array_equal(seen.trace, every.trace[seen.curve.at - 1])
    assert seen.total == seen.curve.total[-1]


def distances(feedback):
    return {"far": abs(feedback.action - feedback.outcome) > 1.0, "square": 2 * feedback.value}


def test_what_is_measured_is_summed_along_the_curve():
    options = {"keep": olx.keep.every(9_973), "measure": distances}
    seen = olx.run(LEARNER, losses.squared, LONG, START, **options).curve
    every = olx.run(LEARNER, losses.squared, LONG, START, record=olx.record.actions)
    far = np.cumsum(np.abs(every.trace - LONG.outcome) > 1.0)[seen.at - 1]
    assert 0 < far[-1] < 70_001
    np.testing.assert_array_equal(seen.sums["far"], far)
    np.testing.assert_allclose(seen.sums["square"], 2 * seen.total, rtol=1e-13)


def test_what_is_measured_goes_with_a_curve():
    with pytest.raises(TypeError, match="`measure` is summed along a curve; say which rounds"):
        olx.run(LEARNER, losses.squared, LONG, START, measure=distances)


def test_totals_of_a_run_in_single_precision_are_summed_in_double():
    rounds, params = jax.tree.map(np.float32, (LONG, START))
    one_by_one = olx.run(LEARNER, losses.squared, rounds, params)
    assert one_by_one.losses.dtype == np.float32
    thinned = olx.run(LEARNER, losses.squared, rounds, params, keep=olx.keep.every(7))
    assert thinned.curve.total.dtype == np.float64
    exact = np.cumsum(one_by_one.losses.astype(np.float64))
    np.testing.assert_allclose(thinned.curve.total, exact[thinned.curve.at - 1], 1e-13)


def test_record_sees_the_state_before_the_update_and_the_feedback():
    record = lambda state, feedback: {"w": state.theta, "slope": feedback.grad}
    rounds = head(LONG, 50)
    wanted = rollout(LEARNER, losses.squared, rounds, START, record=record)
    seen = olx.run(LEARNER, losses.squared, rounds, START, record=record)
    close(results(seen), results(wanted))
    np.testing.assert_array_equal(seen.trace["w"][0], START)


def test_a_loss_may_be_a_lambda():
    loss = lambda score, y: jnp.log(jnp.cosh(score - y))
    wanted = rollout(LEARNER, loss, head(LONG, 300), START)
    close(results(olx.run(LEARNER, loss, head(LONG, 300), START)), results(wanted))


def test_a_step_size_is_not_a_new_program():
    traced = itertools.count()  # not a list: a changed list is a new program

    def counted(score, y):
        next(traced)
        return (score - y) ** 2

    runs = [olx.run(olx.linear(olx.ogd(eta)), counted, head(LONG, 64), START) for eta in (0.1, 0.2)]
    first = next(traced)
    runs += [olx.run(olx.linear(olx.ogd(0.3)), counted, head(LONG, 50), START)]
    assert next(traced) == first + 1 > 1
    assert len({run.total for run in runs}) == 3


def test_a_state_may_hold_a_key_of_a_random_generator():
    learner = noisy.LEARNER
    wanted = rollout(learner, losses.squared, head(LONG, 40), START, record=olx.record.trace)
    seen = olx.run(learner, losses.squared, head(LONG, 40), START, record=olx.record.trace)
    close(seen.losses, wanted.losses)
    np.testing.assert_array_equal(*map(jax.random.key_data, (seen.state[1], wanted.state[1])))
    np.testing.assert_array_equal(seen.trace.state[1], jax.random.key_data(wanted.trace.state[1]))


def test_a_diverging_run_ends_in_losses_that_are_not_finite():
    run = olx.run(olx.linear(olx.ogd(1e80)), losses.squared, head(LONG, 500), START)
    assert np.isfinite(run.losses[0])
    assert not np.isfinite(run.total)


REFUSALS = {
    "factory for learner": (
        lambda: olx.run(olx.ogd, losses.squared, LONG, START),
        "run: `learner` must be a Learner, got function `ogd`; call it, as in `ogd(...)`.",
    ),
    "tuple for rounds": (
        lambda: olx.run(LEARNER, losses.squared, (LONG.context, LONG.outcome), START),
        "run: `rounds` must be a Rounds, got tuple; put arrays into `olx.Rounds(contexts, "
        "outcomes)`, one row per round.",
    ),
    "width of params": (
        lambda: olx.run(LEARNER, losses.squared, head(LONG, 9), jnp.zeros(4)),
        "run: a row of rounds.context has shape (3,), and `params` has (4,); start from "
        "jnp.zeros(3).",
    ),
    "rounds of a jit": (
        lambda: jax.jit(lambda rounds: olx.run(LEARNER, losses.squared, rounds, START))(LONG),
        "run: compiles for itself, so it cannot be called inside jit, vmap or grad; `olx.rollout` "
        "can.",
    ),
    "step size of a grad": (
        lambda: jax.grad(
            lambda eta: olx.run(olx.linear(olx.ogd(eta)), losses.squared, LONG, START).total
        )(0.1),
        "run: compiles for itself, so it cannot be called inside jit, vmap or grad; `olx.rollout` "
        "can.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_refuses(name):
    act, message = REFUSALS[name]
    with pytest.raises(TypeError) as caught:
        act()
    assert str(caught.value) == message


@pytest.mark.parametrize("make", [olx.keep.every, olx.keep.log_spaced])
def test_a_curve_needs_a_count(make):
    with pytest.raises(ValueError, match=r"must be an integer of at least 1, got 0\."):
        make(0)
