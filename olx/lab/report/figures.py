"""Files of charts for papers, as SVG, PNG and PDF, and the colours of learners.

A colour is a pair of one hue, for white and for dark paper. Each has a contrast of 4.5 to its paper
(WCAG 2), and any two are far apart in OKLab; most colours of the palettes of matplotlib are too
pale for lines on white paper.
"""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from olx._terminal import as_line
from olx.lab.report import charts
from olx.lab.report.charts import Chart, Line, is_wide
from olx.lab.report.heat_maps import HeatMap
from olx.lab.report.rank_diagram import RankDiagram, drawing

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and edited
    "svg.hashsalt": "olx",
    "pdf.fonttype": 42,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}
METADATA = {"svg": {"Date": None}, "png": {}, "pdf": {"CreationDate": None}}  # of files
KINDS = tuple(METADATA)
INK, GREY, RING = "#1a1f27", "#6b7280", "#c2410c"
MARKERS = "osD^v<>p"


Picture = Chart | HeatMap | RankDiagram


class Colour(NamedTuple):
    light: str  # on white
    dark: str  # on dark paper


# fmt: off
COLOURS = [*itertools.starmap(Colour, (
    ("#0b5fa5", "#65aefb"), ("#c2410c", "#ee693e"), ("#0f766e", "#5cb4aa"), ("#9d174d", "#fd82a4"),
    ("#6d28d9", "#aa94f9"), ("#4d7c0f", "#7cae4b"), ("#92600a", "#c79249"), ("#374151", "#b9c5d9"),
    ("#b334ad", "#d95ad2"), ("#8d6780", "#b088a2"), ("#215515", "#98cf8b"), ("#4a1147", "#fdc0f7"),
    ("#3d2a02", "#edd4ab"), ("#772e11", "#fba587"), ("#6b1d7b", "#eb9afd"), ("#cc206f", "#f54d91"),
    ("#4862ed", "#6e8dfc"), ("#707a52", "#919c72"), ("#597797", "#7a99ba"), ("#003729", "#b1e5d1"),
    ("#483a7e", "#bcb2fd"), ("#8a4ada", "#aa72fc"), ("#54461e", "#cdbd92"), ("#98483c", "#e1897b"),
))]
# fmt: on


def colour(learner: int) -> Colour:
    """The colour of learner number `learner`; where colours repeat, dashes differ."""
    return COLOURS[learner % len(COLOURS)]


def line_style(learner: int) -> dict[str, Any]:
    """The style of the line of learner number `learner`, for matplotlib."""
    turn = learner // charts.HUES
    return {
        "color": colour(learner).light,
        "marker": MARKERS[(learner + turn) % len(MARKERS)],
        "linestyle": (0, charts.dash(learner)),
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }


def draw(chart: Picture, folder: Path) -> None:
    """Draw a chart and write its files."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size(chart), layout="constrained")
        axes = figure.add_subplot()
        draw_on(axes, chart)
        if isinstance(chart, Chart):
            add_legend(figure, axes)
        save(figure, folder, chart.name)


def size(chart: Picture) -> tuple[float, float]:
    """Width and height of the figure of a chart, in inches."""
    if isinstance(chart, RankDiagram):
        made = drawing(chart)
        return made.width / 72, made.height / 72
    return 4.6, 3.2


def draw_on(axes: Axes, chart: Picture) -> None:
    """Draw a chart on axes of matplotlib, without a legend."""
    with matplotlib.rc_context(STYLE):
        if isinstance(chart, RankDiagram):
            _draw_ranks(axes, chart)
        elif isinstance(chart, HeatMap):
            _label(axes, chart.heading, chart.x, chart.y)
            _draw_cells(axes, chart)
        else:
            _label(axes, chart.heading, chart.x.label, chart.y.label)
            _draw_lines(axes, chart)


def canvas(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    """A figure with one panel, as wide as a column of text."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        axes = figure.add_subplot()
        _label(axes, title, x, y)
        return figure, axes


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set(title=figure_text(title), xlabel=figure_text(x), ylabel=figure_text(y))


def figure_text(text: str) -> str:
    """Text for a figure: a dollar is a dollar, not mathematics, and no label is hidden."""
    plain = as_line(text).replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain  # a legend leaves out _names


def set_log_scale(axis: Axis, values: np.ndarray) -> None:
    """Set a logarithmic scale for `values`, with readable ticks."""
    (axis.axes.set_xscale if isinstance(axis, XAxis) else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_wide(values, 300) else (1.0, 2.0, 5.0)))
    _set_plain_ticks(axis)


def add_legend(figure: Figure, axes: Axes) -> None:
    """Put the legend below the axes and enlarge the figure for it."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = 1 if max(map(len, labels)) > 26 else 2
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.19 * -(-len(labels) // columns))
    with matplotlib.rc_context(STYLE):
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write the figure to `folder` as `name`.svg, `name`.png and `name`.pdf."""
    with matplotlib.rc_context(STYLE):
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.execute(figure)
        figure.set_layout_engine("none")  # keep the layout for all files
        for kind, about in METADATA.items():
            figure.savefig(folder / f"{name}.{kind}", dpi=160, metadata=about)


def _draw_lines(axes: Axes, chart: Chart) -> None:
    for line in chart.lines:
        _draw_line(axes, line, chart.dots)
    own = [line for line in chart.lines if not line.bound]
    top = np.inf if chart.y.top is None else chart.y.top
    levels = np.minimum(np.concatenate([line.y for line in own]), top)
    if chart.x.log:
        set_log_scale(axes.xaxis, np.concatenate([chart.x.shown, *(line.x for line in own)]))
    if chart.y.near:
        axes.set_yscale("symlog", linthresh=chart.y.near)
        _set_plain_ticks(axes.yaxis)
    elif chart.y.log:
        set_log_scale(axes.yaxis, levels)
    if chart.x.shown:
        axes.update_datalim([(x, 0.0) for x in chart.x.shown], updatey=False)
        axes.autoscale_view()
    if chart.y.top is not None and levels.size and levels.min() < top:
        axes.set_ylim(top=top)
    if chart.y.near or (levels.size and levels.min() < 0):
        axes.axhline(0, color=GREY, linewidth=0.8)


def _draw_line(axes: Axes, line: Line, dots: bool) -> None:
    every = 1 if dots else max(1, len(line.x) // 8)
    style = line_style(line.learner)
    style["markevery"] = (line.learner % every, every)
    if line.bound or line.learner < 0:
        style = {"color": style["color"] if line.bound else GREY, "linewidth": 1.4}
    style["linestyle"] = (0, line.dash)
    if line.x.size:
        label = None if line.bound else figure_text(line.label)
        axes.plot(line.x, line.y, label=label, **style)
    if line.error is not None:
        low, high = line.y - line.error, line.y + line.error
        axes.fill_between(line.x, low, high, color=style["color"], alpha=0.15, linewidth=0)
    if line.lost:
        edge = axes.get_xaxis_transform()  # y in units of the axes
        ones = np.ones(len(line.lost))
        axes.plot(line.lost, ones, "x", color=style["color"], transform=edge, clip_on=False)


def _draw_ranks(axes: Axes, diagram: RankDiagram) -> None:
    """Draw strokes and labels in points; the letters fit if the figure has its `size`."""
    made = drawing(diagram)
    axes.set(xlim=(0, made.width), ylim=(made.height, 0), aspect="equal")
    axes.set_axis_off()
    for x1, y1, x2, y2, kind in made.strokes:
        width = {"group": 3.5, "far": 2.0}.get(kind, 0.9)
        axes.plot([x1, x2], [y1, y2], color=INK, linewidth=width, solid_capstyle="butt")
    sides: dict[str, Any] = {"start": "left", "middle": "center", "end": "right"}
    for x, y, side, text in made.labels:
        axes.text(x, y, figure_text(text), ha=sides[side], va="baseline", fontsize=10, color=INK)


def _draw_cells(axes: Axes, chart: HeatMap) -> None:
    axes.grid(False)
    known = chart.values[np.isfinite(chart.values)]
    low, high = float(known.min()), float(known.max())
    norm = (LogNorm if is_wide(known) else Normalize)(low, high if high > low else low + 1.0)
    image = axes.imshow(
        chart.values, aspect="auto", cmap="viridis_r", norm=norm, interpolation="nearest"
    )
    for axis, names in ((axes.xaxis, chart.columns), (axes.yaxis, chart.rows)):
        step = -(-len(names) // 6) if names and len(max(names, key=len)) > 3 else 1
        axis.set_ticks(range(0, len(names), step), [*map(figure_text, names[::step])])
    for i, j in np.argwhere([[cell.kind == "best" for cell in row] for row in chart.cells]):
        for size, ring in ((10, "white"), (12, RING)):
            axes.plot(j, i, "o", markersize=size, markerfacecolor="none", markeredgecolor=ring)
    bar = axes.figure.colorbar(image, ax=axes, label=chart.label)
    _set_plain_ticks(bar.ax.yaxis)


def _set_plain_ticks(axis: Axis) -> None:
    """Write ticks as 0.01 or 1000, not as powers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+0", "e")))
    axis.set_minor_locator(NullLocator())
