"""The pictures of the site, as SVG for light and for dark pages: all are drawn when it is built."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

import olx
from experiments import one_game

INK = {"light": "#1c2333", "dark": "#e6e9f2"}
CYCLE = mpl.cycler(color=["#3f7fd6", "#e0862d", "#3ba272", "#b65fc4"])


def save(
    folder: Path, name: str, draw: Callable, size: tuple[float, float] = (6.4, 3.2), panels: int = 1
) -> None:
    """Draw a picture twice, with dark and with light ink, on no background."""
    folder.mkdir(parents=True, exist_ok=True)
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
            draw(*np.atleast_1d(figure.subplots(1, panels)))
            figure.savefig(folder / f"{name}.{theme}.svg", metadata={"Date": None})


def make(folder: Path) -> None:
    """Make the pictures of all hand-written pages."""
    paid, losses, proof = _hedge()
    games = one_game.results()
    save(folder, "front_regret", front_regret, (4.6, 3.1))
    save(folder, "front_sweep", front_sweep, (4.6, 3.1))
    save(folder, "round", a_round, (8.0, 3.1))
    save(folder, "duality", duality, (8.0, 3.0), 2)
    save(folder, "geometry", geometry, (8.0, 3.2), 2)
    save(folder, "regret", lambda axes: regret(axes, paid, losses), (7.0, 3.2))
    save(folder, "certificate", lambda axes: certificate(axes, proof), (7.0, 3.2))
    save(folder, "one_game", lambda *panels: one_game.draw(*panels, results=games), (8.0, 3.0), 3)
    save(folder, "worst_cases", worst_cases, (8.0, 3.0), len(SHOWN))
    save(folder, "engine", engine, (8.0, 3.3))


def front_regret(axes) -> None:
    """A regret below its bound after every round: Hedge on eight experts, one of them better."""
    means = np.where(np.arange(8) == 3, 0.4, 0.5)
    losses = (np.random.default_rng(0).random((400, 8)) < means).astype(np.float32)
    learner, start = olx.hedge(0.15), jnp.full(8, 1 / 8)
    given = learner, olx.losses.linear_loss, olx.Rounds(None, losses), start, jnp.eye(8)[3]
    proof = olx.certify(*given, keep=olx.keep.every(1))["master_inequality"]
    axes.plot(proof.at, proof.right, color="C1")
    axes.plot(proof.at, proof.left, color="C0")
    axes.fill_between(proof.at, proof.left, proof.right, color="C1", alpha=0.15)
    for side, name, color, where in (
        (proof.right, "bound", "C1", (-40, 2)),
        (proof.left, "regret", "C0", (-8, -18)),
    ):
        end = (float(proof.at[-1]), float(side[-1]))
        axes.annotate(name, end, where, textcoords="offset points", ha="right", color=color)
    axes.set(xlabel="round", title="Regret and its bound, after every round", ylim=(-1, 21))


def front_sweep(axes) -> None:
    """A sweep of two numbers as one program."""
    etas, orders = np.geomspace(1e-3, 1.0, 32), np.linspace(1.1, 2.0, 20)
    totals = _sweep(etas, orders)
    high = np.nanpercentile(np.where(np.isfinite(totals), totals, np.nan), 80)
    style = {
        "cmap": "viridis_r",
        "norm": mpl.colors.LogNorm(totals.min(), high),
        "rasterized": True,
    }
    drawn = axes.pcolormesh(etas, orders, np.minimum(totals, high), **style)
    q, eta = np.unravel_index(totals.argmin(), totals.shape)
    axes.plot(etas[eta], orders[q], "*", color="white", mec="black", ms=11)
    axes.set(xscale="log", xlabel=r"step size $\eta$", ylabel="norm $q$")
    axes.set(title=f"{totals.size} configurations, one program")
    bar = axes.figure.colorbar(drawn, ax=axes, label="total loss")
    bar.set_ticks([totals.min(), high], labels=["low", "high"])
    bar.minorticks_off()


def _sweep(etas: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """The total loss of p-norm mirror descent on a sparse linear problem, by norm and step size."""
    make = lambda q, eta: olx.linear(olx.omd(eta, olx.mirrors.pnorm(q)))
    key = jax.random.key(0)
    rows = jax.random.normal(key, (400, 40))
    rounds = olx.Rounds(rows, rows[:, :3].sum(1))
    learners = olx.batch(make, **olx.grid(q=jnp.asarray(orders), eta=jnp.asarray(etas)))
    with np.errstate(over="ignore"):  # large steps diverge
        totals = olx.sweep(learners, olx.losses.squared, rounds, jnp.zeros(40)).total
    return np.nan_to_num(np.asarray(totals), nan=np.inf).reshape(len(orders), len(etas))


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


def regret(axes, paid, losses) -> None:
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


SHOWN = ("gradient descent", "optimistic gradient descent", "Hedge, 3 experts")


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


def a_round(axes) -> None:
    _sheet(axes, 10.4, 4.0)
    _box(axes, 1.2, 2.0, "state")
    _box(axes, 3.9, 2.0, "action")
    _box(axes, 6.5, 2.0, "feedback")
    _box(axes, 9.2, 2.0, "next state")
    _box(axes, 2.55, 3.5, "context", color="#3ba272")
    _box(axes, 5.2, 3.5, "outcome, weight", color="#3ba272", width=2.1)
    _box(axes, 5.2, 0.45, "record: what a run keeps", color="#e0862d", width=3.0)
    _box(axes, 8.7, 0.45, "theorem: its account", color="#e0862d", width=2.6)
    _arrow(axes, (2.1, 2.0), (3.0, 2.0), "predict")
    _arrow(axes, (4.8, 2.0), (5.6, 2.0), "loss")
    _arrow(axes, (7.4, 2.0), (8.3, 2.0), "update")
    _arrow(axes, (2.55, 3.15), (2.55, 2.3))
    _arrow(axes, (5.2, 3.15), (5.2, 2.3))
    _arrow(axes, (6.3, 1.66), (5.6, 0.82))
    _arrow(axes, (6.8, 1.66), (8.2, 0.82))


def engine(axes) -> None:
    _sheet(axes, 10.6, 4.3)
    _box(axes, 1.3, 2.1, "learner\nand its facts", height=0.9, width=2.0)
    ways = {
        "one kernel": "any learner: the loop is one native function",
        "blocks of rounds": "an update adds a multiple of one vector",
        "in turn": "a sweep of learners that keep a matrix",
        "sparse rows": "coordinates meet only in sums",
    }
    for i, (way, fact) in enumerate(ways.items()):
        y = 3.75 - 1.08 * i
        _box(axes, 4.6, y, way, color="#e0862d", width=2.3)
        axes.text(6.05, y, fact, va="center", fontsize=9.5)
        _arrow(axes, (2.4, 2.1), (3.35, y))


def _box(axes, x, y, text, width=1.7, height=0.62, color="#3f7fd6") -> None:
    box = mpl.patches.FancyBboxPatch(
        (x - width / 2, y - height / 2),
        width,
        height,
        boxstyle="round,pad=0.04",
        fc=color + "22",
        ec=color,
        lw=1.4,
    )
    axes.add_patch(box)
    axes.text(x, y, text, ha="center", va="center", fontsize=9.5)


def _arrow(axes, start, stop, text="", bend=0.0, above=0.16) -> None:
    style = {"arrowstyle": "-|>", "lw": 1.3, "color": mpl.rcParams["text.color"]}
    style["connectionstyle"] = f"arc3,rad={bend}"
    axes.annotate("", stop, start, arrowprops=style)
    middle = (start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2 + above
    axes.text(*middle, text, ha="center", va="center", fontsize=8.5, style="italic")


def _sheet(axes, width, height) -> None:
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_aspect("equal")
    axes.set_axis_off()
