"""Load a data set by its name.

a9a                       the catalogue: <folder>/a9a.npz, checked against its sha256
sklearn:breast_cancer     a set that scikit-learn contains, no download
data/mine.csv             a file of yours: .csv, .tsv, .parquet, .arrow, .feather, .npz, .svm,
                          .libsvm, .txt; text also as .gz, .bz2 and .zst
https://host/mine.svm     a download, kept in the cache; needs sha256
libsvm:a1a                the same, from the LIBSVM collection
openml:credit-g           OpenML, through scikit-learn, which verifies the file
stream:switching_losses   a generator of `olx.streams`, fresh for every seed
stream:mypackage.mine:f   a generator of yours: a function that returns an `olx.streams.Stream`
mypackage.mine:load       a loader of yours: a function that returns rows, see `olx.lab.data.given`
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from olx import _check as check
from olx._refusal import own_name
from olx.lab.config import nearest
from olx.lab.data import dataset as shape
from olx.lab.data import given
from olx.lab.data.catalogue import Entry, catalogue
from olx.lab.data.dataset import Dataset
from olx.lab.data.download import fetch, from_openml, libsvm_address
from olx.lab.data.framed import Reading
from olx.lab.data.generated import generated
from olx.lab.data.readers import SUFFIXES, Rows, chosen, read_file
from olx.lab.data.scaling import SCALES
from olx.lab.tasks import task as tasks
from olx.streams.tables import Fill

SCHEMES = ("http", "https", "libsvm", "openml", "sklearn", "stream")


def load(
    name: str,
    folder: str | os.PathLike | None = None,
    *,
    labels: Sequence[float | str] | None = None,
    without: Sequence[int | str] = (),
    task: str | None = None,
    binarize: float | str | bool | Sequence[float | str] | None = None,
    scale: str = "none",
    bias: bool | None = None,
    center_target: bool = False,
    expert_loss: str = "absolute",
    target: str | int | None = None,
    categories: Sequence[str] = (),
    fill: Fill = None,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    unpack: float | None = None,
    sha256: str | None = None,
    seed: int | None = None,
    arguments: dict[str, Any] | None = None,
    thing: Any = None,
) -> Dataset:
    """Load the data set `name`, as above; files come from `folder`, $OLX_DATA, or the cache.

    labels: only rows with these labels, such as two classes of many; None for all.
    without: columns of features to leave out, by name or by number, from 0 on.
    task: one of `olx.lab.tasks`. Known sets have a task; a file with two labels is binary.
    binarize: the label, or the labels, that count as +1, against all others.
    scale: of the features: none, rows (each of length 1), standard (each column of mean 0 and
        variance 1; uses all rows) or maximum (each column at most 1; keeps zeros).
    bias: append a feature that is always 1, the intercept. None appends it, unless it cannot change
        a prediction: for experts, portfolios and rankings of rows. A `stream:` has none.
    center_target: scale the target of a regression to mean 0 and variance 1.
    expert_loss: the loss of forecasts, absolute or squared; divided by the largest loss.
    target: the column of the labels of a table, by name or number; the last one if None.
    categories: columns of a table that hold words, even if these look like numbers. A column of
        words becomes one feature per word.
    fill: replaces missing values of a table: "mean" or "median" of the column, and its most
        frequent word; a number; or a value per column. None refuses missing values.
    encoding, separator, header: of a CSV file; None is UTF-8, and finds the others.
    unpack: the most megabytes that a compressed file may become; None is 64, or 100 times its size
        up to 8000.
    seed: shuffles the rows; None keeps the order of the file.
    arguments: those of a generator of `olx.streams`, such as `rounds`, or of a loader of yours.
    thing: the rows themselves; `name` is then what messages call them.

    >>> data = load("sklearn:breast_cancer", scale="standard", seed=0)
    >>> data.task.name, len(data), data.width, data.table.names[-1]
    ('binary', 569, 31, 'intercept')
    """
    with own_name(name):
        asked = None if task is None else tasks.find(task)
        if unpack is not None:
            check.positive("unpack", unpack)
    _one_of(name, "scale", scale, SCALES)
    _one_of(name, "expert_loss", expert_loss, ("absolute", "squared"))
    if thing is None and given.is_loader(name, SCHEMES):
        thing, arguments = given.called(name, arguments or {}), None
    if name.startswith("stream:") or given.is_stream(thing):
        options = {"task": task, "binarize": binarize, "target": target, "sha256": sha256}
        options |= {"bias": bias or None, "center_target": center_target or None}
        options |= {"scale": None if scale == "none" else scale, "labels": labels}
        options |= {"without": without or None, "categories": categories or None, "fill": fill}
        options |= {"encoding": encoding, "separator": separator, "header": header}
        options |= {"unpack": unpack}
        for word, value in options.items():
            if value is not None:
                raise ValueError(f"{name} is generated and takes no {word}; only arguments.")
        if thing is None:
            return generated(name, arguments or {}, 0 if seed is None else seed)
        data = given.stream_of(name, thing)
        return data if seed is None else data.shuffled(seed)
    reading = Reading(target, without, categories, fill, encoding, separator, header, unpack)
    if thing is None:
        entry, rows = _find(name, folder, reading, sha256, task)
    else:
        entry, rows = Entry(name, "", ""), given.rows_of(name, thing, reading)
    if arguments:
        raise ValueError(f"{name}: only a stream takes arguments.")
    place = name if entry.what else str(entry.name)
    rows = chosen(place, rows, labels)
    kind, context, outcome, table = shape.prepare(
        place,
        rows,
        reading,
        task=tasks.TASKS[entry.task] if asked is None and entry.task else asked,
        binarize=binarize,
        scale=scale,
        bias=bias,
        center_target=center_target,
        expert_loss=expert_loss,
    )
    train = rows.train if len(outcome) == rows.x.shape[0] else None  # it counts rows, not groups
    classes = shape.classes_in(kind, outcome)
    data = Dataset(name, kind, context, outcome, train=train, classes=classes, table=table)
    return data if seed is None else data.shuffled(seed)


def data_folder(folder: str | os.PathLike | None = None) -> Path:
    """`folder`, or $OLX_DATA, or the cache folder."""
    if folder is not None:
        return Path(folder)
    if os.environ.get("OLX_DATA"):
        return Path(os.environ["OLX_DATA"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "olx"


def _find(
    name: str,
    folder: str | os.PathLike | None,
    reading: Reading,
    sha256: str | None,
    task: str | None,
) -> tuple[Entry, Rows]:
    source, _, rest = name.partition(":")
    place = data_folder(folder)
    own = Entry(name, "", "")
    if source in ("http", "https"):
        return own, read_file(fetch(name, sha256, place), reading)
    if source == "libsvm":
        return own, read_file(fetch(libsvm_address(rest, task), sha256, place), reading)
    if source == "openml":
        return own, from_openml(rest, place)
    if source == "sklearn" and name in catalogue():
        from sklearn import datasets

        found = getattr(datasets, f"load_{rest}")()
        return catalogue()[name], Rows(found.data, found.target)
    if name in catalogue():
        path = place / f"{name}.npz"
        if not path.is_file():
            raise FileNotFoundError(
                f"{name}: there is no {path}; put it there, or say where it is: data_folder in "
                "the config, or the environment variable OLX_DATA."
            )
        known = sha256 or catalogue()[name].sha256
        return catalogue()[name], read_file(path, reading, known)
    path = Path(name)
    labelled = task is None or tasks.TASKS[task].labelled
    if path.suffix.lower() in SUFFIXES or (path.exists() and name):
        if not path.is_file() and (place / path).is_file():
            path = place / path
        return own._replace(name=str(path)), read_file(path, reading, sha256, labelled)
    words = {entry.rpartition(":")[2]: entry for entry in reversed(catalogue())}
    hint = nearest(rest or name, words, "`olx list data` shows what there is.")
    raise ValueError(f"there is no data set {name!r}; {hint}")


def _one_of(name: str, what: str, value: str, legal: Sequence[str]) -> None:
    if value not in legal:
        raise ValueError(f"{name}: {what} must be one of {', '.join(legal)}, got {value!r}.")
