"""The mean decision on sparse rows: coordinates wait while their gradients are zero."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import olx
from olx import convex, losses, mirrors, regularizers, schedules, streams
from olx.convex import sets
from olx.meta import average, averaged, rising
from olx.testing.implementations import check_widths

T, WIDTH = 80, 23
DRAW = np.random.default_rng(0)
DENSE = DRAW.normal(size=(T, WIDTH)) * (DRAW.uniform(size=(T, WIDTH)) < 0.2)
DENSE[[3, 40]], DENSE[7], DENSE[:, 5] = 0.0, 1.0, 0.0  # empty rows, a full one, an unseen column
ROWS = streams.sparse_rows(scipy.sparse.csr_array(DENSE))
LABELS = np.where(np.arange(T) % 3, 1.0, -1.0)
WEIGHT = np.arange(T) % 4 * 0.5
ZEROS, ONES = jnp.zeros(WIDTH), jnp.ones(WIDTH)

STILL = {
    "ogd": (olx.ogd(0.3), ZEROS),
    "ogd in a box": (olx.ogd(0.5, sets.box(-0.2, 0.2)), ZEROS),
    "ogd, decaying": (olx.ogd(schedules.decay(0.5)), ONES / 3),
    "md, entropy": (olx.md(0.2, mirrors.unnormalized_entropy()), ONES),
    "omd in a box": (olx.omd(0.5, mirrors.euclidean(sets.box(-0.2, 0.2))), ZEROS),
    "omd, hypentropy": (olx.omd(0.2, mirrors.hypentropy(0.5)), ZEROS),
    "cocob": (olx.first_order.cocob(), ZEROS),
    "the mean of means": (average(olx.ogd(0.3), rising()), ZEROS),
}
WEIGHTS = {"equal": 0.1, "rising": rising()}


def close(seen, wanted):
    np.testing.assert_allclose(seen, wanted, rtol=1e-12, atol=1e-12)


def mean_of(learner, run, weight, weights):
    """The mean from the decisions that a run on dense rows has recorded, by its definition."""
    share = np.ones(T) if weight is None else weight
    if isinstance(weights, olx.Process):  # its clock skips rounds of weight 0
        share = share * (np.cumsum(share > 0) + 1.0)
    return np.average(jax.vmap(learner.predict)(run.trace), axis=0, weights=share)


def inner_state(state, feedback):
    return state.inner


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighed"])
@pytest.mark.parametrize("name", STILL)
def test_sparse_rows_give_the_mean_of_dense_rows(name, weight, weights):
    (inner, params), weights = STILL[name], WEIGHTS[weights]
    learner = olx.linear(average(inner, weights))
    play = lambda rounds: olx.rollout(learner, losses.hinge, rounds, params, record=inner_state)
    wanted = jax.jit(play)(olx.Rounds(DENSE, LABELS, weight))
    seen = olx.run(learner, losses.hinge, olx.Rounds(ROWS, LABELS, weight), params)
    close(seen.losses, wanted.losses)
    close(averaged(seen.state), averaged(wanted.state))
    close(averaged(seen.state), mean_of(inner, wanted, weight, weights))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_sweep_on_sparse_rows_gives_the_means_of_dense_rows(weights):
    make = lambda eta: olx.linear(average(olx.ogd(schedules.decay(eta)), WEIGHTS[weights]))
    learners = jax.vmap(make)(jnp.geomspace(0.01, 1.0, 5))
    play = lambda learner, rounds: olx.rollout(learner, losses.hinge, rounds, ZEROS)
    wanted = jax.jit(jax.vmap(play, (0, None)))(learners, olx.Rounds(DENSE, LABELS, WEIGHT))
    seen = olx.sweep(learners, losses.hinge, olx.Rounds(ROWS, LABELS, WEIGHT), ZEROS)
    close(seen.losses, wanted.losses)
    assert averaged(seen.state).shape == (5, WIDTH)
    close(averaged(seen.state), averaged(wanted.state))
    close(averaged(seen.state), jax.vmap(averaged)(seen.state))


def of_classes(scores, label):
    return jnp.sum((scores - jax.nn.one_hot(label, 3, dtype=scores.dtype)) ** 2) / 2


def test_a_matrix_of_class_weights_has_a_mean_on_sparse_rows():
    learner, params = olx.linear(average(olx.ogd(0.1), rising())), jnp.zeros((3, WIDTH))
    classes = np.arange(T) % 3
    play = lambda rounds: olx.rollout(learner, of_classes, rounds, params)
    wanted = jax.jit(play)(olx.Rounds(DENSE, classes))
    seen = olx.run(learner, of_classes, olx.Rounds(ROWS, classes), params)
    close(seen.losses, wanted.losses)
    close(averaged(seen.state), averaged(wanted.state))


def test_a_run_on_sparse_rows_goes_on_to_the_bit():
    learner, cut = olx.linear(average(olx.ogd(0.3), rising())), 33
    play = lambda a, b, state: olx.run(
        learner, losses.hinge, olx.Rounds(ROWS[a:b], LABELS[a:b]), ZEROS, state=state
    )
    whole, first = play(0, T, None), play(0, cut, None)
    last = play(cut, T, first.state)
    np.testing.assert_array_equal(np.r_[first.losses, last.losses], whole.losses)
    jax.tree.map(np.testing.assert_array_equal, last.state, whole.state)


def test_before_the_first_round_the_mean_is_zero():
    np.testing.assert_array_equal(averaged(average(olx.ogd(0.1)).init(ONES)), ZEROS)
    idle = olx.Rounds(ROWS, LABELS, np.zeros(T))
    run = olx.run(olx.linear(average(olx.ogd(0.1))), losses.hinge, idle, ONES)
    np.testing.assert_array_equal(averaged(run.state), ZEROS)


def test_a_dictionary_of_decisions_is_averaged():
    learner = olx.linear(average(olx.ogd(0.3), rising()))
    parts = lambda x: {"a": x[..., :4], "b": x[..., 4:]}
    play = lambda x, params: olx.rollout(learner, losses.hinge, olx.Rounds(x, LABELS), params).state
    wanted, seen = averaged(play(DENSE, ZEROS)), averaged(play(parts(DENSE), parts(ZEROS)))
    close(np.r_[seen["a"], seen["b"]], wanted)


@pytest.mark.parametrize("inner", [olx.ogd(1.0), olx.ftrl(1.0, mirrors.euclidean())])
def test_a_million_weights_of_a_tenth_count_alike(inner):
    """In single precision, where a plain sum would count a tenth wrongly."""
    learner, rounds = average(inner, 0.1), 1_000_000
    slopes = np.zeros((rounds, 2), np.float32)
    slopes[rounds // 2 - 1] = -1.0, 0.0  # the first decision is 0, then 1
    run = olx.run(
        learner,
        losses.linear_loss,
        olx.Rounds(None, slopes),
        jnp.zeros(2, jnp.float32),
        keep=olx.keep.totals,
    )
    np.testing.assert_allclose(run.state.total.value, 100_000, rtol=1e-6)
    np.testing.assert_allclose(averaged(run.state), [0.5, 0.0], atol=1e-4)


RESTLESS = {
    "ftrl": olx.ftrl(0.3, mirrors.euclidean()),
    "growing": olx.ftrl(0.3, regularizers.growing(mirrors.euclidean())),
    "adagrad l1": olx.ftrl(0.5, regularizers.adagrad(penalty=convex.l1(0.02), rate=0.5)),
    "coordinate betting": olx.first_order.coordinate_betting(30.0),
    "scale-invariant adagrad": olx.first_order.scale_invariant_adagrad(0.5),
}


@pytest.mark.parametrize("name", RESTLESS)
def test_other_learners_are_averaged_on_dense_rows_only(name):
    learner, weights = olx.linear(average(RESTLESS[name], rising())), rising()
    record = lambda state, feedback: RESTLESS[name].predict(state.inner, feedback.context)
    play = lambda rounds: olx.rollout(learner, losses.hinge, rounds, ONES / 10, record=record)
    run = jax.jit(play)(olx.Rounds(DENSE, LABELS, WEIGHT))
    share = WEIGHT * (np.cumsum(WEIGHT > 0) + weights.hparams)
    close(averaged(run.state), np.average(run.trace, axis=0, weights=share))
    with pytest.raises(TypeError, match="run: sparse rows need a learner that states how its coor"):
        olx.run(learner, losses.hinge, olx.Rounds(ROWS, LABELS), ZEROS)


@pytest.mark.parametrize("name", ["growing", "adagrad l1"])
def test_a_false_claim_to_keep_decisions_is_found_out(name):
    claims = olx.Facts(coordinates=olx.facts.Separable(keeps_decision=True))
    false = dataclasses.replace(RESTLESS[name], facts=claims)
    rounds = olx.Rounds(None, DENSE[:12, :4])
    says = "says `keeps_decision`, but a decision changes though its gradient is zero"
    with pytest.raises(AssertionError, match=says):
        check_widths(false, losses.linear_loss, rounds, jnp.zeros(4))


def test_a_kept_decision_does_not_depend_on_the_context():
    def predict(hp, w, x):
        return w if x is None else w / (1 + x**2)

    false = olx.Learner(
        0.1,
        lambda hp, w: w,
        predict,
        lambda hp, w, f: w - hp * f.weight * f.grad,
        facts=olx.Facts(coordinates=olx.facts.Separable(keeps_decision=True)),
    )
    rounds = olx.Rounds(DENSE[:12, :4], LABELS[:12])
    with pytest.raises(AssertionError, match="its decision depends on the context"):
        check_widths(olx.linear(false), losses.squared, rounds, jnp.ones(4))


def test_weights_that_look_at_all_coordinates_need_dense_rows():
    weights = dataclasses.replace(rising(), separable=False)
    learner = olx.linear(average(olx.ogd(0.1), weights))
    with pytest.raises(TypeError, match="this one needs dense rows"):
        olx.run(learner, losses.hinge, olx.Rounds(ROWS, LABELS), ZEROS)
