"""A lock on a folder, so that only one run at a time uses it."""

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_PAUSE = 0.1  # seconds


@contextlib.contextmanager
def held(
    owner: str,
    folder: Path,
    what: str = "checkpoint",
    wait: Callable[[str], None] | None = None,
) -> Iterator[bool]:
    """Lock `folder` against other runs; the system frees the lock when the process ends.

    what: the content of the folder, for messages.
    wait: told once who holds the lock, if another run does; then the lock is waited for. None
        refuses.

    It gives whether it waited.
    """
    try:
        import fcntl
    except ImportError as error:
        raise ImportError(
            f"{owner}: a {what} needs a system with file locks, such as Linux or macOS."
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+")
    except OSError as error:
        raise OSError(
            f"{owner}: the {what} cannot be kept in {folder} ({error.strerror}). Give another "
            "directory."
        ) from error
    with file:
        waited = False
        while not _taken(fcntl, file):
            if wait is None:
                raise BlockingIOError(
                    f"{owner}: another run{_holder(file)} is using the {what} in {folder}. Wait "
                    "until it ends, or give another directory."
                )
            if not waited:
                wait(f"another run{_holder(file)} is using the {what} in {folder}")
            waited = True
            time.sleep(_PAUSE)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}")
        file.flush()
        yield waited


def _taken(fcntl: Any, file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(file: Any) -> str:
    file.seek(0)
    name = file.read()
    return f" ({name})" if name else ""
