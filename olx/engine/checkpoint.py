"""Saving a run on the way, and resuming it to the bit.

A save is a step of an orbax directory: the state, and what was gathered since the step before.
Steps appear whole or not at all. Beside them stands a description of the run; a directory that
describes another one is refused.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx.core import Learner, Loss, Rounds
from olx.engine.collect import Collector, Segment, data_of, is_key
from olx.engine.feed import take
from olx.engine.keep import Keep

_SAMPLE = 1024  # rounds of the stream that its description looks at, at the most


def checkpoint(directory: str | os.PathLike, every: int = 64) -> "Checkpoint":
    """Save in `directory` after every so many chunks, and resume from what is there.

    Run the same call again after an interruption: it goes on from the last save, and ends with the
    same bits as if nothing had happened. An iterable stream must then start from its beginning.
    """
    check.count("checkpoint", "every", every)
    return Checkpoint(Path(directory).absolute(), every)


class Checkpoint:
    def __init__(self, directory: Path, every: int):
        self.directory, self.every = directory, every
        self._chunks = self._saved = 0
        self._description: dict[str, str] = {}

    def restore(
        self, owner: str, description: dict[str, str], state: PyTree, collector: Collector
    ) -> PyTree:
        """The state to start from; `collector` gets what had been gathered."""
        self._chunks = self._saved = 0
        self._description = description
        self._refuse_another(owner)
        segments, position, total = [], 0, None
        for step, kept in self._readable():
            segments.append(_segment(kept["kept"], collector))
            state = _like(kept["state"], state)
            position, total = step, _sums(kept["total"], collector)
        if segments:
            collector.restore(segments, position, total)
            self._saved = len(segments)
        return state

    def due(self) -> bool:
        """Whether to save after this chunk."""
        self._chunks += 1
        return self._chunks % self.every == 0

    def save(self, state: PyTree, collector: Collector) -> None:
        """Write one more step, unless nothing happened since the last."""
        fresh = collector.segments[self._saved :]
        if not fresh:
            return
        collector.segments[self._saved :] = [collector.joined(fresh)]
        self._saved += 1
        if self._saved == 1:
            self._write_description()
        kept = {
            "state": dict(_leaves(state)),
            "kept": dict(_leaves(collector.segments[-1])),
            "total": dict(_leaves(collector.total)),
        }
        args = _orbax().args.StandardSave(kept)
        self._manager().save(collector.played, args=args)
        self._manager().wait_until_finished()

    def _manager(self) -> Any:
        if not hasattr(self, "_opened"):
            ocp = _orbax()
            options = ocp.CheckpointManagerOptions(
                max_to_keep=None, enable_async_checkpointing=False, create=True
            )
            self._opened = ocp.CheckpointManager(self.directory / "steps", options=options)
        return self._opened

    def _readable(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The steps up to the first that is damaged, which goes with all that build on it."""
        steps = sorted(self._manager().all_steps())
        for i, step in enumerate(steps):
            try:
                kept = self._manager().restore(step, args=_orbax().args.StandardRestore())
            except (KeyError, ValueError, FileNotFoundError):
                for damaged in reversed(steps[i:]):
                    self._manager().delete(damaged)
                return
            yield step, kept

    def _write_description(self) -> None:
        draft = self.directory / "run.draft"
        draft.write_text(json.dumps(self._description, indent=1))
        draft.replace(self.directory / "run.json")

    def _refuse_another(self, owner: str) -> None:
        """A directory without a step is nobody's."""
        if not self._manager().all_steps():
            return
        there = json.loads((self.directory / "run.json").read_text())
        mine = self._description
        different = [name for name in mine if there.get(name) != mine[name]]
        if different:
            raise ValueError(
                f"{owner}: the checkpoint in {self.directory} is of another run; they differ in "
                f"{', '.join(different)}. Give another directory, or remove this one."
            )


def describe(
    learner: Learner, loss: Loss, state: PyTree, sample: Rounds, keep: Keep | None, traced: Any
) -> dict[str, str]:
    """What tells one run from another, the same in every process.

    sample: rounds of the first chunk, so that they are checked before anything is saved.
    traced: the program; it tells functions apart that have the same name or none.
    """
    sample = jax.tree.map(lambda leaf: getattr(leaf, "arrays", leaf), take(sample, 0, _SAMPLE))
    return {
        "learner": _digest(learner),
        "loss": _digest(loss),
        "start": _digest(state),
        "stream": _digest(sample),
        "record": _named(traced.out_info[1]),
        "keep": _named(keep),
        "dtype": str(jnp.zeros(()).dtype),
        "program": hashlib.sha256(_named(traced.jaxpr).encode()).hexdigest()[:16],
    }


def _digest(tree: PyTree) -> str:
    digest = hashlib.sha256(_named(jax.tree.structure(tree)).encode())
    for _, leaf in _leaves(tree):
        digest.update(f"{leaf.dtype}{leaf.shape}".encode())
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()[:16]


def _named(thing: Any) -> str:
    """In words, without the addresses that differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(thing))


def _leaves(tree: PyTree) -> list[tuple[str, np.ndarray]]:
    """Leaves by number, as numbers; empty ones have nothing to save."""
    plain = [np.asarray(data_of(leaf)) for leaf in jax.tree.leaves(tree)]
    return [(str(i), leaf) for i, leaf in enumerate(plain) if leaf.size]


def _like(saved: dict[str, Any], tree: PyTree) -> PyTree:
    leaves, structure = jax.tree.flatten(tree)
    back = [
        leaf
        if str(i) not in saved
        else jax.random.wrap_key_data(jnp.asarray(saved[str(i)]), impl=jax.random.key_impl(leaf))
        if is_key(leaf)
        else jnp.asarray(saved[str(i)])
        for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, back)


def _segment(saved: dict[str, Any], collector: Collector) -> Segment:
    leaves, structure = jax.tree.flatten(collector.empty())
    back = [np.asarray(saved.get(str(i), leaf)) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, back)


def _sums(saved: dict[str, Any], collector: Collector) -> PyTree:
    structure = jax.tree.structure(collector.structure[0])
    return jax.tree.unflatten(structure, [np.asarray(saved[str(i)]) for i in range(len(saved))])


def _orbax() -> Any:
    try:
        import orbax.checkpoint as ocp
    except ImportError as error:
        raise ImportError(
            "checkpoint: saving needs orbax-checkpoint; install it with pip install 'olx[lab]'."
        ) from error
    return ocp
