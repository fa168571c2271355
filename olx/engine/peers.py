"""The processes of a sweep: what they tell each other, and how the death of one is noticed.

All go through the key-value store that `jax.distributed.initialize` starts on process 0. While a
process plays it writes a sign of life every few seconds. Process 0 reads the signs, and tells all
others when one stays away. That is sooner than JAX itself ends all processes (100 seconds), so the
others can save and say what happened. If process 0 dies, JAX ends the others at once.
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
from jax._src import distributed  # JAX has no public way to its key-value store

BEAT = 2.0  # seconds between two signs of life
PATIENCE = 60.0  # seconds without one, after which a process counts as lost
_PIECE = 1 << 20  # bytes per value
_WAIT = 1000  # milliseconds of one look for a value
_DONE, _FAILED = "done", "failed: "


class Lost(RuntimeError):
    """Another process of the sweep has died or has failed."""


class Peers:
    """This process and the others, during one sweep; all names in the store begin with `root`."""

    def __init__(self, owner: str, root: str, saved: bool):
        """saved: whether the sweep writes checkpoints; for messages."""
        self.me, self.all = jax.process_index(), jax.process_count()
        self._owner, self._root, self._saved = owner, root, saved
        self._store: Any = distributed.global_state.client
        self._lost, self._end = "", threading.Event()
        self._thread = threading.Thread(target=self._live, name="olx-peers", daemon=True)
        self._thread.start()

    def refuse_lost(self) -> None:
        """Raise if a process is known to be lost."""
        if self._lost:
            remedy = (
                "Start all processes again with the same call: each continues from its checkpoint."
                if self._saved
                else "Start all processes again; give `checkpoint=olx.checkpoint(directory)` to "
                "save what they play."
            )
            raise Lost(f"{self._owner}: {self._lost} {remedy}")

    @property
    def lost(self) -> bool:
        return bool(self._lost)

    def leave(self, error: BaseException | None) -> None:
        """End the signs of life; tell the others of an error."""
        self._end.set()
        self._thread.join(BEAT + 1)
        said = " ".join(f"{type(error).__name__}: {error}".split())[:1000]
        self._try(self._beat, _DONE if error is None else f"{_FAILED}{said}")

    def put(self, name: str, value: bytes) -> None:
        """Write a value of any length under a name of this process."""
        pieces = [value[at : at + _PIECE] for at in range(0, len(value), _PIECE)]
        for number, piece in enumerate(pieces):
            self._store.key_value_set_bytes(self._key(self.me, f"{name}/{number}"), piece)
        self._store.key_value_set(self._key(self.me, name), str(len(pieces)))

    def get(self, process: int, name: str) -> bytes:
        """Read a value of another process; waits until it is there."""
        pieces = int(self._wait(process, name, self._store.blocking_key_value_get))
        read = self._store.blocking_key_value_get_bytes
        return b"".join(self._wait(process, f"{name}/{i}", read) for i in range(pieces))

    def forget(self, root: str) -> None:
        """Remove what this process wrote during another sweep."""
        self._try(self._store.key_value_delete, f"{root}/{self.me}/")

    def _wait(self, process: int, name: str, read: Callable[[str, int], Any]) -> Any:
        begun, said = time.monotonic(), False
        while True:
            self.refuse_lost()
            if not said and time.monotonic() - begun > PATIENCE:
                said = True
                print(f"{self._owner}: waits for process {process}.", file=sys.stderr, flush=True)
            try:
                return read(self._key(process, name), _WAIT)
            except jax.errors.JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    self._lost = self._lost or f"process 0 does not answer ({_first(error)})."

    def _key(self, process: int, name: str) -> str:
        return f"{self._root}/{process}/{name}"

    def _beat(self, word: str) -> None:
        key = f"{self._root}/beats/{self.me}"
        self._store.key_value_set(key, word, allow_overwrite=True)

    def _live(self) -> None:
        """Write signs of life, and look for those of the others, until the sweep ends."""
        seen: dict[str, tuple[str, float]] = {}
        number = 0
        while not self._end.is_set() and not self._lost:
            number += 1
            try:
                self._beat(str(number))
                if self.me == 0:
                    self._look(seen)
                else:
                    self._lost = self._told()
            except jax.errors.JaxRuntimeError as error:
                self._lost = f"process 0 does not answer ({_first(error)})."
            self._end.wait(BEAT)

    def _look(self, seen: dict[str, tuple[str, float]]) -> None:
        """Tell all others of a process whose signs of life stay away, or that has failed."""
        now, lost = time.monotonic(), ""
        for key, word in self._store.key_value_dir_get(f"{self._root}/beats/"):
            who = f"process {key.rpartition('/')[2]} of {self.all}"
            if word.startswith(_FAILED):
                lost = f"{who} has stopped ({word.removeprefix(_FAILED)})."
            elif seen.get(key, ("", now))[0] != word:
                seen[key] = word, now
            elif word != _DONE and now - seen[key][1] > PATIENCE:
                lost = (
                    f"{who} has given no sign of life for {PATIENCE:.0f} seconds; it has died, or "
                    "its machine cannot be reached."
                )
        if lost:
            self._try(self._store.key_value_set, f"{self._root}/lost/{self.me}", lost)
            self._lost = lost

    def _told(self) -> str:
        return next((word for _, word in self._store.key_value_dir_get(f"{self._root}/lost/")), "")

    def _try(self, act: Callable[..., Any], *given: Any) -> None:
        try:
            act(*given)
        except jax.errors.JaxRuntimeError as error:
            self._lost = self._lost or f"process 0 does not answer ({_first(error)})."


def _first(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
