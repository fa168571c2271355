"""The data sets that have a name: those of the data folder, and those of scikit-learn."""

import csv
import functools
import importlib.resources
from typing import NamedTuple

SKLEARN = {
    "breast_cancer": ("binary", "Wisconsin breast cancer, diagnostic, 569 x 30"),
    "diabetes": ("regression", "progression of diabetes, 442 x 10"),
    "digits": ("multiclass", "handwritten digits of 8 x 8 pixels, 1797 x 64"),
    "iris": ("multiclass", "iris flowers, 150 x 4"),
    "wine": ("multiclass", "wine recognition, 178 x 13"),
}


class Entry(NamedTuple):
    name: str
    task: str
    what: str
    sha256: str = ""


@functools.cache
def catalogue() -> dict[str, Entry]:
    """The sets of the data folder and of scikit-learn, by name."""
    text = importlib.resources.files("olx.lab.data").joinpath("catalogue.csv").read_text()
    entries = [Entry(**row) for row in csv.DictReader(text.splitlines())]
    entries += [Entry(f"sklearn:{name}", *about) for name, about in SKLEARN.items()]
    return {entry.name: entry for entry in entries}
