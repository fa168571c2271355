r"""The types of the game: rounds, feedback, learners, processes, adversaries and runs.

In round $t$ a learner sees a context $x_t$, plays an action $a_t$, is told the outcome $y_t$ and
pays $\ell(a_t, y_t)$. A learner is three pure functions and the numbers they share.
"""

# Strict, but for what a tree holds: `PyTree` is of no known type.
# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx import plots
from olx._call import Call
from olx._memory import check_start, refuse_large_state
from olx._pytree import pytree, static
from olx._refusal import RefusedType, RefusedValue, public, public_as
from olx._words import call_of
from olx.facts import Facts
from olx.needs import Need
from olx.theorem import Theorem, check_carried

Scalar = int | float | Array
Loss = Callable[[Any, Any], Array]


class Rounds(NamedTuple):
    """T rounds that do not depend on the actions: every leaf has a leading axis of length T."""

    context: PyTree  # seen before acting; None if there is no context
    outcome: PyTree  # revealed after acting
    weight: Float[Array, " T"] | None = None  # importance of each round; None means 1


class Feedback(NamedTuple):
    """All that a learner may use after a round."""

    context: PyTree
    action: PyTree
    outcome: PyTree
    loss: Partial  # action -> scalar: the revealed loss, as a function
    value: Array  # loss(action)
    grad: PyTree  # d loss / d action; None where the action is not a real vector
    weight: Scalar = 1.0  # importance of the round; grad, loss and value are not scaled by it


class Trace(NamedTuple):
    """What a certificate needs of a run; every leaf has a leading axis of length T."""

    state: PyTree  # before the update
    feedback: Feedback


class InitFn(Protocol):
    """The first state of a learner, or the first stats of a process."""

    def __call__(self, hparams: PyTree, params: PyTree, /) -> PyTree: ...


class PredictFn(Protocol):
    """The action of a learner, or the quantity of a process, before the round is played."""

    def __call__(self, hparams: PyTree, state: PyTree, context: PyTree, /) -> PyTree: ...


class UpdateFn(Protocol):
    """The state after a round."""

    def __call__(self, hparams: PyTree, state: PyTree, feedback: Feedback, /) -> PyTree: ...


@pytree
class Learner:
    """Three module-level pure functions and the numbers they share.

    Functions are structure, numbers are leaves: a batch of learners is a learner with batched
    leaves, a new step size is not a new program, and `jax.grad` works with respect to a learner.

    name: that of its factory, for `repr`; the factories of olx set it themselves.
    """

    hparams: PyTree
    init_fn: InitFn = static()
    predict_fn: PredictFn = static()
    update_fn: UpdateFn = static()
    facts: Facts = static(default=Facts())  # what the engine may exploit
    needs: tuple[Need, ...] = static(default=())  # what it needs of its data
    theorems: tuple[Theorem, ...] = ()  # each is stated in the file of its rule
    name: Call | str = static(kw_only=True, default=Call())  # the call that makes it, or a word

    def __post_init__(self) -> None:
        if isinstance(self.name, str):
            object.__setattr__(self, "name", call_of(self.name, self))
        check_carried(self.theorems)

    @public_as("init")
    def init(self, params: PyTree) -> PyTree:
        """The first state; refuses a state that does not fit into memory."""
        check_start(self.init_fn, self.hparams, params)
        state = self.init_fn(self.hparams, params)
        refuse_large_state(state)
        return state

    def predict(self, state: PyTree, context: PyTree = None) -> PyTree:
        return self.predict_fn(self.hparams, state, context)

    def update(self, state: PyTree, feedback: Feedback) -> PyTree:
        """The next state, refreshed if that is due. A round of weight zero does not change it,
        but for learners of `Facts(every_round=True)`."""
        new = self.update_fn(self.hparams, state, feedback)
        counts = isinstance(feedback.weight, int | float) and feedback.weight != 0
        if not (counts or self.facts.every_round):
            new = jax.tree.map(lambda n, o: jnp.where(feedback.weight == 0, o, n), new, state)
        refresh = self.facts.refresh
        if refresh is None:
            return new
        due = refresh.due(self.hparams, new, feedback.weight)
        better = lambda state: refresh.apply(self.hparams, state)
        return lax.cond(due, better, lambda state: state, new)

    def carrying(self, *theorems: Theorem) -> "Learner":
        """The same learner, which also carries `theorems`."""
        return dataclasses.replace(self, theorems=(*self.theorems, *theorems))


def without_refresh(learner: Learner) -> Learner:
    """The same learner without its `Refresh`, for whoever makes it outside of `update`."""
    if learner.facts.refresh is None:
        return learner
    return dataclasses.replace(learner, facts=Facts(every_round=learner.facts.every_round))


@pytree
class Batch:
    """Stacked learners, and the arguments that made each of them; see `olx.batch`."""

    learners: Learner  # every leaf has a leading axis of learners
    axes: dict[str, Array]  # by the name of an argument: its value for each learner

    def __len__(self) -> int:
        return next(iter(self.axes.values())).shape[0]

    def __getitem__(self, i: int) -> Learner:
        if isinstance(i, str):
            raise TypeError(
                f"batch[i] is learner i; the values of an axis are `batch.axes[{i!r}]`."
            )
        if not -len(self) <= i < len(self):
            raise IndexError(f"batch[{i}]: the batch holds {len(self)} learners, from 0.")
        return jax.tree.map(lambda leaf: leaf[i], self.learners)


STEP, REGULARIZER, HINT, WEIGHT = "step size", "regularizer", "gradient", "weight"
_MADE_BY = {
    STEP: "`olx.schedules`",
    REGULARIZER: "`olx.regularizers`",
    HINT: "`olx.frameworks.hints`",
    WEIGHT: "`olx.schedules`",
}


@pytree
class Process:
    r"""A quantity that changes with time and is known before the learner acts.

    gives: the kind of quantity: a "step size" $\eta_t$ (`olx.schedules`); a "regularizer" $\psi_t$,
        which is a `MirrorMap` (`olx.regularizers`); a guess of the next "gradient"
        (`olx.frameworks.hints`); or the "weight" of a round.
    separable: whether the quantity of each coordinate depends on that coordinate alone.
    """

    hparams: PyTree
    init_fn: InitFn = static()  # gives the first stats
    update_fn: UpdateFn = static()
    at_fn: PredictFn = static()  # gives the quantity now
    gives: str = static()
    separable: bool = static(default=False)
    name: Call = static(kw_only=True, default=Call())  # the call that makes it

    def init(self, params: PyTree) -> PyTree:
        return self.init_fn(self.hparams, params)

    def update(self, stats: PyTree, feedback: Feedback) -> PyTree:
        return self.update_fn(self.hparams, stats, feedback)

    def at(self, stats: PyTree, context: PyTree = None) -> Any:
        return self.at_fn(self.hparams, stats, context)

    def must_give(self, name: str, *legal: str) -> "Process":
        """The process itself; refuses a process that gives another kind of quantity."""
        if self.gives not in legal:
            raise RefusedType(
                f"`{name}` must give a {' or a '.join(legal)}, got a process that gives a "
                f"{self.gives}; take one of {' or '.join(_MADE_BY[kind] for kind in legal)}."
            )
        return self


@pytree
class Adversary:
    """A player that chooses each outcome after it has seen the action of the learner.

    hparams: its numbers, or None.
    loss: what the learner pays, (action, outcome) -> scalar.
    init_fn: (hparams) -> state, before the first round.
    ask_fn: (hparams, state) -> context, what the learner sees; it returns None if that is nothing.
    answer_fn: (hparams, state, action) -> (outcome, state), in this order.
    name: the call that makes it, for its repr.
    """

    hparams: PyTree
    loss: Loss
    init_fn: Callable[..., PyTree] = static()
    ask_fn: Callable[..., PyTree] = static()
    answer_fn: Callable[..., PyTree] = static()
    name: Call = static(kw_only=True, default=Call())

    def init(self) -> PyTree:
        return self.init_fn(self.hparams)

    def ask(self, state: PyTree) -> PyTree:
        return self.ask_fn(self.hparams, state)

    def answer(self, state: PyTree, action: PyTree) -> tuple[PyTree, PyTree]:
        return self.answer_fn(self.hparams, state, action)


@pytree
class Curve:
    """The cumulative loss of a run after some of its rounds."""

    at: Any  # [K]: the numbers of these rounds
    total: Any  # [K]: the cumulative loss after each
    sums: PyTree = None  # [K, ...]: the cumulative sums of `measure`


class Configuration(NamedTuple):
    """A learner of a sweep."""

    place: int  # in the batch: `batch[place]` is the learner
    total: float  # its loss, summed over rounds
    numbers: dict[str, Any]  # the arguments that made it


@pytree
class Run:
    """The result of a run. In a sweep every leaf has a leading axis of configurations."""

    state: PyTree  # after the last round
    losses: Any  # one per round, not scaled by weights; not there if `keep` was given
    trace: PyTree = None  # what `record` gave, one entry per kept round
    rounds: Rounds | None = None  # the rounds that an adversary made; None for a given stream
    curve: Curve | None = None  # in place of `losses`, if `keep` was given
    axes: PyTree = None  # of a sweep: the arguments of each configuration, by name
    continued: bool = static(default=False)  # whether it started from the state of an earlier run

    @property
    def total(self) -> Any:
        return self.losses.sum(-1) if self.curve is None else self.curve.total[..., -1]

    @public
    def best(self) -> Configuration:
        """The configuration of a sweep with the smallest total loss, of those that are finite.

        >>> import jax, jax.numpy as jnp, olx
        >>> rounds, _ = olx.streams.linear_regression(jax.random.key(0), rounds=200, features=3)
        >>> learners = olx.batch(lambda eta: olx.linear(olx.ogd(eta)), eta=[0.01, 0.1, 100.0])
        >>> runs = olx.sweep(learners, olx.losses.squared, rounds, jnp.zeros(3))
        >>> runs.best().numbers, len(runs.top(3))  # the third one diverged
        ({'eta': 0.1}, 2)
        """
        return self.top(1)[0]

    @public
    def top(self, count: int) -> list[Configuration]:
        """The best configurations of a sweep, the best first; those that diverged are left out."""
        check.count("count", count)
        if jnp.ndim(self.total) != 1:
            raise RefusedType(
                "this needs a sweep, with one axis of configurations; this run has a "
                f"total of shape {jnp.shape(self.total)}."
            )
        total = np.asarray(self.total)
        finite = np.flatnonzero(np.isfinite(total))
        if not finite.size:
            raise RefusedValue(
                f"all {total.size} configurations diverged; take smaller steps, or scale the data."
            )
        order = finite[np.argsort(total[finite], kind="stable")][:count]
        numbers: dict[str, Any] = self.axes or {}
        of = lambda i: {name: np.asarray(values)[i].tolist() for name, values in numbers.items()}
        return [Configuration(i, total[i].item(), of(i)) for i in order.tolist()]

    @public
    def plot(self, *names: str, ax: Any = None) -> Any:
        """Draw the mean loss of a run by rounds, or the total losses of a sweep by its arguments.

        names: of a sweep, one or two arguments; all if there are no more. Of the other arguments
            each point shows the best values. A configuration that diverged is a cross.
        ax: of matplotlib, where to draw; a new one if None.
        """
        if self.axes is None:
            return plots.plot_run(self, ax)
        return plots.plot_sweep(self, names, ax)
