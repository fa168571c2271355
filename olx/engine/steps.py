"""The files of a checkpoint: one step per save, linked to the step before by a digest.

A step ends with its seal: a SHA-256 digest of its content, of the number of rounds in its name and
of the seal of the step before. So a flipped bit, a replaced file and a missing step are all found
before a step is used.
"""

from pathlib import Path

import numpy as np

from olx import _archive as archive


def steps_in(folder: Path) -> list[int]:
    """The numbers of rounds after which a step was saved, in order."""
    names = [path.stem for path in folder.glob("*.step")] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdecimal())


def path_of(folder: Path, rounds: int) -> Path:
    return folder / f"{rounds}.step"


def write(folder: Path, rounds: int, arrays: dict[str, np.ndarray], before: bytes) -> bytes:
    """Write the step after `rounds` rounds and return its seal; `before` is the seal before."""
    header = [[name, *archive.kind_of(array)] for name, array in arrays.items()]
    parts = archive.packed(header, arrays.values())
    seal = archive.seal_of([before, rounds.to_bytes(8, "little"), *parts])
    folder.mkdir(parents=True, exist_ok=True)
    archive.write(path_of(folder, rounds), [*parts, seal])
    return seal


def read(folder: Path, rounds: int, before: bytes) -> tuple[dict[str, np.ndarray], bytes]:
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
