"""Several learners that play the same rounds, as one batch or as a tuple."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from olx import _check as check
from olx._refusal import RefusedType, own_name
from olx.core import Batch, Feedback, Learner
from olx.theorem import Certificate


def its_own(learner: Learner, state: PyTree, feedback: Feedback) -> Feedback:
    """The feedback of a round as if `learner` had played its own action."""
    action = learner.predict(state, feedback.context)
    value, grad = jax.value_and_grad(feedback.loss)(action)
    return feedback._replace(action=action, value=value, grad=grad)


def mean(p: Float[Array, " K"], actions: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.tensordot(p, leaf, axes=1), actions)


def over(function: Callable[..., Any], experts: Any, own: PyTree) -> PyTree:
    """`function(learner, own)` per learner: stacked for a batch, a tuple for a tuple."""
    if not isinstance(experts, tuple):
        return jax.vmap(function)(experts, own)
    return tuple(function(*one) for one in zip(experts, own, strict=True))


@own_name("mix")
def each(function: Callable[..., Any], experts: Any, *own: PyTree) -> tuple[PyTree, PyTree]:
    """`function(learner, *own)` per learner: the next states, and its second result stacked."""
    if not isinstance(experts, tuple):
        return jax.vmap(function)(experts, *own)
    pairs = [function(*one) for one in zip(experts, *own, strict=True)]
    seen = [jax.tree.map(jnp.asarray, other) for _, other in pairs]
    for other in seen:
        check.same_shape("an action of `inner`", other, "that of the first", seen[0])
    return tuple(own for own, _ in pairs), jax.tree.map(lambda *rows: jnp.stack(rows), *seen)


def stacked(proofs: tuple[Certificate, ...]) -> Certificate:
    """Stack certificates along a leading axis; each condition applies to its own certificate."""
    names = {name for proof in proofs for name in proof.conditions}
    met = lambda proof, name: proof.conditions.get(name, jnp.ones((), bool))
    together = lambda field: jnp.stack([getattr(proof, field) for proof in proofs])
    return Certificate(
        together("left"),
        together("right"),
        together("scale"),
        conditions={name: jnp.stack([met(proof, name) for proof in proofs]) for name in names},
    )


@own_name("mix")
def check_members(experts: tuple[Learner, ...]) -> None:
    if not experts or any(isinstance(expert, Batch) for expert in experts):
        raise RefusedType(
            "`inner` must be a tuple of learners, at least one and none of them a batch, or "
            "one batch; mix the batch first, and its mixture with the others."
        )


@own_name("mix")
def count(experts: Learner | tuple[Learner, ...]) -> int:
    if isinstance(experts, tuple):
        return len(experts)
    shapes = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(experts)}
    if len(shapes) != 1 or shapes == {()}:
        raise RefusedType(
            "`inner` must be a batch, every number with a leading axis of learners, as from "
            f"`olx.batch`; its leaves start with axes {sorted(shapes)}."
        )
    return shapes.pop()[0]
