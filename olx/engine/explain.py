"""Say in the words of the caller why a round cannot be played, and what to do about it.

A driver traces a round before it plays it. If that fails, the round is tried again here, one
function at a time and on shapes alone, to find the function that refuses and the reason.
A round that can be played costs nothing more.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from olx._refusal import Refusal, RefusedType, RefusedValue
from olx.core import Learner, Loss, Rounds
from olx.engine import round
from olx.engine.game import Game
from olx.engine.round import Recorder, feedback_of
from olx.engine.with_theorems import TheoremHparams
from olx.frameworks.lift import LiftHparams, dot
from olx.streams.checks import is_traced, judge, needs_of, on_host
from olx.streams.sparse_rows import SparseRows

_TRACED = (
    jax.errors.ConcretizationTypeError,  # also of `if`, `max` and `float`
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
TRACE_IT = (
    "its numbers are traced, so write it with jax.numpy: jnp.maximum in place of max or "
    "np.maximum, jnp.where in place of if"
)


class RoundShapes(NamedTuple):
    """A round, as shapes."""

    learner: Learner
    loss: Loss
    params: PyTree
    one: Rounds  # context, outcome and weight of one round


def of_action(game: RoundShapes, state: PyTree, error: Exception) -> str:
    """Why the learner cannot act."""
    row, start = game.one.context, game.params
    if start is None:
        kind = type(state).__name__
        return (
            f"this learner cannot act from a `state` that is a {kind}; give `run.state` of a run "
            "of this learner, or `learner.init(params)` to begin"
        )
    if hasattr(start, "_fields") and type(start).__name__.endswith("State"):
        return (
            f"`params` is a {type(start).__name__}; give the first decision, as jnp.zeros(d), and "
            "the state of an earlier run as `state`"
        )
    if row is None and _acts(game.learner, state, start):
        return (
            "rounds.context is None, and this learner acts on a context; give one row per round, "
            "as `olx.Rounds(rows, outcomes)`"
        )
    lift = _lift_of(game.learner)
    if lift is None or lift.apply.func is not dot:
        what = "this learner" if lift is None else "the model `apply` of this learner"
        if is_about_tracers(error):
            return f"{what} cannot be traced; {TRACE_IT}"
        why = words_of_error(error)
        if row is None:
            return f"{what} cannot act from `params` {_kinds(start)}: {why}"
        return f"{what} cannot act on a row {_kinds(row)} from `params` {_kinds(start)}: {why}"
    if not _same(jax.eval_shape(lift.inner.predict, state, row), start):
        return (
            f"`olx.linear` needs a learner that plays a point, and {lift.inner!r} plays a score "
            "already; give it without `olx.linear`"
        )
    if jax.tree.structure(row) != jax.tree.structure(start):
        return (
            f"a row of rounds.context is {_kinds(row)}, and `params` is {_kinds(start)}; "
            "`olx.linear` needs both of one structure, and `olx.model(learner, apply)` plays any "
            "other model `apply(params, row)`"
        )
    if np.shape(start) and _same(game.one.outcome, start):
        return (
            f"rounds.context has shape {_shape(row)} per round and rounds.outcome {_shape(start)}; "
            "are they swapped? The order is `olx.Rounds(contexts, outcomes)`"
        )
    return (
        f"a row of rounds.context has shape {_shape(row)}, and `params` has {_shape(start)}; start "
        f"from {_start(row)}"
    )


def of_loss(game: RoundShapes, action: PyTree, error: Exception) -> str:
    """Why the loss cannot judge the action."""
    one, start = game.one, game.params
    score = jax.ShapeDtypeStruct((), jnp.result_type(*jax.tree.leaves(start)))
    is_point = _same(action, start) and jax.tree.leaves(start) != [] and not _same(start, score)
    if is_point and _judges(game.loss, score, one.outcome):
        if one.context is None:
            lift = "give rows, as `olx.Rounds(rows, outcomes)`, and play `olx.linear(learner)`"
        elif _same(one.context, start):
            lift = "`olx.linear(learner)` plays the score <w, x>"
        else:
            lift = "`olx.model(learner, apply)` plays the score apply(params, row)"
        return (
            f"the learner plays its decision {_kinds(action)}, and `loss` takes one score per "
            f"round; {lift}"
        )
    number = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((), leaf.dtype), one.outcome)
    if _same(action, score) and _judges(game.loss, score, number):
        return (
            f"rounds.outcome has shape {_shape(one.outcome)} per round, and the learner plays one "
            "number; give one number per round, as `outcome[..., 0]`"
        )
    single = isinstance(action, jax.ShapeDtypeStruct) and one.context is not None
    if single and _judges(game.loss, score, one.outcome):
        return (
            f"`params` of shape {_shape(start)} makes scores of shape {_shape(action)}, and `loss` "
            f"takes one score; start from {_start(one.context)}"
        )
    if is_about_tracers(error):
        return f"`loss` cannot be traced; {TRACE_IT}"
    if cause(error) is None:
        return words_of_error(error)
    given = f"an action {_kinds(action)} and an outcome {_kinds(one.outcome)}"
    return f"`loss` fails for {given}: {words_of_error(error)}"


def _acts(learner: Learner, state: PyTree, row: PyTree) -> bool:
    """Whether the learner acts on a row of this shape."""
    try:
        jax.eval_shape(learner.predict, state, row)
    except Exception:
        return False
    return True


def _judges(loss: Loss, action: PyTree, outcome: PyTree) -> bool:
    """Whether the loss of these shapes is a real number."""
    try:
        value = jax.eval_shape(loss, action, outcome)
    except Exception:
        return False
    return getattr(value, "shape", None) == () and jnp.issubdtype(value.dtype, jnp.floating)


def _lift_of(learner: Learner) -> LiftHparams | None:
    return learner.hparams if isinstance(learner.hparams, LiftHparams) else None


def _same(seen: PyTree, wanted: PyTree) -> bool:
    """Whether two trees have one structure and shapes that agree."""
    shapes = lambda tree: [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
    alike = jax.tree.structure(seen) == jax.tree.structure(wanted)
    return alike and shapes(seen) == shapes(wanted)


def _kinds(tree: PyTree) -> str:
    """The dtypes and shapes of a tree, in words."""
    named = lambda leaf: f"{jnp.result_type(leaf)}[{','.join(map(str, np.shape(leaf)))}]"
    return str(jax.tree.map(named, tree)).replace("'", "")


def _shape(tree: PyTree) -> str:
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
    return str(shapes[0] if len(shapes) == 1 else shapes)


def _start(row: PyTree) -> str:
    shape = np.shape(jax.tree.leaves(row)[0])
    return f"jnp.zeros({shape[0] if len(shape) == 1 else shape})"


def words_of_error(error: Exception) -> str:
    """The first line of an error."""
    return str(error).split("\n")[0].rstrip(".")


def is_about_tracers(error: Exception) -> bool:
    """Whether a function looked at the value of a traced number."""
    return isinstance(error, _TRACED)


def cause(error: Exception) -> Exception | None:
    """The error itself if it comes from a function of the user; then its place matters."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return None if place.startswith("olx.") else error


def explain_error(error: Exception, game: Game) -> None:
    """Raise an error that says what to do, in place of `error`; return if none is found."""
    numbers = game.numbers
    given = numbers.learner, numbers.loss, game.params, game.first
    errors_explained(*given, game.recorder, game.batched).__exit__(type(error), error, None)


class errors_explained:
    """A block in which a failure to trace a round is explained.

    rounds: the first rounds, with a leading axis.
    stacked: whether `learner` is a batch of learners.
    state: the state, where `params` is not known.
    """

    def __init__(
        self,
        learner: Learner,
        loss: Loss,
        params: PyTree,
        rounds: Rounds,
        recorder: Recorder | None = None,
        stacked: bool = False,
        state: PyTree = None,
    ):
        self.game = RoundShapes(learner, loss, params, rounds)
        self.recorder, self.stacked, self.state = recorder or Recorder(), stacked, state

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not isinstance(error, TypeError | ValueError | AttributeError):
            return
        if isinstance(error, Refusal):
            if not error.name:  # the driver refuses
                return
            error.keeps = True
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
        learner, loss, params, rounds = self.game
        if params is not None and not is_traced((params, rounds)):
            first = jax.tree.map(lambda leaf: on_host(leaf)[:1], rounds)
            judge(needs_of(learner, loss), params, first)

    def found(self, error: Exception) -> tuple[Exception, Exception | None] | None:
        learner, rounds = self.game.learner, self.game.one
        if self.stacked:
            learner = jax.tree.map(lambda leaf: leaf[0], learner)
        one = jax.tree.map(_row, rounds, is_leaf=lambda leaf: isinstance(leaf, SparseRows))
        return explain(
            error, self.game._replace(learner=learner, one=one), self.recorder, self.state
        )


def explain(
    error: Exception, game: RoundShapes, recorder: Recorder, state: PyTree
) -> tuple[Exception, Exception | None] | None:
    """An error that says what to do, in place of `error`, and its cause; None if none is found."""
    if isinstance(game.learner.hparams, TheoremHparams):
        game = game._replace(learner=game.learner.hparams.inner)
    learner, loss, params, one = game
    state = jax.eval_shape(learner.init, params) if state is None else state
    try:
        context = jax.eval_shape(lambda x: round.cast_context(x, params), one.context)
        action = jax.eval_shape(learner.predict, state, context)
        game = game._replace(params=action) if params is None else game
    except Exception as problem:
        if isinstance(problem, Refusal) and problem.name != "linear":
            return None  # it names a factory and what to do
        return RefusedType(f"{of_action(game, state, problem)}."), cause(problem)
    weight = 1.0 if one.weight is None else one.weight
    reveal = lambda x, action, outcome: feedback_of(loss, x, action, outcome, weight)
    try:
        jax.eval_shape(reveal, context, action, one.outcome)
    except Exception as problem:
        return RefusedType(f"{of_loss(game, action, problem)}."), cause(problem)
    if cause(error) is None:
        kind = RefusedValue if isinstance(error, ValueError) else RefusedType
        return kind(f"{words_of_error(error)}."), None
    if is_about_tracers(error) and (recorder.record or recorder.measure):
        return RefusedType(f"`record` or `measure` cannot be traced; {TRACE_IT}."), error
    return None


def _row(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape[1:], jax.dtypes.canonicalize_dtype(leaf.dtype))
