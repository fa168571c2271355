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

import csv
import functools
import importlib.resources
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from olx import _check as check
from olx._refusal import own_name
from olx.core import Rounds
from olx.lab import user_factories
from olx.lab.config import ConfigError, nearest
from olx.lab.data.class_weights import ClassWeights, with_class_weights
from olx.lab.data.dataset import Dataset, prepare
from olx.lab.data.files import SUFFIXES, Reading, Rows, file_digest, read_file, rows_with_labels
from olx.lab.data.given import call_loader, generate, given_rows, stream_dataset
from olx.lab.data.table import Binarize
from olx.lab.experiment import Experiment
from olx.lab.tasks import task as tasks
from olx.streams import Stream
from olx.streams.scales import SCALES
from olx.streams.tables import Fill

SCHEMES = ("http", "https", "libsvm", "openml", "sklearn", "stream")
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
SKLEARN = {
    "breast_cancer": ("binary", "Wisconsin breast cancer, diagnostic, 569 x 30"),
    "diabetes": ("regression", "progression of diabetes, 442 x 10"),
    "digits": ("multiclass", "handwritten digits of 8 x 8 pixels, 1797 x 64"),
    "iris": ("multiclass", "iris flowers, 150 x 4"),
    "wine": ("multiclass", "wine recognition, 178 x 13"),
}


class Entry(NamedTuple):
    """A data set that has a name."""

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


def load(
    name: str,
    folder: str | os.PathLike | None = None,
    *,
    labels: Sequence[float | str] | None = None,
    class_weights: ClassWeights = None,
    without: Sequence[int | str] = (),
    task: str | None = None,
    binarize: Binarize = None,
    scale: str = "none",
    bias: bool | None = None,
    center_target: bool = False,
    expert_loss: str = "absolute",
    target: str | int | None = None,
    group: str | int | None = None,
    id: str | int | None = None,
    categories: Sequence[str] = (),
    fill: Fill = None,
    dates: str | None = None,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    unpack: float | None = None,
    sha256: str | None = None,
    seed: int | None = None,
    arguments: dict[str, Any] | None = None,
    thing: object = None,
) -> Dataset:
    """Load the data set `name`, as above; files come from `folder`, $OLX_DATA, or the cache.

    labels: only rows with these labels, such as two classes of many; None for all.
    class_weights: with which the rows of each label are learned, 1 if not named; or "balanced", so
        that each class weighs the same (counts all rows). Losses count each row once.
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
    group: the column of a table, by name or number, that says which rows are one round: the query
        of a ranking, or the sequence of a chain, with its rows in order. It is no feature.
    id: the column of a table, by name or number, that says which row is which. It is no feature;
        predictions carry it.
    categories: columns of a table that hold words, even if these look like numbers or dates. A
        column of words becomes one feature per word.
    fill: replaces missing values of a table: "mean" or "median" of the column, and its most
        frequent word; a number; or a value per column. None refuses missing values.
    dates: "parts" makes numbers of a column of dates: its year, month, day of the week and hour;
        None refuses dates. See `olx.streams.dates`.
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
    losses = ("absolute", "squared")
    for word, value, legal in (("scale", scale, SCALES), ("expert_loss", expert_loss, losses)):
        if value not in legal:
            raise ValueError(f"{name}: {word} must be one of {', '.join(legal)}, got {value!r}.")
    is_function = user_factories.FORM.fullmatch(name) and name.partition(":")[0] not in SCHEMES
    if thing is None and is_function:
        thing, arguments = call_loader(name, arguments or {}), None
    own = target, group, id, without, categories, fill, dates, encoding, separator, header, unpack
    reading = Reading(*own)
    if name.startswith("stream:") or isinstance(thing, Rounds | Stream):
        options = {"task": task, "binarize": binarize, "sha256": sha256, "labels": labels}
        options |= {"class_weights": class_weights}
        options |= {"bias": bias or None, "center_target": center_target or None}
        options |= {"scale": None if scale == "none" else scale}
        options |= dict(zip(Reading._fields, own, strict=False))
        for word, value in options.items():
            if value is not None and value not in ((), []):
                raise ValueError(f"{name} is generated and takes no {word}; only arguments.")
        if not isinstance(thing, Rounds | Stream):
            return generate(name, arguments or {}, 0 if seed is None else seed)
        data = stream_dataset(name, thing)
        return data if seed is None else data.shuffled(seed)
    if asked is not None:
        reading = reading._replace(
            labelled=asked.labelled, several=asked.several, grouped=asked.gather is not None
        )
    if thing is None:
        entry, rows = _find(name, folder, reading, sha256, task)
    else:
        reading = reading._replace(labelled=True)
        entry, rows = Entry(name, "", ""), given_rows(name, thing, reading)
    if arguments:
        raise ValueError(f"{name}: only a stream takes arguments.")
    if group is not None and rows.columns is None:
        raise ValueError(f"{name}: group is for a table; other files hold the groups as qid.")
    if id is not None and rows.columns is None:
        raise ValueError(f"{name}: id is for a table; the rows of other files have no names.")
    place = name if entry.what else str(entry.name)
    data = prepare(
        name,
        place,
        rows_with_labels(place, rows, labels),
        reading,
        task=tasks.TASKS[entry.task] if asked is None and entry.task else asked,
        binarize=binarize,
        scale=scale,
        bias=bias,
        center_target=center_target,
        expert_loss=expert_loss,
    )
    data = with_class_weights(data, class_weights)
    return data if seed is None else data.shuffled(seed)


def data_folder(folder: str | os.PathLike | None = None) -> Path:
    """`folder`, or $OLX_DATA, or the cache folder."""
    if folder is not None:
        return Path(folder)
    if os.environ.get("OLX_DATA"):
        return Path(os.environ["OLX_DATA"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "olx"


def resolve_paths(folder: Path, experiment: Experiment) -> Experiment:
    """The experiment with the paths of its data made absolute; tables call the data as before.

    Paths are relative to `folder`, that of the config. A file that is not there is looked for in
    the data folder, as a catalogue name is.
    """
    if experiment.data_folder is not None:
        experiment.data_folder = str((folder / experiment.data_folder).resolve())
    for i, entry in enumerate(experiment.data):
        path = Path(entry.name)
        there = (folder / path).is_file()
        named = there or path.suffix.lower() in SUFFIXES  # svmlight files have any suffix
        if ":" in entry.name or not named or path.is_absolute():
            continue
        if not there and (data_folder(experiment.data_folder) / path).is_file():
            continue
        if not there and path.is_file():
            raise ConfigError(
                f"data.{i}.name: {path} is not in {folder.resolve()}, the folder of the config, "
                f"but in {Path.cwd()}, the working directory; paths are relative to the config: "
                "move the file, or write the path from there."
            )
        entry.label = entry.label or entry.name
        entry.name = str((folder / path).resolve())
    return experiment


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
    known = catalogue().get(name)
    if source in ("http", "https", "libsvm"):
        address = _libsvm_address(rest, task) if source == "libsvm" else name
        return own, read_file(_download(address, sha256, place), reading)
    if source == "openml":
        return own, _from_openml(rest, place)
    if source == "sklearn" and known:
        from sklearn import datasets

        found = getattr(datasets, f"load_{rest}")()
        return known, Rows(found.data, found.target)
    if known:
        path = place / f"{name}.npz"
        if not path.is_file():
            raise FileNotFoundError(
                f"{name}: there is no {path}; put it there, or say where it is: data_folder in "
                "the config, or the environment variable OLX_DATA."
            )
        return known, read_file(path, reading, sha256 or known.sha256)
    path = Path(name)
    if path.suffix.lower() in SUFFIXES or (path.exists() and name):
        if not path.is_file() and (place / path).is_file():
            path = place / path
        return own._replace(name=str(path)), read_file(path, reading, sha256)
    words = {entry.rpartition(":")[2]: entry for entry in reversed(catalogue())}
    hint = nearest(rest or name, words, "`olx list data` shows what there is.")
    raise ValueError(f"there is no data set {name!r}; {hint}")


def _download(address: str, sha256: str | None, folder: Path) -> Path:
    """The file at `address`, downloaded once; refused if its SHA-256 is not `sha256`."""
    import pooch

    known = None if sha256 is None else f"sha256:{sha256}"
    name = address.rsplit("/", 1)[-1] or "download"
    pooch.get_logger().setLevel("ERROR")
    try:
        path = Path(pooch.retrieve(address, known, fname=name, path=folder / "downloads"))
    except ValueError as error:
        raise ValueError(
            f"{address}: what comes from there does not have the sha256 {sha256}; it was changed "
            "or damaged on the way."
        ) from error
    except OSError as error:
        raise OSError(f"{address} cannot be downloaded: {_reason(error)}.") from error
    if sha256 is None:
        raise ValueError(
            f"{address}: give the expected sha256; this file has sha256 = {file_digest(path)!r}."
        )
    return path


def _libsvm_address(name: str, task: str | None) -> str:
    folders = [each.name for each in tasks.TASKS.values() if each.in_libsvm]
    if task not in folders:
        *some, last = folders
        raise ValueError(
            f"libsvm:{name}: the collection is sorted by task; give {', '.join(some)} or {last}."
        )
    return f"{LIBSVM}/{task}/{name}"


def _from_openml(name: str, folder: Path) -> Rows:
    """Load a set of OpenML by name or number; features must be numbers, labels may be words."""
    from sklearn.datasets import fetch_openml

    which: dict[str, Any] = {"data_id": int(name)} if name.isdigit() else {"name": name}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # scikit-learn retries, then raises
            found: Any = fetch_openml(
                **which, data_home=str(folder / "openml"), as_frame=False, parser="liac-arff"
            )
    except (ValueError, OSError) as error:
        raise ValueError(f"openml:{name} cannot be loaded: {_reason(error)}.") from error
    x, y = found.data, np.asarray(found.target)
    if x.dtype.kind == "O":
        raise ValueError(f"openml:{name} has features that are not numbers; encode them first.")
    try:
        y = y.astype(float)
    except ValueError:
        y = y.astype(str)
    return Rows(x, y)


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:400].rstrip(".")
