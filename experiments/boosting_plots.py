"""Pictures of online boosting: errors, weights of copies and margins.

  copies.png   progressive error against the number of copies
  rounds.png   error so far against the round, for one number of copies
  weights.png  the mean importance of every copy over time, and the factors of AdaBoost.OL
  margins.png  how many rounds of the second half have at most a given margin, y times the mean of
               the votes, weighted by their factors

The weak learner is the linear `normalized_adagrad`; the copies vote with their scores. The data are
the vowels and Y of letter if there is a data folder (OLX_DATA, or --data), else breast cancer of
scikit-learn.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import olx
from experiments import output
from olx import boosting, losses
from olx.boosting.boost import BoostState
from olx.lab.data import load

LETTERS = {"binarize": [0, 4, 8, 14, 20, 24], "bias": True}
RULES = {
    "Online BBM": boosting.online_bbm(0.1),
    "AdaBoost.OL": boosting.adaboost_ol_mean(),
    "OSBoost": boosting.osboost(0.1),
}
BINS = 40  # of rounds, in pictures over time


def main() -> None:
    parser = output.arguments(__doc__, data=True, out="boosting_plots")
    parser.add_argument("--eta", type=float, default=0.5, help="of the weak learner")
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 3, 5, 11, 21, 41])
    parser.add_argument("--shown", type=int, default=21, help="copies in the other pictures")
    given = parser.parse_args()
    found = (
        load("letter", given.data, **LETTERS)
        if given.data
        else load("sklearn:breast_cancer", bias=False)
    )
    game = losses.modified_huber, found.shuffled(0).rounds(), jnp.zeros(found.width)
    weak = olx.first_order.normalized_adagrad(given.eta)
    given.out.mkdir(parents=True, exist_ok=True)
    runs = {"weak learner": watch(weak, game)} | {
        name: watch(boosting.boost_scores(weak, given.shown, rule), game)
        for name, rule in RULES.items()
    }
    save(given.out / "copies.png", draw_copies, weak, game, given.copies)
    save(given.out / "rounds.png", draw_rounds, runs, game)
    save(given.out / "weights.png", draw_weights, runs)
    save(given.out / "margins.png", draw_margins, runs)
    for name, run in runs.items():
        print(f"{name}: progressive error {mistakes(run['vote'], game).mean():.4f}")
    print(f"Pictures are in {given.out}.")


def watch(learner: olx.Learner, game: tuple) -> dict[str, np.ndarray]:
    """The votes and margins of a learner by round; for a booster also the weights of its copies."""

    def record(state, feedback):
        vote = jnp.clip(feedback.action, -1.0, 1.0)
        seen = {"vote": vote, "margin": vote * feedback.outcome}
        if not isinstance(state, BoostState):
            return seen
        hp = learner.hparams
        h = jnp.clip(jax.vmap(hp.inner.predict, (0, None))(state.inner, feedback.context), -1, 1)
        seen["weights"] = hp.rule.weigh(state.rule, h, feedback.outcome)
        if hasattr(state.rule, "alpha"):
            alpha = seen["factors"] = state.rule.alpha
            total = jnp.maximum(jnp.sum(jnp.abs(alpha)), 1e-9)
            seen["margin"] = feedback.outcome * jnp.vdot(alpha, h) / total
        return seen

    trace = olx.run(learner, *game, record=record).trace
    return {name: np.asarray(values) for name, values in trace.items()}


def mistakes(votes: np.ndarray, game: tuple) -> np.ndarray:
    return votes * np.asarray(game[1].outcome) <= 0


def draw_copies(figure: Figure, weak: olx.Learner, game: tuple, copies: list[int]) -> None:
    axis = figure.subplots()
    for name, rule in RULES.items():
        errors = []
        for n in copies:
            run = olx.run(boosting.boost_scores(weak, n, rule), *game, record=olx.record.actions)
            errors.append(mistakes(np.asarray(run.trace), game).mean())
        axis.plot(copies, errors, marker="o", label=name)
    alone = olx.run(weak, *game, record=olx.record.actions).trace
    axis.axhline(mistakes(np.asarray(alone), game).mean(), color="gray", label="weak learner")
    axis.set(xlabel="copies", ylabel="progressive error", xscale="log", xticks=copies)
    axis.set_xticks(copies, [str(n) for n in copies], minor=False)
    axis.minorticks_off()
    axis.legend()


def draw_rounds(figure: Figure, runs: dict, game: tuple) -> None:
    axis = figure.subplots()
    for name, run in runs.items():
        wrong = mistakes(run["vote"], game)
        rounds = np.arange(1, len(wrong) + 1)
        late = rounds >= min(100, len(wrong) // 4)
        axis.plot(rounds[late], (np.cumsum(wrong) / rounds)[late], label=name)
    axis.set(xlabel="round", ylabel="error so far", xscale="log")
    axis.legend()


def draw_weights(figure: Figure, runs: dict) -> None:
    shown = {name: run["weights"] for name, run in runs.items() if "weights" in run}
    factors = {f"factors of {n}": run["factors"] for n, run in runs.items() if "factors" in run}
    panels = shown | factors
    figure.set_size_inches(7, 2.6 * len(panels))
    for axis, (name, values) in zip(figure.subplots(len(panels), 1), panels.items(), strict=True):
        means = np.stack([part.mean(0) for part in np.array_split(values, BINS)], axis=1)
        extent = (0, len(values), 0.5, means.shape[0] + 0.5)
        picture = axis.imshow(means, aspect="auto", origin="lower", extent=extent)
        title = name if name in factors else f"mean importance, {name}"
        axis.set(title=title, xlabel="round", ylabel="copy")
        figure.colorbar(picture, ax=axis)


def draw_margins(figure: Figure, runs: dict) -> None:
    axis = figure.subplots()
    for name, run in runs.items():
        margins = np.sort(run["margin"][len(run["margin"]) // 2 :])
        axis.plot(margins, np.arange(1, len(margins) + 1) / len(margins), label=name)
    axis.axvline(0.0, color="gray", linewidth=0.8)
    axis.set(xlabel="margin", ylabel="share of rounds with at most this margin", xlim=(-1, 1))
    axis.legend()


def save(path: Path, draw, *arguments) -> None:
    figure = Figure(figsize=(7, 4.2), layout="tight")
    draw(figure, *arguments)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
