"""Checkpoints: save a run while it plays, and resume it with the same bits.

Each save writes a step: the state, and the outputs since the step before. A description of the run
is kept beside the steps. A directory of another run, a stream that has changed and a damaged step
are refused.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _archive as archive
from olx import _check as check
from olx.engine import lock, steps
from olx.engine.collect import Collector, Segment, is_key
from olx.engine.describe import marks_of, numbered
from olx.engine.processes import own_folder


def checkpoint(directory: str | os.PathLike, every: int = 64) -> "Checkpoint":
    """Save in `directory` once per `every` chunks, and resume from the last save there.

    After an interruption, repeat the same call: it continues from the last save and ends with the
    same bits as a run without interruption. An iterable stream must then start from its beginning,
    in the same pieces; the rounds that were played before are read again and compared.

    After SIGINT or SIGTERM the run finishes the current chunk, saves and ends.

    If JAX has several processes, each saves in a folder of its own there.
    """
    check.count("checkpoint", "every", every)
    if not isinstance(directory, str | os.PathLike):
        raise TypeError(f"checkpoint: `directory` must be a path, got {type(directory).__name__}.")
    if not os.fspath(directory):
        raise ValueError("checkpoint: `directory` is empty; name a folder, as 'saves/first'.")
    return Checkpoint(Path(directory).absolute(), every)


def check_checkpoint(owner: str, given: Any) -> None:
    if given is not None and not isinstance(given, Checkpoint):
        raise TypeError(
            f"{owner}: `checkpoint` must be a Checkpoint, got {type(given).__name__}; make one "
            "with `olx.checkpoint(directory)`."
        )


class Checkpoint:
    def __init__(self, directory: Path, every: int):
        self.directory, self.every = directory, every
        self._steps = directory / "steps"
        self._chunks = 0
        self._seal = b""
        self._description: dict[str, str] = {}

    def of_process(self, owner: str) -> "Checkpoint":
        """The checkpoint of this process: each of several has a folder of its own."""
        return Checkpoint(own_folder(owner, self.directory), self.every)

    def held(self, owner: str) -> contextlib.AbstractContextManager[bool]:
        """Lock the directory against other runs."""
        return lock.held(owner, self.directory)

    def restore(
        self, owner: str, description: dict[str, str], state: PyTree, collector: Collector
    ) -> tuple[PyTree, dict[int, bytes]]:
        """The last saved state, and the digest of the stream after each saved number of rounds.

        `collector` gets the saved outputs.
        """
        self._chunks = 0
        self._description = description
        self._seal = archive.seal_of([json.dumps(description, sort_keys=True).encode()])
        archive.remove_drafts(self._steps)
        there = self._found(owner)
        segments, stream, total = [], {}, None
        for step in there:
            arrays = self._read(owner, step, there)
            parts = {name: _of(name, arrays) for name in ("state", "kept", "total")}
            if arrays["marks"].tobytes() != marks_of(collector.keep, step):
                raise self._of_another(owner, ["keep"])
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
        arrays = {f"{name}.{i}": leaf for name, tree in trees.items() for i, leaf in numbered(tree)}
        arrays["stream"] = np.frombuffer(stream, np.uint8)
        marks = marks_of(collector.keep, collector.played)
        arrays["marks"] = np.frombuffer(marks, np.uint8)
        self._seal = steps.write(self._steps, collector.played, arrays, self._seal)

    def changed(self, owner: str, start: int, stop: int) -> ValueError:
        """The error for a stream that is not the one that was played."""
        return ValueError(
            f"{owner}: the stream has changed between rounds {start} and {stop}, which the "
            f"checkpoint in {self.directory} has played already. Give the stream as it was, or "
            "another directory."
        )

    def _read(self, owner: str, step: int, there: list[int]) -> dict[str, np.ndarray]:
        try:
            arrays, self._seal = steps.read(self._steps, step, self._seal)
        except (archive.Damaged, OSError):
            earlier = [other for other in there if other < step]
            again = f"to go on from round {earlier[-1]}" if earlier else "to start again"
            raise ValueError(
                f"{owner}: {steps.path_of(self._steps, step)} is damaged, or a step before it is "
                f"missing. Remove it and all later steps {again}, or give another directory."
            ) from None
        return arrays

    def _found(self, owner: str) -> list[int]:
        """The steps of this run; refuses the steps of another one. No steps means a new run."""
        there = steps.steps_in(self._steps)
        if not there:
            if self._steps.is_dir() and any(path.is_dir() for path in self._steps.iterdir()):
                raise ValueError(
                    f"{owner}: {self._steps} holds folders; a checkpoint of this version of olx "
                    "holds none. Give another directory, or remove this one."
                )
            return []
        path = self.directory / "run.json"
        try:
            other = json.loads(path.read_text())
            assert isinstance(other, dict)
        except (OSError, ValueError, AssertionError):
            raise ValueError(
                f"{owner}: {path}, the description of the saved run, is missing or damaged. Give "
                "another directory, or remove this one."
            ) from None
        mine = self._description
        if different := [name for name in mine if other.get(name) != mine[name]]:
            raise self._of_another(owner, different)
        return there

    def _of_another(self, owner: str, different: list[str]) -> ValueError:
        return ValueError(
            f"{owner}: the checkpoint in {self.directory} is of another run; they differ in "
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
