"""A folder for one run at a time."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def held(owner: str, folder: Path) -> Iterator[None]:
    """Keep other runs out of `folder`; the system lets go of it when the process ends, however."""
    try:
        import fcntl
    except ImportError as error:
        raise ImportError(
            f"{owner}: a checkpoint needs a system with file locks, such as Linux or macOS."
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a")
    except OSError as error:
        raise OSError(
            f"{owner}: the checkpoint cannot be kept in {folder} ({error.strerror}). Give another "
            "directory."
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"{owner}: another run is using the checkpoint in {folder}. Wait until it ends, or "
                "give another directory."
            ) from None
        yield
