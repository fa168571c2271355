"""A sweep over all processes that `jax.distributed.initialize` has joined.

Each process plays a part of the configurations on the whole stream, and reads the parts of the
others at the end. So all return the same result.

- One CPU device per process: the shares of `olx.engine.threads` are dealt to the processes. They do
  not depend on the number of processes, so the bits are those of one process. A sweep that is not
  cut is played whole by each process.
- Other devices: each device of all processes plays an equal part, as in one process that has them
  all.

Processes speak through the key-value store that `jax.distributed.initialize` starts on process 0.
While a process plays it writes a sign of life every few seconds. Process 0 reads the signs, and
tells all others when one stays away. That is sooner than JAX itself ends all processes (100
seconds), so the others can save and say what happened. If process 0 dies, JAX ends the others at
once.
"""

import contextlib
import dataclasses
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import distributed  # JAX has no public way to its key-value store
from jaxtyping import PyTree

from olx._refusal import Refusal, RefusedValue
from olx.core import Curve, Run
from olx.engine import tuning
from olx.engine.checkpoint import digest
from olx.engine.compile import Program
from olx.engine.device import Devices, data_of, is_key
from olx.engine.numbers import Leaves
from olx.engine.threads import Shares, axes_of, part

_DONE, _FAILED = "done", "failed: "


class Lost(Refusal, RuntimeError):
    """Another process of the sweep has died or has failed."""


class Heartbeat:
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
            raise Lost(f"{self._lost} {remedy}")

    @property
    def lost(self) -> bool:
        return bool(self._lost)

    def leave(self, error: BaseException | None) -> None:
        """End the signs of life; tell the others of an error."""
        self._end.set()
        self._thread.join(tuning.SIGN_SECONDS + 1)
        said = " ".join(f"{type(error).__name__}: {error}".split())[:1000]
        self._try(self._beat, _DONE if error is None else f"{_FAILED}{said}")

    def put(self, name: str, value: bytes) -> None:
        """Write a value of any length under a name of this process."""
        size = tuning.VALUE_BYTES
        pieces = [value[at : at + size] for at in range(0, len(value), size)]
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
            if not said and time.monotonic() - begun > tuning.LOST_SECONDS:
                said = True
                print(f"{self._owner}: waits for process {process}.", file=sys.stderr, flush=True)
            try:
                return read(self._key(process, name), tuning.LOOK_MILLISECONDS)
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
            self._end.wait(tuning.SIGN_SECONDS)

    def _look(self, seen: dict[str, tuple[str, float]]) -> None:
        """Tell all others of a process whose signs of life stay away, or that has failed."""
        now, lost = time.monotonic(), ""
        for key, word in self._store.key_value_dir_get(f"{self._root}/beats/"):
            who = f"process {key.rpartition('/')[2]} of {self.all}"
            if word.startswith(_FAILED):
                lost = f"{who} has stopped ({word.removeprefix(_FAILED)})."
            elif seen.get(key, ("", now))[0] != word:
                seen[key] = word, now
            elif word != _DONE and now - seen[key][1] > tuning.LOST_SECONDS:
                lost = (
                    f"{who} has given no sign of life for {tuning.LOST_SECONDS:.0f} seconds; "
                    "it has died, or its machine cannot be reached."
                )
        if lost:
            self._try(self._store.key_value_set, f"{self._root}/lost/{self.me}", lost)
            self._lost = lost

    def _told(self) -> str:
        return next((word for _, word in self._store.key_value_dir_get(f"{self._root}/lost/")), "")

    def _try(self, act: Callable[..., PyTree], *given: object) -> None:
        try:
            act(*given)
        except jax.errors.JaxRuntimeError as error:
            self._lost = self._lost or f"process 0 does not answer ({_first(error)})."


def _first(error: Exception) -> str:
    return str(error).splitlines()[0][:200]


_counted = 0  # sweeps that were dealt; the same number in all processes


@contextlib.contextmanager
def process_group(owner: str, devices: Devices, saved: bool) -> Iterator["ProcessGroup | None"]:
    """The processes of a sweep; None if there is only one."""
    if jax.process_count() == 1:
        yield None
        return
    made, error = ProcessGroup(owner, devices, saved), None
    try:
        yield made
    except BaseException as raised:
        error = raised
        raise
    finally:
        if made.peers is not None:
            made.peers.leave(error)


class ProcessGroup:
    """Deals the configurations of a sweep to the processes, and gathers what they played."""

    def __init__(self, owner: str, devices: Devices, saved: bool):
        self._owner, self._devices, self._saved = owner, devices, saved
        self._axes: Any = 0
        self._told: dict[str, Any] = {}  # what must be the same in all processes
        self.peers: Heartbeat | None = None  # None if each process plays the whole sweep

    def deal(
        self, program: Program, width: int, cut: Shares, state: PyTree, game: Leaves, *row: object
    ) -> tuple[PyTree, Leaves, Shares]:
        """The part of this process.

        width: of the reductions of a round, for the choice of the form.
        row: a chunk of one round, for this choice.
        """
        me, processes = jax.process_index(), jax.process_count()
        if self._devices.all > 1:
            each = np.shape(game.own[0])[0] // processes
            start, stop, mine, self._owners = me * each, (me + 1) * each, cut, processes
        elif cut.shares > 1 and _is_cut(program, width, cut, state, game, row):
            self._owners = min(processes, cut.shares)
            turn = me % self._owners  # with few shares some are played twice
            first, last = (cut.shares * k // self._owners for k in (turn, turn + 1))
            start, stop = first * cut.width, min(last * cut.width, cut.configurations)
            mine = cut._replace(configurations=stop - start, shares=last - first)
            mine = mine._replace(of=cut.configurations)
        else:
            return state, game, cut
        global _counted
        _counted += 1
        self._axes, self._told = cut.axes, {"game": digest((state, game))}
        self.words = f"; process {me} of {processes} plays configurations {start} to {stop - 1}"
        self.peers = Heartbeat(self._owner, f"olx/{_counted}", self._saved)
        state, own = part(cut, start, stop, state, game.own)
        return state, dataclasses.replace(game, own=own), mine

    words = "; each process plays all configurations"

    def lost(self) -> bool:
        """Whether another process has died or failed."""
        return self.peers is not None and self.peers.lost

    def refuse_lost(self) -> None:
        """Raise if another process has died or failed."""
        if self.peers is not None:
            self.peers.refuse_lost()

    def tell(self, rounds: int, stream: bytes) -> None:
        """Note what was played, to be compared with the other processes."""
        self._told |= {"rounds": rounds, "stream": stream.hex()}

    def gathered(self, run: Run) -> Run:
        """The run of all configurations; waits for the other processes."""
        peers = self.peers
        if peers is None:
            return run
        at = None if run.curve is None else run.curve.at
        rest = None if run.curve is None else (run.curve.total, run.curve.sums)
        losses = run.losses if run.curve is None else None
        tree = run.state, (losses, run.trace, rest)
        axes = jax.tree.leaves((axes_of(self._axes, run.state), jax.tree.map(lambda _: 0, tree[1])))
        leaves, structure = jax.tree.flatten(tree)
        mine = [np.asarray(data_of(leaf)) for leaf in leaves]
        self._told["kept"] = digest(at)
        self._told["arrays"] = [
            [str(leaf.dtype), *np.delete(leaf.shape, axis).tolist()]
            for leaf, axis in zip(mine, axes, strict=True)
        ]
        peers.put("arrays", b"".join(np.ascontiguousarray(leaf).tobytes() for leaf in mine))
        shapes = [leaf.shape for leaf in mine]
        peers.put("told", json.dumps({**self._told, "shapes": shapes}).encode())
        parts = [self._read(peers, i, mine) for i in range(self._owners)]
        peers.forget(f"olx/{_counted - 1}")  # all have read it, for all have come this far
        whole = [
            _like(np.concatenate(each, axis), leaf)
            for *each, leaf, axis in zip(*parts, leaves, axes, strict=True)
        ]
        state, (losses, trace, rest) = jax.tree.unflatten(structure, whole)
        if at is None or rest is None:
            return dataclasses.replace(run, state=state, losses=losses, trace=trace)
        return dataclasses.replace(run, state=state, trace=trace, curve=Curve(at, *rest))

    def _read(self, peers: Heartbeat, process: int, mine: list[np.ndarray]) -> list[np.ndarray]:
        """The arrays of a process; refuses those of another sweep."""
        if process == peers.me:
            return mine
        told = json.loads(peers.get(process, "told"))
        for name, word in self._told.items():
            if told[name] != word:
                raise RefusedValue(_differ(name, process, peers.me))
        bytes_, start, found = peers.get(process, "arrays"), 0, []
        for shape, like in zip(told["shapes"], mine, strict=True):
            stop = start + like.dtype.itemsize * int(np.prod(shape))
            found.append(np.frombuffer(bytes_[start:stop], like.dtype).reshape(shape))
            start = stop
        return found


def _differ(name: str, process: int, me: int) -> str:
    what = {
        "game": "other learners, another loss or another start",
        "rounds": "another number of rounds",
        "stream": "another stream",
        "kept": "another `keep`",
        "arrays": "another `record` or `measure`",
    }
    return (
        f"process {process} plays {what[name]} than process {me}; every process must make the same "
        "call, with the same data."
    )


def _is_cut(
    program: Program, width: int, cut: Shares, state: PyTree, game: Leaves, row: tuple
) -> bool:
    """Whether the shares are played one by one, as one process would: a plain loop is not."""
    share, own = part(cut, 0, cut.width, state, game.own)
    other = list(map(jnp.asarray, game.other))
    forms = program.forms(game)
    return forms.choose(width, share, (own, other), *row)[0] is not forms.plain


def _like(array: np.ndarray, leaf: object) -> Any:
    """The array in the form of `leaf`: of NumPy, of JAX, or a key of a random generator."""
    if not isinstance(leaf, jax.Array):
        return array
    if is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return jnp.asarray(array)
