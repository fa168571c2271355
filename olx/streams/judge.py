"""Checks of rounds and starts, before they are played or while they are traced.

Concrete numbers are refused by name, row and column. Traced numbers cannot be refused: if one is
not legal, the losses are NaN from its round on.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, PyTree

from olx.core import Rounds
from olx.needs import Need
from olx.streams.foreign import is_array, is_frame, refuse, refuse_piece, refuse_stranger
from olx.streams.numbers import check_finite, check_kind, dtype_of, first_of, widest_float
from olx.streams.sparse_rows import SparseRows
from olx.streams.stream import Stream


class _Name(NamedTuple):
    """The name of a leaf; to spell it takes longer than to check a few numbers."""

    path: tuple
    form: str = "rounds{}"

    def __str__(self) -> str:
        return self.form.format(jax.tree_util.keystr(self.path))


def check_iterable(owner: str, stream: Any) -> None:
    """Refuse all but rounds and iterables of them; also iterables that hold something else."""
    if isinstance(stream, Rounds):
        return
    tables = isinstance(stream, Stream | str | dict) or is_array(stream) or is_frame(stream)
    if tables or not isinstance(stream, Iterable) or hasattr(stream, "tocsr"):
        refuse(owner, stream)
    if isinstance(stream, tuple) and stream and not isinstance(stream[0], Rounds):
        refuse(owner, stream)


def check_piece(owner: str, piece: Any) -> None:
    """Refuse a piece of an iterable that is not a legal `Rounds`."""
    if not isinstance(piece, Rounds):
        refuse_piece(owner, piece)
    check_rounds(owner, piece)


def check_rounds(owner: str, rounds: Rounds) -> int:
    """The number of rounds; refuses leaves of different lengths."""
    if not isinstance(rounds, Rounds):
        refuse(owner, rounds)
    leaves = jax.tree_util.tree_leaves_with_path(rounds)
    if not leaves:
        raise TypeError(f"{owner}: `rounds` holds no array; give `olx.Rounds(contexts, outcomes)`.")
    for path, leaf in leaves:
        refuse_stranger(owner, _Name(path), leaf)
        if np.ndim(leaf) == 0:
            _refuse_scalar(owner, rounds, path)
        check_kind(owner, _Name(path), leaf)
    lengths = [np.shape(leaf)[0] for _, leaf in leaves]
    if len(set(lengths)) > 1:
        pairs = zip(leaves, lengths, strict=True)
        seen = ", ".join(f"{_Name(path)}: {length}" for (path, _), length in pairs)
        raise TypeError(
            f"{owner}: leaves of `rounds` differ in length ({seen}); give one row per round."
        )
    length = lengths[0]
    if length == 0:
        raise ValueError(f"{owner}: `rounds` is empty.")
    if rounds.weight is not None and np.ndim(rounds.weight) != 1:
        shape = np.shape(rounds.weight)
        raise TypeError(f"{owner}: rounds.weight has shape {shape}; give one number per round.")
    return length


def _refuse_scalar(owner: str, rounds: Rounds, path: tuple) -> None:
    part = getattr(rounds, path[0].name)
    if isinstance(part, list):
        raise TypeError(
            f"{owner}: rounds.{path[0].name} is a list, and every leaf needs a leading axis of "
            f"rounds; give an array, as np.array({path[0].name})."
        )
    raise TypeError(
        f"{owner}: rounds{jax.tree_util.keystr(path)} is a scalar; every leaf needs a leading axis "
        "of rounds, as np.full(T, 1.0)."
    )


def check_params(owner: str, params: PyTree) -> None:
    """Refuse `params` that are not finite floats."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    if not leaves:
        raise TypeError(f"{owner}: `params` holds no array; give a start, as jnp.zeros(d).")
    if type(params) in (list, tuple) and all(isinstance(leaf, int | float) for leaf in params):
        kind = type(params).__name__
        raise TypeError(
            f"{owner}: `params` is a {kind} of numbers; give an array, as jnp.zeros(d)."
        )
    for path, leaf in leaves:
        if isinstance(leaf, Tracer):
            continue
        name = _Name(path, "`params{}`")
        check_kind(owner, name, leaf)
        kind = dtype_of(leaf)
        if not jnp.issubdtype(kind, jnp.floating):
            raise TypeError(f"{owner}: {name} holds {kind}; give floats, as jnp.zeros(d).")
        check_finite(owner, name, np.asarray(leaf), 0, "entry")


def needs_of(learner: Any, loss: Any) -> list[tuple[Need, Any]]:
    """The needs of a learner and a loss about rounds, each with the hparams of its owner."""
    every = [
        (need, getattr(thing, "hparams", None))
        for thing in (learner, loss)
        for need in _needs(thing)
    ]
    return [pair for pair in every if pair[0].where != "params"]


def _needs(thing: Any) -> tuple[Need, ...]:
    return getattr(thing, "needs", ())


def judge(
    owner: str,
    needs: list[tuple[Need, Any]],
    params: PyTree,
    part: Rounds,
    start: int = 0,
    skip: frozenset[int] = frozenset(),
    decision: Any = None,
) -> list[Array]:
    """Refuse rounds that are not finite, or that do not meet the needs of a learner or a loss.

    needs: the result of `needs_of`.
    start: the number of the first of these rounds.
    skip: the numbers of the leaves that may hold what is not finite.
    decision: the dtype of the decision; that of `params` if None.

    Traced numbers cannot be refused; the result says, as traced booleans, which of them are legal.
    """
    told, traced = set(), []
    for need, hparams in needs:
        told.add(need.where)
        legal = need.legal_fn(hparams, params, part)
        if is_traced(legal):
            traced += [jnp.asarray(mask) for mask in jax.tree.leaves(legal)]
        else:
            _refuse_rows(owner, need, part, legal, start)
    if part.weight is not None:
        light = part.weight >= 0
        if is_traced(light):
            traced.append(light)
        elif not np.all(light):
            where, value = first_of(~light, part.weight, start, "row")
            raise ValueError(f"{owner}: rounds.weight must be non-negative, got {value}{where}.")
    decision = widest_float(params) if decision is None else decision
    for number, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(part)):
        if number not in skip and not is_traced(leaf):
            known = path[0].name in told
            check_finite(owner, _Name(path), leaf, start, decision=decision, told=known)
    return traced


def refuse_unknown(
    owner: str,
    needs: list[tuple[Need, Any]],
    part: Rounds,
    losses: list[np.ndarray],
    start: int = 0,
) -> None:
    """Refuse rounds in which all configurations needed a number that is NaN.

    losses: of these rounds, [rounds, ...] of each share of the configurations.
    """
    for need, _ in needs:
        if need.unknown and losses:
            lost = [~np.isfinite(share).reshape(len(share), -1) for share in losses]
            first = int(np.all([share.all(1) for share in lost], axis=0).argmax())
            if not all(share[first].all() for share in lost):
                continue
            leaves = jax.tree.leaves(getattr(part, need.where))
            if any(np.isnan(leaf[first]).any() for leaf in leaves):
                where = f"got nan in rounds.{need.where}, row {start + first}"
                said = f"{need.unknown}, {where}{remedy_of(need)}"
                raise ValueError(f"{owner}: {need.owner}: {said}.")


def legal_so_far(traced: list[Array]) -> Bool[Array, " T"]:
    """For each round, whether all rounds up to it are legal, from the result of `judge`."""
    rows = [jnp.all(mask, axis=tuple(range(1, mask.ndim))) for mask in traced]
    return jnp.cumprod(jnp.all(jnp.stack(jnp.broadcast_arrays(*rows)), axis=0), dtype=int) == 1


def on_host(leaf: Any) -> Any:
    """A leaf as a NumPy array, unless it is traced or sparse."""
    if isinstance(leaf, np.ndarray | SparseRows | Tracer):
        return leaf
    return np.asarray(leaf)


def is_traced(tree: PyTree) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def _refuse_rows(owner: str, need: Need, part: Rounds, legal: PyTree, start: int) -> None:
    if all(np.all(mask) for mask in jax.tree.leaves(legal)):
        return
    given = getattr(part, need.where)
    if jax.tree.structure(legal) != jax.tree.structure(given):
        legal = jax.tree.map(lambda _: legal, given)
    for (path, leaf), mask in zip(
        jax.tree_util.tree_leaves_with_path(given), jax.tree.leaves(legal), strict=True
    ):
        if not np.all(mask):
            leaf = leaf.toarray() if isinstance(leaf, SparseRows) else leaf
            where, value = first_of(~np.asarray(mask), leaf, start, "row")
            name = f"rounds.{need.where}{jax.tree_util.keystr(path)}"
            seen = f"got {value} in {name}{where}"
            raise ValueError(f"{owner}: {need.owner}: {need.demand}, {seen}{remedy_of(need)}.")


def remedy_of(need: Need) -> str:
    return f"; {need.remedy}" if need.remedy else ""
