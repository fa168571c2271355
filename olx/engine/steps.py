"""The files of a checkpoint: one step per save, linked to the step before by a digest.

A step is written under another name, and renamed when it is complete. It ends with its seal: a
SHA-256 digest of its content, of the number of rounds in its name and of the seal of the step
before. So a flipped bit, a replaced file and a missing step are all found before a step is used.
"""

import hashlib
import json
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np

_SEAL = 32  # bytes


class Damaged(Exception):
    """A step does not match its seal."""


def steps_in(folder: Path) -> list[int]:
    """The numbers of rounds after which a step was saved, in order."""
    names = [path.stem for path in folder.glob("*.step")] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdecimal())


def path_of(folder: Path, rounds: int) -> Path:
    return folder / f"{rounds}.step"


def write(folder: Path, rounds: int, arrays: dict[str, np.ndarray], before: bytes) -> bytes:
    """Write the step after `rounds` rounds and return its seal; `before` is the seal before."""
    kinds = [[name, str(array.dtype), array.shape] for name, array in arrays.items()]
    header = json.dumps(kinds).encode()
    parts = [len(header).to_bytes(8, "little"), header]
    parts += [np.ascontiguousarray(array).tobytes() for array in arrays.values()]
    seal = _seal(rounds, before, parts)
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{rounds}.draft"
    with draft.open("wb") as file:
        for part in [*parts, seal]:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path_of(folder, rounds))
    return seal


def read(folder: Path, rounds: int, before: bytes) -> tuple[dict[str, np.ndarray], bytes]:
    """The arrays of a step and its seal; raises `Damaged` if the seal does not match."""
    whole = path_of(folder, rounds).read_bytes()
    body, seal = memoryview(whole)[:-_SEAL], whole[-_SEAL:]
    if _seal(rounds, before, [body]) != seal:
        raise Damaged
    start = 8 + int.from_bytes(body[:8], "little")
    arrays = {}
    for name, kind, shape in json.loads(bytes(body[8:start])):
        dtype = jnp.dtype(kind)
        stop = start + dtype.itemsize * int(np.prod(shape))
        arrays[name] = np.frombuffer(body[start:stop], dtype).reshape(shape)
        start = stop
    return arrays, seal


def _seal(rounds: int, before: bytes, parts: list) -> bytes:
    digest = hashlib.sha256(before + rounds.to_bytes(8, "little"))
    for part in parts:
        digest.update(part)
    return digest.digest()
