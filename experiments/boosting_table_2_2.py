"""Reproduce table 2.2 of Luo 2016: AdaBoost, NH-Boost and NH-Boost.DT with decision stumps.

200 rounds of each booster on the training rows; all features are 0 and 1. The columns are:

  time       seconds for all rounds, without the time to compile
  zeros      the share of examples without weight in a round, in percent, on average
  train      the error of the final vote on the training rows, in percent
  test       the error of the final vote on the test rows, in percent

Each number stands beside the printed one and the difference. Times are of this machine and of
the one of the thesis. Three pictures go to --out for each set: the share of examples without weight
against rounds (figure 2.2), the distribution of margins (figure 2.3), and errors against rounds.

The data folder (OLX_DATA, or --data) holds a9a.npz and w8a.npz. A file without `n_train` has no
test rows, as the one of w8a; the last column is then empty. The other sets of the table (census,
ocr49, splice) were processed by their authors and are not reproduced. With --race, scikit-learn's
AdaBoost with trees of depth 1 is timed beside AdaBoost, in turns.
"""

import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse

from benchmarks.harness import Contestant, race
from experiments import output
from olx import boosting

BOOSTERS = {
    "AdaBoost": boosting.adaboost,
    "NH-Boost": boosting.nh_boost,
    "NH-Boost.DT": boosting.nh_boost_dt,
}
PRINTED = {  # time, zeros, train, test
    "a9a": {
        "AdaBoost": (57.5, 0.0, 15.4, 15.0),
        "NH-Boost": (72.5, 1.1, 15.8, 15.6),
        "NH-Boost.DT": (46.2, 22.1, 15.5, 15.2),
    },
    "w8a": {
        "AdaBoost": (237.6, 0.0, 2.6, 2.7),
        "NH-Boost": (244.7, 3.0, 2.2, 2.3),
        "NH-Boost.DT": (170.7, 29.3, 2.4, 2.6),
    },
}


class Part(NamedTuple):
    rows: scipy.sparse.csr_array
    labels: np.ndarray


class Result(NamedTuple):
    seconds: float
    boosted: boosting.Boosted
    test_errors: np.ndarray | None
    margins: np.ndarray


def main() -> None:
    parser = output.arguments(__doc__, data=True, out="boosting_table_2_2")
    parser.add_argument("--sets", nargs="+", choices=PRINTED, default=["a9a"])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--race", action="store_true", help="time scikit-learn beside AdaBoost")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    pages = []
    for name in arguments.sets:
        train, test = read(arguments.data, name)
        results = play(train, test, arguments.rounds)
        pages.append(f"## {name}\n\n{table(name, train, test, results)}")
        if arguments.race:
            pages[-1] += f"\n\n{compare(train, arguments.rounds)}"
        print(pages[-1], end="\n\n", flush=True)
        draw(name, results, arguments.out)
    (arguments.out / "tables.md").write_text("\n\n".join(pages) + "\n")


def read(folder: Path | None, name: str) -> tuple[Part, Part | None]:
    """The training and the test rows of a set, as they were published; None if there are none."""
    if folder is None or not (Path(folder) / f"{name}.npz").exists():
        sys.exit(
            f"boosting_table_2_2: {name}.npz is not in the data folder ({folder}); name the folder "
            "by OLX_DATA or --data."
        )
    data = np.load(Path(folder) / f"{name}.npz")
    entries = data["data"].astype(float), data["indices"].astype(np.int32), data["indptr"]
    rows = scipy.sparse.csr_array(entries, shape=tuple(data["shape"]))
    labels = data["y"].astype(float)
    if "n_train" not in data:
        return Part(rows, labels), None
    cut = int(data["n_train"])
    return Part(rows[:cut], labels[:cut]), Part(rows[cut:], labels[cut:])


def play(train: Part, test: Part | None, rounds: int) -> dict[str, Result]:
    results, weak = {}, boosting.stumps(train.rows)
    for name, make in BOOSTERS.items():
        boosting.boost_with(make(), weak, train.labels, 2)  # compiles
        begin = time.perf_counter()
        boosted = boosting.boost_with(make(), weak, train.labels, rounds)
        seconds = time.perf_counter() - begin
        errors = None if test is None else boosted.ensemble.errors(*test)
        margins = boosted.ensemble.margins(train.rows, train.labels)
        results[name] = Result(seconds, boosted, errors, margins)
    return results


def table(name: str, train: Part, test: Part | None, results: dict[str, Result]) -> str:
    about = (
        f"{len(train.labels)} training rows, {0 if test is None else len(test.labels)} test rows, "
        f"{train.rows.shape[1]} features. Each cell: here, printed, difference."
    )
    rows = []
    for booster, (seconds, boosted, errors, _) in results.items():
        shares = [boosted.zeros.mean(), boosted.errors[-1]]
        shares += [] if errors is None else [errors[-1]]
        own = [seconds, *(100 * share for share in shares)]
        cells = [
            f"{a:.2f}, {b:.1f}, {a - b:+.2f}"
            for a, b in zip(own, PRINTED[name][booster], strict=False)
        ]
        cells += ["no test rows"] * (errors is None)
        rows.append([booster, str(len(boosted.ensemble)), *cells])
    head = ("booster", "rounds", "time", "zeros", "train", "test")
    return f"{about}\n\n{output.table(head, rows)}"


def compare(train: Part, rounds: int) -> str:
    """The seconds of AdaBoost with stumps here and in scikit-learn, which take turns."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    dense, tree = train.rows.toarray().astype(np.float32), DecisionTreeClassifier(max_depth=1)
    own = lambda: boosting.boost_with(
        boosting.adaboost(), boosting.stumps(train.rows), train.labels, rounds
    )
    peer = lambda rows: AdaBoostClassifier(tree, n_estimators=rounds).fit(rows, train.labels)
    calls = {
        "olx, with the preparation of rows": own,
        "scikit-learn, dense rows": lambda: peer(dense),
        "scikit-learn, sparse rows": lambda: peer(train.rows),
    }
    seen = race([Contestant(name, lambda c=call: c, rounds) for name, call in calls.items()], 3)
    medians = {name: timing.median for name, timing in seen.items()}
    first = next(iter(medians.values()))
    rows = [(name, f"{value:.2f}", f"{value / first:.1f}") for name, value in medians.items()]
    return output.table(("AdaBoost", "seconds", "/ olx"), rows)


def draw(name: str, results: dict[str, Result], out: Path) -> None:
    figure = output.figure(13, 4, layout="tight")
    if figure is None:
        return
    zeros, margins, errors = figure.subplots(1, 3)
    for colour, (booster, result) in zip(("C0", "C1", "C2"), results.items(), strict=True):
        rounds = np.arange(1, len(result.boosted.errors) + 1)
        zeros.plot(rounds, 100 * result.boosted.zeros, colour, label=booster)
        ordered = np.sort(result.margins)
        share = np.arange(1, len(ordered) + 1) / len(ordered)
        margins.plot(ordered, share, colour, label=booster)
        errors.plot(rounds, 100 * result.boosted.errors, colour, label=f"{booster}, training")
        if result.test_errors is not None:
            errors.plot(rounds, 100 * result.test_errors, colour, ls=":", label=f"{booster}, test")
    zeros.set(title=f"{name}: examples without weight", xlabel="round", ylabel="percent")
    margins.set(title="distribution of margins", xlabel="margin", ylabel="share of examples")
    errors.set(title="error of the vote", xlabel="rounds", ylabel="percent", xscale="log")
    errors.set_ylim(top=150 * max(result.boosted.errors[0] for result in results.values()))
    for axis in (zeros, margins, errors):
        axis.legend(fontsize="small")
    figure.savefig(out / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main()
