"""Read features and labels from files; errors name the row and the column, from 0 on."""

import bz2
import gzip
import hashlib
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from olx.lab.data.csv_table import number, read_csv

SUFFIXES = (".npz", ".csv", ".svm", ".libsvm", ".svmlight", ".txt", ".t", ".bz2", ".gz")


class Table(NamedTuple):
    x: Any  # dense or SciPy sparse
    y: np.ndarray | None
    train: int | None = None
    group: np.ndarray | None = None  # (T,): the group of each row, such as a query or a sequence


def read_file(path: Path, target: str | int | None = None, sha256: str | None = None) -> Table:
    """Read a file of rows: .npz, .csv, and any other name as svmlight.

    target: the column of the labels of a CSV file, by name or number; the last one if None.
    sha256: the expected SHA-256 of the file.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it.")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    if sha256 is not None and (seen := digest(path)) != sha256:
        raise ValueError(
            f"{path} has the sha256 {seen}, expected {sha256}: it is damaged or another file."
        )
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return read_npz(path)
    table = Table(*read_csv(path, target)) if suffix == ".csv" else read_svmlight(path)
    if scipy.sparse.issparse(table.x) and table.x.nnz == 0:
        raise ValueError(f"{path} has labels and no feature.")
    return table


def chosen(
    place: str, table: Table, labels: Sequence[float | str] | None, without: Sequence[int]
) -> Table:
    """The rows with one of `labels`, and all columns except those `without`."""
    x, y, train, group = table
    if labels is not None:
        if y is None:
            raise ValueError(f"{place} holds no labels to choose rows by.")
        for label in labels:
            if label not in y.tolist():
                raise ValueError(f"{place} holds no label {label} to choose rows by.")
        rows = np.isin(y, list(labels))
        x, y, group = x[rows], y[rows], None if group is None else group[rows]
        train = None if train is None else int(rows[:train].sum())
    for column in without:
        if not 0 <= column < x.shape[1]:
            raise ValueError(f"{place} has the columns 0 to {x.shape[1] - 1}; {column} is none.")
    kept = np.setdiff1d(np.arange(x.shape[1]), without)
    return Table(x[:, kept] if len(without) else x, y, train, group)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_npz(path: Path) -> Table:
    """`X`, or a CSR matrix as `data`, `indices`, `indptr`, `shape`; `y`, `n_train`, `scale`. For
    rows that belong together: `qid`, a number per row, or `offsets`, where each sequence begins.

    `y` has one label per row, or a row of 0 and 1 with a column per label."""
    try:
        with path.open("rb") as raw, np.load(raw) as file:
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
    return Table(x, y, train, _group(path, z, x.shape[0]))


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


def read_svmlight(path: Path) -> Table:
    """Read lines `label index:value index:value ...`, one row per line; plain, .gz or .bz2."""
    from sklearn.datasets import load_svmlight_file

    try:
        found: Any = load_svmlight_file(str(path))
    except OverflowError as error:
        raise _large_index(path) from error
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    except ValueError as error:
        raise _bad_line(path) or ValueError(f"{path} cannot be read: {error}.") from error
    if found[0].shape[0] == 0:
        raise ValueError(f"{path} holds no rows.")
    return Table(scipy.sparse.csr_array(found[0]), found[1])


def _refuse_no_numbers(path: Path, name: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path}: {name} holds {array.dtype}; it must hold numbers.")


def _large_index(path: Path) -> ValueError:
    with _opened(path) as file:
        for row, line in enumerate(file):
            for pair in line.split("#")[0].split()[1:]:
                index = pair.partition(":")[0]
                if index.isdigit() and int(index) > np.iinfo(np.int32).max:
                    return ValueError(f"{path}: row {row} has index {index}; it is too large.")
    return ValueError(f"{path} holds an index that is too large.")


def _opened(path: Path) -> Any:
    kinds: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    return kinds.get(path.suffix, open)(path, "rt", errors="replace")


def _bad_line(path: Path) -> ValueError | None:
    """The error of the first line that breaks the format, if there is one."""
    with _opened(path) as file:
        for row, line in enumerate(file):
            label, *pairs = line.split("#")[0].split() or ["0"]
            if number(label) is None:
                return ValueError(f"{path}: row {row} has the label {label!r}; give a number.")
            last = -1
            for column, pair in enumerate(pairs):
                index, colon, value = pair.partition(":")
                if not (colon and index.isdigit() and number(value) is not None):
                    return ValueError(
                        f"{path} holds {pair!r} at row {row}, entry {column}; it must be "
                        "index:value."
                    )
                if int(index) <= last:
                    return ValueError(
                        f"{path}: row {row} has index {index} after {last}; they must rise."
                    )
                last = int(index)
    return None
