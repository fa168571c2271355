"""A file of rows that were learned after a model was saved, so that none of them is lost.

    <digest> [<rounds before>, [<request>, ...]]

A line holds the requests that were made durable together, as JSON; a request is a list of rows. It
is flushed to the disk before anyone is told that the rows are learned. The digest is that of the
rest of the line. A line is written by one call: a process that dies in it leaves a last line
without an end. Nobody was told about that one, and it is cut off. Any other line that does not
match its digest is refused: its rows may be learned, and the state cannot be made without them.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from olx._refusal import RefusedFile

_DIGEST = 32  # characters


class Entry(NamedTuple):
    """Rows that became durable together."""

    rounds: int  # that the model had played before
    requests: list[list[dict[str, Any]]]


class RowsLog:
    """A log that is open for more rows."""

    def __init__(self, path: Path):
        self.path, self._broken = path, ""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._size = os.fstat(self._file).st_size
        sync_folder(path.parent)

    def append(self, entry: Entry) -> None:
        """Write an entry; it is on the disk when this returns.

        After an error nothing more is written: what the disk holds is only known after a restart.
        """
        if self._broken:
            raise RefusedFile(self._broken)
        body = json.dumps(entry, separators=(",", ":")).encode()
        line = _digest(body) + b" " + body + b"\n"
        try:
            if os.write(self._file, line) < len(line):
                raise OSError("the disk took a part of a line")
            os.fsync(self._file)
        except OSError as error:
            self._broken = (
                f"{self.path} cannot be written ({error.strerror or error}), so nothing is learned "
                "until the service is started again."
            )
            os.ftruncate(self._file, self._size)
            raise RefusedFile(self._broken) from error
        self._size += len(line)

    def close(self) -> None:
        os.close(self._file)


def entries(path: Path) -> Iterator[Entry]:
    """The entries of a log; a last line that was never finished is cut off the file."""
    if not path.is_file():
        return
    good = 0
    with path.open("r+b") as file:
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(good)
                os.fsync(file.fileno())
                return
            body = line[_DIGEST + 1 : -1]
            if line[:_DIGEST] != _digest(body):
                raise RefusedFile(
                    f"{path} is damaged in the line at byte {good}, whose rows may be learned; "
                    "restore the file from a backup, or move its folder away to learn again."
                )
            good += len(line)
            yield Entry(*json.loads(body))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_DIGEST].encode()
