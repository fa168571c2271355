"""Download files into the cache; they are checked at each use."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from olx.lab.data.readers import Rows, digest
from olx.lab.tasks.task import TASKS

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"


def fetch(address: str, sha256: str | None, folder: Path) -> Path:
    """The file at `address`, downloaded once; refused if its SHA-256 is not `sha256`."""
    import pooch

    known = None if sha256 is None else f"sha256:{sha256}"
    name = address.rsplit("/", 1)[-1] or "download"
    pooch.get_logger().setLevel("ERROR")
    try:
        path = Path(pooch.retrieve(address, known, fname=name, path=folder / "downloads"))
    except ValueError as error:
        raise ValueError(
            f"{address}: what comes from there does not have the sha256 {sha256}; it was changed "
            "or damaged on the way."
        ) from error
    except OSError as error:
        raise OSError(f"{address} cannot be downloaded: {_reason(error)}.") from error
    if sha256 is None:
        raise ValueError(
            f"{address}: give the expected sha256; this file has sha256 = {digest(path)!r}."
        )
    return path


def libsvm_address(name: str, task: str | None) -> str:
    folders = [task.name for task in TASKS.values() if task.in_libsvm]
    if task not in folders:
        *some, last = folders
        raise ValueError(
            f"libsvm:{name}: the collection is sorted by task; give {', '.join(some)} or {last}."
        )
    return f"{LIBSVM}/{task}/{name}"


def from_openml(name: str, folder: Path) -> Rows:
    """Load a set of OpenML by name or number; features must be numbers, labels may be words."""
    from sklearn.datasets import fetch_openml

    which: dict[str, Any] = {"data_id": int(name)} if name.isdigit() else {"name": name}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # scikit-learn retries, then raises
            found: Any = fetch_openml(
                **which, data_home=str(folder / "openml"), as_frame=False, parser="liac-arff"
            )
    except (ValueError, OSError) as error:
        raise ValueError(f"openml:{name} cannot be loaded: {_reason(error)}.") from error
    x, y = found.data, np.asarray(found.target)
    if x.dtype.kind == "O":
        raise ValueError(f"openml:{name} has features that are not numbers; encode them first.")
    try:
        y = y.astype(float)
    except ValueError:
        y = y.astype(str)
    return Rows(x, y)


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:400].rstrip(".")
