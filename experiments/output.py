"""What all experiments share: their command line, and how their tables and pictures are written."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def arguments(
    doc: str | None, *, data: bool = False, out: str | None = None
) -> argparse.ArgumentParser:
    """A parser that shows `doc` as it is.

    data: whether there is a data folder: --data, or OLX_DATA. out: the folder for results.
    """
    as_it_is = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=as_it_is)
    if data:
        folder, about = os.environ.get("OLX_DATA"), "the data folder; OLX_DATA if not given"
        parser.add_argument("--data", type=Path, default=folder and Path(folder), help=about)
    if out is not None:
        parser.add_argument("--out", type=Path, default=Path("results") / out)
    return parser


def table(
    head: Iterable[str], rows: Iterable[Iterable[str]], numbers_from: int | None = None
) -> str:
    """A table of Markdown; columns from `numbers_from` on are set to the right."""
    head = list(head)
    left = len(head) if numbers_from is None else numbers_from
    lines = [head, ["---"] * left + ["---:"] * (len(head) - left), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(width: float, height: float, **options: Any) -> "Figure | None":
    """A new figure, or None, with a word about it, where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print("No pictures: matplotlib is missing, `pip install 'olx[lab]'` brings it.")
        return None
    return Figure(figsize=(width, height), **({"layout": "constrained"} | options))
