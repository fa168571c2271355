"""Saving a run on the way, and resuming it to the bit.

A save is a step of an orbax directory: the state, and what was gathered since the step before. Steps
appear whole or not at all. Beside them stands a description of the run; a directory that describes
another one is refused.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx import _check as check
from olx.core import Rounds
from olx.engine.collect import Collector, Segment
from olx.engine.feed import take

_SAMPLE = 1024  # rounds of the stream that its description looks at


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

    def restore(
        self,
        owner: str,
        played: PyTree,
        first: Rounds,
        state: PyTree,
        collector: Collector,
    ) -> PyTree:
        """The state to start from; `collector` gets what had been gathered."""
        self._chunks = self._saved = 0
        self._check_description(owner, _describe(played, first, collector))
        segments, position, total = [], 0, collector.total
        for step in self._manager().all_steps():
            kept = self._manager().restore(step, args=_orbax().args.StandardRestore())
            segments.append(_segment(kept["kept"], collector))
            state = _like(kept["state"], state)
            position, total = step, np.asarray(kept["total"])
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
        kept = {
            "state": dict(_leaves(state)),
            "kept": dict(_leaves(collector.segments[-1])),
            "total": np.asarray(collector.total),
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

    def _check_description(self, owner: str, description: dict[str, str]) -> None:
        file = self.directory / "run.json"
        if not file.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            draft = file.with_suffix(".draft")
            draft.write_text(json.dumps(description, indent=1))
            draft.replace(file)
            return
        there = json.loads(file.read_text())
        different = [name for name in description if there.get(name) != description[name]]
        if different:
            raise ValueError(
                f"{owner}: the checkpoint in {self.directory} is of another run; they differ in "
                f"{', '.join(different)}. Give another directory, or remove this one."
            )


def _describe(played: PyTree, first: Rounds, collector: Collector) -> dict[str, str]:
    """What tells one run from another, the same in every process."""
    learner, loss, state = played
    sample = jax.tree.map(lambda leaf: getattr(leaf, "arrays", leaf), take(first, 0, _SAMPLE))
    keep = getattr(collector.keep, "__name__", repr(collector.keep))
    return {
        "learner": _digest(learner),
        "loss": _digest(loss),
        "start": _digest(state),
        "stream": _digest(sample),
        "record": _named(collector.structure[1]),
        "keep": _named(keep),
        "dtype": str(jnp.zeros(()).dtype),
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
    """Leaves by number, keys of random generators as their data; empty ones have nothing to save."""
    plain = [np.asarray(_data(leaf)) for leaf in jax.tree.leaves(tree)]
    return [(str(i), leaf) for i, leaf in enumerate(plain) if leaf.size]


def _data(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _like(saved: dict[str, Any], tree: PyTree) -> PyTree:
    leaves, structure = jax.tree.flatten(tree)
    back = [
        leaf
        if str(i) not in saved
        else jax.random.wrap_key_data(jnp.asarray(saved[str(i)]), impl=jax.random.key_impl(leaf))
        if _is_key(leaf)
        else jnp.asarray(saved[str(i)])
        for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, back)


def _segment(saved: dict[str, Any], collector: Collector) -> Segment:
    empty = collector.empty()
    leaves, structure = jax.tree.flatten(empty)
    back = [np.asarray(saved.get(str(i), leaf)) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, back)


def _orbax() -> Any:
    try:
        import orbax.checkpoint as ocp
    except ImportError as error:
        raise ImportError(
            "checkpoint: saving needs orbax-checkpoint; install it with pip install 'olx[lab]'."
        ) from error
    return ocp
