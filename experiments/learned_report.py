"""The tables and the picture of `experiments.learned_regularizer`."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import olx
from experiments import output
from experiments.learned_games import mean_and_error
from olx.certificate import Certificates

BEST = "learned network"
WAYS = {
    "ahead": "tuned on training games",
    "shared": "tuned in hindsight",
    "each": "tuned in hindsight per game",
}


class Family(NamedTuple):
    """What was found in the held-out games of one family."""

    name: str
    fixed: dict[str, Any]  # by the name of a player: the totals, tuned in three ways
    losses: dict[str, np.ndarray]  # by the name of a player: games x rounds
    floor: np.ndarray  # the total of the target itself in each game
    curves: dict[str, np.ndarray]  # of the training
    proofs: dict[str, Certificates]
    mirror: olx.MirrorMap  # the learned network
    eta: float  # the step size that it started from
    rival: str  # the best fixed map or reference, tuned on training games


class Row(NamedTuple):
    player: str
    way: str  # how its numbers were chosen
    totals: np.ndarray  # one per game


def rows(found: Family) -> list[Row]:
    """Every player and way, with the totals of the held-out games."""
    learned = [name for name in found.losses if name.startswith("learned")]
    made = [Row("the target itself", "", found.floor)]
    made += [Row(name, "trained", found.losses[name].sum(axis=1)) for name in learned]
    for name, one in found.fixed.items():
        made += [Row(name, label, getattr(one, way)) for way, label in WAYS.items()]
    return made


def table(found: Family) -> str:
    """Totals, and how much more each player pays than the learned network, in Markdown."""
    base = found.losses[BEST].sum(axis=1)
    more = lambda totals: "{:+.2f} ± {:.2f}".format(*mean_and_error(totals - base))
    made, lines = rows(found), []
    for player in dict.fromkeys(row.player for row in made):
        ways = [row.totals for row in made if row.player == player]
        total = "{:.2f} ± {:.2f}".format(*mean_and_error(ways[0]))
        cells = ["" if player == BEST else more(each) for each in ways]
        lines.append([player, total, *cells, *[""] * (3 - len(cells))])
    more_head = ("more than the learned network", "if tuned in hindsight", "in each game")
    return f"### {found.name}\n\n{output.table(('player', 'total loss', *more_head), lines, 1)}\n"


def certificates(found: list[Family]) -> str:
    """Regret to the target and its bounds after the last round, and whether all of them hold."""
    lines = []
    for one in found:
        for player, proofs in one.proofs.items():
            proof = proofs["composite_regret"]
            held = np.asarray(proofs.holds)
            numbers = (np.asarray(side)[:, -1] for side in (proof.left, proof.right))
            left, right = ("{:.2f} ± {:.2f}".format(*mean_and_error(side)) for side in numbers)
            lines.append([one.name, player, left, right, str(held.size), str(held.sum())])
    head = ("family", "player", "regret", "bound", "games", "holds after every round")
    return output.table(head, lines, 2) + "\n"


def write(found: list[Family], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text("\n".join(map(table, found)))
    (folder / "certificates.md").write_text(certificates(found))
    with (folder / "table.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(
            ["family", "player", "numbers", "mean", "error", "mean_more", "error_more", "games"]
        )
        for one in found:
            base = one.losses[BEST].sum(axis=1)
            for row in rows(one):
                numbers = *mean_and_error(row.totals), *mean_and_error(row.totals - base)
                cells = [f"{number:.6g}" for number in numbers]
                out.writerow([one.name, row.player, row.way, *cells, len(base)])


def draw(found: list[Family], folder: Path) -> None:
    """One column per family: losses, learned curves, and how far the network trusts directions.

    The dotted line is the loss of the target itself.
    """
    import matplotlib
    from matplotlib.figure import Figure

    from olx.lab.report.figures import STYLE, save

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.2 * len(found), 8.4), layout="constrained")
        panels = figure.subplots(3, len(found), squeeze=False)
        for (above, middle, below), one in zip(panels.T, found, strict=True):
            _losses(above, one)
            _curves(middle, one)
            _directions(below, one)
        panels[1, 0].legend()
        save(figure, folder, "learned")


def _losses(axes: Any, one: Family) -> None:
    """The mean over games of the cumulative loss, with its standard error."""
    for name in (BEST, one.rival):
        sums = np.cumsum(one.losses[name], axis=1)
        mean, error = sums.mean(axis=0), sums.std(axis=0, ddof=1) / len(sums) ** 0.5
        axes.plot(mean, label=name)
        axes.fill_between(np.arange(mean.size), mean - error, mean + error, alpha=0.3)
    axes.plot(np.arange(mean.size) * np.mean(one.floor) / mean.size, ":", color="grey")
    axes.set(title=one.name, xlabel="round", ylabel="cumulative loss")
    axes.legend()


def _curves(axes: Any, one: Family) -> None:
    """What each unit of the network adds to the decision, by the dual along its direction."""
    levels, widths, matrix = one.mirror.conjugate.args
    square = jnp.sum(matrix**2, axis=1, keepdims=True)
    dual = jnp.linspace(-1.5, 1.5, 121) / one.eta
    unit = lambda c, b: olx.mirrors.convex_network(c, b).to_primal(dual)
    lines = jax.jit(jax.vmap(unit))(levels * square, widths / square**0.5)
    axes.plot(one.eta * dual, lines.T, color="C0", alpha=0.35, linewidth=1)
    axes.plot([], [], color="C0", label="learned, one per unit")
    axes.plot(one.eta * dual, one.eta * dual, "--", color="C1", label="Euclidean")
    axes.set(xlabel="step size x sum of gradients", ylabel="decision", ylim=(-1.6, 1.6))


def _directions(axes: Any, one: Family) -> None:
    """The eigenvalues of M, the square of the dual norm, over the step size."""
    levels, _, matrix = one.mirror.conjugate.args
    m = matrix.T @ (jnp.max(levels, axis=1)[:, None] * matrix) / one.eta
    axes.semilogy(np.sort(np.linalg.eigvalsh(np.asarray(m)))[::-1], "o", color="C0")
    axes.axhline(1.0, linestyle="--", color="C1")
    axes.set(xlabel="direction", ylabel="eigenvalue of M / step size")
