"""Figures as files for papers: SVG, PNG and PDF."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from olx._terminal import as_line
from olx.lab.report.chart import Chart, Line, Scale, is_wide
from olx.lab.report.colours import look

KINDS = ("svg", "png", "pdf")  # of files, see WRITERS
LOOK: dict[Any, Any] = {
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
GREY = "#6b7280"


def draw(chart: Chart, folder: Path) -> None:
    """Draw a chart and write its files."""
    figure, axes = canvas(chart.heading, chart.x, chart.y)
    for line in chart.lines:
        _draw(axes, line, chart)
    for axis, scale, values in zip(
        (axes.xaxis, axes.yaxis), chart.scales, _values(chart), strict=True
    ):
        _rescale(axis, scale, values)
    if chart.scales[1].near or any(line.y.size and line.y.min() < 0 for line in chart.lines):
        axes.axhline(0, color=GREY, linewidth=0.8)
    legend(figure, axes)
    save(figure, folder, chart.name)


def canvas(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    """A figure with one panel, as wide as a column of text."""
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        axes = figure.add_subplot()
        axes.set(title=figure_text(title), xlabel=figure_text(x), ylabel=figure_text(y))
        return figure, axes


def figure_text(text: str) -> str:
    """Text for a figure: a dollar is a dollar, not mathematics, and no label is hidden."""
    plain = as_line(text).replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain  # a legend leaves out _names


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write the figure to `folder` as `name`.svg, `name`.png and `name`.pdf."""
    with matplotlib.rc_context(LOOK):
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.execute(figure)
        figure.set_layout_engine("none")  # keep the layout for all files
        for kind, write in WRITERS.items():
            write(figure, folder / f"{name}.{kind}")


def _svg(figure: Figure, place: Path) -> None:
    figure.set_dpi(72)
    FigureCanvasSVG(figure).print_svg(place, metadata={"Date": None})


def _png(figure: Figure, place: Path) -> None:
    figure.set_dpi(160)
    FigureCanvasAgg(figure).print_png(place)


def _pdf(figure: Figure, place: Path) -> None:
    FigureCanvasPdf(figure).print_pdf(place, metadata={"CreationDate": None})


WRITERS = {"svg": _svg, "png": _png, "pdf": _pdf}


def stretch(axis: Axis, values: np.ndarray) -> None:
    """Set a logarithmic scale for `values`, with readable ticks."""
    (axis.axes.set_xscale if isinstance(axis, XAxis) else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_wide(values, 300) else (1.0, 2.0, 5.0)))
    plain(axis)


def plain(axis: Axis) -> None:
    """Write ticks as 0.01 or 1000, not as powers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+0", "e")))
    axis.set_minor_locator(NullLocator())


def _draw(axes: Axes, line: Line, chart: Chart) -> None:
    style: dict[str, Any] = {"color": GREY}
    if line.place >= 0:
        style = look(line.place, chart.learners)
    colour = style["color"]
    if line.bound or line.place < 0:
        label = None if line.bound else figure_text(line.label)
        dashes = ":" if line.bound else (0, line.dash)
        axes.plot(line.x, line.y, linestyle=dashes, color=colour, linewidth=1.4, label=label)
        return
    every = 1 if chart.dots else max(1, len(line.x) // 8)
    if line.x.size:
        axes.plot(
            line.x,
            line.y,
            label=figure_text(line.label),
            markevery=(line.place % every, every),
            **style,
        )
    if line.error is not None and chart.dots:
        axes.vlines(line.x, line.y - line.error, line.y + line.error, color=colour, linewidth=1)
    elif line.error is not None:
        low, high = line.y - line.error, line.y + line.error
        axes.fill_between(line.x, low, high, color=colour, alpha=0.15, linewidth=0)
    if line.lost:
        edge = axes.get_xaxis_transform()  # y in units of the axes
        ones = np.ones(len(line.lost))
        axes.plot(line.lost, ones, "x", color=colour, transform=edge, clip_on=False)


def _values(chart: Chart) -> tuple[np.ndarray, np.ndarray]:
    own = [line for line in chart.lines if not line.bound]
    return np.concatenate([line.x for line in own]), np.concatenate([line.y for line in own])


def _rescale(axis: Axis, scale: Scale, values: np.ndarray) -> None:
    if scale.log and scale.near:
        axis.axes.set_yscale("symlog", linthresh=scale.near)
        plain(axis)
    elif scale.log:
        stretch(axis, values)


def legend(figure: Figure, axes: Axes) -> None:
    """Put the legend below the axes and enlarge the figure for it."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = 1 if max(map(len, labels)) > 26 else 2
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.19 * -(-len(labels) // columns))
    with matplotlib.rc_context(LOOK):
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
