"""Theorems about a game, as folds over its rounds.

A theorem keeps one account. The account starts from the first state, every round adds to it, and
both sides of the inequality are computed from it. A theorem uses only what a learner sees of a
round. So it runs inside the engine, on any stream, in a sweep, and on a recorded run. Rounds of
weight zero are skipped.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Int, PyTree

from olx import _check as check
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, own_name
from olx.certificate import Certificate, SoFar

ROWS = "`u` must have a row for every round"


class About(NamedTuple):
    """The learners that a theorem is about, in words and as a test of a learner."""

    learners: str
    test: Callable[[Any], bool]


@pytree
class Theorem:
    """An inequality about the game of a learner, as a fold over its rounds.

    `u` is the comparator, and `state` is the one before the update of the round. The functions
    live at module level; a `Partial` binds numbers, such as a margin, to them.
    `olx.theorem.summed` makes a theorem whose account is a sum.

    about: the learners it is about; None if they carry it.
    sequence: whether `u` has a leading axis of rounds. The functions get the row of the round.
    """

    name: str = static()  # a short name, unique among the theorems of a learner
    source: str = static()  # who proved it, and where
    init_fn: Callable[..., PyTree]  # (hparams, first state, u) -> account
    add_fn: Callable[..., PyTree]  # (hparams, account, state, feedback, u) -> account
    sides_fn: Callable[..., PyTree]  # (hparams, account, u) -> Certificate, one number per side
    about: About | None = static(default=None, kw_only=True)
    sequence: bool = static(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for part in ("init_fn", "add_fn", "sides_fn"):
            if callable(function := getattr(self, part)):  # JAX may fill records with anything
                object.__setattr__(self, part, as_tree(function))


class Ledger(NamedTuple):
    """The accounts of some theorems, and both sides of each after the rounds so far.

    Theorems with the same functions of the account, such as the corollaries of a lemma, have one
    account. It is computed and carried once.
    """

    accounts: tuple[PyTree, ...]
    round: Int[Array, ""]  # the number of rounds so far
    begun: Bool[Array, ""]  # whether one of them had a positive weight
    finite: Bool[Array, ""]  # whether all actions and losses were finite
    sides: tuple[Certificate, ...]  # 0 <= 0 before the first round of positive weight


def summed(
    name: str,
    source: str,
    terms: Callable[..., PyTree],
    sides: Callable[..., Certificate],
    start: Callable[..., PyTree],
    *,
    about: About | None = None,
    sequence: bool = False,
) -> Theorem:
    """A theorem whose account is a sum over the rounds.

    terms: `(hparams, state, feedback, u) -> terms` of a round, most often in a `NamedTuple`.
        Numbers are added. A Boolean is a condition, which must be met in every round. `largest(x)`,
        `smallest(x)` and `latest(x)` keep one `x` of all rounds. The number 0.0 changes nothing.
    sides: `(hparams, sums, u) -> Certificate`.
    start: `(hparams, state, u) -> sums` before the first round: `ZERO` for a sum, `MET` for a
        condition, or any value.
    """
    first, add = Partial(_first_sums, as_tree(start)), Partial(_add_terms, as_tree(terms))
    return Theorem(name, source, first, add, sides, about=about, sequence=sequence)


ZERO: Any = 0.0  # in the dtype of `u`, or of the state if `u` has no numbers
MET: Any = True


class _Kept(NamedTuple):
    keep: Callable[..., PyTree]
    value: Array


def largest(value: Array) -> Any:
    """A term of `summed` that is kept if it is larger than all before."""
    return _Kept(jnp.maximum, value)


def smallest(value: Array) -> Any:
    """A term of `summed` that is kept if it is smaller than all before."""
    return _Kept(jnp.minimum, value)


def latest(value: Array) -> Any:
    """A term of `summed` that replaces the one before."""
    return _Kept(_last, value)


def _last(so_far: Array, value: Array) -> Array:
    return jnp.broadcast_to(jnp.asarray(value, so_far.dtype), so_far.shape)


def _first_sums(start: Partial, hparams: PyTree, state: PyTree, u: PyTree) -> PyTree:
    return first_sums(start(hparams, state, u), (u, state))


def first_sums(sums: PyTree, like: PyTree) -> PyTree:
    """The sums of `summed` before the first round, in the dtype of the first reals of `like`."""
    real = [leaf for leaf in jax.tree.leaves(like) if _is_real(leaf)]
    kind = jnp.result_type(real[0] if real else float)
    as_array = lambda leaf: jnp.asarray(leaf, kind if isinstance(leaf, float) else None)
    return jax.tree.map(as_array, sums)


def _add_terms(
    terms: Partial, hparams: PyTree, sums: PyTree, state: PyTree, feedback: object, u: PyTree
) -> PyTree:
    new = terms(hparams, state, feedback, u)
    try:
        return add_terms(sums, new)
    except (AttributeError, ValueError):  # of trees that do not fit; `advance` says so
        return new


def add_terms(sums: PyTree, terms: PyTree) -> PyTree:
    """The sums of `summed` after one more round."""
    return jax.tree.map(_joined, terms, sums, is_leaf=lambda leaf: isinstance(leaf, _Kept))


def _joined(term: Any, so_far: Any) -> Any:
    if isinstance(term, float) and term == 0.0:
        return so_far
    if isinstance(term, _Kept):
        return term.keep(so_far, term.value)
    return so_far & term if jnp.asarray(term).dtype == so_far.dtype == bool else so_far + term


def check_carried(theorems: object) -> None:
    """Refuse what a learner cannot carry."""
    if isinstance(theorems, Theorem):
        raise TypeError(
            f"Learner: `theorems` must be a tuple, got the theorem `{theorems.name}`; give "
            "`theorems=(one,)`."
        )
    for one in theorems if isinstance(theorems, tuple | list) else ():
        if isinstance(one, tuple) or callable(one):
            with own_name("Learner"):
                check.instance("theorems", one, Theorem)


def is_about(one: Theorem, learner: Any) -> bool:
    """Whether a theorem is about a learner: it says so, or the learner carries it."""
    if one.about is not None:
        return one.about.test(learner)
    shape = jax.tree.structure(one)
    return any(jax.tree.structure(own) == shape for own in learner.theorems)


def start(theorems: tuple[Theorem, ...], hparams: PyTree, state: PyTree, u: PyTree) -> Ledger:
    """The ledger before the first round, from the first state."""
    found, places = [], _accounts(theorems)
    for one, place in zip(theorems, places, strict=True):
        if place == len(found):
            account = one.init_fn(hparams, state, _comparator(one, u, 0))
            found.append(jax.tree.map(jnp.asarray, account))
    sides = tuple(
        _first_sides(one, hparams, found[place], _comparator(one, u, 0))
        for one, place in zip(theorems, places, strict=True)
    )
    none, true = jnp.zeros((), bool), jnp.ones((), bool)
    return Ledger(tuple(found), jnp.zeros((), jnp.uint32), none, true, sides)


def _first_sides(one: Theorem, hparams: PyTree, account: PyTree, u: PyTree) -> Certificate:
    sides = jax.eval_shape(functools.partial(_sides_of, one), hparams, account, u)
    sides = _empty(one, dataclasses.replace(sides, finite=jax.ShapeDtypeStruct((), bool)))
    if one.sequence:
        sides = sides.given(ROWS, True)
    return dataclasses.replace(sides, so_far=SoFar.none(sides))


def advance(
    theorems: tuple[Theorem, ...],
    hparams: PyTree,
    ledger: Ledger,
    state: PyTree,
    feedback: Any,
    u: PyTree,
) -> Ledger:
    """The ledger after one more round; `state` is the state before the update of that round."""
    accounts: list[PyTree] = []
    places = _accounts(theorems)
    for one, place in zip(theorems, places, strict=True):
        if place == len(accounts):
            now, account = _comparator(one, u, ledger.round), ledger.accounts[place]
            accounts.append(_account_after(one, hparams, account, state, feedback, now))
    counts = jnp.asarray(feedback.weight) != 0
    finite = ledger.finite & (_is_finite((feedback.action, feedback.value)) | ~counts)
    new = Ledger(tuple(accounts), ledger.round + 1, ledger.begun | counts, finite, ledger.sides)
    each = zip(theorems, places, ledger.sides, strict=True)
    sides = (_sides_after(one, hparams, accounts[place], old, new, u) for one, place, old in each)
    return new._replace(sides=tuple(sides))


def _accounts(theorems: tuple[Theorem, ...]) -> list[int]:
    """For each theorem the place of its account; one that binds numbers has an account of its own.

    A number may be another object in every call, so numbers cannot tell accounts apart.
    """
    keys = []
    for place, one in enumerate(theorems):
        leaves, structure = jax.tree.flatten((one.init_fn, one.add_fn))
        keys.append((structure, one.sequence, place if leaves else None))
    each = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return [each[key] for key in keys]


def _account_after(
    one: Theorem, hparams: PyTree, account: PyTree, state: PyTree, feedback: Any, u: PyTree
) -> PyTree:
    added = one.add_fn(hparams, account, state, feedback, u)
    _check_account(one, account, added)
    counts = jnp.asarray(feedback.weight) != 0
    return jax.tree.map(lambda new, old: jnp.where(counts, new, old), added, account)


def _sides_after(
    one: Theorem, hparams: PyTree, account: PyTree, before: Any, now: Ledger, rows: PyTree
) -> Certificate:
    """Both sides after a round.

    now: the ledger after the round. rows: the comparator, or those of every round.
    """
    past = now.round - 1
    sides = _sides_of(one, hparams, account, _comparator(one, rows, past))
    sides = dataclasses.replace(sides, finite=now.finite)
    if one.sequence:
        sides = sides.given(ROWS, past < jax.tree.leaves(rows)[0].shape[0])
    sides = jax.tree.map(
        lambda *both: jnp.where(now.begun, *both), _named(one, sides), _empty(one, sides)
    )
    return dataclasses.replace(sides, so_far=before.so_far.after(now.round, sides))


def _check_account(one: Theorem, before: PyTree, after: PyTree) -> None:
    """Refuse an account whose structure, shapes or dtypes a round changed."""
    if jax.tree.structure(before) != jax.tree.structure(after):
        raise RefusedType(
            f"a round changed the account of `{one.name}` from {_kinds(before)} to "
            f"{_kinds(after)}; return the same record at the start and from every round."
        )
    leaves = zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True)
    for (path, old), new in leaves:
        if _kind(old) != _kind(new):
            where, start = (
                jax.tree_util.keystr(path),
                f"{np.shape(new)}, jnp.{jnp.result_type(new)}",
            )
            raise RefusedType(
                f"a round changed account{where} of `{one.name}` from {_kind(old)} to "
                f"{_kind(new)}; start it as jnp.zeros({start}), or cast what is added."
            )


def _sides_of(one: Theorem, hparams: PyTree, account: PyTree, u: PyTree) -> Certificate:
    """Both sides; refuses all but a certificate of single numbers."""
    sides = one.sides_fn(hparams, account, u)
    if not isinstance(sides, Certificate):
        raise RefusedType(
            f"the sides of `{one.name}` must be a Certificate, got "
            f"{check.seen_as(sides)}; return `olx.Certificate(left, right, scale)`."
        )
    numbers = {"left": sides.left, "right": sides.right, "scale": sides.scale}
    numbers |= {} if sides.published is None else {"published": sides.published}
    for name, number in numbers.items():
        if not _is_real(number) or jnp.ndim(number):
            raise RefusedType(
                f"`{name}` of `{one.name}` must be one real number, got {_kinds(number)}; "
                "sum over coordinates, start at 0.0, and count with jnp.where(met, 1.0, 0.0)."
            )
    for condition, met in sides.conditions.items():
        if _kinds(met) != "bool[]":
            raise RefusedType(
                f"the condition {condition!r} of `{one.name}` must be one Boolean, got "
                f"{_kinds(met)}; use jnp.all."
            )
    numbers = {name: jnp.asarray(number) for name, number in numbers.items()}
    return dataclasses.replace(sides, **numbers)


def _kinds(tree: PyTree) -> str:
    """The dtypes and shapes of a tree, in words."""
    return str(jax.tree.map(_kind, tree)).replace("'", "")


def _kind(leaf: object) -> str:
    if not isinstance(leaf, bool | int | float | np.ndarray | np.generic | jax.Array):
        return check.seen_as(leaf)
    return f"{jnp.result_type(leaf)}[{','.join(map(str, jnp.shape(leaf)))}]"


def _is_real(leaf: object) -> bool:
    is_number = isinstance(leaf, float | np.ndarray | np.generic | jax.Array)
    return is_number and jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


def _is_finite(tree: PyTree) -> Bool[Array, ""]:
    parts = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree) if _is_real(leaf)]
    return jnp.all(jnp.stack(parts))


def _comparator(one: Theorem, u: PyTree, now: object) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[now], u) if one.sequence else u


def _named(one: Theorem, sides: Certificate) -> Certificate:
    return dataclasses.replace(sides, name=one.name, theorem=one.source)


def _empty(one: Theorem, sides: Certificate) -> Certificate:
    """The same certificate with sides of 0 and all conditions met."""
    empty = lambda leaf: jnp.full(leaf.shape, leaf.dtype == bool, leaf.dtype)
    return jax.tree.map(empty, _named(one, sides))
