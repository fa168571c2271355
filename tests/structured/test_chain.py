"""Decoders, marginals and losses of chains against the enumeration of all outputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_structured as reference
from cases_structured import CHAIN, CLASSES, FEATURES, weights

import olx
from olx import structured
from olx.structured.losses import contrast

COSTS = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [1.5, 1.0, 0.0]])
TABLE = structured.chain(CLASSES, FEATURES, COSTS)
HAMMING = 1 - np.eye(CLASSES)
LONGEST = 5


def flat(w):
    return np.concatenate([np.ravel(leaf) for leaf in w])


def drawn(seed):
    """Weights, and a padded sequence of every length with its features and true labels."""
    draw, w = np.random.default_rng(seed), weights(CHAIN, seed)
    xs = [draw.normal(size=(n, FEATURES)) for n in range(1, LONGEST + 1)]
    ys = [draw.integers(0, CLASSES, n) for n in range(1, LONGEST + 1)]
    return w, xs, ys, structured.padded_rounds(xs, ys)


def padded(labels):
    return np.append(labels, np.full(LONGEST - len(labels), -1))


@jax.jit
def studied(structure, w, rounds):
    def one(context, outcome):
        parts = structure.parts(w, context)
        return (
            structure.decode(parts),
            structure.worst(parts, outcome),
            structure.log_partition(parts),
            structure.marginals(parts),
            structure.cost(parts, outcome, structure.decode(parts)),
            structured.max_loss(structure)(parts, outcome),
            structured.prediction_loss(structure)(parts, outcome),
            structured.crf(structure)(parts, outcome),
        )

    return jax.vmap(one)(rounds.context, rounds.outcome)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("structure", "costs"), [(CHAIN, HAMMING), (TABLE, COSTS)], ids=["hamming", "table"]
)
def test_decoders_losses_and_marginals_are_those_of_enumeration(structure, costs, seed):
    w, xs, ys, rounds = drawn(seed)
    problem = reference.Problem(CLASSES, costs)
    seen = jax.tree.map(np.asarray, studied(structure, w, rounds))
    best, worst, partition, marginals, cost, most, hinge, field = seen
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        u = flat(w)
        decoded, margin = problem.predicted(u, x), u @ problem.phi(x, y)
        np.testing.assert_array_equal(best[i], padded(decoded))
        np.testing.assert_array_equal(worst[i], padded(problem.worst(u, x, y)))
        np.testing.assert_allclose(partition[i], problem.log_partition(u, x), rtol=1e-12)
        np.testing.assert_allclose(cost[i], problem.rho(y, decoded))
        np.testing.assert_allclose(most[i], problem.max_loss(u, x, y), atol=1e-12)
        own = max(0.0, problem.rho(y, decoded) + problem.scores(u, x).max() - margin)
        np.testing.assert_allclose(hinge[i], own, atol=1e-12)
        np.testing.assert_allclose(field[i], problem.log_partition(u, x) - margin, rtol=1e-9)
        single, pair = problem.marginals(u, x)
        np.testing.assert_allclose(marginals.emission[i][: len(x)], single, atol=1e-12)
        assert not np.any(marginals.emission[i][len(x) :])
        np.testing.assert_allclose(marginals.transition[i], pair, atol=1e-12)
        np.testing.assert_allclose(marginals.start[i], single[0], atol=1e-12)
        np.testing.assert_allclose(marginals.end[i], single[-1], atol=1e-12)


def test_the_gradient_of_the_score_is_the_feature_map():
    w, xs, ys, rounds = drawn(0)
    problem = reference.Problem(CLASSES, HAMMING)
    score = lambda w, context, y: CHAIN.score(CHAIN.parts(w, context), y)
    each = jax.jit(jax.vmap(jax.grad(score), (None, 0, 0)))
    seen = each(w, rounds.context, rounds.outcome)
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        own = flat(jax.tree.map(lambda leaf, i=i: leaf[i], seen))
        np.testing.assert_allclose(own, problem.phi(x, y), atol=1e-12)


def test_long_chains_are_decoded_as_by_back_pointers():
    draw = np.random.default_rng(0)
    emission, transition = draw.normal(size=(4, 30, 7)), draw.normal(size=(7, 7))
    start, end = draw.normal(size=(2, 7))
    words = structured.chain(7, 7)
    w = structured.ChainWeights(*map(jnp.asarray, (np.eye(7), transition, start, end)))
    lengths = jnp.array([30, 29, 12, 1])
    parts = jax.vmap(words.parts, (None, 0))(w, structured.Sequences(emission, lengths))
    for n, rows, seen in zip(lengths, emission, jax.vmap(words.decode)(parts), strict=True):
        wanted = reference.viterbi(rows[:n], transition, start, end)
        np.testing.assert_array_equal(seen[:n], wanted)
        assert np.all(seen[n:] == -1)


def close(seen, wanted):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), seen, wanted)


@jax.jit
def moved(structure, w, context, y):
    """The parts, the weights after a step away from the decoded output, and its squared norm."""
    parts = structure.parts(w, context)
    slope = contrast(structure, parts, y, structure.decode(parts)).slope
    return parts, structure.add(w, 0.3, context, slope), structure.square(w, context, slope)


def test_indices_give_the_scores_and_updates_of_dense_indicator_rows():
    draw = np.random.default_rng(3)
    features, templates, lengths = 9, 4, (5, 2)
    rows = [draw.integers(-1, features, (n, templates)) for n in lengths]
    rows[0][1] = rows[0][2] = 4  # the same feature several times
    counts = [np.stack([[np.sum(r == f) for f in range(features)] for r in one]) for one in rows]
    labels = [draw.integers(0, CLASSES, n) for n in lengths]
    some, full = (structured.padded_rounds(x, labels) for x in (rows, counts))
    table = structured.indexed_chain(CLASSES, features)
    dense = structured.chain(CLASSES, features)
    w = weights(table)
    turned = lambda w: w._replace(emission=w.emission.T)
    for i in range(len(lengths)):
        pick = lambda rounds, i=i: jax.tree.map(lambda leaf: leaf[i], rounds)
        (one, y, _), (other, _, _) = pick(some), pick(full)
        parts, added, square = moved(table, w, one, y)
        wanted_parts, wanted, wanted_square = moved(dense, turned(w), other, y)
        close(parts, wanted_parts)
        close(turned(added), wanted)
        close(square, wanted_square)


def test_a_gradient_through_indices_is_the_update():
    table = structured.indexed_chain(CLASSES, 5)
    context = structured.Sequences(jnp.array([[0, 3], [3, -1], [1, 1]]), jnp.asarray(2))
    w, y = weights(table), jnp.array([2, 0, -1])
    grad = jax.jit(jax.grad(lambda w: table.score(table.parts(w, context), y)))(w)
    slope = jax.jit(jax.grad(lambda parts: table.score(parts, y)))(table.parts(w, context))
    close(jax.jit(table.add)(table.zeros(), 1.0, context, slope), grad)


def test_a_random_field_learns_through_a_point_learner():
    rounds = drawn(2)[-1]
    loss = structured.crf(CHAIN)
    learner = structured.structured_model(olx.meta.average(olx.ogd(0.2)), CHAIN)
    run = olx.run(learner, loss, rounds, CHAIN.zeros())
    now, past = CHAIN.zeros(), []
    step = jax.jit(jax.value_and_grad(lambda w, context, y: loss(CHAIN.parts(w, context), y)))
    for i in range(LONGEST):
        context, y, _ = jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i]), rounds)
        past.append(now)
        value, grad = step(now, context, y)
        np.testing.assert_allclose(run.losses[i], value, rtol=1e-10)
        now = jax.tree.map(lambda w, g: w - 0.2 * g, now, grad)
    mean = jax.tree.map(lambda *each: sum(each) / len(each), *past)
    close(olx.meta.averaged(run.state), mean)
