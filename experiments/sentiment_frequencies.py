"""Plot the frequency of words against their rank: a heavy tail.

Figure 1 of Orabona, Crammer, Cesa-Bianchi, A Generalized Online Mirror Descent with Applications to
Classification and Regression, 2015, redrawn from the four sentiment sets: product reviews as counts
of words and pairs of words. A few are very frequent, most are rare, and on logarithmic axes the
curve is nearly a line. So learners with larger steps for rare features, such as AdaGrad, AROW and
confidence-weighted learners, have an advantage.

    OLX_DATA=... python -m experiments.sentiment_frequencies
    python -m experiments.sentiment_frequencies --data ... --sets books dvd --out figure.svg
"""

import pathlib
import sys

import numpy as np

from experiments import output
from olx.lab.data import load

SETS = ("books", "dvd", "electronics", "kitchen")


def frequencies(name: str, folder: pathlib.Path | None) -> np.ndarray:
    """The total count of each feature in all reviews, the most frequent first."""
    counts = load(f"sentiment_{name}", folder, bias=False).context
    totals = np.asarray(counts.sum(axis=0)).reshape(-1)
    return np.sort(totals[totals > 0])[::-1]


def slope(totals: np.ndarray) -> float:
    """The exponent of the power law that best fits ranks 10 to 10,000."""
    ranks = np.unique(np.geomspace(10, min(10_000, len(totals)), 50).astype(int))
    return float(np.polyfit(np.log(ranks), np.log(totals[ranks - 1]), 1)[0])


def table(found: dict[str, np.ndarray]) -> str:
    head = f"{'set':<12} {'features':>9} {'most frequent':>14} {'seen once':>10} {'slope':>7}"
    lines = [
        f"{name:<12} {len(totals):>9,} {totals[0]:>14,.0f} {np.mean(totals == 1):>10.1%} "
        f"{slope(totals):>7.2f}"
        for name, totals in found.items()
    ]
    return "\n".join([head, *lines])


def draw(found: dict[str, np.ndarray], path: pathlib.Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(found), 3.2), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, (name, totals) in zip(panels, found.items(), strict=True):
        ranks = np.arange(1, len(totals) + 1)
        # Evenly spaced ranks on the logarithmic axis, so that the file stays small.
        shown = np.unique(np.geomspace(1, len(totals), 400).astype(int)) - 1
        axes.loglog(ranks[shown], totals[shown], ".", markersize=4, color="#0b5fa5")
        axes.set(title=name, xlabel="rank of the word")
    panels[0].set_ylabel("times it appears")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = output.arguments(__doc__, data=True)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument(
        "--out", type=pathlib.Path, default=pathlib.Path("results/sentiment_frequencies.svg")
    )
    asked = parser.parse_args()
    try:
        found = {name: frequencies(name, asked.data) for name in asked.sets}
    except OSError as error:
        sys.exit(f"sentiment_frequencies: {error}")
    print(table(found))
    draw(found, asked.out)
    print(f"\nwritten: {asked.out}")


if __name__ == "__main__":
    main()
