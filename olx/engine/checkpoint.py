"""Checkpoints: save a run while it plays, and resume it with the same bits.

Each save writes a step: the state, and the outputs since the step before. A description of the run,
the same in every process, is kept beside the steps. A directory of another run, a stream that has
changed and a damaged step are refused. Only one run at a time uses a folder, by a lock; of several
processes each has a folder of its own.

A step ends with its seal: a SHA-256 digest of its content, of the number of rounds in its name and
of the seal of the step before. So a flipped bit, a replaced file and a missing step are all found
before a step is used.
"""

import contextlib
import hashlib
import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _archive as archive
from olx import _check as check
from olx._refusal import (
    RefusedFile,
    RefusedImport,
    RefusedLock,
    RefusedType,
    RefusedValue,
    public,
)
from olx.core import Learner, Loss, Rounds
from olx.engine import tuning
from olx.engine.collector import Collector, Segment
from olx.engine.device import data_of, is_key
from olx.keep import Keep, rounds_kept


@public
def checkpoint(directory: str | os.PathLike, every: int = 64) -> "Checkpoint":
    """Save in `directory` once per `every` chunks, and resume from the last save there.

    After an interruption, repeat the same call: it continues from the last save and ends with the
    same bits as a run without interruption. An iterable stream must then start from its beginning,
    in the same pieces; the rounds that were played before are read again and compared.

    After SIGINT or SIGTERM the run finishes the current chunk, saves and ends.

    If JAX has several processes, each saves in a folder of its own there.
    """
    check.count("every", every)
    if not isinstance(directory, str | os.PathLike):
        raise RefusedType(f"`directory` must be a path, got {type(directory).__name__}.")
    if not os.fspath(directory):
        raise RefusedValue("`directory` is empty; name a folder, as 'saves/first'.")
    return Checkpoint(Path(directory).absolute(), every)


def check_checkpoint(given: object) -> "Checkpoint | None":
    """The checkpoint of this process: each of several has a folder of its own."""
    if given is None:
        return None
    if not isinstance(given, Checkpoint):
        raise RefusedType(
            f"`checkpoint` must be a Checkpoint, got {type(given).__name__}; make one "
            "with `olx.checkpoint(directory)`."
        )
    return Checkpoint(own_folder(given.directory), given.every)


class Checkpoint:
    def __init__(self, directory: Path, every: int):
        self.directory, self.every = directory, every
        self._steps = directory / "steps"
        self._chunks = 0
        self._seal = b""
        self._description: dict[str, str] = {}

    def lock(self) -> contextlib.AbstractContextManager[bool]:
        """Lock the directory against other runs."""
        return lock_folder(self.directory)

    def implementation(self) -> str | None:
        """The name of the implementation that played the saved rounds; None if none is known."""
        try:
            return json.loads((self.directory / "run.json").read_text()).get("implementation")
        except (OSError, ValueError, AttributeError):
            return None  # a damaged description is refused when it is compared

    def restore(
        self, description: dict[str, str], state: PyTree, collector: Collector
    ) -> tuple[PyTree, dict[int, bytes]]:
        """The last saved state, and the digest of the stream after each saved number of rounds.

        `collector` gets the saved outputs.
        """
        self._chunks = 0
        self._description = description
        self._seal = archive.seal_of([json.dumps(description, sort_keys=True).encode()])
        archive.remove_drafts(self._steps)
        there = self._found()
        segments, stream, total = [], {}, None
        for step in there:
            arrays = self._read(step, there)
            parts = {name: _of(name, arrays) for name in ("state", "kept", "total")}
            if arrays["marks"].tobytes() != marks_of(collector.keep, step):
                raise self._of_another(["keep"])
            segments.append(_segment(parts["kept"], collector))
            state, total = _like(parts["state"], state), _sums(parts["total"], collector)
            stream[step] = arrays["stream"].tobytes()
        if segments:
            collector.restore(segments, there[-1], total)
        return state, stream

    def due(self) -> bool:
        """Whether to save after this chunk."""
        self._chunks += 1
        return self._chunks % self.every == 0

    def save(self, state: PyTree, collector: Collector, stream: bytes) -> None:
        """Write one more step, unless no round was played since the last one.

        stream: the digest of the rounds played.
        """
        fresh = collector.segments[collector.saved :]
        if not fresh:
            return
        collector.segments[collector.saved :] = [collector.joined(fresh)]
        if collector.saved == 0:
            archive.write_json(self.directory / "run.json", self._description)
        collector.saved += 1
        trees = {"state": state, "kept": collector.segments[-1], "total": collector.total}
        arrays = {
            f"{name}.{i}": leaf for name, tree in trees.items() for i, leaf in numbered_leaves(tree)
        }
        arrays["stream"] = np.frombuffer(stream, np.uint8)
        marks = marks_of(collector.keep, collector.played)
        arrays["marks"] = np.frombuffer(marks, np.uint8)
        self._seal = write_step(self._steps, collector.played, arrays, self._seal)

    def changed(self, start: int, stop: int) -> ValueError:
        """The error for a stream that is not the one that was played."""
        return RefusedValue(
            f"the stream has changed between rounds {start} and {stop}, which the checkpoint in "
            f"{self.directory} has played already. Give the stream as it was, or another directory."
        )

    def _read(self, step: int, there: list[int]) -> dict[str, np.ndarray]:
        try:
            arrays, self._seal = read_step(self._steps, step, self._seal)
        except (archive.Damaged, OSError):
            earlier = [other for other in there if other < step]
            again = f"to go on from round {earlier[-1]}" if earlier else "to start again"
            raise RefusedValue(
                f"{path_of(self._steps, step)} is damaged, or a step before it is "
                f"missing. Remove it and all later steps {again}, or give another directory."
            ) from None
        return arrays

    def _found(self) -> list[int]:
        """The steps of this run; refuses the steps of another one. No steps means a new run."""
        there = steps_in(self._steps)
        if not there:
            if self._steps.is_dir() and any(path.is_dir() for path in self._steps.iterdir()):
                raise RefusedValue(
                    f"{self._steps} holds folders; a checkpoint of this version of olx "
                    "holds none. Give another directory, or remove this one."
                )
            return []
        path = self.directory / "run.json"
        try:
            other = json.loads(path.read_text())
            assert isinstance(other, dict)
        except (OSError, ValueError, AssertionError):
            raise RefusedValue(
                f"{path}, the description of the saved run, is missing or damaged. Give "
                "another directory, or remove this one."
            ) from None
        mine = self._description
        other.setdefault("implementation", mine["implementation"])  # not in files of version 0.1
        if different := [name for name in mine if other.get(name) != mine[name]]:
            raise self._of_another(different)
        return there

    def _of_another(self, different: list[str]) -> ValueError:
        return RefusedValue(
            f"the checkpoint in {self.directory} is of another run; they differ in "
            f"{', '.join(different)}. Give another directory, or remove this one."
        )


def _of(name: str, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The arrays of a tree, in order."""
    return [array for key, array in arrays.items() if key.startswith(f"{name}.")]


def _like(saved: list[np.ndarray], tree: PyTree) -> PyTree:
    leaves, structure = jax.tree.flatten(tree)
    back = [
        jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
        if is_key(leaf)
        else jnp.array(array)
        for array, leaf in zip(saved, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, back)


def _segment(saved: list[np.ndarray], collector: Collector) -> Segment:
    return jax.tree.unflatten(jax.tree.structure(collector.empty()), saved)


def _sums(saved: list[np.ndarray], collector: Collector) -> Any:
    return jax.tree.unflatten(jax.tree.structure(collector.structure[0]), saved)


def steps_in(folder: Path) -> list[int]:
    """The numbers of rounds after which a step was saved, in order."""
    names = [path.stem for path in folder.glob("*.step")] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdecimal())


def path_of(folder: Path, rounds: int) -> Path:
    return folder / f"{rounds}.step"


def write_step(folder: Path, rounds: int, arrays: dict[str, np.ndarray], before: bytes) -> bytes:
    """Write the step after `rounds` rounds and return its seal; `before` is the seal before."""
    header = [[name, *archive.kind_of(array)] for name, array in arrays.items()]
    parts = archive.packed(header, arrays.values())
    seal = archive.seal_of([before, rounds.to_bytes(8, "little"), *parts])
    folder.mkdir(parents=True, exist_ok=True)
    archive.write(path_of(folder, rounds), [*parts, seal])
    return seal


def read_step(folder: Path, rounds: int, before: bytes) -> tuple[dict[str, np.ndarray], bytes]:
    """The arrays of a step and its seal; raises `Damaged` if the seal does not match."""
    whole = path_of(folder, rounds).read_bytes()
    body, seal = memoryview(whole)[: -archive.SEAL], whole[-archive.SEAL :]
    if archive.seal_of([before, rounds.to_bytes(8, "little"), body]) != seal:
        raise archive.Damaged("it does not match its seal")
    header, rest = archive.header_in(body)
    try:
        names, kinds = [str(name) for name, *_ in header], [kind for _, *kind in header]
    except (TypeError, ValueError):
        raise archive.Damaged("its header is not that of a step") from None
    return dict(zip(names, archive.arrays_in(rest, kinds), strict=True)), seal


def describe(
    learner: Learner, loss: Loss, state: PyTree, first: Rounds, keep: Keep | None, traced: Any
) -> dict[str, str]:
    """A word or a digest for each part of a run.

    first: a piece of the stream; only its dtypes and shapes are used.
    traced: the program; it distinguishes functions of the same name and contains the arrays that
        they close over.
    """
    return {
        "learner": digest(learner),
        "loss": digest(loss),
        "start": digest(state),
        "stream": _named([(leaf.dtype, leaf.shape[1:]) for leaf in jax.tree.leaves(first)]),
        "record": _named(traced.out_info[1]),
        "keep": _named(keep),
        "dtype": str(jnp.zeros(()).dtype),
        "program": _program(traced),
        "jax": f"{jax.__version__} on {jax.default_backend()}",
    }


def marks_of(keep: Keep | None, rounds: int) -> bytes:
    """A digest of which of the first `rounds` rounds are kept."""
    marks = np.zeros(0, int) if keep is None else rounds_kept(keep, 0, rounds)
    return hashlib.sha256(marks.astype(np.int64).tobytes()).digest()


def numbered_leaves(tree: PyTree) -> list[tuple[str, np.ndarray]]:
    """The leaves with their numbers; random keys are converted to their data."""
    return [(str(i), np.asarray(data_of(leaf))) for i, leaf in enumerate(jax.tree.leaves(tree))]


def digest(tree: PyTree) -> str:
    """A digest of the structure and of all numbers."""
    found = hashlib.sha256(_named(jax.tree.structure(tree)).encode())
    for _, leaf in numbered_leaves(tree):
        _update(found, leaf)
    return found.hexdigest()[:16]


def _program(traced: Any) -> str:
    """A digest of both texts: the first names functions on the host, the second shows arrays."""
    text = _named(traced.jaxpr) + traced.lower().as_text()
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _update(digest: Any, array: np.ndarray) -> None:
    digest.update(f"{array.dtype}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())


def _named(thing: object) -> str:
    """`str(thing)` without memory addresses, which differ between processes, and without calls.

    The call that made a record is a label; what is left is the structure as it is without a label.
    """
    alone = re.sub(r"\((\w+), <call>\)", r"(\1,)", str(thing))
    return re.sub(r" at 0x[0-9a-f]+|,? ?<call>,?", "", alone)


@contextlib.contextmanager
def lock_folder(
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
        raise RefusedImport(
            f"a {what} needs a system with file locks, such as Linux or macOS."
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+")
    except OSError as error:
        raise RefusedFile(
            f"the {what} cannot be kept in {folder} ({error.strerror}). Give another directory."
        ) from error
    with file:
        waited = False
        while not _taken(fcntl, file):
            if wait is None:
                raise RefusedLock(
                    f"another run{_holder(file)} is using the {what} in {folder}. Wait "
                    "until it ends, or give another directory."
                )
            if not waited:
                wait(f"another run{_holder(file)} is using the {what} in {folder}")
            waited = True
            time.sleep(tuning.LOCK_SECONDS)
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


def own_folder(folder: Path) -> Path:
    """Where this process saves: each of several has a folder of its own in `folder`.

    Refuses the checkpoint of another number of processes: their parts are others.
    """
    processes = jax.process_count()
    there = {path.name.rpartition("-")[2] for path in folder.glob("process-*-of-*")}
    there |= {"1"} if (folder / "run.json").is_file() else set()
    if others := sorted(there - {str(processes)}):
        raise RefusedValue(
            f"the checkpoint in {folder} is of a run of {others[0]} "
            f"process{'es' * (others[0] != '1')}, this run has {processes}. Start as many, or give "
            "another directory."
        )
    if processes == 1:
        return folder
    return folder / f"process-{jax.process_index()}-of-{processes}"
