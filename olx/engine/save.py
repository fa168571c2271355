"""`save` and `load`: a learner and its state in one file.

The file holds a line with the name and the version of the format, the learner and the state in
words (JSON, see `olx.engine.serialize`), the arrays, and a digest of all of it. It holds no code:
functions are named as `module:name`, and only names of an allow-list are read
(`olx.engine.savable`).
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree

from olx import _archive as archive
from olx import _check as check
from olx.core import Batch, Learner, Run
from olx.engine.game import refuse_tracers
from olx.engine.savable import Unsavable, check_trust
from olx.engine.serialize import decode, encode
from olx.facts import Facts

_FIRST, _VERSION = b"olx learner and state, format ", 1
_FUNCTIONS = ("init_fn", "predict_fn", "update_fn")


class Saved(NamedTuple):
    """What a file holds."""

    learner: Learner
    state: PyTree


def save(path: str | os.PathLike, learner: Learner, state: PyTree) -> None:
    """Write a learner and its state to a file that `olx.load` reads.

    The functions of a learner of your own must live at the top of a module that can be imported;
    the file names them. The file is complete or not there, also if several processes write it: it
    is renamed when it is written.

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
        leaves = jax.tree.leaves((learner, state))
        remedy = "return the state, and save it then"
        refuse_tracers("save", leaves, "writes numbers to a file", remedy)
        words = {"learner": encode(learner, arrays), "state": encode(state, arrays)}
        header = {**words, "arrays": [archive.kind_of(array) for array in arrays]}
    except Unsavable as problem:
        raise TypeError(f"save: {problem}.") from None
    except (RecursionError, SystemError):  # the second where JAX flattens it
        raise TypeError("save: the learner or its state is nested too deeply.") from None
    parts = [_FIRST + b"%d\n" % _VERSION, *archive.packed(header, arrays)]
    archive.write(path, [*parts, archive.seal_of(parts)])


def load(path: str | os.PathLike, trust: tuple[str, ...] | list[str] = ()) -> Saved:
    """Read a learner and its state from a file of `olx.save`.

    To load a file runs no code that the file chooses. It may name functions of the parts of olx
    that make learners, optimizers of optax and some functions of JAX; anything else is refused.

    trust: the names of modules outside olx whose functions the file may name, such as your own. A
        package stands for all modules in it. They are imported, as by `import`.
    """
    trust = check_trust("load", trust)
    place = _path("load", path)
    if place.is_dir():
        raise IsADirectoryError(f"load: {place} is a folder; give the path that `olx.save` wrote.")
    if not place.is_file():
        raise FileNotFoundError(
            f"load: there is no file {place}; give the path that `olx.save` wrote."
        )
    body = _body(place, place.read_bytes())
    try:
        header, rest = archive.header_in(body)
        if not isinstance(header, dict) or tuple(header) != (*Saved._fields, "arrays"):
            raise archive.Damaged("its header is not that of a learner and its state")
        arrays = dict(enumerate(archive.arrays_in(rest, header["arrays"])))
        learner, state = (decode(header[part], arrays, trust) for part in Saved._fields)
        if arrays:
            raise archive.Damaged(f"array {min(arrays)} belongs to nothing")
        _check_learner(learner)
    except Unsavable as problem:
        raise ValueError(f"load: {place}: {problem}.") from None
    except archive.Damaged as problem:
        raise ValueError(f"load: {place}: {problem}; {_AGAIN}.") from None
    except RecursionError:
        raise ValueError(f"load: {place}: it is nested too deeply; {_AGAIN}.") from None
    return Saved(learner, state)


_AGAIN = "`olx.save` wrote no such file: save the learner again"


def _path(owner: str, path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        seen = type(path).__name__
        raise TypeError(f"{owner}: `path` must be the path of a file, got {seen}; it comes first.")
    return Path(path)


def _body(path: Path, whole: bytes) -> memoryview:
    """What is between the first line and the seal; refuses foreign, newer and damaged files."""
    first, _, rest = whole.partition(b"\n")
    version = first.removeprefix(_FIRST)
    if not first.startswith(_FIRST) or not version.isdigit() or len(version) > 9:
        raise ValueError(f"load: {path} is not a file of `olx.save`.")
    if int(version) > _VERSION:
        raise ValueError(
            f"load: {path} has format {int(version)}; this version of olx reads up to {_VERSION}. "
            "Install a newer olx."
        )
    if int(version) < 1:
        raise ValueError(f"load: {path} has format {int(version)}; {_AGAIN}.")
    body = memoryview(whole)[: -archive.SEAL]
    if archive.seal_of([body]) != whole[-archive.SEAL :]:
        raise ValueError(f"load: {path} is truncated or damaged; save it again.")
    return body[len(whole) - len(rest) :]


def _check_learner(learner: Any) -> None:
    """Refuse what is not a learner, before anyone plays it."""
    if not isinstance(learner, Learner):
        raise archive.Damaged(f"its learner is a {type(learner).__name__}")
    parts = {"facts": Facts, "needs": tuple, "theorems": tuple}
    wrong = [name for name in _FUNCTIONS if not callable(getattr(learner, name))]
    wrong += [name for name, kind in parts.items() if not isinstance(getattr(learner, name), kind)]
    if wrong:
        seen = type(getattr(learner, wrong[0])).__name__
        raise archive.Damaged(f"the {wrong[0]} of its learner is a {seen}")
