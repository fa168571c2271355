"""One round of the game, and the checks that run while it is traced, before it is played.

Integers, booleans and half precision overflow in a product such as <x, x>. A context with the shape
of the decision, or of its last axes, is a vector of the same space. It is cast to the dtype of the
decision once, before a learner uses it. A context of another shape, such as an index into a table,
is not changed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Int, PyTree

from olx import _check as check
from olx._pytree import as_tree
from olx._readings import visible_readings
from olx._refusal import RefusedType
from olx.core import Feedback, Learner, Loss, Scalar
from olx.losses.score import ScoreLoss
from olx.streams.finite import dtype_of

Record = Callable[[PyTree, Feedback], PyTree]
Measure = Callable[[Feedback], PyTree]


class Output(NamedTuple):
    """The output of a round, or of the rounds of a chunk."""

    sums: tuple[Array, PyTree]  # what to sum: the loss and the result of `measure`
    records: PyTree  # the result of `record`
    nonfinite: Array | None  # whether a number was not finite; one for all rounds of a chunk


class Recorder(NamedTuple):
    """What a run outputs per round besides the loss."""

    record: Record | None = None  # (state, feedback) -> what to keep
    measure: Measure | None = None  # feedback -> what to sum over the rounds
    after: bool = False  # whether `record` gets the state after the update, before a refresh
    fields: tuple[str, ...] = ()  # of the feedback: those whose numbers must be finite
    readings: tuple = ()  # what `record` and `measure` read besides their arguments

    def output(self, state: PyTree, feedback: Feedback) -> Output:
        """The output of a round."""
        measured = None if self.measure is None else self.measure(feedback)
        kept = None if self.record is None else self.record(state, feedback)
        for name, tree in (("measure", measured), ("record", kept)):
            for leaf in jax.tree.leaves(tree):
                if isinstance(leaf, str):
                    raise TypeError(f"`{name}` gives a {type(leaf).__name__}; it must give arrays.")
        paid = feedback.value, jax.tree.map(jnp.asarray, measured)
        return Output(paid, kept, any_nonfinite(self.fields, feedback))


def feedback_of(
    loss: Loss, context: PyTree, action: PyTree, outcome: PyTree, weight: Scalar
) -> Feedback:
    """The feedback of a round: the loss as a function, its value and its gradient at the action."""
    if outcome is None and isinstance(loss, ScoreLoss):
        raise TypeError("rounds.outcome is None; this loss needs one outcome per round.")
    known = loss_of_action(loss, outcome)
    real = all(
        jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in jax.tree.leaves(action)
    )
    _check_loss(jax.eval_shape(known, action))
    if not real:
        value, grad = known(action), None
    elif isinstance(loss, ScoreLoss):
        value, grad = loss.value_and_slope(action, outcome)
    else:
        value, grad = jax.value_and_grad(known)(action)
    return Feedback(context, action, outcome, known, value, grad, weight)


def loss_of_action(loss: Loss, outcome: PyTree) -> Partial:
    """The loss of a round as a function of the action."""
    return Partial(_of_action, as_tree(loss), outcome)


def recorder_of(record: Record | None, measure: Measure | None, keep: Callable | None) -> Recorder:
    """The `Recorder` of the arguments of a driver; refuses functions of other arguments."""
    if record is not None:
        check.takes("record", record, "state", "feedback")
    if measure is not None:
        check.takes("measure", measure, "feedback")
    if keep is not None:
        rule = f"olx.keep.every({keep if isinstance(keep, int) else 100})"
        check.takes("keep", keep, "start", "stop", remedy=f"give a rule, as `keep={rule}`")
    if measure is not None and keep is None:
        raise RefusedType(
            "`measure` is summed along a curve; say which rounds the curve keeps, with "
            "`keep=olx.keep.totals` for the last alone. Use `record` to keep every round."
        )
    given = [one for one in (record, measure) if one is not None]
    return Recorder(record, measure, readings=visible_readings(given) if given else ())


def finish_round(
    learner: Learner, recorder: Recorder, state: PyTree, feedback: Feedback
) -> tuple[PyTree, Output]:
    """Finish a round: the new state, and the output of the round."""
    new = learner.update(state, feedback)
    _check_state(learner, state, new)
    seen = recorder.output(new if recorder.after else state, feedback)
    return new, seen


def _check_loss(value: Any) -> None:
    if not hasattr(value, "shape"):
        seen = None if value is None else f"a {type(value).__name__}"
        raise TypeError(f"the loss gives {seen}; it must be a real scalar.")
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise TypeError(
            f"the loss has type {_kind(value)}; it must be a real scalar, for example a sum "
            "or a mean."
        )


def _check_state(learner: Learner, before: PyTree, after: PyTree) -> None:
    """Refuse an update that changes the structure, a shape or a dtype of the state."""
    if jax.tree.structure(before) != jax.tree.structure(after):
        raise TypeError(
            f"the update changed the state from {jax.tree.structure(before)} to "
            f"{jax.tree.structure(after)}. A state is scanned, so it keeps the structure init "
            "gave it."
        )
    for (path, old), new in zip(
        jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(after), strict=True
    ):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            wide = _number_of(learner, new.dtype) if old.dtype != new.dtype else None
            here = "cast inside update" if wide is None else f"give {wide} in {old.dtype}"
            raise TypeError(
                f"the update changed state{jax.tree_util.keystr(path)} from {_kind(old)} to "
                f"{_kind(new)}. A state is scanned, so its shapes and dtypes stay as init made "
                f"them: {here}, or start from the wider dtype."
            )


def _number_of(learner: Learner, dtype: object) -> str | None:
    """A number of the learner with this dtype of its own, which a Python number has not."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(learner.hparams):
        kind = jax.eval_shape(lambda leaf: leaf, leaf)
        if kind.dtype == dtype and not kind.weak_type:
            return f"`hparams{jax.tree_util.keystr(path)}`"
    return None


def _kind(leaf: Any) -> str:
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"


def _of_action(loss: Loss, outcome: PyTree, action: PyTree) -> Array:
    value = loss(action, outcome)
    if isinstance(value, str):
        raise TypeError(f"the loss gives {value!r}; it must be a real scalar.")
    return value


def context_dtypes(context: PyTree, params: PyTree, lead: int) -> list[Any]:
    """The dtype of each leaf of the context after the cast.

    lead: the number of axes of a leaf of the context before those of a decision.
    """
    leaves, structure = jax.tree.flatten(context)
    decision, like = jax.tree.flatten(params)
    own = [leaf.dtype for leaf in leaves]
    if structure != like:
        return own
    shapes = [(np.shape(x)[lead:], np.shape(w)) for x, w in zip(leaves, decision, strict=True)]
    if not all(x == w or (x and x == w[-len(x) :]) for x, w in shapes):
        return own
    return [_wider(a, dtype_of(w)) for a, w in zip(own, decision, strict=True)]


def cast_context(context: PyTree, params: PyTree) -> PyTree:
    """The context of one round, cast for a learner that starts from `params`."""
    context = jax.tree.map(jnp.asarray, context)
    leaves, structure = jax.tree.flatten(context)
    wanted = context_dtypes(context, params, 0)
    return jax.tree.unflatten(structure, map(_as, leaves, wanted))


def _as(leaf: jax.Array, dtype: np.dtype) -> jax.Array:
    return leaf if leaf.dtype == dtype else leaf.astype(dtype)


def _wider(own: np.dtype, wanted: np.dtype) -> Any:
    """The wider dtype. A float wider than `wanted` stays; the check of the update reports it."""
    if own == wanted or not jnp.issubdtype(wanted, jnp.floating):
        return own
    if jnp.issubdtype(own, jnp.floating):
        return wanted if own.itemsize < wanted.itemsize else own
    whole = jnp.issubdtype(own, jnp.integer) or jnp.issubdtype(own, jnp.bool_)
    return wanted if whole else own


def any_nonfinite(fields: tuple[str, ...], feedback: Feedback) -> Array | None:
    """Whether a number in these fields is not finite; None without fields."""
    if not fields:
        return None
    leaves = jax.tree.leaves([getattr(feedback, name) for name in fields])
    return ~jnp.isfinite(sum(jnp.sum(leaf) for leaf in leaves))


def refresh(over: Callable, learner: Learner, state: PyTree, due: Array | None) -> PyTree:
    """The state, or the states of a batch; those that are `due` are refreshed."""
    if due is None:
        return state

    def change(_: Int[Array, ""], state: PyTree) -> PyTree:
        better = over(_better)(learner, state)
        return jax.tree.map(lambda new, old: where_due(due, new, old), better, state)

    return lax.fori_loop(0, jnp.any(due).astype(int), change, state)


def where_due(due: Bool[Array, "..."], new: Array, old: Array) -> Array:
    """The new value where it is due; `due` has the axis of configurations, which comes first."""
    return jnp.where(due.reshape(due.shape + (1,) * (new.ndim - due.ndim)), new, old)


def _better(learner: Learner, state: PyTree) -> PyTree:
    assert learner.facts.refresh is not None  # it was due
    return learner.facts.refresh.apply(learner.hparams, state)
