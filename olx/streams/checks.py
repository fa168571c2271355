"""Checks of rounds and starts, before they are played or while they are traced.

Concrete numbers are refused by name, row and column: those that no driver takes (not real, masked,
not finite, too large for JAX), and those that a learner or a loss does not take. Traced numbers
cannot be refused: if one is not legal, the losses are NaN from its round on. Data that is not yet
rounds is refused with what to do with it.
"""

import functools
import os
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, PyTree

from olx._refusal import RefusedType, RefusedValue
from olx.core import Learner, Rounds
from olx.needs import Need
from olx.streams.finite import are_surely_finite, check_finite, dtype_of, first_of, widest_float
from olx.streams.sparse_rows import SparseRows
from olx.streams.stream import Stream


class _Name(NamedTuple):
    """The name of a leaf; to spell it takes longer than to check a few numbers."""

    path: tuple
    form: str = "rounds{}"

    def __str__(self) -> str:
        return self.form.format(jax.tree_util.keystr(self.path))


def check_iterable(stream: object) -> None:
    """Refuse all but rounds and iterables of them; also iterables that hold something else."""
    if isinstance(stream, Rounds):
        return
    tables = isinstance(stream, Stream | str | dict) or is_array(stream) or is_frame(stream)
    if tables or not isinstance(stream, Iterable) or hasattr(stream, "tocsr"):
        refuse(stream)
    if isinstance(stream, tuple) and stream and not isinstance(stream[0], Rounds):
        refuse(stream)


def check_piece(piece: object) -> None:
    """Refuse a piece of an iterable that is not a legal `Rounds`."""
    if not isinstance(piece, Rounds):
        refuse_piece(piece)
    check_rounds(piece)


def check_rounds(rounds: Rounds) -> int:
    """The number of rounds; refuses leaves of different lengths."""
    if not isinstance(rounds, Rounds):
        refuse(rounds)
    if length := _plain_length(rounds):
        return length
    leaves = jax.tree_util.tree_leaves_with_path(rounds)
    if not leaves:
        raise RefusedType("`rounds` holds no array; give `olx.Rounds(contexts, outcomes)`.")
    for path, leaf in leaves:
        refuse_stranger(_Name(path), leaf)
        if np.ndim(leaf) == 0:
            _refuse_scalar(rounds, path)
        check_kind(_Name(path), leaf)
    lengths = [np.shape(leaf)[0] for _, leaf in leaves]
    if len(set(lengths)) > 1:
        pairs = zip(leaves, lengths, strict=True)
        seen = ", ".join(f"{_Name(path)}: {length}" for (path, _), length in pairs)
        raise RefusedType(f"leaves of `rounds` differ in length ({seen}); give one row per round.")
    length = lengths[0]
    if length == 0:
        raise RefusedValue("`rounds` is empty.")
    if rounds.weight is not None and np.ndim(rounds.weight) != 1:
        shape = np.shape(rounds.weight)
        raise RefusedType(f"rounds.weight has shape {shape}; give one number per round.")
    return length


def _plain_length(rounds: Rounds) -> int:
    """A fast test: the number of rounds if nothing about them can be refused, else 0."""
    leaves = jax.tree.leaves(rounds)
    if not leaves or not all(map(is_plain, leaves)) or not all(leaf.ndim for leaf in leaves):
        return 0
    lengths = {leaf.shape[0] for leaf in leaves}
    flat = rounds.weight is None or rounds.weight.ndim == 1
    return lengths.pop() if len(lengths) == 1 and flat else 0


def is_plain(leaf: Any) -> bool:
    """A fast test of arrays of real numbers that JAX takes as they are."""
    return (type(leaf) is np.ndarray or isinstance(leaf, jax.Array)) and leaf.dtype in _PLAIN


_PLAIN = frozenset(np.dtype(kind) for kind in (np.float32, np.float64, np.int32, np.int64))


def _refuse_scalar(rounds: Rounds, path: tuple) -> None:
    part = getattr(rounds, path[0].name)
    if isinstance(part, list):
        raise RefusedType(
            f"rounds.{path[0].name} is a list, and every leaf needs a leading axis of "
            f"rounds; give an array, as np.array({path[0].name})."
        )
    raise RefusedType(
        f"rounds{jax.tree_util.keystr(path)} is a scalar; every leaf needs a leading axis "
        "of rounds, as np.full(T, 1.0)."
    )


def check_params(params: PyTree) -> None:
    """Refuse `params` that are not finite floats."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    if not leaves:
        raise RefusedType("`params` holds no array; give a start, as jnp.zeros(d).")
    if type(params) in (list, tuple) and all(isinstance(leaf, int | float) for leaf in params):
        kind = type(params).__name__
        raise RefusedType(f"`params` is a {kind} of numbers; give an array, as jnp.zeros(d).")
    for path, leaf in leaves:
        if isinstance(leaf, Tracer):
            continue
        name = _Name(path, "`params{}`")
        check_kind(name, leaf)
        kind = dtype_of(leaf)
        if not jnp.issubdtype(kind, jnp.floating):
            raise RefusedType(f"{name} holds {kind}; give floats, as jnp.zeros(d).")
        check_finite(name, np.asarray(leaf), 0, "entry")


def needs_of(learner: object, loss: object) -> list[tuple[Need, PyTree]]:
    """The needs of a learner and a loss about rounds, each with the hparams of its owner."""
    every = [
        (need, getattr(thing, "hparams", None))
        for thing in (learner, loss)
        for need in _needs(thing)
    ]
    return [pair for pair in every if pair[0].where != "params"]


def _needs(thing: object) -> tuple[Need, ...]:
    return getattr(thing, "needs", ())


def judge(
    needs: list[tuple[Need, PyTree]],
    params: PyTree,
    part: Rounds,
    start: int = 0,
    skip: frozenset[int] = frozenset(),
    decision: np.dtype | None = None,
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
        masks = jax.tree.leaves(legal)
        if any(isinstance(mask, Tracer) for mask in masks):
            traced += map(jnp.asarray, masks)
        elif not all(map(_holds, masks)):
            _refuse_rows(need, part, legal, start)
    if part.weight is not None:
        light = part.weight >= 0
        if is_traced(light):
            traced.append(light)
        elif not np.all(light):
            where, value = first_of(~light, part.weight, start, "row")
            raise RefusedValue(f"rounds.weight must be non-negative, got {value}{where}.")
    decision = widest_float(params) if decision is None else decision
    if not skip and are_surely_finite(jax.tree.leaves(part), decision):
        return traced
    for number, (path, leaf) in enumerate(jax.tree_util.tree_leaves_with_path(part)):
        if number not in skip and not is_traced(leaf):
            known = path[0].name in told
            check_finite(_Name(path), leaf, start, decision=decision, told=known)
    return traced


def refuse_unknown(
    needs: list[tuple[Need, PyTree]],
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
                raise RefusedValue(f"{need.owner}: {said}.")


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


def _holds(mask: Any) -> bool:
    return bool(mask.all() if type(mask) is np.ndarray else np.all(mask))  # which takes longer


def _refuse_rows(need: Need, part: Rounds, legal: PyTree, start: int) -> None:
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
            raise RefusedValue(f"{need.owner}: {need.demand}, {seen}{remedy_of(need)}.")


def remedy_of(need: Need) -> str:
    return f"; {need.remedy}" if need.remedy else ""


_FRAME = "`olx.streams.from_frame(frame, target=...)` makes rounds of a table"
_ORDER = "The order is (learner, loss, rounds, params)"
_ARRAYS = "put arrays into `olx.Rounds(contexts, outcomes)`, one row per round"


def refuse(given: object) -> NoReturn:
    """Refuse what is given in place of `rounds`."""
    seen = type(given).__name__
    raise RefusedType(f"`rounds` must be a Rounds, got {seen}; {_remedy(given)}.")


def refuse_piece(piece: object) -> NoReturn:
    """Refuse what an iterable gives in place of `Rounds`."""
    if isinstance(piece, tuple) and len(piece) == 2 and is_array(piece[0]):
        remedy = (
            "stack the pairs, as `olx.Rounds(np.stack(rows), np.array(outcomes))`, or play one "
            "round at a time with `olx.step`"
        )
    else:
        remedy = _remedy(piece)
    seen = type(piece).__name__
    raise RefusedType(f"`rounds` must be a Rounds, got {seen} in an iterable; {remedy}.")


_SPARSE = "`olx.streams.sparse_rows(matrix)` makes sparse rows of it"


def refuse_stranger(name: object, leaf: object, remedy: str = _SPARSE) -> None:
    """Refuse a part of the rounds that is a table or a SciPy matrix, which no driver can cut.

    remedy: what to do with a SciPy matrix.
    """
    if isinstance(leaf, np.ndarray | jax.Array | SparseRows):
        return
    if is_frame(leaf):
        raise RefusedType(
            f"{name} is a {type(leaf).__name__}; give its numbers, as `frame.to_numpy()`, "
            f"or the whole table: {_FRAME}."
        )
    if hasattr(leaf, "tocsr"):
        raise RefusedType(f"{name} is a SciPy {type(leaf).__name__}; {remedy}.")


def is_array(thing: object) -> bool:
    return hasattr(thing, "shape") and hasattr(thing, "dtype")


def is_frame(thing: object) -> bool:
    """Whether it is a table, of pandas, polars, pyarrow or of another library with a protocol."""
    spoken = any(hasattr(thing, protocol) for protocol in _PROTOCOLS)
    return hasattr(thing, "__dataframe__") or (spoken and not is_array(thing))


_PROTOCOLS = ("__arrow_c_stream__", "__narwhals_dataframe__", "collect_schema")


def _remedy(given: object) -> str:
    if is_frame(given):
        return _FRAME
    if isinstance(given, Stream):
        return "give its rounds alone, as in `rounds, truth = olx.streams.linear_regression(...)`"
    if hasattr(given, "tocsr"):
        return "give `olx.Rounds(olx.streams.sparse_rows(matrix), outcomes)`"
    if isinstance(given, str | os.PathLike):
        return f"read the file first; {_FRAME}, `olx.streams.read_svmlight` reads svmlight"
    if isinstance(given, Learner) or callable(given):
        return f"are `loss` and `rounds` swapped? {_ORDER}"
    return _ARRAYS


def check_kind(name: object, leaf: Any) -> None:
    """Refuse arrays that are masked or do not hold real numbers. `name` is shown in the message."""
    refuse_masked(name, leaf)
    kind = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    letter = getattr(kind, "kind", "V")
    if letter in "OSUMmc":
        remedy = _LABELS if letter in "OSU" and "outcome" in str(name) else ""
        raise RefusedType(f"{name} holds {kind}; give real numbers{remedy}.")
    if isinstance(kind, np.dtype) and not _is_of_jax(kind):
        raise RefusedType(
            f"{name} holds {kind}, which JAX does not have; cast it, as x.astype(np.float64)."
        )


_LABELS = (
    ": two labels as np.where(labels == 'yes', 1.0, -1.0), classes as np.unique(labels, "
    "return_inverse=True)[1]"
)


@functools.cache
def _is_of_jax(kind: np.dtype) -> bool:
    """Whether JAX has the dtype; it has neither other byte orders nor 128 bits."""
    known = kind.kind in "biu" or (kind.kind == "f" and kind.itemsize <= 8)
    return kind.isnative and (known or (kind.kind == "V" and jnp.issubdtype(kind, jnp.number)))


def refuse_masked(name: object, leaf: object) -> None:
    if isinstance(leaf, np.ma.MaskedArray):
        raise RefusedType(
            f"{name} is a masked array, whose mask would be lost; fill it, or drop the masked rows."
        )
