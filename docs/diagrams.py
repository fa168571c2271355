"""Diagrams of boxes and arrows: a round of the game, and the ways of the engine."""

import matplotlib as mpl


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
