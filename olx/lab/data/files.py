"""Read features and labels from files; errors name the row and the column, from 0 on.

.csv, .tsv, .parquet, .arrow and others    tables: columns with names or numbers
.npz                                       arrays
.svm, .libsvm, .txt and any other name     the svmlight format
"""

import hashlib
import re
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse

from olx._refusal import RefusedValue, own_name
from olx.lab.config import nearest
from olx.lab.data.column_notes import Note, note_of
from olx.lab.data.csv import Frame, read_csv, refuse_twins
from olx.lab.data.svmlight import SVMLIGHT, query_ids, read_svmlight
from olx.lab.data.unpacking import COMPRESSED, check_npz, check_size
from olx.streams.cells import Level, cells_of, is_number, numbers_of, refuse_kind
from olx.streams.columns import Columns, features_of, narwhals_frame
from olx.streams.tables import Fill, fit_columns

if TYPE_CHECKING:
    from narwhals.stable.v2 import DataFrame, Series

TEXT = (".csv", ".tsv")
ARROW = (".arrow", ".feather", ".ipc")
PARQUET = (".parquet", ".pq")
SUFFIXES = (".npz", *TEXT, *ARROW, *PARQUET, *SVMLIGHT, *COMPRESSED)

Matrix = Any  # an array, or a CSR array of SciPy, which has no types


class Reading(NamedTuple):
    """How a file is read; the first fields are arguments of `olx.lab.data.load`."""

    target: str | int | None = None
    group: str | int | None = None
    id: str | int | None = None
    without: Sequence[int | str] = ()
    categories: Sequence[str] = ()
    fill: Fill = None
    dates: str | None = None
    encoding: str | None = None
    separator: str | None = None
    header: bool | None = None
    unpack: float | None = None
    labelled: bool = True  # whether the last column of a table holds labels if `target` is None
    several: bool = False  # whether a row of an svmlight file has several labels
    grouped: bool = False  # whether the qid of an svmlight file are read
    first: int | None = None  # the index of its first feature, 0 or 1; found if None


class Rows(NamedTuple):
    """What a file holds, before it is scaled."""

    x: Matrix
    y: np.ndarray | None
    train: int | None = None
    group: np.ndarray | None = None  # (T,): the group of each row, such as a query or a sequence
    columns: Columns | None = None  # how the columns of a table became features
    target: str = ""  # the name of the column of labels, if it has one
    labels: tuple[Level, ...] = ()  # those of the columns of `y`, if they are known
    first: int | None = None  # the index of the first feature in an svmlight file
    id: str = ""  # the name of a column that says which row is which
    notes: tuple[Note, ...] = ()  # how each column of a table was read


def read_file(path: Path, reading: Reading, sha256: str | None = None) -> Rows:
    """Read a file of rows. `sha256` is the expected SHA-256 of the file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it.")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    if sha256 is not None and (seen := file_digest(path)) != sha256:
        raise ValueError(
            f"{path} has the sha256 {seen}, expected {sha256}: it is damaged or another file."
        )
    try:
        if path.suffix.lower() == ".npz":
            return _read_npz(path, reading.unpack)
        if not is_table(path):
            x, y, labels, first = read_svmlight(
                path, several=reading.several, first=reading.first, unpack=reading.unpack
            )
            group = query_ids(path) if reading.grouped else None
            return Rows(x, y, group=group, labels=labels, first=first)
        words = [*reading.categories, *([reading.id] if isinstance(reading.id, str) else [])]
        return frame_rows(str(path), read_frame(path, reading, words), reading)
    except MemoryError as error:
        raise ValueError(
            f"{path} does not fit into memory; give fewer rows, or sparse ones."
        ) from error


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def rows_with_labels(place: str, rows: Rows, labels: Sequence[float | str] | None) -> Rows:
    """The rows with one of `labels`; all of them if None."""
    x, y, train, group = rows[:4]
    if labels is None:
        return rows
    if y is None:
        raise ValueError(f"{place} holds no labels to choose rows by.")
    for label in labels:
        if label not in y.tolist():
            raise ValueError(f"{place} holds no label {label} to choose rows by.")
    kept = np.isin(y, list(labels))
    train = None if train is None else int(kept[:train].sum())
    group = None if group is None else group[kept]
    return rows._replace(x=x[kept], y=y[kept], train=train, group=group)


def other_columns(place: str, x: Matrix, without: Sequence[int | str]) -> Matrix:
    """The columns of `x`, except those with the numbers `without`."""
    for column in without:
        if isinstance(column, str):
            raise ValueError(f"{place}: its columns have no names such as {column!r}, but numbers.")
        if not 0 <= column < x.shape[1]:
            raise ValueError(f"{place} has the columns 0 to {x.shape[1] - 1}; {column} is none.")
    return x[:, np.setdiff1d(np.arange(x.shape[1]), without)] if len(without) else x


def is_table(path: Path) -> bool:
    """Whether the name of a file says that it has columns."""
    return _kind(path) in TEXT + ARROW + PARQUET


def _kind(path: Path) -> str:
    """The suffix that says the format, without that of the compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED and len(suffixes) > 1:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def read_frame(path: Path, reading: Reading, words: Collection[str] = ()) -> Frame:
    """The table of a file, as it is there.

    words: columns of a CSV file that are read as words even if they hold numbers.
    """
    if _kind(path) in TEXT:
        return read_csv(
            path,
            encoding=reading.encoding,
            separator=reading.separator,
            header=reading.header,
            words=words,
            labels=-1 if reading.target is None else reading.target,
            unpack=reading.unpack,
        )
    try:
        table = _parquet(path, reading.unpack) if _kind(path) in PARQUET else _arrow(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} cannot be read: {str(error).rstrip('.')}.") from error
    refuse_twins(path, table.column_names)
    if len(table) == 0:
        raise ValueError(f"{path} holds no rows.")
    index = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
    return Frame(table.drop_columns(index), True, {})


def _parquet(path: Path, unpack: float | None) -> pa.Table:
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(path)
    pages = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    check_size(path, max(pages, 8 * about.num_rows * about.num_columns), unpack)
    return pyarrow.parquet.read_table(path)


def _arrow(path: Path) -> pa.Table:
    """The table of an Arrow file, or of an Arrow stream."""
    import pyarrow.feather

    with path.open("rb") as file:
        start = file.read(6)
    if start == b"ARROW1" or start[:4] == b"FEA1":
        return pyarrow.feather.read_table(path)
    with pa.input_stream(str(path)) as stream:
        return pa.ipc.open_stream(stream).read_all()


def frame_rows(place: str, frame: Frame, reading: Reading) -> Rows:
    """The features, the labels and the groups of a table. `place` is what messages call it."""
    with own_name(place):
        table, named = narwhals_frame(frame.table), frame.named
        names = list(table.columns)
        target = group = known = None
        if reading.labelled or reading.target is not None:
            target = names[_column(place, reading.target, names, named)]
        if reading.group is not None:
            group = names[_column(place, reading.group, names, named)]
        if group is not None and group == target:
            raise ValueError(f"{place}: the column {group!r} is both the labels and the group.")
        if reading.id is not None:
            known = names[_column(place, reading.id, names, named)]
        if known is not None and known in (target, group):
            raise ValueError(f"{place}: the column {known!r} is the id, and labels or group too.")
        names = [name for name in names if name not in (target, group, known)]
        if not names:
            raise ValueError(f"{place} has one column, the labels; there must be a feature.")
        for each in reading.without:
            if isinstance(each, int) and not 0 <= each < len(names):
                raise ValueError(f"{place} has the columns 0 to {len(names) - 1}; {each} is none.")
            if isinstance(each, str) and each not in names:
                hint = nearest(each, names)
                raise ValueError(f"{place} has no column {each!r} to leave out; {hint}")
        left = {names[each] if isinstance(each, int) else each for each in reading.without}
        names = [name for name in names if name not in left]
        _refuse_counter(place, table, names)
        used = {*names, target, group}
        problems = {name: said for name, said in frame.problems.items() if name in used}
        y = None
        if target is not None and target not in problems:
            try:
                y = labels_of(table[target])
            except RefusedValue as error:
                problems[target] = str(error)
        found, values = fit_columns(
            table, names, reading.categories, reading.fill, reading.dates, problems
        )
        columns = Columns(found, None, named)
        ids = None if group is None else _group_numbers(table[group])
        apart = {target: "labels", group: "group", known: "id, no feature"}
        notes = tuple(Note(name, role) for name, role in apart.items() if name is not None)
        notes += tuple(
            note_of(table[column.name], column, each)
            for column, each in zip(found, values, strict=True)
        )
        notes += tuple(Note(str(name), "left out") for name in sorted(left))
        return Rows(
            features_of(found, values), y, group=ids, columns=columns, target=target or "",
            id=known or "", notes=notes,
        )  # fmt: skip


def labels_of(series: "Series", what: str = "label") -> np.ndarray:
    """The labels of a column: numbers, Booleans or words."""
    import narwhals.stable.v2 as narwhals

    refuse_kind(series)
    cells = numbers_of(series) if is_number(series) else cells_of(series)
    missing = np.isnan(cells) if is_number(series) else np.array([cell is None for cell in cells])
    if np.any(missing):
        raise RefusedValue(
            f"the {what} in column {series.name!r} is missing in {int(missing.sum())} of "
            f"{len(missing)} rows, the first is row {int(missing.argmax())}; drop these rows."
        )
    bits = is_number(series) and series.dtype in (narwhals.Boolean, narwhals.Object)
    return np.asarray(cells) == 1 if bits else np.asarray(cells)


def _group_numbers(series: "Series") -> np.ndarray:
    """The number of the group of each row: 0, 1, 2, ... in the order in which they are seen."""
    place: dict[object, int] = {}
    return np.array([place.setdefault(k, len(place)) for k in labels_of(series, "group").tolist()])


def _column(place: str, asked: str | int | None, names: list[str], named: bool) -> int:
    width = len(names)
    if asked is None:
        return width - 1
    if isinstance(asked, int):
        if not -width <= asked < width:
            raise ValueError(f"{place} has {width} columns; there is no column {asked}.")
        return asked % width
    if not named:
        raise ValueError(f"{place} has no column {asked!r}, for it has no header.")
    if asked not in names:
        hint = nearest(asked, names, f"it has {', '.join(names)}.")
        raise ValueError(f"{place} has no column {asked!r}; {hint}")
    return names.index(asked)


def _refuse_counter(place: str, table: "DataFrame", names: list[str]) -> None:
    """Refuse a first column without a name that counts the rows: the index of pandas."""
    if names and names[0] in ("", "Unnamed: 0") and is_number(table[names[0]]):
        numbers = numbers_of(table[names[0]])
        if np.array_equal(numbers, np.arange(len(numbers))):
            raise ValueError(
                f"{place}: its first column has no name and counts the rows; leave it out: without "
                "= [0], or save the table without its index."
            )


def _read_npz(path: Path, unpack: float | None) -> Rows:
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
    name = "X" if "X" in z else "data"
    if name in z and z[name].dtype.kind not in "fiub":
        raise ValueError(f"{path}: {name} holds {z[name].dtype}; it must hold numbers.")
    if "X" in z:
        x: Matrix = z["X"]
        if x.ndim != 2:
            raise ValueError(f"{path}: X has shape {x.shape}; it must have a row per round.")
        x = x * z["scale"] if "scale" in z else x
    elif {"data", "indices", "indptr", "shape"} <= set(z):
        parts = z["data"], z["indices"].astype(np.int32), z["indptr"]
        try:
            x = scipy.sparse.csr_array(parts, shape=tuple(z["shape"].tolist()))
            x.check_format()
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path} holds no proper CSR matrix: {error}.") from error
    else:
        raise ValueError(
            f"{path} holds {', '.join(z) or 'nothing'}; it must hold X, or data, indices, indptr "
            "and shape of a CSR matrix."
        )
    count = x.shape[0]
    if 0 in x.shape:
        raise ValueError(f"{path} has no {'columns' if count else 'rows'}.")
    y, group = z.get("y"), z.get("qid")
    if y is not None and (y.shape[1:] == (1,) or y.ndim not in (1, 2) or len(y) != count):
        raise ValueError(f"{path}: y has shape {y.shape}, there are {count} rows.")
    train = None if "n_train" not in z else int(z["n_train"])
    if train is not None and not 0 < train <= count:
        raise ValueError(f"{path}: n_train is {train}, there are {count} rows.")
    if "offsets" in z:
        lengths = np.diff(z["offsets"])
        if z["offsets"].ndim != 1 or np.any(lengths <= 0) or lengths.sum() != count:
            raise ValueError(f"{path}: offsets must rise from 0 to {count}, the number of rows.")
        group = np.repeat(np.arange(len(lengths)), lengths)
    if group is not None and group.shape != (count,):
        raise ValueError(f"{path}: qid has shape {group.shape}, there are {count} rows.")
    return Rows(x, y, train, group)
