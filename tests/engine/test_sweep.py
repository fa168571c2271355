"""A sweep is a loop of runs, labelled, on as many devices as there are."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from several_devices import sweep_ten

import olx
from olx import convex, losses, mirrors, regularizers
from olx.convex import sets

X = np.random.default_rng(0).normal(size=(300, 4))
ROUNDS = olx.Rounds(X, X @ np.array([1.0, -0.5, 0.2, 0.0]))
START = jnp.zeros(4)


def adagrad(eta, l1):
    penalty = convex.l1(l1)
    return olx.linear(olx.ftrl(eta, regularizers.adagrad(penalty=penalty, rate=eta)))


def lazy(eta):
    return olx.linear(olx.omd(eta, mirrors.euclidean()))


MAKERS = {
    "lazy": (lazy, {"eta": jnp.array([0.01, 0.03, 0.1])}),
    "adagrad": (adagrad, olx.grid(eta=jnp.array([0.1, 1.0]), l1=jnp.array([0.0, 0.1, 0.2]))),
    "one": (lazy, {"eta": jnp.array([0.05])}),
    "hypentropy": (
        lambda eta, beta: olx.linear(olx.omd(eta, mirrors.hypentropy(beta))),
        {"eta": jnp.array([0.1, 0.2]), "beta": jnp.array([1.0, 0.1])},
    ),
    "sort": (
        lambda eta: olx.linear(olx.ogd(eta, sets.l1_ball(1.0))),
        {"eta": jnp.array([0.1, 0.2])},
    ),
}


close = functools.partial(chex.assert_trees_all_close, rtol=1e-12, atol=1e-12)


def at(tree, i):
    return jax.tree.map(lambda leaf: leaf[i], tree)


def sweep(learners, rounds=ROUNDS, **options):
    return olx.sweep(learners, losses.squared, rounds, START, **options)


@pytest.mark.parametrize("name", MAKERS)
def test_a_sweep_is_a_loop_of_runs(name):
    make, axes = MAKERS[name]
    runs = sweep(olx.batch(make, **axes), record=olx.record.trace)
    for i in range(len(axes["eta"])):
        alone = make(**at(axes, i))
        one = olx.run(alone, losses.squared, ROUNDS, START, record=olx.record.trace)
        close(at((runs.state, runs.losses, runs.trace), i), (one.state, one.losses, one.trace))


def test_the_axes_of_a_grid_label_the_result():
    axes = olx.grid(eta=jnp.array([0.1, 1.0]), l1=jnp.array([0.0, 0.1, 0.2]))
    runs = sweep(olx.batch(adagrad, **axes))
    np.testing.assert_array_equal(runs.axes["eta"], [0.1, 0.1, 0.1, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(runs.axes["l1"], [0.0, 0.1, 0.2, 0.0, 0.1, 0.2])
    assert runs.losses.shape == (6, 300)
    assert runs.total.shape == (6,)


def test_curves_of_a_sweep_have_configurations_first():
    learners = olx.batch(lazy, eta=jnp.array([0.01, 0.03, 0.1]))
    every = sweep(learners, record=olx.record.actions)
    seen = sweep(learners, record=olx.record.actions, keep=olx.keep.every(70))
    np.testing.assert_array_equal(seen.curve.at, [70, 140, 210, 280, 300])
    cumulative = np.cumsum(every.losses, axis=1)
    np.testing.assert_allclose(seen.curve.total, cumulative[:, seen.curve.at - 1], 1e-13)
    np.testing.assert_array_equal(seen.trace, every.trace[:, seen.curve.at - 1])


def mistaken(feedback):
    return feedback.action * feedback.outcome < 0


@pytest.mark.parametrize("count", [3, 300])
def test_measures_of_a_sweep_have_configurations_first(count):
    learners = olx.batch(lazy, eta=jnp.geomspace(0.01, 0.1, count))
    every = sweep(learners, record=olx.record.actions)
    seen = sweep(learners, measure=mistaken, keep=olx.keep.every(70)).curve
    mistakes = np.cumsum(every.trace * ROUNDS.outcome < 0, axis=1)
    np.testing.assert_array_equal(seen.sums, mistakes[:, seen.at - 1])
    assert np.ptp(mistakes[:, -1]) > 0


def test_a_sweep_takes_a_stream_in_pieces():
    learners = olx.batch(adagrad, **MAKERS["adagrad"][1])
    pieces = (jax.tree.map(lambda leaf, a=a: leaf[a : a + 97], ROUNDS) for a in range(0, 300, 97))
    seen, whole = sweep(learners, pieces), sweep(learners)
    np.testing.assert_array_equal(seen.losses, whole.losses)


def eager(eta):
    return olx.linear(olx.ogd(eta))


@pytest.mark.parametrize(("make", "count"), [(lazy, 300), (eager, 512)])
def test_hundreds_of_configurations_are_as_exact_as_one(make, count, capsys):
    etas = jnp.geomspace(1e-4, 0.1, count)
    runs = sweep(olx.batch(make, eta=etas), record=olx.record.actions, explain=True)
    assert "blocks of rounds" in capsys.readouterr().out
    assert runs.losses.shape == (count, 300)
    for i in (0, 1, 127, 128, 255, 256, count - 1):
        one = olx.run(make(etas[i]), losses.squared, ROUNDS, START, record=olx.record.actions)
        close(at((runs.state, runs.losses, runs.trace), i), (one.state, one.losses, one.trace))


@pytest.mark.parametrize("loss", [losses.hinge, losses.logistic])
def test_hundreds_of_classifiers_are_as_exact_as_one(loss):
    etas = jnp.geomspace(1e-3, 1.0, 300)
    labels = ROUNDS._replace(outcome=np.sign(ROUNDS.outcome), weight=1.0 + np.arange(300) % 3)
    runs = olx.sweep(olx.batch(lazy, eta=etas), loss, labels, START)
    for i in (0, 150, 299):
        one = olx.run(lazy(etas[i]), loss, labels, START)
        close(at((runs.state, runs.losses), i), (one.state, one.losses))


def distance(w, target):
    return jnp.sum((w - target) ** 2)


@pytest.mark.parametrize("make", [olx.ogd, lambda eta: olx.omd(eta, mirrors.euclidean())])
def test_points_may_be_given_a_context_they_do_not_use(make):
    etas = jnp.geomspace(1e-3, 0.1, 64)
    rounds = olx.Rounds(X, np.roll(X, 1, axis=0))
    runs = olx.sweep(olx.batch(make, eta=etas), distance, rounds, START)
    for i in (0, 63):
        one = olx.rollout(make(etas[i]), distance, rounds, START)
        close(at((runs.state, runs.losses), i), (one.state, one.losses))


@pytest.mark.parametrize("chunk", [8, 16])
def test_a_chunk_may_be_shorter_than_a_block(chunk, retune, capsys):
    retune(CHUNK_ROUNDS=chunk)
    rounds, etas = jax.tree.map(lambda leaf: leaf[:40], ROUNDS), jnp.geomspace(1e-3, 0.1, 65)
    runs = sweep(olx.batch(lazy, eta=etas), rounds, explain=True)
    assert "blocks of rounds" in capsys.readouterr().out
    one = olx.run(lazy(etas[-1]), losses.squared, rounds, START)
    close(at((runs.state, runs.losses), -1), (one.state, one.losses))


def test_rows_of_another_width_are_refused_by_name():
    learners = olx.batch(lazy, eta=jnp.geomspace(1e-3, 0.1, 64))
    with pytest.raises(TypeError, match=r"^sweep: a row of rounds.context has shape \(4,\)"):
        olx.sweep(learners, losses.squared, ROUNDS, jnp.zeros(3))


def test_totals_of_hundreds_of_configurations():
    learners = olx.batch(lazy, eta=jnp.geomspace(1e-4, 0.1, 512))
    seen, every = sweep(learners, keep=olx.keep.totals), sweep(learners)
    assert repr(seen.losses) == "not kept"
    assert seen.curve.total.shape == (512, 1)
    np.testing.assert_allclose(seen.total, every.losses.sum(1), 1e-13)


@pytest.mark.parametrize("count", [3, 300])
def test_a_diverging_configuration_disturbs_no_other(count):
    etas = np.full(count, 0.01)
    etas[1] = 1e80
    runs = sweep(olx.batch(lazy, eta=etas), keep=olx.keep.every(100))
    finite = np.isfinite(runs.total)
    assert not finite[1]
    assert finite.sum() == count - 1
    one = olx.run(lazy(0.01), losses.squared, ROUNDS, START, keep=olx.keep.every(100))
    close(runs.curve.total[0], one.curve.total)


def test_experts_are_swept():
    outcome = np.abs(X)
    uniform = jnp.full(4, 0.25)
    etas = jnp.array([0.1, 1.0])
    runs = olx.sweep(
        olx.batch(olx.hedge, eta=etas), losses.linear_loss, olx.Rounds(None, outcome), uniform
    )
    one = olx.run(olx.hedge(1.0), losses.linear_loss, olx.Rounds(None, outcome), uniform)
    close(at((runs.state, runs.losses), 1), (one.state, one.losses))


def test_four_devices_share_ten_configurations(tmp_path):
    script = Path(__file__).parents[1] / "support" / "several_devices.py"
    subprocess.run([sys.executable, script, tmp_path / "runs.npz"], check=True)
    seen = np.load(tmp_path / "runs.npz")
    assert int(seen["devices"]) == 4
    wanted = sweep_ten()
    for name, leaf in wanted.items():
        assert seen[name].shape == leaf.shape
        np.testing.assert_allclose(seen[name], leaf, 1e-12, 1e-12, err_msg=name)


@pytest.mark.parametrize("where", [jax.jit, jax.grad, lambda f: jax.vmap(f, axis_size=2)])
def test_inside_a_transformation_it_is_refused(where):
    act = lambda scale: sweep(olx.batch(lazy, eta=scale * jnp.array([0.1, 0.2]))).total.sum()
    given = jnp.ones(2) if where not in (jax.jit, jax.grad) else 1.0
    with pytest.raises(TypeError) as caught:
        where(act)(given)
    assert str(caught.value) == (
        "sweep: compiles for itself, so it cannot be called inside jit, vmap or grad; there, use "
        "jax.vmap of olx.rollout over the learners."
    )


def test_a_traced_stream_is_refused():
    learners = olx.batch(lazy, eta=jnp.array([0.1, 0.2]))
    with pytest.raises(TypeError, match=r"^sweep: compiles for itself, so it cannot be"):
        jax.jit(lambda rounds: sweep(learners, rounds).total)(ROUNDS)


def test_leaves_without_a_common_axis_are_refused():
    with pytest.raises(TypeError, match=r"^sweep: the leaves of `learners` share no leading axis"):
        sweep(lazy(0.1))


def test_many_additive_configurations_are_played_in_blocks(capsys):
    olx.sweep(
        olx.batch(lazy, eta=jnp.geomspace(1e-3, 0.1, 256)),
        losses.squared,
        ROUNDS,
        START,
        keep=olx.keep.totals,
        explain=True,
    )
    assert "sweep: blocks of rounds;" in capsys.readouterr().out


@pytest.mark.parametrize("keep", [None, olx.keep.every(7)])
def test_learners_that_keep_a_matrix_are_played_one_after_the_other(keep, capsys):
    wide = np.random.default_rng(1).normal(size=(50, 33))
    rounds, start = olx.Rounds(wide, np.sign(wide[:, 0])), jnp.zeros(33)
    learners = olx.batch(olx.second_order.arow, r=jnp.array([0.3, 1.0, 3.0]))
    options = {"record": olx.record.actions, "keep": keep}
    seen = olx.sweep(learners, losses.hinge, rounds, start, explain=True, **options)
    assert re.search(r"in_turn +used\n", capsys.readouterr().out)
    apart = [olx.run(learners[i], losses.hinge, rounds, start, **options) for i in range(3)]
    wanted = jax.tree.map(lambda *leaves: np.stack(leaves), *apart)
    np.testing.assert_allclose(seen.trace, wanted.trace, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(seen.total, wanted.total, rtol=1e-12)
    np.testing.assert_allclose(seen.state.root, wanted.state.root, rtol=1e-10, atol=1e-12)


def test_blocks_weigh_rounds_as_rollout_does(retune):
    retune(BLOCK_CONFIGURATIONS=2)
    draw = np.random.default_rng(0)
    rounds = olx.Rounds(draw.normal(size=(40, 3)), draw.normal(size=40), np.arange(40) % 4 / 2)
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=np.array([0.01, 0.1]))
    seen = olx.sweep(learners, losses.squared, rounds, jnp.zeros(3)).losses
    each = [olx.rollout(learners[i], losses.squared, rounds, jnp.zeros(3)).losses for i in (0, 1)]
    np.testing.assert_allclose(seen, each, rtol=1e-12)


def test_many_mistakes_are_counted_exactly():
    """Sums of bytes end at 255 rounds; these curves have parts of up to 700."""
    draw = np.random.default_rng(0)
    rounds = olx.Rounds(draw.normal(size=(1000, 3)), -np.ones(1000))
    learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=np.linspace(1e-10, 1e-9, 100))
    wrong = lambda feedback: feedback.action >= feedback.outcome  # of each round
    keep = lambda start, stop: np.intersect1d([300, 1000], np.arange(start + 1, stop + 1))
    done = olx.sweep(learners, olx.losses.hinge, rounds, np.zeros(3), keep=keep, measure=wrong)
    np.testing.assert_array_equal(done.curve.at, [300, 1000])
    np.testing.assert_array_equal(done.curve.sums, np.tile([300, 1000], (100, 1)))
