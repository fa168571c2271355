"""Rows of the table: rankers of labels and of rows."""

import jax
import jax.numpy as jnp
import numpy as np
from cases import Case

import olx
from olx import games, losses, mirrors, ranking

DRAW = np.random.default_rng(11)
LABELS, WORDS, LENGTH = 4, 6, 24


def smooth_ranking(scores, relevant):
    """A smooth loss of a ranking, so that the kit can compare derivatives with differences."""
    inside = jnp.asarray(relevant) != 0
    gap = scores[None, :] - scores[:, None]
    each = jnp.where(inside[:, None] & ~inside[None, :], jax.nn.softplus(gap), 0.0)
    return jnp.sum(each)


def _labels():
    """Rows of words, and relevant labels that mostly follow from them; also none, and all."""
    words = (DRAW.random((LENGTH, WORDS)) < 0.5).astype(float)
    truth = DRAW.normal(size=(LABELS, WORDS))
    scores = words @ truth.T + 0.3 * DRAW.normal(size=(LENGTH, LABELS))
    masks = (scores > np.median(scores)).astype(float)
    masks[5], masks[9], words[12] = 0.0, 1.0, 0.0
    weight = DRAW.uniform(0.5, 1.5, LENGTH)  # without them, scores tie by chance
    return olx.Rounds(*map(jnp.asarray, (words, masks, weight))), jnp.asarray(truth)


def _rows():
    """Groups of 2 to 5 rows with three degrees of relevance."""
    sizes = DRAW.integers(2, 6, LENGTH)
    rows, truth = DRAW.normal(size=(sizes.sum(), WORDS)), DRAW.normal(size=WORDS)
    relevance = np.digitize(rows @ truth + 0.3 * DRAW.normal(size=len(rows)), [-1.0, 1.0])
    rounds = ranking.group_rows(rows, relevance, sizes)
    return jax.tree.map(jnp.asarray, rounds), jnp.asarray(truth)


WORDED, TRUTH = _labels()
REAL = WORDED._replace(context=WORDED.context * jnp.asarray(DRAW.uniform(0.5, 1.5, WORDS)))
GROUPS, SLOPE = _rows()
ZEROS = jnp.zeros((LABELS, WORDS))
SIMPLEX = (
    jnp.full((LABELS, WORDS), 1 / WORDS),
    jax.nn.softmax(TRUTH, axis=1),
    jnp.asarray(np.eye(WORDS)[np.argmax(TRUTH, axis=1)]),
)


def labels(mirror, update, margin, eta=0.37) -> Case:
    learner = ranking.label_ranking(eta, mirror, update, margin)
    rounds = REAL if mirror.identity else WORDED
    points = (ZEROS, TRUTH) if mirror.identity else SIMPLEX
    return Case(learner, smooth_ranking, rounds, ZEROS, points, trees=False)


def rows(learner) -> Case:
    vector = jnp.zeros(WORDS)
    return Case(learner, losses.average_pairs, GROUPS, vector, (vector, SLOPE), trees=False)


def game(mirror, what, rule, like: Case) -> Case:
    return like._replace(learner=olx.repeated_game(0.37, mirror, what, rule))


FLAT, ENTROPY = mirrors.euclidean(), mirrors.negative_entropy()
RANKING: dict[str, Case] = {
    "label ranking, conservative": labels(FLAT, ranking.conservative(), 1.1),
    "label ranking, aggressive": labels(FLAT, ranking.aggressive(), 1.1),
    "label ranking, optimal": labels(FLAT, ranking.optimal(), 1.1),
    "label ranking, entropy, conservative": labels(ENTROPY, ranking.conservative(), 0.21),
    "label ranking, entropy, aggressive": labels(ENTROPY, ranking.aggressive(), 0.21),
    "label ranking, entropy, optimal": labels(ENTROPY, ranking.optimal(), 0.21),
    "instance ranking": rows(ranking.instance_ranking(0.37)),
    "instance ranking, largest": rows(ranking.instance_ranking(0.37, losses.max_pairs)),
    "label game, projected ascent": game(
        mirrors.rowwise(ENTROPY),
        games.labels(0.21),
        games.projected_ascent(60),
        labels(ENTROPY, ranking.optimal(), 0.21),
    ),
    "row game, averaged steps": game(
        FLAT, games.rows(), games.averaged_steps(30), rows(olx.ogd(0.2))
    ),
    "rank rows": rows(ranking.rank_rows(olx.ogd(0.2))),
}
