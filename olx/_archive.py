"""Files that are there completely or not at all, and arrays in files.

Every file that others read later (a saved learner, a step of a checkpoint, a table of a result) is
written by `replacing`: under a name that no one else can have, in the same folder, then renamed.
Two writers never share a draft, a reader sees the old file or the new one, and a writer that fails
leaves no draft.

Arrays are stored without pickle: the length of a header in 8 bytes, the header in JSON, then the
bytes of the arrays. The header says the dtype and the shape of each. An array that is larger than
the file is refused before there is memory for it.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import reprlib
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import jax.numpy as jnp
import numpy as np

SEAL = hashlib.sha256().digest_size  # bytes
_NUMBER = re.compile(r"[<>]?[a-z]\w*", re.ASCII)  # the name of a dtype
_MOST = 32  # dimensions


class Damaged(Exception):
    """A file does not hold what it should; the text says what."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` once it is complete.

    A link at `path` is replaced, not followed.
    """
    draft = _draft(path)
    try:
        file = draft.open("xb")
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        said = f"{path} cannot be written: {error.strerror or error}; what was there is unchanged"
        raise OSError(*filter(None, (error.errno, said))) from error


@contextlib.contextmanager
def adding_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `path` once it is complete; a `path` that is there stays."""
    draft = _draft(path)
    draft.mkdir(parents=True)
    try:
        yield draft
        try:
            draft.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write(path: Path, parts: Iterable[bytes]) -> None:
    """Replace `path` by a file of these bytes."""
    with replacing(path) as file:
        file.writelines(parts)


def write_text(path: Path, text: str) -> None:
    write(path, [text.encode()])


def write_json(path: Path, content: object) -> None:
    write_text(path, json.dumps(content, indent=1, default=repr))


def remove_drafts(folder: Path) -> None:
    """Remove what killed writers have left; the caller must be the only writer in `folder`."""
    for path in folder.glob("*.draft"):
        if not path.is_dir():
            path.unlink()


def seal_of(parts: Iterable[Any]) -> bytes:
    """The SHA-256 digest of some bytes."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def is_numeric(dtype: np.dtype) -> bool:
    """Whether all entries are numbers or truth values; times and Python objects are not."""
    return dtype.kind == "b" or (jnp.issubdtype(dtype, np.number) and dtype.kind != "m")


def kind_of(array: np.ndarray) -> list[Any]:
    """What a header says of an array: its dtype and its shape."""
    return [str(array.dtype), list(array.shape)]


def packed(header: object, arrays: Iterable[np.ndarray]) -> list[bytes]:
    """A header and arrays as bytes."""
    text = json.dumps(header).encode()
    content = [np.ascontiguousarray(array).tobytes() for array in arrays]
    return [len(text).to_bytes(8, "little"), text, *content]


def header_in(body: memoryview) -> tuple[Any, memoryview]:
    """The header, and the bytes behind it."""
    stop = 8 + int.from_bytes(body[:8], "little")
    if stop > len(body):
        raise Damaged(f"its header has {stop - 8} bytes, more than the file")
    try:
        header = json.loads(
            bytes(body[8:stop]),
            object_pairs_hook=once,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
    except ValueError as error:
        raise Damaged(f"its header cannot be read ({error})") from None
    except RecursionError:
        raise Damaged("its header is nested too deeply") from None
    return header, body[stop:]


def arrays_in(body: memoryview, kinds: object) -> list[np.ndarray]:
    """The arrays of these kinds, which `body` holds one after the other."""
    if not isinstance(kinds, list):
        raise Damaged("its header lists no arrays")
    arrays, start = [], 0
    for i, kind in enumerate(kinds):
        dtype, shape = _checked(i, kind)
        count = math.prod(shape)
        stop = start + count * dtype.itemsize
        if stop > len(body):
            raise Damaged(f"array {i} of shape {reprlib.repr(shape)} is larger than the file")
        try:
            arrays.append(np.frombuffer(body[start:stop], dtype, count).reshape(shape))
        except (ValueError, OverflowError) as error:
            raise Damaged(f"array {i} has the shape {reprlib.repr(shape)} ({error})") from None
        start = stop
    if start != len(body):
        raise Damaged(f"it holds {len(body) - start} bytes more than its arrays")
    return arrays


def _draft(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(8)}.draft")


def _checked(i: int, kind: object) -> tuple[np.dtype, Sequence[int]]:
    match kind:
        case [str(name), list(shape)] if len(shape) <= _MOST:
            if not all(type(size) is int and size >= 0 for size in shape):
                raise Damaged(f"array {i} has the shape {reprlib.repr(shape)}")
            try:
                dtype = jnp.dtype(name) if _NUMBER.fullmatch(name) else None
            except TypeError:
                dtype = None
            if dtype is None or not is_numeric(dtype):
                raise Damaged(
                    f"array {i} has the dtype {reprlib.repr(name)}, which is not one of numbers"
                )
            return dtype, shape
    raise Damaged(f"array {i} has no dtype and shape")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of JSON with these pairs; refuses a name that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_number(text: str) -> Any:
    raise ValueError(f"{text[:20]} is not a whole number")
