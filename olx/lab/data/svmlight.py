"""Read the svmlight (LIBSVM) format; errors name the row, from 0 on."""

import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from olx.lab.data.csv_guesses import number
from olx.lab.data.unpacking import COMPRESSED, pieces

SVMLIGHT = (".svm", ".libsvm", ".svmlight", ".txt", ".t")


def read_svmlight(path: Path, unpack: float | None = None) -> tuple[Any, np.ndarray]:
    """Read lines `label index:value index:value ...`, one row per line; plain or compressed."""
    try:
        if path.suffix.lower() in COMPRESSED:
            for _ in pieces(path, unpack):
                pass  # to count them takes far less time than to read the rows
        from sklearn.datasets import load_svmlight_file

        found: Any = load_svmlight_file(_bytes(path))
    except OverflowError as error:
        raise _large_index(path) from error
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    except ValueError as error:
        raise _bad_line(path) or ValueError(f"{path} cannot be read: {error}.") from error
    if found[0].shape[0] == 0:
        raise ValueError(f"{path} holds no rows.")
    if found[0].nnz == 0:
        raise ValueError(f"{path} has labels and no feature.")
    return scipy.sparse.csr_array(found[0]), found[1]


def _large_index(path: Path) -> ValueError:
    with _opened(path) as file:
        for row, line in enumerate(file):
            for pair in line.split("#")[0].split()[1:]:
                index = pair.partition(":")[0]
                if index.isdigit() and int(index) > np.iinfo(np.int32).max:
                    return ValueError(f"{path}: row {row} has index {index}; it is too large.")
    return ValueError(f"{path} holds an index that is too large.")


def _bytes(path: Path) -> Any:
    """The path, or the bytes of a file in a compression that scikit-learn does not read."""
    if path.suffix.lower() != ".zst":
        return str(path)
    with pa.input_stream(str(path), compression="zstd") as file:
        return io.BytesIO(file.read())


def _opened(path: Path) -> Any:
    if path.suffix.lower() in COMPRESSED:
        file = pa.input_stream(str(path), compression=COMPRESSED[path.suffix.lower()])
        return io.TextIOWrapper(file, errors="replace")  # pyright: ignore[reportArgumentType]
    return path.open(errors="replace")


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
