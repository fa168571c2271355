"""Tables of colours: a value for each pair of a row and a column."""

import math
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.colors import LogNorm, Normalize

from olx.lab.report.chart import is_wide
from olx.lab.report.figure import LOOK, canvas, figure_text, plain, save

WRITTEN = 12  # with more columns, cells show their colour alone


class Cell(NamedTuple):
    text: str
    said: str  # in full, when pointed at
    shade: float  # from 0 to 1; NaN if there is no value
    kind: str = ""  # a class of page.css


class Heat(NamedTuple):
    name: str
    title: str
    caption: str
    heading: str
    across: str
    up: str
    columns: list[str]
    rows: list[str]
    cells: list[list[Cell]]

    @property
    def written(self) -> bool:
        return len(self.columns) <= WRITTEN


def losses(values: np.ndarray, rows: list[str], columns: list[str], names: tuple[str, str]):
    """Cells of mean losses, NaN where there is none; the least one is marked."""
    norm = norm_of(values[np.isfinite(values)])
    least = np.unravel_index(int(np.nanargmin(values)), values.shape)
    across, up = names
    return [
        [
            Cell(
                f"{value:.3g}" if math.isfinite(value) else "",
                f"{across} = {column}, {up} = {row}: "
                + (f"mean loss {value:.4g}" if math.isfinite(value) else "none, or diverged"),
                float(norm(value)) if math.isfinite(value) else math.nan,
                "best" if (i, j) == least else "",
            )
            for j, (column, value) in enumerate(zip(columns, line, strict=True))
        ]
        for i, (row, line) in enumerate(zip(rows, values.tolist(), strict=True))
    ]


def norm_of(values: np.ndarray) -> Normalize:
    kind = LogNorm if is_wide(values) else Normalize
    low, high = float(values.min()), float(values.max())
    return kind(low, high if high > low else low + 1.0)


def draw(heat: Heat, values: np.ndarray, label: str, folder: Path) -> None:
    """Write the files of a table of colours; `values` has its rows from bottom to top."""
    figure, axes = canvas(heat.heading, heat.across, heat.up)
    axes.grid(False)
    shown = axes.imshow(
        values, origin="lower", aspect="auto", cmap="viridis_r",
        norm=norm_of(values[np.isfinite(values)]), interpolation="nearest",
    )  # fmt: skip
    for axis, names in ((axes.xaxis, heat.columns), (axes.yaxis, heat.rows)):
        step = -(-len(names) // 6) if names and len(max(names, key=len)) > 3 else 1
        axis.set_ticks(range(0, len(names), step), [*map(figure_text, names[::step])])
    for i, j in np.argwhere([[cell.kind == "best" for cell in row] for row in heat.cells]).tolist():
        axes.plot(j, i, "o", markersize=10, markerfacecolor="none", markeredgecolor="white")
        axes.plot(j, i, "o", markersize=12, markerfacecolor="none", markeredgecolor="#c2410c")
    with matplotlib.rc_context(LOOK):
        plain(figure.colorbar(shown, ax=axes, label=label).ax.yaxis)
    save(figure, folder, heat.name)
