r"""A theorem about a game, as a fold over its rounds in the memory of one account.

An account starts from the first state, every round adds to it, and both sides of the inequality
are computed from it. A theorem uses only what a learner sees of a round. So it runs inside the
engine, on any stream, in a sweep, and on a recorded run. Rounds of weight zero are skipped.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Int, PyTree

from olx._pytree import as_tree, pytree, static
from olx.certificate import Certificate, SoFar

ROWS = "`u` must have a row for every round"


class About(NamedTuple):
    """The learners that a theorem is about, in words and as a test of a learner."""

    learners: str
    test: Callable[[Any], bool]


@pytree
class Theorem:
    """An inequality about the game of a learner. Make one with `theorem`.

    `u` is the comparator. All functions live at module level.
    """

    name: str = static()  # a short name, unique among the theorems of a learner
    source: str = static()  # who proved it, and where
    init_fn: Partial  # (hparams, first state, u) -> account
    add_fn: Partial  # (hparams, account, state before the update, feedback, u) -> account
    sides_fn: Partial  # (hparams, account, u) -> Certificate, one number per side
    about: About | None = static(default=None)  # None: the learners that carry it
    sequence: bool = static(default=False)  # whether `u` has one comparator per round


class Ledger(NamedTuple):
    """The account of a theorem, and both sides after the rounds so far."""

    account: PyTree
    round: Int[Array, ""]  # the number of rounds so far
    begun: Bool[Array, ""]  # whether one of them had a positive weight
    sides: Certificate  # 0 <= 0 before the first round of positive weight


@pytree
class View:
    """How a wrapped learner sees the game of the learner that wraps it."""

    learner_fn: Callable[..., Any] = static()  # (hparams) -> the wrapped learner
    state_fn: Callable[..., Any] = static()  # (state) -> its state
    feedback_fn: Callable[..., Any] = static()  # (hparams, state, feedback) -> its feedback
    beyond_fn: Callable[..., Any] | None = static(default=None)  # see `through`


def theorem(
    name: str,
    source: str,
    init: Callable[..., Any],
    add: Callable[..., Any],
    sides: Callable[..., Certificate],
    *,
    about: About | None = None,
    sequence: bool = False,
) -> Theorem:
    """A theorem from its three functions; a `Partial` binds numbers, such as a margin, to them.

    about: the learners it is about; None if they carry it.
    sequence: whether `u` has a leading axis of rounds. The functions get the row of the round.
    """
    return Theorem(name, source, as_tree(init), as_tree(add), as_tree(sides), about, sequence)


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
    sides = jax.eval_shape(one.sides_fn, hparams, account, u)
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
    account = jax.tree.map(lambda new, old: jnp.where(counts, new, old), added, ledger.account)
    begun, now = ledger.begun | counts, ledger.round + 1
    sides = one.sides_fn(hparams, account, u)
    finite = before.finite & (_is_finite((feedback.action, feedback.value)) | ~counts)
    sides = dataclasses.replace(sides, finite=finite)
    if one.sequence:
        sides = sides.given(ROWS, ledger.round < jax.tree.leaves(rows)[0].shape[0])
    sides = jax.tree.map(
        lambda *both: jnp.where(begun, *both), _named(one, sides), _empty(one, sides)
    )
    sides = dataclasses.replace(sides, so_far=before.so_far.after(now, sides))
    return Ledger(account, now, begun, sides)


def _is_finite(tree: PyTree) -> Bool[Array, ""]:
    is_real = lambda leaf: jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    parts = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree) if is_real(leaf)]
    return jnp.all(jnp.stack(parts))


def _comparator(one: Theorem, u: PyTree, now: Any) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[now], u) if one.sequence else u


def _named(one: Theorem, sides: Certificate) -> Certificate:
    return dataclasses.replace(sides, name=one.name, theorem=one.source)


def _empty(one: Theorem, sides: Certificate) -> Certificate:
    """The same certificate with sides of 0 and all conditions met."""
    empty = lambda leaf: jnp.full(leaf.shape, leaf.dtype == bool, leaf.dtype)
    return jax.tree.map(empty, _named(one, sides))


def through(view: View, one: Theorem) -> Theorem:
    """The same theorem, about the learner that wraps the one it is about.

    The feedback of the wrapped learner may hold its own action, which is computed again. Then
    `view.beyond_fn`, of (hparams, feedback, its feedback), says what the action that was played
    costs beyond that one: 0 for the right learner. It is added to the left side.
    """
    init, add, sides = (Partial(part, view, one) for part in (_init, _add, _sides))
    return Theorem(one.name, one.source, init, add, sides, sequence=one.sequence)


def _init(view: View, one: Theorem, hparams: PyTree, state: PyTree, u: PyTree) -> PyTree:
    account = one.init_fn(view.learner_fn(hparams).hparams, view.state_fn(state), u)
    if view.beyond_fn is None:
        return account
    left = jax.eval_shape(lambda: _sides(INNER, one, hparams, account, u).left)
    return account, jnp.zeros((), left.dtype)


def _add(view: View, one: Theorem, hparams, account, state, feedback, u) -> PyTree:
    inner, own = view.learner_fn(hparams).hparams, view.feedback_fn(hparams, state, feedback)
    if view.beyond_fn is None:
        return one.add_fn(inner, account, view.state_fn(state), own, u)
    account, beyond = account
    more = view.beyond_fn(hparams, feedback, own).astype(beyond.dtype)
    return one.add_fn(inner, account, view.state_fn(state), own, u), beyond + more


def _sides(view: View, one: Theorem, hparams: PyTree, account: PyTree, u: PyTree) -> Certificate:
    if view.beyond_fn is None:
        return one.sides_fn(view.learner_fn(hparams).hparams, account, u)
    account, beyond = account
    sides = one.sides_fn(view.learner_fn(hparams).hparams, account, u)
    return dataclasses.replace(sides, left=sides.left + beyond)


def _inner(hp: Any) -> Any:
    return hp.inner


def _inner_state(state: Any) -> PyTree:
    return state.inner


def _same(hp: Any, state: PyTree, feedback: Any) -> Any:
    return feedback


INNER = View(_inner, _inner_state, _same)  # for a wrapper that passes its feedback to `inner`
