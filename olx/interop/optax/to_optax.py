r"""Any point learner as an optimizer of optax: the update leads from the params to the decision.

After the gradient $g_t$ the learner decides on $w_{t+1}$. The update is $w_{t+1}$ minus the params,
so that `optax.apply_updates` gives $w_{t+1}$.

Networks start from random numbers $p$, not from 0. A learner that starts from any given point
starts from $p$. A learner that always starts at 0, such as dual averaging, plays offsets:
$w_t = p + v_t$, where $v_t$ is its decision for the game $v \mapsto \ell_t(p + v)$. So its bounds
hold with $u - p$ in place of $u$, and its sets and penalties are about $v$. A learner that starts
at another point of its own, such as the middle of a simplex, starts there or not at all.

Babuschkin et al., The DeepMind JAX Ecosystem, 2020.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.tree_util import Partial, keystr, tree_map_with_path
from jaxtyping import PyTree
from optax import tree

from olx import _check as check
from olx._pytree import as_tree
from olx._refusal import RefusedType, RefusedValue, own_name, public
from olx.core import Batch, Feedback, Learner, Scalar
from olx.engine.game import first_state
from olx.frameworks.lift import LiftHparams
from olx.streams.checks import is_traced


class ToOptaxState(NamedTuple):
    offset: PyTree  # what is added to the decision of the learner
    inner: PyTree  # the state of the learner


@public
def to_optax(learner: Learner) -> optax.GradientTransformationExtraArgs:
    """Train with a point learner wherever an optax optimizer is taken.

    learner: it learns from gradients, such as `olx.ogd(0.1)`, `olx.omd`, `olx.ftrl`,
        `olx.first_order.adagrad(1.0)` or `olx.first_order.coin_betting()`. One that reads a context
        or an outcome is refused, since an optimizer has none.

    `update` takes, besides gradients, state and params:

    value: the loss at the params, for learners that read it, such as those with a step size from
        their own loss.
    value_fn: the loss as a function of the params, for learners that call it, such as `olx.meta`.
    weight: the importance of the round, 1 by default; 0 changes nothing in the learner.

    Whatever the params are, the update leads to the decision. What comes later in a chain may
    change the update; then the params differ from the decision, and the learner gets gradients that
    were taken elsewhere. After `optax.scale(c)` the params are a moving average of the decisions,
    each of which has the share `c`. To take smaller steps, change the numbers of the learner.

    Learners that use roots or inverses of matrices refuse params in half precision.

    >>> import jax, jax.numpy as jnp, olx, optax
    >>> optimizer = olx.interop.optax.to_optax(olx.first_order.cocob(2.0))
    >>> loss = lambda w: jnp.sum((w - jnp.array([1.0, -2.0])) ** 2)
    >>> @jax.jit
    ... def step(w, state):
    ...     change, state = optimizer.update(jax.grad(loss)(w), state, w)
    ...     return optax.apply_updates(w, change), state
    >>> w = jnp.array([0.5, 0.5])
    >>> state = optimizer.init(w)
    >>> for _ in range(300):
    ...     w, state = step(w, state)
    >>> bool(loss(w) < 1e-2)
    True
    """
    if isinstance(learner, Batch):
        raise RefusedType(
            "`learner` is a batch; give one of its learners, as in batch[0], or map "
            "over all: `jax.vmap(lambda one: train(to_optax(one)))(batch.learners)`."
        )
    check.instance("learner", learner, Learner)
    if isinstance(learner.hparams, LiftHparams):
        raise RefusedType(
            f"`learner` must decide on the params; {learner!r} predicts scores of "
            f"contexts. Give the learner inside it, {learner.hparams.inner!r}, and compute the "
            "score in your own loss."
        )
    return optax.GradientTransformationExtraArgs(Partial(_init, learner), Partial(_update, learner))


@own_name("to_optax")
def _init(learner: Learner, params: PyTree) -> ToOptaxState:
    leaves = jax.tree.leaves(params)
    if not leaves and params is not None:
        return _outline(learner, params)
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        return jax.eval_shape(Partial(_init, learner), params)
    _check_precision(learner, params)
    inner = first_state(learner, params)
    jax.eval_shape(Partial(_tried, learner), inner, params)  # refuses before the first gradient
    return ToOptaxState(_offset(learner, params, _decision(learner, inner)), inner)


@own_name("to_optax")
def _update(
    learner: Learner,
    updates: PyTree,
    state: ToOptaxState,
    params: PyTree = None,
    *,
    value: Scalar | None = None,
    value_fn: Callable[[PyTree], Any] | None = None,
    weight: Scalar = 1.0,
    **_: Any,  # for other parts of a chain
) -> tuple[PyTree, ToOptaxState]:
    if params is None:
        raise RefusedValue(
            "`update` needs the params, since it returns the way from them to the "
            "decision; call `update(gradients, state, params)`."
        )
    check.same_shape("the gradient", updates, "`params`", params)
    weight = check.non_negative("weight", weight)
    w = _decision(learner, state.inner)
    g = jax.tree.map(lambda g, w: jnp.asarray(g).astype(jnp.result_type(w)), updates, w)
    loss: Any = _Absent(learner, "loss", "give it, as `update(..., value_fn=loss)`")
    if value_fn is not None:
        loss = Partial(_at, as_tree(value_fn), state.offset)
    paid: Any = value
    if value is None:
        paid = _Absent(learner, "value", "give it, as `update(..., value=loss)`")
    feedback = Feedback(
        _Absent(learner, "context"), w, _Absent(learner, "outcome"), loss, paid, g, weight
    )
    inner = learner.update(state.inner, feedback)
    after = tree.add(state.offset, _decision(learner, inner))
    step = jax.tree.map(lambda new, old: (new - old).astype(jnp.result_type(old)), after, params)
    return step, ToOptaxState(state.offset, inner)


class _Params(NamedTuple):
    """Params that are found again in the state of a learner."""

    leaf: Any


def _outline(learner: Learner, placeholder: PyTree) -> ToOptaxState:
    """The state with `placeholder` in place of all that is like the params.

    `optax.tree.map_params` asks for it, with a tree without leaves, and says no shapes. So shapes
    are tried: any, then those of arrays in the numbers of the learner. A learner of one array finds
    no tree in its place; then all is like the params that has their shape, whatever that is.
    """
    leaves = [jnp.shape(leaf) for leaf in jax.tree.leaves(learner.hparams)]
    own = sorted({shape for shape in leaves if shape})
    state = None
    for shape in ((3,), *own):
        if state is None:
            state = _state_if_legal(learner, _Params(jax.ShapeDtypeStruct(shape, float)))
    if state is not None:
        is_params = lambda node: isinstance(node, _Params)
        mark = lambda node: placeholder if is_params(node) else node
        return ToOptaxState(placeholder, jax.tree.map(mark, state, is_leaf=is_params))
    for shapes in (((3,), (5,)), ((3, 3), (5, 5)), *((shape, shape) for shape in own)):
        both = [_state_if_legal(learner, jax.ShapeDtypeStruct(one, float)) for one in shapes]
        if None not in both:
            like = lambda *leaves: all(
                (leaf.shape, leaf.dtype) == (one, jnp.result_type(float))
                for leaf, one in zip(leaves, shapes, strict=True)  # noqa: B023
            )
            mark = lambda *leaves: placeholder if like(*leaves) else leaves[0]  # noqa: B023
            return ToOptaxState(placeholder, jax.tree.map(mark, *both))
    raise RefusedType(
        f"{learner!r} fits no params of the shapes that were tried, so `optax.tree.map_params` "
        "cannot tell what in its state is like them; map over the leaves of the state by shape."
    )


def _state_if_legal(learner: Learner, params: PyTree) -> PyTree:
    """The shapes of the first state; None if the learner does not take such params."""
    try:
        return jax.eval_shape(learner.init, params)
    except Exception:  # of any kind: the code of a learner gets a tree that it may not expect
        return None


def _decision(learner: Learner, state: PyTree) -> PyTree:
    return learner.predict(state, _Absent(learner, "context"))


def _at(value_fn: Partial, offset: PyTree, v: PyTree) -> Any:
    return value_fn(tree.add(offset, v))


def _offset(learner: Learner, params: PyTree, first: PyTree) -> PyTree:
    """What leads from the first decision to the params: the params, or 0.

    Traced params that the learner cannot start from make it NaN.
    """

    def one(path: Any, p: Any, w: Any) -> Any:
        slack = float(jnp.finfo(w.dtype).eps) ** 0.5  # a mirror map may be inverted numerically
        zero, near = jnp.all(w == 0), jnp.all(jnp.abs(w - p) <= slack * (1 + jnp.abs(p)))
        if not is_traced((zero, near)) and not (zero | near):
            seen = np.array2string(np.asarray(w).ravel(), threshold=6, precision=4)
            raise RefusedValue(
                f"{learner!r} always starts at {seen}, `params{keystr(path)}` are other "
                "numbers; start from `learner.predict(learner.init(params))`, or take a learner "
                "that starts anywhere, such as `olx.md`."
            )
        return jnp.where(zero, p, jnp.where(near, jnp.zeros_like(p), jnp.nan))

    return tree_map_with_path(one, jax.tree.map(jnp.asarray, params), first)


def _tried(learner: Learner, inner: PyTree, params: PyTree) -> PyTree:
    """One round with all that an optimizer may be told."""
    w = _decision(learner, inner)
    remedy = "a learner for `to_optax` decides on something like the params"
    check.same_shape("the decision", w, "`params`", params, remedy)
    state = ToOptaxState(params, inner)
    return _update(learner, w, state, params, value=_none(w), value_fn=_none)


def _check_precision(learner: Learner, params: PyTree) -> None:
    """Refuse half precision for a learner with an operation that has none, as a matrix root."""
    as_shape = lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf))
    shapes = jax.tree.map(as_shape, params)
    if not any(leaf.dtype in (jnp.float16, jnp.bfloat16) for leaf in jax.tree.leaves(shapes)):
        return
    try:
        jax.jit(lambda params: _tried(learner, learner.init(params), params)).lower(shapes)
    except NotImplementedError as error:
        raise RefusedType(
            f"{learner!r} uses matrices in a way that has no half precision here ({error.args[-1]}"
            "); give `params` in float32."
        ) from error


def _none(w: PyTree) -> Any:
    return 0.0 * sum(jnp.sum(leaf) for leaf in jax.tree.leaves(w))


class _Absent:
    """What an optimizer is not told; a learner that reads it is refused."""

    def __init__(self, learner: Learner, name: str, remedy: str = "") -> None:
        self._said = learner, name, remedy

    @own_name("to_optax")
    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        learner, name, remedy = self._said
        remedy = remedy or (
            "an optimizer has none: play it with `olx.run`, or take a learner that reads gradients "
            "alone, such as `olx.ogd`"
        )
        raise RefusedType(f"{learner!r} reads the {name} of a round; {remedy}.")

    __call__ = __jax_array__ = __array__ = __getitem__ = __iter__ = __len__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __neg__ = __abs__ = __bool__ = __float__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    shape = dtype = ndim = size = property(_refuse)
