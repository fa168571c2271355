r"""Any optax optimizer as a learner: $w_{t+1} = w_t + $ what it makes of $g_t$.

Adam, AdaGrad as most libraries step it, DoG, Prodigy and the rest, as baselines. Their numbers live
in closures, so another step size is another program; nothing is known about their regret.

Babuschkin et al., The DeepMind JAX Ecosystem, 2020.
"""

from typing import NamedTuple

import jax
import optax
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree, static
from olx.core import Feedback, Learner


@pytree
class OptaxHparams:
    transform: optax.GradientTransformation = static()


class OptaxState(NamedTuple):
    w: PyTree
    memory: PyTree


def optax_gradient(transform: optax.GradientTransformation) -> Learner:
    """Step with an optax optimizer from `params`; it sees the loss as `value` too.

    transform: make it once and keep it, or every learner is a new program.

    >>> import jax.numpy as jnp, olx, optax
    >>> rounds = olx.Rounds(None, jnp.ones((3, 1)))
    >>> learner = olx.first_order.optax_gradient(optax.sgd(0.5))
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1)).losses.tolist()
    [0.0, -0.5, -1.0]
    """
    check.instance("optax_gradient", "transform", transform, optax.GradientTransformation)
    return Learner(OptaxHparams(transform), init, predict, update)


def init(hp: OptaxHparams, params: PyTree) -> OptaxState:
    return OptaxState(params, hp.transform.init(params))


def predict(hp: OptaxHparams, state: OptaxState, context: PyTree) -> PyTree:
    return state.w


def update(hp: OptaxHparams, state: OptaxState, feedback: Feedback) -> OptaxState:
    g, value = tree.scale(feedback.weight, feedback.grad), feedback.weight * feedback.value
    with jax.numpy_dtype_promotion("standard"):  # optax counts steps in integers
        change = optax.with_extra_args_support(hp.transform).update
        step, memory = change(g, state.memory, state.w, value=value)
    return OptaxState(optax.apply_updates(state.w, step), memory)
