"""The pictures of the concept pages, as SVG for light and for dark pages."""

import functools
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

import olx
from docs.diagrams import a_round, engine
from experiments import one_game

INK = {"light": "#1c2333", "dark": "#e6e9f2"}
CYCLE = mpl.cycler(color=["#3f7fd6", "#e0862d", "#3ba272", "#b65fc4"])


def save(folder: Path, name: str, draw: Callable, size: tuple[float, float] = (6.4, 3.2)) -> None:
    """Draw a picture twice, with dark and with light ink, on no background."""
    folder.mkdir(parents=True, exist_ok=True)
    panels = getattr(draw, "panels", 1)
    for theme, ink in INK.items():
        parts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        style = dict.fromkeys(parts, ink) | {
            "axes.prop_cycle": CYCLE,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.facecolor": "none",
            "figure.facecolor": "none",
            "font.size": 10.5,
            "axes.titlesize": 11,
            "svg.hashsalt": name,
            "svg.fonttype": "path",
        }
        with mpl.rc_context(style):
            figure = Figure(figsize=size, layout="constrained")
            FigureCanvasSVG(figure)
            axes = figure.subplots(1, panels)
            draw(axes) if panels == 1 else draw(*axes)
            figure.savefig(folder / f"{name}.{theme}.svg", metadata={"Date": None})


def make(folder: Path) -> None:
    """Make the pictures of all concept pages."""
    save(folder, "round", a_round, (8.0, 3.1))
    save(folder, "duality", duality, (8.0, 3.0))
    save(folder, "geometry", geometry, (8.0, 3.2))
    played = _hedge()
    save(folder, "regret", lambda axes: regret(axes, *played), (7.0, 3.2))
    save(folder, "certificate", lambda axes: certificate(axes, played[2]), (7.0, 3.2))
    save(folder, "one_game", three_games, (8.0, 3.0))
    save(folder, "worst_cases", worst_cases, (8.0, 3.0))
    save(folder, "engine", engine, (8.0, 3.3))


def duality(left, right) -> None:
    w = np.linspace(-2.2, 2.2, 200)
    at = 1.2
    slope = np.sinh(at)
    left.plot(w, np.cosh(w), label=r"potential $\psi$")
    left.plot(w, np.cosh(at) + slope * (w - at), "--", label=r"slope $\theta = \nabla\psi(w)$")
    left.plot(at, np.cosh(at), "o", color="C2")
    left.set(ylim=(-1.5, 4.5), xlabel="decision $w$", title="decisions")
    left.legend(frameon=False, fontsize=9.5)
    theta = np.linspace(-3.5, 3.5, 200)
    conjugate = theta * np.arcsinh(theta) - np.sqrt(1 + theta**2)
    here = slope * at - np.cosh(at)
    right.plot(theta, conjugate, label=r"conjugate $\psi^*$")
    right.plot(theta, here + at * (theta - slope), "--", label=r"slope $w = \nabla\psi^*(\theta)$")
    right.plot(slope, here, "o", color="C2")
    right.set(ylim=(-2.5, 4.5), xlabel=r"dual $\theta$", title="duals")
    right.legend(frameon=False, fontsize=9.5)


duality.panels = 2


def geometry(left, right) -> None:
    """Decisions on the simplex of three experts, under the same gradients."""
    losses = np.tile(np.array([[0.9, 0.2, 0.6], [0.2, 0.8, 0.7]]), (15, 1))[:24]
    losses[12:] = np.array([0.1, 0.9, 0.7])
    start, corners = np.full(3, 1 / 3), np.array([[0, 0], [1, 0], [0.5, 0.866]])
    mirrors = {
        "Euclidean: gradient descent": olx.mirrors.euclidean(olx.convex.sets.simplex()),
        "entropy: multiplicative": olx.mirrors.negative_entropy(),
    }
    rounds = olx.Rounds(None, losses.astype(np.float32))
    for axes, (name, mirror), eta in zip((left, right), mirrors.items(), (0.12, 0.3), strict=True):
        run = olx.rollout(
            olx.omd(eta, mirror),
            olx.losses.linear_loss,
            rounds,
            start.astype(np.float32),
            record=olx.record.actions,
        )
        path = np.asarray(run.trace) @ corners
        axes.fill(*corners.T, fc="none", ec=mpl.rcParams["text.color"], lw=1)
        axes.plot(*path.T, "o-", ms=3, lw=1)
        axes.plot(*path[0], "s", color="C1", label="first decision")
        axes.plot(*path[-1], "D", color="C2", label="last decision")
        axes.set(title=name)
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.legend(frameon=False, fontsize=9.5, loc="upper left")


geometry.panels = 2


def _hedge():
    """Hedge on four experts whose best one changes halfway: losses, their sums, a certificate."""
    draw = np.random.default_rng(3)
    means = np.where(np.arange(300)[:, None] < 150, [0.6, 0.4, 0.5, 0.6], [0.3, 0.7, 0.5, 0.6])
    losses = (draw.random((300, 4)) < means).astype(np.float32)
    learner, rounds = olx.hedge(0.2), olx.Rounds(None, losses)
    start = np.full(4, 0.25, np.float32)
    run = olx.rollout(learner, olx.losses.linear_loss, rounds, start, record=olx.record.trace)
    best = np.eye(4, dtype=np.float32)[losses.sum(0).argmin()]
    proof = olx.certify(learner, run, best)["master_inequality"]
    return np.asarray(run.losses), losses, proof


def regret(axes, paid, losses, proof) -> None:
    rounds, mine = np.arange(1, len(paid) + 1), np.cumsum(paid)
    theirs = np.cumsum(losses, 0)
    best = theirs[-1].argmin()
    for i in range(theirs.shape[1]):
        if i != best:
            axes.plot(rounds, theirs[:, i], color="#8891a5", lw=0.9)
    axes.plot(rounds, theirs[:, best], color="C2", label="best expert in hindsight")
    axes.plot(rounds, mine, color="C0", label="learner")
    axes.fill_between(rounds, theirs[:, best], mine, color="C0", alpha=0.18, label="regret")
    axes.set(xlabel="round", ylabel="cumulative loss")
    axes.legend(frameon=False, fontsize=9)


def certificate(axes, proof) -> None:
    rounds = np.arange(1, len(proof.left) + 1)
    axes.plot(rounds, proof.published, color="C3", label="published: with norms")
    axes.plot(rounds, proof.right, color="C1", label="right: with the terms of this run")
    axes.plot(rounds, proof.left, color="C0", label="left: the regret")
    axes.axhline(0, color="#8891a5", lw=0.8)
    axes.set(xlabel="round")
    axes.legend(frameon=False, fontsize=9)


def three_games(*panels) -> None:
    one_game.draw(*panels, results=_three_games())


three_games.panels = 3


@functools.cache
def _three_games() -> dict:
    return one_game.results()


def worst_cases(*panels) -> None:
    """The numbers of the table of the page, for three of its methods."""
    page = Path(__file__).resolve().parent / "pages/concepts/worst_cases.md"
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    for axes, method in zip(panels, SHOWN, strict=True):
        own = [row for row in cells if row[0] == method]
        rounds = [int(row[1]) for row in own]
        column = lambda index, own=own: [float(row[index]) for row in own]
        axes.plot(rounds, column(6), "--", color="C3", label="bound")
        if own[0][2]:
            axes.plot(rounds, column(2), "s", color="C1", ms=8, label="exact")
        if own[0][3]:
            axes.plot(rounds, column(3), "D", color="C2", ms=8, label="0/1 losses")
        axes.plot(rounds, column(4), "o-", color="C0", ms=4, label="found")
        axes.set(title=method, xlabel="rounds", xticks=rounds, ylim=(0, 1.1 * max(column(6))))
        axes.legend(frameon=False, fontsize=9)


SHOWN = ("gradient descent", "optimistic gradient descent", "Hedge, 3 experts")
worst_cases.panels = len(SHOWN)
