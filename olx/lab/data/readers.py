"""Files as features and labels; what cannot be read is refused by row and column, from 0 on."""

import csv
import gzip
import hashlib
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

SUFFIXES = (".npz", ".csv", ".svm", ".libsvm", ".svmlight", ".txt", ".t", ".bz2", ".gz")


class Table(NamedTuple):
    x: Any  # an array or a SciPy sparse one
    y: np.ndarray | None
    train: int | None = None


def read_file(path: Path, target: str | int | None = None, sha256: str | None = None) -> Table:
    """A file of rows: .npz, .csv, and anything else as svmlight.

    target: the column of the labels of a CSV file, by name or number; the last one if None.
    sha256: what the file must hash to.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    if sha256 is not None and (seen := digest(path)) != sha256:
        raise ValueError(
            f"{path} has the sha256 {seen}, expected {sha256}: it is damaged or another file."
        )
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return read_npz(path)
    return read_csv(path, target) if suffix == ".csv" else read_svmlight(path)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_npz(path: Path) -> Table:
    """`X`, or a CSR matrix as `data`, `indices`, `indptr`, `shape`; `y`, `n_train`, `scale`."""
    try:
        with path.open("rb") as raw, np.load(raw) as file:
            z = {name: file[name] for name in file.files if not name.endswith("_names")}
    except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as .npz: {error}".rstrip(".") + ".") from error
    if "X" in z:
        x = z["X"]
        if x.ndim != 2:
            raise ValueError(f"{path}: X has shape {x.shape}; it must have a row per round.")
        x = x * z["scale"] if "scale" in z else x
    elif {"data", "indices", "indptr", "shape"} <= set(z):
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
    y = z.get("y")
    if y is not None and y.shape != (x.shape[0],):
        raise ValueError(f"{path}: y has shape {y.shape}, there are {x.shape[0]} rows.")
    train = z.get("n_train")
    return Table(x, y, None if train is None else int(train))


def read_csv(path: Path, target: str | int | None) -> Table:
    """Numbers with commas, a first row without any number gives the names of the columns."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = [line for line in csv.reader(file) if line]
    header = lines.pop(0) if lines and all(_number(cell) is None for cell in lines[0]) else None
    if not lines:
        raise ValueError(f"{path} holds no rows.")
    width = len(header or lines[0])
    for row, line in enumerate(lines):
        if len(line) != width:
            raise ValueError(
                f"{path}: row {row} has {len(line)} columns, "
                f"{'the header' if header else 'row 0'} has {width}."
            )
    column = _column(path, target, header, width)
    labels = [line.pop(column) for line in lines]
    try:
        x = np.array(lines, dtype=float)
    except ValueError:
        raise _not_a_number(path, lines, column) from None
    numbers = [_number(label) for label in labels]
    return Table(x, np.array(labels if None in numbers else numbers))


def read_svmlight(path: Path) -> Table:
    """`label index:value index:value ...`, one row a line, plain, .gz or .bz2."""
    from sklearn.datasets import load_svmlight_file

    try:
        found: Any = load_svmlight_file(str(path))
    except (ValueError, OSError, UnicodeDecodeError) as error:
        raise _bad_line(path) or ValueError(f"{path} cannot be read: {error}.") from error
    if found[0].shape[0] == 0:
        raise ValueError(f"{path} holds no rows.")
    return Table(scipy.sparse.csr_array(found[0]), found[1])


def _column(path: Path, target: str | int | None, header: list[str] | None, width: int) -> int:
    if target is None:
        return width - 1
    if isinstance(target, int):
        if not -width <= target < width:
            raise ValueError(f"{path} has {width} columns; there is no column {target}.")
        return target % width
    if header is None or target not in header:
        raise ValueError(
            f"{path} has no column {target!r}"
            + (f"; it has {', '.join(header)}." if header else ", for it has no header.")
        )
    return header.index(target)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _not_a_number(path: Path, lines: list[list[str]], target: int) -> ValueError:
    row, column = next(
        (row, column)
        for row, line in enumerate(lines)
        for column, cell in enumerate(line)
        if _number(cell) is None
    )
    cell = lines[row][column]
    where = f"row {row}, column {column + (column >= target)}"
    if not cell.strip():
        return ValueError(f"{path} has an empty cell at {where}; fill it in or drop the row.")
    return ValueError(f"{path} holds {cell!r} at {where}; encode it as a number.")


def _bad_line(path: Path) -> ValueError | None:
    """The first line that is not of the format, if one is found."""
    if path.suffix == ".bz2":
        return None
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", errors="replace") as file:
        for row, line in enumerate(file):
            label, *pairs = line.split("#")[0].split() or ["0"]
            if _number(label) is None:
                return ValueError(f"{path}: row {row} has the label {label!r}; give a number.")
            last = -1
            for column, pair in enumerate(pairs):
                index, colon, value = pair.partition(":")
                if not (colon and index.isdigit() and _number(value) is not None):
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
