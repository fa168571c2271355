r"""Any optax optimizer as a learner: $w_{t+1} = w_t + $ the update that optax computes from $g_t$.

For baselines: Adam, AdaGrad in the usual step form, DoG, Prodigy and others. Their hyperparameters
are in closures, so a new step size compiles a new program. There are no regret bounds.

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
    """Make the steps of an optax optimizer, starting from `params`.

    transform: the optimizer; it also receives the loss as `value`. Make it once and reuse it: each
        new one compiles a new program.

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
