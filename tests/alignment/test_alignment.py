"""Alignment: the decoder, its features, and learning on synthesized sound."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import olx
from olx import alignment, structured
from olx.alignment.recording import Recording, Weights

RNG = np.random.default_rng(0)
SIZES = (2, 1, 2)


def drawn(events, frames, lengths, shortest=None, seed=0):
    draw = np.random.default_rng(seed)
    return Recording(
        draw.normal(size=(events, frames, 2)),
        draw.normal(size=(events, frames, 1)),
        draw.normal(size=(events, lengths, 2)),
        draw.uniform(1, 3, events),
        (draw.random(events) < 0.7).astype(float),
        np.ones(events) if shortest is None else np.asarray(shortest, float),
        np.asarray(float(frames)),
        np.asarray(float(events)),
    )


def weights(seed=1):
    draw = np.random.default_rng(seed)
    return Weights(*(jnp.asarray(draw.normal(size=size)) for size in (*SIZES, ())))


def features(one, y):
    """The feature map, term by term."""
    ends = [*y[1:], int(one.frames)]
    phi = [np.zeros(2), np.zeros(1), np.zeros(2), 0.0]
    for i, (begin, end) in enumerate(zip(y, ends, strict=True)):
        phi[0] += one.start[i, begin]
        phi[1] += one.inside[i, begin:end].sum(0)
        phi[2] += one.length[i, end - begin - int(one.shortest[i])]
        if i:
            now, then = (end - begin) / one.usual[i], (begin - y[i - 1]) / one.usual[i - 1]
            phi[3] += one.steady[i] * (now - then) ** 2
    return phi


def score(w, phi):
    return sum(float(np.sum(np.asarray(a) * b)) for a, b in zip(w, phi, strict=True))


def outputs(one):
    """All outputs: the first event begins in one of the first L frames."""
    lengths, frames = one.length.shape[1], int(one.frames)
    for begin in range(lengths):
        for steps in itertools.product(range(lengths), repeat=int(one.events)):
            lasts = np.asarray(steps) + one.shortest.astype(int)
            y = begin + np.append(0, np.cumsum(lasts))
            if y[-1] == frames:
                yield y[:-1].tolist()


CASES = [
    drawn(3, 9, 4, seed=2),
    drawn(4, 8, 3, seed=3),
    drawn(3, 12, 3, shortest=[2, 3, 1], seed=4),
    drawn(1, 3, 3, seed=5),
]


@pytest.mark.parametrize("one", CASES)
def test_the_decoder_finds_the_best_of_all_outputs(one):
    structure = alignment.align(*SIZES)
    for seed in range(4):
        w = weights(seed)
        parts = structure.parts(w, one)
        best = max(outputs(one), key=lambda y: score(w, features(one, y)))
        found = structure.decode(parts)
        assert found.tolist() == best
        assert float(structure.score(parts, found)) == pytest.approx(
            score(w, features(one, best)), abs=1e-9
        )


def test_the_slope_of_the_score_is_the_feature_map():
    structure, one = alignment.align(*SIZES), CASES[0]
    y = next(outputs(one))
    slope = jax.grad(lambda w: structure.score(structure.parts(w, one), jnp.asarray(y)))(weights())
    for got, wanted in zip(slope, features(one, y), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-9)


def test_padding_changes_nothing():
    structure, w = alignment.align(*SIZES), weights()
    small, large = drawn(3, 9, 4, seed=2), drawn(5, 14, 4, seed=6)
    truth = [next(outputs(small)), [0, 3, 6, 9, 12]]
    rounds = alignment.aligned_rounds([small, large], truth, dtype=float)
    for at, one in enumerate((small, large)):
        context = jax.tree.map(lambda leaf, at=at: leaf[at], rounds.context)
        padded, own = structure.parts(w, context), structure.parts(w, one)
        events = int(one.events)
        assert structure.decode(padded)[:events].tolist() == structure.decode(own).tolist()
        assert set(structure.decode(padded)[events:].tolist()) <= {-1}
        y = rounds.outcome[at]
        np.testing.assert_allclose(
            structure.score(padded, y), structure.score(own, jnp.asarray(truth[at])), rtol=1e-12
        )


def test_costs():
    y, real = jnp.array([0.0, 5.0, 9.0, -1.0]), jnp.array([1.0, 1.0, 1.0, 0.0])
    off = jnp.array([0.0, 6.0, 12.0, -1.0])
    assert float(alignment.off_by(1.0)(y, off, real)) == 3.0
    assert float(alignment.off_by(3.0)(y, off, real)) == 0.0
    assert float(alignment.mean_deviation()(y, off, real)) == pytest.approx(4 / 3)


def self_tuned(x, y, complexity, first):
    """Figure 5.4 in NumPy, with the decoder by enumeration; in round 1, where all scores are 0, the
    output is `first`."""
    theta, largest, mistakes, costs = np.zeros(6), 0.0, 0, []
    flat = lambda phi: np.concatenate([np.ravel(part) for part in phi])
    for one, truth in zip(x, y, strict=True):
        guess = max(outputs(one), key=lambda z: theta @ flat(features(one, z)))
        guess = guess if costs else first
        share = np.mean(np.abs(np.array(guess) - truth) > 1)
        cost = np.floor(10 * share + 1e-6)
        costs.append(cost)
        if cost > 0:
            a = flat(features(one, truth)) - flat(features(one, guess))
            mistakes, largest = mistakes + 1, max(largest, np.linalg.norm(a))
            c = largest * np.sqrt(mistakes / (2 * complexity))
            theta = theta + min(1.0, max(0.0, c * cost - theta @ a) / (a @ a)) * a
    return costs, theta


def test_the_self_tuned_learner_agrees_with_its_reference():
    x = [drawn(3, 9, 4, seed=seed) for seed in range(12)]
    y = [list(outputs(one))[7 * at % 10] for at, one in enumerate(x)]
    rounds = alignment.aligned_rounds(x, y, dtype=float)
    structure = alignment.align(*SIZES)
    learner = structured.self_tuned_structured(structure, 2.0)
    run = olx.rollout(
        learner,
        structured.decoded_cost(structure),
        rounds,
        structure.zeros(),
        record=olx.record.trace,
    )
    first = structure.decode(structure.parts(structure.zeros(), x[0])).tolist()
    costs, theta = self_tuned(x, y, 2.0, first)
    np.testing.assert_allclose(run.losses, costs, atol=1e-9)
    flat = np.concatenate([np.ravel(part) for part in run.state.walk.w])
    np.testing.assert_allclose(flat, theta, rtol=1e-8)
    proof = olx.certify(learner, run, weights())
    assert np.all(proof[0].holds) if isinstance(proof, tuple) else np.all(proof.holds)
    state, game = learner.init(structure.zeros()), (learner, structured.decoded_cost(structure))
    for at, cost in enumerate(costs):
        one = jax.tree.map(lambda leaf, at=at: np.asarray(leaf)[at], rounds)
        state, _, paid = olx.step(*game, state, one.context, one.outcome)
        np.testing.assert_allclose(paid, cost, atol=1e-9)


def test_synthesized_speech_is_aligned_within_ten_milliseconds():
    from experiments.alignment_sounds import synthesized_speech
    from experiments.alignment_tables import decoded, learned, scaled, within

    train, test = synthesized_speech(9)
    train, test = scaled(train, train), scaled(test, train)
    structure, w = learned(train, 1, 10.0)
    shares = within(test, decoded(structure, w, test))
    assert shares[0] >= 80
    assert shares[2] >= 95


def test_bad_recordings_are_refused():
    one, structure = drawn(3, 9, 4), alignment.align(*SIZES)
    with pytest.raises(ValueError, match=r"aligned_rounds: .*lasts 7 frames.*allows 1 to 4"):
        alignment.aligned_rounds([one], [[0, 1, 2]])
    with pytest.raises(ValueError, match=r"aligned_rounds: .*as many of both"):
        alignment.aligned_rounds([one], [])
    with pytest.raises(ValueError, match=r"aligned_rounds: .*All must agree"):
        alignment.aligned_rounds([one], [[0, 1]])
    with pytest.raises(ValueError, match=r"align: `start` must be a count"):
        alignment.align(-1, 1, 1)
    with pytest.raises(TypeError, match="align: the recording has"):
        structure.parts(structure.zeros(), one._replace(start=np.zeros((1, 9, 5))))
    rounds = alignment.aligned_rounds([one], [next(outputs(one))], dtype=float)
    learner = structured.self_tuned_structured(structure, 1.0)
    game = learner, structured.decoded_cost(structure)
    short = rounds.context._replace(frames=np.array([2.0]))
    with pytest.raises(ValueError, match=r"align: the events .*allow more lengths"):
        olx.run(*game, rounds._replace(context=short), structure.zeros())
    law = alignment.phone_lengths([[0, 1]], [[3, 4]], 2)
    with pytest.raises(ValueError, match=r"speech_recording: phones lie in"):
        alignment.speech_recording(np.zeros((9, 2)), [0, 5], np.zeros((9, 2)), law)
    with pytest.raises(ValueError, match=r"log_mel: .*tenth of a second"):
        alignment.log_mel(np.zeros(10), 16_000)
