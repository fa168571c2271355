"""Rows of the table: learners of structured outputs.

The loss of the game is smooth, that of a conditional random field, whatever the learner goes by.
"""

import jax.numpy as jnp
import numpy as np
from cases import Case

import olx
from olx import structured

CLASSES, FEATURES, ROUNDS = 3, 2, 24
CHAIN = structured.chain(CLASSES, FEATURES)
INDEXED = structured.indexed_chain(CLASSES, 6)


def sequences(seed=0, rounds=ROUNDS, longest=4):
    """Features, labels of a noisy chain, of lengths 1 to `longest`."""
    draw = np.random.default_rng(seed)
    truth = draw.normal(size=(CLASSES, FEATURES))
    xs, ys = [], []
    for _ in range(rounds):
        x = draw.normal(size=(draw.integers(1, longest + 1), FEATURES))
        score = x @ truth.T + 0.3 * draw.normal(size=(len(x), CLASSES))
        xs.append(x)
        ys.append(score.argmax(axis=1))
    return xs, ys


XS, YS = sequences()
DENSE = structured.padded_rounds(XS, YS)
INDICES = [np.random.default_rng(i).integers(-1, 6, (len(y), 2)) for i, y in enumerate(YS)]
SPARSE = structured.padded_rounds(INDICES, YS)


def weights(structure, seed=1, size=1.0):
    draw, like = np.random.default_rng(seed), structure.zeros()
    return type(like)(*(jnp.asarray(size * draw.normal(size=leaf.shape)) for leaf in like))


def case(learner, structure=CHAIN, rounds=DENSE):
    loss, zeros = structured.crf(structure), structure.zeros()
    near = weights(structure, size=0.3)
    return Case(learner, loss, rounds, zeros, (zeros, near), trees=False)


STRUCTURED = {
    "structured perceptron": case(structured.structured_perceptron(CHAIN)),
    "structured PA": case(
        structured.structured_passive_aggressive(structured.max_loss(CHAIN), 0.1)
    ),
    "structured, aggressive": case(structured.structured_aggressive(CHAIN, 0.1, steps=3)),
    "structured, self-tuned, indices": case(
        structured.self_tuned_structured(INDEXED, 5.0), INDEXED, SPARSE
    ),
    "random field": case(structured.structured_model(olx.meta.average(olx.ogd(0.1)), CHAIN)),
}
