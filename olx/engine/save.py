"""`save` and `load`: a learner and its state in one file.

The file holds a line with the name and the version of the format, the learner and the state in
words (JSON, see `olx.engine.spelling`), the arrays, and a digest of all of it. It holds no code:
functions are named as `module:name`.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx.core import Batch, Learner, Run
from olx.engine.spelling import Unspeakable, read, spell

_FIRST, _VERSION = b"olx learner and state, format ", 1
_SEAL = 32  # bytes


class Saved(NamedTuple):
    """What a file holds."""

    learner: Learner
    state: PyTree


def save(path: str | os.PathLike, learner: Learner, state: PyTree) -> None:
    """Write a learner and its state to a file that `olx.load` reads.

    The functions of a learner of your own must live at the top of a module that can be imported;
    the file names them. The file is complete or not there: it is renamed when it is written.

    >>> import jax.numpy as jnp, olx, os, tempfile
    >>> learner = olx.linear(olx.ogd(0.1))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.olx")
    >>> olx.save(path, learner, learner.init(jnp.zeros(3)))
    >>> learner, state = olx.load(path)
    >>> olx.predict(learner, state, jnp.ones((2, 3))).tolist()
    [0.0, 0.0]
    """
    path = _path("save", path)
    if isinstance(learner, Batch):
        raise TypeError("save: `learner` is a batch; save one of its learners, as in batch[0].")
    check.instance("save", "learner", learner, Learner)
    if isinstance(state, Run):
        raise TypeError("save: `state` is a Run; give its state, as `run.state`.")
    if path.is_dir():
        raise IsADirectoryError(f"save: {path} is a folder; give the path of a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"save: there is no folder {path.parent}; make it first.")
    arrays: list[np.ndarray] = []
    try:
        words = {"learner": spell(learner, arrays), "state": spell(state, arrays)}
    except Unspeakable as problem:
        raise TypeError(f"save: {problem}.") from None
    kinds = [[str(array.dtype), array.shape] for array in arrays]
    header = json.dumps({**words, "arrays": kinds}).encode()
    parts = [_FIRST + b"%d\n" % _VERSION, len(header).to_bytes(8, "little"), header]
    parts += [np.ascontiguousarray(array).tobytes() for array in arrays]
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("wb") as file:
        file.writelines([*parts, hashlib.sha256(b"".join(parts)).digest()])
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def load(path: str | os.PathLike, trust: tuple[str, ...] | list[str] = ()) -> Saved:
    """Read a learner and its state from a file of `olx.save`.

    trust: the names of modules outside olx whose functions the file may name, such as your own.
    """
    try:
        whole = _path("load", path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"load: there is no file {os.fspath(path)}; give the path that `olx.save` wrote."
        ) from None
    except IsADirectoryError:
        raise IsADirectoryError(
            f"load: {os.fspath(path)} is a folder; give the path that `olx.save` wrote."
        ) from None
    words, arrays = _opened(os.fspath(path), whole)
    try:
        return Saved(*(read(words[part], arrays, tuple(trust)) for part in Saved._fields))
    except Unspeakable as problem:
        raise ValueError(f"load: {os.fspath(path)}: {problem}.") from None


def _path(owner: str, path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        seen = type(path).__name__
        raise TypeError(f"{owner}: `path` must be the path of a file, got {seen}; it comes first.")
    return Path(path)


def _opened(path: str, whole: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The words and the arrays of a file; refuses a foreign, a newer and a damaged one."""
    first, _, rest = whole.partition(b"\n")
    version = first.removeprefix(_FIRST)
    if not first.startswith(_FIRST) or not version.isdigit():
        raise ValueError(f"load: {path} is not a file of `olx.save`.")
    if int(version) > _VERSION:
        raise ValueError(
            f"load: {path} has format {int(version)}; this version of olx reads up to {_VERSION}. "
            "Install a newer olx."
        )
    if hashlib.sha256(whole[:-_SEAL]).digest() != whole[-_SEAL:]:
        raise ValueError(f"load: {path} is truncated or damaged; save it again.")
    start = 8 + int.from_bytes(rest[:8], "little")
    words = json.loads(rest[8:start])
    arrays = []
    for kind, shape in words["arrays"]:
        dtype = jnp.dtype(kind)
        stop = start + dtype.itemsize * int(np.prod(shape))
        arrays.append(np.frombuffer(rest[start:stop], dtype).reshape(shape))
        start = stop
    return words, arrays
