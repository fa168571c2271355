"""Compare expert learners on real data: loss, regret and weights of every learner.

There are four games, each a table of losses with one column per expert:

  load       65 forecasters of the French electricity load; a loss is the error in percent
  nyse_o, _n 36 and 23 stocks until 1984 and 2010; minus the logarithm of the price relative
  switching  a synthetic stream whose best expert changes six times

Hedge, Fixed Share and Prod have numbers to tune. They get the best of a grid, chosen in hindsight
by loss; Hedge also by the error or wealth of the mixture. All others are played once, without
tuning. Their range of losses is the range in the table. The columns are:

  loss       the mean over rounds, in the units of the game
  regret     beyond the best single expert, in the same units, summed up over rounds
  shifting   beyond the best sequence of experts that changes at most six times
  / hedge    loss minus the lowest entry of the table, divided by that of the tuned Hedge; 1.05 is
             5 % more. For stocks it is near 1 for all, since the range is wide: read the wealth
  error      the mean error of the mixed forecast, in percent
  wealth     the final value of a dollar if the weights are a portfolio, rebalanced daily
  on best    the mean weight of the best expert of each round

A second table of the load has learners that use the gradient of the error of the mixed forecast:
`olx.experts.linearized`. A second table of the stocks has the exponentiated gradient on the
logarithm of wealth.

The data folder (OLX_DATA, or --data) holds experts_french_load.npz and portfolio_nyse_{o,n}.npz;
--games switching needs none. Tables, and pictures of the weights over time, go to --out.
"""

import itertools
import sys
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output
from olx import experts, losses

SHIFTS = 6
SHOWN = ["Hedge, tuned", "AdaNormalHedge", "Fixed Share, tuned", "AdaNormalHedge.TV"]


class Game(NamedTuple):
    losses: np.ndarray  # [T, N]
    verdict: str  # the name of the measure of the mixture
    judge: Callable[[np.ndarray], float]  # weights [T, N] -> number
    sign: int  # 1 where less is better


def main() -> None:
    parser = output.arguments(__doc__, data=True, out="experts_tables")
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES))
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    pages = []
    for name in arguments.games:
        game = GAMES[name](arguments.data)
        played = play(game)
        pages.append(f"## {name}\n\n{table(game, played)}")
        if name in STOCKS:
            pages[-1] += f"\n\n{portfolios(np.exp(-game.losses))}"
        if name == "load":
            pages[-1] += f"\n\n{forecasts(arguments.data)}"
        print(pages[-1], end="\n\n", flush=True)
        draw(name, {shown: played[shown] for shown in SHOWN}, arguments.out)
    (arguments.out / "tables.md").write_text("\n\n".join(pages) + "\n")


def load(folder: Path | None) -> Game:
    data = read(folder, "experts_french_load.npz")
    forecasts, truth = data["X"].astype(float), data["y"].astype(float)
    error = lambda weights: 100 * np.mean(np.abs((weights * forecasts).sum(1) / truth - 1))
    return Game(100 * np.abs(forecasts / truth[:, None] - 1), "error", error, 1)


def nyse(which: str, folder: Path | None) -> Game:
    relatives = read(folder, f"portfolio_nyse_{which}.npz")["X"].astype(float)
    wealth = lambda weights: np.prod((weights * relatives).sum(1))
    return Game(-np.log(relatives), "wealth", wealth, -1)


def switching(_) -> Game:
    stream = olx.streams.switching_losses(jax.random.key(0), 3000, 10, SHIFTS, 0.3)
    on_best = lambda weights: np.mean((weights * np.asarray(stream.truth)).sum(1))
    return Game(np.asarray(stream.rounds.outcome, float), "on best", on_best, -1)


STOCKS = {"nyse_o": partial(nyse, "o"), "nyse_n": partial(nyse, "n")}
GAMES = {"load": load, **STOCKS, "switching": switching}


def read(folder: Path | None, name: str):
    if folder is None or not (Path(folder) / name).exists():
        sys.exit(
            f"experts_tables: {name} is not in the data folder ({folder}); name the folder by "
            "OLX_DATA or --data. Without data there is --games switching."
        )
    return np.load(Path(folder) / name)


def play(game: Game) -> dict[str, np.ndarray]:
    """The weights [T, N] of every learner, played on the losses scaled to [0, 1]."""
    scaled = jnp.asarray((game.losses - game.losses.min()) / np.ptp(game.losses))
    count = scaled.shape[1]
    match = losses.linear_loss, olx.Rounds(None, scaled), jnp.full(count, 1 / count)
    actions = lambda one: np.asarray(olx.run(one, *match, record=olx.record.actions).trace)
    etas, shares = jnp.geomspace(1e-3, 1e4, 36), jnp.geomspace(1e-5, 0.1, 9)
    hedges = olx.batch(experts.anytime_hedge, eta=etas)
    grids = {
        "Hedge": hedges,
        "Fixed Share": olx.batch(experts.fixed_share, **olx.grid(eta=etas[::2], alpha=shares)),
        "Prod": olx.batch(experts.prod, eta=jnp.geomspace(1e-3, 0.5, 16)),
    }
    weights = {}
    for name, grid in grids.items():
        best = int(np.argmin(olx.sweep(grid, *match, keep=olx.keep.totals).total))
        weights[f"{name}, tuned"] = actions(jax.tree.map(itemgetter(best), grid))
    every = np.asarray(olx.sweep(hedges, *match, record=olx.record.actions).trace)
    weights[f"Hedge, tuned to {game.verdict}"] = min(every, key=lambda w: game.sign * game.judge(w))
    return weights | {name: actions(learner) for name, learner in untuned(*scaled.shape).items()}


def untuned(rounds: int, count: int, **span: float) -> dict[str, olx.Learner]:
    """Every learner that needs no tuning, for losses in a given range."""
    root = olx.schedules.decay(2 * np.sqrt(np.log(count)))
    return {
        "Hedge, anytime": experts.anytime_hedge(root, **span),
        "AdaHedge": experts.adahedge(**span),
        "Adapt-ML-Prod": experts.adapt_ml_prod(**span),
        "BOA": experts.boa(**span),
        "Squint": experts.squint(**span),
        "2-norm": experts.two_norm(**span),
        "NormalHedge": experts.normal_hedge(**span),
        "NormalHedge.DT": experts.normal_hedge_dt(**span),
        "AdaNormalHedge": experts.ada_normal_hedge(**span),
        "AdaNormalHedge.TV": experts.ada_normal_hedge_streaming(rounds, **span),
    }


def table(game: Game, played: dict[str, np.ndarray]) -> str:
    best, rounds, low = game.losses.sum(0).min(), len(game.losses), game.losses.min()
    shifting = float(olx.hindsight.best_shifting_expert(jnp.asarray(game.losses), SHIFTS).value)
    totals = {name: (weights * game.losses).sum() for name, weights in played.items()}
    least = totals["Hedge, tuned"] - rounds * low
    against = {name: (total - rounds * low) / least for name, total in totals.items()}
    achieved = {name: game.judge(weights) for name, weights in played.items()}
    lines = [
        f"{rounds} rounds, {game.losses.shape[1]} experts; the best one loses "
        f"{best / rounds:.5g} per round, the best sequence {shifting / rounds:.5g}.\n"
    ]
    cells = lambda name, total: (
        name,
        f"{total / rounds:.5g}",
        f"{total - best:.4g}",
        f"{total - shifting:.4g}",
        f"{against[name]:.4f}",
        f"{achieved[name]:.4g}",
    )
    head = ("learner", "loss", "regret", "shifting", "/ hedge", game.verdict)
    lines.append(output.table(head, itertools.starmap(cells, totals.items())))
    more = achieved["AdaNormalHedge"] / achieved[f"Hedge, tuned to {game.verdict}"]
    lines.append(
        "\nAdaNormalHedge, with nothing to tune, against the best Hedge of the grid: "
        f"loss {against['AdaNormalHedge'] - 1:+.2%}, {game.verdict} {more - 1:+.2%}."
    )
    return "\n".join(lines)


def forecasts(folder: Path | None) -> str:
    """The error of the mixed forecast, in percent, for learners that use its gradient."""
    data = read(folder, "experts_french_load.npz")
    relative = data["X"].astype(float) / data["y"].astype(float)[:, None]
    rounds, count = relative.shape
    spread = float(np.ptp(relative, axis=1).max())
    span = {"low": -spread, "high": spread}
    match = losses.absolute, olx.Rounds(relative, np.ones(rounds)), np.full(count, 1 / count)
    combined = lambda learner: olx.linear(experts.linearized(learner))
    etas = jnp.geomspace(1e-2, 1e3, 41)
    steady = lambda eta: combined(experts.anytime_hedge(eta, **span))
    slower = lambda eta: combined(experts.anytime_hedge(olx.schedules.decay(eta), **span))
    best = lambda make: olx.sweep(
        olx.batch(make, eta=etas), *match, keep=olx.keep.totals
    ).total.min()
    tuned = {"Hedge, tuned": best(steady), "Hedge, decaying, tuned": best(slower)}
    free = {
        "ML-Poly, no range": experts.ml_poly(),
        "BOA, any range": experts.any_range(experts.boa()),
    }
    learners = untuned(rounds, count, **span) | free
    totals = tuned | {k: olx.run(combined(v), *match).total for k, v in learners.items()}
    errors = {name: 100 * float(total) / rounds for name, total in totals.items()}
    rows = {
        "best forecaster": 100 * np.abs(relative - 1).mean(0).min(),
        "all forecasters alike": 100 * np.abs(relative.mean(1) - 1).mean(),
        **errors,
    }
    head, shown = ("combined by slopes", "error"), ((k, f"{v:.4g}") for k, v in rows.items())
    more = errors["AdaNormalHedge"] / min(errors[name] for name in tuned) - 1
    return (
        f"{output.table(head, shown)}\n\nAdaNormalHedge, with nothing to tune, against "
        f"the best Hedge of both grids: error {more:+.2%}."
    )


def portfolios(relatives: np.ndarray) -> str:
    """Exponentiated gradient on the logarithm of wealth, which is Hedge on its gradient."""
    prior = jnp.full(relatives.shape[1], 1 / relatives.shape[1])
    etas = jnp.append(jnp.geomspace(1e-3, 10.0, 31), 0.05)  # the last is that of Helmbold et al.
    match = losses.log_loss, olx.Rounds(None, jnp.asarray(relatives)), prior
    totals = olx.sweep(olx.batch(olx.hedge, eta=etas), *match, keep=olx.keep.totals).total
    wealth, own = np.exp(-np.asarray(totals)), np.prod(relatives, axis=0)
    rows = {
        "best stock": own.max(),
        "all stocks, held": own.mean(),
        "all stocks, rebalanced": np.prod(relatives.mean(1)),
        "exponentiated gradient, 0.05": wealth[-1],
        f"exponentiated gradient, tuned: {float(etas[wealth.argmax()]):.3g}": wealth.max(),
    }
    return output.table(("portfolio", "wealth"), ((k, f"{v:.4g}") for k, v in rows.items()))


def draw(game: str, played: dict[str, np.ndarray], out: Path) -> None:
    figure = output.figure(9, 2.2 * len(played), layout="tight")
    if figure is None:
        return
    axes = figure.subplots(len(played), 1)
    for axis, (name, weights) in zip(axes, played.items(), strict=True):
        axis.stackplot(np.arange(len(weights)), weights.T, linewidth=0)
        axis.set(title=name, ylim=(0, 1), xlim=(0, len(weights) - 1), xlabel="round")
    figure.savefig(out / f"weights_{game}.png", dpi=110)


if __name__ == "__main__":
    main()
