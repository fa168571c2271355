"""Theorems about a game, as folds over its rounds, and certificates: both sides after every round.

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
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Int, PyTree

from olx import _check as check
from olx import _numeric as safe
from olx._pytree import as_tree, pytree, static
from olx._refusal import RefusedType, own_name

DOMAIN = "`u` must lie in the domain"
UNIT_WEIGHTS = "weights must be 0 or 1"
DIVERGED = "the run diverged"
REMEDY = "take smaller steps, or scale the data"


class SoFar(NamedTuple):
    """A summary of a certificate over all rounds so far, also those that were not kept."""

    failed: Int[Array, ""]  # the first round after which an inequality failed; 0 if none did
    diverged: Int[Array, ""]  # the first round with a number that is not finite; 0 if none
    slack: Float[Array, ""]  # the smallest slack
    slackest: Int[Array, ""]  # the round after which the slack was smallest
    tightness: Float[Array, ""]  # the largest left / right
    broken: dict[str, Int[Array, ""]]  # the first round that broke each condition; 0 if none did

    @property
    def reasons(self) -> dict[str, int]:
        """The conditions that were broken before the run diverged, each with its first round."""
        end = int(self.diverged) or float("inf")
        return {name: int(at) for name, at in self.broken.items() if 0 < int(at) <= end}

    @classmethod
    def none(cls, sides: Any) -> "SoFar":
        """The summary before the first round, in the dtypes of `sides`."""
        none, most = jnp.zeros((), jnp.uint32), jnp.asarray(jnp.inf, sides.left.dtype)
        return cls(none, none, most, none, -most, dict.fromkeys(sides.conditions, none))

    def after(self, now: Int[Array, ""], sides: "Certificate") -> "SoFar":
        """The summary after round number `now`."""
        first = lambda seen, bad: jnp.where((seen == 0) & bad, now, seen)
        slack, ratio = sides._while_finite
        least = (slack < self.slack) | (self.slackest == 0)
        return SoFar(
            first(self.failed, sides.fails),
            first(self.diverged, sides.diverged),
            jnp.where(least, slack, self.slack),
            jnp.where(least, now, self.slackest),
            jnp.maximum(self.tightness, ratio),
            {name: first(self.broken[name], bad) for name, bad in sides._broken.items()},
        )


@pytree
class Certificate:
    """Both sides of a theorem after every round. The theorem says `left <= right <= published`.

    Inside a `Theorem` the sides are those after one round. The certificates of `olx.certify` have
    an axis of rounds.

    scale: the size of the numbers in both sides; it separates rounding errors from violations.
    published: the right side in the looser form of the source, with norms; None if the geometry
        is not known or the source has no looser form.
    conditions: for each condition of the theorem, by name, whether all rounds so far met it.
        Where one is broken, the theorem says nothing and the right sides are infinite. See `given`.
    finite: whether all actions and losses so far are finite; None if only both sides are known.
    at: the numbers of the rounds, if only some were kept.
    so_far: the summary over all rounds, also those that were not kept.
    """

    left: Float[Array, "*T"]
    right: Float[Array, "*T"]
    scale: Float[Array, "*T"]
    published: Float[Array, "*T"] | None = None
    name: str = static(default="")
    theorem: str = static(default="")
    conditions: dict[str, Bool[Array, "*T"]] = dataclasses.field(default_factory=dict)
    finite: Bool[Array, "*T"] | None = None
    at: Int[Array, " T"] | None = None
    so_far: SoFar | None = None

    def given(self, condition: str, met: Any) -> "Certificate":
        """Add a condition; the right sides are infinite where it is broken.

        condition: a demand, as in "gradients must be at most 1".
        met: whether each round meets it; inside a `Theorem`, whether all rounds so far do.
        """
        met = jnp.broadcast_to(met, jnp.shape(self.left))
        if met.ndim:
            met = jnp.cumsum(~met, axis=-1) == 0
        if condition in self.conditions:
            met &= self.conditions[condition]
        only = lambda side: None if side is None else jnp.where(met, side, jnp.inf)
        return dataclasses.replace(
            self,
            right=only(self.right),
            published=only(self.published),
            conditions=self.conditions | {condition: met},
        )

    def under(self, conditions: dict[str, Bool[Array, " T"]]) -> "Certificate":
        """Add several conditions, such as those of the theorems that this one follows from."""
        proof = self
        for condition, met in conditions.items():
            proof = proof.given(condition, met)
        return proof

    @property
    def slack(self) -> Float[Array, " T"]:
        """Right side minus left side; infinite if the right side is, unless the left is NaN."""
        free = jnp.isposinf(self.right) & ~jnp.isnan(self.left)
        return jnp.where(free, jnp.inf, self.right - jnp.where(free, 0.0, self.left))

    @property
    def diverged(self) -> Bool[Array, "*T"]:
        """Whether the run has diverged: an action or a loss so far is not finite, or a side is NaN.

        From there on the theorem says nothing, and it does not hold.
        """
        bad = jnp.isnan(self.left) | jnp.isnan(self.right)
        if self.published is not None:
            bad |= jnp.isnan(self.published)
        if self.finite is not None:
            bad |= ~self.finite
        return jnp.cumsum(bad, axis=-1) > 0 if bad.ndim else bad

    @property
    def _broken(self) -> dict[str, Bool[Array, "*T"]]:
        """Whether a condition is broken, by name; a number that is not finite breaks any."""
        played = True if self.finite is None else self.finite
        return {name: ~met & played for name, met in self.conditions.items()}

    @property
    def _while_finite(self) -> tuple[Array, Array]:
        """Slack and ratio, without those of rounds after which the run has diverged."""
        lost = self.diverged
        return jnp.where(lost, jnp.inf, self.slack), jnp.where(lost, 0.0, self.ratio)

    @property
    def fails(self) -> Bool[Array, " T"]:
        """Whether an inequality is violated beyond rounding, after each round.

        False where the theorem says nothing: a condition is broken, or the run has diverged.
        """
        known = jnp.isfinite(self.scale)
        rounding = 64 * jnp.finfo(self.scale.dtype).eps * jnp.where(known, self.scale, 0.0)
        good = self.left <= self.right + rounding
        if self.published is not None:
            good &= self.right <= self.published + rounding
        for met in self.conditions.values():
            good |= ~met
        return ~(good | self.diverged)

    @property
    def ratio(self) -> Float[Array, "*T"]:
        """Left side over right side; 0 unless the right side is positive and finite."""
        usable = (self.right > 0) & jnp.isfinite(self.right)
        return safe.divide(self.left, self.right, 0.0, usable)

    @property
    def summary(self) -> SoFar:
        """The summary over all rounds."""
        if self.so_far is not None:
            return jax.tree.map(lambda leaf: leaf[..., -1], self.so_far)
        first = lambda bad: jnp.where(jnp.any(bad, axis=-1), jnp.argmax(bad, axis=-1) + 1, 0)
        slack, ratio = self._while_finite
        return SoFar(
            first(self.fails),
            first(self.diverged),
            jnp.min(slack, axis=-1),
            jnp.argmin(slack, axis=-1) + 1,
            jnp.max(ratio, axis=-1),
            {name: first(bad) for name, bad in self._broken.items()},
        )

    @property
    def holds(self) -> Array:
        """Whether the inequalities hold after every round, up to rounding; no if it diverged."""
        seen = self.summary
        return (seen.failed == 0) & (seen.diverged == 0)

    @property
    def tightness(self) -> Array:
        """The largest left / right over all rounds; 1 means that the bound is attained."""
        return self.summary.tightness

    def __str__(self) -> str:
        if self.left.ndim != 1 or isinstance(self.left, Tracer):
            return f"{self.theorem}: {self.left.shape}"
        seen, rounds = self.summary, self.left.size if self.at is None else int(self.at[-1])
        verdict = "FAILS after some" if seen.failed else "holds after each"
        said = (
            f"{self.theorem}: {verdict} of {rounds} rounds. "
            f"Last: {self.left[-1]:.4g} <= {self.right[-1]:.4g}; least slack "
            f"{seen.slack:.3g} after round {seen.slackest}; tightness {seen.tightness:.3f}."
        )
        if seen.diverged:
            said = f"{self.theorem}: {DIVERGED} in round {seen.diverged} of {rounds}; {REMEDY}."
        if seen.failed:
            said += f" It fails first after round {seen.failed}."
        for condition, first in seen.reasons.items():
            said += f" It says nothing from round {first} on: {condition}."
        return said


@pytree
class Certificates:
    """One certificate per theorem of a learner, for one run; index it by number or by name."""

    each: tuple[Certificate, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.each)

    @property
    def holds(self) -> Array:
        """Whether all theorems hold after every round."""
        return functools.reduce(jnp.logical_and, [one.holds for one in self.each])

    def __getitem__(self, key: str | int) -> Certificate:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"no theorem of this learner is named {key!r}; it has {self.names}.")
            return self.each[self.names.index(key)]
        return self.each[key]

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __str__(self) -> str:
        return "\n".join(map(str, self.each))


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
    """The account of a theorem, and both sides after the rounds so far."""

    account: PyTree
    round: Int[Array, ""]  # the number of rounds so far
    begun: Bool[Array, ""]  # whether one of them had a positive weight
    sides: Certificate  # 0 <= 0 before the first round of positive weight


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
    except (AttributeError, ValueError):  # of trees that do not fit; `follow` says so
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


def start(one: Theorem, hparams: PyTree, state: PyTree, u: PyTree) -> Ledger:
    """The ledger before the first round, from the first state."""
    u = _comparator(one, u, 0)
    account = jax.tree.map(jnp.asarray, one.init_fn(hparams, state, u))
    sides = jax.eval_shape(functools.partial(_sides_of, one), hparams, account, u)
    sides = _empty(one, dataclasses.replace(sides, finite=jax.ShapeDtypeStruct((), bool)))
    if one.sequence:
        sides = sides.given(ROWS, True)
    sides = dataclasses.replace(sides, so_far=SoFar.none(sides))
    return Ledger(account, jnp.zeros((), jnp.uint32), jnp.zeros((), bool), sides)


def follow(
    one: Theorem, hparams: PyTree, ledger: Ledger, state: PyTree, feedback: Any, u: PyTree
) -> Ledger:
    """The ledger after one more round; `state` is the state before the update of that round."""
    before: Any = ledger.sides
    rows, u = u, _comparator(one, u, ledger.round)
    counts = jnp.asarray(feedback.weight) != 0
    added = one.add_fn(hparams, ledger.account, state, feedback, u)
    _check_account(one, ledger.account, added)
    account = jax.tree.map(lambda new, old: jnp.where(counts, new, old), added, ledger.account)
    begun, now = ledger.begun | counts, ledger.round + 1
    sides = _sides_of(one, hparams, account, u)
    finite = before.finite & (_is_finite((feedback.action, feedback.value)) | ~counts)
    sides = dataclasses.replace(sides, finite=finite)
    if one.sequence:
        sides = sides.given(ROWS, ledger.round < jax.tree.leaves(rows)[0].shape[0])
    sides = jax.tree.map(
        lambda *both: jnp.where(begun, *both), _named(one, sides), _empty(one, sides)
    )
    sides = dataclasses.replace(sides, so_far=before.so_far.after(now, sides))
    return Ledger(account, now, begun, sides)


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
