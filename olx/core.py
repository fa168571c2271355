r"""The game: rounds, feedback, the learner, and what a run leaves behind.

In round $t$ a learner sees a context $x_t$, plays an action $a_t$, is told the outcome $y_t$ and
pays $\ell(a_t, y_t)$. A learner is three pure functions and the numbers they share.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from olx._pytree import pytree, static
from olx.facts import Facts
from olx.needs import Need
from olx.theorem import Theorem

Scalar = int | float | Array
Loss = Callable[[Any, Any], Array]


class Rounds(NamedTuple):
    """An oblivious stream: every leaf has a leading axis of length T."""

    context: PyTree  # seen before acting; None where there is nothing to see
    outcome: PyTree  # revealed after acting
    weight: Float[Array, " T"] | None = None  # importance of each round; None means 1


class Feedback(NamedTuple):
    """All a learner may look at once a round is over."""

    context: PyTree
    action: PyTree
    outcome: PyTree
    loss: Partial  # action -> scalar: the revealed loss, as a function
    value: Array  # loss(action)
    grad: PyTree  # d loss / d action; None where the action is not a real vector
    weight: Scalar = 1.0  # importance of the round; grad, loss and value are not scaled by it


class Trace(NamedTuple):
    """What a certificate needs, a leading axis of length T on every leaf."""

    state: PyTree  # before the update
    feedback: Feedback


@pytree
class Learner:
    """Three module-level pure functions and the numbers they share.

    Functions are structure, numbers are leaves: a batch of learners is a learner with batched
    leaves, a new step size is not a new program, and `jax.grad` works with respect to a learner.
    """

    hparams: PyTree
    init_fn: Callable[..., Any] = static()  # (hparams, params) -> state
    predict_fn: Callable[..., Any] = static()  # (hparams, state, context) -> action
    update_fn: Callable[..., Any] = static()  # (hparams, state, feedback) -> state
    facts: Facts = static(default=Facts())  # what the engine may exploit
    needs: tuple[Need, ...] = static(default=())  # what it needs of its data
    theorems: tuple[Theorem, ...] = ()  # what is known about it, each in the file of its rule

    def init(self, params: PyTree) -> PyTree:
        return self.init_fn(self.hparams, params)

    def predict(self, state: PyTree, context: PyTree = None) -> PyTree:
        return self.predict_fn(self.hparams, state, context)

    def update(self, state: PyTree, feedback: Feedback) -> PyTree:
        """The next state. A round of weight zero leaves the state as it is."""
        new = self.update_fn(self.hparams, state, feedback)
        if isinstance(feedback.weight, int | float) and feedback.weight != 0:
            return new
        return jax.tree.map(lambda n, o: jnp.where(feedback.weight == 0, o, n), new, state)


@pytree
class Batch:
    """Learners of one structure, and the values that each was made from; see `olx.batch`."""

    learners: Learner  # every leaf has a leading axis of learners
    axes: dict[str, Array]  # the values of an argument of each, by its name

    def __len__(self) -> int:
        return next(iter(self.axes.values())).shape[0]

    def __getitem__(self, i: int) -> Learner:
        """Learner number `i`."""
        return jax.tree.map(lambda leaf: leaf[i], self.learners)


STEP, REGULARIZER, HINT, WEIGHT = "step size", "regularizer", "gradient", "weight"


@pytree
class Process:
    r"""A quantity that changes as the game goes on, known before acting.

    gives: what it is: a "step size" $\eta_t$ (`olx.schedules`); a "regularizer" $\psi_t$, which is
        a `MirrorMap` (`olx.regularizers`); a guess of the next "gradient"
        (`olx.frameworks.hints`); or the "weight" of a round.
    separable: whether what it gives for a coordinate depends on that coordinate alone.
    """

    hparams: PyTree
    init_fn: Callable[..., Any] = static()  # (hparams, params) -> stats
    update_fn: Callable[..., Any] = static()  # (hparams, stats, feedback) -> stats
    at_fn: Callable[..., Any] = static()  # (hparams, stats, context) -> the quantity now
    gives: str = static()
    separable: bool = static(default=False)

    def init(self, params: PyTree) -> PyTree:
        return self.init_fn(self.hparams, params)

    def update(self, stats: PyTree, feedback: Feedback) -> PyTree:
        return self.update_fn(self.hparams, stats, feedback)

    def at(self, stats: PyTree, context: PyTree = None) -> Any:
        return self.at_fn(self.hparams, stats, context)

    def must_give(self, owner: str, name: str, *legal: str) -> "Process":
        """The process itself, or a refusal where it gives something else."""
        if self.gives not in legal:
            raise TypeError(
                f"{owner}: `{name}` must give a {' or a '.join(legal)}, got a process that gives a "
                f"{self.gives}."
            )
        return self


@pytree
class Adversary:
    """Nature as a player: it may answer what the learner just did."""

    hparams: PyTree
    loss: Loss  # (action, outcome) -> scalar, a pytree
    init_fn: Callable[..., Any] = static()  # (hparams) -> state
    ask_fn: Callable[..., Any] = static()  # (hparams, state) -> context
    answer_fn: Callable[..., Any] = static()  # (hparams, state, action) -> (outcome, state)

    def init(self) -> PyTree:
        return self.init_fn(self.hparams)

    def ask(self, state: PyTree) -> PyTree:
        return self.ask_fn(self.hparams, state)

    def answer(self, state: PyTree, action: PyTree) -> tuple[PyTree, PyTree]:
        return self.answer_fn(self.hparams, state, action)


@pytree
class Curve:
    """A thinned curve: the cumulative loss `total` after so many rounds as `at` says."""

    at: Any  # [K]
    total: Any  # [K]
    sums: PyTree = None  # what `measure` gave, cumulated likewise; [K, ...]


@pytree
class Run:
    """What a run leaves behind. A sweep gives every leaf a leading axis of configurations."""

    state: PyTree  # after the last round
    losses: Any  # of the actions played, one a round, not scaled by weights; None if thinned
    trace: PyTree = None  # what `record` kept
    rounds: Rounds | None = None  # what the adversary did; None for a stream, which is known
    curve: Curve | None = None  # in place of `losses`, where a run was asked to thin them
    axes: PyTree = None  # of a sweep: the values of each configuration, by name
    continued: bool = static(default=False)  # whether it went on from the state of an earlier run

    @property
    def total(self) -> Any:
        return self.losses.sum(-1) if self.curve is None else self.curve.total[..., -1]
