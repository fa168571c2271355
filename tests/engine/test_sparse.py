"""Sparse rows give what the dense rows give, for every learner whose coordinates do not meet."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx import convex, losses, mirrors, regularizers, schedules, streams
from olx.convex import sets

WIDTH = 23


def matrix():
    """Rows of all kinds: empty, of one entry, of exactly eight, longer, full."""
    draw = np.random.default_rng(0)
    dense = np.zeros((60, WIDTH))
    for row, count in enumerate([0, 1, 8, 9, 16, 17, WIDTH, 0, *draw.integers(0, 12, 52)]):
        places = draw.choice(WIDTH, count, replace=False)
        dense[row, places] = draw.normal(size=count)
    return dense


DENSE = matrix()
ROWS = streams.sparse_rows(scipy.sparse.csr_array(DENSE))
OUTCOME = DENSE @ np.linspace(-1, 1, WIDTH)
ZEROS, ONES = jnp.zeros(WIDTH), jnp.ones(WIDTH)

LEARNERS = {
    "euclidean": (olx.omd(0.1, mirrors.euclidean()), ZEROS),
    "box": (olx.omd(0.3, mirrors.euclidean(sets.box(-0.2, 0.2))), ZEROS),
    "hypentropy": (olx.omd(0.1, mirrors.hypentropy(0.5)), ZEROS),
    "orthant entropy": (olx.omd(0.1, mirrors.unnormalized_entropy()), ONES),
    "binary entropy": (olx.omd(0.1, mirrors.binary_entropy()), ONES / 2),
    "unseen": (
        olx.omd(0.1, olx.mirror_map(conjugate=lambda t: jnp.sum(jnp.cosh(t)), separable=True)),
        ZEROS,
    ),
    "md": (olx.ogd(0.1), ZEROS),
    "md, decaying": (olx.md(schedules.decay(0.5), mirrors.euclidean()), ZEROS),
    "ftrl": (olx.ftrl(0.1, mirrors.euclidean()), ZEROS),
    "growing": (olx.ftrl(0.3, regularizers.growing(mirrors.hypentropy(0.5))), ZEROS),
    "composite l1": (olx.ftrl(0.3, regularizers.composite(convex.l1(0.05), rate=0.3)), ZEROS),
    "adagrad": (olx.ftrl(0.5, regularizers.adagrad()), ZEROS),
    "scale-invariant adagrad": (olx.first_order.scale_invariant_adagrad(0.5), ZEROS),
    "cocob": (olx.first_order.cocob(), ZEROS),
    "freegrad": (olx.first_order.freegrad(), ONES / 10),
    "ons betting": (olx.first_order.ons_betting(), ONES / 10),
    "coordinate betting": (olx.first_order.coordinate_betting(30.0), ONES / 10),
    "coin betting": (olx.first_order.coin_betting(30.0), ONES / 10),
    "adagrad l1": (
        olx.ftrl(0.5, regularizers.adagrad(penalty=convex.l1(0.02), rate=0.5)),
        ZEROS,
    ),
}


close = functools.partial(chex.assert_trees_all_close, rtol=1e-12, atol=1e-12)


def dense(learner, params, outcome=OUTCOME, weight=None, loss=losses.squared, **options):
    rounds = olx.Rounds(DENSE, outcome, weight)
    return jax.jit(lambda rounds: olx.rollout(learner, loss, rounds, params, **options))(rounds)


@pytest.mark.parametrize("name", LEARNERS)
def test_sparse_rows_are_dense_rows(name):
    inner, params = LEARNERS[name]
    learner = olx.linear(inner)
    wanted = dense(learner, params, record=olx.record.actions)
    rounds = olx.Rounds(ROWS, OUTCOME)
    seen = olx.run(learner, losses.squared, rounds, params, record=olx.record.actions)
    close((seen.losses, seen.trace, seen.state), (wanted.losses, wanted.trace, wanted.state))


LABELS = np.where(np.arange(60) % 3, 1.0, -1.0)
SWEPT = {
    "ogd": lambda eta: olx.linear(olx.ogd(eta)),
    "adagrad": lambda eta: olx.linear(olx.first_order.adagrad(eta)),
    "decaying": lambda eta: olx.linear(olx.md(schedules.decay(eta), mirrors.euclidean())),
    "PA-I": olx.classification.passive_aggressive_1,
    "coin betting": lambda wealth: olx.linear(olx.first_order.coin_betting(5.0, wealth)),
    "ROMMA": olx.classification.romma,
    "ALMA": olx.classification.alma,
}


@pytest.mark.parametrize("name", SWEPT)
def test_sparse_rows_are_swept(name):
    make, numbers = SWEPT[name], jnp.geomspace(0.01, 1.0, 5)
    learners = jax.vmap(make)(numbers)
    weight = np.arange(60) % 3 * 0.5
    play = lambda learner: dense(
        learner, ZEROS, LABELS, weight, losses.hinge, record=olx.record.actions
    )
    wanted = jax.vmap(play)(learners)
    rounds = olx.Rounds(ROWS, LABELS, weight)
    seen = olx.sweep(learners, losses.hinge, rounds, ZEROS, record=olx.record.actions)
    close((seen.losses, seen.trace, seen.state), (wanted.losses, wanted.trace, wanted.state))


def of_classes(scores, label):
    """The squared distance of the scores to the unit vector of the class."""
    return jnp.sum((scores - jax.nn.one_hot(label, scores.size, dtype=scores.dtype)) ** 2) / 2


@pytest.mark.parametrize("name", ["md", "adagrad l1", "growing"])
def test_a_matrix_of_class_weights_plays_sparse_rows(name):
    learner, start = olx.linear(LEARNERS[name][0]), jnp.zeros((3, WIDTH))
    classes = np.arange(60) % 3
    wanted = dense(learner, start, classes, loss=of_classes, record=olx.record.actions)
    rounds = olx.Rounds(ROWS, classes)
    seen = olx.run(learner, of_classes, rounds, start, record=olx.record.actions)
    assert seen.trace.shape == (60, 3)
    close((seen.losses, seen.trace, seen.state), (wanted.losses, wanted.trace, wanted.state))


def copies(inner):
    """A stack of predictors as one; their mean score is played."""

    def scores(hp, state, x):
        return jax.vmap(lambda one, own: one.predict(own, x))(hp["copies"], state)

    def update(hp, state, feedback):
        learn = lambda one, own, score: one.update(own, feedback._replace(action=score))
        return jax.vmap(learn)(hp["copies"], state, scores(hp, state, feedback.context))

    return olx.Learner(
        {"copies": inner},
        lambda hp, params: jax.vmap(lambda one: one.init(params))(hp["copies"]),
        lambda hp, state, x: jnp.mean(scores(hp, state, x)),
        update,
        facts=olx.Facts(coordinates=inner.facts.coordinates),
    )


def test_a_hundred_stacked_copies_play_sparse_rows():
    learner = copies(
        jax.vmap(olx.classification.passive_aggressive_1)(jnp.geomspace(0.01, 1.0, 100))
    )
    wanted = dense(learner, ZEROS, LABELS, loss=losses.hinge)
    seen = olx.run(learner, losses.hinge, olx.Rounds(ROWS, LABELS), ZEROS)
    assert seen.state.w.shape == (100, WIDTH)
    close((seen.losses, seen.state), (wanted.losses, wanted.state))


WHOLE_ROWS = {
    "perceptron": olx.classification.perceptron(),
    "PA-I": olx.classification.passive_aggressive_1(0.3),
    "aggressive, hypentropy": olx.dual_ascent(
        0.5, mirrors.hypentropy(0.5), losses.hinge, olx.ascents.aggressive()
    ),
    "implicit": olx.implicit(0.3, losses.logistic),
    "ROMMA": olx.classification.romma(),
    "aggressive ROMMA": olx.classification.aggressive_romma(),
    "ALMA": olx.classification.alma(0.5),
}


@pytest.mark.parametrize("name", WHOLE_ROWS)
def test_predictors_that_look_at_a_whole_row_play_sparse_rows(name):
    learner, weight = WHOLE_ROWS[name], np.arange(60) % 4 * 0.5
    wanted = dense(learner, ZEROS, LABELS, weight, record=olx.record.actions)
    rounds = olx.Rounds(ROWS, LABELS, weight)
    cut = lambda low: jax.tree.map(lambda leaf: leaf[low : low + 20], rounds)
    pieces = [cut(0), cut(20), cut(40)]
    for stream in (rounds, pieces):
        seen = olx.run(learner, losses.squared, stream, ZEROS, record=olx.record.actions)
        close((seen.losses, seen.trace, seen.state), (wanted.losses, wanted.trace, wanted.state))


def test_a_flat_loss_still_lets_the_clock_tick():
    learner = olx.linear(olx.md(schedules.decay(0.5), mirrors.euclidean()))
    wanted = dense(learner, ZEROS, LABELS, loss=losses.hinge)
    assert np.any(wanted.losses == 0)
    seen = olx.run(learner, losses.hinge, olx.Rounds(ROWS, LABELS), ZEROS)
    close((seen.losses, seen.state), (wanted.losses, wanted.state))


@pytest.mark.parametrize("name", ["adagrad l1", "md, decaying"])
def test_sparse_rounds_are_weighed(name):
    inner, params = LEARNERS[name]
    learner, weight = olx.linear(inner), np.arange(60) % 3 * 1.0
    wanted = dense(learner, params, weight=weight)
    seen = olx.run(learner, losses.squared, olx.Rounds(ROWS, OUTCOME, weight), params)
    close((seen.losses, seen.state), (wanted.losses, wanted.state))


def test_sparse_rows_come_in_pieces_and_go_on_from_a_state():
    inner, params = LEARNERS["growing"]
    learner = olx.linear(inner)
    pieces = [olx.Rounds(ROWS[a:b], OUTCOME[a:b]) for a, b in ((0, 3), (3, 40), (40, 60))]
    whole = olx.run(learner, losses.squared, olx.Rounds(ROWS, OUTCOME), params)
    seen = olx.run(learner, losses.squared, pieces, params)
    jax.tree.map(
        np.testing.assert_array_equal, (seen.losses, seen.state), (whole.losses, whole.state)
    )
    first = olx.run(learner, losses.squared, pieces[:2], params)
    last = olx.run(learner, losses.squared, pieces[2], params, state=first.state)
    close(np.r_[first.losses, last.losses], whole.losses)
    close(last.state, whole.state)


def test_chunks_of_many_more_entries_than_the_first_are_played():
    draw = np.random.default_rng(0)
    x = np.zeros((2_000, WIDTH))
    x[:3, 0], x[3:] = 1.0, draw.normal(size=(1_997, WIDTH))
    pieces = [
        olx.Rounds(streams.sparse_rows(scipy.sparse.csr_array(x[a:b])), x[a:b, 1])
        for a, b in ((0, 3), (3, 2_000))
    ]
    learner = olx.linear(olx.ogd(0.01))
    wanted = olx.run(learner, losses.squared, olx.Rounds(x, x[:, 1]), ZEROS)
    close(olx.run(learner, losses.squared, pieces, ZEROS).losses, wanted.losses)


def test_entries_that_occur_twice_are_added():
    entries = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4])), (3, 3)
    )
    assert not entries.has_canonical_format
    rows = streams.sparse_rows(entries)
    np.testing.assert_array_equal(rows.toarray(), [[2, 0, 5], [0, 0, 0], [0, 8, 0]])
    assert entries.nnz == 4  # the matrix given is left as it was


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
def test_any_sparse_matrix_goes_there_and_back(kind):
    rows = streams.sparse_rows(scipy.sparse.coo_array(DENSE).asformat(kind))
    np.testing.assert_array_equal(rows.toarray(), DENSE)
    assert rows.shape == DENSE.shape
    assert rows.dtype == np.float64


@pytest.mark.parametrize(
    "rows", [slice(0, 0), slice(7, 8), slice(3, 40), slice(-5, None), slice(9, 2)]
)
def test_slices_are_slices_of_the_dense_rows(rows):
    np.testing.assert_array_equal(ROWS[rows].toarray(), DENSE[rows])
    np.testing.assert_array_equal(ROWS[2:50][rows].toarray(), DENSE[2:50][rows])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
def test_other_numbers_become_single_precision(dtype):
    rows = streams.sparse_rows(scipy.sparse.csr_array(DENSE.astype(dtype)))
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows.toarray(), DENSE.astype(dtype).astype(np.float32))


def test_a_file_in_svmlight_format_is_read(tmp_path):
    file = tmp_path / "rows.svm"
    file.write_text("1 1:0.5 3:-2\n-1\n1 2:1.25 # a word\n")
    rounds = streams.read_svmlight(file, features=5)
    wanted = [[0.5, 0, -2, 0, 0], [0, 0, 0, 0, 0], [0, 1.25, 0, 0, 0]]
    np.testing.assert_array_equal(rounds.context.toarray(), wanted)
    np.testing.assert_array_equal(rounds.outcome, [1, -1, 1])
    params, learner = jnp.zeros(5, jnp.float32), olx.linear(olx.ogd(0.5))
    run = olx.run(learner, losses.hinge, rounds, params)
    assert run.losses.dtype == np.float32
    np.testing.assert_allclose(run.losses, [1.0, 1.0, 1.0])
    np.testing.assert_allclose(run.state.theta, [0.25, 0.625, -1.0, 0.0, 0.0])


NEEDS_DENSE = (
    "run: sparse rows need a learner that states how its coordinates interact (see `olx.Facts`), "
    "such as `olx.linear` of `omd` with a separable map, or `perceptron`; this one needs dense "
    "rows: pass `rows.toarray()`."
)
REFUSED = {
    "weighted pnorm": olx.linear(olx.omd(0.1, mirrors.weighted_pnorm(1.5, 2.0))),
    "entropy": olx.linear(olx.omd(0.1, mirrors.negative_entropy())),
    "eager entropy": olx.linear(olx.md(0.1, mirrors.negative_entropy())),
    "self-tuned Winnow": olx.classification.self_tuned_winnow(),
    "scale-invariant pnorm": olx.linear(olx.first_order.scale_invariant_pnorm(0.3)),
    "simplex": olx.linear(olx.omd(0.1, mirrors.euclidean(sets.simplex()))),
    "ball": olx.linear(olx.ogd(0.1, sets.ball(1.0))),
    "hedge": olx.hedge(0.1),
    "optimistic": olx.linear(olx.optimistic(0.1, mirrors.euclidean())),
    "group penalty": olx.linear(
        olx.ftrl(0.1, regularizers.composite(convex.group_l2(0.1), rate=0.3))
    ),
    "model": olx.model(olx.ogd(0.1), lambda w, x: jnp.tanh(jnp.vdot(w, x))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_learners_that_need_dense_rows_say_so(name):
    with pytest.raises(TypeError) as caught:
        olx.run(REFUSED[name], losses.squared, olx.Rounds(ROWS, OUTCOME), ZEROS)
    assert str(caught.value) == NEEDS_DENSE


def test_params_must_be_as_wide_as_the_rows():
    with pytest.raises(TypeError) as caught:
        olx.run(olx.linear(olx.ogd(0.1)), losses.squared, olx.Rounds(ROWS, OUTCOME), jnp.zeros(4))
    assert str(caught.value) == "run: `params` has shape (4,), the sparse rows have 23 columns."


def test_nan_among_the_entries_is_found():
    spoilt = DENSE.copy()
    spoilt[41, 5] = np.nan
    rows = streams.sparse_rows(scipy.sparse.csr_array(spoilt))
    with pytest.raises(ValueError, match=r"^run: rounds\.context holds nan at row 41, column 5"):
        olx.run(olx.linear(olx.ogd(0.1)), losses.squared, olx.Rounds(rows, OUTCOME), ZEROS)


def test_pieces_of_another_width_are_refused():
    other = streams.sparse_rows(scipy.sparse.csr_array(np.ones((4, 9))))
    pieces = [olx.Rounds(ROWS, OUTCOME), olx.Rounds(other, np.ones(4))]
    with pytest.raises(TypeError, match=r"the chunk at round 60 holds float64\[9\] per round"):
        olx.run(olx.linear(olx.ogd(0.1)), losses.squared, pieces, ZEROS)


@pytest.mark.parametrize("rows", [3, slice(None, None, 2)])
def test_rows_are_taken_in_order_only(rows):
    with pytest.raises(TypeError, match=r"^SparseRows: rows are taken in order"):
        ROWS[rows]


def test_a_dense_array_is_no_sparse_matrix():
    with pytest.raises(TypeError) as caught:
        streams.sparse_rows(DENSE)
    assert str(caught.value) == (
        "sparse_rows: `matrix` must be a SciPy sparse matrix, got ndarray; dense rows go into "
        "`Rounds` as they are."
    )
