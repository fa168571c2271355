"""Facts about a learner, most of which let the engine play it faster; `olx.testing` checks them."""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from olx._pytree import pytree, static
from olx._refusal import RefusedType, own_name


@dataclasses.dataclass(frozen=True)
class AddsGradient:
    """A point learner whose state is its decision, one array; an update adds a * gradient."""

    coefficient_fn: Callable[..., PyTree]  # (hparams, feedback) -> a


@dataclasses.dataclass(frozen=True)
class AddsContext:
    """A predictor whose state is one array w and whose score is <w, x>; an update adds a * x.

    If w has a row per class, the score and a are vectors, and row r gets a_r * x.
    """

    coefficient_fn: Callable[..., PyTree]  # (hparams, feedback) -> a
    score_fn: Callable[..., PyTree] | None = None  # (hparams, <w, x>) -> the score, if not <w, x>

    def score(self, hparams: PyTree, product: object) -> PyTree:
        return product if self.score_fn is None else self.score_fn(hparams, product)


@dataclasses.dataclass(frozen=True)
class ShrinksAndAddsContext:
    """A predictor whose state is one array w and whose score is <w, x>; an update shrinks w first.

    It multiplies w by a number, and then adds a * x, where a is that of the score of the new w.
    """

    keep_fn: Callable[..., PyTree]  # (hparams, context) -> the number, which does not depend on w
    coefficient_fn: Callable[..., PyTree]  # (hparams, feedback of the score of keep * w) -> a


@dataclasses.dataclass(frozen=True)
class LeastSquares:
    """A predictor by ridge regression on the rows so far; its state is a `RankOneState`.

    The matrix A of its problem becomes forget * A + weight * x x', and A w becomes
    forget * A w + weight * y x. The score is a function of <w, x> and of x' A^-1 x.
    """

    forget_fn: Callable[..., PyTree]  # hparams -> forget
    score_fn: Callable[..., PyTree]  # (hparams, <w, x>, x' A^-1 x) -> the score
    rows_fn: Callable[..., PyTree]  # (hparams, params) -> the first state, with a row per outcome


@dataclasses.dataclass(frozen=True)
class Separable:
    """A point learner that treats every coordinate alone.

    Entry i of the decision and of the next state depends on entry i of the state, of the context
    and of the gradient, and on numbers that are not per coordinate, such as a clock. These numbers
    do not depend on any coordinate. An update does not change an entry whose gradient is zero.

    keeps_decision: whether, up to rounding, an update does not change the decision of such an entry
        either, and the decision does not read the context. A clock in the decision breaks this.
    """

    keeps_decision: bool = False


@dataclasses.dataclass(frozen=True)
class Rowwise:
    """A learner that is `Separable` but for sums over the coordinates of its row.

    It may use sums over coordinates, such as the score or a norm of the context, if entries where
    the context is zero add nothing to them. A predictor or a point learner.
    """


@dataclasses.dataclass(frozen=True)
class Linear:
    """A predictor whose score is the inner product of the context and a `Separable` decision."""

    inner_fn: Callable[..., PyTree]  # hparams -> the point learner; the state is the state of it


@pytree
class Aggregate:
    """A term per entry of a vector, and an entry for a given term: many entries made one.

    A mirror map gives one if its conjugate is a function of the sum of the terms of a dual, up to a
    constant. Only gradients and `center` may move the dual: the map has no centering and its
    `retract` is the identity, or the aggregate is additive.

    additive: the terms are exponentials, so one number may be subtracted from all entries, and
        decisions stay the same. `log_term` and `entry` are then linear.
    """

    term: Partial  # (entries, level) -> the term of each, divided by exp(level)
    log_term: Partial  # entries -> the logarithm of the term of each; -inf for a term of 0
    entry: Partial  # the logarithm of a term -> an entry with this term
    zero_adds_nothing: bool = static(default=True)  # whether an entry of 0 has a term of 0
    additive: bool = static(default=False)

    def center(self, entries: PyTree) -> PyTree:
        """The entries; if the aggregate is additive, minus one number so that the terms sum to 1.

        Unlike the largest entry, this number is known if many entries are made one.
        """
        if not self.additive:
            return entries
        top = self.entry(logsumexp(self.log_term(ravel_pytree(entries)[0])))
        return jax.tree.map(lambda leaf: leaf - lax.stop_gradient(top), entries)


@dataclasses.dataclass(frozen=True)
class HasAggregate:
    """A learner that uses one sum over all coordinates, such as a norm of its weights.

    Its state is one vector and numbers, or one array with such a vector per row, as for classes. It
    uses the entries of the array where the context is zero only through the sum of their terms over
    all rows, so one entry with this term could replace all of them. An
    update multiplies all these entries by one factor, often 1; if the aggregate is additive, it
    subtracts one number from all of them instead. A predictor or a point learner.
    """

    aggregate_fn: Callable[..., PyTree]  # hparams -> `Aggregate`


@dataclasses.dataclass(frozen=True)
class Refreshed:
    """A learner that is `Rowwise` but for its own `Refresh`."""


@dataclasses.dataclass(frozen=True)
class Refresh:
    """A change of coordinates that a learner makes now and then, after an update.

    An example: the weights are a number times a vector, and the number is multiplied into the
    vector before it becomes too small. `Learner.update` makes the change when it is due, in a round
    of positive weight. Whoever makes it elsewhere, as the engine does outside `jax.vmap`, plays the
    update of `olx.core.without_refresh(learner)`.

    due_fn: it uses only numbers of the state that are not per coordinate.
    apply_fn: it gives the same learner in better coordinates; predictions change by rounding only.
        It acts on each coordinate alone, given the numbers that are not per coordinate, and changes
        these numbers in the same way whatever the coordinates are.
    sum_fn: sums over all coordinates that `apply_fn` needs, such as products of weights; entries
        of 0 must add nothing to them. None if it needs no sums.
    """

    due_fn: Callable[..., PyTree]  # (hparams, state) -> bool
    apply_fn: Callable[..., PyTree]  # (hparams, state, sums) -> state
    sum_fn: Callable[..., PyTree] | None = None  # (hparams, state) -> sums

    def due(self, hparams: PyTree, state: PyTree, weight: object) -> Array:
        """Whether the state after a round of this weight needs the change."""
        return self.due_fn(hparams, state) & (jnp.asarray(weight) != 0)

    def sums(self, hparams: PyTree, state: PyTree) -> PyTree:
        return None if self.sum_fn is None else self.sum_fn(hparams, state)

    def apply(self, hparams: PyTree, state: PyTree) -> PyTree:
        """The state in better coordinates."""
        return self.apply_fn(hparams, state, self.sums(hparams, state))


def _all(state: PyTree) -> PyTree:
    return state


@dataclasses.dataclass(frozen=True)
class Decision:
    """A learner that maps its state to a decision, and plays by the decision alone.

    `predict` is `action_fn` of the decision: neither function reads more. State it if the map is
    costly, such as powers or exponentials, and if many rounds change no bit of the state, such as
    rounds without a mistake.
    """

    decision_fn: Callable[..., PyTree]  # (hparams, state) -> w
    action_fn: Callable[..., PyTree]  # (hparams, w, context) -> action
    part_fn: Callable[[PyTree], PyTree] = _all  # state -> the part that `decision_fn` reads


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts that a learner states about itself; none by default.

    adds: what an update adds to the state, if that is a multiple of one vector. The engine then
        plays blocks of rounds by matrix products.
    coordinates: how the coordinates of the state interact. The engine then plays sparse rows on
        their coordinates. A point learner plays them inside `linear`.
    refresh: what an update does besides, now and then. A learner that wraps another one calls its
        `update`, which does this; or it plays it without refresh, and states a refresh of its own.
    decision: how the state becomes an action, in two steps. The engine then keeps the decision
        between the rounds, and computes it again only after the state has changed.
    squares: the least squares problem whose solution the learner keeps. A layer then plays chunks
        of rounds by matrix products (`olx.layers`).
    scale_free: whether all losses times one positive number give the same actions, up to rounding.
        The engine does not use it; users need not scale their losses.
    every_round: whether a round of weight zero changes the state too, such as a count of all
        rounds. The update then sees itself to what such a round must not change.
    """

    adds: AddsGradient | AddsContext | ShrinksAndAddsContext | None = None
    coordinates: Separable | Rowwise | Linear | HasAggregate | Refreshed | None = None
    refresh: Refresh | None = None
    decision: Decision | None = None
    squares: LeastSquares | None = None
    scale_free: bool = False
    every_round: bool = False

    @own_name("Facts")
    def __post_init__(self) -> None:
        """Refuse facts that cannot be true together."""
        if self.refresh is None and isinstance(self.coordinates, Refreshed):
            raise RefusedType(
                "coordinates that are `Refreshed` need the `refresh` of the same learner; a "
                "learner that wraps another one must pass it on."
            )
        if self.refresh is None:
            return
        if self.adds is not None or not isinstance(self.coordinates, Refreshed | None):
            raise RefusedType(
                "a learner with a `refresh` changes all coordinates at once, so it adds no "
                "multiple of one vector, and its coordinates are `Refreshed` or not stated."
            )


def of_wrapper(inner: Any, refresh: Refresh | None = None) -> Facts:
    """The facts of a predictor made of a predictor, or of copies of one, that see the same row.

    It keeps the coordinates of `inner` apart: besides the state of `inner` it has entries per
    coordinate, and numbers that sums over the row change.

    refresh: that of `inner`, for the wrapper; None if `inner` makes it itself.
    """
    match inner.facts.coordinates:
        case Linear() | Rowwise():
            return Facts(coordinates=Rowwise())
        case Refreshed() if refresh is not None:
            return Facts(coordinates=Refreshed(), refresh=refresh)
        case _:
            return Facts(refresh=refresh)
