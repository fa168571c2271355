"""What is known of a learner, as knowledge about the learner that wraps it.

A `WrapperView` says how the wrapped learner sees the game: where it and its state are, which parts
of the data reach it unchanged, and its feedback. Needs, theorems and the refresh are lifted from
that. Needs about a part that the wrapper changes are not: the data may be anything there that the
wrapper takes.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import PyTree

from olx._pytree import pytree, static
from olx._refusal import RefusedType
from olx.certificate import Certificate
from olx.facts import Decision, Refresh
from olx.needs import PARTS, Need
from olx.theorem import ZERO, Theorem, first_sums


def _same(hparams: PyTree, state: PyTree, feedback: object) -> PyTree:
    return feedback


@pytree
class WrapperView:
    """How a learner, or a loss, that another learner wraps sees the game.

    field: of the hparams of the wrapper, which holds it; None if it is the hparams.
    index: its place, if that field is a tuple.
    stacked: whether it is a batch of learners; each of them must be able to start.
    state: the field of the state of the wrapper with its state; None if it is the same state.
    parts: those parts of the data that it sees as they are.
    start_fn: of `params`; the zeros at which it starts, if it does not start at `params`.
    feedback_fn: of (hparams, state, feedback); its feedback.
    beyond_fn: see `lift_theorem`.
    """

    field: str | None = static(default="inner")
    index: int | None = static(default=None)
    stacked: bool = static(default=False)
    state: str | None = static(default="inner")
    parts: tuple[str, ...] = static(default=PARTS)
    start_fn: Callable[[PyTree], PyTree] | None = static(default=None)
    feedback_fn: Callable[..., PyTree] = static(default=_same)
    beyond_fn: Callable[..., PyTree] | None = static(default=None)

    def inner(self, hparams: Any) -> Any:
        found = hparams if self.field is None else getattr(hparams, self.field)
        return found if self.index is None else found[self.index]

    def inner_state(self, state: PyTree) -> PyTree:
        return state if self.state is None else getattr(state, self.state)

    def with_inner_state(self, state: Any, inner: PyTree) -> PyTree:
        return inner if self.state is None else state._replace(**{self.state: inner})


INNER = WrapperView()  # passes everything on
OUTCOME = WrapperView(parts=("outcome",))  # for a learner of outcomes that chooses its own inputs
LOSS = WrapperView("loss", parts=("outcome",))  # a loss that the learner plays by itself


class _Legal(NamedTuple):
    """The `legal_fn` of a wrapped learner, as a function of the hparams of the wrapper."""

    view: WrapperView
    legal_fn: Callable[..., PyTree]

    def __call__(self, hparams: PyTree, params: PyTree, rounds: object) -> PyTree:
        inner = self.view.inner(hparams)
        if self.view.start_fn is not None:
            params = self.view.start_fn(params)
        if not self.view.stacked or rounds is not None:
            return self.legal_fn(inner.hparams, params, rounds)
        each = jax.vmap(lambda hp: jnp.asarray(self.legal_fn(hp, params, None)))
        return jnp.all(each(inner.hparams))


def lift_needs(view: WrapperView, inner: Any) -> tuple[Need, ...]:
    """The needs of `inner` about the parts that it sees, as needs of the wrapper."""
    needs = [one._replace(legal_fn=_Legal(view, one.legal_fn)) for one in inner.needs]
    if view.start_fn is not None:
        needs = [one._replace(remedy=_AT_ZERO) if one.where == "params" else one for one in needs]
    return tuple(one for one in needs if one.where in view.parts)


_AT_ZERO = "here that learner starts at 0, whatever `params` are; take one that can"


def decide_alone(inner: Any, state: PyTree, example: str) -> PyTree:
    """The decision of a learner without a context; refuses one that needs a context for it."""
    try:
        return inner.predict(state)
    except (TypeError, ValueError, AttributeError) as error:
        raise RefusedType(
            f"`inner` must decide without a context, got {inner!r}; give a learner of points and "
            f"make the result linear, as in `olx.linear({example})`."
        ) from error


class _OfInner(NamedTuple):
    """A function of a view and the wrapped learner, as a function of the hparams of the wrapper."""

    view: WrapperView
    function: Callable[..., PyTree]

    def __call__(self, hparams: PyTree, *given: PyTree) -> PyTree:
        return self.function(self.view, self.view.inner(hparams), *given)


def lift_refresh(view: WrapperView, inner: Any) -> Refresh | None:
    """The refresh of `inner`, for a wrapper that plays `olx.core.without_refresh(inner)`."""
    if inner.facts.refresh is None:
        return None
    return Refresh(_OfInner(view, _due), _OfInner(view, _refreshed), _OfInner(view, _sums))


def _due(view: WrapperView, inner: Any, state: PyTree) -> Any:
    return inner.facts.refresh.due_fn(inner.hparams, view.inner_state(state))


def _sums(view: WrapperView, inner: Any, state: PyTree) -> PyTree:
    return inner.facts.refresh.sums(inner.hparams, view.inner_state(state))


def _refreshed(view: WrapperView, inner: Any, state: PyTree, sums: PyTree) -> PyTree:
    new = inner.facts.refresh.apply_fn(inner.hparams, view.inner_state(state), sums)
    return view.with_inner_state(state, new)


def lift_decision(view: WrapperView, inner: Any) -> Decision | None:
    """The decision of `inner`, for a wrapper that plays its actions."""
    own = inner.facts.decision
    if own is None:
        return None
    decide, act = _OfInner(view, _decided), _OfInner(view, _played)
    return Decision(decide, act, _PartOfInner(view, own.part_fn))


class _PartOfInner(NamedTuple):
    """A function of the state of the wrapped learner, as a function of that of the wrapper."""

    view: WrapperView
    part_fn: Callable[[PyTree], PyTree]

    def __call__(self, state: PyTree) -> PyTree:
        return self.part_fn(self.view.inner_state(state))


def _decided(view: WrapperView, inner: Any, state: PyTree) -> PyTree:
    return inner.facts.decision.decision_fn(inner.hparams, view.inner_state(state))


def _played(view: WrapperView, inner: Any, w: PyTree, context: PyTree) -> PyTree:
    return inner.facts.decision.action_fn(inner.hparams, w, context)


def lift_theorems(view: WrapperView, inner: Any) -> tuple[Theorem, ...]:
    """The theorems of `inner`, about the wrapper."""
    return tuple(lift_theorem(view, one) for one in inner.theorems)


def lift_theorem(view: WrapperView, one: Theorem) -> Theorem:
    """The same theorem, about the learner that wraps the one it is about.

    The feedback of the wrapped learner may hold its own action, which is computed again. Then
    `view.beyond_fn`, of (hparams, feedback, its feedback), says what the action that was played
    costs beyond that one: 0 for the right learner. It is added to the left side.
    """
    # Theorems of one account must stay so: its functions bind nothing else of the theorem.
    fold = Theorem("", "", one.init_fn, one.add_fn, one.add_fn)
    init, add = Partial(_init, view, fold), Partial(_add, view, fold)
    sides = Partial(_sides, view, one)
    return Theorem(one.name, one.source, init, add, sides, sequence=one.sequence)


def _init(view: WrapperView, one: Theorem, hparams: PyTree, state: PyTree, u: PyTree) -> PyTree:
    account = one.init_fn(view.inner(hparams).hparams, view.inner_state(state), u)
    return account if view.beyond_fn is None else (account, first_sums(ZERO, (u, state)))


def _add(view: WrapperView, one: Theorem, hparams, account, state, feedback, u) -> PyTree:
    inner, own = view.inner(hparams).hparams, view.feedback_fn(hparams, state, feedback)
    if view.beyond_fn is None:
        return one.add_fn(inner, account, view.inner_state(state), own, u)
    account, beyond = account
    more = view.beyond_fn(hparams, feedback, own).astype(beyond.dtype)
    return one.add_fn(inner, account, view.inner_state(state), own, u), beyond + more


def _sides(
    view: WrapperView, one: Theorem, hparams: PyTree, account: PyTree, u: PyTree
) -> Certificate:
    inner = view.inner(hparams).hparams
    if view.beyond_fn is None:
        return one.sides_fn(inner, account, u)
    account, beyond = account
    sides = one.sides_fn(inner, account, u)
    return dataclasses.replace(sides, left=sides.left + beyond)
