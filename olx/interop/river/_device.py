"""A learner and its state on rows of one width, as compiled programs that grow.

A call of a small program costs more than the round itself, and each argument costs more than its
numbers. So all real numbers of a state are one vector, and so are those of the learner and the
loss. A row is one vector too: the outcome, the weight, then the features.

States grow with the number of features and of classes. A new coordinate is where `init` puts it.
This is right only if a feature that was always 0 has changed nothing so far. That is tried out on a
few rounds before the first growth.
"""

import copy
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from olx._cache import Recent, cached
from olx._pytree import as_tree
from olx._refusal import RefusedType, RefusedValue
from olx.core import Learner, Loss, Rounds
from olx.engine.game import first_state
from olx.engine.round import feedback_of
from olx.interop._estimator import as_numpy, is_key
from olx.losses.score import ScoreLoss
from olx.streams.checks import judge, needs_of

LEAD = 2  # numbers of a row before its features: the outcome and the weight


class Packing(NamedTuple):
    """How the leaves of a tree lie in one vector of float64 and a list of other arrays."""

    structure: Any  # of the tree
    kinds: tuple[tuple[tuple[int, ...], np.dtype], ...]  # the shape and the dtype of each leaf

    def pack(self, tree: PyTree) -> tuple[Float[Array, " n"], tuple]:
        leaves = jax.tree.leaves(tree)
        real = [jnp.ravel(leaf) for leaf, kind in self._pairs(leaves) if _is_real(kind)]
        vector = jnp.concatenate(real) if real else jnp.zeros(0)
        return vector, tuple(leaf for leaf, kind in self._pairs(leaves) if not _is_real(kind))

    def unpack(self, vector: Array | np.ndarray, others: tuple) -> PyTree:
        left, leaves, begin = list(others), [], 0
        for shape, kind in self.kinds:
            if not _is_real(kind):
                leaves.append(left.pop(0))
                continue
            size = int(np.prod(shape, dtype=int))
            leaves.append(vector[begin : begin + size].reshape(shape))
            begin += size
        return jax.tree.unflatten(self.structure, leaves)

    def _pairs(self, leaves: list) -> zip:
        return zip(leaves, (kind for _, kind in self.kinds), strict=True)


class Programs(NamedTuple):
    """What is compiled for a learner, a loss, and a width; `own` and `state` are packed trees."""

    packing: Packing  # of the state
    shape: tuple[int, ...]  # of the decision
    action: Callable[[], PyTree]  # () -> shapes and dtypes of what the learner plays
    start: Callable[..., tuple]  # own -> state
    pair: Callable[..., tuple]  # (own, state, 2 rows) -> (state, scores)
    block: Callable[..., tuple]  # (own, state, rows, how many of them) -> state
    many: Callable[..., Array]  # (own, state, rows) -> scores


def packing_of(tree: PyTree) -> Packing:
    leaves, structure = jax.tree.flatten(tree)
    kinds = tuple((np.shape(leaf), _kind(leaf)) for leaf in leaves)
    return Packing(structure, kinds)


def own_of(learner: Learner, loss: Loss) -> tuple[Packing, PyTree]:
    """The numbers of a learner and of a loss."""
    both = learner, as_tree(loss)
    packing = packing_of(both)
    return packing, jax.tree.map(np.asarray, packing.pack(both))


@cached
def programs(own: Packing, shape: tuple[int, ...], labels: bool) -> Programs:
    """The programs of all games of one structure.

    shape: of the decision; the last number is the width.
    labels: whether outcomes are numbers of classes.
    """

    def begin(numbers: tuple) -> PyTree:
        return own.unpack(*numbers)[0].init(jnp.zeros(shape))

    vector = sum(int(np.prod(size, dtype=int)) for size, kind in own.kinds if _is_real(kind))
    others = tuple(jax.ShapeDtypeStruct(*kind) for kind in own.kinds if not _is_real(kind[1]))
    given = jax.ShapeDtypeStruct((vector,), jnp.float64), others
    held = packing_of(jax.eval_shape(begin, given))

    def start(numbers: tuple) -> tuple:
        return held.pack(jax.tree.map(jnp.asarray, begin(numbers)))

    def learn(numbers: tuple, state: tuple, row: Array) -> tuple:
        (learner, loss), kept = own.unpack(*numbers), held.unpack(*state)
        outcome, weight, x = row[0], row[1], row[LEAD:]
        outcome = outcome.astype(jnp.int32) if labels else outcome
        feedback = feedback_of(loss, x, learner.predict(kept, x), outcome, weight)
        return held.pack(learner.update(kept, feedback))

    def score(numbers: tuple, state: tuple, row: Array) -> Array:
        learner = own.unpack(*numbers)[0]
        return learner.predict(held.unpack(*state), row[LEAD:])

    def pair(numbers: tuple, state: tuple, rows: Array) -> tuple:
        after = learn(numbers, state, rows[0])
        return after, score(numbers, after, rows[1])

    def block(numbers: tuple, state: tuple, rows: Array, count: int) -> tuple:
        return lax.fori_loop(0, count, lambda i, state: learn(numbers, state, rows[i]), state)

    def many(numbers: tuple, state: tuple, rows: Array) -> Array:
        return jax.vmap(lambda row: score(numbers, state, row))(rows)

    row = jax.ShapeDtypeStruct((LEAD + shape[-1],), jnp.float64)
    first = lambda numbers, row: score(numbers, start(numbers), row)
    action = functools.cache(lambda: jax.eval_shape(first, given, row))
    return Programs(held, shape, action, *map(jax.jit, (start, pair, block, many)))


def _kind(leaf: Any) -> Any:
    plain = isinstance(leaf, int | float) and not isinstance(leaf, bool)
    return np.dtype(np.float64) if plain else jnp.result_type(leaf)


def _is_real(kind: np.dtype) -> bool:
    return kind == np.float64


_MADE = ("programs", "own", "packing", "needs")  # from the other fields


class Device:
    """A learner, its loss and its state.

    rows: how many rows of weights there are for a loss of classes; None for one row.
    labels: whether outcomes are numbers of classes.
    """

    def __init__(self, learner: Learner, loss: ScoreLoss, rows: int | None, labels: bool) -> None:
        self.learner, self.loss = learner, loss
        self.rows, self.labels = rows, labels
        self.width = 0
        self.state: tuple = ()
        self._load()

    def judge(self, rows: np.ndarray) -> None:
        """Refuse rows that the learner or the loss cannot take."""
        outcome = rows[:, 0].astype(np.int32) if self.labels else rows[:, 0]
        weight: Any = rows[:, 1]
        judge(self.needs, None, Rounds(rows[:, LEAD:], outcome, weight))

    def learn(self, rows: np.ndarray, count: int) -> None:
        """Play the first rows."""
        with jax.enable_x64(True):
            self.state = self.programs.block(self.own, self.state, rows, count)
            jax.block_until_ready(self.state)  # the caller may overwrite the rows

    def pair(self, rows: np.ndarray) -> np.ndarray:
        """Learn the first of two rows, then score the second, in one call."""
        with jax.enable_x64(True):
            self.state, found = self.programs.pair(self.own, self.state, rows)
            return np.asarray(found)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(self.programs.many(self.own, self.state, rows))

    def check_grows(self) -> None:
        """Refuse new features for a learner that depends on their number."""
        with jax.enable_x64(True):
            fine = self.width == 0 or grows(self.packing, self.own, self.rows, self.labels)
        if not fine:
            raise RefusedValue(
                f"a new feature came, but {self.learner!r} depends on the number of "
                "features; give all features in the first row, 0 for those that are missing."
            )

    def widen(self, width: int) -> None:
        """Make room for `width` features."""
        before, now = self.programs, self._programs(width)
        with jax.enable_x64(True):
            if before is None:
                first_state(self.learner, np.zeros(now.shape))  # refuses a bad start
                _check_action(self, now.action())
            fresh = now.start(self.own)
            old = self.state
            self.state = fresh if before is None else put(before.packing, now.packing, old, fresh)
        self.programs, self.width = now, width

    def reseat(self, learner: Learner, rows: int | None) -> None:
        """Go on with a learner of more classes: more copies, or more rows of weights."""
        new = copy.copy(self)  # so that a refusal changes nothing
        new.learner, new.rows = learner, rows
        new._load()
        if self.programs is not None:
            before, now = self.programs, new.programs
            with jax.enable_x64(True):
                if rows is None:
                    new.state = copied_states(before.packing, now.packing, self.state)
                elif starts_alike(before, now, self.own, new.own):
                    new.state = put(before.packing, now.packing, self.state, now.start(new.own))
                else:
                    raise RefusedValue(
                        f"a new class came, but the start of {learner!r} depends on "
                        "the number of classes; name all of them, as `classes=(...)`."
                    )
        vars(self).update(vars(new))

    def tree(self, state: tuple | None = None) -> PyTree:
        """A state as the learner keeps it, in arrays of NumPy; None is the present one."""
        held = self.state if state is None else state
        return self.programs.packing.unpack(*jax.tree.map(as_numpy, held))

    def _programs(self, width: int) -> Programs:
        shape = (width,) if self.rows is None else (self.rows, width)
        with jax.enable_x64(True):
            return programs(self.packing, shape, self.labels)

    def __getstate__(self) -> dict[str, object]:
        own = dict(vars(self), state=jax.tree.map(as_numpy, self.state))
        return {name: value for name, value in own.items() if name not in _MADE}

    def __setstate__(self, own: dict[str, object]) -> None:
        vars(self).update(own)
        self._load()

    def _load(self) -> None:
        with jax.enable_x64(True):
            self.packing, self.own = own_of(self.learner, self.loss)
        needs = needs_of(self.learner, self.loss)
        self.needs = [one for one in needs if not (self.labels and one[0].where == "outcome")]
        self.programs: Any = self._programs(self.width) if self.width else None


def _check_action(device: Device, action: PyTree) -> None:
    """Refuse a learner that does not predict one score, or one per class."""
    seen = getattr(action, "shape", None)
    if seen is None or len(seen) != device.labels:
        wanted = "one score per class" if device.labels else "one score"
        raise RefusedType(
            f"`learner` must predict {wanted}, {device.learner!r} gives "
            f"{jax.tree.map(np.shape, action)}; make a point learner a predictor, as "
            "`olx.linear(olx.ogd(0.1))`."
        )


_WIDTHS = 2, 5
_SEEN: Recent[bool] = Recent()  # what was tried, by learner and loss


def put(before: Packing, now: Packing, small: tuple, large: tuple) -> tuple:
    """The state `small` in the room of the state `large`; what is new stays as it is in `large`."""

    def one(old: Array, new: Array) -> Array | np.ndarray:
        if is_key(old):
            return old
        room = np.array(new)
        room[tuple(map(slice, np.shape(old)))] = np.asarray(old)
        return room

    return now.pack(jax.tree.map(one, before.unpack(*small), now.unpack(*large)))


def copied_states(before: Packing, now: Packing, state: tuple) -> tuple:
    """The stacked states of more copies; each new one is a copy of the last."""

    def one(old: Array, shape: tuple[int, ...]) -> Array:
        more = shape[0] - np.shape(old)[0]
        return jnp.concatenate([old, jnp.repeat(old[-1:], more, 0)])

    shapes = jax.tree.unflatten(now.structure, [shape for shape, _ in now.kinds])
    return now.pack(jax.tree.map(one, before.unpack(*state), shapes))


def grows(packing: Packing, own: tuple, rows: int | None, labels: bool) -> bool:
    """Whether features that are always 0 change nothing, in the start and in a few rounds.

    packing, own: of the learner and the loss.
    """
    numbers = (np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(own) if not is_key(leaf))
    key = packing, *numbers, rows, labels
    found = _SEEN.get(key)
    return _SEEN.put(key, _try_growth(packing, own, rows, labels)) if found is None else found


def _try_growth(packing: Packing, own: tuple, rows: int | None, labels: bool) -> bool:
    """Play a few rounds with few and with more features."""
    lead = () if rows is None else (rows,)
    before, now = (programs(packing, (*lead, width), labels) for width in _WIDTHS)
    if not _is_nested(before.packing, now.packing):
        return False
    drawn = np.random.default_rng(0).normal(size=(3, LEAD + _WIDTHS[1]))
    drawn[:, 0] = np.arange(3) % 2 if labels else 1.0
    drawn[:, 1] = 1.0
    drawn[:, LEAD + _WIDTHS[0] :] = 0.0
    small, large = before.start(own), now.start(own)
    fresh = large
    for _ in range(2):  # the second time, every coordinate has moved
        seen = put(before.packing, now.packing, small, fresh), large
        if not all(jax.tree.leaves(jax.tree.map(_near, *seen))):
            return False
        small = before.block(own, small, drawn[:, : LEAD + _WIDTHS[0]], len(drawn))
        large = now.block(own, large, drawn, len(drawn))
    scores = before.many(own, small, drawn[:, : LEAD + _WIDTHS[0]]), now.many(own, large, drawn)
    seen = put(before.packing, now.packing, small, fresh), large
    return all(jax.tree.leaves(jax.tree.map(_near, (seen[0], scores[0]), (seen[1], scores[1]))))


def starts_alike(before: Programs, now: Programs, own: PyTree, other: PyTree) -> bool:
    """Whether the start of a learner with more rows of weights begins with that of fewer rows."""
    if not _is_nested(before.packing, now.packing):
        return False
    fresh = now.start(other)
    seen = put(before.packing, now.packing, before.start(own), fresh), fresh
    return all(jax.tree.leaves(jax.tree.map(_near, *seen)))


def _is_nested(small: Packing, large: Packing) -> bool:
    """Whether every array of a state fits into that of a larger one."""
    if small.structure != large.structure:
        return False
    fits = lambda a, b: len(a) == len(b) and all(i <= j for i, j in zip(a, b, strict=True))
    pairs = zip(small.kinds, large.kinds, strict=True)
    return all(fits(one, two) for (one, _), (two, _) in pairs)


def _near(one: Array, two: Array) -> bool:
    return is_key(one) or np.allclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True)
