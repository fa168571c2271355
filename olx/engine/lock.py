"""A lock on a folder, so that only one run at a time uses it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def held(owner: str, folder: Path, what: str = "checkpoint") -> Iterator[None]:
    """Lock `folder` against other runs; the system frees the lock when the process ends.

    what: the content of the folder, for messages.
    """
    try:
        import fcntl
    except ImportError as error:
        raise ImportError(
            f"{owner}: a {what} needs a system with file locks, such as Linux or macOS."
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a")
    except OSError as error:
        raise OSError(
            f"{owner}: the {what} cannot be kept in {folder} ({error.strerror}). Give another "
            "directory."
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"{owner}: another run is using the {what} in {folder}. Wait until it ends, or "
                "give another directory."
            ) from None
        yield
