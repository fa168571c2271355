"""Structured learners against NumPy, their theorems, and what they refuse."""

import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_structured as reference
from cases_structured import CHAIN, CLASSES, DENSE, FEATURES, INDEXED, XS, YS, sequences, weights

import olx
from olx import structured

COSTS = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [1.5, 1.0, 0.0]])
TABLE = structured.chain(CLASSES, FEATURES, COSTS)
STRUCTURES = {"hamming": (CHAIN, 1 - np.eye(CLASSES)), "table": (TABLE, COSTS)}
SIZE = sum(np.size(leaf) for leaf in CHAIN.zeros())


def flat(w):
    return np.concatenate([np.ravel(leaf) for leaf in w])


LEARNERS = {
    "perceptron": (
        structured.structured_perceptron,
        reference.perceptron,
    ),
    "PA, max loss": (
        lambda s: structured.structured_passive_aggressive(structured.max_loss(s), 0.15),
        functools.partial(reference.passive_aggressive, most=0.15, rival=reference.Problem.worst),
    ),
    "PA, prediction": (
        lambda s: structured.structured_passive_aggressive(structured.prediction_loss(s), 0.15),
        functools.partial(
            reference.passive_aggressive, most=0.15, rival=reference.Problem.predicted
        ),
    ),
    "aggressive": (
        lambda s: structured.structured_aggressive(s, 0.15, steps=4),
        functools.partial(reference.aggressive, most=0.15, steps=4),
    ),
    "self-tuned": (
        lambda s: structured.self_tuned_structured(s, 3.0),
        functools.partial(reference.self_tuned, complexity=3.0),
    ),
}


PLAYED = [(name, "table") for name in LEARNERS] + [("self-tuned", "hamming")]


@pytest.mark.parametrize(("name", "cost"), PLAYED)
def test_it_plays_as_the_reference(name, cost):
    structure, costs = STRUCTURES[cost]
    make, play = LEARNERS[name]
    wanted = play(reference.Problem(CLASSES, costs), XS, YS, SIZE)
    run = olx.run(make(structure), structured.decoded_cost(structure), DENSE, structure.zeros())
    np.testing.assert_allclose(run.losses, wanted.costs, atol=1e-12)
    np.testing.assert_allclose(flat(run.state.walk.w), wanted.w, atol=1e-10)
    np.testing.assert_allclose(
        flat(structured.averaged_weights(run.state)), wanted.mean, atol=1e-10
    )
    assert np.sum(wanted.costs) > 0


def test_many_steps_find_the_best_update_of_a_round():
    problem = reference.Problem(CLASSES, COSTS)
    x, y, start = XS[0][:2], YS[0][:2], weights(CHAIN, 3, 0.2)
    rounds = structured.padded_rounds([x], [y])
    loss, ends = structured.decoded_cost(TABLE), []
    for steps in (1, 3, 200):
        learner = structured.structured_aggressive(TABLE, 0.3, steps=steps)
        ends.append(flat(olx.run(learner, loss, rounds, start).state.walk.w))
    wanted = reference.best_update(problem, flat(start), x, y, 0.3)
    apart = [np.linalg.norm(end - wanted) for end in ends]
    assert apart[2] < 2e-3 < apart[0]
    own = structured.max_loss(TABLE)
    one = structured.structured_passive_aggressive(own, 0.3)
    np.testing.assert_allclose(flat(olx.run(one, loss, rounds, start).state.walk.w), ends[0])


def test_chains_of_length_one_are_multiclass_learners():
    draw = np.random.default_rng(5)
    rows = draw.normal(size=(60, FEATURES))
    labels = (rows @ draw.normal(size=(FEATURES, CLASSES))).argmax(axis=1)
    rounds = structured.padded_rounds(list(rows[:, None]), list(labels[:, None]))
    ends = np.concatenate([rows, np.ones((60, 2))], axis=1)  # the first and the last label
    joined = lambda w: np.concatenate([w.emission, w.start[:, None], w.end[:, None]], axis=1)
    zeros = CHAIN.zeros()
    first = olx.run(
        structured.structured_perceptron(CHAIN), structured.decoded_cost(CHAIN), rounds, zeros
    )
    w, wrong = reference.multiclass_perceptron(ends, labels, CLASSES)
    np.testing.assert_array_equal(first.losses, wrong)
    np.testing.assert_allclose(joined(first.state.walk.w), w, atol=1e-10)
    own = structured.max_loss(CHAIN)
    second = olx.run(structured.structured_passive_aggressive(own, 0.2), own, rounds, zeros)
    w, losses = reference.multiclass_passive_aggressive(ends, labels, CLASSES, 0.2)
    np.testing.assert_allclose(second.losses, losses, atol=1e-10)
    np.testing.assert_allclose(joined(second.state.walk.w), w, atol=1e-10)


def shaped(vector):
    like = CHAIN.zeros()
    ends = np.cumsum([np.size(leaf) for leaf in like])
    leaves = np.split(vector, ends[:-1])
    return type(like)(*(np.reshape(a, np.shape(b)) for a, b in zip(leaves, like, strict=True)))


def flat_zeros(hp, dtype):
    return jnp.zeros((CLASSES, FEATURES), dtype)


def flat_parts(hp, w, x):
    return w @ x


def flat_score(hp, parts, label):
    return jnp.sum(parts * (jnp.arange(CLASSES, dtype=label.dtype) == label).astype(parts.dtype))


def flat_decode(hp, parts):
    return jnp.argmax(parts).astype(jnp.int32)


def flat_cost(hp, parts, outcome, output):
    return (outcome != output).astype(parts.dtype)


def test_a_structure_of_your_own_needs_five_functions():
    one = structured.Structure(None, flat_zeros, flat_parts, flat_score, flat_decode, flat_cost)
    draw = np.random.default_rng(6)
    rows = draw.normal(size=(50, FEATURES))
    labels = (rows @ draw.normal(size=(FEATURES, CLASSES))).argmax(axis=1).astype(np.int32)
    learner, loss = structured.structured_perceptron(one), structured.decoded_cost(one)
    run = olx.run(learner, loss, olx.Rounds(rows, labels), one.zeros())
    w, wrong = reference.multiclass_perceptron(rows, labels, CLASSES)
    np.testing.assert_array_equal(run.losses, wrong)
    np.testing.assert_allclose(run.state.walk.w, w, atol=1e-12)
    seen = structured.decoded(one, run.state.walk.w, rows)
    np.testing.assert_array_equal(seen, (rows @ w.T).argmax(axis=1))
    with pytest.raises(TypeError, match="no log-partition"):
        structured.crf(one)


def test_the_bound_of_the_perceptron_is_attained():
    """Every round is a mistake on new features, and u has the margin 1 in all of them."""
    one = structured.Structure(None, flat_zeros, flat_parts, flat_score, flat_decode, flat_cost)
    rows, labels = np.eye(9), np.full(9, 1, np.int32)
    u = np.zeros((CLASSES, 9))
    u[1], u[0] = 0.5, -0.5
    learner, loss = structured.structured_perceptron(one), structured.decoded_cost(one)

    @jax.jit
    def proofs(learner):
        start = jnp.zeros((CLASSES, 9))
        run = olx.rollout(learner, loss, olx.Rounds(rows, labels), start, record=olx.record.trace)
        return olx.certify(learner, run, u)

    (proof,) = proofs(learner)
    assert proof.holds
    np.testing.assert_allclose(proof.left, np.arange(1.0, 10.0))
    np.testing.assert_allclose(proof.right[-1], 9.0)


def test_a_trained_learner_predicts_the_parts_and_is_shown_as_its_call():
    learner, loss = structured.structured_perceptron(CHAIN), structured.decoded_cost(CHAIN)
    run = olx.run(learner, loss, DENSE, CHAIN.zeros())
    parts, state = olx.predict(learner, run.state, DENSE.context), run.state
    seen = jax.vmap(CHAIN.decode)(parts)
    np.testing.assert_array_equal(seen, structured.decoded(CHAIN, state.walk.w, DENSE.context))
    other = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(olx.run(other, loss, DENSE, CHAIN.zeros()).losses, run.losses)
    assert repr(structured.structured_passive_aggressive(structured.max_loss(CHAIN), 0.1)) == (
        "structured_passive_aggressive(max_loss(chain(3, 2)), aggressiveness=0.1)"
    )


@pytest.mark.parametrize("name", ["perceptron", "self-tuned"])
def test_its_bound_holds_for_every_comparator(name):
    structure, costs = STRUCTURES["table"]
    xs, ys = sequences(seed=9, rounds=40)
    rounds = structured.padded_rounds(xs, ys)
    trained = reference.perceptron(reference.Problem(CLASSES, costs), xs * 4, ys * 4, SIZE).w
    points = [shaped(trained * size) for size in (0.0, 0.12, 1.0)]
    points += [weights(structure, seed, size) for seed, size in ((0, 0.1), (1, 1.0))]
    each = jax.tree.map(lambda *leaves: jnp.stack(leaves), *points)
    loss = structured.decoded_cost(structure)

    @jax.jit
    def proofs(learner):
        run = olx.rollout(learner, loss, rounds, structure.zeros(), record=olx.record.trace)
        return run.total, jax.vmap(lambda u: olx.certify(learner, run, u))(each)

    total, (proof,) = proofs(LEARNERS[name][0](structure))
    assert np.all(proof.holds)
    assert np.all(np.isfinite(proof.right))
    assert np.any(np.isfinite(proof.published[:, -1]))
    np.testing.assert_allclose(proof.left[:, -1], total)


def missed(outcome, output, real):
    """1 if a label is wrong, whatever their number: not a sum over positions."""
    return jnp.any((outcome != output) & (real > 0)).astype(real.dtype)


def test_any_cost_plays_with_the_prediction_loss():
    words = structured.chain(CLASSES, FEATURES, missed)
    learner = structured.structured_passive_aggressive(structured.prediction_loss(words), 0.1)
    loss = structured.decoded_cost(words)

    @jax.jit
    def play(learner):
        run = olx.rollout(learner, loss, DENSE, words.zeros(), record=olx.record.trace)
        return run.losses, olx.certify(learner, run, weights(CHAIN, size=0.2))

    losses, (proof,) = play(learner)
    assert np.unique(losses).tolist() == [0.0, 1.0]
    assert proof.holds
    assert proof.published is None


def test_a_sweep_is_a_loop():
    own = structured.max_loss(CHAIN)
    numbers = jnp.array([0.01, 0.1, 0.5])
    make = lambda aggressiveness: structured.structured_passive_aggressive(own, aggressiveness)
    loss = structured.decoded_cost(CHAIN)
    runs = olx.sweep(olx.batch(make, aggressiveness=numbers), loss, DENSE, CHAIN.zeros())
    means = structured.averaged_weights(runs.state)
    for i, number in enumerate(numbers):
        one = olx.run(make(number), loss, DENSE, CHAIN.zeros())
        np.testing.assert_allclose(runs.losses[i], one.losses)
        mean = structured.averaged_weights(one.state)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-12), means, mean)


def with_length(length):
    x, _ = DENSE.context
    return DENSE._replace(context=structured.Sequences(x, np.full(len(x), length, np.int32)))


def with_label(label):
    y = np.array(DENSE.outcome)
    y[3, 0] = label
    return DENSE._replace(outcome=y)


PERCEPTRON = structured.structured_perceptron(CHAIN)
BAD_ROUNDS = {
    "a length of 0": (with_length(0), r"length of a sequence must lie in 1\.\.m.*got 0"),
    "a length above m": (with_length(9), r"got 9 in rounds.context.*padded_rounds"),
    "a label above k": (with_label(3), r"labels must be integers in 0\.\.2, got 3"),
    "a negative label": (with_label(-1), r"got -1 in rounds.outcome.*row 3"),
    "labels that are floats": (
        DENSE._replace(outcome=np.asarray(DENSE.outcome, float)),
        "integer labels",
    ),
    "a plain array": (DENSE._replace(context=np.asarray(DENSE.context.x)), "needs `Sequences`"),
}


@pytest.mark.parametrize("name", BAD_ROUNDS)
@pytest.mark.parametrize("drive", [olx.run, olx.rollout], ids=["run", "rollout"])
def test_bad_rounds_are_refused(drive, name):
    rounds, said = BAD_ROUNDS[name]
    with pytest.raises((ValueError, TypeError), match=said):
        drive(PERCEPTRON, structured.decoded_cost(CHAIN), rounds, CHAIN.zeros())


def negative(outcome, output, real):
    return -jnp.sum((outcome != output).astype(real.dtype) * real)


def wrong_shape(hp, parts):
    return jnp.zeros(7, jnp.int32)


def other_decoder():
    parts = {name: getattr(CHAIN, name) for name in ("hparams", "zeros_fn", "parts_fn", "score_fn")}
    return structured.Structure(**parts, decode_fn=wrong_shape, cost_fn=CHAIN.cost_fn)


ONE = np.ones((2, 1))
BAD_CALLS = {
    "negative costs": (lambda: structured.chain(2, 1, -np.eye(2)[::-1]), "non-negative"),
    "a cost of the truth": (lambda: structured.chain(2, 1, np.ones((2, 2))), "right label"),
    "costs of another shape": (lambda: structured.chain(2, 1, np.zeros((3, 3))), r"\(2, 2\)"),
    "a negative cost function": (
        lambda: structured.chain(2, 1, negative),
        "non-negative.*subtract the cost of the truth",
    ),
    "no classes": (lambda: structured.chain(0, 1), "`classes` must be an integer"),
    "an empty sequence": (
        lambda: structured.padded_rounds([ONE, np.ones((0, 1))], [[0, 1], []]),
        "sequence 1 has length 0; leave it out",
    ),
    "another number of labels": (
        lambda: structured.padded_rounds([ONE], [[0]]),
        "one label per position",
    ),
    "real labels": (lambda: structured.padded_rounds([ONE], [[0.0, 1.0]]), "give integers"),
    "a length too short": (
        lambda: structured.padded_rounds([ONE], [[0, 1]], length=1),
        "pad to at least 2",
    ),
    "a max loss of any cost": (
        lambda: structured.max_loss(structured.chain(CLASSES, FEATURES, missed)),
        "prediction_loss",
    ),
    "PA of a random field": (
        lambda: structured.structured_passive_aggressive(structured.crf(CHAIN), 1.0),
        "must be a margin loss",
    ),
    "a decoder of another shape": (
        lambda: olx.run(
            structured.structured_perceptron(other_decoder()),
            structured.crf(CHAIN),
            DENSE,
            CHAIN.zeros(),
        ),
        r"the decoded output has shape \(7,\), the outcome has \(4,\)",
    ),
    "features of another width": (
        lambda: olx.run(
            PERCEPTRON,
            structured.crf(CHAIN),
            structured.padded_rounds([np.ones((2, 5))], [[0, 1]]),
            CHAIN.zeros(),
        ),
        "the chain has 2 features",
    ),
    "real features for indices": (
        lambda: INDEXED.parts(
            INDEXED.zeros(), structured.Sequences(jnp.ones((2, 1)), jnp.asarray(1))
        ),
        "give integers",
    ),
    "an index above the table": (
        lambda: olx.run(
            structured.structured_perceptron(INDEXED),
            structured.crf(INDEXED),
            structured.padded_rounds([np.array([[6], [0]])], [[0, 1]]),
            INDEXED.zeros(),
        ),
        r"indices must lie in -1\.\.5, got 6",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_are_refused(name):
    call, said = BAD_CALLS[name]
    with pytest.raises((ValueError, TypeError), match=said):
        call()
