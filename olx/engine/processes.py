"""What a run must know of the processes that `jax.distributed.initialize` has joined."""

from pathlib import Path
from typing import NamedTuple

import jax


class Devices(NamedTuple):
    """On how many devices a sweep is played."""

    all: int
    here: int  # of this process


def devices_of(owner: str, configurations: int) -> Devices:
    """The devices that play; 1 if the configurations are cut into shares instead."""
    here, every = jax.local_device_count(), jax.device_count()
    if jax.process_count() == 1:
        return Devices(*[min(here, configurations)] * 2)
    if jax.default_backend() == "cpu" and every == jax.process_count():
        return Devices(1, 1)
    if here * jax.process_count() != every:
        raise ValueError(
            f"{owner}: process {jax.process_index()} has {here} of {every} devices; give each of "
            f"the {jax.process_count()} processes the same number."
        )
    return Devices(every, here)


def own_folder(owner: str, folder: Path) -> Path:
    """Where this process saves: each of several has a folder of its own in `folder`.

    Refuses the checkpoint of another number of processes: their parts are others.
    """
    processes = jax.process_count()
    there = {path.name.rpartition("-")[2] for path in folder.glob("process-*-of-*")}
    there |= {"1"} if (folder / "run.json").is_file() else set()
    if others := sorted(there - {str(processes)}):
        raise ValueError(
            f"{owner}: the checkpoint in {folder} is of a run of {others[0]} "
            f"process{'es' * (others[0] != '1')}, this run has {processes}. Start as many, or give "
            "another directory."
        )
    if processes == 1:
        return folder
    return folder / f"process-{jax.process_index()}-of-{processes}"
