"""Rank documents by relevance: OHSUMED and a part of MQ2008, of the LETOR collections.

A round is a query: a group of documents with features, scaled to [0, 1] within the query, and
degrees of relevance 0, 1 and 2. A learner plays the queries of the training partitions several
times and ranks those of the test partition by the mean of its weights over all rounds. The step
size has the highest MAP on the validation partition.

  OHSUMED  106 queries; fold i trains on partitions i, i + 1 and i + 2, validates on i + 3, tests on
           i + 4, cyclic. The mean over five folds
  MQ2008   470 of the 784 queries in three of the five partitions: trains on one, validates on the
           next, tests on the last, cyclic. No published number applies

MAP counts a query without a relevant document as 0. NDCG@10 has the gain 2^y - 1 and no discount at
ranks 1 and 2, as in LETOR 3.0. The data folder (OLX_DATA, or --data) holds letor_ohsumed.npz and
letor_mq2008_part.npz.

    python -m experiments.instance_ranking_tables
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output
from olx import first_order, losses, ranking

FILES = {"ohsumed": "letor_ohsumed.npz", "mq2008": "letor_mq2008_part.npz"}
TOP = 10
STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LEARNERS: dict[str, tuple[Callable, losses.ScoreLoss]] = {
    "aggressive, average": (ranking.instance_ranking, losses.average_pairs),
    "aggressive, largest": (
        functools.partial(ranking.instance_ranking, loss=losses.max_pairs),
        losses.max_pairs,
    ),
    "gradient descent, average": (
        lambda eta: ranking.rank_rows(olx.ogd(eta)),
        losses.average_pairs,
    ),
    "AdaGrad, average": (
        lambda eta: ranking.rank_rows(first_order.adagrad(eta)),
        losses.average_pairs,
    ),
}


class Queries(NamedTuple):
    rounds: olx.Rounds
    partition: np.ndarray  # of each query


def main() -> None:
    parser = output.arguments(__doc__, data=True, out="instance_ranking_tables")
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--passes", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give the folder of the data sets: --data, or OLX_DATA")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets:
        queries = read(Path(arguments.data) / FILES[name])
        page = f"## {name}\n\n" + table(queries, arguments.passes)
        print(page, end="\n\n", flush=True)
        (arguments.out / f"{name}.md").write_text(page + "\n")


def read(path: Path) -> Queries:
    """The queries of a file, with features scaled to [0, 1] within each query."""
    with np.load(path) as file:
        rows, relevance = file["X"] * float(file["scale"]), file["y"].astype(float)
        query, fold = file["qid"], file["fold"]
    starts = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
    sizes = np.diff(np.r_[starts, len(query)])
    low, high = np.minimum.reduceat(rows, starts), np.maximum.reduceat(rows, starts)
    width = np.where(high > low, high - low, 1.0)
    scaled = (rows - np.repeat(low, sizes, axis=0)) / np.repeat(width, sizes, axis=0)
    rounds = ranking.group_rows(scaled.astype(np.float32), relevance, sizes)
    return Queries(rounds, fold[starts])


def table(queries: Queries, passes: int) -> str:
    rows = []
    parts = np.unique(queries.partition)
    for name, (make, loss) in LEARNERS.items():
        folds = [_fold(queries, parts, i, make, loss, passes) for i in range(len(parts))]
        means = np.mean([judged for judged, _ in folds], axis=0)
        steps = ", ".join(f"{step:g}" for _, step in folds)
        rows.append([name, *(f"{mean:.4f}" for mean in means), steps])
        print(*rows[-1], flush=True)
    draw = np.random.default_rng(0).normal(size=queries.rounds.outcome.shape).astype(np.float32)
    chance = measure(draw, queries.rounds.outcome)
    rows.append(["random order", *(f"{mean:.4f}" for mean in chance), ""])
    return output.table(["learner", "MAP", f"NDCG@{TOP}", "step sizes"], rows)


def _fold(
    queries: Queries, parts: np.ndarray, first: int, make: Callable, loss: Callable, passes: int
) -> tuple[np.ndarray, float]:
    """MAP and NDCG on the test partition, and the step size that validation chose."""
    at = lambda i: parts[(first + i) % len(parts)]
    train = [at(i) for i in range(len(parts) - 2)]
    pick = lambda which: jax.tree.map(lambda leaf: leaf[which], queries.rounds)
    own = pick(np.isin(queries.partition, train))
    order = np.concatenate(
        [np.random.default_rng(seed).permutation(len(own.outcome)) for seed in range(passes)]
    )
    rounds = jax.tree.map(lambda leaf: leaf[order], own)
    held, test = (pick(queries.partition == at(len(parts) - back)) for back in (2, 1))
    tried = [(weights(make(step), loss, rounds), step) for step in STEPS]
    scores = lambda w, part: part.context @ w
    best, step = max(tried, key=lambda pair: measure(scores(pair[0], held), held.outcome)[0])
    return measure(scores(best, test), test.outcome), step


def weights(learner: olx.Learner, loss: Callable, rounds: olx.Rounds) -> np.ndarray:
    """The mean of the weights over all rounds."""
    start = jnp.zeros(rounds.context.shape[2], rounds.context.dtype)
    return np.asarray(_mean_weights(learner, loss, rounds, start))


@functools.partial(jax.jit, static_argnums=1)
def _mean_weights(learner: olx.Learner, loss: Callable, rounds: olx.Rounds, start):
    # The scores of the rows of the unit matrix are the weights.
    of = lambda state, feedback: learner.predict(state, jnp.eye(start.size, dtype=start.dtype))
    run = olx.rollout(learner, loss, rounds, start, record=of)
    return jnp.mean(run.trace, axis=0)


def letor_discount(rank):
    """1 at ranks 1 and 2, then 1 / log2(rank)."""
    return jnp.log(2.0) / jnp.log(jnp.maximum(rank, 2.0))


@jax.jit
@jax.vmap
def _judge(scores, relevance):
    precision = ranking.average_precision(scores, relevance)
    gain = ranking.ndcg(scores, 2**relevance - 1, TOP, letor_discount)
    return jnp.where(jnp.any(relevance > 0), precision, 0.0), gain


def measure(scores: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """MAP and NDCG of the queries."""
    return np.mean(np.stack(_judge(scores, relevance)), axis=1)


if __name__ == "__main__":
    main()
