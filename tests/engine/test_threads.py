"""The results of a sweep do not depend on the number of threads, to the last bit."""

import _thread
import threading

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

import olx
from olx import losses, regularizers
from olx.engine import threads
from olx.engine.device import data_of

X = np.random.default_rng(0).normal(size=(70, 32)) / 6
LABELS = np.sign(X[:, 0])
DENSE = olx.Rounds(X, LABELS)
SPARSE = olx.Rounds(olx.streams.sparse_rows(csr_array(X * (abs(X) > 0.15))), LABELS)
START = jnp.zeros(32)


def adagrad(eta):
    return olx.linear(olx.ftrl(eta, regularizers.adagrad(rate=eta)))


def descent(eta):
    return olx.linear(olx.ogd(eta))


def arow(eta):
    return olx.second_order.arow(r=eta)


def mistaken(feedback):
    return feedback.action * feedback.outcome < 0


# The form, with the smallest numbers of configurations that it is used for and that are cut.
CASES = {
    "one kernel, uncut": (adagrad, DENSE, 63, "one kernel; "),
    "one kernel": (adagrad, DENSE, 64, "one kernel, 2 shares of 32 "),
    "one kernel, padded": (adagrad, DENSE, 131, "one kernel, 4 shares of 33 "),
    "short rounds, uncut": (descent, DENSE, 64, "one kernel; "),
    "blocks, uncut": (descent, DENSE, 65, "blocks of rounds; "),
    "blocks, padded": (descent, DENSE, 257, "blocks of rounds, 2 shares of 129 "),
    "in turn": (arow, DENSE, 3, "one kernel, 2 shares of 2 "),
    "sparse sums": (descent, SPARSE, 129, "one kernel, 2 shares of 65 "),
    "sparse lanes": (adagrad, SPARSE, 128, "one kernel, 2 shares of 64 "),
}


@pytest.fixture(autouse=True)
def short_streams_are_cut_too(retune):
    retune(SHARES_WORK=0)


def batch(make, count):
    etas = np.geomspace(1e-3, 1.0, count)
    etas[1] = 1e30  # `descent` diverges
    return olx.batch(make, eta=etas)


def sweep(make, rounds, count, **options):
    return olx.sweep(batch(make, count), losses.squared, rounds, START, **options)


def everything(run):
    return run.state, run.trace, run.curve or run.losses


@pytest.mark.parametrize("name", CASES)
def test_threads_change_no_bit(name, capsys, retune):
    *game, form = CASES[name]
    options = {"record": olx.record.actions, "measure": mistaken, "keep": olx.keep.every(16)}
    one, *more = (sweep(*game, threads=n, explain=True, **options) for n in (1, 2, 3))
    assert capsys.readouterr().out.count(f"sweep: {form}") == 3
    for run in more:
        chex.assert_trees_all_equal(everything(run), everything(one))
    assert one.curve is not None
    assert one.curve.total.shape == (game[2], 5)
    diverged = [1] if game[0] is descent else []
    assert np.flatnonzero(~np.isfinite(one.total)).tolist() == diverged
    if name.endswith("padded"):
        retune(SHARES=1)
        close = lambda a, b: np.testing.assert_allclose(a, b, 1e-11, 1e-11)
        whole = sweep(*game, **options)
        jax.tree.map(close, everything(one), everything(whole))


def test_losses_of_all_rounds_are_put_beside_each_other():
    one, two = (sweep(adagrad, DENSE, 65, threads=n) for n in (1, 2))
    chex.assert_trees_all_equal(everything(two), everything(one))
    assert one.losses.shape == (65, 70)


def pieces(stop=None):
    for start in range(0, 70, 20):
        if start == stop:
            raise KeyboardInterrupt
        yield jax.tree.map(lambda leaf, a=start: leaf[a : a + 20], DENSE)


def test_a_checkpoint_may_be_continued_by_fewer_threads(tmp_path):
    saved = lambda: olx.checkpoint(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        sweep(adagrad, pieces(40), 65, threads=2, checkpoint=saved())
    resumed = sweep(adagrad, pieces(), 65, threads=1, checkpoint=saved())
    chex.assert_trees_all_equal(
        everything(resumed), everything(sweep(adagrad, pieces(), 65, threads=2))
    )


def test_random_keys_are_cut_and_joined():
    keys = jax.random.split(jax.random.key(0), 65)
    learners = olx.batch(olx.experts.exp3, eta=np.geomspace(0.01, 0.1, 65), key=keys)
    game = learners, losses.linear_loss, olx.Rounds(None, abs(X)), jnp.full(32, 1 / 32)
    one, two = (olx.sweep(*game, threads=n) for n in (1, 2))
    numbers = lambda run: (*jax.tree.map(data_of, run.state), run.losses)
    chex.assert_trees_all_equal(numbers(two), numbers(one))


def growing():
    for least, rows in ((0.5, slice(0, 20)), (0.0, slice(20, 70))):
        x = olx.streams.sparse_rows(csr_array(X[rows] * (abs(X[rows]) >= least)))
        yield olx.Rounds(x, LABELS[rows])


def test_sparse_rows_may_grow_from_piece_to_piece():
    one, two = (sweep(adagrad, growing(), 128, threads=n) for n in (1, 2))
    chex.assert_trees_all_equal(everything(two), everything(one))


def idle():
    return not any(thread.name.startswith("olx") for thread in threading.enumerate())


def fails():
    raise RuntimeError("no memory")


@pytest.mark.parametrize(
    ("act", "error"), [(fails, RuntimeError), (_thread.interrupt_main, KeyboardInterrupt)]
)
def test_an_error_in_one_share_ends_the_sweep(act, error, monkeypatch):
    play = threads.ThreadedSweep._play

    def disturbed(self, call, thread, rest):
        if thread == 1:
            act()
        return play(self, call, thread, rest)

    monkeypatch.setattr(threads.ThreadedSweep, "_play", disturbed)
    with pytest.raises(error):
        sweep(adagrad, DENSE, 65, threads=2)
    assert idle()


def test_a_bad_number_is_named_by_its_round():
    bad = X.copy()
    bad[33, 2] = np.nan
    with pytest.raises(ValueError, match="33"):
        sweep(adagrad, DENSE._replace(context=bad), 65, threads=2)
    assert idle()


def test_a_setting_of_one_thread_holds_for_all():
    single = jax.tree.map(np.float32, DENSE)
    with jax.enable_x64(False):
        game = batch(adagrad, 64), losses.squared, single, jnp.zeros(32)
        one, two = (olx.sweep(*game, threads=n) for n in (1, 2))
    assert two.losses.dtype == np.float32
    chex.assert_trees_all_equal(everything(two), everything(one))


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_numbers_that_are_no_counts_are_refused(threads, monkeypatch):
    with pytest.raises(ValueError, match=r"^sweep: `threads` must be an integer of at least 1, "):
        sweep(descent, DENSE, 2, threads=threads)
    monkeypatch.setenv("OLX_THREADS", str(threads) if threads != "2" else "two")
    with pytest.raises(ValueError, match=r"^sweep: the environment variable OLX_THREADS must be"):
        sweep(descent, DENSE, 2)


def test_the_environment_sets_a_limit(monkeypatch):
    monkeypatch.setenv("OLX_THREADS", " 3 ")
    assert threads.threads_of(None) == 3
    assert threads.threads_of(2) == 2
    monkeypatch.setenv("OLX_THREADS", "")
    assert threads.threads_of(None) >= 1
