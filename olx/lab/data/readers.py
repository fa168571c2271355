"""Read features and labels from files; errors name the row and the column, from 0 on."""

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from olx._refusal import own_name
from olx.lab.data.framed import (
    ARROW,
    PARQUET,
    TEXT,
    Reading,
    features_and_labels,
    is_framed,
    read_frame,
)
from olx.lab.data.svmlight import SVMLIGHT, read_svmlight
from olx.lab.data.unpacking import COMPRESSED, check_npz
from olx.streams.tables import Columns

AS_IS = Reading()
SUFFIXES = (".npz", *TEXT, *ARROW, *PARQUET, *SVMLIGHT, *COMPRESSED)


class Rows(NamedTuple):
    """What a file holds, before it is scaled."""

    x: Any  # dense or SciPy sparse
    y: np.ndarray | None
    train: int | None = None
    group: np.ndarray | None = None  # (T,): the group of each row, such as a query or a sequence
    columns: Columns | None = None  # how the columns of a table became features
    target: str = ""  # the name of the column of labels, if it has one


def read_file(
    path: Path, reading: Reading = AS_IS, sha256: str | None = None, labelled: bool = True
) -> Rows:
    """Read a file of rows: .npz, .csv, .tsv, .parquet, .arrow, and any other name as svmlight.

    reading: how the columns of a table are read.
    sha256: the expected SHA-256 of the file.
    labelled: whether the last column of a table holds the labels if `reading` names none.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it.")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    if sha256 is not None and (seen := digest(path)) != sha256:
        raise ValueError(
            f"{path} has the sha256 {seen}, expected {sha256}: it is damaged or another file."
        )
    try:
        return _read(path, reading, labelled)
    except MemoryError as error:
        raise ValueError(
            f"{path} does not fit into memory; give fewer rows, or sparse ones."
        ) from error


def _read(path: Path, reading: Reading, labelled: bool) -> Rows:
    if path.suffix.lower() == ".npz":
        return read_npz(path, reading.unpack)
    if is_framed(path):
        found = read_frame(path, reading, reading.categories)
        with own_name(str(path)):
            x, y, columns, target = features_and_labels(str(path), found, reading, labelled)
        return Rows(x, y, columns=columns, target=target)
    return Rows(*read_svmlight(path, reading.unpack))


def chosen(place: str, rows: Rows, labels: Sequence[float | str] | None) -> Rows:
    """The rows with one of `labels`; all of them if None."""
    x, y, train, group = rows[:4]
    if labels is not None:
        if y is None:
            raise ValueError(f"{place} holds no labels to choose rows by.")
        for label in labels:
            if label not in y.tolist():
                raise ValueError(f"{place} holds no label {label} to choose rows by.")
        kept = np.isin(y, list(labels))
        x, y, group = x[kept], y[kept], None if group is None else group[kept]
        train = None if train is None else int(kept[:train].sum())
    return rows._replace(x=x, y=y, train=train, group=group)


def all_but(place: str, x: Any, without: Sequence[int | str]) -> Any:
    """The columns of `x`, except those with the numbers `without`."""
    for column in without:
        if isinstance(column, str):
            raise ValueError(f"{place}: its columns have no names such as {column!r}, but numbers.")
        if not 0 <= column < x.shape[1]:
            raise ValueError(f"{place} has the columns 0 to {x.shape[1] - 1}; {column} is none.")
    return x[:, np.setdiff1d(np.arange(x.shape[1]), without)] if len(without) else x


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_npz(path: Path, unpack: float | None = None) -> Rows:
    """`X`, or a CSR matrix as `data`, `indices`, `indptr`, `shape`; `y`, `n_train`, `scale`. For
    rows that belong together: `qid`, a number per row, or `offsets`, where each sequence begins.

    `y` has one label per row, or a row of 0 and 1 with a column per label."""
    try:
        with path.open("rb") as raw:
            check_npz(path, raw, unpack)
            with np.load(raw) as file:
                z = {name: file[name] for name in file.files if not name.endswith("_names")}
    except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as .npz: {error}".rstrip(".") + ".") from error
    if "X" in z:
        x = z["X"]
        if x.ndim != 2:
            raise ValueError(f"{path}: X has shape {x.shape}; it must have a row per round.")
        _refuse_no_numbers(path, "X", x)
        x = x * z["scale"] if "scale" in z else x
    elif {"data", "indices", "indptr", "shape"} <= set(z):
        _refuse_no_numbers(path, "data", z["data"])
        parts = z["data"], z["indices"].astype(np.int32), z["indptr"]
        try:
            x: Any = scipy.sparse.csr_array(parts, shape=tuple(z["shape"].tolist()))
            x.check_format()
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path} holds no proper CSR matrix: {error}.") from error
    else:
        raise ValueError(
            f"{path} holds {', '.join(z) or 'nothing'}; it must hold X, or data, indices, indptr "
            "and shape of a CSR matrix."
        )
    if 0 in x.shape:
        raise ValueError(f"{path} has no {'columns' if x.shape[0] else 'rows'}.")
    y = z.get("y")
    if y is not None and (y.shape[1:] == (1,) or y.ndim not in (1, 2) or len(y) != x.shape[0]):
        raise ValueError(f"{path}: y has shape {y.shape}, there are {x.shape[0]} rows.")
    train = None if "n_train" not in z else int(z["n_train"])
    if train is not None and not 0 < train <= x.shape[0]:
        raise ValueError(f"{path}: n_train is {train}, there are {x.shape[0]} rows.")
    return Rows(x, y, train, _group(path, z, x.shape[0]))


def _group(path: Path, z: dict[str, np.ndarray], rows: int) -> np.ndarray | None:
    """The number of the group of each row; None if the file has no groups."""
    if "offsets" in z:
        lengths = np.diff(z["offsets"])
        if z["offsets"].ndim != 1 or np.any(lengths <= 0) or lengths.sum() != rows:
            raise ValueError(f"{path}: offsets must rise from 0 to {rows}, the number of rows.")
        return np.repeat(np.arange(len(lengths)), lengths)
    group = z.get("qid")
    if group is not None and group.shape != (rows,):
        raise ValueError(f"{path}: qid has shape {group.shape}, there are {rows} rows.")
    return group


def _refuse_no_numbers(path: Path, name: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path}: {name} holds {array.dtype}; it must hold numbers.")
