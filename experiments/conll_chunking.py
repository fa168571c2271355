"""Chunks of CoNLL-2000: F1 of structured learners on sparse template features.

Sentences of the Wall Street Journal, 8,936 to train and 2,012 to test; 23 tags such as B-NP, I-NP
and O. Twenty templates name one feature each per word: words and parts of speech up to two places
away, their pairs and triples, and a constant. A feature of the training part has a row of the
table; a feature that is new in the test part is absent. F1 counts chunks with the right type and
both ends right, as the script conlleval of the shared task does. U and C were not tuned.

    OLX_DATA=... python -m experiments.conll_chunking
    python -m experiments.conll_chunking --data ... --passes 8 --learner "PA, C = 0.05"
"""

import pathlib
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output
from olx import structured

WORDS = [(-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)]
TAGS = [(-2,), (-1,), (0,), (1,), (2,), (-2, -1), (-1, 0), (0, 1), (1, 2)]
TAGS += [(-2, -1, 0), (-1, 0, 1), (0, 1, 2)]
PUBLISHED = """
Published F1: Kudo and Matsumoto 2001 93.91, Kudo and Matsumoto 2000 93.48, van Halteren 2000 93.32,
Tjong Kim Sang 2000 92.50, baseline 77.07 (README of the data); with a parser, Zhang, Damerau and
Johnson 2001 94.13.
"""


class Sentences(NamedTuple):
    word: list[np.ndarray]
    tag: list[np.ndarray]  # parts of speech
    chunk: list[np.ndarray]
    names: list[str]  # of the chunk tags
    train: int  # the number of sentences of the training part


def read(folder: pathlib.Path) -> Sentences:
    with np.load(folder / "conll2000.npz") as data:
        cut = data["offsets"][1:-1]
        of = lambda name: np.split(data[name].astype(np.int64), cut)
        return Sentences(
            of("word"), of("pos"), of("y"), data["label_names"].tolist(), int(data["n_train"])
        )


def keys(rows: list[np.ndarray], shifts: tuple[int, ...]) -> list[np.ndarray]:
    """For each position, one number that names the values at these shifts."""
    base = 2 + max(int(row.max()) for row in rows)
    found = []
    for row in rows:
        wide = np.pad(row + 1, 2)  # 0 outside of the sentence
        key = np.zeros(len(row), np.int64)
        for shift in shifts:
            key = key * base + wide[2 + shift : 2 + shift + len(row)]
        found.append(key)
    return found


def indexed(data: Sentences) -> tuple[list[np.ndarray], int]:
    """The indices of the active features of each sentence, and their number."""
    columns, size = [], 0
    cut = np.cumsum([len(row) for row in data.word])[:-1]
    templates = [keys(data.word, shifts) for shifts in WORDS]
    templates += [keys(data.tag, shifts) for shifts in TAGS]
    templates.append([np.zeros(len(row), np.int64) for row in data.word])
    for each in templates:
        known = np.unique(np.concatenate(each[: data.train]))
        every = np.concatenate(each)
        at = np.minimum(np.searchsorted(known, every), len(known) - 1)
        columns.append(np.where(known[at] == every, size + at, -1))
        size += len(known)
    return np.split(np.stack(columns, axis=1).astype(np.int32), cut), size


def chunks(labels: np.ndarray, names: list[str]) -> set[tuple[int, int, str]]:
    """The chunks (first, last, type) of a sentence; I after another type starts one too."""
    found, begin, kind = set(), 0, ""
    for i, name in enumerate([*(names[label] for label in labels), "O"]):
        mark, _, own = name.partition("-")
        goes_on = mark == "I" and own == kind
        if kind and not goes_on:
            found.add((begin, i - 1, kind))
        if not goes_on:
            begin, kind = i, own
    return found


def f1(truth: list[np.ndarray], seen: list[np.ndarray], names: list[str]) -> float:
    right = guessed = real = 0
    for a, b in zip(truth, seen, strict=True):
        one, other = chunks(a, names), chunks(b, names)
        right, guessed, real = right + len(one & other), guessed + len(other), real + len(one)
    return 200 * right / (guessed + real)


def learners(chain: structured.Structure) -> dict[str, olx.Learner]:
    own = structured.prediction_loss(chain)
    return {
        "perceptron": structured.structured_perceptron(chain),
        "self-tuned, U = 100": structured.self_tuned_structured(chain, 100.0),
        "PA, C = 0.05": structured.structured_passive_aggressive(own, 0.05),
    }


def main() -> None:
    parser = output.arguments(__doc__, data=True)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--learner", action="append", help="one of those of the table; else all")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the sentences")
    args = parser.parse_args()
    if args.data is None or not (pathlib.Path(args.data) / "conll2000.npz").exists():
        parser.error("conll2000.npz is not there: name its folder with OLX_DATA or --data")

    data = read(pathlib.Path(args.data))
    rows, features = indexed(data)
    half = slice(None, data.train), slice(data.train, None)
    train, test = (structured.padded_rounds(rows[part], data.chunk[part]) for part in half)
    chain = structured.indexed_chain(len(data.names), features)
    loss, truth = structured.decoded_cost(chain), data.chunk[data.train :]
    print(f"{features:,} features, {len(data.names)} tags, {data.train:,} sentences\n")
    print(f"{'averaged weights of':<24}{'passes':>7}{'F1':>8}{'accuracy':>10}{'seconds':>9}")
    for name, learner in learners(chain).items():
        if args.learner and name not in args.learner:
            continue
        draw, state, seconds = np.random.default_rng(args.seed), None, 0.0
        for number in range(1, args.passes + 1):
            order = draw.permutation(data.train)
            rounds = jax.tree.map(lambda leaf, order=order: leaf[order], train)
            begin = time.perf_counter()
            start = chain.zeros(jnp.float32)
            run = olx.run(learner, loss, rounds, start, state=state, keep=olx.keep.totals)
            state = jax.block_until_ready(run.state)
            seconds += time.perf_counter() - begin
            mean = structured.averaged_weights(state)
            labels = np.asarray(structured.decoded(chain, mean, test.context))
            seen = [row[: len(own)] for row, own in zip(labels, truth, strict=True)]
            right = np.mean(np.concatenate(seen) == np.concatenate(truth))
            score = f1(truth, seen, data.names)
            print(f"{name:<24}{number:>7}{score:8.2f}{right:10.4f}{seconds:9.1f}", flush=True)
    print(PUBLISHED)


if __name__ == "__main__":
    main()
