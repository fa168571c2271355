"""Read the svmlight (LIBSVM) format; errors name the row, from 0 on.

A line is `label index:value index:value ...`. It may name the group of its row, such as a query:
`label qid:3 index:value ...`. It may hold several labels: `label,label index:value ...`.
"""

import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from olx._memory import memory
from olx.lab.data.csv import number
from olx.lab.data.unpacking import COMPRESSED, pieces

SVMLIGHT = (".svm", ".libsvm", ".svmlight", ".txt", ".t")


def read_svmlight(
    path: Path, *, several: bool, first: int | None, unpack: float | None
) -> tuple[scipy.sparse.csr_array, np.ndarray, tuple[int | float, ...], int]:
    """The rows of a file, plain or compressed; their labels; the label of each column of these;
    and the index of the first feature.

    several: whether a row may have several labels; they become rows of 0 and 1, a column per label.
    first: the index of the first feature, 0 or 1, if another file says it.
    """
    from sklearn.datasets import load_svmlight_file
    from sklearn.preprocessing import MultiLabelBinarizer

    try:
        if path.suffix.lower() in COMPRESSED:
            for _ in pieces(path, unpack):
                pass  # to count them takes far less time than to read the rows
        source: Any = str(path)
        if path.suffix.lower() == ".zst":  # scikit-learn does not read it
            with pa.input_stream(source, compression="zstd") as file:
                source = io.BytesIO(file.read())
        read: Any = load_svmlight_file  # its types allow no `zero_based=True`
        x, y = read(source, multilabel=several, zero_based=True)
    except OverflowError as error:
        raise _large_index(path) from error
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    except ValueError as error:
        said = _bad_line(path, several) or f"{path} cannot be read: {error}."
        raise ValueError(said) from error
    if x.shape[0] == 0:
        raise ValueError(f"{path} holds no rows.")
    if x.nnz == 0:
        raise ValueError(f"{path} has labels and no feature.")
    least = int(x.indices.min() > 0)
    if first is None:
        first = least
    elif first > least:
        raise ValueError(f"{path} has the index 0; the rows of the data set begin with index 1.")
    shape = x.shape[0], x.shape[1] - first
    x = scipy.sparse.csr_array((x.data, x.indices - first, x.indptr), shape=shape)
    if not several:
        return x, y, (), first
    kinds = len({label for labels in y for label in labels})
    if 8 * len(y) * kinds > memory() // 8:
        raise ValueError(
            f"{path} has {kinds} labels in {len(y)} rows, a table of "
            f"{8 * len(y) * kinds / 1e9:,.3g} GB; give fewer rows, or fewer labels."
        )
    table = MultiLabelBinarizer()
    y = np.asarray(table.fit_transform(y))
    return x, y, tuple(int(k) if k.is_integer() else k for k in table.classes_.tolist()), first


def query_ids(path: Path) -> np.ndarray | None:
    """The qid of each row; None if no row has one. scikit-learn takes quadratic time for these."""
    found: list[tuple[int, str]] = []
    for row, entries in _lines(path):
        ids = [entry[4:] for entry in entries[:2] if entry.startswith("qid:")]
        found.append((row, ids[0] if ids else ""))
    bare = [row for row, qid in found if not qid]
    for row, qid in found:
        if qid and not (qid.lstrip("-").isdecimal() and len(qid) < 19):
            raise ValueError(f"{path}: row {row} has the qid {qid[:20]!r}; give a whole number.")
    if bare and len(bare) < len(found):
        raise ValueError(f"{path}: row {bare[0]} has no qid, others have one.")
    return None if bare else np.array([int(qid) for _, qid in found])


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The entries of each line of an svmlight file that has some, with the number of the line."""
    packed = COMPRESSED.get(path.suffix.lower())
    with pa.input_stream(str(path), compression=packed) as file:
        text = io.TextIOWrapper(file, errors="replace")  # pyright: ignore[reportArgumentType]
        for row, line in enumerate(text):
            if entries := line.split("#")[0].split():
                yield row, entries


def _large_index(path: Path) -> ValueError:
    for row, entries in _lines(path):
        for pair in entries[1:]:
            index = pair.partition(":")[0]
            if index.isdigit() and int(index) > np.iinfo(np.int32).max:
                return ValueError(f"{path}: row {row} has index {index}; it is too large.")
    return ValueError(f"{path} holds an index that is too large.")


def _bad_line(path: Path, several: bool) -> str | None:
    """What breaks the format in the first line that does, if there is one."""
    for row, (label, *pairs) in _lines(path):
        if several and ":" in label:
            label, pairs = "0", [label, *pairs]
        labels = [number(each) for each in label.split(",")]
        if None in labels:
            return f"{path}: row {row} has the label {label!r}; give a number."
        if len(labels) > 1 and not several:
            return (
                f"{path}: row {row} has the labels {label}; several per row need "
                "task = 'multilabel'."
            )
        last = -1
        for column, pair in enumerate(pairs):
            index, colon, value = pair.partition(":")
            if column == 0 and index == "qid" and value.lstrip("-").isdigit():
                continue
            if not (colon and index.isdigit() and number(value) is not None):
                return (
                    f"{path} holds {pair!r} at row {row}, entry {column}; it must be index:value."
                )
            if int(index) <= last:
                return f"{path}: row {row} has index {index} after {last}; they must rise."
            last = int(index)
    return None
