r"""Any optax optimizer as a learner: $w_{t+1} = w_t + $ the update that optax computes from $g_t$.

For baselines and for networks: Adam, AdaGrad in the usual step form, Prodigy and others. Optax
keeps the numbers of an optimizer in closures. Here they are leaves of the learner: the optimizer is
made again where a round is compiled. There are no regret bounds.

Babuschkin et al., The DeepMind JAX Ecosystem, 2020.
"""

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jax.tree_util import Partial
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._pytree import pytree, static
from olx._refusal import RefusedType, public
from olx._words import words
from olx.core import Feedback, Learner

_LOOKED = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)
_REMEDY = (
    "give numbers by name, as in from_optax(optax.adam, learning_rate=eta), or "
    "from_optax(make, learning_rate=eta) with a function `make` of your own"
)


@pytree
class OptaxHparams:
    numbers: dict[str, PyTree]
    factory: Callable[..., optax.GradientTransformation] = static()
    fixed: tuple[tuple[str, Any], ...] = static()  # arguments that are no numbers


class OptaxState(NamedTuple):
    w: PyTree
    memory: PyTree


@public
def from_optax(factory: Callable[..., optax.GradientTransformation], /, **numbers: Any) -> Learner:
    """Make the steps of the optax optimizer `factory(**numbers)`, starting from `params`.

    factory: a function that makes an optimizer, such as `optax.adam`, or one of your own at module
        level. The optimizer also receives the loss as `value`, and what a line search needs.
    numbers: its arguments. `olx.batch` sweeps those that are numbers, and `jax.grad` sees them.
        Counts (annotated `int`), words, flags and functions, such as a schedule, are fixed.

    >>> import jax.numpy as jnp, olx, optax
    >>> rounds = olx.Rounds(None, jnp.ones((3, 1)))
    >>> learner = olx.interop.optax.from_optax(optax.sgd, learning_rate=0.5)
    >>> olx.rollout(learner, olx.losses.linear_loss, rounds, jnp.zeros(1)).losses.tolist()
    [0.0, -0.5, -1.0]
    """
    _check_factory(factory, numbers)
    counts = _counts(factory)
    free = {name: given for name, given in numbers.items() if _is_number(name, given, counts)}
    fixed = tuple((name, given) for name, given in numbers.items() if name not in free)
    for name, given in fixed:
        try:
            hash(given)
        except TypeError:
            raise RefusedType(
                f"`{name}` must be a number, a word or a function, got a "
                f"{type(given).__name__}; give `factory` as a function that fills it in."
            ) from None
    hparams = OptaxHparams(free, factory, fixed)
    _try(hparams)
    return Learner(hparams, init, predict, update)


def init(hp: OptaxHparams, params: PyTree) -> OptaxState:
    return OptaxState(params, _made(hp, params).init(params))


def predict(hp: OptaxHparams, state: OptaxState, context: PyTree) -> PyTree:
    return state.w


def update(hp: OptaxHparams, state: OptaxState, feedback: Feedback) -> OptaxState:
    g, value = tree.scale(feedback.weight, feedback.grad), feedback.weight * feedback.value
    paid = Partial(_paid, feedback.loss, feedback.weight)
    with jax.numpy_dtype_promotion("standard"):  # optax counts steps in integers
        change = optax.with_extra_args_support(_made(hp, state.w)).update
        step, memory = change(g, state.memory, state.w, value=value, grad=g, value_fn=paid)
    return OptaxState(optax.apply_updates(state.w, step), memory)


def _made(hp: OptaxHparams, params: PyTree) -> optax.GradientTransformation:
    """The optimizer; its numbers have the dtype of `params`, so that its memory keeps its own."""
    kind = jnp.result_type(*jax.tree.leaves(params))
    cast = lambda number: jnp.asarray(number, kind) if _is_float(number) else number
    return hp.factory(**jax.tree.map(cast, hp.numbers), **dict(hp.fixed))


def _is_float(number: Any) -> bool:
    plain = isinstance(number, int | float)
    return plain or jnp.issubdtype(jnp.result_type(number), jnp.floating)


def _paid(loss: Partial, weight: Any, w: PyTree) -> jax.Array:
    return weight * loss(w)


def _check_factory(factory: Any, numbers: dict[str, Any]) -> None:
    if isinstance(factory, optax.GradientTransformation):
        raise RefusedType(
            "`factory` must be the function that makes an optimizer, got an optimizer, "
            f"whose numbers are hidden; {_REMEDY}."
        )
    check.function("factory", factory)
    cells = getattr(factory, "__closure__", None) or ()
    held = [cell.cell_contents for cell in cells]
    if isinstance(factory, functools.partial):
        held += [*factory.args, *factory.keywords.values()]
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(held)):
        raise RefusedType(
            "`factory` holds a number of a batch or of a compiled function, which must "
            f"not be hidden in it; {_REMEDY}."
        )
    known = _signature(factory)
    try:
        known.bind(**numbers)
    except TypeError as error:
        legal = ", ".join(known.parameters)
        raise RefusedType(
            f"{words(factory)} cannot be called with these arguments: {error}; it "
            f"takes {legal or 'none'}."
        ) from None


def _signature(factory: Any) -> inspect.Signature:
    try:
        return inspect.signature(factory, eval_str=True)
    except (TypeError, ValueError, NameError) as error:
        raise RefusedType(f"the arguments of {words(factory)} cannot be read: {error}.") from None


def _counts(factory: Any) -> set[str]:
    """The arguments whose numbers are whole, such as the size of a memory."""
    known = _signature(factory).parameters
    kinds = {n: (each.annotation, *typing.get_args(each.annotation)) for n, each in known.items()}
    return {name for name, kind in kinds.items() if int in kind and float not in kind}


def _is_number(name: str, given: Any, counts: set[str]) -> bool:
    leaves = jax.tree.leaves(given)
    legal = (int, float, np.generic, np.ndarray, jax.Array)
    return (
        name not in counts
        and len(leaves) > 0
        and all(isinstance(leaf, legal) and not isinstance(leaf, bool) for leaf in leaves)
    )


def _try(hp: OptaxHparams) -> None:
    """Refuse a factory that makes no optimizer, or that looks at its numbers."""
    made = []
    try:
        jax.eval_shape(lambda one: made.append(_made(one, jnp.zeros(()))), hp)
    except _LOOKED as error:
        raise RefusedType(
            f"{words(hp.factory)} looks at one of the numbers {', '.join(hp.numbers)}, which may "
            "be swept; give `factory` as a function that fills that number in."
        ) from error
    if not isinstance(made[0], optax.GradientTransformation):
        raise RefusedType(
            f"{words(hp.factory)} returned a {type(made[0]).__name__}; `factory` must "
            "return an optax optimizer."
        )
