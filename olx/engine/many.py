"""A sweep over all processes that `jax.distributed.initialize` has joined.

Each process plays a part of the configurations on the whole stream, and reads the parts of the
others at the end. So all return the same result.

- One CPU device per process: the shares of `olx.engine.cut`, which do not depend on the number of
  processes, are dealt to the processes. The bits are those of one process. A sweep that is not cut
  is played whole by each process.
- Other devices: each device of all processes plays an equal part, as in one process that has them
  all.
"""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx.core import Curve, Run
from olx.engine.collect import data_of, is_key
from olx.engine.cut import Cut, axes_of, part
from olx.engine.describe import digest
from olx.engine.game import Game
from olx.engine.kernel import Program
from olx.engine.peers import Peers
from olx.engine.processes import Devices

_counted = 0  # sweeps that were dealt; the same number in all processes


@contextlib.contextmanager
def crew_of(owner: str, devices: Devices, saved: bool) -> Iterator["Crew | None"]:
    """The processes of a sweep; None if there is only one."""
    if jax.process_count() == 1:
        yield None
        return
    made, error = Crew(owner, devices, saved), None
    try:
        yield made
    except BaseException as raised:
        error = raised
        raise
    finally:
        if made.peers is not None:
            made.peers.leave(error)


class Crew:
    """Deals the configurations of a sweep to the processes, and gathers what they played."""

    def __init__(self, owner: str, devices: Devices, saved: bool):
        self._owner, self._devices, self._saved = owner, devices, saved
        self._axes: Any = 0
        self._told: dict[str, Any] = {}  # what must be the same in all processes
        self.peers: Peers | None = None  # None if each process plays the whole sweep

    def deal(
        self, program: Program, width: int, cut: Cut, state: PyTree, game: Game, *row: Any
    ) -> tuple[PyTree, Game, Cut]:
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
        self.peers = Peers(self._owner, f"olx/{_counted}", self._saved)
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

    def _read(self, peers: Peers, process: int, mine: list[np.ndarray]) -> list[np.ndarray]:
        """The arrays of a process; refuses those of another sweep."""
        if process == peers.me:
            return mine
        told = json.loads(peers.get(process, "told"))
        for name, word in self._told.items():
            if told[name] != word:
                raise ValueError(f"{self._owner}: {_differ(name, process, peers.me)}")
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


def _is_cut(program: Program, width: int, cut: Cut, state: PyTree, game: Game, row: tuple) -> bool:
    """Whether the shares are played one by one, as one process would: a plain loop is not."""
    share, own = part(cut, 0, cut.width, state, game.own)
    other = list(map(jnp.asarray, game.other))
    forms = program.forms(game)
    return forms.choose(width, share, (own, other), *row)[0] is not forms.plain


def _like(array: np.ndarray, leaf: Any) -> Any:
    """The array in the form of `leaf`: of NumPy, of JAX, or a key of a random generator."""
    if not isinstance(leaf, jax.Array):
        return array
    if is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return jnp.asarray(array)
