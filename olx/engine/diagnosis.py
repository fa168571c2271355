"""Say in the words of the caller why a round cannot be played.

A driver traces a round before it plays it. If that fails, the round is tried again here, one
function at a time and on shapes alone, to find the function that refuses and what to do about it.
A round that can be played costs nothing more.
"""

import re
from typing import Any

import jax
from jaxtyping import PyTree

from olx.core import Learner, Loss, Rounds
from olx.engine import contexts
from olx.engine.audit import AuditHparams
from olx.engine.protocol import Watch, feedback_of
from olx.engine.reasons import TRACE_IT, Game, cause, is_traced, of_action, of_loss, said
from olx.streams.judge import is_traced as is_tracer
from olx.streams.judge import judge, needs_of, on_host
from olx.streams.sparse_rows import SparseRows


class explained:
    """A block in which a failure to trace a round is explained.

    rounds: the first rounds, with a leading axis.
    stacked: whether `learner` is a batch of learners.
    state: the state, where `params` is not known.
    """

    def __init__(
        self,
        owner: str,
        learner: Learner,
        loss: Loss,
        params: PyTree,
        rounds: Rounds,
        watch: Watch | None = None,
        stacked: bool = False,
        state: PyTree = None,
    ):
        self.game = Game(owner, learner, loss, params, rounds)
        self.watch, self.stacked, self.state = watch or Watch(), stacked, state

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        traced = kind is not None and issubclass(kind, TypeError | ValueError | AttributeError)
        if not traced or str(error).startswith(f"{self.game.owner}: "):
            return
        self.raise_found(error)

    def raise_found(self, error: Exception) -> None:
        """Raise an error that says what to do; return if none is found."""
        self._refuse_first_row()
        try:
            found = self.found(error)
        except Exception:  # the first error stands
            return
        if found is not None:
            raise found[0] from found[1]

    def _refuse_first_row(self) -> None:
        """Refuse a row that the learner or the loss does not take, in their own words."""
        owner, learner, loss, params, rounds = self.game
        if params is not None and not is_tracer((params, rounds)):
            first = jax.tree.map(lambda leaf: on_host(leaf)[:1], rounds)
            judge(owner, needs_of(learner, loss), params, first)

    def found(self, error: Exception) -> tuple[Exception, Exception | None] | None:
        learner, rounds = self.game.learner, self.game.one
        if self.stacked:
            learner = jax.tree.map(lambda leaf: leaf[0], learner)
        one = jax.tree.map(_row, rounds, is_leaf=lambda leaf: isinstance(leaf, SparseRows))
        return explain(error, self.game._replace(learner=learner, one=one), self.watch, self.state)


def explain(
    error: Exception, game: Game, watch: Watch, state: PyTree
) -> tuple[Exception, Exception | None] | None:
    """An error that says what to do, in place of `error`, and its cause; None if none is found."""
    if isinstance(game.learner.hparams, AuditHparams):
        game = game._replace(learner=game.learner.hparams.inner)
    owner, learner, loss, params, one = game
    state = jax.eval_shape(learner.init, params) if state is None else state
    try:
        context = jax.eval_shape(lambda x: contexts.cast(x, params), one.context)
        action = jax.eval_shape(learner.predict, state, context)
        game = game._replace(params=action) if params is None else game
    except Exception as problem:
        if cause(problem) is None and re.match(r"(?!linear)\w+: ", str(problem)):
            return None  # it names a factory and what to do
        return TypeError(f"{owner}: {of_action(game, state, problem)}."), cause(problem)
    weight = 1.0 if one.weight is None else one.weight
    reveal = lambda x, action, outcome: feedback_of(loss, x, action, outcome, weight)
    try:
        jax.eval_shape(reveal, context, action, one.outcome)
    except Exception as problem:
        return TypeError(f"{owner}: {of_loss(game, action, problem)}."), cause(problem)
    if cause(error) is None:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        return kind(f"{owner}: {said(error)}."), None
    if is_traced(error) and (watch.record or watch.measure):
        return TypeError(f"{owner}: `record` or `measure` cannot be traced; {TRACE_IT}."), error
    return None


def _row(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape[1:], jax.dtypes.canonicalize_dtype(leaf.dtype))
