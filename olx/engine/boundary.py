"""What a driver refuses before it plays: starts and streams that the learner or loss cannot take.

Concrete numbers are refused here, by name, row and column. Traced ones cannot be looked at: where
they are not legal the losses become NaN, from their round on.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, PyTree

from olx.core import Learner, Loss, Rounds
from olx.engine.finite import check_finite, check_kind, first_of
from olx.needs import Need
from olx.streams.sparse_rows import SparseRows


def first_state(owner: str, learner: Learner, params: PyTree) -> PyTree:
    """The state to start from; refuses a start that the learner cannot take."""
    _check_params(owner, params)
    start = _start if is_traced((learner, params)) else _start_in_one_call
    return _started(owner, learner, params, *start(learner, params))


def first_states(owner: str, learners: Learner, params: PyTree) -> PyTree:
    """The states of a batch; refuses a start that none of its learners can take."""
    _check_params(owner, params)
    return _started(owner, learners, params, *_start_each(learners, params))


def judge(
    owner: str, learner: Learner, loss: Loss, params: PyTree, part: Rounds, start: int = 0
) -> list[Array]:
    """Refuse rounds that are not finite, or that the learner or loss cannot take.

    start: the number of the first of these rounds.

    What is traced cannot be refused; whether it is legal comes back as booleans, traced too.
    """
    told, traced = set(), []
    for need, hparams in _about_rounds(learner, loss):
        told.add(need.where)
        legal = need.legal_fn(hparams, params, part)
        if is_traced(legal):
            traced += [jnp.asarray(mask) for mask in jax.tree.leaves(legal)]
        else:
            _refuse_rows(owner, need, part, legal, start)
    if part.weight is not None:
        light = part.weight >= 0
        if is_traced(light):
            traced.append(light)
        elif not np.all(light):
            where, value = first_of(~light, part.weight, start, "row")
            raise ValueError(f"{owner}: rounds.weight must be non-negative, got {value}{where}.")
    for path, leaf in jax.tree_util.tree_leaves_with_path(part):
        if path[0].name not in told and not is_traced(leaf):
            check_finite(owner, f"rounds{jax.tree_util.keystr(path)}", leaf, start)
    return traced


def legal_so_far(traced: list[Array]) -> Bool[Array, " T"]:
    """Whether all rounds up to each are legal, from what `judge` gave back."""
    rows = [jnp.all(mask, axis=tuple(range(1, mask.ndim))) for mask in traced]
    return jnp.cumprod(jnp.all(jnp.stack(jnp.broadcast_arrays(*rows)), axis=0), dtype=int) == 1


def on_host(leaf: Any) -> Any:
    """A leaf as NumPy array, unless it is traced or sparse."""
    if isinstance(leaf, np.ndarray | SparseRows | Tracer):
        return leaf
    return np.asarray(leaf)


def is_traced(tree: PyTree) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def _check_params(owner: str, params: PyTree) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    if not leaves:
        raise TypeError(f"{owner}: `params` holds no array.")
    for path, leaf in leaves:
        if isinstance(leaf, Tracer):
            continue
        name = f"`params{jax.tree_util.keystr(path)}`"
        check_kind(owner, name, leaf)
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            kind = jnp.result_type(leaf)
            raise TypeError(f"{owner}: {name} holds {kind}; give floats, as jnp.zeros(d).")
        check_finite(owner, name, np.asarray(leaf), 0, "entry")


def _start(learner: Learner, params: PyTree) -> tuple[list, PyTree]:
    """Whether each need is met, and the state, which is NaN where one is not."""
    own = learner.hparams
    legal = [jnp.asarray(need.legal_fn(own, params, None)) for need in _about_params(learner)]
    if legal:
        fine = jnp.all(jnp.stack(legal))
        params = jax.tree.map(lambda leaf: jnp.where(fine, leaf, jnp.nan), params)
    return legal, learner.init(params)


_start_in_one_call = jax.jit(_start)
_start_each = jax.jit(jax.vmap(_start, in_axes=(0, None)))


def _started(owner: str, learner: Learner, params: PyTree, legal: list, state: PyTree) -> PyTree:
    for need, fine in zip(_about_params(learner), legal, strict=True):
        if not is_traced(fine) and not np.any(fine):
            first = np.asarray(jax.tree.leaves(params)[0])
            seen = np.array2string(first, threshold=6, precision=4)
            raise ValueError(f"{owner}: {need.owner}: {need.demand}, got {seen}{_remedy(need)}.")
    return state


def _about_params(learner: Learner) -> list[Need]:
    return [need for need in learner.needs if need.where == "params"]


def _about_rounds(learner: Learner, loss: Loss) -> list[tuple[Need, Any]]:
    own = [(need, learner.hparams) for need in learner.needs if need.where != "params"]
    return own + [(need, getattr(loss, "hparams", None)) for need in getattr(loss, "needs", ())]


def _refuse_rows(owner: str, need: Need, part: Rounds, legal: PyTree, start: int) -> None:
    if all(np.all(mask) for mask in jax.tree.leaves(legal)):
        return
    given = getattr(part, need.where)
    if jax.tree.structure(legal) != jax.tree.structure(given):
        legal = jax.tree.map(lambda _: legal, given)
    for (path, leaf), mask in zip(
        jax.tree_util.tree_leaves_with_path(given), jax.tree.leaves(legal), strict=True
    ):
        if not np.all(mask):
            where, value = first_of(~np.asarray(mask), leaf, start, "row")
            name = f"rounds.{need.where}{jax.tree_util.keystr(path)}"
            seen = f"got {value} in {name}{where}"
            raise ValueError(f"{owner}: {need.owner}: {need.demand}, {seen}{_remedy(need)}.")


def _remedy(need: Need) -> str:
    return f"; {need.remedy}" if need.remedy else ""
