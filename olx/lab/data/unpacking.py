"""Compressed files: how large they may become.

A few kilobytes can unpack to more than the memory holds. So a file may become 64 MB, 100 times its
own size up to 8 GB, or 4 times its size, whichever is most; the key `unpack` of a data set, in
megabytes, sets another limit. Streams are counted while they are read; .npz and Parquet say their
sizes before.
"""

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_MB = 10**6
_PIECE = 1 << 20
_SMALL, _RATIO, _LARGE, _USUAL = 64 * _MB, 100, 8000 * _MB, 4


def pieces(path: Path, unpack: float | None) -> Iterator[bytes]:
    """The bytes of a compressed file, until they are too many."""
    seen, limit = 0, limit_of(path, unpack)
    with pa.input_stream(str(path), compression=COMPRESSED[path.suffix.lower()]) as file:
        while piece := file.read(_PIECE):
            seen += len(piece)
            if seen > limit:
                raise _too_large(path, "more", limit, 2 * limit)
            yield piece


def limit_of(path: Path, unpack: float | None) -> int:
    """How many bytes the file may become."""
    if unpack is not None:
        return int(unpack * _MB)
    size = os.path.getsize(path)
    return max(_SMALL, min(_RATIO * size, _LARGE), _USUAL * size)


def check_size(path: Path, size: int, unpack: float | None) -> None:
    """Refuse a file that says that it becomes `size` bytes, if these are too many."""
    if size > (limit := limit_of(path, unpack)):
        raise _too_large(path, f"{size / _MB:,.0f} MB", limit, size)


def check_npz(path: Path, file: IO[bytes], unpack: float | None) -> None:
    """Refuse an .npz file that becomes too large; no member gives more than it says."""
    with zipfile.ZipFile(file) as archive:
        check_size(path, sum(member.file_size for member in archive.infolist()), unpack)
    file.seek(0)


def _too_large(path: Path, becomes: str, limit: int, enough: int) -> OSError:
    return OSError(
        f"it has {os.path.getsize(path) / _MB:,.2g} MB and unpacks to {becomes}, at most "
        f"{limit / _MB:,.0f} MB are allowed; if you trust it, give unpack = "
        f"{-(-enough // _MB)}, in megabytes, or unpack it first"
    )
