r"""A learner that carries the derivatives of its state by its numbers.

Write a round of a learner with numbers $\lambda$ as $a_t = A(\lambda, s_t)$ and
$s_{t+1} = S(\lambda, s_t)$. Beside the state $s_t$ this learner keeps $\dot s_t = ds_t / d\lambda$:

$$\dot a_t = \partial_\lambda A + \partial_s A\, \dot s_t, \qquad
  \dot s_{t+1} = \partial_\lambda S + \partial_s S\, \dot s_t, \qquad
  \frac{d}{d\lambda} \sum_t \ell_t(a_t) = \sum_t \langle \nabla \ell_t(a_t), \dot a_t \rangle.$$

This is the exact derivative of the total loss, in forward mode. For $n$ numbers a round costs about
$1 + n$ rounds and needs $1 + n$ states, however long the stream is. So every driver of the engine
plays it, in chunks, and it goes on from its state. Reverse mode, `jax.grad` of `olx.rollout`, is
cheaper for many numbers, and keeps the states of all rounds, or computes them again.

Williams, Zipser, A Learning Algorithm for Continually Running Fully Recurrent Neural Networks,
1989; Franceschi, Donini, Frasconi, Pontil, Forward and Reverse Gradient-Based Hyperparameter
Optimization, 2017.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PyTree

from olx._pytree import as_tree, pytree
from olx.core import Feedback, Learner, Loss
from olx.engine.round import feedback_of
from olx.wrapper import INNER, lift_needs


@pytree
class SlopesHparams:
    inner: Learner
    ways: list  # the derivatives of the floats of `inner` by each number, [n, ...]
    loss: Loss


class Sloped(NamedTuple):
    """A state or an action, and the derivatives of its floats by each number."""

    inner: PyTree
    ways: PyTree  # [n, ...]


@pytree
class OfAction:
    """The loss of the action inside a `Sloped`."""

    inner: Loss

    def __call__(self, action: Sloped, outcome: PyTree) -> Array:
        return self.inner(action.inner, outcome)

    @property
    def needs(self) -> tuple:
        return getattr(self.inner, "needs", ())

    @property
    def hparams(self) -> PyTree:
        return getattr(self.inner, "hparams", None)


def sloped(make: Callable[..., Learner], loss: Loss, numbers: dict[str, Array]) -> Learner:
    """The stack of learners that `make` makes of each entry of `numbers`, with derivatives.

    It is not compiled: `make` may depend on what changes between two calls.
    """
    names, columns = tuple(numbers), list(numbers.values())
    basis = list(jnp.eye(len(columns), dtype=columns[0].dtype))

    def made(given: list[Array]) -> tuple[list, Learner]:
        learner = make(**dict(zip(names, given, strict=True)))
        return floats(learner), learner

    def one(given: list[Array]) -> Learner:
        inner, ways = _pushed(made, (given,), (basis,))
        hparams = SlopesHparams(inner, ways, as_tree(loss))
        needs = lift_needs(INNER, inner)
        return Learner(hparams, init, predict, update, needs=needs)

    return jax.vmap(one)(columns)


def init(hp: SlopesHparams, params: PyTree) -> Sloped:
    def start(own: list) -> tuple[list, PyTree]:
        state = with_floats(hp.inner, own).init(params)
        return floats(state), state

    return Sloped(*_pushed(start, (floats(hp.inner),), (hp.ways,)))


def predict(hp: SlopesHparams, state: Sloped, context: PyTree) -> Sloped:
    def act(own: list, now: list) -> tuple[PyTree, PyTree]:
        action = with_floats(hp.inner, own).predict(with_floats(state.inner, now), context)
        return action, action

    return Sloped(*_pushed(act, _at(hp, state), (hp.ways, state.ways)))


def update(hp: SlopesHparams, state: Sloped, feedback: Feedback) -> Sloped:
    def step(own: list, now: list) -> tuple[list, PyTree]:
        learner, before = with_floats(hp.inner, own), with_floats(state.inner, now)
        action = learner.predict(before, feedback.context)
        seen = feedback_of(hp.loss, feedback.context, action, feedback.outcome, feedback.weight)
        after = learner.update(before, seen)
        return floats(after), after

    return Sloped(*_pushed(step, _at(hp, state), (hp.ways, state.ways)))


def slopes(feedback: Feedback) -> Float[Array, " n"]:
    """What a round adds to the derivative of the total loss by each number; for `measure`."""
    toward = jax.tree.leaves(feedback.grad.inner)

    def along(way: PyTree) -> Array:
        return jnp.asarray(sum(map(jnp.vdot, toward, jax.tree.leaves(way))))

    return jax.vmap(along)(feedback.action.ways)


def floats(tree: PyTree) -> list:
    """The leaves that have derivatives."""
    return [leaf for leaf in jax.tree.leaves(tree) if _is_float(leaf)]


def with_floats(tree: PyTree, new: list) -> PyTree:
    """The tree with other floats; counts and random keys stay."""
    leaves, structure = jax.tree.flatten(tree)
    following = iter(new)
    return structure.unflatten([next(following) if _is_float(one) else one for one in leaves])


def _at(hp: SlopesHparams, state: Sloped) -> tuple[list, list]:
    return floats(hp.inner), floats(state.inner)


def _pushed(function: Callable, at: tuple, ways: tuple) -> tuple[PyTree, PyTree]:
    """The second result of `function`, and the derivative of its first along each of `ways`."""
    push = lambda way: jax.jvp(function, at, way, has_aux=True)[1:]
    derivative, value = jax.vmap(push, out_axes=(0, None))(ways)
    return value, derivative


def _is_float(leaf: ArrayLike) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
