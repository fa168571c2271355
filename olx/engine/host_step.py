"""One round at a time without a compiler: `olx.step` for small states, by functions of NumPy.

The checks of a round are part of the function: the needs of the learner and of the loss, and a sum
of squares, which is large or NaN if a number is. A round that does not pass is left to the caller,
who says why. So is one whose result is not finite, and one that cannot be written with NumPy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, PyTree

from olx._cache import Recent, cached
from olx.core import Learner, Loss, Rounds
from olx.engine import tuning
from olx.engine.arguments import check_game
from olx.engine.device import accelerated
from olx.engine.numbers import Leaves, Numbers, Structure, has_numbers
from olx.engine.numpy_functions import (
    LEFT,
    Functions,
    kind_of,
    numpy_functions,
    plain_number,
    quietly,
)
from olx.needs import breaches_of
from olx.streams.checks import needs_of


class HostStep(NamedTuple):
    """The round of one learner and one loss, for states and rows of one kind."""

    call: Callable[..., list]
    own: list  # numbers of the learner and the loss, as arguments
    shared: list  # what depends on them alone
    casts: list[np.dtype | None] | None  # of leaves that JAX would cast; None: as they are
    after: Any  # the structure of the result
    kinds: list[Callable | None]  # the types of its leaves that are numbers

    def play(self, leaves: list) -> PyTree | None:
        """The result of a round; None if it must be played in another way."""
        if self.casts is not None:
            leaves = [
                plain_number(leaf if kind is None else np.asarray(leaf).astype(kind))
                for leaf, kind in zip(leaves, self.casts, strict=True)
            ]
        try:
            *found, fine = quietly(self.call, *self.own, *leaves, *self.shared)
        except LEFT:
            return None
        if not fine:
            return None
        pairs = zip(found, self.kinds, strict=True)
        return self.after.unflatten([one if kind is None else kind(one) for one, kind in pairs])


class _Seen(NamedTuple):
    game: Numbers  # kept, so that the `id` of its learner and of its loss is not used again
    step: HostStep | str  # or why there is none


_SEEN: Recent[_Seen] = Recent()


def host_step(
    learner: Learner, loss: Loss, given: tuple, round_fn: Callable, begin: Callable
) -> PyTree | None:
    """The result of a round, by NumPy; None if it must be played in another way.

    given: the state, the context, the outcome and the weight.
    round_fn: (learner, loss, start, *given) -> the result.
    begin: () -> the numbers of the learner and the loss, and what has the shape of the decision; it
        refuses a round that cannot be played. None if the learner is traced.
    """
    leaves, tree = jax.tree.flatten(given)
    kinds = tuple([_FLOAT if type(leaf) is float else _quick_kind(leaf) for leaf in leaves])
    key = id(learner), id(loss), tree, kinds, jax.config.read("jax_enable_x64")
    found = _SEEN.get(key)
    if found is not None and not found.game.leaves.structure.is_current:
        _SEEN.drop(key)
        found = None
    if found is None:
        begun = None if None in kinds else begin()
        if begun is None:
            return None
        numbers, params = begun
        found = _Seen(numbers, _new_step(numbers, params, round_fn, given, leaves, kinds))
        if has_numbers(learner, loss, check_game):  # else its numbers may change
            _SEEN.put(key, found)
    return None if isinstance(found.step, str) else found.step.play(leaves)


_FLOAT = (), float, True


def _quick_kind(leaf: Any) -> tuple | None:
    """The kind of a number, as `kind_of` gives it, or of an array with its type; else None."""
    kind = type(leaf)
    if kind is float:
        return _FLOAT
    if kind is int and -(2**31) <= leaf < 2**31:
        return (), kind, True
    if kind is np.ndarray or isinstance(leaf, np.generic):
        return leaf.shape, leaf.dtype, False, kind
    if isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer):
        return *kind_of(leaf), kind  # a random key has no weak type
    return None


def _new_step(
    game: Numbers, start: PyTree, round_fn: Callable, given: tuple, leaves: list, kinds: tuple
) -> HostStep | str:
    state, *row = given
    if accelerated() or sum(np.size(leaf) for leaf in jax.tree.leaves(state)) > tuning.HOST_NUMBERS:
        return "the state is large"
    if np.ndim(given[-1]) or not all(map(_is_real, jax.tree.leaves(row))):
        return "the numbers must be looked at"
    kinds = tuple(kind[:3] for kind in kinds)
    if len({_wide(kind) for _, kind, weak in kinds if not weak} - {None}) > 1:
        return "JAX casts some of the numbers"
    numbers = *game.leaves.own, *game.leaves.other
    form, shapes = jax.tree.flatten(start)[::-1]
    written = _written_step(
        game.leaves.structure,
        round_fn,
        (form, tuple((leaf.shape, leaf.dtype) for leaf in shapes)),
        jax.tree.structure(given),
        tuple(map(kind_of, numbers)),
        kinds,
        jax.config.read("jax_enable_x64"),
    )
    if isinstance(written, str):
        return written
    functions, after, dtypes = written
    own = list(map(plain_number, numbers))
    try:
        shared = quietly(functions.prepare, *own)
    except LEFT:
        return "what depends on the numbers of the learner alone leaves the floats"
    casts = [None if isinstance(kind, type) else _cast(kind) for _, kind, _ in kinds]
    if casts == [None] * len(casts) and all(plain_number(leaf) is leaf for leaf in leaves):
        casts = None
    return HostStep(functions.calls[0], own, shared, casts, after, dtypes)


def _wide(kind: np.dtype) -> np.dtype | None:
    """The dtype that JAX has for one of floats; None for others."""
    floats = jnp.issubdtype(kind, np.floating)  # a random key is none
    return jax.dtypes.canonicalize_dtype(kind) if floats else None


def _is_real(leaf: Any) -> bool:
    """Whether no cast can lose more than digits."""
    return isinstance(leaf, int | float) or leaf.dtype in _KINDS


_KINDS = frozenset(np.dtype(kind) for kind in (np.float32, np.float64, np.int32))


def _cast(kind: np.dtype) -> np.dtype | None:
    wanted = jax.dtypes.canonicalize_dtype(kind)
    return None if wanted == kind else wanted


@cached
def _written_step(
    structure: Structure,
    round_fn: Callable,
    start: tuple,
    tree: Any,
    own: tuple,
    kinds: tuple,
    _: bool,
) -> tuple[Functions, Any, list[Callable | None]] | str:
    first = jax.tree.unflatten(start[0], [jax.ShapeDtypeStruct(*kind) for kind in start[1]])
    first = None if start[0].num_leaves == 0 else first
    count, after = structure.learner.num_leaves, []

    def play(*leaves: Any) -> list[Array]:
        parts = list(leaves[:count]), list(leaves[count : len(own)])
        learner, loss = Leaves(*parts, structure).parts()
        given = jax.tree.unflatten(tree, leaves[len(own) :])
        found, form = jax.tree.flatten(round_fn(learner, loss, first, *given))
        types = [
            None if leaf.shape else np.dtype(leaf.dtype).type for leaf in map(jnp.asarray, found)
        ]
        after.extend([form, types])
        one = Rounds(*jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], given[1:]))
        legal = [need.legal_fn(own, first, one) for need, own in needs_of(learner, loss)]
        legal += [one.round == 0 for one in breaches_of(jax.tree.unflatten(form, found))]
        return [*found, _is_fine(legal, given[-1], [*jax.tree.leaves(given[1:]), *found])]

    try:
        functions = numpy_functions([play], [*own, *kinds], len(own), rounds=False)
    except Exception as error:  # the compiled round fails in the same way, and its error is better
        return f"it cannot be written with NumPy: {error}"
    return functions, *after


def _is_fine(legal: PyTree, weight: Array, leaves: list[Array]) -> Array:
    """Whether a round may be played, and all of its numbers are far from infinite."""
    fine = jnp.asarray(weight) >= 0
    for mask in jax.tree.leaves(legal):
        fine = fine & jnp.all(mask)
    floats = [jnp.asarray(leaf) for leaf in leaves]
    floats = [leaf for leaf in floats if jnp.issubdtype(leaf.dtype, jnp.floating)]
    squares = [jnp.vdot(leaf, leaf) if leaf.ndim else leaf * leaf for leaf in floats]
    most = min(float(jnp.finfo(leaf.dtype).max) for leaf in floats)  # Python has 64 bits
    return fine & (sum(one.astype(float) for one in squares) < most)
