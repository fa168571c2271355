"""One figure: its style, its files, and its SVG text for the page."""

import html
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

# Each colour keeps a contrast of 4.5 to white; the markers tell them apart without colour.
COLOURS = [
    *("#0b5fa5", "#c2410c", "#0f766e", "#9d174d"),
    *("#6d28d9", "#4d7c0f", "#92600a", "#374151"),
]
MARKERS = "osD^v<>p"
LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and edited
    "svg.hashsalt": "olx",
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


class Picture(NamedTuple):
    """A figure of a page: the name of its file, its caption, and its SVG text."""

    name: str
    title: str
    caption: str
    svg: str


def canvas(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    """A figure with one panel, narrow enough for a phone."""
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        axes = figure.add_subplot()
        axes.set(title=title, xlabel=x, ylabel=y)
        return figure, axes


def style(index: int) -> dict[str, Any]:
    """The style of the curve of a learner, the same in all figures."""
    count = len(COLOURS)
    marker = MARKERS[(index + index // count) % count]
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.5}
    return {"color": COLOURS[index % count], "marker": marker, **edge}


def is_wide(values: np.ndarray, ratio: float = 20) -> bool:
    """Whether a linear scale would hide the smaller values."""
    return values.size > 0 and bool(values.min() > 0 and values.max() >= ratio * values.min())


def stretch(axis: Axis, values: np.ndarray) -> None:
    """Set a logarithmic scale for `values`, with readable ticks."""
    (axis.axes.set_xscale if isinstance(axis, XAxis) else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_wide(values, 300) else (1.0, 2.0, 5.0)))
    plain(axis)


def plain(axis: Axis) -> None:
    """Write ticks as 0.01 or 1000, not as powers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+0", "e")))
    axis.set_minor_locator(NullLocator())


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


def save(figure: Figure, folder: Path, name: str, title: str, caption: str) -> Picture:
    """Write `name`.svg and `name`.png to `folder`; return the picture for the page."""
    text = io.StringIO()
    with matplotlib.rc_context(LOOK):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # keep the layout for both files
        figure.set_dpi(72)
        FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})
        figure.set_dpi(160)
        FigureCanvasAgg(figure).print_png(folder / f"{name}.png")
    (folder / f"{name}.svg").write_text(text.getvalue())
    return Picture(name, title, caption, _inline(text.getvalue(), name, title, caption))


def _inline(svg: str, name: str, title: str, caption: str) -> str:
    """The svg element alone, of flexible width, with a title for screen readers."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    # Ids must be unique in the whole page.
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    label = f'role="img" aria-labelledby="{name}-title {name}-caption"'
    words = (
        f'<title id="{name}-title">{html.escape(title)}</title>'
        f'<desc id="{name}-caption">{html.escape(caption)}</desc>'
    )
    return f"{head} {label}>{words}{rest}"
